//! A range of API versions, as the schema writes it: `3+`, `0-12`, `7`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    pub first: i16,
    /// `i16::MAX` for an open end.
    pub last: i16,
}

impl Versions {
    pub const ALL: Self = Self { first: 0, last: i16::MAX };

    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<i16>().map_err(|_| format!("`{text}` is not a range of versions"));
        let versions = if let Some(first) = text.strip_suffix('+') {
            Self { first: number(first)?, last: i16::MAX }
        } else if let Some((first, last)) = text.split_once('-') {
            Self { first: number(first)?, last: number(last)? }
        } else {
            Self { first: number(text)?, last: number(text)? }
        };
        if versions.first > versions.last {
            Err(format!("`{text}` is an empty range of versions"))
        } else {
            Ok(versions)
        }
    }

    pub fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// The common part; `None` when there is none.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let common = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        (common.first <= common.last).then_some(common)
    }

    /// A Rust condition on `version` that is true inside this range, given that the version is
    /// within `known`; `None` when it always is.
    pub fn condition(self, known: Self) -> Option<String> {
        let from_start = self.first <= known.first;
        let to_end = known.last <= self.last;
        match (from_start, to_end) {
            (true, true) => None,
            (true, false) => Some(format!("version <= {}", self.last)),
            (false, true) => Some(format!("version >= {}", self.first)),
            (false, false) if self.first == self.last => Some(format!("version == {}", self.first)),
            (false, false) => Some(format!("({}..={}).contains(&version)", self.first, self.last)),
        }
    }

    pub fn describe(self) -> String {
        if self.last == i16::MAX {
            format!("{}+", self.first)
        } else if self.first == self.last {
            self.first.to_string()
        } else {
            format!("{}-{}", self.first, self.last)
        }
    }
}
