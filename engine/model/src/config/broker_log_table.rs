//! Broker properties about logs and topics: what a topic gets when it says nothing itself.

use super::property::{Bounds, Kind, Property, Unit, broker};
use super::topic_table::{
    CLEANUP_DOC, COMPRESSION, DURABILITY, DURABILITY_DOC, NO_OTHER_CODEC, VALIDATION, VALIDATION_DOC,
};

const NO_RECOMPRESSION: &str = "batches are stored as the producer compressed them";
const NO_TIERING: &str = "tiered storage is not built";
const OWN_CHECKPOINTS: &str = "recovery points follow the bytes written and each roll, not a timer";
const ALWAYS_SYNCED: &str =
    "appended bytes go to the device at once and syncs are shared by all that is pending, see ringlog.durability";

/// Where logs lie, how they roll and how long they are kept.
pub(super) const LOG: &[Property] = &[
    broker("log.dir", Kind::List, "Data folders, when log.dirs is not set.").default("ringlog-data"),
    broker("log.dirs", Kind::List, "Data folders; new partitions go where most space is free.").or(&["log.dir"]),
    broker("metadata.log.dir", Kind::String, "Folder of the metadata log; the first of log.dirs when it is not set."),
    broker("cordoned.log.dirs", Kind::List, "Data folders that take no new partitions, * is all of them.")
        .default("")
        .per_broker(),
    broker(
        "ringlog.log.dir.quota.bytes",
        Kind::Long,
        "Bytes that the files of each data folder may take, -1 is no limit: producers are asked to try again before it is \
         passed, and commits, deletes and retention go on.",
    )
    .default("-1")
    .unit(Unit::Bytes)
    .at_least(-1)
    .cluster_wide(),
    broker("log.segment.bytes", Kind::Int, "Size at which a segment is closed and a new one begins.")
        .default("1073741824")
        .unit(Unit::Bytes)
        .at_least(1_048_576)
        .cluster_wide(),
    broker("log.roll.ms", Kind::Long, "Age at which a segment that holds records is closed; before log.roll.hours.")
        .unit(Unit::Ms)
        .at_least(1)
        .cluster_wide()
        .or(&["log.roll.hours"]),
    broker("log.roll.hours", Kind::Int, "Age at which a segment that holds records is closed.")
        .default("168")
        .unit(Unit::Hours)
        .at_least(1),
    broker("log.roll.jitter.ms", Kind::Long, "Largest time taken off log.roll.ms; before log.roll.jitter.hours.")
        .unit(Unit::Ms)
        .at_least(0)
        .cluster_wide()
        .or(&["log.roll.jitter.hours"]),
    broker("log.roll.jitter.hours", Kind::Int, "Largest time taken off log.roll.hours.")
        .default("0")
        .unit(Unit::Hours)
        .at_least(0),
    broker(
        "log.retention.ms",
        Kind::Long,
        "Age at which segments are deleted, -1 is no limit; before minutes and hours.",
    )
    .unit(Unit::Ms)
    .at_least(-1)
    .cluster_wide()
    .or(&["log.retention.minutes", "log.retention.hours"]),
    broker("log.retention.minutes", Kind::Int, "Age at which segments are deleted; before hours.")
        .unit(Unit::Minutes)
        .at_least(-1)
        .or(&["log.retention.hours"]),
    broker("log.retention.hours", Kind::Int, "Age at which segments are deleted, -1 is no limit.")
        .default("168")
        .unit(Unit::Hours)
        .at_least(-1),
    broker(
        "log.retention.bytes",
        Kind::Long,
        "Bytes of a partition above which its oldest segments are deleted; -1 is no limit.",
    )
    .default("-1")
    .unit(Unit::Bytes)
    .cluster_wide(),
    broker("log.retention.check.interval.ms", Kind::Long, "Time between two looks for segments to delete.")
        .default("300000")
        .unit(Unit::Ms)
        .at_least(1),
    broker("log.index.interval.bytes", Kind::Int, "Log bytes between two entries of the offset index.")
        .default("4096")
        .unit(Unit::Bytes)
        .at_least(0)
        .cluster_wide(),
    broker(
        "log.index.size.max.bytes",
        Kind::Int,
        "Largest size of a segment's index file; a full index closes the segment.",
    )
    .default("10485760")
    .unit(Unit::Bytes)
    .at_least(4)
    .cluster_wide(),
    broker("log.cleanup.policy", Kind::List, CLEANUP_DOC)
        .default("delete")
        .one_of(&["compact", "delete"])
        .cluster_wide(),
    broker(
        "log.segment.delete.delay.ms",
        Kind::Long,
        "Wait between taking a segment out of the log and unlinking its files.",
    )
    .default("60000")
    .unit(Unit::Ms)
    .at_least(0)
    .cluster_wide(),
    broker(
        "log.message.timestamp.type",
        Kind::String,
        "Whether timestamps are the producer's or the broker's at the append.",
    )
    .default("CreateTime")
    .one_of(&["CreateTime", "LogAppendTime"])
    .cluster_wide(),
    broker(
        "log.message.timestamp.before.max.ms",
        Kind::Long,
        "How far behind the broker's clock a record's timestamp may be.",
    )
    .default("9223372036854775807")
    .unit(Unit::Ms)
    .at_least(0)
    .cluster_wide(),
    broker(
        "log.message.timestamp.after.max.ms",
        Kind::Long,
        "How far ahead of the broker's clock a record's timestamp may be.",
    )
    .default("3600000")
    .unit(Unit::Ms)
    .at_least(0)
    .cluster_wide(),
    broker(
        "ringlog.scrub.interval.ms",
        Kind::Long,
        "Time in which all closed segments are read once, slowly, to find damage that nobody reads; 0 is never.",
    )
    .default("604800000")
    .unit(Unit::Ms)
    .at_least(0)
    .cluster_wide(),
    broker(
        "ringlog.scrub.max.bytes.per.second",
        Kind::Long,
        "Bytes a second, per shard, that this reading does not exceed even if it takes longer then.",
    )
    .default("16777216")
    .unit(Unit::Bytes)
    .at_least(1)
    .cluster_wide(),
    broker("ringlog.durability", Kind::String, DURABILITY_DOC).default("fsync").one_of(DURABILITY).cluster_wide(),
    broker("ringlog.produce.validation", Kind::String, VALIDATION_DOC)
        .default("header")
        .one_of(VALIDATION)
        .cluster_wide(),
];

