//! `impl Decode`: fields in the schema's order, each where its version has it, then the tags.

use super::code::{self, Code, Side};
use super::names;
use super::schema::{Field, Kind, Struct};
use super::versions::Versions;

pub fn implementation(code: Code<'_>, one: &Struct) -> String {
    let known = one.versions;
    let plain = one.fields.iter().filter(|field| field.tag.is_none());
    let fields = names::guarded(plain.filter_map(|field| plain_field(code, field, known)).collect());
    let mutable = if one.fields.is_empty() { "" } else { "mut " };
    let tags = tagged_fields(code, one);
    let body = format!("let {mutable}value = Self::default();\n{fields}{tags}Ok(value)\n");
    let body = format!("{}{body}", prelude(code, one, &body));
    format!(
        "impl<'a> Decode<'a> for {} {{\nfn decode({}: &mut Reader<'a>, {}: i16) -> Result<Self, WireError> {{\n{body}}}\n}}\n\n",
        code.struct_type(&one.name, "'a"),
        names::parameter(&body, "reader"),
        names::parameter(&body, "version"),
    )
}

/// What stands before a codec's body: the check of the version, and whether lengths are compact.
pub fn prelude(code: Code<'_>, one: &Struct, body: &str) -> String {
    let is_message = one.name == code.message().structs[0].name;
    let mut prelude = if is_message { version_check(code) } else { String::new() };
    if names::uses(body, "flexible") {
        prelude += &format!("let flexible = version >= {};\n", code.api.first_flexible.unwrap_or_default());
    }
    prelude
}

/// A message refuses versions that the schema does not describe.
fn version_check(code: Code<'_>) -> String {
    let Versions { first, last } = code.api.versions;
    let outside =
        if first == last { format!("version != {first}") } else { format!("!({first}..={last}).contains(&version)") };
    format!(
        "if {outside} {{\nreturn Err(WireError::UnsupportedVersion {{ api_key: {}, version }});\n}}\n",
        code.api.key
    )
}

fn plain_field(code: Code<'_>, field: &Field, known: Versions) -> Option<(Option<String>, String)> {
    let value = value(code, field, code.versions_in(field, known)?);
    let assignment = format!("value.{} = {value};\n", names::field(&field.name));
    Some((field.versions.condition(known), assignment))
}

/// The expression that reads a field's value.
fn value(code: Code<'_>, field: &Field, versions: Versions) -> String {
    let Some(nullable) = field.nullable.filter(|_| code::is_optional(field)) else {
        return format!("{}?", plain_value(code, &field.kind, versions, "reader"));
    };
    match nullable.condition(versions) {
        None => format!("{}?", nullable_value(code, &field.kind, versions)),
        Some(condition) => format!(
            "if {condition} {{ {}? }} else {{ Some({}?) }}",
            nullable_value(code, &field.kind, versions),
            plain_value(code, &field.kind, versions, "reader")
        ),
    }
}

fn plain_value(code: Code<'_>, kind: &Kind, versions: Versions, reader: &str) -> String {
    let flexible = code.flexible(versions);
    match kind {
        Kind::String if code.side == Side::Request => format!("{reader}.string({flexible})"),
        Kind::String => format!("{reader}.string({flexible}).map(Cow::Borrowed)"),
        Kind::Bytes => format!("{reader}.bytes({flexible})"),
        Kind::Records => format!("{reader}.records({flexible})"),
        Kind::Struct(name) => format!("{}::decode({reader}, version)", code.struct_name(name)),
        Kind::Array(element) => format!("{reader}.array({})", array_arguments(code, element, versions)),
        fixed => format!("{reader}.{}()", fixed_method(fixed)),
    }
}

fn nullable_value(code: Code<'_>, kind: &Kind, versions: Versions) -> String {
    let flexible = code.flexible(versions);
    match kind {
        Kind::String if code.side == Side::Request => format!("reader.nullable_string({flexible})"),
        Kind::String => format!("reader.nullable_string({flexible}).map(|text| text.map(Cow::Borrowed))"),
        Kind::Bytes => format!("reader.nullable_bytes({flexible})"),
        Kind::Struct(name) => {
            format!("reader.nullable_struct(|reader| {}::decode(reader, version))", code.struct_name(name))
        }
        Kind::Array(element) => format!("reader.nullable_array({})", array_arguments(code, element, versions)),
        other => panic!("the protocol has no nullable {other:?}"),
    }
}

fn array_arguments(code: Code<'_>, element: &Kind, versions: Versions) -> String {
    let least = code.least(element, versions);
    let read = match element {
        Kind::String | Kind::Bytes | Kind::Records | Kind::Struct(_) | Kind::Array(_) => {
            format!("|reader| {}", plain_value(code, element, versions, "reader"))
        }
        fixed => format!("Reader::{}", fixed_method(fixed)),
    };
    format!("{}, {least}, {read}", code.flexible(versions))
}

/// The method of reader, writer and sample source for a kind of fixed size.
pub fn fixed_method(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int8 => "i8",
        Kind::Uint16 => "u16",
        Kind::Int16 => "i16",
        Kind::Int32 => "i32",
        Kind::Int64 => "i64",
        Kind::Float64 => "f64",
        Kind::Uuid => "uuid",
        other => panic!("{other:?} has no fixed size"),
    }
}

fn tagged_fields(code: Code<'_>, one: &Struct) -> String {
    let known = one.versions;
    let mut arms = String::new();
    for field in &one.fields {
        let (Some(tag), Some(versions)) = (field.tag, code.versions_in(field, known)) else { continue };
        let guard = match versions.condition(flexible_part(code, known)) {
            Some(condition) => format!(" if {condition}"),
            None => String::new(),
        };
        // Inside the arm the version is one that has tags, so lengths are compact.
        arms += &format!("{tag}{guard} => value.{} = {},\n", names::field(&field.name), value(code, field, versions));
    }
    let section = if arms.is_empty() {
        "reader.skip_tagged_fields()?;\n".to_owned()
    } else {
        format!("reader.tagged_fields(|tag, reader| {{\nmatch tag {{\n{arms}_ => {{}}\n}}\nOk(())\n}})?;\n")
    };
    match code.flexible(known) {
        "true" => section,
        "false" => String::new(),
        flexible => format!("if {flexible} {{\n{section}}}\n"),
    }
}

/// The versions of `known` that have tags.
pub fn flexible_part(code: Code<'_>, known: Versions) -> Versions {
    Versions { first: known.first.max(code.api.first_flexible.unwrap_or(i16::MAX)), last: known.last }
}
