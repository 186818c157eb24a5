//! Looks at what brokers say of partitions and of the group, moves log starts, adds partitions and changes settings.

use client::TopicPartition;
use client::admin::{Admin, ConfigChange, ConfigOperation, ConfigResource, OffsetSpec};
use runtime::sim::Dice;

use super::clients::{Staged, linger, only};
use super::reader::consumer;
use super::{group, growth};

pub async fn watch(stage: Staged, mut dice: Dice) {
    let client = stage.client("watcher");
    let admin = Admin::new(client.clone());
    let observer = consumer(&client, group::member_settings());
    let mut setting = Setting::default();
    while !stage.is_over() {
        let all = stage.history.borrow().all();
        let at = &all[dice.below(all.len() as u64) as usize];
        match dice.below(12) {
            0..5 => drop(look_at(&stage, &admin, &all).await),
            5 | 6 => drop(group::look(&stage, &observer).await),
            7 if stage.plan.deletes_records => delete_records(&stage, &admin, at, &mut dice).await,
            10 if stage.plan.grows => {
                let topics = &stage.plan.topics;
                growth::grow(&stage, &admin, &topics[dice.below(topics.len() as u64) as usize]).await;
            }
            11 => drop(growth::look(&stage, &admin, false).await),
            8 => setting.change(&admin, &at.topic).await,
            _ => drop(setting.look(&admin).await),
        }
        linger(&mut dice, 150).await;
    }
}

/// High watermark and leader epoch of every partition; a sentence where one was not told.
pub async fn look_at(stage: &Staged, admin: &Admin, all: &[TopicPartition]) -> Result<(), String> {
    let before: Vec<i64> = all.iter().map(|at| stage.history.borrow_mut().partition(at).high_watermark).collect();
    let life = stage.history.borrow().life;
    let wanted: Vec<_> = all.iter().map(|at| (at.clone(), OffsetSpec::Latest)).collect();
    let told = admin.list_offsets(&wanted, false).await.map_err(|error| error.to_string())?;
    let mut history = stage.history.borrow_mut();
    // An answer that a broker gave before it ended may be read after the next has begun.
    let same_life = history.life == life;
    let mut whole = Ok(());
    for ((at, listed), before) in told.into_iter().zip(before) {
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                whole = Err(error.to_string());
                continue;
            }
        };
        let partition = history.partition(&at);
        partition.tell_end(before, listed.offset);
        if same_life {
            partition.tell_epoch(listed.leader_epoch, life);
        }
    }
    whole
}

async fn delete_records(stage: &Staged, admin: &Admin, at: &TopicPartition, dice: &mut Dice) {
    let before = {
        let mut history = stage.history.borrow_mut();
        let partition = history.partition(at);
        let before = dice.below(partition.high_watermark.max(0) as u64 + 1) as i64;
        partition.deletable = partition.deletable.max(before);
        before
    };
    let _ = admin.delete_records(&[(at.clone(), before)]).await;
}

/// One setting of one topic, which is what it was set to last.
#[derive(Default)]
struct Setting {
    topic: Option<String>,
    /// What it may be: what was acknowledged last, and what was tried since.
    values: Vec<String>,
    next: u64,
}

const NAME: &str = "max.message.bytes";

impl Setting {
    async fn change(&mut self, admin: &Admin, topic: &str) {
        let topic = self.topic.get_or_insert_with(|| topic.to_string()).clone();
        self.next += 1;
        let value = (1_000_000 + self.next).to_string();
        self.values.push(value.clone());
        let change = ConfigChange { name: NAME.to_string(), operation: ConfigOperation::Set(value.clone()) };
        let changed = admin.incremental_alter_configs(&[(ConfigResource::Topic(topic), vec![change])], false).await;
        if matches!(only(changed), Ok(Ok(()))) {
            self.values = vec![value];
        }
    }

    async fn look(&self, admin: &Admin) -> bool {
        let Some(topic) = &self.topic else { return true };
        let told = admin.describe_configs(&[ConfigResource::Topic(topic.clone())], false).await;
        let Ok(Ok(entries)) = only(told) else { return false };
        let value = entries.into_iter().find(|entry| entry.name == NAME).and_then(|entry| entry.value);
        let known = value.as_ref().is_some_and(|value| self.values.contains(value));
        // Tries that were never acknowledged may all have failed.
        let untouched = self.values.len() == self.next as usize;
        assert!(known || untouched, "{NAME} of {topic} is {value:?}, and was set to {:?}", self.values);
        true
    }
}
