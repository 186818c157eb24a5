//! The table of fuzz targets. A crate registers a decoder here with a line: a name, a sentence, the function that must not
//! panic on any bytes, valid inputs to start from, and what makes the checksums of a damaged input right again.

use super::{corpus, seal};

pub type Seal = fn(&[u8]) -> Vec<u8>;

pub struct Target {
    pub name: &'static str,
    pub sentence: &'static str,
    pub run: fn(&[u8]),
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Each input is tried as it is and once by each of these.
    pub seals: &'static [Seal],
}

const fn target(
    name: &'static str,
    sentence: &'static str,
    run: fn(&[u8]),
    corpus: fn() -> Vec<Vec<u8>>,
    seals: &'static [Seal],
) -> Target {
    Target { name, sentence, run, corpus, seals }
}

pub const TARGETS: &[Target] = &[
    target(
        "wire_request",
        "any request of any version; what decodes must encode and decode again to the same",
        wire::fuzz_targets::fuzz_request,
        corpus::wire::requests,
        &[],
    ),
    target(
        "wire_response",
        "any response of any version, likewise",
        wire::fuzz_targets::fuzz_response,
        corpus::wire::responses,
        &[],
    ),
    target(
        "wire_frames",
        "a connection's bytes: size prefixes, headers, requests",
        wire::fuzz_targets::fuzz_frames,
        corpus::wire::frames,
        &[],
    ),
    target(
        "model_batch",
        "a record batch: header, CRC, records, inflated where it is compressed",
        model::fuzz_targets::fuzz_batch,
        corpus::model::batches,
        &[seal::batch],
    ),
    target(
        "model_inflate",
        "a compressed section in each codec; the first byte chooses",
        model::fuzz_targets::fuzz_inflate,
        corpus::model::compressed_sections,
        &[],
    ),
    target(
        "model_properties",
        "a properties file",
        model::fuzz_targets::fuzz_properties,
        corpus::model::properties,
        &[],
    ),
    target("log_offset_index", "an offset index", log::fuzz_targets::offset_index, corpus::log::offset_indexes, &[]),
    target("log_time_index", "a time index", log::fuzz_targets::time_index, corpus::log::time_indexes, &[]),
    target(
        "log_checkpoint",
        "the checkpoint of a data folder",
        log::fuzz_targets::checkpoint,
        corpus::log::checkpoints,
        &[seal::checkpoint],
    ),
    target(
        "log_leader_epoch_checkpoint",
        "a leader-epoch-checkpoint file",
        log::fuzz_targets::leader_epoch_checkpoint,
        corpus::log::leader_epoch_checkpoints,
        &[],
    ),
    target(
        "log_partition_metadata",
        "a partition.metadata file",
        log::fuzz_targets::partition_metadata,
        corpus::log::partition_metadata,
        &[],
    ),
    target(
        "log_identity",
        "the identity of a data folder",
        log::fuzz_targets::identity,
        corpus::log::identities,
        &[seal::identity],
    ),
    target(
        "log_journal",
        "a file of the journal's ring, and its small files",
        log::fuzz_targets::journal,
        corpus::log::journals,
        &[seal::ring],
    ),
    target(
        "log_segment_scan",
        "a segment, scanned as after a crash and selected from as by a fetch",
        log::fuzz_targets::segment_scan,
        corpus::log::segments,
        &[seal::segment],
    ),
    target(
        "replica_snapshot",
        "a producer snapshot",
        replica::fuzz_targets::fuzz_snapshot,
        corpus::replica::snapshots,
        &[seal::producers],
    ),
    target(
        "replica_validate",
        "a client's batch, validated record by record",
        replica::fuzz_targets::fuzz_validate,
        corpus::replica::batches,
        &[seal::batch],
    ),
    target(
        "coordinator_record",
        "a record of the offsets topic, read, written again and loaded",
        coordinator::fuzz_targets::fuzz_record,
        corpus::coordinator::records,
        &[],
    ),
    target(
        "metadata_log",
        "a metadata journal",
        metadata::fuzz_targets::fuzz_log,
        corpus::metadata::journals,
        &[seal::journal],
    ),
    target(
        "metadata_snapshot",
        "a metadata snapshot, and a command of the same bytes",
        metadata::fuzz_targets::fuzz_snapshot,
        corpus::metadata::snapshots,
        &[seal::metadata_snapshot, seal::command],
    ),
    target(
        "metadata_peer_message",
        "one message of a voter to a fresh one",
        metadata::fuzz_targets::fuzz_peer_message,
        corpus::metadata_peers::messages,
        &[],
    ),
    target(
        "metadata_step_all",
        "many messages of voters to a fresh one, lengths in front",
        |data| metadata::fuzz_targets::step_all(seal::peer_messages(data)),
        corpus::metadata_peers::sequences,
        &[],
    ),
    target(
        "client_link_answers",
        "a broker's bytes on a connection with requests under way",
        client::fuzz_targets::link_answers,
        corpus::client::answers,
        &[],
    ),
    target(
        "client_fetched_records",
        "fetched batches to records; the first byte says how they are read",
        client::consumer::fuzz_targets::fetched_records,
        corpus::client::fetched,
        &[seal::behind_the_first_byte],
    ),
    target(
        "client_consumer_protocol",
        "what a group's members tell each other: a subscription, an assignment",
        client::fuzz_targets::consumer_protocol,
        corpus::client::member_messages,
        &[],
    ),
];

pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
