//! What the writers of Rust share: one message with the facts around it.

use super::names;
use super::schema::{Api, Field, Kind, Message, Struct};
use super::versions::Versions;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Request,
    Response,
}

#[derive(Debug, Clone, Copy)]
pub struct Code<'s> {
    pub api: &'s Api,
    pub side: Side,
}

impl<'s> Code<'s> {
    pub fn message(self) -> &'s Message {
        match self.side {
            Side::Request => &self.api.request,
            Side::Response => &self.api.response,
        }
    }

    pub fn find(self, name: &str) -> &'s Struct {
        let found = self.message().structs.iter().find(|one| one.name == name);
        found.expect("the parser has checked that every type is described")
    }

    /// Request and response of an API share a module; a name that both use gets their kind before it.
    pub fn struct_name(self, name: &str) -> String {
        let used_in = |message: &Message| message.structs.iter().any(|one| one.name == name);
        match self.side {
            _ if !(used_in(&self.api.request) && used_in(&self.api.response)) => name.to_owned(),
            Side::Request => format!("Request{name}"),
            Side::Response => format!("Response{name}"),
        }
    }

    /// Whether a struct borrows from the frame: it does when a string is anywhere in it.
    pub fn borrows(self, name: &str) -> bool {
        self.find(name).fields.iter().any(|field| self.kind_borrows(&field.kind))
    }

    fn kind_borrows(self, kind: &Kind) -> bool {
        match kind {
            Kind::String => true,
            Kind::Array(element) => self.kind_borrows(element),
            Kind::Struct(name) => self.borrows(name),
            _ => false,
        }
    }

    /// The struct's name with `lifetime`, where it has one.
    pub fn struct_type(self, name: &str, lifetime: &str) -> String {
        let rust_name = self.struct_name(name);
        if self.borrows(name) { format!("{rust_name}<{lifetime}>") } else { rust_name }
    }

    pub fn type_of(self, kind: &Kind, lifetime: &str) -> String {
        match kind {
            Kind::Bool => "bool".to_owned(),
            Kind::Int8 => "i8".to_owned(),
            Kind::Uint16 => "u16".to_owned(),
            Kind::Int16 => "i16".to_owned(),
            Kind::Int32 => "i32".to_owned(),
            Kind::Int64 => "i64".to_owned(),
            Kind::Float64 => "f64".to_owned(),
            Kind::Uuid => "[u8; 16]".to_owned(),
            Kind::String if self.side == Side::Request => format!("&{lifetime} str"),
            Kind::String => format!("Cow<{lifetime}, str>"),
            Kind::Bytes => "Bytes".to_owned(),
            Kind::Records => "Records".to_owned(),
            Kind::Struct(name) => self.struct_type(name, lifetime),
            Kind::Array(element) => format!("Vec<{}>", self.type_of(element, lifetime)),
        }
    }

    pub fn field_type(self, field: &Field, lifetime: &str) -> String {
        let plain = self.type_of(&field.kind, lifetime);
        if is_optional(field) { format!("Option<{plain}>") } else { plain }
    }

    /// The versions of a field inside a struct that occurs in `known`; `None` if never.
    pub fn versions_in(self, field: &Field, known: Versions) -> Option<Versions> {
        field.versions.intersect(known)
    }

    /// A Rust expression that says whether lengths are compact, for versions within `known`.
    pub fn flexible(self, known: Versions) -> &'static str {
        match self.api.first_flexible {
            None => "false",
            Some(first) if first <= known.first => "true",
            Some(first) if first > known.last => "false",
            Some(_) => "flexible",
        }
    }

    fn is_flexible(self, version: i16) -> bool {
        self.api.first_flexible.is_some_and(|first| version >= first)
    }

    /// The least bytes that a value takes in any of the versions: what makes a count believable.
    pub fn least(self, kind: &Kind, versions: Versions) -> usize {
        let last = versions.last.min(self.api.versions.last);
        (versions.first..=last).map(|version| self.least_at(kind, version)).min().unwrap_or(0)
    }

    fn least_at(self, kind: &Kind, version: i16) -> usize {
        let flexible = self.is_flexible(version);
        match kind {
            Kind::Bool | Kind::Int8 => 1,
            Kind::Uint16 | Kind::Int16 => 2,
            Kind::Int32 => 4,
            Kind::Int64 | Kind::Float64 => 8,
            Kind::Uuid => 16,
            Kind::String => {
                if flexible {
                    1
                } else {
                    2
                }
            }
            Kind::Bytes | Kind::Records | Kind::Array(_) => {
                if flexible {
                    1
                } else {
                    4
                }
            }
            Kind::Struct(name) => {
                let fields = self.find(name).fields.iter();
                let present = fields.filter(|field| {
                    field.tag.is_none() && field.versions.first <= version && version <= field.versions.last
                });
                let size = |field: &Field| match field.kind {
                    Kind::Struct(_) if is_optional(field) => 1,
                    _ => self.least_at(&field.kind, version),
                };
                present.map(size).sum::<usize>() + usize::from(flexible)
            }
        }
    }
}

