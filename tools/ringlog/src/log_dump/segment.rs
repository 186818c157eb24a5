//! One segment: its batches, its indexes against them, and where a start that scans it would end the log.

use std::io;
use std::path::{Path, PathBuf};

use log::Fill;
use model::{BatchHeader, BatchView, Offset};
use serde_json::json;

use super::index::{Index, IndexKind};
use super::out::Out;
use super::records::{self, Dialect};
use super::walk::{Found, Walk};

/// What a walk over a segment gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    pub batches: u64,
    pub records: u64,
    /// Damaged places and batches.
    pub damaged: u64,
    pub len: u64,
    /// Up to where a start would not look.
    pub trusted: Option<Fill>,
    /// Damage at or behind that place.
    broken: bool,
    /// Behind the last sound batch before such damage: where a start ends the log.
    pub kept_bytes: u64,
    pub kept_offset: i64,
    /// Zeros at the end: space that was reserved.
    pub reserved_bytes: u64,
    /// Leader epochs with the first offset of each, as the sound batches say.
    pub epochs: Vec<(i32, i64)>,
}

/// How a segment is to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub base: Offset,
    pub dialect: Dialect,
    /// See [`Walk::open`].
    pub patience: u32,
    /// Up to where a start would take it on trust.
    pub trusted: Option<Fill>,
    /// Offsets may be missing: the topic is compacted.
    pub gaps: bool,
}

/// Dumps the `.log` file at `path` and the indexes beside it. `None` when it is gone: retention took it.
pub fn dump(path: &Path, look: Look, out: &mut Out<'_>) -> Result<Option<Segment>, Fail> {
    let Look { base, dialect, patience, trusted, gaps } = look;
    let cannot = |e| Fail::Sentence(format!("{} cannot be read: {e}", path.display()));
    // Indexes first: what they point to by then is in the log.
    let mut indexes = read_indexes(path, base, out)?;
    let mut walk = match Walk::open(path, base, patience) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(cannot)?,
    };
    if !gaps {
        walk = walk.without_gaps();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let len = walk.len();
    out.item(|| format!("  segment {name}, {len} bytes"), || json!({ "type": "segment", "file": name, "bytes": len }))?;
    let mut segment = Segment::new(base, trusted);
    let mut scratch = Vec::new();
    loop {
        let before = walk.position();
        let found = walk.next().map_err(cannot)?;
        match found {
            Found::Batch { position, header, problems } => {
                indexes.iter_mut().for_each(|index| index.meet(position, &header));
                segment.take(position, &header, problems.is_empty());
                batch_line(position, &header, &problems, out)?;
                if out.detail.records && problems.is_empty() {
                    let batch = BatchView { header, bytes: walk.batch_bytes() };
                    let show = |shown: records::Shown| out.item(|| shown.text, || shown.json);
                    if let Err(why) = records::each(&batch, dialect, &mut scratch, show)? {
                        segment.damaged_at(position);
                        damage_line(position, None, &why, out)?;
                    }
                }
            }
            Found::Damage { position, until, why } => {
                segment.damaged_at(position);
                damage_line(position, Some((until, until == walk.len())), &why, out)?;
            }
            Found::Preallocated { position, bytes } => {
                segment.reserved_bytes = bytes;
                out.item(
                    || format!("    {bytes} zeros from {position} on: space that was reserved"),
                    || json!({ "type": "reserved", "position": position, "bytes": bytes }),
                )?;
            }
            Found::End => break,
        }
        out.advance(walk.position() - before);
    }
    for index in &mut indexes {
        index.finish();
        index_line(index, out)?;
    }
    segment.len = walk.len();
    Ok(Some(segment))
}

impl Segment {
    fn new(base: Offset, trusted: Option<Fill>) -> Segment {
        let (kept_bytes, kept_offset) = trusted.map_or((0, base.0), |fill| (fill.size, fill.next_offset.0));
        Segment { trusted, kept_bytes, kept_offset, ..Segment::default() }
    }

    fn damaged_at(&mut self, position: u64) {
        self.damaged += 1;
        self.broken |= position >= self.scan_from();
    }

    fn scan_from(&self) -> u64 {
        self.trusted.map_or(0, |fill| fill.size)
    }

    fn take(&mut self, position: u64, header: &BatchHeader, sound: bool) {
        self.batches += 1;
        self.records += u64::from(header.record_count.unsigned_abs());
        if !sound {
            self.damaged_at(position);
            return;
        }
        if !self.broken && position >= self.scan_from() {
            self.kept_bytes = position + header.size() as u64;
            self.kept_offset = header.next_offset().0;
        }
        let epoch = header.leader_epoch.0;
        if epoch >= 0 && self.epochs.last().is_none_or(|(last, _)| *last < epoch) {
            self.epochs.push((epoch, header.base_offset.0));
        }
    }
}

