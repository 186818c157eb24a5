#![allow(clippy::unwrap_used)]
use log::Fill;
use log::format::checkpoint::{self, CheckpointEntry};
use model::builder::BatchBuilder;
use model::{LeaderEpoch, PartitionIndex, PartitionKey, ProducerEpoch, ProducerId, TopicId, batch};
use runtime::testing::TempDir;

use super::super::out::Detail;
use super::*;

fn batch(base: i64, count: i64, epoch: i32) -> Vec<u8> {
    let mut builder =
        BatchBuilder::new().base_offset(Offset(base)).producer(ProducerId(9), ProducerEpoch(1), base as i32);
    for i in 0..count {
        builder.push(1000 + base + i, Some(b"key"), Some(b"value of some length"), &[]);
    }
    let mut bytes = builder.finish();
    batch::patch_position(&mut bytes, Offset(base), LeaderEpoch(epoch));
    bytes
}

/// A partition with a closed segment 0-3 and an active one 4-5 with reserved space, as the broker leaves it.
struct Partition {
    _root: TempDir,
    dir: PathBuf,
    size: usize,
}

impl Partition {
    fn new() -> Partition {
        let root = TempDir::new("dump");
        let dir = root.path().join("orders-3");
        std::fs::create_dir(&dir).unwrap();
        let size = batch(0, 2, 0).len();
        let partition = Partition { _root: root, dir, size };
        partition.write("00000000000000000000.log", &[batch(0, 2, 0), batch(2, 2, 1)].concat());
        let entry = [3i32.to_be_bytes(), (size as i32).to_be_bytes()].concat();
        partition.write("00000000000000000000.index", &entry);
        let entry = [&1003i64.to_be_bytes()[..], &3i32.to_be_bytes()[..]].concat();
        partition.write("00000000000000000000.timeindex", &entry);
        let mut active = batch(4, 2, 1);
        active.resize(size + 4096, 0);
        partition.write("00000000000000000004.log", &active);
        partition.write("leader-epoch-checkpoint", b"0\n2\n0 0\n1 2\n");
        partition.write("partition.metadata", format!("version: 0\ntopic_id: {}\n", TopicId([7; 16])).as_bytes());
        partition
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.dir.join(name), bytes).unwrap();
    }

    fn flip(&self, name: &str, at: usize) {
        let mut bytes = std::fs::read(self.dir.join(name)).unwrap();
        bytes[at] ^= 1;
        self.write(name, &bytes);
    }

    /// The lines, and how many places are damaged.
    fn dump(&self, detail: Detail) -> (Vec<String>, u64) {
        let mut to = Vec::new();
        let mut out = Out::new(detail, &mut to, None);
        let points = RecoveryPoints::above(&self.dir).unwrap();
        let look = FolderLook { patience: 0, points: points.as_ref(), gaps: false };
        dump(&self.dir, &names(&self.dir).unwrap(), look, &mut out).unwrap();
        let damage = out.damage;
        (String::from_utf8(to).unwrap().lines().map(str::to_owned).collect(), damage)
    }
}

impl Partition {
    /// What the checkpoint says: everything up to `offset`, which is `batches` into segment `base`, was durable.
    fn entry(&self, base: i64, batches: usize, offset: i64) -> CheckpointEntry {
        let size = (batches * self.size) as u64;
        CheckpointEntry {
            key: PartitionKey { topic_id: TopicId([7; 16]), partition: PartitionIndex(3) },
            topic: "orders".into(),
            log_start_offset: Offset(0),
            segment_base: Offset(base),
            fill: Fill { size, next_offset: Offset(offset), ..Fill::empty(Offset(base)) },
            index_entries: 0,
            time_entries: 0,
            closed_count: 1,
            closed_bytes: 0,
            created_ms: 0,
            last_append_ms: 0,
            snapshot_at: None,
            epochs: None,
        }
    }

    /// In the data folder: the checkpoint of incarnation 5, or a part of it.
    fn checkpoint(&self, name: &str, entry: &CheckpointEntry) {
        let bytes = checkpoint::encode(5, std::iter::once(entry));
        std::fs::write(self.dir.parent().unwrap().join(name), bytes).unwrap();
    }

    fn active(&self, batches: i64) {
        let bytes: Vec<u8> = (0..batches).flat_map(|i| batch(4 + 2 * i, 2, 1)).collect();
        self.write("00000000000000000004.log", &bytes);
    }
}

fn verdict_of(lines: &[String]) -> &str {
    lines.last().unwrap().trim_start()
}

