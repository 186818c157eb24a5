#![allow(clippy::unwrap_used)]

use super::super::config::ConsumerConfig;
use super::*;

const COORDINATOR: i32 = 4;

fn tp(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

fn config(kinds: &[AssignorKind]) -> ConsumerConfig {
    ConsumerConfig {
        group_id: Some("g".into()),
        partition_assignors: kinds.to_vec(),
        max_poll_interval_ms: 60_000,
        ..ConsumerConfig::default()
    }
}

fn entered(config: &ConsumerConfig) -> GroupCore {
    let mut group = GroupCore::new(config, 100);
    group.enter(0);
    assert_eq!(group.next_step(0), Step::Release(Release::Revoke));
    group.released();
    assert_eq!(group.next_step(0), Step::FindCoordinator);
    assert_eq!(group.next_step(0), Step::Wait, "it is looked for once");
    group.coordinator_found(COORDINATOR);
    group
}

fn identity(generation: i32, member_id: &str) -> Identity {
    Identity { coordinator: COORDINATOR, generation, member_id: member_id.into() }
}

fn join(group: &mut GroupCore, now_ms: i64) -> Identity {
    match group.next_step(now_ms) {
        Step::Join(identity) => identity,
        other => panic!("{other:?}"),
    }
}

fn answer(generation: i32, leader: &str) -> JoinAnswer {
    let subscription = Subscription { topics: vec!["t".into()], ..Subscription::default() };
    let members = if leader == "me" { vec![("me".to_string(), None, subscription.encode())] } else { vec![] };
    JoinAnswer {
        generation,
        protocol: "range".into(),
        leader: leader.into(),
        member_id: "me".into(),
        members,
        ..JoinAnswer::default()
    }
}

fn error(code: ErrorCode) -> ClientError {
    ClientError::Broker { code, what: "test".into(), message: None }
}

fn sync(group: &mut GroupCore, now_ms: i64) -> (Identity, Option<Vec<Member>>) {
    match group.next_step(now_ms) {
        Step::Sync { identity, members, .. } => (identity, members),
        other => panic!("{other:?}"),
    }
}

/// A member of generation 1 with partition 0.
fn stable() -> GroupCore {
    stable_with(&config(&[AssignorKind::Range]))
}

fn stable_with(config: &ConsumerConfig) -> GroupCore {
    let mut group = entered(config);
    let me = join(&mut group, 0);
    let protocol = config.partition_assignors[0].name().to_string();
    group.join_answered(&me, Ok(JoinAnswer { protocol, ..answer(1, "other") }), 0);
    let (me, members) = sync(&mut group, 0);
    assert_eq!((&me, members), (&identity(1, "me"), None));
    group.sync_answered(&me, Ok(vec![tp(0)]), 0);
    assert_eq!(group.next_step(0), Step::HandOver(vec![tp(0)]));
    group.handed_over(false);
    assert!(group.is_stable());
    group
}

#[test]
fn the_leader_gets_its_members_and_a_follower_none() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let me = join(&mut group, 0);
    assert_eq!(me, identity(-1, ""));
    group.join_answered(&me, Ok(answer(1, "me")), 0);
    let (_, members) = sync(&mut group, 0);
    assert_eq!(members.unwrap()[0].id, "me");
    assert!(group.is_leader());
    stable();
}

#[test]
fn a_static_leader_that_must_not_assign_syncs_as_a_follower() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let me = join(&mut group, 0);
    group.join_answered(&me, Ok(JoinAnswer { skip_assignment: true, ..answer(1, "me") }), 0);
    assert_eq!(sync(&mut group, 0).1, None);
}

#[test]
fn a_member_id_that_is_required_is_joined_with() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    join(&mut group, 0);
    group.member_id_given("given");
    assert_eq!(join(&mut group, 0), identity(-1, "given"));
}