/// Why a dump ends early.
#[derive(Debug)]
pub enum Fail {
    /// The reader of our output went away, or it cannot be written.
    Out(io::Error),
    Sentence(String),
}

impl From<io::Error> for Fail {
    fn from(e: io::Error) -> Fail {
        Fail::Out(e)
    }
}

/// The file of the same segment with another extension.
pub fn sibling(path: &Path, kind: IndexKind) -> PathBuf {
    path.with_extension(kind.name())
}

fn read_indexes(path: &Path, base: Offset, out: &mut Out<'_>) -> Result<Vec<Index>, Fail> {
    let mut indexes = Vec::new();
    for kind in [IndexKind::Offset, IndexKind::Time] {
        match Index::read(&sibling(path, kind), kind, base) {
            Ok(index) => indexes.extend(index),
            Err(why) => out.damage(|| format!("    DAMAGE: {why}"), || json!({ "type": "damage", "why": why }))?,
        }
    }
    Ok(indexes)
}

fn flags(header: &BatchHeader) -> Vec<&'static str> {
    let all = [
        (header.is_transactional(), "transactional"),
        (header.is_control(), "control"),
        (header.is_log_append_time(), "log-append-time"),
        (header.has_delete_horizon(), "delete-horizon"),
    ];
    all.into_iter().filter_map(|(set, name)| set.then_some(name)).collect()
}

fn batch_line(position: u64, header: &BatchHeader, problems: &[String], out: &mut Out<'_>) -> io::Result<()> {
    if problems.is_empty() && out.detail.summary {
        return Ok(());
    }
    let codec = header.codec().map_or_else(|_| "unknown codec".to_owned(), |c| format!("{c:?}").to_lowercase());
    let crc_ok = !problems.iter().any(|p| p.contains("CRC"));
    let text = || batch_text(position, header, &codec, problems);
    let json = || {
        json!({
            "type": "batch", "position": position, "bytes": header.size(), "base_offset": header.base_offset.0,
            "last_offset": header.last_offset().0, "records": header.record_count, "leader_epoch": header.leader_epoch.0,
            "producer_id": header.producer_id.0, "producer_epoch": header.producer_epoch.0,
            "base_sequence": header.base_sequence, "last_sequence": header.last_sequence(), "codec": codec,
            "base_timestamp_ms": header.base_timestamp_ms, "max_timestamp_ms": header.max_timestamp_ms,
            "flags": flags(header), "crc": format!("{:08x}", header.crc), "crc_ok": crc_ok, "problems": problems,
        })
    };
    if problems.is_empty() { out.item(text, json) } else { out.damage(text, json) }
}

fn batch_text(position: u64, header: &BatchHeader, codec: &str, problems: &[String]) -> String {
    let producer = match header.has_producer() {
        true => format!(
            "  producer {}/{} sequences {}-{}",
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_sequence()
        ),
        false => String::new(),
    };
    let flags: String = flags(header).iter().map(|flag| format!("  {flag}")).collect();
    let verdict = match problems {
        [] => "crc ok".to_owned(),
        problems => format!("DAMAGE: {}", problems.join("; ")),
    };
    format!(
        "    offsets {}-{}  {} records  at {position}, {} bytes  epoch {}  {codec}  times {}-{}{producer}{flags}  {verdict}",
        header.base_offset,
        header.last_offset(),
        header.record_count,
        header.size(),
        header.leader_epoch,
        header.base_timestamp_ms,
        header.max_timestamp_ms
    )
}

/// `until` is where the walk goes on, and whether that is the end of the file.
fn damage_line(position: u64, until: Option<(u64, bool)>, why: &str, out: &mut Out<'_>) -> io::Result<()> {
    let goes_on = match until {
        None => String::new(),
        Some((until, true)) => format!("; nothing readable up to the end at {until}"),
        Some((until, false)) => format!("; goes on at {until}"),
    };
    out.damage(
        || format!("    DAMAGE at {position}: {why}{goes_on}"),
        || json!({ "type": "damage", "position": position, "why": why, "until": until.map(|(until, _)| until) }),
    )
}

fn index_line(index: &Index, out: &mut Out<'_>) -> io::Result<()> {
    let (name, count) = (index.kind.name(), index.entries.len());
    let json = || {
        json!({
            "type": "index", "kind": name, "entries": count, "problem_count": index.problem_count, "problems": index.problems,
        })
    };
    if index.problem_count == 0 {
        return out.item(|| format!("    {name}: {count} entries, all fit the log"), json);
    }
    let more = index.problem_count - index.problems.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    out.damage(|| format!("    {name}: {count} entries, DAMAGE: {}{more}", index.problems.join("; ")), json)
}
