//! Asks for offsets: those that positions wait for, in the background; those that the program asks for, at once.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::ErrorCode;
use runtime::clock::{now_ms, sleep_until_ms};
use runtime::spawn;

use super::Inner;
use crate::client::Destination;
use crate::consumer::fetcher::is_staleness;
use crate::consumer::offsets::{self, Listed, OffsetAndTimestamp, Question};
use crate::consumer::positions::{Lookup, LookupKind, Validated};
use crate::{ClientError, TopicPartition};

impl Inner {
    /// Begins every lookup that is due.
    pub fn look_up(self: &Rc<Inner>) {
        let cluster = self.client.cluster();
        let due = {
            let mut fetcher = self.fetcher.borrow_mut();
            fetcher.observe(&cluster);
            fetcher.positions.due_lookups(now_ms())
        };
        let mut committed = Vec::new();
        let mut resets: BTreeMap<i32, Vec<Lookup>> = BTreeMap::new();
        let mut validations: BTreeMap<i32, Vec<Lookup>> = BTreeMap::new();
        for lookup in due {
            match lookup.kind {
                LookupKind::Committed => committed.push(lookup),
                LookupKind::Reset(_) => resets.entry(lookup.leader).or_default().push(lookup),
                LookupKind::Validation { .. } => validations.entry(lookup.leader).or_default().push(lookup),
            }
        }
        if !committed.is_empty() {
            let inner = self.clone();
            spawn("consumer-committed", async move { inner.look_up_committed(committed).await });
        }
        for (leader, lookups) in resets {
            let inner = self.clone();
            spawn("consumer-reset", async move { inner.look_up_resets(leader, lookups).await });
        }
        for (leader, lookups) in validations {
            let inner = self.clone();
            spawn("consumer-validate", async move { inner.validate(leader, lookups).await });
        }
    }

    async fn look_up_committed(&self, lookups: Vec<Lookup>) {
        let partitions: Vec<TopicPartition> = lookups.iter().map(|lookup| lookup.partition.clone()).collect();
        let mut answer = self.fetch_committed_once(&partitions).await;
        for lookup in &lookups {
            let found = match &mut answer {
                Ok(fetched) => fetched.remove(&lookup.partition),
                Err(error) => Some(Err(error.clone())),
            };
            let mut fetcher = self.fetcher.borrow_mut();
            let Some(found) = found else {
                // An answer without the partition says nothing about it, least of all that nothing is committed.
                fetcher.positions.lookup_failed(lookup, self.backoff_until_ms());
                continue;
            };
            match found {
                Ok(committed) => {
                    let committed = committed.map(|found| (found.offset, found.leader_epoch));
                    let policy = self.config.auto_offset_reset;
                    if !fetcher.positions.committed_found(lookup, committed, policy) {
                        fetcher.push_fault(lookup.partition.clone(), nothing_committed(&lookup.partition));
                    }
                }
                Err(error) => {
                    fetcher.positions.lookup_failed(lookup, self.backoff_until_ms());
                    if crate::consumer::commit::commit_fate(&error) == crate::consumer::commit::CommitFate::Failed {
                        fetcher.push_fault(lookup.partition.clone(), error);
                    }
                }
            }
        }
        self.wake();
    }

    async fn look_up_resets(&self, leader: i32, lookups: Vec<Lookup>) {
        let questions: Vec<Question> = lookups
            .iter()
            .filter_map(|lookup| match lookup.kind {
                LookupKind::Reset(to) => Some(Question {
                    partition: lookup.partition.clone(),
                    leader_epoch: lookup.leader_epoch,
                    timestamp_ms: to.timestamp(),
                }),
                _ => None,
            })
            .collect();
        let listed = self.list_once(leader, &questions).await;
        for lookup in &lookups {
            match listed.get(&lookup.partition) {
                Some(Ok(Some(found))) => {
                    let offset = found.offset;
                    self.fetcher.borrow_mut().positions.reset_found(lookup, offset);
                }
                Some(Err(error)) => self.lookup_failed(lookup, error),
                _ => self.lookup_failed(lookup, &no_offset(&lookup.partition)),
            }
        }
        self.wake();
    }

    async fn validate(&self, leader: i32, lookups: Vec<Lookup>) {
        let request = offsets::epoch_request(&lookups);
        let answer = self.client.ask(Destination::Node(leader), Some(offsets::EPOCH_VERSIONS), &request).await;
        let ends = answer.and_then(|answer| answer.decode().map(|answer| offsets::epoch_outcome(&answer)));
        for lookup in &lookups {
            match &ends {
                Ok(ends) => match ends.get(&lookup.partition) {
                    Some(Ok(end)) => self.validated(lookup, *end),
                    Some(Err(error)) => self.lookup_failed(lookup, error),
                    None => self.lookup_failed(lookup, &no_offset(&lookup.partition)),
                },
                // An old broker: there is nothing to compare with.
                Err(ClientError::UnsupportedApi { .. }) => {
                    self.fetcher.borrow_mut().positions.validation_skipped(lookup);
                }
                Err(error) => self.lookup_failed(lookup, error),
            }
        }
        self.wake();
    }

