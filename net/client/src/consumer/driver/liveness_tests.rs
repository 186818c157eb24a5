//! What has to go on whatever the program, the coordinator or a slow answer does.

use std::cell::Cell;

use super::*;
use crate::consumer::commit::outlived;
use crate::consumer::group::{JoinAnswer, Step};

fn assigned_by_hand() -> ConsumerConfig {
    ConsumerConfig { group_id: None, ..config() }
}

#[test]
fn polls_that_do_not_wait_get_their_records() {
    with(script("range", &[]), assigned_by_hand(), |consumer, _| async move {
        consumer.assign(vec![TopicPartition::new("t", 0)]).unwrap();
        let give_up_ms = now_ms() + 10_000;
        let mut got = 0;
        while got < 3 && now_ms() < give_up_ms {
            got += consumer.poll(0).await.unwrap().len();
        }
        assert_eq!(got, 3);
    });
}

#[test]
fn polls_that_fail_at_once_let_others_run() {
    with(script("range", &[]), assigned_by_hand(), |consumer, _| async move {
        let turns = Rc::new(Cell::new(0));
        let counted = turns.clone();
        spawn("another", async move {
            loop {
                runtime::task::yield_now().await;
                counted.set(counted.get() + 1);
            }
        });
        let before = turns.get();
        for _ in 0..10 {
            assert!(consumer.poll(0).await.is_err(), "nothing is assigned");
        }
        consumer.close().await;
        for _ in 0..10 {
            assert_eq!(consumer.poll(0).await, Err(ClientError::Closed));
        }
        assert!(turns.get() >= before + 20, "{} turns", turns.get() - before);
    });
}

#[test]
fn heartbeats_go_on_behind_a_coordinator_that_moved_while_the_program_works() {
    let (events, broker) = with(script("range", &[&[0]]), config(), |consumer, script| async move {
        consumer.subscribe(&["t"], None).unwrap();
        poll_until(&consumer, 3, || true).await;
        heartbeats_fail(&script, 16);
        let give_up_ms = now_ms() + 10_000;
        let found =
            |script: &Arc<Mutex<Script>>| script.lock().unwrap().events.iter().filter(|one| *one == "find").count();
        while found(&script) < 2 && now_ms() < give_up_ms {
            runtime::clock::sleep(Duration::from_millis(10)).await;
        }
        script.lock().unwrap().heartbeat_errors.clear();
        runtime::clock::sleep(Duration::from_millis(300)).await;
        assert!(consumer.inner.group.borrow().coordinator().is_some());
    });
    assert_eq!(events[..3], ["find", "join 1", "find"]);
    assert!(broker.asked_for(ApiKey::Heartbeat).len() >= 4, "they go on");
}

#[test]
fn a_commit_that_is_not_answered_in_time_is_not_waited_for_and_keeps_its_turn() {
    let begin = Script { commit_delay_ms: 400, ..script("range", &[]) };
    let (events, _) = with(begin, config(), |consumer, script| async move {
        consumer.assign(vec![TopicPartition::new("t", 0)]).unwrap();
        poll_until(&consumer, 3, || true).await;
        let offset = |offset| [(TopicPartition::new("t", 0), crate::consumer::OffsetAndMetadata::new(offset))].into();
        let began_ms = now_ms();
        let late = consumer.inner.commit_and_wait(offset(1), 50).await;
        assert_eq!(late, Err(ClientError::TimedOut { what: "a commit", after_ms: 50 }));
        assert!(now_ms() < began_ms + 350, "waited {} ms", now_ms() - began_ms);
        consumer.commit_sync(Some(offset(2))).await.unwrap();
        assert!(now_ms() >= began_ms + 350, "behind the one before");
        assert_eq!(script.lock().unwrap().committed, [(-1, 0, 1), (-1, 0, 2)]);
    });
    assert_eq!(events, ["find", "commit -1 0@1", "commit -1 0@2"]);
}

/// The group begins its second generation, as answers would have it.
fn begin_second_generation(consumer: &Consumer) {
    let mut group = consumer.inner.group.borrow_mut();
    group.want_rejoin();
    group.released();
    let Step::Join(me) = group.next_step(now_ms()) else { panic!("a join is due") };
    let joined = JoinAnswer {
        generation: 2,
        protocol: "range".into(),
        leader: "other".into(),
        member_id: "m".into(),
        ..JoinAnswer::default()
    };
    group.join_answered(&me, Ok(joined), now_ms());
}

