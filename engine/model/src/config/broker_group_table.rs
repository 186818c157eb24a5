//! Broker properties about groups, their offsets, producers and transactions.

use super::property::{Kind, Property, Unit, broker};

const NO_TXN: &str = "transactions are not built yet";

/// Consumer groups and the internal topic that remembers them.
pub(super) const GROUPS: &[Property] = &[
    broker(
        "group.initial.rebalance.delay.ms",
        Kind::Int,
        "Wait for more members before an empty group's first rebalance.",
    )
    .default("3000")
    .unit(Unit::Ms)
    .at_least(0),
    broker("group.min.session.timeout.ms", Kind::Int, "Least session timeout a member may ask for.")
        .default("6000")
        .unit(Unit::Ms)
        .at_least(0),
    broker("group.max.session.timeout.ms", Kind::Int, "Largest session timeout a member may ask for.")
        .default("1800000")
        .unit(Unit::Ms)
        .at_least(0),
    broker("group.max.size", Kind::Int, "Members of one group.").default("2147483647").at_least(1),
    broker("offset.metadata.max.bytes", Kind::Int, "Largest metadata of a committed offset.")
        .default("4096")
        .unit(Unit::Bytes)
        .at_least(0),
    broker(
        "offsets.topic.num.partitions",
        Kind::Int,
        "Partitions of __consumer_offsets; fixed when the topic is made.",
    )
    .default("50")
    .at_least(1),
    broker(
        "offsets.topic.replication.factor",
        Kind::Short,
        "Replicas of __consumer_offsets; the number of nodes when that is less.",
    )
    .default("3")
    .at_least(1),
    broker("offsets.topic.segment.bytes", Kind::Int, "Segment size of __consumer_offsets.")
        .default("104857600")
        .unit(Unit::Bytes)
        .at_least(1_048_576),
    broker("offsets.retention.minutes", Kind::Int, "Time after which offsets of an empty group are forgotten.")
        .default("10080")
        .unit(Unit::Minutes)
        .at_least(1),
    broker("offsets.retention.check.interval.ms", Kind::Long, "Time between two looks for offsets to forget.")
        .default("600000")
        .unit(Unit::Ms)
        .at_least(1),
    broker("offsets.commit.timeout.ms", Kind::Int, "Time a commit may take to be written.")
        .default("5000")
        .unit(Unit::Ms)
        .at_least(1),
    broker("offsets.topic.compression.codec", Kind::Int, "Codec of records in __consumer_offsets; 0 is none.")
        .default("0")
        .refused("records of internal topics are not compressed"),
    broker("offsets.load.buffer.size", Kind::Int, "Bytes read at once when a coordinator loads.")
        .default("5242880")
        .unit(Unit::Bytes)
        .at_least(1)
        .inert("reading ahead has its own size"),
    broker("group.coordinator.threads", Kind::Int, "Threads of the coordinator.")
        .default("4")
        .at_least(1)
        .inert("coordinators run on the shards of their partitions"),
    broker("group.coordinator.append.linger.ms", Kind::Int, "Wait for more records before a coordinator's write.")
        .default("-1")
        .unit(Unit::Ms)
        .at_least(-1)
        .inert("the commit rounds gather what is pending"),
    broker("group.coordinator.rebalance.protocols", Kind::List, "Kinds of group that are served.")
        .default("classic,consumer,streams")
        .one_of(&["consumer", "classic", "share", "streams"])
        .inert("classic groups are served, whatever this says"),
];

/// Idempotent producers, and transactions to come.
pub(super) const PRODUCERS: &[Property] = &[
    broker("producer.id.expiration.ms", Kind::Int, "Time after which an idle producer's sequences are forgotten.")
        .default("86400000")
        .unit(Unit::Ms)
        .at_least(1)
        .cluster_wide(),
    broker(
        "ringlog.producer.state.max",
        Kind::Int,
        "Idempotent producers that one shard remembers, over all its partitions; the longest silent one makes room.",
    )
    .default("50000")
    .between(1_000, 1_000_000),
    broker("transaction.max.timeout.ms", Kind::Int, "Largest transaction timeout.")
        .default("900000")
        .unit(Unit::Ms)
        .at_least(1)
        .inert(NO_TXN),
    broker("transactional.id.expiration.ms", Kind::Int, "Time after which an idle transactional id is forgotten.")
        .default("604800000")
        .unit(Unit::Ms)
        .at_least(1)
        .inert(NO_TXN),
    broker("transaction.state.log.num.partitions", Kind::Int, "Partitions of __transaction_state.")
        .default("50")
        .at_least(1)
        .inert(NO_TXN),
    broker("transaction.state.log.replication.factor", Kind::Short, "Replicas of __transaction_state.")
        .default("3")
        .at_least(1)
        .inert(NO_TXN),
    broker("transaction.state.log.min.isr", Kind::Int, "Replicas of __transaction_state that must be in sync.")
        .default("2")
        .at_least(1)
        .inert(NO_TXN),
    broker("transaction.state.log.segment.bytes", Kind::Int, "Segment size of __transaction_state.")
        .default("104857600")
        .unit(Unit::Bytes)
        .at_least(1)
        .inert(NO_TXN),
    broker("transaction.state.log.load.buffer.size", Kind::Int, "Bytes read at once when a coordinator loads.")
        .default("5242880")
        .unit(Unit::Bytes)
        .at_least(1)
        .inert(NO_TXN),
    broker(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Kind::Int,
        "Time between two looks for transactions to abort.",
    )
    .default("10000")
    .unit(Unit::Ms)
    .at_least(1)
    .inert(NO_TXN),
    broker(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Kind::Int,
        "Time between two looks for ids to forget.",
    )
    .default("3600000")
    .unit(Unit::Ms)
    .at_least(1)
    .inert(NO_TXN),
    broker(
        "transaction.partition.verification.enable",
        Kind::Bool,
        "Whether partitions are checked before transactional appends.",
    )
    .default("true")
    .cluster_wide()
    .inert(NO_TXN),
    broker("transaction.two.phase.commit.enable", Kind::Bool, "Whether two-phase commit is offered.")
        .default("false")
        .refused(NO_TXN),
];
