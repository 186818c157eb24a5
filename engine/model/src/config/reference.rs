//! The reference of all properties, and the part of `--help` that lists them.

use std::fmt::Write;

use super::families::FAMILIES;
use super::property::{Effect, Property, Scope};
use super::table;

/// Width of `--help`.
const HELP_WIDTH: usize = 100;
const HELP_INDENT: usize = 6;

fn default_text(property: &Property) -> String {
    match property.default {
        None => "not set".to_owned(),
        Some("") => "empty".to_owned(),
        Some("9223372036854775807" | "2147483647") => "no limit".to_owned(),
        Some(text) => text.to_owned(),
    }
}

/// The text of `--help` about `--set`: every broker property that has an effect.
pub fn help_text() -> String {
    let mut out = String::from("Properties for --set key=value and for --config FILE:\n");
    for property in table::all().filter(|p| p.scope == Scope::Broker && p.effect == Effect::Obeyed) {
        let unit = property.unit.word();
        let unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
        let bounds = property.bounds_text();
        let bounds = if bounds.is_empty() { bounds } else { format!("; {bounds}") };
        let _ = writeln!(
            out,
            "  {} ({}{unit}; default {}{bounds})",
            property.name,
            property.kind.word(),
            default_text(property)
        );
        wrap(&mut out, property.doc);
    }
    out.push_str(
        "Every other broker property of Kafka is known too: the reference says which have no effect, and why.\n",
    );
    out
}

fn wrap(out: &mut String, text: &str) {
    let mut column = 0;
    for word in text.split(' ') {
        if column == 0 || column + 1 + word.len() > HELP_WIDTH {
            if column > 0 {
                out.push('\n');
            }
            let _ = write!(out, "{:HELP_INDENT$}{word}", "");
            column = HELP_INDENT + word.len();
        } else {
            let _ = write!(out, " {word}");
            column += 1 + word.len();
        }
    }
    out.push('\n');
}

/// The reference in Markdown: one table for topics, one for the broker, and the families of names.
pub fn reference_markdown() -> String {
    let mut out =
        String::from("# Configuration reference\n\nMade from the table in `engine/model/src/config`; do not edit.\n");
    section(&mut out, Scope::Topic, "Topic properties", "Set when a topic is made, or altered at any time.");
    section(&mut out, Scope::Broker, "Broker properties", "Set in `--config FILE` or with `--set key=value`.");
    out.push_str("\n## Other broker properties of Kafka\n\nKnown by the beginning of their names.\n\n");
    out.push_str("| names | effect | because |\n|---|---|---|\n");
    for family in FAMILIES {
        let word = if matches!(family.effect, Effect::Refused(_)) { "refused" } else { family.effect.word() };
        let _ = writeln!(out, "| `{}`... | {word} | {} |", family.prefix, family.effect.reason().unwrap_or(""));
    }
    out
}

fn section(out: &mut String, scope: Scope, title: &str, how: &str) {
    let _ = write!(out, "\n## {title}\n\n{how}\n\n");
    out.push_str("| name | type | unit | default | allowed | changes | effect | what it does |\n");
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for property in table::all().filter(|property| property.scope == scope) {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |",
            property.name,
            property.kind.word(),
            property.unit.word(),
            default_text(property),
            property.bounds_text(),
            property.update.word(),
            property.effect.word(),
            property.documentation(),
        );
    }
}
