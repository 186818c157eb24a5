//! What compaction keeps, and that all ways to find a record still find it. Also what the other files of these tests use.

use std::collections::BTreeMap;

use model::compression::deflate;
use model::rebuild::delete_horizon_ms;
use model::{BatchHeader, Codec, ProducerEpoch, ProducerId};
use runtime::testing::{TempDir, run};

use super::*;

/// Offset, timestamp, key, value; text, to be seen in a failure.
pub(super) type Seen = (i64, i64, String, Option<String>);

/// A segment for about four small batches.
pub(super) fn compacted() -> LogConfig {
    LogConfig { segment_bytes: 400, compact: true, cleanup_delete: false, ..small() }
}

pub(super) fn one(time_ms: i64, key: &str, value: Option<&str>) -> Vec<u8> {
    BatchBuilder::new().record(time_ms, Some(key.as_bytes()), value.map(str::as_bytes)).finish()
}

/// A batch whose records are packed.
pub(super) fn packed(codec: Codec, records: &[(i64, &str, Option<&str>)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new().attributes(codec as i16);
    for (ms, key, value) in records {
        builder.push(*ms, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
    }
    let mut payload = Vec::new();
    deflate(codec, builder.payload(), &mut payload).unwrap();
    builder.finish_with_payload(&payload)
}

/// Everything before becomes closed segments.
pub(super) async fn roll(log: &PartitionLog) {
    log.roll_now(runtime::clock::wall_ms()).await.unwrap();
    // The recovery point follows the seal.
    log.settle().await.unwrap();
}

pub(super) async fn clean_at(log: &PartitionLog, now_ms: i64) -> Cleaned {
    let cleaned = log.clean(CleanLimits::default(), BTreeMap::new(), now_ms).await.unwrap().unwrap();
    // What is read from here on comes from the files.
    log.drop_tail();
    cleaned
}

pub(super) async fn clean(log: &PartitionLog) -> Cleaned {
    clean_at(log, runtime::clock::wall_ms()).await
}

fn records_of(bytes: &[u8]) -> (BatchHeader, Vec<Seen>) {
    let batch = BatchView::parse(bytes).unwrap();
    batch.check_crc().unwrap();
    let header = batch.header;
    let mut inflated = Vec::new();
    model::compression::inflate(header.codec().unwrap(), batch.payload(), 1 << 20, &mut inflated).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let records = model::batch::RecordIter::new(&inflated, header.record_count).map(|record| {
        let record = record.unwrap();
        let time_ms = match header.is_log_append_time() {
            true => header.max_timestamp_ms,
            false => header.base_timestamp_ms + record.timestamp_delta_ms,
        };
        let offset = header.base_offset.0 + i64::from(record.offset_delta);
        (offset, time_ms, record.key.map(text).unwrap_or_default(), record.value.map(text))
    });
    (header, records.collect())
}

/// All batches from an offset on, through reads of the given size.
pub(super) async fn batches(log: &PartitionLog, from: i64, max_bytes: usize) -> Vec<(BatchHeader, Vec<Seen>)> {
    let mut found = Vec::new();
    let mut at = Offset(from);
    while at < log.log_end_offset() {
        let read = log.read(at, ReadLimits { max_bytes, ..everything() }).await.unwrap();
        assert!(read.next_offset > at, "nothing at {at}");
        for slice in &read.slices {
            let bytes = slice.load().await.unwrap();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                found.push(records_of(rest));
                rest = &rest[found[found.len() - 1].0.size()..];
            }
        }
        at = read.next_offset;
    }
    assert!(found.is_sorted_by(|a, b| a.0.next_offset() <= b.0.base_offset), "batches are in order");
    found
}

pub(super) async fn records(log: &PartitionLog) -> Vec<Seen> {
    let all = batches(log, log.log_start_offset().0, 1 << 20).await;
    all.into_iter().flat_map(|(_, records)| records).collect()
}

pub(super) fn shown(records: &[Seen]) -> String {
    let one = |(offset, _, key, value): &Seen| format!("{offset}:{key}={}", value.as_deref().unwrap_or("-"));
    records.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_last_value_of_a_key_stays_at_its_offset_over_every_kind_of_start() {
    run(|| async {
        let temp = TempDir::new("log-compact-last");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for i in 0..40 {
            put(&log, &one(1000 + i, &format!("k{}", i % 3), Some(&format!("v{i}")))).await;
        }
        roll(&log).await;
        put(&log, &one(2000, "k0", Some("active"))).await;
        let before = log.size_bytes();
        let cleaned = clean(&log).await;
        assert_eq!((cleaned.cleaned_to, cleaned.kept_records, cleaned.dropped_records), (Offset(40), 3, 37));
        assert!(log.size_bytes() < before / 3, "{before} bytes became {}", log.size_bytes());
        let wanted = "37:k1=v37 38:k2=v38 39:k0=v39 40:k0=active";
        assert_eq!(shown(&records(&log).await), wanted);
        assert_eq!(log.size_bytes(), std::fs::read_dir(log.dir()).unwrap().map(sized).sum::<u64>());
        drop(log);
        node.stop().await;
        for clean_stop in [true, false, true] {
            let node = Node::start(temp.path()).await;
            let log = node.open("t", compacted()).await;
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset(0), Offset(41)));
            assert_eq!(shown(&records(&log).await), wanted);
            // Nothing is dirty.
            assert_eq!(log.cleanable(0).await.unwrap(), None);
            drop(log);
            if clean_stop { node.stop().await } else { node.crash().await }
        }
    });
}

