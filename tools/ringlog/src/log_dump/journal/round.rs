//! A round on the page: where it lies, what it holds, whether a start applies it and why not.

use std::path::Path;

use log::journal::format::{Action, Entry, Found, Owner};
use log::journal::look::{Block, EntryFate, RoundFate, Verdict};
use serde_json::{Value, json};

use super::Homes;
use super::ring::{Ring, Tally};
use crate::log_dump::out::Out;
use crate::log_dump::segment::Fail;

/// Where a round lies.
pub struct Place<'a> {
    pub ring: &'a Ring,
    pub number: usize,
    pub path: &'a Path,
    pub position: u64,
    /// See [`super::Shown`].
    pub all: bool,
}

/// Why a round is applied or not, for people, and the word for scripts.
fn fate_text(fate: RoundFate) -> (&'static str, &'static str) {
    match fate {
        RoundFate::Applied => ("applied", "applied"),
        RoundFate::Refused => ("not applied: a start refuses", "refused"),
        RoundFate::OldLap => ("of an older lap", "old_lap"),
        RoundFate::BehindTheEnd => ("behind the end", "behind_the_end"),
        RoundFate::Torn => ("torn: the write that was under way", "torn"),
        RoundFate::Damaged => ("DAMAGED although it was synced", "damaged"),
        RoundFate::Twice => ("a second one of that number", "twice"),
        RoundFate::Foreign => ("of another start", "another_start"),
        RoundFate::Changed => ("written meanwhile", "written_meanwhile"),
    }
}

impl Place<'_> {
    pub fn print(
        &self,
        block: &Block,
        verdict: Option<&Verdict>,
        homes: &Homes,
        tally: &mut Tally,
        out: &mut Out<'_>,
    ) -> Result<(), Fail> {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let position = self.position;
        let (owner, found) = match block {
            Block::Nothing => return Ok(()),
            Block::Unreadable { sequence } => {
                *tally.by_fate.entry("unreadable").or_default() += 1;
                if !self.all {
                    return Ok(());
                }
                out.item(
                    || format!("  round {sequence}, by its first bytes, at byte {position} of {file}: its list cannot be read, not applied"),
                    || json!({ "type": "journal_round", "file": file, "position": position, "claims": sequence, "fate": "unreadable" }),
                )?;
                return Ok(());
            }
            Block::Round { owner, found } => (*owner, found),
        };
        let fate = verdict.map(|verdict| verdict.round(self.number, position, owner, found));
        let (words, word) = match (fate, self.ring.owner()) {
            (Some(fate), _) => fate_text(fate),
            (None, Some(ours)) if ours != owner => fate_text(RoundFate::Foreign),
            (None, Some(_)) if self.ring.misses_files() => fate_text(RoundFate::Refused),
            (None, Some(_)) => ("in a file that is not in use", "unused_file"),
            (None, None) => ("not applied: there is no usable state", "no_state"),
        };
        tally.rounds += 1;
        let applies = fate == Some(RoundFate::Applied);
        let applying = verdict.filter(|_| applies);
        if !applies {
            *tally.by_fate.entry(words).or_default() += 1;
        }
        let mut entries = Vec::new();
        for entry in &found.round.entries {
            let line = entry_line(entry, found.round.sequence, applying, homes);
            if line.applied {
                tally.entries += 1;
                tally.bytes += entry.payload_len() as u64;
                tally.partitions.insert(entry.key);
            }
            entries.push(line);
        }
        let is_told = match fate {
            Some(RoundFate::Damaged | RoundFate::Torn) => true,
            Some(RoundFate::Applied) => !out.detail.summary,
            _ => self.all && !out.detail.summary,
        };
        if is_told { self.print_round(owner, found, (words, word), &entries, out) } else { Ok(()) }
    }

    fn print_round(
        &self,
        owner: Owner,
        found: &Found,
        (words, word): (&str, &str),
        entries: &[EntryLine],
        out: &mut Out<'_>,
    ) -> Result<(), Fail> {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let (round, position) = (&found.round, self.position);
        let payload = found.payload.len();
        let shown = if out.detail.summary { &[] } else { entries };
        out.item(
            || {
                let lines: String = shown.iter().map(|line| format!("\n    {}", line.text)).collect();
                format!(
                    "  round {} at byte {position} of {file}: {} bytes, {} entries with {payload} bytes, synced through {}, \
                     needed from {}: {words}{lines}",
                    round.sequence,
                    found.len,
                    round.entries.len(),
                    round.durable_through,
                    round.oldest_needed,
                )
            },
            || {
                json!({
                    "type": "journal_round", "file": file, "position": position, "bytes": found.len,
                    "sequence": round.sequence, "durable_through": round.durable_through,
                    "oldest_needed": round.oldest_needed, "payload_bytes": payload, "payload_ok": found.payload_ok,
                    "incarnation": format!("{:016x}", owner.incarnation), "fate": word,
                    "entries": shown.iter().map(|line| line.json.clone()).collect::<Vec<_>>(),
                })
            },
        )?;
        Ok(())
    }
}

struct EntryLine {
    text: String,
    json: Value,
    /// It puts bytes into a segment.
    applied: bool,
}

/// `verdict`: of a round that is applied.
fn entry_line(entry: &Entry, sequence: u64, verdict: Option<&Verdict>, homes: &Homes) -> EntryLine {
    let name = homes.name(entry.key);
    let (base, position, len) = match entry.action {
        Action::Void { below } => {
            let text = format!("{name}  void: nothing before it of segments below {}", below.0);
            let json = json!({ "partition": name, "void_below": below.0 });
            return EntryLine { text, json, applied: false };
        }
        Action::Write { segment_base, position, len } => (segment_base, position, len),
    };
    let why_not = verdict.and_then(|verdict| match verdict.entry(sequence, entry) {
        EntryFate::Voided { by } => Some(format!("round {by} voids it")),
        EntryFate::BehindDamage { round } => Some(format!("round {round}, which is damaged, held what comes before")),
        EntryFate::Applied => homes.absent(entry.key, base).map(str::to_owned),
    });
    let fate = why_not.as_ref().map_or(String::new(), |why| format!(": not applied, {why}"));
    let applied = verdict.is_some() && why_not.is_none();
    EntryLine {
        text: format!("{name}  segment {} byte {position}, {len} bytes{fate}", base.0),
        json: json!({
            "partition": name, "segment_base": base.0, "position": position, "bytes": len, "applied": applied,
            "why_not": why_not,
        }),
        applied,
    }
}
