//! Configuration entries, replaced whole or changed one by one. Part of [`crate::apply`].
//!
//! Which keys exist and which values fit is the business of the property table, checked before a command is proposed; here
//! only bounds are checked, so that an entry agreed by a newer version never stops an older one.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::command::{ConfigChange, ConfigOp, Outcome, Rejection};
use crate::image::{ConfigResource, Configs, Image, Topic};
use crate::limits::{MAX_CONFIG_TEXT_LEN, MAX_CONFIGS_PER_RESOURCE};

impl Image {
    pub(crate) fn alter_configs(
        &mut self,
        resource: &ConfigResource,
        change: &ConfigChange,
    ) -> Result<Outcome, Rejection> {
        let current = self.configs(resource).map(|configs| Configs::clone(configs)).unwrap_or_default();
        let changed = Arc::new(changed(current, change)?);
        match resource {
            ConfigResource::Topic(id) => {
                let mut topic = Topic::clone(self.topics.get(id).ok_or(Rejection::UnknownTopic)?);
                topic.configs = changed;
                self.put_topic(Arc::new(topic));
            }
            ConfigResource::Broker(node) if node.0 < 0 => {
                return Err(Rejection::InvalidConfig("the broker's id is negative"));
            }
            ConfigResource::Group(name) | ConfigResource::ClientMetrics(name)
                if name.is_empty() || name.len() > MAX_CONFIG_TEXT_LEN =>
            {
                return Err(Rejection::InvalidConfig("the resource's name is empty or too long"));
            }
            other if changed.is_empty() => {
                self.configs.remove(other);
            }
            other => {
                self.configs.insert(other.clone(), changed);
            }
        }
        Ok(Outcome::Done)
    }
}

fn changed(mut configs: Configs, change: &ConfigChange) -> Result<Configs, Rejection> {
    match change {
        ConfigChange::Replace(entries) => {
            configs.clear();
            for (key, value) in entries {
                set_entry(&mut configs, key, value)?;
            }
        }
        ConfigChange::Incremental(ops) => {
            for (key, op) in ops {
                change_entry(&mut configs, key, op)?;
            }
        }
    }
    Ok(configs)
}

fn change_entry(configs: &mut Configs, key: &Arc<str>, op: &ConfigOp) -> Result<(), Rejection> {
    match op {
        ConfigOp::Set(value) => set_entry(configs, key, value),
        ConfigOp::Delete => {
            configs.remove(key);
            Ok(())
        }
        ConfigOp::Append { items, default } => {
            let mut list = items_of(configs.get(key).unwrap_or(default));
            let mut present: BTreeSet<&str> = list.iter().copied().collect();
            for item in items_of(items) {
                if present.insert(item) {
                    list.push(item);
                }
            }
            let value = list.join(",");
            set_entry(configs, key, &value.into())
        }
        ConfigOp::Subtract { items, default } => {
            let out: BTreeSet<&str> = items_of(items).into_iter().collect();
            let mut list = items_of(configs.get(key).unwrap_or(default));
            list.retain(|item| !out.contains(item));
            let value = list.join(",");
            set_entry(configs, key, &value.into())
        }
    }
}

fn items_of(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

pub(crate) fn set_entry(configs: &mut Configs, key: &Arc<str>, value: &Arc<str>) -> Result<(), Rejection> {
    if key.is_empty() {
        return Err(Rejection::InvalidConfig("a key is empty"));
    }
    if key.len() > MAX_CONFIG_TEXT_LEN || value.len() > MAX_CONFIG_TEXT_LEN {
        return Err(Rejection::InvalidConfig("a key or value is too long"));
    }
    configs.insert(Arc::clone(key), Arc::clone(value));
    if configs.len() > MAX_CONFIGS_PER_RESOURCE {
        return Err(Rejection::InvalidConfig("the resource has too many entries"));
    }
    Ok(())
}
