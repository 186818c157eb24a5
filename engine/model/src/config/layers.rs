//! Where a broker property's value comes from: the layers of sources over the table's defaults.

use std::collections::BTreeMap;

use super::error::ConfigError;
use super::property::{Property, Scope, Unit, Update};
use super::table;
use super::value::{Value, parse};

/// DescribeConfigs' number of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Source {
    DynamicTopic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
}

impl Source {
    pub fn number(self) -> i8 {
        self as i8
    }
}

type Layer = BTreeMap<&'static str, Value>;

/// The values that were set, strongest layer first: for this broker, for all brokers, in the file or on the command
/// line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layers {
    node: Layer,
    cluster: Layer,
    file: Layer,
}

/// The row of a broker property. A missing row is a programmer's error: names here are ours, not a user's.
fn row(name: &str) -> &'static Property {
    match table::find(Scope::Broker, name) {
        Some(property) => property,
        None => panic!("{name} has no row in the table of broker properties"),
    }
}

/// `broker.id`'s -1 does not answer for `node.id`.
fn is_unset(property: &Property, value: &Value) -> bool {
    property.name == "node.id" && *value == Value::Number(-1)
}

/// A number in another unit of time. Equal units and units without a scale stay as they are; negative is "no limit".
fn rescale(value: i64, from: Unit, to: Unit) -> i64 {
    let ms = |unit| match unit {
        Unit::Minutes => 60_000,
        Unit::Hours => 3_600_000,
        _ => 1,
    };
    if value < 0 { value } else { value.saturating_mul(ms(from)) / ms(to) }
}

impl Layers {
    /// Puts a pair of the file or the command line. Names of families that have no effect are accepted and dropped.
    pub(super) fn set_static(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        if let Some(property) = table::find(Scope::Broker, name) {
            self.file.insert(property.name, parse(property, text)?);
            return Ok(());
        }
        match super::family(name).map(|family| family.effect) {
            Some(super::Effect::Refused(reason)) => {
                let value = "...".to_owned(); // may be a secret
                Err(ConfigError::Refused { name: name.to_owned(), value, default: None, reason })
            }
            Some(_) => Ok(()),
            None => Err(ConfigError::Unknown { name: name.to_owned(), scope: Scope::Broker }),
        }
    }

    /// Puts a pair that was set while running: for all brokers, or for this one.
    pub(super) fn set_dynamic(&mut self, name: &str, text: &str, for_all: bool) -> Result<(), ConfigError> {
        let property = table::find(Scope::Broker, name)
            .ok_or_else(|| ConfigError::Unknown { name: name.to_owned(), scope: Scope::Broker })?;
        match property.update {
            Update::ReadOnly => return Err(ConfigError::ReadOnly { name: property.name }),
            Update::PerBroker if for_all => return Err(ConfigError::PerBroker { name: property.name }),
            _ => {}
        }
        let layer = if for_all { &mut self.cluster } else { &mut self.node };
        layer.insert(property.name, parse(property, text)?);
        Ok(())
    }

    pub(super) fn clear_dynamic(&mut self) {
        self.node.clear();
        self.cluster.clear();
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        [&self.node, &self.cluster, &self.file].into_iter().any(|layer| layer.contains_key(name))
    }

    fn own(&self, property: &'static Property) -> Option<Value> {
        let set = [&self.node, &self.cluster, &self.file].into_iter().find_map(|layer| layer.get(property.name));
        set.cloned().or_else(|| default_of(property))
    }

    /// The value in force of one name, without its fallbacks.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        self.own(row(name))
    }

    /// The value that answers for `property`: the first of `names` that has one, in the property's own unit.
    pub(super) fn first(&self, property: &Property, names: &[&str]) -> Option<Value> {
        names.iter().find_map(|name| {
            let from = row(name);
            self.own(from).map(|value| match value {
                Value::Number(number) => Value::Number(rescale(number, from.unit, property.unit)),
                other => other,
            })
        })
    }

    /// The value in force of one name, fallbacks included.
    pub(super) fn effective(&self, name: &str) -> Option<Value> {
        let property = row(name);
        let own = if property.synonyms.is_empty() { self.own(property) } else { self.set(property) };
        own.or_else(|| self.first(property, property.synonyms).filter(|value| !is_unset(property, value)))
            .or_else(|| default_of(property))
    }

    fn set(&self, property: &'static Property) -> Option<Value> {
        self.is_set(property.name).then(|| self.own(property)).flatten()
    }

    /// Every set or default value of `names`, strongest source first, within a source in the order of `names`.
    pub(super) fn chain(&self, names: &[&'static str]) -> Vec<(Source, &'static str, Value)> {
        let layers = [
            (Source::DynamicBroker, &self.node),
            (Source::DynamicDefaultBroker, &self.cluster),
            (Source::StaticBroker, &self.file),
        ];
        let mut chain = Vec::new();
        for (source, layer) in layers {
            chain.extend(names.iter().filter_map(|name| layer.get(name).map(|value| (source, *name, value.clone()))));
        }
        let defaults = names.iter().filter_map(|name| default_of(row(name)).map(|v| (Source::Default, *name, v)));
        chain.extend(defaults);
        chain
    }
}

/// The row's default as a value. Defaults are the table's own words, so they parse (a test reads them all).
pub(super) fn default_of(property: &Property) -> Option<Value> {
    property.default.and_then(|text| parse(property, text).ok())
}
