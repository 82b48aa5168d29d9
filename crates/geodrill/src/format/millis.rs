//! Durations and instants of a drill: whole milliseconds, written with a unit.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A number of milliseconds, written `"800ms"`, `"2s"`, `"2m"` or `"1h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Millis(pub(crate) u64);

/// Timers of the runtime reach a little over two years; a drill has no use for more than one.
const LONGEST: u64 = 366 * 24 * 3_600_000;

impl Millis {
    pub(crate) const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// For a person: at most two units, and no more digits than help.
    pub(crate) fn rough(self) -> String {
        let (seconds, ms) = (self.0 / 1_000, self.0 % 1_000);
        let (minutes, hours) = (seconds / 60, seconds / 3_600);
        match (hours, minutes, seconds) {
            (0, 0, 0) if ms > 0 => format!("{ms}ms"),
            (0, 0, _) if ms >= 100 => format!("{seconds}.{}s", ms / 100),
            (0, 0, _) => format!("{seconds}s"),
            (0, ..) if seconds % 60 == 0 => format!("{minutes}m"),
            (0, ..) => format!("{minutes}m{:02}s", seconds % 60),
            _ if minutes % 60 == 0 => format!("{hours}h"),
            _ => format!("{hours}h{:02}m", minutes % 60),
        }
    }

    /// Reads a duration; the error says what one looks like.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(refusal(text)),
        };
        if number.is_empty() {
            return Err(refusal(text));
        }
        // Only digits are left, so a failure to parse is an overflow.
        number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(factor))
            .filter(|&ms| ms <= LONGEST)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is longer than a year"))
    }
}

fn refusal(text: &str) -> String {
    if text.starts_with('-') {
        return format!("`{text}` is negative; a duration counts up from zero");
    }
    format!("`{text}` is not a duration; write a whole number and a unit: 800ms, 2s, 2m or 1h")
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Millis;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"800ms\", \"2s\", \"2m\" or \"1h\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Millis, E> {
                Millis::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

impl fmt::Display for Millis {
    /// The largest unit that needs no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        if self.0 == 0 {
            return f.write_str("0s");
        }
        write!(f, "{}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for (text, ms) in [
            ("0s", 0),
            ("800ms", 800),
            ("2s", 2_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(Millis::parse(text), Ok(Millis(ms)));
            assert_eq!(Millis(ms).to_string(), text);
        }
        assert_eq!(Millis(59_950).to_string(), "59950ms");
    }

    #[test]
    fn people_get_two_units_at_most() {
        for (ms, text) in [
            (0, "0s"),
            (820, "820ms"),
            (12_540, "12.5s"),
            (60_000, "1m"),
            (179_920, "2m59s"),
            (90_000, "1m30s"),
            (7_500_000, "2h05m"),
            (7_200_000, "2h"),
        ] {
            assert_eq!(Millis(ms).rough(), text);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "", "5", "-5s", "1.5s", "5 s", "s", "5d", "5S", " 5s", "+5s", "५s",
        ] {
            assert!(Millis::parse(text).is_err(), "{text}");
        }
        assert!(Millis::parse("99999999999999999999h").is_err());
        assert!(Millis::parse("8785h").is_err());
        assert!(Millis::parse("-5s").unwrap_err().contains("negative"));
    }
}
