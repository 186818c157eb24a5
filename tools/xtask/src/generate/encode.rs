//! `impl Encode`: the mirror of decoding. A field that the version cannot carry is dropped when it
//! is ignorable or at its default, else it is an error; a tagged field at its default is left out.

use super::code::{self, Code};
use super::decode::{fixed_method, flexible_part, prelude};
use super::names;
use super::schema::{Field, Kind, Struct};
use super::versions::Versions;

pub fn implementation(code: Code<'_>, one: &Struct) -> String {
    let known = one.versions;
    let mut body = String::new();
    for field in &one.fields {
        body += &match field.tag {
            None => plain_field(code, one, field, known),
            // Tagged fields are written last; here only what must not be lost is looked for.
            Some(_) => lost_tagged(code, one, field).unwrap_or_default(),
        };
    }
    body += &tagged_fields(code, one);
    let body = format!("{}{body}Ok(())\n", prelude(code, one, &body));
    format!(
        "impl Encode for {} {{\nfn encode(&self, {}: &mut Writer, {}: i16) -> Result<(), WireError> {{\n{body}}}\n}}\n\n",
        code.struct_type(&one.name, "'_"),
        names::parameter(&body, "writer"),
        names::parameter(&body, "version"),
    )
}

fn full_name(code: Code<'_>, one: &Struct, field: &Field) -> String {
    format!("{}.{}", code.struct_name(&one.name), names::snake(&field.name))
}

fn plain_field(code: Code<'_>, one: &Struct, field: &Field, known: Versions) -> String {
    let Some(versions) = code.versions_in(field, known) else { return String::new() };
    let place = format!("self.{}", names::field(&field.name));
    let write = value(code, &full_name(code, one, field), field, &place, versions);
    match field.versions.condition(known) {
        None => write,
        Some(condition) => match lost(code, one, field) {
            Some(error) => format!("if {condition} {{\n{write}}} else {error}"),
            None => format!("if {condition} {{\n{write}}}\n"),
        },
    }
}

/// `if <set> { error }` for a field that must not be dropped.
fn lost(code: Code<'_>, one: &Struct, field: &Field) -> Option<String> {
    let error = unsupported_error(code, one, field);
    (!field.ignorable).then(|| format!("if {} {{\n{error}}}\n", code::differs_from_default(code, field)))
}

/// The same for a tagged field, with the versions that lack it.
fn lost_tagged(code: Code<'_>, one: &Struct, field: &Field) -> Option<String> {
    if field.ignorable || field.versions.covers(one.versions) {
        return None;
    }
    let differs = code::differs_from_default(code, field);
    let error = unsupported_error(code, one, field);
    // A tagged field stays once it is there, so only older versions lack it.
    Some(format!("if version < {} && {differs} {{\n{error}}}\n", field.versions.first))
}

fn unsupported_error(code: Code<'_>, one: &Struct, field: &Field) -> String {
    let name = full_name(code, one, field);
    format!("return Err(WireError::UnsupportedField {{ field: {name:?}, version }});\n")
}

/// Statements that write a field's value.
fn value(code: Code<'_>, full_name: &str, field: &Field, place: &str, versions: Versions) -> String {
    let Some(nullable) = field.nullable.filter(|_| code::is_optional(field)) else {
        return plain_value(code, &field.kind, place, versions, true);
    };
    let with_null = nullable_value(code, &field.kind, place, versions);
    match nullable.condition(versions) {
        None => with_null,
        Some(condition) => {
            let null = format!("None => return Err(WireError::NullNotAllowed {{ field: {full_name:?} }}),");
            let plain = plain_value(code, &field.kind, "value", versions, false);
            format!(
                "if {condition} {{\n{with_null}}} else {{\nmatch &{place} {{\nSome(value) => {{ {plain} }}\n{null}\n}}\n}}\n"
            )
        }
    }
}

