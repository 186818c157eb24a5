//! Records of a batch for people and as JSON: inflated under a cap, internal topics decoded into words.

use coordinator::records::{self, Record as GroupRecord};
use log::limits::INFLATE_MAX;
use model::batch::RecordIter;
use model::{BatchHeader, BatchView, Codec, Record, compression};
use serde_json::{Value, json};

/// Bytes of a key or value that are shown to people; JSON has all.
const SHOWN_BYTES: usize = 1024;
const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// How a topic's records are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Plain,
    /// `__consumer_offsets`.
    Groups,
}

impl Dialect {
    pub fn of_topic(topic: &str) -> Dialect {
        if topic == OFFSETS_TOPIC { Dialect::Groups } else { Dialect::Plain }
    }
}

/// One record, ready to print.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub text: String,
    pub json: Value,
}

/// Calls `show` for each record; the error says what is wrong with the batch's records.
pub fn each(
    batch: &BatchView<'_>,
    dialect: Dialect,
    scratch: &mut Vec<u8>,
    mut show: impl FnMut(Shown) -> std::io::Result<()>,
) -> std::io::Result<Result<(), String>> {
    let codec = match batch.header.codec() {
        Ok(codec) => codec,
        Err(why) => return Ok(Err(why.to_string())),
    };
    let payload = if codec == Codec::None {
        batch.payload()
    } else {
        if let Err(why) = compression::inflate(codec, batch.payload(), INFLATE_MAX, scratch) {
            return Ok(Err(why.to_string()));
        }
        scratch.as_slice()
    };
    let mut records = RecordIter::new(payload, batch.header.record_count);
    for record in records.by_ref() {
        match record {
            Ok(record) => show(shown(&batch.header, &record, dialect))?,
            Err(why) => return Ok(Err(why.to_string())),
        }
    }
    let rest = records.rest().len();
    Ok(if rest == 0 { Ok(()) } else { Err(format!("{rest} bytes are left over behind the batch's records")) })
}

fn shown(header: &BatchHeader, record: &Record<'_>, dialect: Dialect) -> Shown {
    let offset = header.base_offset.plus(i64::from(record.offset_delta)).0;
    let timestamp_ms = if header.is_log_append_time() {
        header.max_timestamp_ms
    } else {
        header.base_timestamp_ms.saturating_add(record.timestamp_delta_ms)
    };
    let meaning = if header.is_control() { Some(control(record)) } else { group(record, dialect) };
    let headers: Vec<(&[u8], Option<&[u8]>)> = record.headers().collect();
    let mut json = json!({
        "type": "record", "offset": offset, "timestamp_ms": timestamp_ms,
        "key": as_json(record.key), "value": as_json(record.value),
        "headers": headers.iter().map(|(k, v)| json!([as_json(Some(k)), as_json(*v)])).collect::<Vec<_>>(),
    });
    let mut text = format!("    {offset} @{timestamp_ms}");
    match meaning {
        Some((words, meaning)) => {
            json["meaning"] = meaning;
            text.push_str(&format!("  {words}"));
        }
        None => {
            text.push_str(&format!("  {} = {}", as_text(record.key), as_text(record.value)));
            for (key, value) in headers {
                text.push_str(&format!("  [{}: {}]", as_text(Some(key)), as_text(value)));
            }
        }
    }
    Shown { text, json }
}

/// The mark of a transaction's end: version and kind in the key.
fn control(record: &Record<'_>) -> (String, Value) {
    let kind = record.key.and_then(|key| key.get(2..4)).map(|b| i16::from_be_bytes([b[0], b[1]]));
    let word = match kind {
        Some(0) => "abort",
        Some(1) => "commit",
        Some(2) => "leader change",
        _ => "unknown control record",
    };
    (word.to_owned(), json!({ "control": word }))
}

fn group(record: &Record<'_>, dialect: Dialect) -> Option<(String, Value)> {
    if dialect != Dialect::Groups {
        return None;
    }
    Some(match records::decode(record.key?, record.value) {
        Err(why) => (format!("not understood: {why}"), json!({ "not_understood": why.to_string() })),
        Ok(GroupRecord::Unknown { kind }) => {
            (format!("record of kind {kind}, of a newer group protocol"), json!({ "kind": kind }))
        }
        Ok(GroupRecord::Offset { group, topic, partition, value: None }) => (
            format!("group {group:?} forgets {topic}-{partition}"),
            json!({ "group": group, "topic": topic, "partition": partition, "offset": null }),
        ),
        Ok(GroupRecord::Offset { group, topic, partition, value: Some(value) }) => (
            format!(
                "group {group:?} committed {topic}-{partition} at {} (epoch {}, metadata {:?})",
                value.offset, value.leader_epoch, value.metadata
            ),
            json!({
                "group": group, "topic": topic, "partition": partition, "offset": value.offset.0,
                "leader_epoch": value.leader_epoch.0, "metadata": value.metadata,
                "commit_timestamp_ms": value.commit_timestamp_ms,
            }),
        ),
        Ok(GroupRecord::Group { group, value: None }) => {
            (format!("group {group:?} is gone"), json!({ "group": group, "members": null }))
        }
        Ok(GroupRecord::Group { group, value: Some(value) }) => {
            let members: Vec<Value> = value
                .members
                .iter()
                .map(|m| {
                    json!({
                        "member_id": m.member_id, "instance_id": m.instance_id, "client_id": m.client_id,
                        "client_host": m.client_host, "session_timeout_ms": m.session_timeout_ms,
                        "assignment_bytes": m.assignment.len(),
                    })
                })
                .collect();
            let names: Vec<&str> = value.members.iter().map(|m| m.member_id.as_str()).collect();
            let protocol = value.protocol_name.as_deref().unwrap_or("none");
            let words = format!(
                "group {group:?} generation {} protocol {protocol} leader {} members [{}]",
                value.generation_id,
                value.leader.as_deref().unwrap_or("none"),
                names.join(", ")
            );
            let json = json!({
                "group": group, "generation_id": value.generation_id, "protocol_type": value.protocol_type,
                "protocol": value.protocol_name, "leader": value.leader, "members": members,
            });
            (words, json)
        }
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn as_json(bytes: Option<&[u8]>) -> Value {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => Value::Null,
        Some((_, Ok(text))) => json!(text),
        Some((bytes, Err(_))) => json!({ "hex": hex(bytes) }),
    }
}

fn as_text(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "null".to_owned() };
    let head = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let more = if bytes.len() > SHOWN_BYTES { format!("... ({} bytes)", bytes.len()) } else { String::new() };
    // A character that the cut went through is not the record's fault.
    let text = match std::str::from_utf8(head) {
        Ok(text) => Some(text),
        Err(e) if bytes.len() > SHOWN_BYTES && e.error_len().is_none() => {
            std::str::from_utf8(&head[..e.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text {
        Some(text) => format!("{text:?}{more}"),
        None => format!("0x{}{more}", hex(head)),
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