#[test]
fn a_join_is_met_by_each_error_in_its_way() {
    use ErrorCode::*;
    for code in [NotCoordinator, CoordinatorNotAvailable] {
        let mut group = entered(&config(&[AssignorKind::Range]));
        let me = join(&mut group, 0);
        group.join_answered(&me, Err(error(code)), 0);
        assert_eq!(group.next_step(99), Step::Wait, "{code:?}");
        assert_eq!(group.next_time_ms(0), Some(100));
        assert_eq!(group.next_step(100), Step::FindCoordinator);
    }
    for code in [CoordinatorLoadInProgress, RebalanceInProgress] {
        let mut group = entered(&config(&[AssignorKind::Range]));
        let me = join(&mut group, 0);
        group.join_answered(&me, Err(error(code)), 0);
        assert_eq!(join(&mut group, 100), me, "{code:?}");
    }
    for code in [UnknownMemberId, IllegalGeneration] {
        let mut group = entered(&config(&[AssignorKind::Range]));
        join(&mut group, 0);
        group.member_id_given("given");
        let me = join(&mut group, 0);
        group.join_answered(&me, Err(error(code)), 0);
        assert_eq!(group.next_step(0), Step::Release(Release::Lost));
        group.released();
        assert_eq!(join(&mut group, 0), identity(-1, ""));
    }
    for code in [FencedInstanceId, InconsistentGroupProtocol, GroupAuthorizationFailed, InvalidSessionTimeout] {
        let mut group = entered(&config(&[AssignorKind::Range]));
        let me = join(&mut group, 0);
        group.join_answered(&me, Err(error(code)), 0);
        assert_eq!(group.next_step(0), Step::Fail(error(code)));
    }
}

#[test]
fn a_sync_that_fails_joins_again() {
    use ErrorCode::*;
    for (code, how) in [
        (RebalanceInProgress, Release::Revoke),
        (NotCoordinator, Release::Revoke),
        (IllegalGeneration, Release::Lost),
        (UnknownMemberId, Release::Lost),
    ] {
        let mut group = entered(&config(&[AssignorKind::Range]));
        let me = join(&mut group, 0);
        group.join_answered(&me, Ok(answer(1, "other")), 0);
        let (me, _) = sync(&mut group, 0);
        group.sync_answered(&me, Err(error(code)), 0);
        assert_eq!(group.next_step(0), Step::Release(how), "{code:?}");
    }
}

#[test]
fn a_connection_that_breaks_finds_the_coordinator_again_and_stays_a_member() {
    let mut group = stable();
    let me = match group.beat(3000) {
        Beat::Send(me) => me,
        other => panic!("{other:?}"),
    };
    group.beat_answered(&me, Err(ClientError::Disconnected { node: COORDINATOR, reason: "test".into() }), 3000);
    assert_eq!(group.next_step(3100), Step::FindCoordinator);
    group.coordinator_found(5);
    assert!(group.is_stable());
    assert_eq!(group.beat(6200), Beat::Send(Identity { coordinator: 5, ..identity(1, "me") }));
}

#[test]
fn a_lost_coordinator_is_found_again_beside_the_program() {
    let mut group = stable();
    let me = identity(1, "me");
    assert_eq!(group.beat(3000), Beat::Send(me.clone()));
    group.beat_answered(&me, Err(error(ErrorCode::NotCoordinator)), 3000);
    assert_eq!(group.beat(3000), Beat::Sleep { until_ms: 3100 }, "with back-off");
    assert_eq!(group.beat(3100), Beat::Find);
    assert_eq!(group.beat(3100), Beat::Sleep { until_ms: 3200 }, "it is looked for once");
    assert_eq!(group.next_step(3200), Step::Wait, "by the poll as well");
    group.coordinator_not_found(error(ErrorCode::CoordinatorNotAvailable), 3300);
    assert_eq!(group.beat(3399), Beat::Sleep { until_ms: 3499 });
    assert_eq!(group.beat(3400), Beat::Find);
    group.coordinator_found(5);
    assert_eq!(group.beat(6200), Beat::Send(Identity { coordinator: 5, ..me }));
}

#[test]
fn a_program_that_is_stuck_is_noticed_while_the_coordinator_is_lost() {
    let mut group = stable();
    group.coordinator_lost(COORDINATOR);
    assert_eq!(group.beat(59_950), Beat::Find);
    assert_eq!(group.beat(59_950), Beat::Sleep { until_ms: 60_001 });
    assert!(matches!(group.beat(60_001), Beat::Sleep { .. }), "there is nobody to say goodbye to");
    assert_eq!(group.next_step(60_001), Step::Release(Release::Lost));
}

#[test]
fn a_member_between_release_and_join_keeps_its_session() {
    let mut group = stable();
    group.want_rejoin();
    group.released();
    assert_eq!(group.beat(3000), Beat::Send(identity(1, "me")));
    group.beat_answered(&identity(1, "me"), Err(error(ErrorCode::RebalanceInProgress)), 3000);
    assert_eq!(join(&mut group, 3000), identity(1, "me"));
}

