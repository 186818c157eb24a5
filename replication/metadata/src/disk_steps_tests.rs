#![allow(clippy::unwrap_used)]
use super::*;

fn plan(names: &[&str]) -> RecoveryPlan {
    plan_recovery(names.iter().copied()).unwrap()
}

#[test]
fn an_empty_folder_is_a_first_start() {
    assert_eq!(plan(&[]), RecoveryPlan::default());
    let stale = vec![format!("{}.tmp", journal_name(0))];
    assert_eq!(plan(&["lost+found", &stale[0]]), RecoveryPlan { stale, ..RecoveryPlan::default() });
}

#[test]
fn every_point_of_a_rotation_leaves_one_choice() {
    let (old_log, new_log) = (journal_name(5), journal_name(9));
    let (old_snapshot, new_snapshot) = (snapshot_name(5), snapshot_name(9));
    let chosen = |names: &[&str]| {
        let plan = plan(names);
        (plan.journal.unwrap(), plan.snapshot.unwrap(), plan.stale.len())
    };
    let aside = format!("{new_log}.tmp");
    assert_eq!(chosen(&[&old_log, &old_snapshot]), (old_log.clone(), old_snapshot.clone(), 0));
    assert_eq!(chosen(&[&old_log, &old_snapshot, &new_snapshot]), (old_log.clone(), old_snapshot.clone(), 1));
    assert_eq!(chosen(&[&old_log, &old_snapshot, &new_snapshot, &aside]), (old_log.clone(), old_snapshot.clone(), 2));
    assert_eq!(chosen(&[&old_log, &old_snapshot, &new_snapshot, &new_log]), (new_log.clone(), new_snapshot.clone(), 2));
    assert_eq!(chosen(&[&old_snapshot, &new_snapshot, &new_log]), (new_log.clone(), new_snapshot.clone(), 1));
    assert_eq!(chosen(&[&new_snapshot, &new_log]), (new_log.clone(), new_snapshot.clone(), 0));
}

#[test]
fn a_missing_half_is_named_and_never_an_empty_cluster() {
    let missing = |names: &[&str]| plan_recovery(names.iter().copied()).unwrap_err();
    assert_eq!(missing(&[&journal_name(5)]), MetadataError::MissingFile { name: snapshot_name(5) });
    assert_eq!(missing(&[&snapshot_name(5)]), MetadataError::MissingFile { name: journal_name(5) });
}
