//! What a connection still has to send: bytes of its own (answers' heads), and ranges of the log's memory between them, which are not
//! copied.
//!
//! Owned by its connection, or by the ring while it is being sent. A range of the log counts as lent until the whole has gone: who
//! makes an `Out` lends, who has sent it gives back.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Of `bytes`.
    Own(Range<usize>),
    Lent {
        position: u64,
        len: usize,
    },
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Own(range) => range.len(),
            Piece::Lent { len, .. } => *len,
        }
    }

    /// Without its first bytes.
    fn behind(&self, skipped: usize) -> Piece {
        match self {
            Piece::Own(range) => Piece::Own(range.start + skipped..range.end),
            Piece::Lent { position, len } => Piece::Lent { position: position + skipped as u64, len: len - skipped },
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Out {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    len: usize,
    sent: usize,
    /// What was lent for it.
    lent: Vec<u64>,
}

impl Out {
    pub fn of(bytes: Vec<u8>) -> Out {
        let len = bytes.len();
        Out { bytes, pieces: vec![Piece::Own(0..len)], len, sent: 0, lent: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.sent == self.len
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn push_own(&mut self, bytes: &[u8]) {
        let range = self.bytes.len()..self.bytes.len() + bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.len += bytes.len();
        match self.pieces.last_mut() {
            Some(Piece::Own(last)) => last.end = range.end,
            _ => self.pieces.push(Piece::Own(range)),
        }
    }

    pub fn push_lent(&mut self, position: u64, len: usize) {
        self.len += len;
        match self.pieces.last_mut() {
            Some(Piece::Lent { position: last, len: before }) if *last + *before as u64 == position => *before += len,
            _ => self.pieces.push(Piece::Lent { position, len }),
        }
    }

    /// Notes that the caller has lent from here on.
    pub fn note_lent(&mut self, position: u64) {
        self.lent.push(position);
    }

    pub fn lent(&self) -> &[u64] {
        &self.lent
    }

    /// What `other` sends goes behind what this sends.
    pub fn append(&mut self, other: Out) {
        assert_eq!(other.sent, 0, "an answer that is under way is not moved");
        if self.is_empty() && self.lent.is_empty() {
            *self = other;
            return;
        }
        for piece in &other.pieces {
            match piece {
                Piece::Own(range) => self.push_own(&other.bytes[range.clone()]),
                Piece::Lent { position, len } => self.push_lent(*position, *len),
            }
        }
        self.lent.extend_from_slice(&other.lent);
    }

    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.len, "no more is sent than there is");
    }

    /// The pieces that are left, so many at most.
    pub fn left(&self, most: usize, mut each: impl FnMut(Piece)) {
        let mut skip = self.sent;
        let mut given = 0;
        for piece in &self.pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            if given == most {
                return;
            }
            each(piece.behind(skip));
            (skip, given) = (0, given + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(out: &Out) -> Vec<Piece> {
        let mut all = Vec::new();
        out.left(10, |piece| all.push(piece));
        all
    }

    #[test]
    fn neighbours_are_joined_and_what_has_gone_is_left_out() {
        let mut out = Out::of(b"head".to_vec());
        out.push_own(b"more");
        out.push_lent(100, 10);
        out.push_lent(110, 5);
        out.push_lent(300, 1);
        out.push_own(b"end");
        let (lent, other) = (Piece::Lent { position: 100, len: 15 }, Piece::Lent { position: 300, len: 1 });
        assert_eq!(left(&out), [Piece::Own(0..8), lent, other.clone(), Piece::Own(8..11)]);
        out.advance(10);
        assert_eq!(left(&out), [Piece::Lent { position: 102, len: 13 }, other, Piece::Own(8..11)]);
        out.advance(17);
        assert!(out.is_empty() && left(&out).is_empty());
    }

    #[test]
    fn no_more_pieces_than_asked_for() {
        let mut out = Out::default();
        (0..5).for_each(|at| out.push_lent(at * 100, 1));
        let mut given = 0;
        out.left(3, |_| given += 1);
        assert_eq!(given, 3);
    }

    #[test]
    fn answers_follow_each_other_with_what_was_lent_for_them() {
        let mut first = Out::of(b"a".to_vec());
        first.push_lent(7, 2);
        first.note_lent(7);
        let mut second = Out::of(b"b".to_vec());
        second.push_lent(9, 2);
        second.note_lent(9);
        let mut out = Out::default();
        out.append(first);
        out.append(second);
        let lent = |position| Piece::Lent { position, len: 2 };
        assert_eq!(left(&out), [Piece::Own(0..1), lent(7), Piece::Own(1..2), lent(9)]);
        assert_eq!((out.lent(), out.bytes()), (&[7, 9][..], &b"ab"[..]));
    }
}
