#![allow(clippy::unwrap_used)]
use metadata::journal_format::read_journal;
use metadata::stored_image::decode_snapshot;
use model::BatchView;

use super::*;
use crate::fuzz::corpus;
use crate::fuzz::targets::Seal;

#[test]
fn what_is_sound_stays_as_it_is() {
    let kinds: [(Seal, Vec<Vec<u8>>); 6] = [
        (batch, corpus::model::batches()),
        (segment, corpus::log::segments()),
        (producers, corpus::replica::snapshots()),
        (checkpoint, corpus::log::checkpoints()[..4].to_vec()),
        (identity, corpus::log::identities()),
        (journal, corpus::metadata::journals()[..5].to_vec()),
    ];
    for (seal, inputs) in kinds {
        inputs.iter().for_each(|input| assert!(seal(input) == *input, "{input:?}"));
    }
}

#[test]
fn damage_behind_a_checksum_is_covered() {
    let mut damaged = corpus::model::batches()[0].clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(BatchView::parse(&damaged).unwrap().check_crc().is_err());
    let sealed = batch(&damaged);
    assert!(BatchView::parse(&sealed).unwrap().check_crc().is_ok());

    let journals = corpus::metadata::journals();
    let mut damaged = journals[2].clone();
    // The data of the last frame's last entry.
    *damaged.last_mut().unwrap() ^= 1;
    assert!(read_journal(&damaged).unwrap().has_torn_tail);
    assert!(!read_journal(&journal(&damaged)).unwrap().has_torn_tail);

    let mut damaged = corpus::metadata::snapshots()[1].clone();
    let at = damaged.windows(5).position(|window| window == b"local").unwrap();
    damaged[at] ^= 1;
    assert!(decode_snapshot(&damaged).is_err());
    assert!(decode_snapshot(&metadata_snapshot(&damaged)).is_ok());
}
