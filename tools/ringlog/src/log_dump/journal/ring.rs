//! One writer's ring: its state, its files, the judgement of a start over all of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use log::journal::format::{self, Owner};
use log::journal::look::{Block, Judge, Verdict};
use log::limits::{RING_FILES_MAX, SMALL_FILE};
use model::PartitionKey;
use serde_json::json;

use super::blocks::each_block;
use super::round::Place;
use super::{Homes, Shown, parse_name};
use crate::log_dump::folder::{names, read_small};
use crate::log_dump::out::Out;
use crate::log_dump::segment::Fail;

/// How often a ring that looks lost is judged, and the pause between two times: a broker may be writing it.
const LOOKS: u32 = 4;
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// A writer's ring, as far as it is there.
pub struct Ring {
    folder: PathBuf,
    writer: u16,
    state: State,
    /// By slot.
    files: BTreeMap<usize, PathBuf>,
}

pub enum State {
    /// No round counts.
    None,
    Unusable(String),
    Of(Owner, usize),
}

/// What is counted of a ring.
#[derive(Default)]
pub struct Tally {
    /// Rounds that are not applied, by why.
    pub by_fate: BTreeMap<&'static str, u64>,
    pub rounds: u64,
    /// Of entries that are applied.
    pub bytes: u64,
    pub entries: u64,
    pub partitions: BTreeSet<PartitionKey>,
}

impl Ring {
    pub fn find(folder: &Path, writer: u16) -> Result<Ring, Fail> {
        let mut files = BTreeMap::new();
        for name in names(folder)? {
            if let Some((of, Some(slot))) = parse_name(&name)
                && of == writer
            {
                files.insert(slot, folder.join(name));
            }
        }
        let path = folder.join(format!("{writer:05}.state"));
        let state = match read_small(&path, SMALL_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::None,
            Err(error) => return Err(Fail::Sentence(format!("{} cannot be read: {error}", path.display()))),
            Ok(bytes) => match format::decode_state(&bytes) {
                Err(why) => State::Unusable(why.to_string()),
                Ok((_, count)) if count as usize > RING_FILES_MAX => {
                    State::Unusable(format!("it names more than {RING_FILES_MAX} files"))
                }
                Ok((owner, count)) => State::Of(owner, count as usize),
            },
        };
        Ok(Ring { folder: folder.to_path_buf(), writer, state, files })
    }

    pub fn dump(&self, homes: &Homes, shown: Shown, out: &mut Out<'_>) -> Result<(), Fail> {
        self.introduce(out)?;
        let verdict = match self.state {
            State::Of(owner, count) if !self.misses_files() => Some(self.judge(owner, count)?),
            State::Of(..) | State::None | State::Unusable(_) => None,
        };
        let mut tally = Tally::default();
        for (number, path) in self.files.iter().filter(|(number, _)| shown.slot.is_none_or(|only| only == **number)) {
            // A file that the state does not name yet holds no round that counts.
            let named = matches!(self.state, State::Of(_, count) if *number < count);
            let judged = verdict.as_ref().filter(|_| named);
            each_block(path, self.owner(), &mut |position, block| {
                let place = Place { ring: self, number: *number, path, position, all: shown.all };
                place.print(&block, judged, homes, &mut tally, out)
            })?;
        }
        if let Some(verdict) = &verdict {
            self.tell_damage(verdict, homes, out)?;
        }
        self.sum_up(verdict.as_ref(), &tally, shown.slot.is_some(), out)
    }

    pub fn owner(&self) -> Option<Owner> {
        if let State::Of(owner, _) = self.state { Some(owner) } else { None }
    }

    /// Whether a file is gone that the state names: a start refuses then.
    pub fn misses_files(&self) -> bool {
        matches!(self.state, State::Of(_, count) if (0..count).any(|slot| !self.files.contains_key(&slot)))
    }