/// Topics: their making, their limits.
pub(super) const TOPICS: &[Property] = &[
    broker("num.partitions", Kind::Int, "Partitions of a topic that is made without a count.").default("1").at_least(1),
    broker("default.replication.factor", Kind::Int, "Replicas of a topic that is made without a factor.")
        .default("1")
        .at_least(1),
    broker("auto.create.topics.enable", Kind::Bool, "Whether asking for an unknown topic makes it.").default("true"),
    broker("delete.topic.enable", Kind::Bool, "Whether topics may be deleted.").default("true"),
    broker(
        "min.insync.replicas",
        Kind::Int,
        "Replicas that must be in sync for acks=all; capped at the replication factor.",
    )
    .default("1")
    .at_least(1)
    .cluster_wide(),
    broker("message.max.bytes", Kind::Int, "Largest record batch, after compression.")
        .default("1048588")
        .unit(Unit::Bytes)
        .at_least(0)
        .cluster_wide(),
    broker(
        "max.decompressed.message.bytes",
        Kind::Int,
        "Bytes a compressed batch may inflate to where the broker looks inside it.",
    )
    .default("2147483639")
    .unit(Unit::Bytes)
    .between(1, 2_147_483_639)
    .cluster_wide(),
    broker(
        "max.request.partition.size.limit",
        Kind::Int,
        "Partitions that one DescribeTopicPartitions answer may list.",
    )
    .default("2000")
    .at_least(1),
    broker(
        "compression.type",
        Kind::String,
        "Codec of the stored batches; producer keeps each batch as its producer sent it.",
    )
    .default("producer")
    .one_of(COMPRESSION)
    .cluster_wide()
    .refused(NO_OTHER_CODEC),
    broker(
        "unclean.leader.election.enable",
        Kind::Bool,
        "Whether a replica that is not in sync may lead when no other is left.",
    )
    .default("false")
    .cluster_wide()
    .inert("partitions have one replica until clusters are built"),
];

