//! Records that clients exchange byte for byte: every shape that a key, a value or a header can have.

use serde_json::{Value, json};

type Bytes = Option<Vec<u8>>;

/// One record as any client sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    pub key: Bytes,
    pub value: Bytes,
    pub headers: Vec<(String, Bytes)>,
}

impl Sample {
    pub fn new(key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        Sample { key: key.map(<[u8]>::to_vec), value: value.map(<[u8]>::to_vec), headers: Vec::new() }
    }

    fn header(mut self, key: &str, value: Option<&[u8]>) -> Self {
        self.headers.push((key.to_owned(), value.map(<[u8]>::to_vec)));
        self
    }

    /// Bytes as hexadecimal text, null as null.
    pub fn to_json(&self) -> Value {
        let headers: Vec<Value> = self.headers.iter().map(|(key, value)| json!([key, to_hex(value)])).collect();
        json!({"key": to_hex(&self.key), "value": to_hex(&self.value), "headers": headers})
    }

    pub fn from_json(json: &Value) -> Self {
        let headers = json["headers"].as_array().expect("headers are a list").iter();
        let header = |pair: &Value| (pair[0].as_str().expect("a header's key").to_owned(), from_hex(&pair[1]));
        Sample { key: from_hex(&json["key"]), value: from_hex(&json["value"]), headers: headers.map(header).collect() }
    }
}

fn to_hex(bytes: &Bytes) -> Value {
    bytes
        .as_ref()
        .map_or(Value::Null, |bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

fn from_hex(text: &Value) -> Bytes {
    let text = text.as_str()?;
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    Some((0..text.len()).step_by(2).map(byte).collect())
}

/// Null and empty keys, values and header values, a header key twice, a thousand headers, every byte there is.
pub fn every_shape() -> Vec<Sample> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let many = (0..1000u32).fold(Sample::new(Some(b"many"), Some(b"headers")), |record, at| {
        record.header(&format!("header-{at}"), Some(&at.to_be_bytes()))
    });
    vec![
        Sample::new(None, Some(b"no key")),
        Sample::new(Some(b""), Some(b"empty key")),
        Sample::new(Some(b"no value"), None),
        Sample::new(Some(b"empty value"), Some(b"")),
        Sample::new(None, None),
        Sample::new(Some(&every_byte), Some(&every_byte.repeat(40))),
        Sample::new(Some(b"k"), Some(b"v"))
            .header("null", None)
            .header("empty", Some(b""))
            .header("", Some(b"no name")),
        Sample::new(Some(b"k"), Some(b"v"))
            .header("twice", Some(b"1"))
            .header("other", None)
            .header("twice", Some(b"2")),
        many,
        Sample::new(Some("ключ 鍵".as_bytes()), Some("значение 値".as_bytes())).header("名", Some(b"\0\xff")),
    ]
}

/// The codecs that every client knows.
pub const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