/// Log bytes of a folder's entry; of the open segment those that were appended.
fn sized(entry: std::io::Result<std::fs::DirEntry>) -> u64 {
    let path = entry.unwrap().path();
    if path.extension().is_none_or(|e| e != "log") {
        return 0;
    }
    let bytes = std::fs::read(path).unwrap();
    let mut at = 0;
    while let Ok(batch) = BatchView::parse(&bytes[at..]) {
        at += batch.bytes.len();
    }
    at as u64
}

#[test]
fn a_fetch_at_a_missing_offset_gives_the_next_batch() {
    run(|| async {
        let temp = TempDir::new("log-compact-gaps");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { segment_bytes: 4096, index_interval_bytes: 0, ..compacted() }).await;
        for i in 0..60 {
            let key = if i % 10 == 7 { format!("once{i}") } else { "often".to_string() };
            put(&log, &one(i, &key, Some("v"))).await;
        }
        roll(&log).await;
        clean(&log).await;
        let kept: Vec<i64> = records(&log).await.iter().map(|r| r.0).collect();
        assert_eq!(kept, [7, 17, 27, 37, 47, 57, 59]);
        for round in 0..2 {
            for from in 0..60 {
                for max_bytes in [1, 100, 1 << 20] {
                    let found = batches(&log, from, max_bytes).await;
                    let offsets: Vec<i64> = found.iter().flat_map(|(_, r)| r.iter().map(|r| r.0)).collect();
                    let wanted: Vec<i64> = kept.iter().copied().filter(|o| *o >= from).collect();
                    assert_eq!(offsets, wanted, "from {from}, {max_bytes} bytes, round {round}");
                }
            }
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn times_are_found_among_what_is_left() {
    run(|| async {
        let temp = TempDir::new("log-compact-times");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        // The largest time is of a record that goes, but for the batch that ends the section.
        for i in 0..30 {
            let key = if i % 5 == 0 { format!("once{i}") } else { "often".to_string() };
            put(&log, &one(if i == 12 { 9000 } else { 1000 + i * 10 }, &key, Some("v"))).await;
        }
        roll(&log).await;
        clean(&log).await;
        let left = records(&log).await;
        let first = |ms: i64| left.iter().find(|r| r.1 >= ms).map(|r| (r.0, r.1));
        for ms in [0, 1000, 1001, 1050, 1051, 1099, 1250, 1251, 1290, 1291, 9000] {
            let hit = log.offset_for_time(ms, Offset(i64::MAX)).await.unwrap().map(|h| (h.offset.0, h.timestamp_ms));
            assert_eq!(hit, first(ms), "time {ms}");
        }
        let largest = log.max_timestamp_hit(Offset(i64::MAX)).await.unwrap().map(|h| (h.offset.0, h.timestamp_ms));
        assert_eq!(largest, Some((29, 1290)));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn the_batchs_time_counts_where_the_broker_stamped_it() {
    run(|| async {
        let temp = TempDir::new("log-compact-append-time");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for (at, keys) in [["a", "b", "c"], ["a", "b", "x"], ["a", "a", "a"]].iter().enumerate() {
            let mut builder = BatchBuilder::new();
            keys.iter().for_each(|key| builder.push(5, Some(key.as_bytes()), Some(b"v"), &[]));
            let patch = Patch::leader(EPOCH).with_timestamps(Timestamps::LogAppendTime(100 + at as i64));
            let appended = log.append(&builder.finish(), patch).unwrap();
            log.wait_durable(appended.next_offset).await.unwrap();
        }
        roll(&log).await;
        clean(&log).await;
        assert_eq!(shown(&records(&log).await), "2:c=v 4:b=v 5:x=v 8:a=v");
        for (ms, wanted) in [(0, (2, 100)), (101, (4, 101)), (102, (8, 102))] {
            let hit = log.offset_for_time(ms, Offset(i64::MAX)).await.unwrap().unwrap();
            assert_eq!((hit.offset.0, hit.timestamp_ms), wanted);
        }
        drop(log);
        node.stop().await;
    });
}

#[test]
fn tombstones_go_when_their_time_is_over_also_from_a_quiet_log() {
    run(|| async {
        let temp = TempDir::new("log-compact-tombstones");
        let config = LogConfig { delete_retention_ms: 1000, ..compacted() };
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        for (key, value) in [("a", Some("1")), ("b", Some("2")), ("a", None), ("c", Some("3"))] {
            put(&log, &one(500, key, value)).await;
        }
        roll(&log).await;
        clean_at(&log, 10_000).await;
        let with_times = records(&log).await;
        assert_eq!(shown(&with_times), "1:b=2 2:a=- 3:c=3");
        assert!(with_times.iter().all(|r| r.1 == 500), "times stay: {with_times:?}");
        let horizons: Vec<_> = batches(&log, 0, 1 << 20).await.iter().map(|(h, _)| delete_horizon_ms(h)).collect();
        assert_eq!(horizons, [None, Some(11_000), None]);
        drop(log);
        node.stop().await;
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!(log.cleanable(10_999).await.unwrap(), None);
        let due = log.cleanable(11_000).await.unwrap().unwrap();
        assert_eq!((due.is_due, due.dirty_bytes), (true, 0));
        let cleaned = clean_at(&log, 11_000).await;
        assert_eq!((cleaned.dropped_records, cleaned.cleaned_to), (1, Offset(4)));
        assert_eq!(shown(&records(&log).await), "1:b=2 3:c=3");
        assert_eq!(log.cleanable(i64::MAX).await.unwrap(), None);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_tombstone_that_ends_the_log_leaves_its_place() {
    run(|| async {
        let temp = TempDir::new("log-compact-last-place");
        let config = LogConfig { delete_retention_ms: 0, ..compacted() };
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        put(&log, &one(1, "a", Some("1"))).await;
        put(&log, &one(2, "a", None)).await;
        roll(&log).await;
        clean_at(&log, 10).await;
        clean_at(&log, 11).await;
        let left = batches(&log, 0, 1 << 20).await;
        assert_eq!(left.iter().map(|(h, r)| (h.base_offset.0, r.len())).collect::<Vec<_>>(), [(1, 0)]);
        assert_eq!(log.offset_for_time(0, Offset(i64::MAX)).await.unwrap(), None);
        assert_eq!(log.max_timestamp_hit(Offset(i64::MAX)).await.unwrap(), None);
        drop(log);
        node.crash().await;
        // Not even without a checkpoint does the log end earlier.
        for name in ["ringlog.checkpoint", "ringlog.checkpoint.0"] {
            let _ = std::fs::remove_file(temp.path().join(name));
        }
        let node = Node::start(temp.path()).await;
        let log = node.open("t", config).await;
        assert_eq!(log.log_end_offset(), Offset(2));
        drop(log);
        node.stop().await;
    });
}

#[test]
fn packed_batches_stay_in_their_codec() {
    run(|| async {
        let temp = TempDir::new("log-compact-codecs");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { segment_bytes: 1 << 20, ..compacted() }).await;
        let codecs = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd, Codec::None];
        for (at, codec) in codecs.into_iter().enumerate() {
            let own = format!("own{at}");
            put(&log, &packed(codec, &[(1, "same", Some("x")), (5, &own, Some("y")), (9, "gone", None)])).await;
        }
        let whole = put(&log, &packed(Codec::Zstd, &[(1, "w", Some("x")), (5, "z", Some("y"))])).await;
        let limits = ReadLimits { max_bytes: 1 << 20, ..everything() };
        let original = log.read(whole.base_offset, limits).await.unwrap().slices[0].load().await.unwrap();
        roll(&log).await;
        clean_at(&log, 100).await;
        let left = batches(&log, 0, 1 << 20).await;
        let codecs_left: Vec<Codec> = left.iter().map(|(header, _)| header.codec().unwrap()).collect();
        assert_eq!(codecs_left[..5], codecs);
        let seen = left.iter().flat_map(|(_, r)| r.clone()).collect::<Vec<_>>();
        assert_eq!(shown(&seen), "1:own0=y 4:own1=y 7:own2=y 10:own3=y 12:same=x 13:own4=y 14:gone=- 15:w=x 16:z=y");
        assert_eq!(seen.iter().map(|r| r.1).collect::<Vec<_>>(), [5, 5, 5, 5, 1, 5, 9, 1, 5]);
        // A batch that lost nothing is the same bytes.
        let copied = log.read(whole.base_offset, limits).await.unwrap().slices[0].load().await.unwrap();
        assert_eq!(copied, original);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn a_producers_last_batch_stays_if_only_empty() {
    run(|| async {
        let temp = TempDir::new("log-compact-producers");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", compacted()).await;
        for (producer, sequence) in [(5, 0), (6, 0), (5, 1), (6, 1)] {
            let builder = BatchBuilder::new().producer(ProducerId(producer), ProducerEpoch(0), sequence);
            put(&log, &builder.record(1, Some(b"k"), Some(b"v")).finish()).await;
        }
        put(&log, &one(1, "k", Some("last"))).await;
        roll(&log).await;
        // 6 is forgotten by now, so nothing of it has to stay.
        let producers = BTreeMap::from([(ProducerId(5), Offset(2))]);
        log.clean(CleanLimits::default(), producers, 10).await.unwrap().unwrap();
        log.drop_tail();
        let left = batches(&log, 0, 1 << 20).await;
        let seen: Vec<_> =
            left.iter().map(|(h, r)| (h.base_offset.0, h.producer_id.0, h.base_sequence, r.len())).collect();
        assert_eq!(seen, [(2, 5, 1, 0), (4, -1, -1, 1)]);
        let mut scan = log.scan_headers(Offset(0));
        assert_eq!(scan.next().await.unwrap().unwrap().last_sequence(), 1);
        assert_eq!(scan.next().await.unwrap().unwrap().base_offset, Offset(4));
        assert_eq!(scan.next().await.unwrap(), None);
        drop(log);
        node.stop().await;
    });
}

#[test]
fn records_without_a_key_from_older_days_go() {
    run(|| async {
        let temp = TempDir::new("log-compact-keyless");
        let node = Node::start(temp.path()).await;
        let log = node.open("t", LogConfig { compact: false, ..compacted() }).await;
        put(&log, &BatchBuilder::new().record(1, None, Some(b"v")).record(1, Some(b"k"), Some(b"v")).finish()).await;
        put(&log, &one(1, "l", Some("v"))).await;
        roll(&log).await;
        assert_eq!(log.cleanable(10).await.unwrap(), None);
        log.set_config(compacted());
        assert!(log.cleanable(10).await.unwrap().is_some());
        clean(&log).await;
        assert_eq!(shown(&records(&log).await), "1:k=v 2:l=v");
        drop(log);
        node.stop().await;
    });
}
