//! Broker properties about the node itself: who it is, its listeners, its connections, its shards and memory.

use super::property::{Bounds, Kind, Property, Unit, broker};

const SHARDS_DO_IT: &str = "one shard per core does all work, see ringlog.shards";
const ONE_NODE: &str = "clusters of several nodes are not built yet";
const NO_JAVA: &str = "Java classes cannot be loaded";
const NO_QUOTAS: &str = "quotas are not built";
const NO_SECURITY: &str =
    "TLS, SASL and access control are not built yet, so the node would be open where you expect it closed";
const OWN_METRICS: &str = "metrics are kept by this broker's own means";
const OWN_BUFFERS: &str = "the kernel sizes socket buffers";

/// Who the node is and where it listens.
pub(super) const NODE: &[Property] = &[
    broker("node.id", Kind::Int, "Id of this node; a data folder belongs to one id.")
        .default("1")
        .at_least(0)
        .or(&["broker.id"]),
    broker("broker.id", Kind::Int, "Older name of node.id, used when that is not set; -1 is not set.")
        .default("-1")
        .at_least(-1),
    broker("broker.rack", Kind::String, "Rack of this node, as clients see it in Metadata."),
    broker("listeners", Kind::List, "Addresses to listen on, PLAINTEXT://host:port; port 0 picks a free one.")
        .default("PLAINTEXT://127.0.0.1:9092"),
    broker(
        "advertised.listeners",
        Kind::List,
        "Addresses that clients are told; needed when a listener is a wildcard address.",
    )
    .or(&["listeners"]),
    broker(
        "ringlog.metrics.listen",
        Kind::String,
        "Address (host:port) that serves /metrics for Prometheus and /healthz over plain HTTP; port 0 picks a free one; empty \
         serves nothing. Whoever reaches it sees every figure, and with ?partitions=1 the topics' names.",
    )
    .default(""),
    broker("process.roles", Kind::List, "Roles of the process.")
        .default("broker,controller")
        .one_of(&["broker", "controller"])
        .inert("every node is both broker and controller"),
];

/// Connections and requests.
pub(super) const CONNECTIONS: &[Property] = &[
    broker("socket.request.max.bytes", Kind::Int, "Largest request; a longer one closes its connection.")
        .default("104857600")
        .unit(Unit::Bytes)
        .at_least(1),
    broker("socket.listen.backlog.size", Kind::Int, "Connections the kernel holds that are not accepted yet.")
        .default("50")
        .at_least(1),
    broker("max.connections", Kind::Int, "Connections of this node; past it new ones are closed.")
        .default("2147483647")
        .at_least(0)
        .cluster_wide(),
    broker(
        "connections.max.idle.ms",
        Kind::Long,
        "Time without a request after which a connection is closed; negative is never.",
    )
    .default("600000")
    .unit(Unit::Ms),
    broker("queued.max.requests", Kind::Int, "Requests in work per connection; past it the socket is not read.")
        .default("500")
        .at_least(1),
    broker("fetch.max.bytes", Kind::Int, "Largest Fetch answer.").default("57671680").unit(Unit::Bytes).at_least(1024),
    broker("max.incremental.fetch.session.cache.slots", Kind::Int, "Fetch sessions kept by this node.")
        .default("1000")
        .at_least(0),
    broker(
        "ringlog.max.inflight.bytes.per.connection",
        Kind::Long,
        "Request bytes in work per connection; past it the socket is not read. One request always fits.",
    )
    .default("16777216")
    .unit(Unit::Bytes)
    .at_least(65_536),
    broker(
        "ringlog.max.inflight.bytes.per.shard",
        Kind::Long,
        "Request bytes in work per shard; past it its sockets are not read.",
    )
    .default("134217728")
    .unit(Unit::Bytes)
    .at_least(1_048_576),
];

