use super::*;

#[test]
fn columns_line_up_and_numbers_are_set_to_the_right() {
    let mut table = Table::new(&["topic", "partitions", "note"]);
    table.row(vec!["clicks".into(), "64".into(), "ünï".into()]);
    table.row(vec!["a".into(), "1".into(), String::new()]);
    assert_eq!(table.render(), "topic   partitions  note\nclicks          64  ünï\na                1\n");
}

#[test]
fn an_empty_table_is_its_headings() {
    assert_eq!(Table::new(&["a", "b"]).render(), "a  b\n");
    assert!(Table::new(&["a"]).is_empty());
}

#[test]
fn negative_and_missing_numbers_are_numbers_and_dates_are_not() {
    let mut table = Table::new(&["n", "t"]);
    table.row(vec!["-1".into(), "2026-11-29".into()]);
    table.row(vec!["-".into(), "x".into()]);
    assert_eq!(table.render(), " n  t\n-1  2026-11-29\n -  x\n");
}
