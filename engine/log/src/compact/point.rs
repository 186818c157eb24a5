//! `ringlog.cleaner` in a partition's folder: how far the log was cleaned, and when the next tombstone is due. Written
//! after a cleaning, read when one is considered. Losing it costs cleaning again from the log start, nothing else; one
//! that points too far hides duplicates, so a truncation lowers it first.
//!
//! A file for each partition, and not Kafka's `cleaner-offset-checkpoint` for all: shards share no file, a cleaning is
//! rare enough for a file of its own, and the delete horizon has no place in Kafka's.

use model::Offset;

/// The file's name.
pub(crate) const POINT_FILE: &str = "ringlog.cleaner";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CleanPoint {
    /// Everything below was the dirty section of some cleaning.
    pub cleaned_to: Offset,
    /// When the first of the tombstones that stayed may go.
    pub next_horizon_ms: Option<i64>,
}

impl CleanPoint {
    pub fn encode(&self) -> Vec<u8> {
        let horizon = self.next_horizon_ms.map_or_else(|| "none".to_string(), |ms| ms.to_string());
        let body = format!("version=1\ncleaned.to={}\nnext.horizon.ms={horizon}\n", self.cleaned_to.0);
        sealed(body).into_bytes()
    }

    /// The sentence says what is wrong with the file.
    pub fn decode(bytes: &[u8]) -> Result<CleanPoint, &'static str> {
        let mut fields = Fields::open(bytes)?;
        let cleaned_to = Offset(fields.number("cleaned.to=")?);
        let next_horizon_ms = match fields.text("next.horizon.ms=")? {
            "none" => None,
            text => Some(text.parse().map_err(|_| "its horizon is not a number")?),
        };
        Ok(CleanPoint { cleaned_to, next_horizon_ms })
    }
}

/// Puts the checksum behind a body of lines.
pub(super) fn sealed(body: String) -> String {
    format!("{body}crc={:08x}\n", crc32fast::hash(body.as_bytes()))
}

/// Lines of a sealed file, in their order.
pub(super) struct Fields<'a>(std::str::Lines<'a>);

impl<'a> Fields<'a> {
    /// Checks the checksum, then the version.
    pub fn open(bytes: &'a [u8]) -> Result<Fields<'a>, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
        let at = text.rfind("crc=").ok_or("its checksum is missing")?;
        let (body, crc) = text.split_at(at);
        if crc != format!("crc={:08x}\n", crc32fast::hash(body.as_bytes())) {
            return Err("its checksum does not match");
        }
        let mut lines = body.lines();
        match lines.next() {
            Some("version=1") => Ok(Fields(lines)),
            _ => Err("it was written by a newer version"),
        }
    }

    pub fn text(&mut self, name: &str) -> Result<&'a str, &'static str> {
        self.0.next().and_then(|line| line.strip_prefix(name)).ok_or("a field is missing")
    }

    pub fn number(&mut self, name: &str) -> Result<i64, &'static str> {
        self.text(name)?.parse().map_err(|_| "a field is not a number")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn goes_both_ways_and_notices_damage() {
        for next_horizon_ms in [None, Some(-5), Some(i64::MAX)] {
            let point = CleanPoint { cleaned_to: Offset(42), next_horizon_ms };
            let bytes = point.encode();
            assert_eq!(CleanPoint::decode(&bytes), Ok(point));
            for i in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[i] ^= 1;
                assert!(CleanPoint::decode(&damaged).is_err(), "byte {i}");
                assert!(CleanPoint::decode(&bytes[..i]).is_err(), "cut at {i}");
            }
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let newer = sealed("version=2\nsomething=else\n".to_string());
        assert_eq!(CleanPoint::decode(newer.as_bytes()), Err("it was written by a newer version"));
    }
}