/// Cores, rings and memory. A tuning profile sets the same ones.
pub(super) const SHARDS: &[Property] = &[
    broker(
        "ringlog.shards",
        Kind::Int,
        "Shards, one thread and one io_uring each; 0 is one per CPU of the tuning profile.",
    )
    .default("0")
    .between(0, 1024),
    broker(
        "ringlog.preempt.timer.us",
        Kind::Int,
        "Longest time a busy shard works before it looks at sockets, disk and timers.",
    )
    .default("1000")
    .unit(Unit::Us)
    .between(100, 100_000),
    broker(
        "ringlog.pulse.interval.ms",
        Kind::Int,
        "Time between two looks at every shard: one that works is asked for a sign, which measures stalls.",
    )
    .default("5")
    .unit(Unit::Ms)
    .between(1, 1000),
    broker("ringlog.io.memory.bytes", Kind::Long, "Direct reads and writes under way per shard, in bytes: beyond it they wait.")
        .default("67108864")
        .unit(Unit::Bytes)
        .between(4_194_304, 17_179_869_184),
    broker(
        "ringlog.disk.reserve.bytes",
        Kind::Long,
        "Free space of the disk that clients' records may not take: producers are asked to try again before it is touched, \
         and commits, metadata, deletes and retention go on.",
    )
    .default("67108864")
    .unit(Unit::Bytes)
    .between(0, 1_099_511_627_776),
    broker(
        "ringlog.journal",
        Kind::Bool,
        "Small appends of many partitions are made durable together, in a journal, and written to their segments later in \
         larger pieces; without it every partition syncs its own segment.",
    )
    .default("true"),
    broker(
        "ringlog.journal.bytes",
        Kind::Long,
        "Disk space of the journals of the whole process, shared by the shards. The larger, the fewer syncs of segments, and the \
         longer a start after a crash, which reads each shard's part into memory. What the segments do not have yet is in \
         memory too, in at most half of ringlog.batch.cache.bytes.",
    )
    .default("134217728")
    .unit(Unit::Bytes)
    .between(8_388_608, 8_589_934_592),
    broker("ringlog.disk.write.max.bytes", Kind::Int, "Largest single write to the disk; more goes out in pieces.")
        .default("1048576")
        .unit(Unit::Bytes)
        .bounds(Bounds::Blocks(65_536, 1_048_576)),
    broker("ringlog.disk.queue.depth", Kind::Int, "Writes and syncs of one shard that the disk is given at once.")
        .default("64")
        .between(1, 256),
    broker(
        "ringlog.disk.expected.write.us",
        Kind::Int,
        "Usual time of one synced write; one that takes 20 times as long, and 100 ms at least, is told as a stall of the \
         drive; 0 is not measured.",
    )
    .default("0")
    .unit(Unit::Us)
    .between(0, 60_000_000),
    broker(
        "ringlog.batch.cache.bytes",
        Kind::Long,
        "Memory of the whole process for batches just written, shared by the shards.",
    )
    .default("67108864")
    .unit(Unit::Bytes)
    .at_least(4_194_304),
    broker(
        "ringlog.max.open.segments",
        Kind::Int,
        "Segment files open at once in the whole process; colder ones are closed. -1: half of the files that the process may \
         have open (RLIMIT_NOFILE), at most 32768.",
    )
    .default("-1")
    .bounds(Bounds::BetweenOrUnset(16, 1_000_000)),
];

/// Kafka's knobs for parts that this broker does not have.
pub(super) const NODE_INERT: &[Property] = &[
    broker("num.network.threads", Kind::Int, "Threads for sockets.")
        .default("3")
        .at_least(1)
        .cluster_wide()
        .inert(SHARDS_DO_IT),
    broker("num.io.threads", Kind::Int, "Threads for requests.")
        .default("8")
        .at_least(1)
        .cluster_wide()
        .inert(SHARDS_DO_IT),
    broker("background.threads", Kind::Int, "Threads for background work.")
        .default("10")
        .at_least(1)
        .cluster_wide()
        .inert(SHARDS_DO_IT),
    broker("num.recovery.threads.per.data.dir", Kind::Int, "Threads for recovery.")
        .default("2")
        .at_least(1)
        .cluster_wide()
        .inert("recovery scans tails only, on all shards"),
    broker("num.replica.fetchers", Kind::Int, "Threads that fetch from each other broker.")
        .default("1")
        .at_least(1)
        .cluster_wide()
        .inert(ONE_NODE),
    broker("num.replica.alter.log.dirs.threads", Kind::Int, "Threads that move replicas between folders.")
        .inert("a node has one data folder"),
    broker("socket.send.buffer.bytes", Kind::Int, "Send buffer of a socket.")
        .default("102400")
        .unit(Unit::Bytes)
        .inert(OWN_BUFFERS),
    broker("socket.receive.buffer.bytes", Kind::Int, "Receive buffer of a socket.")
        .default("102400")
        .unit(Unit::Bytes)
        .inert(OWN_BUFFERS),
    broker("queued.max.request.bytes", Kind::Long, "Request bytes waiting.")
        .default("-1")
        .unit(Unit::Bytes)
        .inert("see ringlog.max.inflight.bytes.per.connection and ringlog.max.inflight.bytes.per.shard"),
    broker("request.timeout.ms", Kind::Int, "Time this broker waits for an answer of another.")
        .default("30000")
        .unit(Unit::Ms)
        .inert(ONE_NODE),
    broker("fetch.purgatory.purge.interval.requests", Kind::Int, "Waiting fetches between two purges.")
        .default("1000")
        .inert("waiting requests are taken off when they end"),
    broker("producer.purgatory.purge.interval.requests", Kind::Int, "Waiting produces between two purges.")
        .default("1000")
        .inert("waiting requests are taken off when they end"),
    broker("controlled.shutdown.enable", Kind::Bool, "Whether leaders move away before a stop.")
        .default("true")
        .inert(ONE_NODE),
    broker("auto.leader.rebalance.enable", Kind::Bool, "Whether preferred leaders are restored.")
        .default("true")
        .inert(ONE_NODE),
    broker("leader.imbalance.check.interval.seconds", Kind::Long, "Time between two looks for imbalance.")
        .default("300")
        .unit(Unit::Seconds)
        .at_least(1)
        .inert(ONE_NODE),
    broker("replica.lag.time.max.ms", Kind::Long, "Lag after which a follower is out of sync.")
        .default("30000")
        .unit(Unit::Ms)
        .inert(ONE_NODE),
    broker("replica.fetch.max.bytes", Kind::Int, "Bytes a follower asks for per partition.")
        .default("1048576")
        .unit(Unit::Bytes)
        .at_least(0)
        .inert(ONE_NODE),
    broker("replica.fetch.min.bytes", Kind::Int, "Least bytes a follower waits for.")
        .default("1")
        .unit(Unit::Bytes)
        .inert(ONE_NODE),
    broker("replica.fetch.wait.max.ms", Kind::Int, "Time a follower's fetch waits.")
        .default("500")
        .unit(Unit::Ms)
        .inert(ONE_NODE),
    broker("replica.fetch.response.max.bytes", Kind::Int, "Bytes a follower asks for in all.")
        .default("10485760")
        .unit(Unit::Bytes)
        .at_least(0)
        .inert(ONE_NODE),
    broker("replica.fetch.backoff.ms", Kind::Int, "Wait after a failed fetch.")
        .default("1000")
        .unit(Unit::Ms)
        .at_least(0)
        .inert(ONE_NODE),
    broker(
        "replica.high.watermark.checkpoint.interval.ms",
        Kind::Long,
        "Time between two checkpoints of the high watermarks.",
    )
    .default("5000")
    .unit(Unit::Ms)
    .inert("the high watermark of a lone replica is its durable end"),
    broker("inter.broker.listener.name", Kind::String, "Listener that brokers use among themselves.").inert(ONE_NODE),
    broker("controller.listener.names", Kind::List, "Listeners that controllers use among themselves.").inert(ONE_NODE),
    broker("broker.heartbeat.interval.ms", Kind::Int, "Time between two heartbeats to the controller.")
        .default("2000")
        .unit(Unit::Ms)
        .inert(ONE_NODE),
    broker("broker.session.timeout.ms", Kind::Int, "Time after which a silent broker is fenced.")
        .default("9000")
        .unit(Unit::Ms)
        .inert(ONE_NODE),
    broker("metrics.num.samples", Kind::Int, "Samples per metric.").default("2").at_least(1).inert(OWN_METRICS),
    broker("metrics.sample.window.ms", Kind::Long, "Time a sample covers.")
        .default("30000")
        .unit(Unit::Ms)
        .at_least(1)
        .inert(OWN_METRICS),
    broker("metrics.recording.level", Kind::String, "Level of metrics.").default("INFO").inert(OWN_METRICS),
    broker("metric.reporters", Kind::List, "Classes that report metrics.")
        .default("org.apache.kafka.common.metrics.JmxReporter")
        .cluster_wide()
        .inert(OWN_METRICS),
    broker("telemetry.max.bytes", Kind::Int, "Largest metrics push of a client.")
        .default("1048576")
        .unit(Unit::Bytes)
        .at_least(1)
        .inert("clients' metrics are not received"),
];

