//! `ringlog.folders`: which data folders a node has, and in which of them each partition lives. Lies in the folder of the
//! metadata log, and only where a node has, or once had, several folders.
//!
//! A header, then frames of marker, length, CRC and payload, each synced before anyone counts on it; a later frame overrides
//! an earlier one. A crash can cut the last frame only, which nobody counted on: it is dropped. A bad frame with a sound one
//! behind it is damage. The file is written anew, whole, at a start that changes it and when it has grown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::TopicId;

use super::super::format::identity::DirectoryId;
use crate::limits::FOLDERS_MAX;

pub const FILE: &str = "ringlog.folders";
/// A partition that has no home yet.
pub const NOWHERE: u16 = u16::MAX;
/// A partition with several copies of which none could be chosen: no new home for it.
pub const UNDECIDED: u16 = u16::MAX - 1;

/// A folder that could not be used since it was named first: it has a number, and no partition.
pub const UNSEEN: DirectoryId = DirectoryId::of_bytes([0; 16]);

const MAGIC: &[u8; 8] = b"RLFOLDS\n";
const VERSION: u16 = 1;
const HEADER_LEN: usize = 8 + 2 + 4;
const MARKER: &[u8; 4] = b"\xf5RLF";
/// Marker, length of the payload, CRC of length and payload.
const FRAME_HEAD: usize = 4 + 4 + 4;
const KIND_FOLDER: u8 = 1;
const KIND_HOMES: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFolder {
    pub id: DirectoryId,
    /// Where it was when it was last seen.
    pub path: PathBuf,
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// By the number that `homes` use.
    pub folders: Vec<KnownFolder>,
    /// Folder of each partition by its index.
    pub homes: BTreeMap<TopicId, Vec<u16>>,
}

impl Record {
    /// Partitions whose home is folder `number`.
    pub fn count_in(&self, number: usize) -> usize {
        self.homes.values().flatten().filter(|&&home| usize::from(home) == number).count()
    }

    pub fn put(&mut self, topic: TopicId, first: usize, homes: &[u16]) {
        let all = self.homes.entry(topic).or_default();
        if all.len() < first + homes.len() {
            all.resize(first + homes.len(), NOWHERE);
        }
        all[first..first + homes.len()].copy_from_slice(homes);
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = header();
        for folder in &self.folders {
            out.extend(folder_frame(folder));
        }
        for (topic, homes) in &self.homes {
            out.extend(homes_frame(*topic, 0, homes));
        }
        out
    }

    /// The record, and the length of the file up to a frame that a crash cut. The sentence says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<(Record, usize), &'static str> {
        let head = bytes.first_chunk::<HEADER_LEN>().ok_or("it is too short")?;
        if !head.starts_with(MAGIC) {
            return Err("it is another kind of file");
        }
        if u16::from_le_bytes([head[8], head[9]]) != VERSION {
            return Err("it was written by a newer version");
        }
        if head[10..] != crc32fast::hash(&head[..10]).to_le_bytes() {
            return Err("the checksum of its head does not match");
        }
        let mut record = Record::default();
        let mut at = HEADER_LEN;
        while let Some(frame) = next_frame(&bytes[at..])? {
            record.take(&frame[FRAME_HEAD..]).ok_or("a frame contradicts itself")?;
            at += frame.len();
        }
        let known = record.folders.len();
        let in_range = |home: &u16| *home >= UNDECIDED || usize::from(*home) < known;
        if known > FOLDERS_MAX || !record.homes.values().flatten().all(in_range) {
            return Err("it names folders that it does not know");
        }
        Ok((record, at))
    }

    fn take(&mut self, payload: &[u8]) -> Option<()> {
        let (&kind, rest) = payload.split_first()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        match kind {
            KIND_FOLDER => {
                let path = PathBuf::from(std::str::from_utf8(rest).ok()?);
                self.folders.push(KnownFolder { id: DirectoryId::of_bytes(*id), path });
            }
            KIND_HOMES => {
                let (first, rest) = rest.split_first_chunk::<4>()?;
                let homes: Vec<u16> = rest.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
                let first = usize::try_from(u32::from_le_bytes(*first)).ok()?;
                // Frames follow each other without a gap: hostile numbers must not make memory.
                if rest.len() % 2 != 0 || first > self.homes.get(&TopicId(*id)).map_or(0, Vec::len) {
                    return None;
                }
                self.put(TopicId(*id), first, &homes);
            }
            _ => return None,
        }
        Some(())
    }
}

fn header() -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
    out
}

/// The frame at the beginning of `bytes`; `None` at the end, or where a crash cut the last one.
fn next_frame(bytes: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    if let Some(frame) = sound_frame(bytes) {
        return Ok(Some(frame));
    }
    let behind = bytes.windows(MARKER.len()).enumerate().skip(1).filter(|(_, window)| window == MARKER);
    match behind.map(|(at, _)| at).find(|&at| sound_frame(&bytes[at..]).is_some()) {
        Some(_) => Err("a frame in it is damaged"),
        None => Ok(None),
    }
}

fn sound_frame(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MARKER)?;
    let len = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    let frame = bytes.get(..FRAME_HEAD.checked_add(len as usize)?)?;
    (frame[8..FRAME_HEAD] == crc_of(len, &frame[FRAME_HEAD..]).to_le_bytes()).then_some(frame)
}

fn crc_of(len: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&len.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

fn frame(kind: u8, id: [u8; 16], rest: &[u8]) -> Vec<u8> {
    let mut payload = vec![kind];
    payload.extend_from_slice(&id);
    payload.extend_from_slice(rest);
    let len = payload.len() as u32;
    let mut out = MARKER.to_vec();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&crc_of(len, &payload).to_le_bytes());
    out.extend(payload);
    out
}

fn folder_frame(folder: &KnownFolder) -> Vec<u8> {
    frame(KIND_FOLDER, folder.id.bytes(), text_of(&folder.path).as_bytes())
}

/// Homes of the partitions of one topic from `first` on.
pub fn homes_frame(topic: TopicId, first: u32, homes: &[u16]) -> Vec<u8> {
    let mut rest = first.to_le_bytes().to_vec();
    homes.iter().for_each(|home| rest.extend_from_slice(&home.to_le_bytes()));
    frame(KIND_HOMES, topic.0, &rest)
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
