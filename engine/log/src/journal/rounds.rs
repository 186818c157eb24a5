//! The loop that makes rounds. A round begins as soon as the one before is written, with all that came meanwhile: a lone
//! batch leaves at once, and under load rounds grow as the device sets the pace. A small round with no other before it, whose
//! write alone nobody waits for, is written and synced as one operation; the sync of any other runs beside the write of the
//! next. Syncs are never under way together, so that rounds become durable in order.
//!
//! Nothing is acknowledged before its round's sync: [`PartitionLog::journal_synced`].

use std::rc::Rc;

use bytes::Bytes;
use runtime::sync::all;
use runtime::{DirectFile, TaskHandle, clock, spawn};

use super::format::{self, Action, Entry, Round, round_len};
use super::{Journal, State, Void};
use crate::device::Operation;
use crate::error::LogError;
use crate::figures::timed;
use crate::limits::{AT_ONCE, BLOCK, ROUND_BYTES, ROUND_ENTRIES, ROUND_PARTITIONS};
use crate::mutants::{Mutant, active};
use crate::partition::journaled::{Piece, Taken};

/// What goes into a round.
#[derive(Debug, Default)]
struct Load {
    voids: Vec<Void>,
    pieces: Vec<Piece>,
    /// It has nothing in it, and says which files are over.
    mark: bool,
}

impl Load {
    fn entries(&self) -> usize {
        self.voids.len() + self.pieces.len()
    }

    fn is_empty(&self) -> bool {
        self.entries() == 0 && !self.mark
    }
}

/// A round on its way to be durable.
#[derive(Debug)]
struct Flight {
    file: DirectFile,
    sequence: u64,
    oldest_lap: u64,
    load: Load,
    /// Its write was its sync.
    is_synced: bool,
}

impl Journal {
    pub(super) async fn run(self: Rc<Self>) {
        let mut syncing: Option<TaskHandle<()>> = None;
        while let Some(load) = self.next_load().await {
            let flight = self.write_round(load).await;
            if let Some(before) = syncing.take() {
                before.join().await;
            }
            match flight {
                Some(flight) if flight.is_synced => self.synced(flight),
                Some(flight) => syncing = Some(spawn("journal-sync", self.clone().sync_round(flight))),
                None => {}
            }
        }
        if let Some(last) = syncing {
            last.join().await;
        }
    }

    async fn next_load(self: &Rc<Self>) -> Option<Load> {
        loop {
            let seen = self.ready.version();
            if self.state.get() == State::Ready {
                let load = self.take_load();
                if !load.is_empty() {
                    return Some(load);
                }
            } else {
                self.hand_over_queue();
            }
            if self.state.get() == State::Stopped {
                return None;
            }
            self.ready.changed_since(seen).await;
        }
    }

    fn take_load(self: &Rc<Self>) -> Load {
        let mut load = Load { mark: self.wants_mark(), ..Load::default() };
        if load.mark {
            return load;
        }
        let room = self.ring.borrow().room(self.round_needed()).min(ROUND_BYTES);
        if room < BLOCK * 2 {
            // Every file is full of what is still needed.
            self.no_room();
            return load;
        }
        // A block for the header and the padding.
        let mut left = room as usize - BLOCK as usize;
        self.take_voids(&mut load, &mut left);
        self.take_carries(&mut load, &mut left);
        if self.is_short_of_memory() {
            self.no_memory();
            return load;
        }
        left = left.saturating_sub(self.kept_back() as usize);
        if left < self.waits_for.get() {
            self.no_room();
            return load;
        }
        self.wake_waiting();
        while load.entries() < ROUND_PARTITIONS {
            let Some(log) = self.queue.borrow_mut().pop_front() else { break };
            match log.take_for_journal(left.saturating_sub(format::ENTRY_LEN), self.most_bytes()) {
                Taken::Nothing => {}
                Taken::Direct => log.go_direct(&self.direct),
                Taken::NoRoom { .. } => {
                    self.queue.borrow_mut().push_front(log);
                    break;
                }
                Taken::Piece(piece) => {
                    left = left.saturating_sub(piece.len() + format::ENTRY_LEN);
                    load.pieces.push(piece);
                }
            }
        }
        if load.is_empty() && !self.queue.borrow().is_empty() {
            // It would not fit an empty round either.
            self.no_room();
        } else {
            self.fullness.ends(clock::now_ns);
        }
        self.write_out_early();
        load
    }