/// Known, and an error when set to anything else: obeying in silence would mislead.
pub(super) const NODE_REFUSED: &[Property] = &[
    broker("max.connections.per.ip", Kind::Int, "Connections per client address.")
        .default("2147483647")
        .at_least(0)
        .cluster_wide()
        .refused("only max.connections is built"),
    broker("max.connections.per.ip.overrides", Kind::String, "Connections per named client address.")
        .default("")
        .cluster_wide()
        .refused("only max.connections is built"),
    broker("max.connection.creation.rate", Kind::Int, "New connections per second.")
        .default("2147483647")
        .at_least(0)
        .cluster_wide()
        .refused("only max.connections is built"),
    broker("listener.security.protocol.map", Kind::String, "Security protocol of each listener.")
        .default("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT")
        .refused(NO_SECURITY),
    broker("security.inter.broker.protocol", Kind::String, "Security protocol between brokers.")
        .default("PLAINTEXT")
        .refused(NO_SECURITY),
    broker("authorizer.class.name", Kind::String, "Class that decides who may do what.")
        .default("")
        .refused(NO_SECURITY),
    broker("principal.builder.class", Kind::Class, "Class that names a connection's user.")
        .default("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder")
        .per_broker()
        .refused(NO_JAVA),
    broker("alter.config.policy.class.name", Kind::Class, "Class that judges changes of configuration.")
        .refused(NO_JAVA),
    broker("create.topic.policy.class.name", Kind::Class, "Class that judges new topics.").refused(NO_JAVA),
    broker("client.quota.callback.class", Kind::Class, "Class that computes quotas.").refused(NO_QUOTAS),
    broker("replica.selector.class", Kind::String, "Class that picks the replica a consumer reads.").refused(NO_JAVA),
    broker("config.providers", Kind::List, "Sources of values written as variables.")
        .default("")
        .refused("values are taken as they are written"),
    broker("controller.quorum.voters", Kind::List, "The metadata quorum's voters.").default("").refused(ONE_NODE),
    broker("controller.quorum.bootstrap.servers", Kind::List, "Where to find the metadata quorum.")
        .default("")
        .refused(ONE_NODE),
];
