//! What one row of the table is: the declaration of a configuration property.
//!
//! Constants only. Nothing here is on the produce or fetch way: rows are read at start, when a topic's configuration
//! changes, and by DescribeConfigs.

/// Whose property it is. The same name may exist in both scopes (`min.insync.replicas`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Broker,
    Topic,
}

impl Scope {
    pub fn word(self) -> &'static str {
        match self {
            Scope::Broker => "broker",
            Scope::Topic => "topic",
        }
    }
}

/// Type of the value; the discriminants are DescribeConfigs' type numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum Kind {
    Bool = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Bool => "boolean",
            Kind::String => "string",
            Kind::Int => "int",
            Kind::Short => "short",
            Kind::Long => "long",
            Kind::Double => "double",
            Kind::List => "list",
            Kind::Class => "class",
            Kind::Password => "password",
        }
    }

    /// DescribeConfigs' number of this type.
    pub fn number(self) -> i8 {
        self as i8
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Us,
    Ms,
    Seconds,
    Minutes,
    Hours,
    Messages,
}

impl Unit {
    /// Empty for [`Unit::None`].
    pub fn word(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Bytes => "bytes",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::Seconds => "s",
            Unit::Minutes => "minutes",
            Unit::Hours => "hours",
            Unit::Messages => "messages",
        }
    }
}

/// What direct I/O counts in.
pub const BLOCK_BYTES: i64 = 4096;

/// Which values of the type are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    Any,
    AtLeast(i64),
    /// Inclusive at both ends.
    Between(i64, i64),
    /// Inclusive at both ends, and a multiple of [`BLOCK_BYTES`].
    Blocks(i64, i64),
    /// Inclusive at both ends.
    Reals(f64, f64),
    /// For lists: each item.
    OneOf(&'static [&'static str]),
    /// Inclusive at both ends, or -1: nothing is set.
    BetweenOrUnset(i64, i64),
    /// `*`, or `partition:broker` pairs.
    Replicas,
}

/// Whether and how a running node takes a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only with a restart.
    ReadOnly,
    /// By naming this broker.
    PerBroker,
    /// For one broker or for all of them.
    ClusterWide,
    /// By naming the topic: every topic property.
    PerTopic,
}

impl Update {
    pub fn word(self) -> &'static str {
        match self {
            Update::ReadOnly => "read-only",
            Update::PerBroker => "per-broker",
            Update::ClusterWide => "cluster-wide",
            Update::PerTopic => "per-topic",
        }
    }
}

/// What becomes of a value that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Obeyed,
    /// Only the default is accepted; anything else is an error that carries this sentence.
    Refused(&'static str),
    /// Accepted, remembered, described, and without effect, for this reason.
    Inert(&'static str),
}

impl Effect {
    pub fn word(self) -> &'static str {
        match self {
            Effect::Obeyed => "obeyed",
            Effect::Refused(_) => "default only",
            Effect::Inert(_) => "inert",
        }
    }

    pub fn reason(self) -> Option<&'static str> {
        match self {
            Effect::Obeyed => None,
            Effect::Refused(reason) | Effect::Inert(reason) => Some(reason),
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Property {
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    /// In the text form that a file would have. `None` is Kafka's null: not set.
    pub default: Option<&'static str>,
    pub unit: Unit,
    pub bounds: Bounds,
    pub update: Update,
    /// Broker properties that answer when this one is not set, in Kafka's order. For a topic property these are its
    /// broker defaults, for a broker property the coarser units (`log.retention.ms`: minutes, then hours).
    pub synonyms: &'static [&'static str],
    pub effect: Effect,
    /// One sentence.
    pub doc: &'static str,
}

/// A broker property: obeyed, read-only, unbounded and null unless said otherwise.
pub(super) const fn broker(name: &'static str, kind: Kind, doc: &'static str) -> Property {
    Property {
        name,
        scope: Scope::Broker,
        kind,
        default: None,
        unit: Unit::None,
        bounds: Bounds::Any,
        update: Update::ReadOnly,
        synonyms: &[],
        effect: Effect::Obeyed,
        doc,
    }
}

/// A topic property.
pub(super) const fn topic(name: &'static str, kind: Kind, doc: &'static str) -> Property {
    Property { scope: Scope::Topic, update: Update::PerTopic, ..broker(name, kind, doc) }
}

impl Property {
    pub(super) const fn default(mut self, text: &'static str) -> Property {
        self.default = Some(text);
        self
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Property {
        self.unit = unit;
        self
    }

    pub(super) const fn at_least(mut self, least: i64) -> Property {
        self.bounds = Bounds::AtLeast(least);
        self
    }

    pub(super) const fn between(mut self, least: i64, most: i64) -> Property {
        self.bounds = Bounds::Between(least, most);
        self
    }

    pub(super) const fn bounds(mut self, bounds: Bounds) -> Property {
        self.bounds = bounds;
        self
    }

    pub(super) const fn one_of(mut self, words: &'static [&'static str]) -> Property {
        self.bounds = Bounds::OneOf(words);
        self
    }

    pub(super) const fn cluster_wide(mut self) -> Property {
        self.update = Update::ClusterWide;
        self
    }

    pub(super) const fn per_broker(mut self) -> Property {
        self.update = Update::PerBroker;
        self
    }

    /// Broker properties that answer when this one is not set.
    pub(super) const fn or(mut self, names: &'static [&'static str]) -> Property {
        self.synonyms = names;
        self
    }

    pub(super) const fn refused(mut self, reason: &'static str) -> Property {
        self.effect = Effect::Refused(reason);
        self
    }

    pub(super) const fn inert(mut self, reason: &'static str) -> Property {
        self.effect = Effect::Inert(reason);
        self
    }

    pub fn is_read_only(&self) -> bool {
        self.update == Update::ReadOnly
    }

    /// Passwords are never shown.
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// The allowed values, in words; empty when every value of the type is.
    pub fn bounds_text(&self) -> String {
        match self.bounds {
            Bounds::Any if self.kind == Kind::Bool => "true or false".to_owned(),
            Bounds::Any => String::new(),
            Bounds::AtLeast(least) => format!("at least {least}"),
            Bounds::Between(least, most) => format!("{least} to {most}"),
            Bounds::Blocks(least, most) => format!("{least} to {most}, a multiple of {BLOCK_BYTES}"),
            Bounds::Reals(least, most) => format!("{least} to {most}"),
            Bounds::OneOf(words) => words.join(", "),
            Bounds::BetweenOrUnset(least, most) => format!("{least} to {most}, or -1"),
            Bounds::Replicas => "*, or partition:broker pairs".to_owned(),
        }
    }

    /// The sentence, and the reason when a set value has no effect or is not taken.
    pub fn documentation(&self) -> String {
        match self.effect {
            Effect::Obeyed => self.doc.to_owned(),
            Effect::Refused(reason) => format!("{} Only the default is accepted: {reason}.", self.doc),
            Effect::Inert(reason) => format!("{} Accepted without effect: {reason}.", self.doc),
        }
    }
}
