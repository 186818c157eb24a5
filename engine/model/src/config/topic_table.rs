//! Every topic property of Kafka 4.4, and ours. Names, types, defaults and bounds are those of a running 4.4 broker.

use super::property::{Bounds, Kind, Property, Unit, topic};

const NO_RECOMPRESSION: &str = "batches are stored as the producer compressed them";
const NO_TIERING: &str = "tiered storage is not built";
const ONE_REPLICA: &str = "partitions have one replica until clusters are built";
const ALWAYS_SYNCED: &str =
    "appended bytes go to the device at once and syncs are shared by all that is pending, see ringlog.durability";

pub(super) const DURABILITY: &[&str] = &["fsync", "memory"];
pub(super) const VALIDATION: &[&str] = &["header", "records"];
pub(super) const COMPRESSION: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

// Sentences that topics and the broker share.
pub(super) const CLEANUP_DOC: &str = "What happens to old segments: delete them, compact them (the last record of each \
    key stays) or both; empty keeps everything.";
pub(super) const NO_OTHER_CODEC: &str =
    "the broker does not recompress yet, so set compression.type in the producer and leave it at producer here";
pub(super) const DURABILITY_DOC: &str = "When appended records count as durable: fsync after fdatasync, memory at the \
    append itself, as Kafka does by default.";
pub(super) const VALIDATION_DOC: &str = "How compressed batches are checked: header by their header and CRC, records \
    by inflating each one, as Kafka does.";

