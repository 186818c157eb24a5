//! The schema's own format, one file an API, facts only:
//!
//! ```text
//! api 0 Produce                 key and name
//! versions 3-13                 what the codec covers
//! unstable 13                   optional: the newest version is not served yet
//! advertised 0-13               optional: what ApiVersions says, where it is not what is served
//! flexible 9+                   optional: compact lengths and tagged fields
//!
//! request
//!   Name Type [Versions] [null=Versions] [tag=Number] [default=Value] [ignorable]
//!     ... fields of the type, one level deeper, where it is first used
//!   struct Name                 a type that is used in several places
//!     ... its fields
//!
//! response
//!   ...
//! ```
//!
//! Without versions a field is in all; `null=` says where it may be null; an ignorable field is
//! dropped silently when a version cannot carry it. `#` begins a comment line.

use super::versions::Versions;

#[derive(Debug)]
pub struct Api {
    pub key: i16,
    pub name: String,
    pub versions: Versions,
    pub unstable: Option<i16>,
    pub advertised: Option<Versions>,
    pub first_flexible: Option<i16>,
    pub request: Message,
    pub response: Message,
}

impl Api {
    /// The newest version that is served.
    pub fn last_served(&self) -> i16 {
        self.unstable.map_or(self.versions.last, |unstable| unstable - 1)
    }
}

/// A message's structs; the first is the message itself.
#[derive(Debug, Default)]
pub struct Message {
    pub structs: Vec<Struct>,
}

#[derive(Debug)]
pub struct Struct {
    pub name: String,
    /// The versions in which it occurs.
    pub versions: Versions,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub versions: Versions,
    pub nullable: Option<Versions>,
    pub tag: Option<u32>,
    pub default: Option<String>,
    pub ignorable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int8,
    Uint16,
    Int16,
    Int32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Struct(String),
    Array(Box<Kind>),
}

impl Kind {
    fn parse(text: &str) -> Self {
        if let Some(element) = text.strip_prefix("[]") {
            return Self::Array(Box::new(Self::parse(element)));
        }
        match text {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "uint16" => Self::Uint16,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "uuid" => Self::Uuid,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "records" => Self::Records,
            name => Self::Struct(name.to_owned()),
        }
    }

    /// The struct that this is, or is an array of.
    pub fn struct_name(&self) -> Option<&str> {
        match self {
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.struct_name(),
            _ => None,
        }
    }
}

struct Line<'a> {
    number: usize,
    depth: usize,
    words: Vec<&'a str>,
}

pub fn parse(text: &str) -> Result<Api, String> {
    let lines = lines(text)?;
    let start_of = |section: &str| {
        lines
            .iter()
            .position(|line| line.depth == 0 && line.words == [section])
            .ok_or_else(|| format!("there is no section `{section}`"))
    };
    let (request, response) = (start_of("request")?, start_of("response")?);
    let mut api = parse_head(&lines[..request])?;
    api.request = parse_message(&format!("{}Request", api.name), api.versions, &lines[request + 1..response])?;
    api.response = parse_message(&format!("{}Response", api.name), api.versions, &lines[response + 1..])?;
    Ok(api)
}

fn lines(text: &str) -> Result<Vec<Line<'_>>, String> {
    let mut lines = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || words[0].starts_with('#') {
            continue;
        }
        let indent = text.len() - text.trim_start().len();
        if indent % 2 == 1 {
            return Err(format!("line {}: indented by an odd number of spaces", index + 1));
        }
        lines.push(Line { number: index + 1, depth: indent / 2, words });
    }
    Ok(lines)
}

fn parse_head(lines: &[Line<'_>]) -> Result<Api, String> {
    let mut api = Api {
        key: -1,
        name: String::new(),
        versions: Versions::ALL,
        unstable: None,
        advertised: None,
        first_flexible: None,
        request: Message::default(),
        response: Message::default(),
    };
    for line in lines {
        let wrong = || format!("line {}: not understood", line.number);
        match line.words.as_slice() {
            ["api", key, name] => {
                api.key = key.parse().map_err(|_| wrong())?;
                api.name = (*name).to_owned();
            }
            ["versions", versions] => api.versions = Versions::parse(versions)?,
            ["unstable", version] => api.unstable = Some(version.parse().map_err(|_| wrong())?),
            ["advertised", versions] => api.advertised = Some(Versions::parse(versions)?),
            ["flexible", versions] => api.first_flexible = Some(Versions::parse(versions)?.first),
            _ => return Err(wrong()),
        }
    }
    if api.key < 0 || api.versions == Versions::ALL {
        return Err("the head lacks `api` or `versions`".to_owned());
    }
    Ok(api)
}

fn parse_message(name: &str, versions: Versions, lines: &[Line<'_>]) -> Result<Message, String> {
    let mut structs = Vec::new();
    parse_struct(name, versions, versions, 1, lines, &mut structs)?;
    let known = |kind: &Kind| kind.struct_name().is_none_or(|name| structs.iter().any(|one: &Struct| one.name == name));
    for field in structs.iter().flat_map(|one| &one.fields) {
        if !known(&field.kind) {
            return Err(format!("{name}: the type of {} is nowhere described", field.name));
        }
    }
    Ok(Message { structs })
}

/// Parses the lines of one struct, and those of the structs inside it behind it.
fn parse_struct(
    name: &str,
    message_versions: Versions,
    versions: Versions,
    depth: usize,
    lines: &[Line<'_>],
    structs: &mut Vec<Struct>,
) -> Result<(), String> {
    let place = structs.len();
    structs.push(Struct { name: name.to_owned(), versions, fields: Vec::new() });
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        if line.depth != depth {
            return Err(format!("line {}: indented wrongly", line.number));
        }
        let inner_len = after.iter().take_while(|line| line.depth > depth).count();
        let (inner, next) = after.split_at(inner_len);
        rest = next;
        if let ["struct", shared] = line.words.as_slice() {
            // Used in several places, so nothing narrower is known of its versions.
            parse_struct(shared, message_versions, message_versions, depth + 1, inner, structs)?;
            continue;
        }
        let field = parse_field(&line.words).map_err(|sentence| format!("line {}: {sentence}", line.number))?;
        if let (Some(inner_name), false) = (field.kind.struct_name(), inner.is_empty()) {
            let inner_versions = field.versions.intersect(versions).ok_or("a struct in no version")?;
            parse_struct(inner_name, message_versions, inner_versions, depth + 1, inner, structs)?;
        }
        structs[place].fields.push(field);
    }
    Ok(())
}

fn parse_field(words: &[&str]) -> Result<Field, String> {
    let [name, kind, facts @ ..] = words else { return Err("a field needs a name and a type".to_owned()) };
    let mut field = Field {
        name: (*name).to_owned(),
        kind: Kind::parse(kind),
        versions: Versions::ALL,
        nullable: None,
        tag: None,
        default: None,
        ignorable: false,
    };
    for fact in facts {
        match fact.split_once('=') {
            Some(("null", versions)) => field.nullable = Some(Versions::parse(versions)?),
            Some(("tag", tag)) => field.tag = Some(tag.parse().map_err(|_| format!("`{tag}` is not a tag"))?),
            Some(("default", value)) => field.default = Some(value.to_owned()),
            None if *fact == "ignorable" => field.ignorable = true,
            None => field.versions = Versions::parse(fact)?,
            Some(_) => return Err(format!("`{fact}` is not understood")),
        }
    }
    Ok(field)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