    fn take_voids(&self, load: &mut Load, left: &mut usize) {
        let mut voids = self.voids.borrow_mut();
        while load.entries() < ROUND_ENTRIES / 2 && *left > 2 * format::ENTRY_LEN {
            let Some(void) = voids.pop_front() else { return };
            *left -= format::ENTRY_LEN;
            load.voids.push(void);
        }
    }

    fn take_carries(&self, load: &mut Load, left: &mut usize) {
        loop {
            let Some(log) = self.carries.borrow_mut().pop_front() else { return };
            let pieces = log.take_carry();
            let need: usize = pieces.iter().map(|piece| piece.len() + format::ENTRY_LEN).sum();
            if need > *left || load.entries() + pieces.len() > ROUND_ENTRIES {
                pieces.iter().for_each(|piece| piece.log.journal_given_up(piece));
                // Next time alone; one that never fits keeps its lap, and in the end the ring.
                if load.is_empty() {
                    return;
                }
                self.carries.borrow_mut().push_front(log);
                return;
            }
            *left -= need;
            load.pieces.extend(pieces);
        }
    }

    async fn write_round(self: &Rc<Self>, load: Load) -> Option<Flight> {
        let payload: usize = load.pieces.iter().map(Piece::len).sum();
        let len = round_len(load.entries(), payload);
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        let place = {
            let mut ring = self.ring.borrow_mut();
            if load.mark { ring.place_mark(sequence) } else { ring.place(len, sequence) }
        };
        self.note_members(&load, place.lap);
        self.written_from.set(place.oldest_lap);
        let round = Round {
            sequence,
            previous_crc: self.previous_crc.get(),
            durable_through: self.synced_through.get(),
            oldest_needed: place.oldest_needed,
            entries: entries(&load),
        };
        let parts = load.pieces.iter().flat_map(|piece| piece.parts.iter());
        let (header, crc) = format::encode(self.owner, &round, parts.clone().map(|part| &part[..]));
        self.previous_crc.set(crc);
        let mut slices = vec![Bytes::from(header)];
        slices.extend(parts.cloned());
        let (written, is_synced) = if self.goes_at_once(sequence, len, &load) {
            (self.write_at_once(&place.file, place.position, slices).await, true)
        } else {
            (self.write_slices(&place.file, place.position, slices).await, false)
        };
        let mut stats = self.stats.get();
        stats.rounds += 1;
        stats.payload_bytes += payload as u64;
        stats.written_bytes += len;
        self.stats.set(stats);
        let flight = Flight { file: place.file, sequence, oldest_lap: place.oldest_lap, load, is_synced };
        match written {
            Ok(()) if self.state.get() != State::Broken => {
                flight.load.pieces.iter().for_each(|piece| piece.log.journal_wrote(piece));
                if active(Mutant::JournalAnswersBeforeSync) {
                    flight.load.pieces.iter().for_each(|piece| piece.log.journal_acknowledges(piece));
                }
                Some(flight)
            }
            Ok(()) => {
                self.broke(None, flight);
                None
            }
            Err(error) => {
                self.broke(Some(&error), flight);
                None
            }
        }
    }

    fn note_members(&self, load: &Load, lap: u64) {
        let mut ring = self.ring.borrow_mut();
        if load.pieces.is_empty() {
            return;
        }
        let Some(lap) = ring.lap_mut(lap) else { unreachable!("a round's lap is in use") };
        for piece in &load.pieces {
            piece.log.note_lap(lap.number, piece);
            lap.members.insert(piece.log.id, piece.log.clone());
        }
    }

    /// Whether this round is written and synced as one operation. The mutants tell one from the other.
    fn goes_at_once(&self, sequence: u64, len: u64, load: &Load) -> bool {
        let alone = self.synced_through.get() + 1 == sequence && !load.pieces.iter().any(|piece| piece.tells_written);
        let most = AT_ONCE.min(self.device.limits().write_max_bytes as u64);
        alone && len <= most && !active(Mutant::JournalAnswersBeforeSync) && !active(Mutant::JournalSyncLeftOut)
    }

