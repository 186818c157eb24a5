//! The table of metrics. Names get `ringlog_` before them, counters `_total` behind; units are in the names. Counters are since
//! the process began. Every metric of a shard has the label `shard`; one that did not answer is missing everywhere but in
//! `shard_up`.
//!
//! | name | labels | what |
//! |---|---|---|
//! | `node_info` | node_id, cluster_id, version | 1 |
//! | `shard_up` | shard | 1, or 0 where the shard did not answer within 2 s |
//! | `scrape_duration_seconds` | | how long the shards took for this page |
//! | `connections_turned_away` | | closed at once: max.connections, or no descriptor left |
//! | `shard_stall_seconds` | | longest that the shard did not answer its pulse, of the last minute |
//! | `shard_hops` | | vectors of messages to other shards |
//! | `requests` | api | requests that were read |
//! | `requests_closed` | api | requests for which the connection was closed: malformed, or acks=0 and an error |
//! | `partition_errors` | api, error | partitions of Produce and Fetch answers with an error |
//! | `request_latency_seconds` | api | histogram, Produce and Fetch: from a request's last byte to its answer's; a Fetch waits for records |
//! | `received_bytes`, `sent_bytes` | | on clients' sockets |
//! | `fetched_bytes` | | bytes of batches in answers to Fetch |
//! | `appended_batches`, `appended_records`, `appended_bytes` | | what logs took, internal topics too |
//! | `connections` | | open now |
//! | `connections_accepted` | | since the start |
//! | `connections_refused` | | closed because of bytes that are not the protocol |
//! | `fetch_sessions` | | kept now |
//! | `commit_rounds`, `commit_written_bytes` | way | rounds and bytes of batches: direct (to segments), journal, destage (journal to segments) |
//! | `commit_first_bytes` | way | those of the bytes that were nowhere before: what is acknowledged by the journal, and what went past it |
//! | `sync_latency_seconds` | way | histogram of syncs, with the write where that is one operation; its count is how many |
//! | `unwritten_bytes` | | appended, not yet written: producers brake at 64 MiB |
//! | `device_writes`, `device_syncs`, `device_reads`, `device_stalls` | | of the data folders' drives; reads past the page cache; stalls where `ringlog.disk.expected.write.us` is set |
//! | `journal_files` | state | files of the ring: used, free |
//! | `journal_capacity_bytes`, `journal_fill_bytes` | | the ring, and what of it a start would read |
//! | `journal_debt_bytes` | | durable in the journal and not yet in segments |
//! | `journal_payload_bytes`, `journal_written_bytes` | | batches in rounds, and what was written for them |
//! | `journal_recycles` | | files that came free |
//! | `journal_destages` | | partitions asked to write their segments so that a file comes free |
//! | `journal_full`, `journal_full_seconds` | | times that the ring had no room, and for how long in all; partitions waited or went direct |
//! | `batch_cache_bytes`, `batch_cache_limit_bytes` | | memory of batches just written |
//! | `open_files` | | segment files open |
//! | `partitions` | state | led, open, unopened, failed, damaged, full; a partition may be in several |
//! | `damaged_ranges`, `torn_tails` | | found since the start |
//! | `scrubbed_bytes`, `scrub_passes` | | what the scrub read, how often it came around |
//! | `producers`, `producers_evicted` | | idempotent producers remembered, and forgotten for others |
//! | `groups`, `group_members`, `group_offsets` | | of coordinators that are loaded |
//! | `cleanings`, `cleaning_failures`, `cleaned_read_bytes`, `cleaned_written_bytes`, `cleaned_dropped_records` | | compaction |
//! | `folder_up` | folder | 0: it failed or is away, and its partitions with it |
//! | `folder_partitions` | folder | that live there, and are offline with it; where there are several folders |
//! | `folder_total_bytes`, `folder_free_bytes` | folder | its disk |
//! | `folder_reserve_bytes` | folder | held back: producers brake below it |
//! | `folder_quota_bytes`, `folder_used_bytes` | folder | where a quota is set |
//! | `folder_braked` | folder | 1 while less than the reserve is free, or the quota is used up |
//! | `folder_lost_partitions` | folder | partitions of which the journal lost acknowledged records |
//! | `partition_log_start_offset`, `partition_high_watermark`, `partition_log_end_offset`, `partition_log_bytes` | topic, partition | with `?partitions=1`: at most 2 000 open partitions |
//! | `partitions_left_out` | | open partitions beyond that |

