//! Record batches of every codec and kind, compressed sections, properties files.

use model::batch::patch_position;
use model::builder::BatchBuilder;
use model::compression::deflate;
use model::config::{self, Bounds, Kind, Property, Scope};
use model::{Codec, LeaderEpoch, Offset, ProducerEpoch, ProducerId};

/// The wall clock of the target that validates: its window of allowed timestamps lies around this.
const TIMESTAMP_MS: i64 = 1_700_000_000_000;

/// In the order of the target's first byte.
const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

/// Bytes of magic, versions and the first block's length in Java's framing of snappy; a raw block follows.
const XERIAL_FRONT: usize = 20;

const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// `count` records with keys; every third has headers, every fourth no value.
fn records(count: i64) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    for i in 0..count {
        let (key, value) = (format!("key-{i}"), format!("value {i} ").repeat(1 + i as usize % 5));
        let headers: &[(&[u8], Option<&[u8]>)] =
            if i % 3 == 0 { &[(b"trace", Some(b"0af7")), (b"empty", Some(b"")), (b"null", None)] } else { &[] };
        batch.push(TIMESTAMP_MS + i, Some(key.as_bytes()), (i % 4 != 3).then_some(value.as_bytes()), headers);
    }
    batch
}

fn compressed(batch: BatchBuilder, codec: Codec) -> Vec<u8> {
    let mut payload = Vec::new();
    deflate(codec, batch.payload(), &mut payload).expect("small records compress");
    batch.attributes(codec as i16).finish_with_payload(&payload)
}

pub fn batches() -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = [1, 3, 40].map(|count| records(count).finish()).into();
    inputs.extend(CODECS.iter().flat_map(|&codec| [2, 40].map(|count| compressed(records(count), codec))));
    let producer = |sequence| records(4).producer(ProducerId(4711), ProducerEpoch(2), sequence);
    inputs.extend([producer(0).finish(), producer(i32::MAX - 1).finish()]);
    for attributes in [LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON] {
        inputs.push(producer(7).attributes(attributes).finish());
    }
    inputs.push(BatchBuilder::new().record(-1, None, None).record(TIMESTAMP_MS, Some(b""), Some(b"")).finish());
    inputs
}

/// Batches behind each other as a segment holds them, with rising offsets and epochs.
pub fn segment(count: usize) -> Vec<u8> {
    let (mut next, mut segment) = (0, Vec::new());
    for (i, mut batch) in batches().into_iter().cycle().take(count).enumerate() {
        patch_position(&mut batch, Offset(next), LeaderEpoch(i as i32 / 3));
        let records = i32::from_be_bytes([batch[57], batch[58], batch[59], batch[60]]);
        // Compaction leaves gaps.
        next += i64::from(records) + i64::from(i % 5 == 4);
        segment.extend(batch);
    }
    segment
}

pub fn compressed_sections() -> Vec<Vec<u8>> {
    let sections = [Vec::new(), b"a".to_vec(), records(60).payload().to_vec(), vec![0; 3 << 20], mixed(100_000)];
    let mut inputs = Vec::new();
    for (index, codec) in CODECS.into_iter().enumerate() {
        for section in &sections {
            let mut out = Vec::new();
            deflate(codec, section, &mut out).expect("memory suffices");
            inputs.push([&[index as u8], &out[..]].concat());
            // Two streams behind each other are one for most codecs.
            inputs.push([&[index as u8], &out[..], &out[..]].concat());
            if codec == Codec::Snappy && section.len() < (1 << 15) && !section.is_empty() {
                inputs.push([&[index as u8], &out[XERIAL_FRONT..]].concat());
            }
        }
    }
    inputs
}

/// Bytes that compress a little, so that every kind of element occurs.
fn mixed(len: u32) -> Vec<u8> {
    (0..len).map(|i| if i % 97 < 40 { (i / 97) as u8 } else { (i.wrapping_mul(2_654_435_761) >> 24) as u8 }).collect()
}

pub fn properties() -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = config::all().map(|property| line(property).into_bytes()).collect();
    inputs.push(whole_file().into_bytes());
    inputs.push(SMALL_FILE.as_bytes().to_vec());
    inputs
}

/// Comments, continued lines, escapes, both separators.
const SMALL_FILE: &str = "# a broker\n! another comment\n\nnode.id=7\nlisteners = PLAINTEXT://127.0.0.1:9092,\\\n    \
    INTERNAL://[::1]:9093\nadvertised.listeners: PLAINTEXT://broker.example:9092,INTERNAL://broker.example:9093\n\
    listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT\nlog.dirs=/tmp/a\\tb\\n\\\\c\n\
    log.retention.hours=168\nlog.retention.ms=-1\ncompression.type=zstd\nlog.cleanup.policy=compact,delete\n\
    min.insync.replicas=2\nnum.partitions=3\nunknown.property=1\n";

/// Every broker property at its default.
pub fn whole_file() -> String {
    config::all().filter(|p| p.scope == Scope::Broker && p.default.is_some()).map(line).collect()
}

fn line(property: &Property) -> String {
    format!("{}={}\n", property.name, property.default.unwrap_or_else(|| example(property)))
}

fn example(property: &Property) -> &'static str {
    match (property.bounds, property.kind) {
        (Bounds::OneOf(words), _) => words.first().copied().unwrap_or(""),
        (_, Kind::Bool) => "true",
        (_, Kind::Double) => "0.5",
        (_, Kind::Int | Kind::Long | Kind::Short) => "1000",
        _ => "a,b",
    }
}
