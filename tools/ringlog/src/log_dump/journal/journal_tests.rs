#![allow(clippy::unwrap_used)]
use log::journal::format::{Action, Owner, encode_state};
use log::journal::replay::encode_lost;
use log::journal::testing::RingMaker;
use model::{PartitionIndex, TopicId};
use runtime::testing::TempDir;

use super::super::out::Detail;
use super::*;

const OWNER: Owner = Owner { incarnation: 0x2a, writer: 0 };
const FILE: usize = 64 << 10;

fn key(n: u8) -> PartitionKey {
    PartitionKey { topic_id: TopicId([n; 16]), partition: PartitionIndex(0) }
}

/// A data folder with a partition `orders-0` (key 1) and a journal of two files.
struct Folder {
    root: TempDir,
    ring: RingMaker,
}

impl std::ops::Deref for Folder {
    type Target = RingMaker;

    fn deref(&self) -> &RingMaker {
        &self.ring
    }
}

impl std::ops::DerefMut for Folder {
    fn deref_mut(&mut self) -> &mut RingMaker {
        &mut self.ring
    }
}

impl Folder {
    fn new() -> Folder {
        let root = TempDir::new("dump-journal");
        let partition = root.path().join("orders-0");
        std::fs::create_dir(&partition).unwrap();
        std::fs::create_dir(root.path().join(FOLDER)).unwrap();
        let metadata = format!("version: 0\ntopic_id: {}\n", key(1).topic_id);
        std::fs::write(partition.join(METADATA_FILE), metadata).unwrap();
        std::fs::write(partition.join("00000000000000000000.log"), b"").unwrap();
        let folder = Folder { root, ring: RingMaker::new(2, FILE) };
        folder.write("00000.state", &encode_state(OWNER, 2));
        folder
    }

    fn journal(&self) -> PathBuf {
        self.root.path().join(FOLDER)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.journal().join(name), bytes).unwrap();
    }

    /// Each entry writes to a partition's segment; one without bytes voids what is below it.
    fn round_of(&mut self, owner: Owner, durable_through: u64, entries: &[(u8, i64, &[u8])]) {
        let action = |segment_base, bytes: &[u8]| match bytes.len() {
            0 => Action::Void { below: segment_base },
            len => Action::Write { segment_base, position: 0, len: len as u32 },
        };
        let entries = entries.iter().map(|&(n, base, bytes)| (key(n), action(Offset(base), bytes), bytes));
        self.ring.round(owner, durable_through, entries.collect());
    }

    fn round(&mut self, durable_through: u64, entries: &[(u8, i64, &[u8])]) {
        self.round_of(OWNER, durable_through, entries);
    }

    /// The lines of the whole journal, and how many places are damaged.
    fn dump(&self, detail: Detail) -> (Vec<String>, u64) {
        self.dump_path(FOLDER, detail)
    }

    fn dump_path(&self, path: &str, detail: Detail) -> (Vec<String>, u64) {
        for (slot, bytes) in self.files.iter().enumerate() {
            self.write(&format!("00000.{slot:05}.ring"), bytes);
        }
        let mut to = Vec::new();
        let mut out = Out::new(detail, &mut to, None);
        let path = self.root.path().join(path);
        if path.is_dir() {
            dump_folder(&path, true, &mut out).unwrap()
        } else {
            dump_file(&path, &mut out).unwrap()
        }
        let damage = out.damage;
        (String::from_utf8(to).unwrap().lines().map(str::to_owned).collect(), damage)
    }
}

/// A first round that a later one voids, one of a deleted topic, one of a segment that is gone, the newest.
fn filled() -> Folder {
    let mut folder = Folder::new();
    folder.round(0, &[(1, 0, b"early")]);
    folder.round(1, &[(1, 1, b""), (9, 0, b"gone")]);
    folder.round(2, &[(1, 7, b"retained away")]);
    folder.at = (1, 0);
    folder.round(3, &[(1, 0, b"newest")]);
    folder
}

#[track_caller]
fn has(lines: &[String], parts: &[&str]) {
    let found = lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(found, "no line has {parts:?}:\n{}", lines.join("\n"));
}

#[test]
fn rounds_are_told_with_what_becomes_of_them() {
    let folder = filled();
    let (lines, damage) = folder.dump(Detail::default());
    assert_eq!(damage, 0, "{lines:#?}");
    has(&lines, &["journal of shard 0: 2 files, 2 files in use by the start 000000000000002a"]);
    has(
        &lines,
        &["round 1 at byte 0 of 00000.00000.ring: 4096 bytes, 1 entries with 5 bytes, synced through 0", ": applied"],
    );
    has(&lines, &["orders-0  segment 0 byte 0, 5 bytes: not applied, round 2 voids it"]);
    has(&lines, &["orders-0  void: nothing before it of segments below 1"]);
    has(&lines, &["4 bytes: not applied, no such partition here"]);
    has(&lines, &["13 bytes: not applied, its segment is gone"]);
    has(&lines, &["round 4 at byte 0 of 00000.00001.ring"]);
    let last = lines.last().unwrap();
    assert_eq!(last, "  4 rounds (rounds 1 to 4 count); a start applies 1 entries, 6 bytes of 1 partitions");
}

#[test]
fn scripts_get_the_same() {
    let (lines, _) = filled().dump(Detail { json: true, ..Detail::default() });
    let items: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rounds: Vec<_> = items.iter().filter(|item| item["type"] == "journal_round").collect();
    assert_eq!(rounds.len(), 4);
    assert_eq!((&rounds[3]["sequence"], &rounds[3]["fate"]), (&json!(4), &json!("applied")));
    assert_eq!(rounds[0]["entries"][0]["why_not"], "round 2 voids it");
    let summary = items.last().unwrap();
    assert_eq!((&summary["applied_bytes"], &summary["durable_through"]), (&json!(6), &json!(3)));
}