/// `owned` says that `place` is the value itself and not a reference to it.
fn plain_value(code: Code<'_>, kind: &Kind, place: &str, versions: Versions, owned: bool) -> String {
    let flexible = code.flexible(versions);
    let borrowed = if owned { format!("&{place}") } else { place.to_owned() };
    match kind {
        Kind::String => {
            let text = if code.type_of(kind, "'a").starts_with('&') && owned { place.to_owned() } else { borrowed };
            format!("writer.string({text}, {flexible})?;\n")
        }
        Kind::Bytes => format!("writer.bytes({borrowed}, {flexible})?;\n"),
        Kind::Records => format!("writer.records({borrowed}, {flexible})?;\n"),
        Kind::Struct(_) => format!("{place}.encode(writer, version)?;\n"),
        Kind::Array(element) => format!(
            "writer.count({place}.len(), {flexible})?;\nfor item in {borrowed} {{\n{}}}\n",
            plain_value(code, element, "item", versions, false)
        ),
        Kind::Uuid => format!("writer.uuid({borrowed});\n"),
        fixed if owned => format!("writer.{}({place});\n", fixed_method(fixed)),
        fixed => format!("writer.{}(*{place});\n", fixed_method(fixed)),
    }
}

fn nullable_value(code: Code<'_>, kind: &Kind, place: &str, versions: Versions) -> String {
    let flexible = code.flexible(versions);
    match kind {
        Kind::String if code.type_of(kind, "'a").starts_with('&') => {
            format!("writer.nullable_string({place}, {flexible})?;\n")
        }
        Kind::String => format!("writer.nullable_string({place}.as_deref(), {flexible})?;\n"),
        Kind::Bytes => format!("writer.nullable_bytes({place}.as_ref(), {flexible})?;\n"),
        Kind::Struct(_) => format!(
            "match &{place} {{\nSome(value) => {{\nwriter.i8(1);\nvalue.encode(writer, version)?;\n}}\nNone => writer.i8(-1),\n}}\n"
        ),
        Kind::Array(_) => format!(
            "match &{place} {{\nSome(value) => {{\n{}}}\nNone => writer.null_count({flexible}),\n}}\n",
            plain_value(code, kind, "value", versions, false)
        ),
        other => panic!("the protocol has no nullable {other:?}"),
    }
}

fn tagged_fields(code: Code<'_>, one: &Struct) -> String {
    let known = one.versions;
    let section = tag_section(code, one);
    match code.flexible(known) {
        "true" => section,
        "false" => String::new(),
        flexible => format!("if {flexible} {{\n{section}}}\n"),
    }
}

fn tag_section(code: Code<'_>, one: &Struct) -> String {
    let known = one.versions;
    let (mut counts, mut writes) = (String::new(), String::new());
    let mut tagged: Vec<&Field> = one.fields.iter().filter(|field| field.tag.is_some()).collect();
    // The protocol wants tags in rising order.
    tagged.sort_by_key(|field| field.tag);
    for field in tagged {
        let (Some(tag), Some(versions)) = (field.tag, code.versions_in(field, known)) else { continue };
        let differs = code::differs_from_default(code, field);
        let present = match versions.condition(flexible_part(code, known)) {
            Some(condition) => format!("{condition} && {differs}"),
            None => differs,
        };
        let name = names::snake(&field.name);
        let place = format!("self.{}", names::field(&field.name));
        let write = value(code, &full_name(code, one, field), field, &place, versions);
        counts += &format!("let has_{name} = {present};\n");
        writes += &format!("if has_{name} {{\nwriter.tagged({tag}, |writer| {{\n{write}Ok(())\n}})?;\n}}\n");
    }
    if counts.is_empty() {
        return "writer.uvarint(0);\n".to_owned();
    }
    let flags: Vec<String> = counts
        .lines()
        .filter_map(|line| line.strip_prefix("let ").and_then(|rest| rest.split_once(" = ")))
        .map(|(flag, _)| format!("u32::from({flag})"))
        .collect();
    format!("{counts}writer.uvarint({});\n{writes}", flags.join(" + "))
}