    fn introduce(&self, out: &mut Out<'_>) -> Result<(), Fail> {
        let (writer, files) = (self.writer, self.files.len());
        let state = match &self.state {
            State::None => "no state: no round counts, as after a clean stop".to_owned(),
            State::Unusable(why) => format!("its state cannot be used: {why}"),
            State::Of(owner, count) => format!("{count} files in use by the start {:016x}", owner.incarnation),
        };
        let incarnation = self.owner().map(|owner| format!("{:016x}", owner.incarnation));
        out.item(
            || format!("journal of shard {writer}: {files} files, {state}"),
            || {
                json!({
                    "type": "journal", "writer": writer, "files": files, "incarnation": incarnation,
                    "folder": self.folder.display().to_string(), "state": state,
                })
            },
        )?;
        let refuse = |what: String, out: &mut Out<'_>| -> Result<(), Fail> {
            out.damage(
                || format!("  DAMAGE: {what}: a start refuses"),
                || json!({ "type": "damage", "writer": writer, "why": what }),
            )?;
            Ok(())
        };
        match &self.state {
            State::None => {}
            State::Unusable(why) => refuse(format!("{writer:05}.state: {why}"), out)?,
            State::Of(_, count) => {
                for slot in (0..*count).filter(|slot| !self.files.contains_key(slot)) {
                    let what = format!("{writer:05}.{slot:05}.ring is missing and may hold acknowledged records");
                    refuse(what, out)?;
                }
            }
        }
        Ok(())
    }

    fn judge(&self, owner: Owner, count: usize) -> Result<Verdict, Fail> {
        let mut looks = 0;
        loop {
            let mut judge = Judge::new(owner);
            for (number, path) in self.files.range(..count) {
                each_block(path, Some(owner), &mut |position, block| {
                    if let Block::Round { owner, found } = block {
                        judge.see(*number, position, owner, &found);
                    }
                    Ok(())
                })?;
            }
            let verdict = judge.verdict();
            looks += 1;
            if (verdict.lost().is_none() && verdict.damaged().is_empty()) || looks == LOOKS {
                return Ok(verdict);
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    fn tell_damage(&self, verdict: &Verdict, homes: &Homes, out: &mut Out<'_>) -> Result<(), Fail> {
        let writer = self.writer;
        if let Some(round) = verdict.lost() {
            let why = format!(
                "round {round} was synced and cannot be read, nobody can tell whose acknowledged records it held: a start \
                 refuses; to start without them, move {writer:05}.state away"
            );
            out.damage(
                || format!("  DAMAGE: {why}"),
                || json!({ "type": "damage", "writer": writer, "round": round, "why": why }),
            )?;
        }
        for (key, round) in verdict.damaged() {
            let name = homes.name(*key);
            let why = "its acknowledged records in a damaged round are gone: a start refuses it";
            out.damage(
                || format!("  DAMAGE: {name}: {why} (round {round})"),
                || json!({ "type": "damage", "writer": writer, "partition": name, "round": round, "why": why }),
            )?;
        }
        Ok(())
    }

    fn sum_up(&self, verdict: Option<&Verdict>, tally: &Tally, part: bool, out: &mut Out<'_>) -> Result<(), Fail> {
        let counted = verdict.and_then(Verdict::counted);
        let (first, last) = counted.unzip();
        let range = match counted {
            Some((first, last)) => format!(" (rounds {first} to {last} count)"),
            None => String::new(),
        };
        let others: String = tally.by_fate.iter().map(|(fate, count)| format!("; {count} {fate}")).collect();
        let cut = verdict.is_some_and(Verdict::is_partial);
        let partial = if cut { "; there are more rounds than are judged" } else { "" };
        let here = if part { " in this file" } else { "" };
        let (bytes, entries, partitions) = (tally.bytes, tally.entries, tally.partitions.len());
        out.item(
            || {
                format!(
                    "  {} rounds{here}{range}; a start applies {entries} entries, {bytes} bytes of {partitions} \
                     partitions{others}{partial}",
                    tally.rounds
                )
            },
            || {
                json!({
                    "type": "journal_summary", "writer": self.writer, "rounds": tally.rounds,
                    "first_counted": first, "last_counted": last,
                    "durable_through": verdict.map(Verdict::durable_through),
                    "applied_entries": entries, "applied_bytes": bytes, "partitions": partitions,
                    "fates": tally.by_fate, "all_judged": !cut,
                })
            },
        )?;
        Ok(())
    }
}