#[test]
fn a_join_waits_for_the_answer_to_one_that_is_over() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let first = join(&mut group, 0);
    assert_eq!(group.leave(), None, "there is no id to say goodbye with yet");
    group.enter(0);
    group.released();
    assert_eq!(group.next_step(0), Step::Wait);
    assert!(group.is_orphan("me"), "whoever that join became is nobody's");
    group.join_answered(&first, Ok(answer(1, "other")), 0);
    let second = join(&mut group, 0);
    assert_eq!(second, identity(-1, ""), "the first answer was not taken");
    group.join_answered(&second, Ok(answer(2, "other")), 0);
    assert_eq!(sync(&mut group, 0).0, identity(2, "me"));
}

#[test]
fn an_id_given_to_a_join_that_is_over_is_not_used() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    join(&mut group, 0);
    group.leave();
    group.enter(0);
    group.released();
    group.member_id_given("old");
    assert_eq!(join(&mut group, 0), identity(-1, ""));
}

#[test]
fn a_sync_answer_of_an_older_generation_is_not_taken() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let me = join(&mut group, 0);
    group.join_answered(&me, Ok(answer(2, "other")), 0);
    let (me, _) = sync(&mut group, 0);
    group.sync_answered(&identity(1, "me"), Ok(vec![tp(7)]), 0);
    assert_eq!(group.given(), None);
    group.sync_answered(&me, Ok(vec![tp(0)]), 0);
    assert_eq!(group.given(), Some(vec![tp(0)]));
}

#[test]
fn a_heartbeat_that_finds_a_rebalance_lets_go_before_it_joins() {
    let mut group = stable();
    let me = identity(1, "me");
    assert_eq!(group.beat(2999), Beat::Sleep { until_ms: 3000 });
    assert_eq!(group.beat(3000), Beat::Send(me.clone()));
    assert!(matches!(group.beat(6000), Beat::Sleep { .. }), "one at a time");
    assert!(group.may_fetch());
    group.beat_answered(&me, Err(error(ErrorCode::RebalanceInProgress)), 3000);
    assert!(!group.may_fetch());
    assert_eq!(group.next_step(3000), Step::Release(Release::Revoke));
    assert_eq!(group.next_step(3000), Step::Release(Release::Revoke), "no join before that is done");
    assert_eq!(group.committer(), (1, "me".into()), "commits are still the member's");
    group.released();
    assert_eq!(join(&mut group, 3000), me);
}

#[test]
fn a_heartbeat_that_finds_itself_forgotten_loses_its_partitions() {
    for code in [ErrorCode::UnknownMemberId, ErrorCode::IllegalGeneration] {
        let mut group = stable();
        group.beat(3000);
        group.beat_answered(&identity(1, "me"), Err(error(code)), 3000);
        assert_eq!(group.next_step(3000), Step::Release(Release::Lost));
        assert_eq!(group.committer().0, -1);
        group.released();
        assert_eq!(group.previous(), (&[][..], -1));
        assert_eq!(join(&mut group, 3000), identity(-1, ""));
    }
}

#[test]
fn a_fenced_static_member_ends() {
    let mut group = stable();
    group.beat(3000);
    group.beat_answered(&identity(1, "me"), Err(error(ErrorCode::FencedInstanceId)), 3000);
    assert_eq!(group.next_step(3000), Step::Fail(error(ErrorCode::FencedInstanceId)));
}

#[test]
fn a_late_heartbeat_answer_of_an_older_generation_changes_nothing() {
    let mut group = stable();
    group.beat(3000);
    group.want_rejoin();
    group.released();
    let me = join(&mut group, 3000);
    group.join_answered(&me, Ok(answer(2, "other")), 3000);
    group.beat_answered(&identity(1, "me"), Err(error(ErrorCode::IllegalGeneration)), 3000);
    assert_eq!(sync(&mut group, 3000).0, identity(2, "me"));
}

