#![allow(clippy::unwrap_used)]
use ::coordinator::records::{self, Record};
use ::metadata::envelope::HEADER_LEN;
use ::metadata::journal_format::read_journal;
use ::metadata::stored::decode_command;
use ::metadata::stored_image::decode_snapshot;
use ::metadata::{MetadataNode, NodeConfig, PeerMessage, Recovered};
use ::model::batch::BatchView;
use ::model::compression::inflate;
use ::model::config::{BrokerConfig, TopicConfig};
use ::model::{Codec, NodeId};
use ::replica::{snapshot, validate};

use super::*;
use crate::fuzz::seal;

#[test]
fn batches_are_read_to_their_last_record_and_most_are_accepted() {
    for batch in model::batches() {
        let view = BatchView::parse(&batch).unwrap();
        view.check_crc().unwrap();
        if view.header.codec().unwrap() == Codec::None {
            assert_eq!(view.records().filter(Result::is_ok).count(), view.header.record_count as usize);
        }
    }
    let config = TopicConfig::resolve(&BrokerConfig::default(), [("ringlog.produce.validation", "records")]).unwrap();
    let accepted = model::batches().into_iter().filter(|b| validate::validate(b, &config, 1_700_000_000_000).is_ok());
    assert!(accepted.count() >= 13, "all but those that clients cannot write");
}

#[test]
fn sections_inflate_unless_they_are_too_large() {
    let codecs = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let mut inflated = [0; 4];
    for section in model::compressed_sections() {
        let index = usize::from(section[0]);
        inflated[index] += usize::from(inflate(codecs[index], &section[1..], 1 << 20, &mut Vec::new()).is_ok());
    }
    assert!(inflated.iter().all(|count| *count >= 5), "{inflated:?}");
}

#[test]
fn the_properties_of_every_row_make_a_broker() {
    BrokerConfig::from_properties(&model::whole_file()).unwrap();
}

#[test]
fn producer_snapshots_and_group_records_are_read() {
    replica::snapshots().iter().for_each(|bytes| assert!(snapshot::decode(bytes).is_ok()));
    for record in coordinator::records() {
        let (key, value) = record[1..].split_at(usize::from(record[0]));
        let read = records::decode(key, (!value.is_empty()).then_some(value)).unwrap();
        assert!(key[1] > 2 || !matches!(read, Record::Unknown { .. }), "{key:?}");
    }
}

#[test]
fn metadata_files_are_read_to_their_ends() {
    let journals = metadata::journals();
    for bytes in &journals[..5] {
        let journal = read_journal(bytes).unwrap();
        assert_eq!((journal.len, journal.has_torn_tail), (bytes.len() as u64, false));
    }
    assert!(read_journal(&journals[4]).unwrap().base.index > 0, "a snapshot came before it");
    for bytes in metadata::snapshots() {
        assert!(decode_snapshot(&bytes).is_ok() || decode_command(&bytes, 0).is_ok());
    }
}

/// Steps messages into a fresh voter, as the target does.
fn listen(messages: Vec<PeerMessage>) -> MetadataNode {
    let voters = (0..metadata::VOTERS).map(NodeId).collect();
    let config = NodeConfig::new(NodeId(1), voters, metadata::CLUSTER.into(), 7);
    let mut node = MetadataNode::new(config, Recovered::fresh()).unwrap();
    for message in messages {
        let _ = node.step(message);
        while let Some(ready) = node.take_ready().unwrap() {
            node.persisted(ready.number);
        }
    }
    node
}

#[test]
fn conversations_make_a_follower_one_with_a_snapshot_and_a_leader() {
    let sequences = metadata_peers::sequences();
    let [follower, laggard, leader] = [3, 7, 11].map(|last| listen(seal::peer_messages(&sequences[last])));
    assert_eq!(follower.image().topic_count(), 3, "all commands were applied");
    assert_eq!(laggard.image().topic_count(), 3, "from a snapshot");
    assert!(metadata_peers::conversations()[1].iter().any(|message| message.snapshot.is_some()));
    assert!(leader.status().is_current_leader);
    let messages = metadata_peers::messages();
    assert!(PeerMessage::decode(&messages[0]).is_ok());
    assert_eq!(messages[messages.len() / 2], messages[0][HEADER_LEN..]);
}