/// Whether a field is an `Option`. Records have their own null.
pub fn is_optional(field: &Field) -> bool {
    field.nullable.is_some() && field.kind != Kind::Records
}

/// Whether a field's default is null.
pub fn null_by_default(field: &Field) -> bool {
    field.default.as_deref() == Some("null")
}

/// The Rust expression of a field's default.
pub fn default_value(field: &Field) -> String {
    if null_by_default(field) && is_optional(field) {
        return "None".to_owned();
    }
    let explicit = field.default.as_deref();
    let plain = match (&field.kind, explicit) {
        (Kind::Bool, value) => value.unwrap_or("false").to_owned(),
        (Kind::String, Some(text)) => format!("{text:?}.into()"),
        (Kind::Int8 | Kind::Uint16 | Kind::Int16 | Kind::Int32 | Kind::Int64, value) => integer(value.unwrap_or("0")),
        (Kind::Float64, value) => format!("{}f64", value.unwrap_or("0")),
        (Kind::Uuid, _) => "[0; 16]".to_owned(),
        (Kind::Array(_), _) => "Vec::new()".to_owned(),
        (Kind::Bytes, _) => "Bytes::new()".to_owned(),
        (Kind::Records, _) => "Records::Null".to_owned(),
        (Kind::String | Kind::Struct(_), _) => "Default::default()".to_owned(),
    };
    if is_optional(field) { format!("Some({plain})") } else { plain }
}

/// The extreme values by their names.
fn integer(digits: &str) -> String {
    match digits {
        "2147483647" => "i32::MAX",
        "-2147483648" => "i32::MIN",
        "9223372036854775807" => "i64::MAX",
        _ => digits,
    }
    .to_owned()
}

/// Whether Rust's own default of the field's type is the schema's.
pub fn has_rust_default(field: &Field) -> bool {
    if is_optional(field) {
        return null_by_default(field);
    }
    matches!(field.default.as_deref(), None | Some("0" | "false" | "" | "null"))
}

/// A Rust condition that is true when the field does not hold its default.
pub fn differs_from_default(code: Code<'_>, field: &Field) -> String {
    let place = format!("self.{}", names::field(&field.name));
    if is_optional(field) {
        return match (null_by_default(field), &field.kind) {
            (true, _) => format!("{place}.is_some()"),
            (false, Kind::Struct(_)) => format!("{place} != {}", default_value(field)),
            (false, _) => format!("{place}.as_ref().is_none_or(|value| !value.is_empty())"),
        };
    }
    match &field.kind {
        Kind::Bool if field.default.as_deref() == Some("true") => format!("!{place}"),
        Kind::Bool => place,
        Kind::String if field.default.is_some() => format!("{place} != {:?}", field.default.as_deref().unwrap_or("")),
        Kind::String | Kind::Bytes | Kind::Array(_) => format!("!{place}.is_empty()"),
        Kind::Records => format!("!{place}.is_null()"),
        Kind::Struct(name) => format!("{place} != {}::default()", code.struct_name(name)),
        _ => format!("{place} != {}", default_value(field)),
    }
}
