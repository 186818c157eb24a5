//! The last look: everything that is told once more, and every partition from its start to its high watermark. Damage may be
//! refused; it is not skipped, and what lies behind it is read.

use std::ops::Range;

use client::admin::Admin;
use client::consumer::{Consumer, ConsumerConfig};
use client::{Client, ClientError, Destination, TopicPartition};
use model::ErrorCode;
use runtime::sim;
use wire::generated::fetch::{FetchPartition, FetchRequest, FetchTopic};

use super::clients::Staged;
use super::reader::{consumer, settings};
use super::{group, growth, watcher};

/// Reads in a row that may bring nothing where nothing is damaged: the broker has just begun.
const PATIENCE: u32 = 10;
/// Times that something is asked: the network may lose a request and its answer, which takes longer than they are waited for.
const TRIES: u32 = 3;

pub async fn last_look(stage: &Staged) {
    let client = stage.client("last look");
    let admin = Admin::new(client.clone());
    assert!(one_of(async || growth::look(stage, &admin, true).await).await, "the topics are not told");
    let all = stage.history.borrow().all();
    let observer = consumer(&client, group::member_settings());
    let ends = async || {
        let told = watcher::look_at(stage, &admin, &all).await;
        told.is_ok() || stage.plan.is_damaged
    };
    assert!(one_of(ends).await, "a partition does not tell its end");
    assert!(one_of(async || group::look(stage, &observer).await).await, "the group's commits are not told");
    for at in &all {
        read_whole(stage, &client, at).await;
    }
    stage.history.borrow().check_order();
}

async fn one_of(attempt: impl AsyncFn() -> bool) -> bool {
    for _ in 0..TRIES {
        if attempt().await {
            return true;
        }
    }
    false
}

/// Start and high watermark; `None` where damage keeps them from being told.
async fn bounds(stage: &Staged, reader: &Consumer, at: &TopicPartition) -> Option<(i64, i64)> {
    let one = std::slice::from_ref(at);
    let told = async {
        let start = reader.beginning_offsets(one).await?;
        Ok::<_, ClientError>((start, reader.end_offsets(one).await?))
    };
    match told.await {
        Ok((start, end)) => Some((start.get(at).copied().unwrap_or(0), end.get(at).copied().unwrap_or(0))),
        Err(error) => {
            assert!(stage.plan.is_damaged, "{}-{}: the last look is refused: {error}", at.topic, at.partition);
            None
        }
    }
}

async fn read_whole(stage: &Staged, client: &Client, at: &TopicPartition) {
    let reader = consumer(client, ConsumerConfig { ..settings() });
    let name = format!("{}-{}", at.topic, at.partition);
    let Some((start, end)) = bounds(stage, &reader, at).await else { return };
    if let Err(error) = reader.assign(vec![at.clone()]) {
        panic!("{name} cannot be read: {error}");
    }
    let (mut next, mut refused) = (start, Vec::<Range<i64>>::new());
    while next < end {
        if let Err(error) = reader.seek(at, next) {
            panic!("{name} cannot be read: {error}");
        }
        match read_on(stage, &reader, at, next, end).await {
            Ok(()) => break,
            Err((stopped, why)) => {
                assert!(stage.plan.is_damaged, "{name}: nothing is read at offset {stopped} before {end}: {why}");
                let code = fetch_code(client, at, stopped).await;
                let says = code.map(ErrorCode::from_code);
                assert!(
                    says == Ok(Some(ErrorCode::KafkaStorageError)),
                    "{name}: offset {stopped} is refused with {says:?}"
                );
                next = behind(&mut refused, stopped, end);
                sim::note("refused", [stopped as u64, next as u64], || format!("{name} {stopped}..{next}: {why}"));
            }
        }
    }
    // Retention goes on meanwhile.
    let Some((start, _)) = bounds(stage, &reader, at).await else { return };
    stage.history.borrow_mut().partition(at).close(start, end, &refused);
}

/// Reads as far as it goes. `Err`: where it stopped, and what was said last.
async fn read_on(
    stage: &Staged,
    reader: &Consumer,
    at: &TopicPartition,
    mut next: i64,
    end: i64,
) -> Result<(), (i64, String)> {
    let (mut empty, mut said) = (0, String::new());
    while next < end {
        match reader.poll(1_000).await {
            Ok(records) if !records.is_empty() => {
                let mut history = stage.history.borrow_mut();
                for record in &records {
                    history.partition(at).follow(next, record.offset, false);
                    history.see(record);
                    next = record.offset + 1;
                }
                empty = 0;
                continue;
            }
            Ok(_) => {}
            Err(error) => said = error.to_string(),
        }
        empty += 1;
        if empty > PATIENCE {
            return Err((next, said));
        }
    }
    Ok(())
}

/// What a fetch of this offset is answered with: a consumer asks again and again instead of telling.
async fn fetch_code(client: &Client, at: &TopicPartition, fetch_offset: i64) -> Result<i16, ClientError> {
    let partition = FetchPartition {
        partition: at.partition,
        fetch_offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic: &at.topic, partitions: vec![partition], ..FetchTopic::default() };
    let request = FetchRequest { min_bytes: 1, topics: vec![topic], ..FetchRequest::default() };
    // By name, and without a session.
    let answer = client.ask(Destination::Any, Some(4..=12), &request).await?;
    let answer = answer.decode()?;
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    Ok(partitions.map(|one| one.error_code).next().unwrap_or(answer.error_code))
}

/// Where to look for what is sound behind `stopped`: one offset further, and twice as far each time that is refused too.
fn behind(refused: &mut Vec<Range<i64>>, stopped: i64, end: i64) -> i64 {
    match refused.last_mut() {
        Some(last) if last.end == stopped => {
            last.end = (stopped + last.end - last.start).min(end);
            last.end
        }
        _ => {
            refused.push(stopped..stopped + 1);
            stopped + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_way_each_time_and_never_beyond_the_end() {
        let (mut refused, mut at) = (Vec::new(), 5);
        for expected in [6, 7, 9, 12] {
            at = behind(&mut refused, at, 12);
            assert_eq!(at, expected);
        }
        assert_eq!(behind(&mut refused, 20, 30), 21);
        assert_eq!(refused, [5..12, 20..21]);
    }
}