#[test]
fn a_sound_partition() {
    let partition = Partition::new();
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 0, "{lines:#?}");
    assert!(lines[0].starts_with("partition orders-3  topic id "), "{lines:#?}");
    let size = partition.size;
    let first = format!(
        "    offsets 0-1  2 records  at 0, {size} bytes  epoch 0  none  times 1000-1001  producer 9/1 sequences 0-1  crc ok"
    );
    assert_eq!(lines[2], first);
    assert!(lines.contains(&"    index: 1 entries, all fit the log".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"    timeindex: 1 entries, all fit the log".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"  leader epochs: 0 from 0, 1 from 2".to_owned()), "{lines:#?}");
    assert_eq!(
        verdict_of(&lines),
        format!(
            "verdict: offsets 0 to 6 kept, up to byte {size} of 00000000000000000004.log; 4096 reserved zeros behind it (3 batches, 6 records in 2 segments)"
        )
    );
}

#[test]
fn a_flipped_bit_in_the_active_segment_ends_what_is_kept() {
    let partition = Partition::new();
    partition.write("00000000000000000004.log", &[batch(4, 2, 1), batch(6, 2, 1), batch(8, 2, 1)].concat());
    partition.flip("00000000000000000004.log", partition.size + 90);
    let (lines, damage) = partition.dump(Detail { summary: true, ..Detail::default() });
    assert_eq!(damage, 1, "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("offsets 6-7") && l.contains("DAMAGE: the record batch is damaged")));
    let cut = 2 * partition.size;
    assert!(verdict_of(&lines).starts_with("verdict: offsets 0 to 6 kept"), "{lines:#?}");
    assert!(verdict_of(&lines).contains(&format!("; {cut} bytes behind it are cut off (")), "{lines:#?}");
}

#[test]
fn damage_in_a_closed_segment_stays_and_is_told() {
    let partition = Partition::new();
    partition.flip("00000000000000000000.log", 90);
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 1, "{lines:#?}");
    assert!(verdict_of(&lines).contains("offsets 0 to 6 kept"), "{lines:#?}");
    assert!(verdict_of(&lines).contains("1 damaged places in closed segments"), "{lines:#?}");
}

#[test]
fn a_cut_tail_is_cut() {
    let partition = Partition::new();
    let torn = batch(6, 2, 1);
    partition.write("00000000000000000004.log", &[batch(4, 2, 1), torn[..100].to_vec()].concat());
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 1, "{lines:#?}");
    assert!(verdict_of(&lines).contains("offsets 0 to 6 kept"), "{lines:#?}");
    assert!(verdict_of(&lines).contains("; 100 bytes behind it are cut off ("), "{lines:#?}");
}

#[test]
fn wrong_indexes_snapshots_and_epochs_are_damage() {
    let partition = Partition::new();
    partition.flip("00000000000000000000.index", 7);
    partition.write("00000000000000000004.snapshot", b"nonsense, and some more");
    partition.write("leader-epoch-checkpoint", b"0\n2\n1 0\n");
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 3, "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("no batch begins there")), "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("snapshot 00000000000000000004.snapshot  DAMAGE")), "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("counts 2 epochs and holds 1")), "{lines:#?}");
}

#[test]
fn snapshots_name_their_producers() {
    let partition = Partition::new();
    let table = replica::producers::ProducerTable::default();
    let header = model::BatchHeader::parse(&batch(4, 2, 1)).unwrap();
    table.remember(&header, Offset(4), 0);
    partition.write("00000000000000000006.snapshot", &replica::snapshot::encode(&table));
    partition.write("00000000000000000009.snapshot", &replica::snapshot::encode(&table));
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 0, "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("producer 9/1  last sequence 5 at offset 5")), "{lines:#?}");
    assert!(lines.iter().any(|l| l.contains("0009.snapshot  1 producers, beyond the log's end")), "{lines:#?}");
}

#[test]
fn json_is_one_object_a_line() {
    let partition = Partition::new();
    let (lines, _) = partition.dump(Detail { json: true, records: true, ..Detail::default() });
    let objects: Vec<serde_json::Value> = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let count = |kind: &str| objects.iter().filter(|o| o["type"] == kind).count();
    assert_eq!((count("partition"), count("segment"), count("batch"), count("record")), (1, 2, 3, 6));
    let verdict = objects.last().unwrap();
    assert_eq!((&verdict["type"], &verdict["log_end_offset"]), (&"verdict".into(), &6.into()));
    assert_eq!(objects.iter().find(|o| o["type"] == "batch").unwrap()["crc_ok"], true);
}

#[test]
fn a_dump_changes_nothing() {
    let partition = Partition::new();
    let before: Vec<Vec<u8>> =
        names(&partition.dir).unwrap().iter().map(|n| std::fs::read(partition.dir.join(n)).unwrap()).collect();
    partition.dump(Detail { records: true, ..Detail::default() });
    let after: Vec<Vec<u8>> =
        names(&partition.dir).unwrap().iter().map(|n| std::fs::read(partition.dir.join(n)).unwrap()).collect();
    assert_eq!(before, after);
}

#[test]
fn names_of_folders() {
    assert_eq!(
        (topic_of("my-topic-12"), topic_of("topic"), topic_of("t-1x"), topic_of("-1")),
        (Some("my-topic"), None, None, None)
    );
}

#[test]
fn the_verdict_names_the_recovery_point_that_a_start_scans_from() {
    let partition = Partition::new();
    partition.active(3);
    partition.checkpoint("ringlog.checkpoint", &partition.entry(4, 1, 6));
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 0, "{lines:#?}");
    let text = format!("; a start scans from byte {}, its recovery point at offset 6 (", partition.size);
    assert!(verdict_of(&lines).starts_with("verdict: offsets 0 to 10 kept"), "{lines:#?}");
    assert!(verdict_of(&lines).contains(&text), "{lines:#?}");
    // A writer's part is newer than the base.
    partition.checkpoint("ringlog.checkpoint.0", &partition.entry(4, 2, 8));
    let (lines, _) = partition.dump(Detail { json: true, ..Detail::default() });
    let verdict: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(verdict["recovery"]["scan_from_bytes"], 2 * partition.size, "{verdict:#}");
    assert_eq!(verdict["recovery"]["recovery_point_offset"], 8);
    assert_eq!(verdict["recovery"]["clean"], false);
}