    fn validated(&self, lookup: &Lookup, end: (i32, i64)) {
        let mut fetcher = self.fetcher.borrow_mut();
        let policy = self.config.auto_offset_reset;
        if let Validated::Lost { from, diverged_at } = fetcher.positions.validated(lookup, end, policy) {
            let partition = &lookup.partition;
            let place = diverged_at.map_or("at an unknown offset".to_string(), |at| format!("at offset {at}"));
            let error = ClientError::Broker {
                code: ErrorCode::OffsetOutOfRange,
                what: format!(
                    "the log of partition {} of {} was truncated: what was read up to offset {from} parts from it {place}, and auto_offset_reset=none; seek to go on",
                    partition.partition, partition.topic
                ),
                message: None,
            };
            fetcher.push_fault(partition.clone(), error);
        }
    }

    /// Later again; whatever retrying does not mend is told.
    fn lookup_failed(&self, lookup: &Lookup, error: &ClientError) {
        let mut fetcher = self.fetcher.borrow_mut();
        fetcher.positions.lookup_failed(lookup, self.backoff_until_ms());
        if is_retriable(error) {
            drop(fetcher);
            self.client.want_refresh();
        } else {
            fetcher.push_fault(lookup.partition.clone(), error.clone());
        }
    }

    /// One ListOffsets to one leader; a failure of the whole is one of each.
    async fn list_once(&self, leader: i32, questions: &[Question]) -> Listed {
        let timeout_ms = i32::try_from(self.client.config().request_timeout_ms).unwrap_or(i32::MAX);
        let isolation = self.config.isolation_level.number();
        let request = offsets::list_request(questions, isolation, timeout_ms);
        let answer = self.client.ask(Destination::Node(leader), Some(offsets::LIST_VERSIONS), &request).await;
        match answer.and_then(|answer| answer.decode().map(|answer| offsets::list_outcome(&answer))) {
            Ok(listed) => listed,
            Err(error) => questions.iter().map(|one| (one.partition.clone(), Err(error.clone()))).collect(),
        }
    }

    /// Offsets by time or of the log's ends, from whoever leads, retried until `default_api_timeout_ms`.
    pub async fn list(
        &self,
        wanted: BTreeMap<TopicPartition, i64>,
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndTimestamp>>, ClientError> {
        let deadline_ms = now_ms() + self.client.config().default_api_timeout_ms;
        let mut found = BTreeMap::new();
        let mut left = wanted;
        let mut last_error = None;
        while !left.is_empty() {
            if now_ms() >= deadline_ms {
                let after_ms = self.client.config().default_api_timeout_ms;
                return Err(last_error.unwrap_or(ClientError::TimedOut { what: "listing offsets", after_ms }));
            }
            if last_error.is_some() {
                sleep_until_ms(self.backoff_until_ms()).await;
            }
            for (leader, questions) in self.by_leader(&left).await? {
                for (partition, outcome) in self.list_once(leader, &questions).await {
                    match outcome {
                        Ok(offset) => {
                            left.remove(&partition);
                            found.insert(partition, offset);
                        }
                        Err(error) if is_retriable(&error) => last_error = Some(error),
                        Err(error) => return Err(error),
                    }
                }
            }
            // Whoever answers without the partition asked for is asked again, not at once.
            last_error = last_error.or_else(|| left.keys().next().map(no_offset));
        }
        Ok(found)
    }

    async fn by_leader(
        &self,
        wanted: &BTreeMap<TopicPartition, i64>,
    ) -> Result<BTreeMap<i32, Vec<Question>>, ClientError> {
        let topics: BTreeSet<&str> = wanted.keys().map(|partition| &*partition.topic).collect();
        let topics: Vec<&str> = topics.into_iter().collect();
        self.client.watch_topics(&topics);
        let cluster = self.client.resolve(&topics).await?;
        let mut asked: BTreeMap<i32, Vec<Question>> = BTreeMap::new();
        for (partition, timestamp_ms) in wanted {
            let (topic, index) = (&*partition.topic, partition.partition);
            let known = cluster
                .partition(topic, index)
                .ok_or_else(|| ClientError::BadRequest { reason: format!("topic {topic} has no partition {index}") })?;
            let leader = cluster
                .leader(topic, index)
                .ok_or_else(|| ClientError::NoLeader { topic: topic.to_string(), partition: index })?;
            asked.entry(leader).or_default().push(Question {
                partition: partition.clone(),
                leader_epoch: known.leader_epoch,
                timestamp_ms: *timestamp_ms,
            });
        }
        Ok(asked)
    }
}

fn is_retriable(error: &ClientError) -> bool {
    let by_code = |code: ErrorCode| {
        is_staleness(code)
            || matches!(
                code,
                ErrorCode::UnknownLeaderEpoch
                    | ErrorCode::OffsetNotAvailable
                    | ErrorCode::RequestTimedOut
                    | ErrorCode::NetworkException
                    | ErrorCode::UnknownServerError
            )
    };
    crate::consumer::is_broken(error) || error.code().is_some_and(by_code)
}

fn no_offset(partition: &TopicPartition) -> ClientError {
    ClientError::BadAnswer {
        reason: format!("it names no offset for partition {} of {}", partition.partition, partition.topic),
    }
}

fn nothing_committed(partition: &TopicPartition) -> ClientError {
    ClientError::Broker {
        code: ErrorCode::OffsetOutOfRange,
        what: format!(
            "partition {} of {} has no committed offset, and auto_offset_reset=none; seek to go on",
            partition.partition, partition.topic
        ),
        message: None,
    }
}