#[test]
fn a_summary_has_no_line_for_sound_rounds() {
    let mut folder = filled();
    let (lines, _) = folder.dump(Detail { summary: true, ..Detail::default() });
    assert_eq!(lines.len(), 2, "{lines:#?}");
    folder.flip(3, 64 + 48);
    let (lines, damage) = folder.dump(Detail { summary: true, ..Detail::default() });
    has(&lines, &["round 4", "torn: the write that was under way"]);
    assert_eq!((damage, lines.len()), (0, 3));
}

#[test]
fn damage_is_told_and_the_rest_too() {
    let mut folder = filled();
    folder.flip(0, 64 + 48);
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["round 1", "DAMAGED although it was synced"]);
    has(&lines, &["DAMAGE: orders-0", "(round 1)"]);
    has(&lines, &["not applied, round 1, which is damaged, held what comes before"]);
    assert_eq!(damage, 1);
    let mut folder = filled();
    folder.flip(1, 70);
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["round 2, by its first bytes, at byte 4096", "cannot be read"]);
    has(&lines, &["DAMAGE: round 2 was synced and cannot be read", "move 00000.state away"]);
    has(&lines, &["round 1", "not applied: a start refuses"]);
    has(&lines, &["round 4", "behind the end"]);
    has(&lines, &["a start applies 0 entries"]);
    assert_eq!(damage, 1);
}

#[test]
fn rounds_of_another_start_and_of_older_laps_do_not_count() {
    let mut folder = filled();
    folder.round_of(Owner { incarnation: 7, writer: 0 }, 99, &[(1, 0, b"stale")]);
    let (lines, _) = folder.dump(Detail::default());
    has(&lines, &["round 5", "of another start"]);
    assert!(lines.last().unwrap().ends_with("; 1 of another start"), "{lines:#?}");
    // In a data folder's dump there is no line for it.
    let mut to = Vec::new();
    let mut out = Out::new(Detail::default(), &mut to, None);
    dump_folder(&folder.journal(), false, &mut out).unwrap();
    assert!(!String::from_utf8(to).unwrap().contains("round 5"));
}

#[test]
fn without_a_state_no_round_counts_and_a_damaged_one_is_told() {
    let folder = filled();
    std::fs::remove_file(folder.journal().join("00000.state")).unwrap();
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["no state: no round counts"]);
    has(&lines, &["round 4", "not applied: there is no usable state"]);
    has(&lines, &["a start applies 0 entries"]);
    assert_eq!(damage, 0);
    folder.write("00000.state", b"rubbish");
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["DAMAGE: 00000.state: it is not the state of a journal: a start refuses"]);
    has(&lines, &["round 4"]);
    assert_eq!(damage, 1);
    folder.write("00000.state", &encode_state(OWNER, 3));
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["DAMAGE: 00000.00002.ring is missing"]);
    has(&lines, &["round 4", "not applied: a start refuses"]);
    assert_eq!(damage, 1);
}

#[test]
fn one_file_is_judged_with_the_others_and_printed_alone() {
    let folder = filled();
    let (lines, _) = folder.dump_path("ringlog.journal/00000.00001.ring", Detail::default());
    assert!(lines.iter().all(|line| !line.contains("round 1 ")), "{lines:#?}");
    has(&lines, &["round 4 at byte 0 of 00000.00001.ring", "applied"]);
    has(&lines, &["1 rounds in this file (rounds 1 to 4 count)"]);
    let (lines, _) = folder.dump_path("ringlog.journal/00000.state", Detail::default());
    has(&lines, &["4 rounds (rounds 1 to 4 count)"]);
}

#[test]
fn what_earlier_starts_lost_is_told() {
    let folder = filled();
    folder.write(LOST, &encode_lost(&BTreeMap::from([(key(1), 12)])));
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["DAMAGE: orders-0: an earlier start found it", "(round 12)"]);
    folder.write(LOST, b"?");
    let (lines, second) = folder.dump(Detail::default());
    has(&lines, &["DAMAGE: lost: it is damaged"]);
    assert_eq!((damage, second), (1, 1));
}

#[test]
fn a_cut_file_and_a_round_larger_than_a_look_are_read() {
    let mut folder = filled();
    let large = vec![7; 40_000];
    folder.round(4, &[(1, 0, &large)]);
    let (lines, _) = folder.dump(Detail::default());
    has(&lines, &["round 5 at byte 4096", "entries with 40000 bytes", ": applied"]);
    folder.files[1].truncate(20_000);
    let (lines, damage) = folder.dump(Detail::default());
    has(&lines, &["round 5", "torn"]);
    assert_eq!(damage, 0);
}

#[test]
fn nothing_is_changed_by_looking() {
    let folder = filled();
    let _ = folder.dump(Detail::default());
    let listing = |dir: &Path| {
        let mut found: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name(), entry.metadata().unwrap().modified().unwrap())
            })
            .collect();
        found.sort();
        found
    };
    let before = listing(&folder.journal());
    let mut to = Vec::new();
    dump_folder(&folder.journal(), true, &mut Out::new(Detail::default(), &mut to, None)).unwrap();
    assert_eq!(listing(&folder.journal()), before);
}

#[test]
fn names_of_its_files_are_known() {
    assert_eq!(parse_name("00003.00012.ring"), Some((3, Some(12))));
    assert_eq!(parse_name("00003.state"), Some((3, None)));
    for other in ["lost", "00003.ring", "a.b.ring", "00000000000000000000.log", "70000.state"] {
        assert_eq!(parse_name(other), None, "{other}");
    }
}