#[test]
fn damage_before_the_recovery_point_cuts_nothing() {
    let partition = Partition::new();
    partition.active(3);
    partition.flip("00000000000000000004.log", 90);
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 1);
    assert!(verdict_of(&lines).starts_with("verdict: offsets 0 to 4 kept, up to byte 0 of"), "{lines:#?}");
    partition.checkpoint("ringlog.checkpoint", &partition.entry(4, 1, 6));
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 1);
    assert!(verdict_of(&lines).starts_with("verdict: offsets 0 to 10 kept"), "{lines:#?}");
    // Behind it, it does.
    partition.flip("00000000000000000004.log", partition.size + 90);
    let (lines, _) = partition.dump(Detail::default());
    assert!(verdict_of(&lines).starts_with("verdict: offsets 0 to 6 kept"), "{lines:#?}");
}

#[test]
fn less_than_the_checkpoint_vouches_for_is_damage() {
    let partition = Partition::new();
    partition.active(1);
    partition.checkpoint("ringlog.checkpoint", &partition.entry(4, 2, 8));
    let (lines, damage) = partition.dump(Detail::default());
    let (all, there) = (2 * partition.size, partition.size);
    let text = format!(
        "  DAMAGE: the checkpoint vouches for {all} bytes of 00000000000000000004.log, of which {there} are sound: a start \
         refuses that range and goes on behind it"
    );
    assert!(damage == 1 && lines.contains(&text), "{lines:#?}");
    partition.checkpoint("ringlog.checkpoint", &partition.entry(8, 1, 10));
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 1);
    assert!(lines.iter().any(|l| l.contains("00000000000000000008.log, which is missing")), "{lines:#?}");
    // Rolled, and nothing of the next segment was written yet: all is as it should be.
    partition.checkpoint("ringlog.checkpoint", &partition.entry(6, 0, 6));
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 0);
    assert!(verdict_of(&lines).contains("a start scans nothing, its recovery point is offset 6"), "{lines:#?}");
}

#[test]
fn a_checkpoint_counts_only_for_its_topic_and_vouched_for_it_is_all_a_start_reads() {
    let partition = Partition::new();
    partition.active(1);
    partition.checkpoint("ringlog.checkpoint", &partition.entry(4, 1, 6));
    let mark = partition.dir.parent().unwrap().join("ringlog.clean");
    for (incarnation, how) in [(5, "takes this from the checkpoint"), (6, "scans from")] {
        std::fs::write(&mark, log::format::clean_mark::encode(incarnation)).unwrap();
        let (lines, _) = partition.dump(Detail::default());
        assert!(verdict_of(&lines).contains(how), "{lines:#?}");
    }
    let mut other = partition.entry(4, 1, 6);
    other.key.topic_id = TopicId([8; 16]);
    partition.checkpoint("ringlog.checkpoint", &other);
    let (lines, damage) = partition.dump(Detail::default());
    assert_eq!(damage, 0);
    assert!(verdict_of(&lines).contains("a start scans all of the segment, it has no recovery point"), "{lines:#?}");
}

#[test]
fn indexes_that_the_recovery_point_counts_on_must_be_there() {
    let partition = Partition::new();
    partition.active(1);
    let entry = CheckpointEntry { index_entries: 1, ..partition.entry(4, 1, 6) };
    partition.checkpoint("ringlog.checkpoint", &entry);
    let (lines, _) = partition.dump(Detail::default());
    assert!(verdict_of(&lines).contains("recovery point at offset 6 is of no use there"), "{lines:#?}");
}