use log::WayStats;
use model::ErrorCode;
use runtime::histogram::Latencies;
use server::metrics::{FolderFigures, PartitionRow, ShardFigures};

use super::text::{Scrape, seconds};

pub type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone, Copy, Debug)]
pub enum Value {
    Int(u64),
    Signed(i64),
    Seconds(f64),
}

/// Where a family's samples come from.
#[derive(Clone, Copy)]
pub enum Samples {
    /// One for each shard.
    One(fn(&ShardFigures) -> Value),
    /// Some for each shard, with labels of their own.
    Many(fn(&ShardFigures) -> Vec<(Labels, Value)>),
    Latencies(fn(&ShardFigures) -> Vec<(Labels, Latencies)>),
    Folders(fn(&FolderFigures) -> Option<Value>),
    Rows(fn(&PartitionRow) -> Value),
}

pub struct Family {
    pub kind: Kind,
    pub name: &'static str,
    pub help: &'static str,
    pub samples: Samples,
}

/// What is said of the node as a whole.
pub struct NodeFamily {
    pub kind: Kind,
    pub name: &'static str,
    pub help: &'static str,
    pub samples: fn(&Scrape) -> Vec<(Labels, Value)>,
}

const fn counter(name: &'static str, help: &'static str, value: fn(&ShardFigures) -> Value) -> Family {
    Family { kind: Kind::Counter, name, help, samples: Samples::One(value) }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&ShardFigures) -> Value) -> Family {
    Family { kind: Kind::Gauge, name, help, samples: Samples::One(value) }
}

const fn many(
    kind: Kind,
    name: &'static str,
    help: &'static str,
    samples: fn(&ShardFigures) -> Vec<(Labels, Value)>,
) -> Family {
    Family { kind, name, help, samples: Samples::Many(samples) }
}

const fn folder(name: &'static str, help: &'static str, value: fn(&FolderFigures) -> Option<Value>) -> Family {
    Family { kind: Kind::Gauge, name, help, samples: Samples::Folders(value) }
}

const fn row(name: &'static str, help: &'static str, value: fn(&PartitionRow) -> Value) -> Family {
    Family { kind: Kind::Gauge, name, help, samples: Samples::Rows(value) }
}

fn int(number: usize) -> Value {
    Value::Int(number as u64)
}

fn us(us: u64) -> Value {
    Value::Seconds(us as f64 / 1e6)
}

fn one(key: &'static str, value: impl ToString) -> Labels {
    vec![(key, value.to_string())]
}

fn errors(figures: &ShardFigures) -> Vec<(Labels, Value)> {
    let traffic = &figures.traffic;
    let labelled = |api: &str, code: ErrorCode, count| {
        (vec![("api", api.to_string()), ("error", kafka_name(code))], Value::Int(count))
    };
    let produce = traffic.produce_errors.iter().map(|(code, count)| labelled("Produce", *code, *count));
    let fetch = traffic.fetch_errors.iter().map(|(code, count)| labelled("Fetch", *code, *count));
    produce.chain(fetch).collect()
}

/// `NotLeaderOrFollower` is NOT_LEADER_OR_FOLLOWER.
pub fn kafka_name(code: ErrorCode) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

