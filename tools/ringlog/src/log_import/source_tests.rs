#![allow(clippy::unwrap_used)]

use model::builder::BatchBuilder;
use runtime::testing::TempDir;

use super::*;

fn batch(base: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.push(1, Some(b"k"), Some(b"v"), &[]);
    let mut bytes = builder.finish();
    model::batch::patch_position(&mut bytes, Offset(base), LeaderEpoch(4));
    bytes
}

/// A folder of Kafka's with partition 0 of topic `t`, two batches in it.
fn kafka(temp: &TempDir, clean: bool) -> PathBuf {
    let path = temp.path().join("kafka");
    fs::create_dir_all(path.join("t-0")).unwrap();
    fs::write(path.join("t-0/00000000000000000007.log"), [batch(7), batch(8)].concat()).unwrap();
    fs::write(path.join("t-0").join(METADATA_FILE), partition_metadata::encode(TopicId([5; 16]))).unwrap();
    fs::write(path.join(LOG_STARTS), "0\n1\nt 0 8\n").unwrap();
    if clean {
        fs::write(path.join(CLEAN), "{}").unwrap();
    }
    path
}

fn read_one(path: &Path) -> Result<Source, String> {
    read(&[path.to_path_buf()], &Wanted { topics: &[], ours: &[] })
}

fn append(path: &Path, bytes: &[u8]) {
    let mut all = fs::read(path).unwrap();
    all.extend_from_slice(bytes);
    fs::write(path, all).unwrap();
}

#[test]
fn a_folder_is_understood_and_the_rest_is_left_out_with_a_sentence() {
    let temp = TempDir::new("import-source");
    let path = kafka(&temp, true);
    let skipped =
        ["t-1.0123-delete", "t-2.0123-future", "t-3.0123-stray", "__consumer_offsets-0", "__cluster_metadata-0"];
    skipped.iter().for_each(|name| fs::create_dir(path.join(name)).unwrap());
    fs::create_dir(path.join("t-2")).unwrap();
    fs::write(path.join("t-2").join(METADATA_FILE), partition_metadata::encode(TopicId([5; 16]))).unwrap();
    let source = read_one(&path).unwrap();
    assert_eq!(source.notes.len(), 4, "{:?}", source.notes);
    assert!(source.notes[3].contains("partitions 1 of topic t"), "{:?}", source.notes);
    let import = source.topics[0].to_import(&[]);
    assert_eq!((import.name.as_str(), import.id, import.partitions.len()), ("t", Some(TopicId([5; 16])), 3));
    let first = import.partitions[0].unwrap();
    assert_eq!(
        (first.log_start_offset, first.last_segment, first.leader_epoch),
        (Some(Offset(8)), Offset(7), LeaderEpoch(4))
    );
    assert_eq!(source.topics[0].partitions[&0].end, Offset(9));
    assert!(import.partitions[1].is_none() && import.partitions[2].is_some());
}

#[test]
fn damage_is_refused_and_a_cut_end_after_an_unclean_stop_left_out() {
    let temp = TempDir::new("import-damage");
    let path = kafka(&temp, true);
    let log = path.join("t-0/00000000000000000007.log");
    append(&log, &batch(9)[..40]);
    assert!(read_one(&path).unwrap_err().contains("is damaged at byte"));
    fs::remove_file(path.join(CLEAN)).unwrap();
    let source = read_one(&path).unwrap();
    assert!(source.notes[0].contains("last 40 bytes are left out"), "{:?}", source.notes);
    assert_eq!(source.topics[0].partitions[&0].end, Offset(9));
    // In the middle it is damage after any stop.
    let mut bytes = [batch(7), batch(8)].concat();
    bytes[30] ^= 1;
    fs::write(&log, bytes).unwrap();
    assert!(read_one(&path).unwrap_err().contains("is damaged at byte 0"));
}

#[test]
fn old_formats_aborted_transactions_and_our_own_folders_are_refused() {
    let temp = TempDir::new("import-refused");
    for magic in [0, 1] {
        let path = kafka(&temp, false);
        let mut old = batch(9);
        old[model::batch::MAGIC_AT] = magic;
        append(&path.join("t-0/00000000000000000007.log"), &old);
        let error = read_one(&path).unwrap_err();
        assert!(error.contains(&format!("record format {magic}")) && error.contains("0007.log"), "{error}");
    }
    let path = kafka(&temp, true);
    fs::write(path.join("t-0/00000000000000000007.txnindex"), [1; 34]).unwrap();
    assert!(read_one(&path).unwrap_err().contains("aborted transactions"));
    fs::write(path.join("t-0/00000000000000000007.txnindex"), []).unwrap();
    assert!(read_one(&path).is_ok());
    fs::write(path.join(LOG_STARTS), "0\n2\nt 0 8\n").unwrap();
    assert!(read_one(&path).unwrap_err().contains(LOG_STARTS));
    fs::write(path.join("ringlog.meta"), "").unwrap();
    assert!(read_one(&path).unwrap_err().contains("data folder of this broker"));
    let nothing = temp.path().join("nothing");
    assert!(read_one(&nothing).unwrap_err().contains("is no folder"));
    fs::create_dir(&nothing).unwrap();
    assert!(read_one(&nothing).unwrap_err().contains("holds no partition"));
}

#[test]
fn topics_are_chosen_by_name() {
    let temp = TempDir::new("import-topics");
    let path = kafka(&temp, true);
    fs::create_dir(path.join("other-0")).unwrap();
    let read_named = |name: &str| read(std::slice::from_ref(&path), &Wanted { topics: &[name.to_string()], ours: &[] });
    let names: Vec<String> = read_named("other").unwrap().topics.into_iter().map(|topic| topic.name).collect();
    assert_eq!(names, ["other"]);
    assert!(read_named("none").unwrap_err().contains("topic none is not in"));
    assert!(read_named("__consumer_offsets").is_err());
}
