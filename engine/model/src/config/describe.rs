//! What DescribeConfigs answers, as Kafka does: value, source and the chain of synonyms behind it.

use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::layers::{Layers, default_of};
use super::property::{Property, Scope};
use super::table;
use super::topic::parse_overrides;

pub use super::layers::Source;

/// One link of the chain: what the value would be without the links before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynonymValue {
    pub name: &'static str,
    /// `None` for passwords.
    pub value: Option<String>,
    pub source: Source,
}

/// One property of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    pub name: &'static str,
    /// `None` is null: not set, or a password.
    pub value: Option<String>,
    pub source: Source,
    pub read_only: bool,
    pub sensitive: bool,
    pub synonyms: Vec<SynonymValue>,
    /// DescribeConfigs' number of the type.
    pub kind: i8,
    pub documentation: String,
}

/// The links that explain `name`. Kafka drops those before the name's own first one: `log.retention.ms` that is not
/// set itself has no chain, whatever the hours say.
fn chain(layers: &Layers, property: &Property, names: &[&'static str]) -> Vec<SynonymValue> {
    let sensitive = property.is_sensitive();
    let links = layers.chain(names).into_iter().skip_while(|(_, name, _)| Some(name) != names.first());
    links
        .map(|(source, name, value)| SynonymValue { name, value: (!sensitive).then(|| value.to_string()), source })
        .collect()
}

fn described(property: &'static Property, value: Option<String>, synonyms: Vec<SynonymValue>) -> Described {
    Described {
        name: property.name,
        value: value.filter(|_| !property.is_sensitive()),
        source: synonyms.first().map_or(Source::Default, |link| link.source),
        read_only: property.is_read_only(),
        sensitive: property.is_sensitive(),
        synonyms,
        kind: property.kind.number(),
        documentation: property.documentation(),
    }
}

fn sorted(scope: Scope) -> Vec<&'static Property> {
    let mut rows: Vec<_> = table::all().filter(|property| property.scope == scope).collect();
    rows.sort_by_key(|property| property.name);
    rows
}

/// Every property of the broker, by name.
pub fn describe_broker(broker: &BrokerConfig) -> Vec<Described> {
    let describe = |property: &'static Property| {
        let names: Vec<_> = [property.name].into_iter().chain(property.synonyms.iter().copied()).collect();
        // node.id is shown as it is in force; everything else as it is set under its own name, as Kafka does.
        let value = match property.name {
            "node.id" | "advertised.listeners" | "log.dirs" => broker.layers.effective(property.name),
            name => broker.layers.value(name),
        };
        described(property, value.map(|value| value.to_string()), chain(&broker.layers, property, &names))
    };
    sorted(Scope::Broker).into_iter().map(describe).collect()
}

/// Every property of a topic with these properties of its own, by name.
pub fn describe_topic<'a>(
    broker: &BrokerConfig,
    overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Described>, ConfigError> {
    let overrides = parse_overrides(overrides)?;
    let describe = |property: &'static Property| {
        let own = overrides.iter().rev().find(|(row, _)| row.name == property.name).map(|(_, value)| value.to_string());
        let fallback = || broker.layers.first(property, property.synonyms).or_else(|| default_of(property));
        let value = own.clone().or_else(|| fallback().map(|value| value.to_string()));
        let mut synonyms = Vec::new();
        if let Some(own) = own {
            synonyms.push(SynonymValue { name: property.name, value: Some(own), source: Source::DynamicTopic });
        }
        synonyms.extend(chain(&broker.layers, property, property.synonyms));
        described(property, value, synonyms)
    };
    Ok(sorted(Scope::Topic).into_iter().map(describe).collect())
}