fn ways(figures: &ShardFigures) -> [(&'static str, WayStats); 3] {
    let log = &figures.log;
    let journal = &log.journal;
    let bytes = journal.payload_bytes;
    let rounds = WayStats { rounds: journal.rounds, written_bytes: bytes, first_bytes: bytes, syncs: journal.syncs };
    [("direct", log.direct), ("journal", rounds), ("destage", log.destage)]
}

fn is_braked(folder: &FolderFigures) -> bool {
    let limits = &folder.limits;
    folder.free_bytes.is_some_and(|free| free < limits.reserve_bytes)
        || limits.quota_bytes.is_some_and(|quota| limits.used_bytes >= quota)
}

pub const NODE: &[NodeFamily] = &[
    NodeFamily {
        kind: Kind::Gauge,
        name: "node_info",
        help: "Which node this is.",
        samples: |scrape| {
            let version = ("version", env!("CARGO_PKG_VERSION").to_string());
            let node_id = ("node_id", scrape.node_id.to_string());
            vec![(vec![node_id, ("cluster_id", scrape.cluster_id.clone()), version], Value::Int(1))]
        },
    },
    NodeFamily {
        kind: Kind::Gauge,
        name: "shard_up",
        help: "1, or 0 where the shard did not answer in time.",
        samples: |scrape| {
            let up = |(shard, figures): (usize, &Option<ShardFigures>)| {
                (one("shard", shard), Value::Int(u64::from(figures.is_some())))
            };
            scrape.shards.iter().enumerate().map(up).collect()
        },
    },
    NodeFamily {
        kind: Kind::Gauge,
        name: "scrape_duration_seconds",
        help: "How long the shards took for this page.",
        samples: |scrape| vec![(Labels::new(), Value::Seconds(scrape.took.as_micros() as f64 / 1e6))],
    },
    NodeFamily {
        kind: Kind::Counter,
        name: "connections_turned_away",
        help: "Connections closed at once: max.connections, or no descriptor left.",
        samples: |scrape| vec![(Labels::new(), Value::Int(scrape.turned_away))],
    },
    NodeFamily {
        kind: Kind::Gauge,
        name: "partitions_left_out",
        help: "Open partitions beyond those that have rows of their own; asked for with ?partitions=1.",
        samples: |scrape| {
            let left_out = scrape.shards.iter().flatten().map(|figures| figures.rows_left_out).sum();
            if scrape.query.partitions { vec![(Labels::new(), int(left_out))] } else { Vec::new() }
        },
    },
];

pub const FAMILIES: &[Family] = &[
    gauge("shard_stall_seconds", "Longest that the shard did not answer its pulse, of the last minute.", |f| {
        us(f.stall_us)
    }),
    counter("shard_hops", "Vectors of messages sent to other shards.", |f| Value::Int(f.hops)),
    many(Kind::Counter, "requests", "Requests that were read, by API.", |f| {
        f.traffic.apis.iter().map(|a| (one("api", format!("{:?}", a.api)), Value::Int(a.requests))).collect()
    }),
    many(Kind::Counter, "requests_closed", "Requests for which the connection was closed, by API.", |f| {
        f.traffic.apis.iter().map(|a| (one("api", format!("{:?}", a.api)), Value::Int(a.closed))).collect()
    }),
    many(Kind::Counter, "partition_errors", "Partitions of answers with an error, by API and error.", errors),
    Family {
        kind: Kind::Histogram,
        name: "request_latency_seconds",
        help: "From a request's last byte to its answer's; a Fetch waits for records.",
        samples: Samples::Latencies(|f| {
            vec![(one("api", "Produce"), f.traffic.produce), (one("api", "Fetch"), f.traffic.fetch)]
        }),
    },
    counter("received_bytes", "Bytes from clients' sockets.", |f| Value::Int(f.traffic.received_bytes)),
    counter("sent_bytes", "Bytes to clients' sockets.", |f| Value::Int(f.traffic.sent_bytes)),
    counter("fetched_bytes", "Bytes of batches in answers to Fetch.", |f| Value::Int(f.traffic.fetched_bytes)),
    counter("appended_batches", "Batches that logs took.", |f| Value::Int(f.log.appended.batches)),
    counter("appended_records", "Records that logs took.", |f| Value::Int(f.log.appended.records)),
    counter("appended_bytes", "Bytes of batches that logs took.", |f| Value::Int(f.log.appended.bytes)),
    gauge("connections", "Connections open.", |f| int(f.connections)),
    counter("connections_accepted", "Connections accepted.", |f| Value::Int(f.accepted)),
    counter("connections_refused", "Connections closed because of bytes that are not the protocol.", |f| {
        Value::Int(f.refused)
    }),
    gauge("fetch_sessions", "Fetch sessions kept.", |f| int(f.fetch_sessions)),
    many(Kind::Counter, "commit_rounds", "Commit rounds, by way.", |f| {
        ways(f).iter().map(|(way, stats)| (one("way", way), Value::Int(stats.rounds))).collect()
    }),
    many(Kind::Counter, "commit_written_bytes", "Bytes of batches written, by way.", |f| {
        ways(f).iter().map(|(way, stats)| (one("way", way), Value::Int(stats.written_bytes))).collect()
    }),
    many(Kind::Counter, "commit_first_bytes", "Bytes of batches that were on no drive before, by way.", |f| {
        ways(f).iter().map(|(way, stats)| (one("way", way), Value::Int(stats.first_bytes))).collect()
    }),
    Family {
        kind: Kind::Histogram,
        name: "sync_latency_seconds",
        help: "How long syncs of the drive took, by way.",
        samples: Samples::Latencies(|f| ways(f).iter().map(|(way, stats)| (one("way", way), stats.syncs)).collect()),
    },
    gauge("unwritten_bytes", "Appended and not yet written.", |f| Value::Int(f.log.unwritten_bytes)),
    counter("device_writes", "Writes to drives.", |f| Value::Int(f.log.device.writes)),
    counter("device_reads", "Reads of drives past the page cache.", |f| Value::Int(f.log.device.reads)),
    counter("device_syncs", "Syncs of drives.", |f| Value::Int(f.log.device.syncs)),
    counter("device_stalls", "Writes and syncs that took 20 times as long as expected.", |f| {
        Value::Int(f.log.device.stalls)
    }),
    many(Kind::Gauge, "journal_files", "Files of the journal's ring, by state.", |f| {
        let (all, used) = (f.log.journal.files, f.log.journal.files_in_use);
        vec![(one("state", "used"), int(used)), (one("state", "free"), int(all.saturating_sub(used)))]
    }),
    gauge("journal_capacity_bytes", "Bytes of the ring's files.", |f| Value::Int(f.log.journal.ring.capacity_bytes)),
    gauge("journal_fill_bytes", "Bytes of the ring that a start would read.", |f| {
        Value::Int(f.log.journal.ring.fill_bytes)
    }),
    gauge("journal_debt_bytes", "Durable in the journal and not yet in segments.", |f| {
        Value::Int(f.partitions.journal_debt_bytes)
    }),
    counter("journal_payload_bytes", "Bytes of batches in rounds.", |f| Value::Int(f.log.journal.payload_bytes)),
    counter("journal_written_bytes", "Bytes written for rounds.", |f| Value::Int(f.log.journal.written_bytes)),
    counter("journal_recycles", "Files of the ring that came free.", |f| Value::Int(f.log.journal.ring.recycles)),
    counter("journal_destages", "Partitions asked to write their segments so that a file comes free.", |f| {
        Value::Int(f.log.journal.destages)
    }),
    counter("journal_full", "Times that the ring had no room.", |f| Value::Int(f.log.journal.ring.full)),
    counter("journal_full_seconds", "How long the ring had no room.", |f| {
        Value::Seconds(seconds(f.log.journal.ring.full_ns))
    }),
    gauge("batch_cache_bytes", "Memory of batches just written.", |f| int(f.log.cached_bytes)),
    gauge("batch_cache_limit_bytes", "Most of that.", |f| int(f.log.cache_limit_bytes)),
    gauge("open_files", "Segment files open.", |f| int(f.log.open_files)),
    many(Kind::Gauge, "partitions", "Partitions, by state; one may be in several.", |f| {
        let p = &f.partitions;
        let states = [
            ("led", p.led),
            ("open", p.open),
            ("unopened", p.unopened),
            ("failed", p.failed),
            ("damaged", p.damaged),
            ("full", p.full),
        ];
        states.iter().map(|(state, count)| (one("state", state), int(*count))).collect()
    }),
    counter("damaged_ranges", "Damaged ranges found.", |f| Value::Int(f.log.damage.damaged_ranges)),
    counter("torn_tails", "Tails found that a crash had torn.", |f| Value::Int(f.log.damage.torn_tails)),
    counter("scrubbed_bytes", "Bytes that the scrub has read.", |f| Value::Int(f.log.damage.scrubbed_bytes)),
    counter("scrub_passes", "Times that the scrub came around.", |f| Value::Int(f.log.damage.scrub_passes)),
    gauge("producers", "Idempotent producers whose sequences are remembered.", |f| int(f.producers)),
    counter("producers_evicted", "Producers forgotten for others' sake.", |f| Value::Int(f.producers_evicted)),
    gauge("groups", "Consumer groups.", |f| int(f.groups.groups)),
    gauge("group_members", "Members of consumer groups.", |f| int(f.groups.members)),
    gauge("group_offsets", "Committed offsets.", |f| int(f.groups.offsets)),
    counter("cleanings", "Partitions compacted.", |f| Value::Int(f.cleaner.cleanings)),
    counter("cleaning_failures", "Compactions that failed.", |f| Value::Int(f.cleaner.failures)),
    counter("cleaned_read_bytes", "Bytes that compaction read.", |f| Value::Int(f.cleaner.read_bytes)),
    counter("cleaned_written_bytes", "Bytes that compaction wrote.", |f| Value::Int(f.cleaner.written_bytes)),
    counter("cleaned_dropped_records", "Records that compaction dropped.", |f| Value::Int(f.cleaner.dropped_records)),
    folder("folder_up", "1, or 0 where the data folder failed or is away.", |f| Some(int(usize::from(f.up)))),
    folder("folder_partitions", "Partitions that live in the data folder, where there are several.", |f| {
        f.partitions.map(int)
    }),
    folder("folder_total_bytes", "Space of the data folder's disk.", |f| f.total_bytes.map(Value::Int)),
    folder("folder_free_bytes", "Free space of the data folder's disk.", |f| f.free_bytes.map(Value::Int)),
    folder("folder_reserve_bytes", "Free space that clients' records may not take.", |f| {
        f.up.then_some(Value::Int(f.limits.reserve_bytes))
    }),
    folder("folder_quota_bytes", "What the data folder's files may take.", |f| f.limits.quota_bytes.map(Value::Int)),
    folder("folder_used_bytes", "What they take, where there is a quota.", |f| {
        f.limits.quota_bytes.map(|_| Value::Int(f.limits.used_bytes))
    }),
    folder("folder_braked", "1 while producers are asked to try again for want of space.", |f| {
        f.up.then(|| int(usize::from(is_braked(f))))
    }),
    folder("folder_lost_partitions", "Partitions of which the journal lost acknowledged records.", |f| {
        f.up.then(|| int(f.lost_partitions))
    }),
    row("partition_log_start_offset", "First offset of the log.", |r| Value::Signed(r.log_start_offset)),
    row("partition_high_watermark", "What consumers see ends here.", |r| Value::Signed(r.high_watermark)),
    row("partition_log_end_offset", "The offset of the next record.", |r| Value::Signed(r.log_end_offset)),
    row("partition_log_bytes", "Bytes of the log's segments.", |r| Value::Int(r.size_bytes)),
];