pub(super) const TOPIC: &[Property] = &[
    topic("cleanup.policy", Kind::List, CLEANUP_DOC)
        .default("delete")
        .one_of(&["compact", "delete"])
        .or(&["log.cleanup.policy"]),
    topic("compression.gzip.level", Kind::Int, "Level for gzip.")
        .default("-1")
        .bounds(Bounds::BetweenOrUnset(1, 9))
        .or(&["compression.gzip.level"])
        .inert(NO_RECOMPRESSION),
    topic("compression.lz4.level", Kind::Int, "Level for lz4.")
        .default("9")
        .between(1, 17)
        .or(&["compression.lz4.level"])
        .inert(NO_RECOMPRESSION),
    topic(
        "compression.type",
        Kind::String,
        "Codec of the stored batches; producer keeps each batch as its producer sent it.",
    )
    .default("producer")
    .one_of(COMPRESSION)
    .or(&["compression.type"])
    .refused(NO_OTHER_CODEC),
    topic("compression.zstd.level", Kind::Int, "Level for zstd.")
        .default("3")
        .between(-131_072, 22)
        .or(&["compression.zstd.level"])
        .inert(NO_RECOMPRESSION),
    topic("delete.retention.ms", Kind::Long, "How long a tombstone stays in a compacted topic.")
        .default("86400000")
        .unit(Unit::Ms)
        .at_least(0)
        .or(&["log.cleaner.delete.retention.ms"]),
    topic(
        "errors.deadletterqueue.group.enable",
        Kind::Bool,
        "Whether a share group may use the topic as its dead-letter queue.",
    )
    .default("false")
    .refused("share groups are not built"),
    topic("file.delete.delay.ms", Kind::Long, "Wait between taking a segment out of the log and unlinking its files.")
        .default("60000")
        .unit(Unit::Ms)
        .at_least(0)
        .or(&["log.segment.delete.delay.ms"]),
    topic("flush.messages", Kind::Long, "Records after which a sync would be forced.")
        .default("9223372036854775807")
        .unit(Unit::Messages)
        .at_least(1)
        .or(&["log.flush.interval.messages"])
        .inert(ALWAYS_SYNCED),
    topic("flush.ms", Kind::Long, "Time after which a sync would be forced.")
        .default("9223372036854775807")
        .unit(Unit::Ms)
        .at_least(0)
        .or(&["log.flush.interval.ms", "log.flush.scheduler.interval.ms"])
        .inert(ALWAYS_SYNCED),
    topic(
        "follower.replication.throttled.replicas",
        Kind::List,
        "Replicas whose fetching is throttled on the follower.",
    )
    .default("")
    .bounds(Bounds::Replicas)
    .inert(ONE_REPLICA),
    topic("index.interval.bytes", Kind::Int, "Log bytes between two entries of the offset index.")
        .default("4096")
        .unit(Unit::Bytes)
        .at_least(0)
        .or(&["log.index.interval.bytes"]),
    topic("leader.replication.throttled.replicas", Kind::List, "Replicas whose fetching is throttled on the leader.")
        .default("")
        .bounds(Bounds::Replicas)
        .inert(ONE_REPLICA),
    topic("local.retention.bytes", Kind::Long, "Bytes kept on local disk of a tiered topic; -2 means retention.bytes.")
        .default("-2")
        .unit(Unit::Bytes)
        .at_least(-2)
        .or(&["log.local.retention.bytes"])
        .inert(NO_TIERING),
    topic("local.retention.ms", Kind::Long, "Time kept on local disk of a tiered topic; -2 means retention.ms.")
        .default("-2")
        .unit(Unit::Ms)
        .at_least(-2)
        .or(&["log.local.retention.ms"])
        .inert(NO_TIERING),
    topic("max.compaction.lag.ms", Kind::Long, "Longest time a record may stay uncompacted.")
        .default("9223372036854775807")
        .unit(Unit::Ms)
        .at_least(1)
        .or(&["log.cleaner.max.compaction.lag.ms"]),
    topic(
        "max.decompressed.message.bytes",
        Kind::Int,
        "Bytes a compressed batch may inflate to where the broker looks inside it.",
    )
    .default("2147483639")
    .unit(Unit::Bytes)
    .between(1, 2_147_483_639)
    .or(&["max.decompressed.message.bytes"]),
    topic("max.message.bytes", Kind::Int, "Largest record batch the topic takes, after compression.")
        .default("1048588")
        .unit(Unit::Bytes)
        .at_least(0)
        .or(&["message.max.bytes"]),
    topic(
        "message.timestamp.after.max.ms",
        Kind::Long,
        "How far ahead of the broker's clock a record's timestamp may be.",
    )
    .default("3600000")
    .unit(Unit::Ms)
    .at_least(0)
    .or(&["log.message.timestamp.after.max.ms"]),
    topic(
        "message.timestamp.before.max.ms",
        Kind::Long,
        "How far behind the broker's clock a record's timestamp may be.",
    )
    .default("9223372036854775807")
    .unit(Unit::Ms)
    .at_least(0)
    .or(&["log.message.timestamp.before.max.ms"]),
    topic(
        "message.timestamp.type",
        Kind::String,
        "Whether timestamps are the producer's (CreateTime) or the broker's at the append (LogAppendTime).",
    )
    .default("CreateTime")
    .one_of(&["CreateTime", "LogAppendTime"])
    .or(&["log.message.timestamp.type"]),
    topic("min.cleanable.dirty.ratio", Kind::Double, "Share of uncompacted bytes from which a log is compacted.")
        .default("0.5")
        .bounds(Bounds::Reals(0.0, 1.0))
        .or(&["log.cleaner.min.cleanable.ratio"]),
    topic("min.compaction.lag.ms", Kind::Long, "Shortest time a record stays uncompacted.")
        .default("0")
        .unit(Unit::Ms)
        .at_least(0)
        .or(&["log.cleaner.min.compaction.lag.ms"]),
    topic(
        "min.insync.replicas",
        Kind::Int,
        "Replicas that must be in sync for acks=all; capped at the replication factor.",
    )
    .default("1")
    .at_least(1)
    .or(&["min.insync.replicas"]),
    topic("preallocate", Kind::Bool, "Whether a new segment's file is allocated whole.")
        .default("false")
        .or(&["log.preallocate"])
        .inert("tails are always preallocated ahead of the append"),
    topic("remote.copy.lag.bytes", Kind::Long, "Bytes a segment may stay uncopied to remote storage.")
        .default("-1")
        .unit(Unit::Bytes)
        .at_least(-1)
        .or(&["log.remote.copy.lag.bytes"])
        .inert(NO_TIERING),
    topic("remote.copy.lag.ms", Kind::Long, "Time a segment may stay uncopied to remote storage.")
        .default("0")
        .unit(Unit::Ms)
        .at_least(-1)
        .or(&["log.remote.copy.lag.ms"])
        .inert(NO_TIERING),
    topic("remote.log.copy.disable", Kind::Bool, "Stops copying a tiered topic's segments.")
        .default("false")
        .inert(NO_TIERING),
    topic("remote.log.delete.on.disable", Kind::Bool, "Deletes a topic's remote data when tiering is switched off.")
        .default("false")
        .inert(NO_TIERING),
    topic("remote.storage.enable", Kind::Bool, "Moves closed segments to remote storage.")
        .default("false")
        .refused(NO_TIERING),
    topic(
        "retention.bytes",
        Kind::Long,
        "Bytes of a partition above which its oldest segments are deleted; -1 is no limit.",
    )
    .default("-1")
    .unit(Unit::Bytes)
    .or(&["log.retention.bytes"]),
    topic("retention.ms", Kind::Long, "Age at which segments are deleted, by their largest timestamp; -1 is no limit.")
        .default("604800000")
        .unit(Unit::Ms)
        .at_least(-1)
        .or(&["log.retention.ms", "log.retention.minutes", "log.retention.hours"]),
    topic("segment.bytes", Kind::Int, "Size at which a segment is closed and a new one begins.")
        .default("1073741824")
        .unit(Unit::Bytes)
        .at_least(1_048_576)
        .or(&["log.segment.bytes"]),
    topic("segment.index.bytes", Kind::Int, "Largest size of a segment's index file; a full index closes the segment.")
        .default("10485760")
        .unit(Unit::Bytes)
        .at_least(4)
        .or(&["log.index.size.max.bytes"]),
    topic(
        "segment.jitter.ms",
        Kind::Long,
        "Largest time taken off segment.ms, so that partitions do not roll together.",
    )
    .default("0")
    .unit(Unit::Ms)
    .at_least(0)
    .or(&["log.roll.jitter.ms", "log.roll.jitter.hours"]),
    topic("segment.ms", Kind::Long, "Age at which a segment that holds records is closed.")
        .default("604800000")
        .unit(Unit::Ms)
        .at_least(1)
        .or(&["log.roll.ms", "log.roll.hours"]),
    topic(
        "unclean.leader.election.enable",
        Kind::Bool,
        "Whether a replica that is not in sync may lead when no other is left.",
    )
    .default("false")
    .or(&["unclean.leader.election.enable"])
    .inert(ONE_REPLICA),
    topic("ringlog.durability", Kind::String, DURABILITY_DOC)
        .default("fsync")
        .one_of(DURABILITY)
        .or(&["ringlog.durability"]),
    topic("ringlog.produce.validation", Kind::String, VALIDATION_DOC)
        .default("header")
        .one_of(VALIDATION)
        .or(&["ringlog.produce.validation"]),
];
