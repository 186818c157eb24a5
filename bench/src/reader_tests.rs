#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use model::builder::BatchBuilder;

use super::*;
use crate::drive::drive;
use crate::fake_broker::{asked, fetched as answer, serve};

type Asked = Arc<Mutex<Vec<(i32, i32, Vec<(i32, i64)>)>>>;

fn batch(base: i64, records: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(model::Offset(base));
    (0..records).for_each(|_| builder.push(1, None, Some(b"value"), &[]));
    builder.finish()
}

fn plan(port: u16, ends: Vec<i64>) -> Plan {
    Plan {
        port,
        topic: "t".to_owned(),
        shared: Arc::new(Shared::default()),
        begun: Instant::now(),
        from: Arc::new(vec![0; ends.len()]),
        until: Some(Arc::new(ends)),
        notes_arrivals: true,
    }
}

/// A broker that gives these answers in turns and keeps what it was asked.
fn broker(answers: Vec<Vec<u8>>) -> (u16, Asked) {
    let (seen, mut answers) = (Asked::default(), answers.into_iter());
    let kept = seen.clone();
    let (port, _) = serve(move |frame| {
        kept.lock().unwrap().push(asked(&frame));
        answers.next().unwrap()
    });
    (port, seen)
}

#[test]
fn a_session_names_only_partitions_that_moved() {
    let (port, seen) = broker(vec![
        answer(9, 0, vec![(0, 0, batch(0, 3))]),
        answer(9, 0, vec![(2, 0, batch(0, 2)), (0, 0, batch(3, 1))]),
    ]);
    // Two readers share four partitions; this one has the even ones.
    let plan = plan(port, vec![4, 0, 2, 0]);
    let mut readers = [Reader::connect(&plan, 0, 2).unwrap()];
    drive(&mut readers, &plan.shared).unwrap();
    assert_eq!((readers[0].records, readers[0].polls), (6, 2));
    assert_eq!(*seen.lock().unwrap(), [(0, 0, vec![(0, 0), (2, 0)]), (9, 1, vec![(0, 3)])]);
    let arrivals: Vec<_> = readers[0].arrivals.iter().map(|a| (a.partition, a.next_offset)).collect();
    assert_eq!(arrivals, [(0, 3), (2, 2), (0, 4)]);
}

#[test]
fn a_forgotten_session_is_begun_anew_and_none_asks_for_everything() {
    let (port, seen) = broker(vec![
        answer(9, 0, vec![(0, 0, batch(0, 1))]),
        answer(0, FETCH_SESSION_ID_NOT_FOUND, vec![]),
        answer(0, 0, vec![(0, 0, batch(1, 1))]),
        answer(0, 0, vec![(1, 0, batch(0, 1))]),
    ]);
    let plan = plan(port, vec![2, 1]);
    let mut readers = [Reader::connect(&plan, 0, 1).unwrap()];
    drive(&mut readers, &plan.shared).unwrap();
    assert_eq!(readers[0].records, 3);
    let named: Vec<_> = seen.lock().unwrap().iter().map(|(id, epoch, named)| (*id, *epoch, named.clone())).collect();
    assert_eq!(named[2], (0, 0, vec![(0, 1), (1, 0)]));
    assert_eq!(named[3], (0, 0, vec![(0, 2), (1, 0)]));
}

#[test]
fn an_error_of_a_partition_fails_the_run() {
    let (port, _) = broker(vec![answer(9, 0, vec![(0, 3, Vec::new())])]);
    let plan = plan(port, vec![1]);
    let mut readers = [Reader::connect(&plan, 0, 1).unwrap()];
    let error = drive(&mut readers, &plan.shared).unwrap_err();
    assert!(error.to_string().contains("partition 0 failed: error 3"), "{error}");
}
