//! `impl Sample`: seeded values for every field that the version can carry. The rest stays at its
//! default, so that what is decoded again equals what was encoded.

use super::code::{self, Code, Side};
use super::decode::fixed_method;
use super::names;
use super::schema::{Field, Kind, Struct};
use super::versions::Versions;

pub fn implementation(code: Code<'_>, one: &Struct) -> String {
    let known = one.versions;
    let assignments = one.fields.iter().filter_map(|field| {
        let value = value(code, field, code.versions_in(field, known)?);
        let assignment = format!("value.{} = {value};\n", names::field(&field.name));
        Some((field.versions.condition(known), assignment))
    });
    let assignments = names::guarded(assignments.collect());
    let mutable = if one.fields.is_empty() { "" } else { "mut " };
    let body = format!("let {mutable}value = Self::default();\n{assignments}value\n");
    format!(
        "#[cfg(feature = \"samples\")]\nimpl Sample for {} {{\nfn sample({}: &mut SampleSource, {}: i16) -> Self {{\n{body}}}\n}}\n\n",
        code.struct_type(&one.name, "'static"),
        names::parameter(&body, "source"),
        names::parameter(&body, "version"),
    )
}

fn value(code: Code<'_>, field: &Field, versions: Versions) -> String {
    let plain = plain_value(code, &field.kind);
    let Some(nullable) = field.nullable.filter(|_| code::is_optional(field)) else { return plain };
    let with_null = format!("source.nullable(|source| {plain})");
    match nullable.condition(versions) {
        None => with_null,
        Some(condition) => format!("if {condition} {{ {with_null} }} else {{ Some({plain}) }}"),
    }
}

fn plain_value(code: Code<'_>, kind: &Kind) -> String {
    match kind {
        Kind::String if code.side == Side::Request => "source.string()".to_owned(),
        Kind::String => "Cow::Borrowed(source.string())".to_owned(),
        Kind::Bytes => "source.bytes()".to_owned(),
        Kind::Records => "source.records()".to_owned(),
        Kind::Struct(name) => format!("{}::sample(source, version)", code.struct_name(name)),
        Kind::Array(element) => match element.as_ref() {
            Kind::String | Kind::Bytes | Kind::Records | Kind::Struct(_) | Kind::Array(_) => {
                format!("source.array(|source| {})", plain_value(code, element))
            }
            fixed => format!("source.array(SampleSource::{})", fixed_method(fixed)),
        },
        fixed => format!("source.{}()", fixed_method(fixed)),
    }
}