    async fn write_at_once(&self, file: &DirectFile, position: u64, parts: Vec<Bytes>) -> Result<(), LogError> {
        let len = parts.iter().map(Bytes::len).sum();
        let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let write = self.on_device(Operation::DurableWrite(len), file.write_piece_durably(&slices, position));
        Ok(timed(&self.syncs, write).await?)
    }

    /// In pieces of the largest write, all on their way together.
    async fn write_slices(&self, file: &DirectFile, position: u64, slices: Vec<Bytes>) -> Result<(), LogError> {
        let most = self.device.limits().write_max_bytes;
        let mut writes = Vec::new();
        for (at, parts) in cut(slices, most) {
            writes.push(async move {
                let len = parts.iter().map(Bytes::len).sum();
                let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
                self.on_device(Operation::Write(len), file.write_piece(&slices, position + at)).await
            });
        }
        let written: Result<(), _> = all(writes).await.into_iter().collect();
        Ok(written?)
    }

    async fn sync_round(self: Rc<Self>, flight: Flight) {
        let synced = if active(Mutant::JournalSyncLeftOut) {
            Ok(())
        } else {
            timed(&self.syncs, self.on_device(Operation::Sync, flight.file.fdatasync())).await
        };
        match synced {
            Ok(()) => self.synced(flight),
            Err(error) => self.broke(Some(&error.into()), flight),
        }
    }

    /// A round is on the device for good, and so are those before it.
    fn synced(self: &Rc<Self>, flight: Flight) {
        if self.state.get() == State::Broken {
            return self.broke(None, flight);
        }
        self.synced_through.set(flight.sequence);
        self.counted_from.set(flight.oldest_lap);
        for piece in &flight.load.pieces {
            piece.log.journal_synced(piece);
        }
        for void in flight.load.voids {
            void.done.send(true);
        }
        self.step_ended();
        self.progress.notify();
    }

    /// The ring's device failed: no round is made any more. What was in this one goes to the segments, and nobody was told
    /// that it is durable; what earlier rounds hold still counts, until it is in the segments too.
    fn broke(&self, error: Option<&LogError>, flight: Flight) {
        if self.state.get() == State::Ready {
            self.state.set(State::Broken);
            if let Some(error) = error.filter(|_| !cfg!(feature = "sim")) {
                let folder = self.home.dir.path().display();
                eprintln!(
                    "ringlog: the journal in {folder} failed ({error}); segments are written directly from now on"
                );
            }
        }
        for piece in &flight.load.pieces {
            piece.log.journal_given_up(piece);
            // Unless it waits for a round already: the direct way must not meet it twice.
            piece.log.register();
        }
        self.voids.borrow_mut().extend(flight.load.voids);
        self.ready.notify();
        self.progress.notify();
    }
}

fn entries(load: &Load) -> Vec<Entry> {
    // Voids first: what the round itself holds of the partition came after.
    let voids = load.voids.iter().map(|void| Entry { key: void.key, action: Action::Void { below: void.below } });
    let writes = load.pieces.iter().map(|piece| Entry {
        key: piece.log.key(),
        action: Action::Write { segment_base: piece.segment_base, position: piece.from, len: piece.len() as u32 },
    });
    voids.chain(writes).collect()
}

/// Cuts a row of slices into rows of `most` bytes, each with its distance from the beginning.
fn cut(slices: Vec<Bytes>, most: usize) -> Vec<(u64, Vec<Bytes>)> {
    let mut rows: Vec<(u64, Vec<Bytes>)> = Vec::new();
    let (mut at, mut room) = (0u64, 0);
    for mut slice in slices {
        while !slice.is_empty() {
            if room == 0 {
                rows.push((at, Vec::new()));
                room = most;
            }
            let part = slice.split_to(room.min(slice.len()));
            at += part.len() as u64;
            room -= part.len();
            if let Some((_, row)) = rows.last_mut() {
                row.push(part);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_a_write_and_hold_everything_in_order() {
        let slices =
            vec![Bytes::from_static(b"abc"), Bytes::new(), Bytes::from_static(b"defghij"), Bytes::from_static(b"k")];
        let rows = cut(slices, 4);
        let text: Vec<(u64, Vec<u8>)> = rows.into_iter().map(|(at, row)| (at, row.concat())).collect();
        assert_eq!(text, [(0, b"abcd".to_vec()), (4, b"efgh".to_vec()), (8, b"ijk".to_vec())]);
        assert!(cut(Vec::new(), 4).is_empty());
    }
}