#[test]
fn a_commit_that_outlives_its_generation_is_not_sent_in_the_next() {
    let config = ConsumerConfig { enable_auto_commit: false, ..config() };
    let begin = Script { commit_errors: vec![14; 1000], ..script("range", &[&[0]]) };
    let (events, _) = with(begin, config, |consumer, script| async move {
        consumer.subscribe(&["t"], None).unwrap();
        poll_until(&consumer, 3, || true).await;
        let committing = consumer.clone();
        let commit = spawn("commit", async move { committing.commit_sync(None).await });
        poll_until(&consumer, 0, has(&script, "commit 1 0@3")).await;
        begin_second_generation(&consumer);
        assert_eq!(commit.join().await, Some(Err(outlived())));
    });
    assert!(!events.iter().any(|one| one.starts_with("commit 2")), "{events:?}");
}

#[test]
fn a_commit_that_waited_for_its_turn_too_long_is_not_sent_in_the_next_generation() {
    let config = ConsumerConfig { enable_auto_commit: false, ..config() };
    let begin = Script { commit_delay_ms: 200, ..script("range", &[&[0]]) };
    let (events, _) = with(begin, config, |consumer, script| async move {
        consumer.subscribe(&["t"], None).unwrap();
        poll_until(&consumer, 3, || true).await;
        consumer.commit_async(None).unwrap();
        poll_until(&consumer, 0, has(&script, "commit 1 0@3")).await;
        consumer.commit_async(None).unwrap();
        let committing = consumer.clone();
        let commit = spawn("commit", async move { committing.commit_sync(None).await });
        runtime::task::yield_now().await;
        begin_second_generation(&consumer);
        assert_eq!(commit.join().await, Some(Err(outlived())));
        consumer.inner.flush_commits(now_ms() + 5_000).await;
        assert_eq!(consumer.take_commit_error(), Some(outlived()));
    });
    assert_eq!(events.iter().filter(|one| one.starts_with("commit")).count(), 1, "{events:?}");
}

#[test]
fn a_commit_of_nothing_is_done_before_there_is_a_membership() {
    let (events, _) = with(script("range", &[&[0]]), config(), |consumer, _| async move {
        consumer.subscribe(&["t"], None).unwrap();
        assert_eq!(consumer.commit_sync(None).await, Ok(()));
    });
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn an_answer_that_leaves_a_partition_out_is_asked_for_again() {
    let config = ConsumerConfig { auto_offset_reset: AutoOffsetReset::None, ..config() };
    let begin = Script { left_out: 2, ..script("range", &[]) };
    let (_, broker) = with(begin, config, |consumer, _| async move {
        let tp = TopicPartition::new("t", 0);
        consumer.assign(vec![tp.clone()]).unwrap();
        let mut told = None;
        while told.is_none() {
            told = consumer.poll(50).await.err();
        }
        let text = told.unwrap().to_string();
        assert!(text.contains("no committed offset"), "{text}");
        assert!(consumer.committed(&[tp]).await.unwrap().is_empty());
    });
    assert_eq!(broker.asked_for(ApiKey::OffsetFetch).len(), 4);
}

#[test]
fn committed_offsets_that_are_left_out_are_asked_for_again() {
    let begin = Script { left_out: 2, ..script("range", &[]) };
    let (_, broker) = with(begin, config(), |consumer, _| async move {
        assert!(consumer.committed(&[TopicPartition::new("t", 0)]).await.unwrap().is_empty());
    });
    assert_eq!(broker.asked_for(ApiKey::OffsetFetch).len(), 3);
}

#[test]
fn the_answer_to_a_join_that_was_left_is_not_taken_for_the_next() {
    let begin = Script { is_first_join_slow: true, ..script("range", &[&[], &[1]]) };
    let (events, _) = with(begin, config(), |consumer, script| async move {
        consumer.subscribe(&["t"], None).unwrap();
        poll_until(&consumer, 0, has(&script, "join early")).await;
        consumer.unsubscribe().await.unwrap();
        consumer.subscribe(&["t"], None).unwrap();
        let wanted = [TopicPartition::new("t", 1)];
        poll_until(&consumer, 0, || consumer.assignment() == wanted).await;
    });
    assert_eq!(events[..4], ["find", "join early", "leave early", "join 2"]);
}

#[test]
fn a_follower_that_is_down_does_not_stall_its_partitions() {
    let address = crate::client::fake_broker::nobody();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let config = ConsumerConfig { client_rack: Some("r".into()), ..assigned_by_hand() };
    let begin = Script { follower_port: Some(port), ..script("range", &[]) };
    let (_, broker) = with(begin, config, |consumer, _| async move {
        consumer.assign(vec![TopicPartition::new("t", 0)]).unwrap();
        assert_eq!(poll_until(&consumer, 3, || true).await, 3);
    });
    let racks: Vec<bool> = broker
        .asked_for(ApiKey::Fetch)
        .iter()
        .map(|seen| decoded::<FetchRequest<'_>>(seen).rack_id.is_empty())
        .collect();
    assert_eq!(racks[..2], [false, true], "the leader is asked for the follower once, then for the records");
}
