//! A struct's definition and its defaults.

use super::code::{self, Code};
use super::names;
use super::schema::{Field, Struct};
use super::versions::Versions;

pub fn definition(code: Code<'_>, one: &Struct) -> String {
    let derives_default = one.fields.iter().all(code::has_rust_default);
    let mut source = format!(
        "#[derive(Debug, Clone, PartialEq{})]\npub struct {} {{\n",
        if derives_default { ", Default" } else { "" },
        code.struct_type(&one.name, "'a"),
    );
    for field in &one.fields {
        source += &comment(field, one.versions);
        source += &format!("pub {}: {},\n", names::field(&field.name), code.field_type(field, "'a"));
    }
    source += "}\n\n";
    if !derives_default {
        source += &default(code, one);
    }
    source
}

fn default(code: Code<'_>, one: &Struct) -> String {
    let mut source =
        format!("impl Default for {} {{\nfn default() -> Self {{\nSelf {{\n", code.struct_type(&one.name, "'_"));
    for field in &one.fields {
        source += &format!("{}: {},\n", names::field(&field.name), code::default_value(field));
    }
    source += "}\n}\n}\n\n";
    source
}

/// What a reader of the struct cannot see in its types.
fn comment(field: &Field, known: Versions) -> String {
    let mut facts = Vec::new();
    if field.versions.condition(known).is_some() {
        facts.push(format!("versions {}", field.versions.describe()));
    }
    let partly_null = |nullable: &Versions| !nullable.covers(known) && *nullable != field.versions;
    if let Some(nullable) = field.nullable.filter(partly_null) {
        facts.push(format!("null in {}", nullable.describe()));
    }
    if let Some(tag) = field.tag {
        facts.push(format!("tag {tag}"));
    }
    if let Some(default) = &field.default {
        facts.push(format!("default {default}"));
    }
    if field.ignorable && field.versions.condition(known).is_some() {
        facts.push("dropped elsewhere".to_owned());
    }
    let Some(first) = facts.first_mut() else { return String::new() };
    first[..1].make_ascii_uppercase();
    format!("/// {}.\n", facts.join("; "))
}
