#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn the_committed_output_is_what_the_schema_says() {
    assert_eq!(run(&["--check".to_owned()]), Ok(()));
}

#[test]
fn the_check_sees_a_changed_and_a_left_over_file() {
    let folder = std::env::temp_dir().join(format!("xtask-generate-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let files = BTreeMap::from([("a.rs".to_owned(), "// a\n".to_owned())]);
    write(&folder, &files).unwrap();
    assert_eq!(compare(&folder, &files), Ok(()));
    fs::write(folder.join("a.rs"), "// b\n").unwrap();
    assert!(compare(&folder, &files).unwrap_err().contains("a.rs is not what the schema says"));
    write(&folder, &files).unwrap();
    fs::write(folder.join("old.rs"), "").unwrap();
    assert!(compare(&folder, &files).unwrap_err().contains("old.rs is not generated any more"));
    write(&folder, &files).unwrap();
    assert_eq!(compare(&folder, &files), Ok(()));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn names_become_rusts() {
    assert_eq!(names::snake("LogAppendTimeMs"), "log_append_time_ms");
    assert_eq!(names::snake("timeoutMs"), "timeout_ms");
    assert_eq!(names::snake("V3AndBelowTopics"), "v3_and_below_topics");
    assert_eq!(names::field("Match"), "r#match");
}

#[test]
fn words_are_told_from_parts_of_words() {
    assert!(names::uses("a = version;", "version"));
    assert!(!names::uses("a = min_version + self.version;", "version"));
    assert_eq!(names::parameter("nothing", "reader"), "_reader");
}

#[test]
fn neighbours_under_one_condition_share_it() {
    let when = |text: &str| Some(text.to_owned());
    let source = names::guarded(vec![
        (None, "a;".to_owned()),
        (when("c"), "b;".to_owned()),
        (when("c"), "d;".to_owned()),
        (when("e"), "f;".to_owned()),
    ]);
    assert_eq!(source, "a;if c {\nb;d;}\nif e {\nf;}\n");
}
