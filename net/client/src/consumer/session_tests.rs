use super::*;

fn partition(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

fn wanted(index: i32, offset: i64) -> (TopicPartition, Wanted) {
    (partition(index), Wanted { topic_id: [7; 16], fetch_offset: offset, leader_epoch: 1, generation: 1 })
}

fn plan(session: &mut FetchSession, wanted: Vec<(TopicPartition, Wanted)>) -> PlannedFetch {
    session.plan(5, 17, wanted, 100)
}

#[test]
fn the_first_request_is_full_and_the_next_names_what_moved() {
    let mut session = FetchSession::default();
    let full = plan(&mut session, vec![wanted(0, 0), wanted(1, 0)]);
    assert_eq!((full.session_id, full.session_epoch, full.counts()), (0, 0, (2, 0)));
    assert!(session.answered(9));
    let moved = plan(&mut session, vec![wanted(0, 0), wanted(1, 4)]);
    assert_eq!((moved.session_id, moved.session_epoch, moved.counts()), (9, 1, (1, 0)));
    assert!(session.answered(9));
    let same = plan(&mut session, vec![wanted(0, 0), wanted(1, 4)]);
    assert_eq!((same.session_epoch, same.counts()), (2, (0, 0)));
}

#[test]
fn what_is_no_longer_wanted_is_forgotten_and_can_come_back() {
    let mut session = FetchSession::default();
    plan(&mut session, vec![wanted(0, 0), wanted(1, 0)]);
    session.answered(9);
    assert_eq!(plan(&mut session, vec![wanted(1, 0)]).counts(), (0, 1));
    session.answered(9);
    assert_eq!(plan(&mut session, vec![wanted(0, 0), wanted(1, 0)]).counts(), (1, 0));
}

#[test]
fn a_topic_made_anew_is_forgotten_by_its_old_id() {
    let mut session = FetchSession::default();
    plan(&mut session, vec![wanted(0, 5)]);
    session.answered(9);
    let anew = Wanted { topic_id: [8; 16], fetch_offset: 0, leader_epoch: 0, generation: 2 };
    let planned = plan(&mut session, vec![(partition(0), anew)]);
    assert_eq!(planned.counts(), (1, 1));
    assert_eq!((planned.forgotten[0].1, planned.topics[0].1), ([7; 16], [8; 16]));
}

#[test]
fn a_topic_made_anew_is_not_forgotten_where_it_goes_by_name() {
    let mut session = FetchSession::default();
    session.plan(5, 12, vec![wanted(0, 5)], 100);
    session.answered(9);
    let anew = Wanted { topic_id: [8; 16], fetch_offset: 0, leader_epoch: 0, generation: 2 };
    let planned = session.plan(5, 12, vec![(partition(0), anew.clone())], 100);
    assert_eq!((planned.session_epoch, planned.counts()), (1, (1, 0)));
    assert_eq!(session.asked("t", &[0; 16], 0), Some((partition(0), &anew)));
}

#[test]
fn a_session_in_doubt_is_closed_by_beginning_again() {
    let mut session = FetchSession::default();
    plan(&mut session, vec![wanted(0, 0)]);
    session.answered(9);
    session.begin_again();
    let full = plan(&mut session, vec![wanted(0, 0)]);
    assert_eq!((full.session_id, full.session_epoch, full.counts()), (9, 0, (1, 0)));
    session.answered(10);
    session.forgotten_by_broker();
    let full = plan(&mut session, vec![wanted(0, 0)]);
    assert_eq!((full.session_id, full.session_epoch), (0, 0));
}

#[test]
fn an_answer_of_another_session_is_refused() {
    let mut session = FetchSession::default();
    plan(&mut session, vec![wanted(0, 0)]);
    session.answered(9);
    plan(&mut session, vec![wanted(0, 0)]);
    assert!(!session.answered(4));
    assert_eq!(plan(&mut session, vec![wanted(0, 0)]).session_epoch, 0);
}

#[test]
fn a_broker_without_room_for_a_session_is_asked_in_full_each_time() {
    let mut session = FetchSession::default();
    for _ in 0..3 {
        let planned = plan(&mut session, vec![wanted(0, 0)]);
        assert_eq!((planned.session_epoch, planned.counts()), (0, (1, 0)));
        session.answered(0);
    }
}

#[test]
fn a_topic_without_id_caps_the_version_and_begins_again() {
    let mut session = FetchSession::default();
    assert_eq!(plan(&mut session, vec![wanted(0, 0)]).versions(), 13..=18);
    session.answered(9);
    let mut nameless = wanted(1, 0);
    nameless.1.topic_id = [0; 16];
    let planned = plan(&mut session, vec![wanted(0, 0), nameless]);
    assert_eq!((planned.versions(), planned.session_epoch, planned.counts()), (4..=12, 0, (2, 0)));
    assert!(session.asked("t", &[0; 16], 1).is_some());
    assert!(session.asked("u", &[0; 16], 1).is_none());
}

#[test]
fn before_sessions_there_are_none() {
    let mut session = FetchSession::default();
    for _ in 0..2 {
        let planned = session.plan(5, 6, vec![wanted(0, 0)], 100);
        assert_eq!((planned.session_id, planned.session_epoch, planned.counts()), (0, -1, (1, 0)));
        session.answered(0);
    }
}

#[test]
fn epochs_wrap_to_one() {
    let mut session = FetchSession { id: 9, epoch: i32::MAX, ..FetchSession::default() };
    assert!(session.answered(9));
    assert_eq!(session.epoch, 1);
}

#[test]
fn answers_are_matched_by_id() {
    let mut session = FetchSession::default();
    plan(&mut session, vec![wanted(3, 8)]);
    assert_eq!(session.asked("", &[7; 16], 3).map(|(_, asked)| asked.fetch_offset), Some(8));
    assert!(session.asked("", &[7; 16], 4).is_none());
    assert!(session.asked("t", &[0; 16], 3).is_none());
}