#[test]
fn a_program_that_does_not_poll_leaves_and_loses() {
    let mut group = stable();
    group.polled(1000);
    assert!(matches!(group.beat(61_000), Beat::Send(_)));
    group.beat_answered(&identity(1, "me"), Ok(()), 61_000);
    assert_eq!(group.beat(61_001), Beat::Leave(identity(1, "me")));
    assert!(matches!(group.beat(61_002), Beat::Sleep { .. }));
    assert_eq!(group.next_step(70_000), Step::Release(Release::Lost));
}

#[test]
fn a_static_member_that_does_not_poll_only_falls_silent() {
    let config = ConsumerConfig { group_instance_id: Some("i".into()), ..config(&[AssignorKind::Range]) };
    let mut group = stable_with(&config);
    assert!(matches!(group.beat(60_001), Beat::Sleep { .. }));
    assert_eq!(group.next_step(60_001), Step::Release(Release::Lost));
    assert_eq!(group.leave(), None);
}

#[test]
fn eager_fetches_only_while_stable_and_cooperative_all_along() {
    let mut eager = stable();
    eager.want_rejoin();
    assert!(!eager.may_fetch());
    let mut cooperative = stable_with(&config(&[AssignorKind::CooperativeSticky]));
    cooperative.want_rejoin();
    assert!(cooperative.may_fetch() && cooperative.is_cooperative());
    let mixed = GroupCore::new(&config(&[AssignorKind::CooperativeSticky, AssignorKind::Range]), 100);
    assert!(!mixed.is_cooperative(), "one eager assignor makes the member eager");
}

#[test]
fn a_cooperative_member_that_let_go_joins_again() {
    let mut group = stable_with(&config(&[AssignorKind::CooperativeSticky]));
    group.want_rejoin();
    group.released();
    let me = join(&mut group, 0);
    group.join_answered(&me, Ok(JoinAnswer { protocol: "cooperative-sticky".into(), ..answer(2, "o") }), 0);
    let (me, _) = sync(&mut group, 0);
    group.sync_answered(&me, Ok(vec![]), 0);
    assert_eq!(group.next_step(0), Step::HandOver(vec![]));
    group.handed_over(true);
    assert_eq!(group.next_step(0), Step::Release(Release::Revoke));
    group.released();
    assert_eq!(join(&mut group, 0), identity(2, "me"));
}

#[test]
fn leaving_says_goodbye_once() {
    let mut group = stable();
    assert_eq!(group.leave(), Some(identity(1, "me")));
    assert_eq!(group.leave(), None);
    assert_eq!(group.next_step(0), Step::Wait);
    assert_eq!(group.committer(), (-1, String::new()));
}

#[test]
fn an_assignor_that_was_not_offered_is_refused() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let me = join(&mut group, 0);
    group.join_answered(&me, Ok(JoinAnswer { protocol: "mine".into(), ..answer(1, "o") }), 0);
    assert!(matches!(group.next_step(0), Step::Fail(ClientError::BadAnswer { .. })));
}

#[test]
fn a_subscription_that_cannot_be_read_is_one_to_nothing() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let me = join(&mut group, 0);
    let mut given = answer(1, "me");
    given.members.push(("odd".into(), None, bytes::Bytes::from_static(&[0, 1, 255])));
    group.join_answered(&me, Ok(given), 0);
    let members = sync(&mut group, 0).1.unwrap();
    assert_eq!((members.len(), members[1].topics.len()), (2, 0));
}

#[test]
fn a_coordinator_that_cannot_be_found_is_looked_for_again() {
    let mut group = GroupCore::new(&config(&[AssignorKind::Range]), 100);
    group.enter(0);
    group.released();
    assert_eq!(group.next_step(0), Step::FindCoordinator);
    group.coordinator_not_found(error(ErrorCode::CoordinatorNotAvailable), 0);
    assert_eq!((group.next_step(50), group.next_step(100)), (Step::Wait, Step::FindCoordinator));
    group.coordinator_not_found(error(ErrorCode::GroupAuthorizationFailed), 0);
    assert!(matches!(group.next_step(0), Step::Fail(_)));
}

#[test]
fn a_join_that_is_answered_after_leaving_is_an_orphan() {
    let mut group = entered(&config(&[AssignorKind::Range]));
    let me = join(&mut group, 0);
    assert!(!group.is_orphan("me"));
    group.leave();
    assert!(group.is_orphan("me"));
    group.join_answered(&me, Ok(answer(1, "other")), 0);
    assert_eq!(group.next_step(0), Step::Wait);
    assert!(!stable().is_orphan("me"));
}
