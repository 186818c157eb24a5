//! Where to begin: `-o` of `consume`, `--to` of `group seek`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What `--help` says.
pub const POSITIONS: &str = "earliest (or beginning), latest (or end), an offset, -N (the last N records), or @TIME: \
@2026-11-29T12:00:00Z, @1700000000000 (ms since 1970), @-15m (so long ago)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Earliest,
    Latest,
    Offset(i64),
    /// So many records before the end.
    FromEnd(i64),
    /// The first record at or after this time, ms since 1970.
    Time(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionError(String);

impl fmt::Display for PositionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no position; give {POSITIONS}", self.0)
    }
}

impl std::error::Error for PositionError {}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Position, PositionError> {
        parse(text, now_ms()).ok_or_else(|| PositionError(text.to_owned()))
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

fn parse(text: &str, now_ms: i64) -> Option<Position> {
    if let Some(time) = text.strip_prefix('@') {
        return time_ms(time, now_ms).map(Position::Time);
    }
    Some(match text {
        "earliest" | "beginning" => Position::Earliest,
        "latest" | "end" => Position::Latest,
        _ => match text.parse::<i64>().ok()? {
            offset if offset >= 0 && !text.starts_with('-') => Position::Offset(offset),
            back => Position::FromEnd(back.checked_neg()?),
        },
    })
}

/// A time as people write it, in ms since 1970.
fn time_ms(text: &str, now_ms: i64) -> Option<i64> {
    if let Some(ago) = text.strip_prefix('-') {
        let ago: Duration = humantime::parse_duration(ago).ok()?;
        return now_ms.checked_sub(i64::try_from(ago.as_millis()).ok()?);
    }
    if let Ok(ms) = text.parse::<i64>() {
        return Some(ms);
    }
    let time = humantime::parse_rfc3339_weak(text).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// A timestamp for tables; `-` for none.
pub fn show_time(timestamp_ms: i64) -> String {
    match u64::try_from(timestamp_ms) {
        Ok(ms) => {
            humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms.min(MAX_SHOWN_MS))).to_string()
        }
        Err(_) => "-".to_owned(),
    }
}

/// The year 9999: what lies behind cannot be written.
const MAX_SHOWN_MS: u64 = 253_402_300_799_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_by_name_by_number_and_by_time() {
        let at = |text| parse(text, 1_000_000);
        assert_eq!(at("earliest"), Some(Position::Earliest));
        assert_eq!(at("end"), Some(Position::Latest));
        assert_eq!(at("17"), Some(Position::Offset(17)));
        assert_eq!(at("-5"), Some(Position::FromEnd(5)));
        assert_eq!(at("-0"), Some(Position::FromEnd(0)));
        assert_eq!(at("@1700000000000"), Some(Position::Time(1_700_000_000_000)));
        assert_eq!(at("@-15m"), Some(Position::Time(100_000)));
        assert_eq!(at("@1970-01-02T00:00:00Z"), Some(Position::Time(86_400_000)));
        assert_eq!(at("@1970-01-02"), None);
        assert_eq!(at("soon"), None);
        assert_eq!(at("@"), None);
        assert_eq!(at("-9223372036854775808"), None);
    }

    #[test]
    fn times_are_shown_in_utc() {
        assert_eq!(show_time(86_400_001), "1970-01-02T00:00:00.001Z");
        assert_eq!(show_time(-1), "-");
        assert_eq!(show_time(i64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