/// Known, and without effect here.
pub(super) const LOG_INERT: &[Property] = &[
    broker("log.flush.interval.messages", Kind::Long, "Records after which a sync would be forced.")
        .default("9223372036854775807")
        .unit(Unit::Messages)
        .at_least(1)
        .cluster_wide()
        .inert(ALWAYS_SYNCED),
    broker("log.flush.interval.ms", Kind::Long, "Time after which a sync would be forced.")
        .unit(Unit::Ms)
        .at_least(0)
        .cluster_wide()
        .or(&["log.flush.scheduler.interval.ms"])
        .inert(ALWAYS_SYNCED),
    broker("log.flush.scheduler.interval.ms", Kind::Long, "Time between two looks for logs to sync.")
        .default("9223372036854775807")
        .unit(Unit::Ms)
        .inert(ALWAYS_SYNCED),
    broker("log.flush.offset.checkpoint.interval.ms", Kind::Int, "Time between two recovery checkpoints.")
        .default("60000")
        .unit(Unit::Ms)
        .at_least(0)
        .inert(OWN_CHECKPOINTS),
    broker("log.flush.start.offset.checkpoint.interval.ms", Kind::Int, "Time between two checkpoints of log starts.")
        .default("60000")
        .unit(Unit::Ms)
        .at_least(0)
        .inert("a moved log start is durable before anything is deleted"),
    broker("log.preallocate", Kind::Bool, "Whether a new segment's file is allocated whole.")
        .default("false")
        .cluster_wide()
        .inert("tails are always preallocated ahead of the append"),
    broker("compression.gzip.level", Kind::Int, "Level for gzip.")
        .default("-1")
        .bounds(Bounds::BetweenOrUnset(1, 9))
        .cluster_wide()
        .inert(NO_RECOMPRESSION),
    broker("compression.lz4.level", Kind::Int, "Level for lz4.")
        .default("9")
        .between(1, 17)
        .cluster_wide()
        .inert(NO_RECOMPRESSION),
    broker("compression.zstd.level", Kind::Int, "Level for zstd.")
        .default("3")
        .between(-131_072, 22)
        .cluster_wide()
        .inert(NO_RECOMPRESSION),
    broker("log.cleaner.enable", Kind::Bool, "Whether compaction runs.").default("true"),
    broker("log.cleaner.threads", Kind::Int, "Threads for compaction.")
        .default("1")
        .at_least(0)
        .cluster_wide()
        .inert("each shard compacts its own partitions, one at a time"),
    broker("log.cleaner.backoff.ms", Kind::Long, "Wait when there is nothing to compact.")
        .default("15000")
        .unit(Unit::Ms)
        .at_least(0)
        .cluster_wide(),
    broker(
        "log.cleaner.dedupe.buffer.size",
        Kind::Long,
        "Memory for the map of keys while a log is compacted, shared by all shards.",
    )
    .default("134217728")
    .unit(Unit::Bytes)
    .cluster_wide(),
    broker("log.cleaner.io.buffer.size", Kind::Int, "Bytes that compaction reads at once, up to 1 MiB.")
        .default("524288")
        .unit(Unit::Bytes)
        .at_least(0)
        .cluster_wide(),
    broker("log.cleaner.io.buffer.load.factor", Kind::Double, "How full the map of keys may be, between 0.1 and 0.95.")
        .default("0.9")
        .cluster_wide(),
    broker(
        "log.cleaner.io.max.bytes.per.second",
        Kind::Double,
        "Brake on compaction's reads and writes, shared by all shards.",
    )
    .default("1.7976931348623157E308")
    .cluster_wide(),
    broker("log.cleaner.delete.retention.ms", Kind::Long, "How long a tombstone stays.")
        .default("86400000")
        .unit(Unit::Ms)
        .at_least(0)
        .cluster_wide(),
    broker(
        "log.cleaner.min.cleanable.ratio",
        Kind::Double,
        "Share of uncompacted bytes from which a log is compacted.",
    )
    .default("0.5")
    .bounds(Bounds::Reals(0.0, 1.0))
    .cluster_wide(),
    broker("log.cleaner.min.compaction.lag.ms", Kind::Long, "Shortest time a record stays uncompacted.")
        .default("0")
        .unit(Unit::Ms)
        .at_least(0)
        .cluster_wide(),
    broker("log.cleaner.max.compaction.lag.ms", Kind::Long, "Longest time a record may stay uncompacted.")
        .default("9223372036854775807")
        .unit(Unit::Ms)
        .at_least(1)
        .cluster_wide(),
    broker("log.local.retention.bytes", Kind::Long, "Bytes kept on local disk of a tiered topic.")
        .default("-2")
        .unit(Unit::Bytes)
        .at_least(-2)
        .cluster_wide()
        .inert(NO_TIERING),
    broker("log.local.retention.ms", Kind::Long, "Time kept on local disk of a tiered topic.")
        .default("-2")
        .unit(Unit::Ms)
        .at_least(-2)
        .cluster_wide()
        .inert(NO_TIERING),
    broker("log.remote.copy.lag.bytes", Kind::Long, "Bytes a segment may stay uncopied to remote storage.")
        .default("-1")
        .unit(Unit::Bytes)
        .at_least(-1)
        .cluster_wide()
        .inert(NO_TIERING),
    broker("log.remote.copy.lag.ms", Kind::Long, "Time a segment may stay uncopied to remote storage.")
        .default("0")
        .unit(Unit::Ms)
        .at_least(-1)
        .cluster_wide()
        .inert(NO_TIERING),
    broker(
        "log.dir.failure.timeout.ms",
        Kind::Long,
        "Time a broker with a failed folder waits to tell the controller.",
    )
    .default("30000")
    .unit(Unit::Ms)
    .at_least(1)
    .inert("a failed folder's partitions answer with an error at once"),
];
