//! Folders of earlier versions are read, and those of later ones refused without a change.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crc_fast::CrcAlgorithm::Crc32IsoHdlc;
use ringlog_e2e::broker::{ringlog_serve, skip_on_kafka};
use ringlog_e2e::place::TempDir;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::{Broker, fixture, process, requests};

const NOT_KAFKA: &str = "it is about our own files";
const LIMIT: Duration = Duration::from_secs(30);
const KAFKA_STORAGE_ERROR: i16 = 56;
/// More than any fixture may take in the repository.
const FIXTURE_BYTES: usize = 300 << 10;

fn crc32(bytes: &[u8]) -> [u8; 4] {
    (crc_fast::checksum(Crc32IsoHdlc, bytes) as u32).to_le_bytes()
}

/// A text file of ours with another version and the CRC that belongs to it.
fn newer_text(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap().replacen("version=1", "version=9", 1);
    let body = &text[..text.rfind("crc=").unwrap()];
    format!("{body}crc={:08x}\n", u32::from_le_bytes(crc32(body.as_bytes()))).into_bytes()
}

/// Magic, version, ..., CRC.
fn newer_checkpoint(bytes: &[u8]) -> Vec<u8> {
    let mut body = bytes[..bytes.len() - 4].to_vec();
    body[8..10].copy_from_slice(&2u16.to_le_bytes());
    let crc = crc32(&body);
    body.extend_from_slice(&crc);
    body
}

/// Magic, then kind, version, length and CRC over a salt of zero, what is before it and the payload.
fn newer_journal(bytes: &[u8]) -> Vec<u8> {
    const AT: usize = 8;
    let mut bytes = bytes.to_vec();
    bytes[AT + 2..AT + 4].copy_from_slice(&9u16.to_le_bytes());
    let len = u32::from_le_bytes(bytes[AT + 4..AT + 8].try_into().unwrap()) as usize;
    let covered = [&[0; 8], &bytes[AT..AT + 8], &bytes[AT + 12..AT + 12 + len]].concat();
    bytes[AT + 8..AT + 12].copy_from_slice(&crc32(&covered));
    bytes
}

/// A copy of the fixture with one file rewritten; where that is.
fn changed(dir: &TempDir, file: &str, change: fn(&[u8]) -> Vec<u8>) -> PathBuf {
    let data = dir.path().join("data");
    fixture::copy(&fixture::folder(), &data);
    let path = data.join(file);
    fs::write(&path, change(&fs::read(&path).unwrap())).unwrap();
    data
}

#[test]
fn the_folder_of_the_first_version_is_read_and_goes_on() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let bytes: usize = fixture::files(&fixture::folder()).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes > 0 && bytes < FIXTURE_BYTES, "{bytes}");
    let mut broker = Broker::on(&fixture::folder(), fixture::SETTINGS);
    fixture::check(&broker);
    broker.kill();
    broker.start_again();
    let end = requests::until("the topic is led", || {
        let answer = requests::list_offset(&mut Raw::connect(&broker), 7, "once", -1);
        (answer.error_code == 0).then_some(answer.offset)
    });
    assert_eq!(end, 4);
}

#[test]
fn the_folder_is_read_after_an_unclean_end_too() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let dir = TempDir::new();
    let data = dir.path().join("data");
    fixture::copy(&fixture::folder(), &data);
    fs::remove_file(data.join("ringlog.clean")).unwrap();
    fixture::check(&Broker::on(&data, fixture::SETTINGS));
}

/// Makes of a file's bytes what a newer version would have written.
type Change = fn(&[u8]) -> Vec<u8>;

#[test]
fn what_a_newer_version_wrote_is_refused_and_left_alone() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let journal = "__cluster_metadata/metadata-00000000000000000000.log";
    let kinds: [(&str, Change); 4] = [
        ("ringlog.meta", newer_text),
        ("ringlog.clean", newer_text),
        ("ringlog.checkpoint", newer_checkpoint),
        (journal, newer_journal),
    ];
    for (file, change) in kinds {
        let dir = TempDir::new();
        let data = changed(&dir, file, change);
        refused(&data, file);
    }
    // A part of the checkpoint, as a crash of the newer version leaves it.
    let dir = TempDir::new();
    let data = changed(&dir, "ringlog.clean", <[u8]>::to_vec);
    let part = newer_checkpoint(&fs::read(data.join("ringlog.checkpoint")).unwrap());
    fs::write(data.join("ringlog.checkpoint.0"), part).unwrap();
    fs::remove_file(data.join("ringlog.clean")).unwrap();
    refused(&data, "ringlog.checkpoint.0");
}

#[track_caller]
fn refused(data: &Path, file: &str) {
    let before = fixture::files(data);
    let ended = process::run(&mut ringlog_serve(data, "127.0.0.1:0"), b"", LIMIT);
    let said = ended.errors();
    assert!(ended.status.code().is_some_and(|code| code != 0), "{file}: it ended with {}", ended.status);
    assert!(said.contains("version") && !said.contains("panicked"), "{file}: {said}");
    let after = fixture::files(data);
    let first = before.iter().zip(&after).find(|(before, after)| before != after).map(|((path, _), _)| path);
    assert!(before.len() == after.len() && first.is_none(), "{file}: the refusal changed {first:?}");
}

#[test]
fn a_partition_that_a_newer_version_wrote_is_refused_and_the_others_are_served() {
    if skip_on_kafka(NOT_KAFKA) {
        return;
    }
    let snapshot = "once-0/00000000000000000003.snapshot";
    let newer_kafka_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replacen('0', "1", 1).into_bytes();
    let newer_snapshot = |bytes: &[u8]| [&[0, 2], &bytes[2..]].concat();
    let kinds: [(&str, Change, bool); 4] = [
        (snapshot, newer_snapshot, true),
        (snapshot, newer_snapshot, false),
        ("once-0/partition.metadata", newer_kafka_text, false),
        ("once-0/leader-epoch-checkpoint", newer_kafka_text, false),
    ];
    for (file, change, is_clean) in kinds {
        let dir = TempDir::new();
        let data = changed(&dir, file, change);
        if !is_clean {
            fs::remove_file(data.join("ringlog.clean")).unwrap();
        }
        let mut broker = Broker::on(&data, fixture::SETTINGS);
        let ours = broker.partition_dir("once", 0);
        let before = fixture::files(&ours);
        let mut raw = Raw::connect(&broker);
        let code = requests::fetch(&mut raw, "once", 0).error_code;
        assert_eq!(code, KAFKA_STORAGE_ERROR, "{file}, clean: {is_clean}");
        assert_eq!(requests::refused(&mut raw, "once", &ringlog_e2e::batch::Batch::of(&["v"])), KAFKA_STORAGE_ERROR);
        assert_eq!(requests::fetch(&mut raw, "plain", 0).error_code, 0);
        let tells = |said: &str| said.contains("cannot be opened") && said.contains("version");
        requests::until("the reason is told", || broker.process().tail().lines().any(tells).then_some(()));
        broker.stop();
        assert_eq!(fixture::files(&ours), before, "{file}, clean: {is_clean}: something was changed");
    }
}
