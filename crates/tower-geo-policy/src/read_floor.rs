//! Reads see the writes of this process (F5): which keys were written when.
//!
//! A write that was acknowledged at the service's time *w* is in the copy once the Last Sync Time
//! is later than *w*. Until then a read of the same key is not answered by the copy.
//!
//! The memory is bounded and never grows: times are kept by the hash of a key, in two tables with
//! a different hash each. Keys that share a place share the later time, so a read may be kept from
//! the copy although nothing was written there, but never the other way round. No entry has to be
//! removed: a time that the Last Sync Time has passed holds nobody back.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use tower_geo_policy::read_floor::{Key, ReadFloor};
//!
//! let floor = ReadFloor::new();
//! let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
//! floor.raise(Key::of_path("/photos/1"), written);
//! assert_eq!(floor.of(Key::of_path("/photos/1")), Some(written));
//! assert_eq!(floor.of(Key::of_path("/photos/2")), None);
//! ```

use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use crate::percent;
use crate::sync::{AtomicU64, Relaxed};

/// Places in each of the two tables: 64 KiB in all.
const PLACES: usize = 4096;

/// What a request reads or writes, as far as reads have to see writes: a hash of its path.
///
/// One word: the upper half is the path's; the lower half is that of the set which an entity of a
/// table belongs to, because inserting one names the set only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(NonZeroU64);

impl Key {
    /// What a write has changed that may change more than its path names, such as a batch: it
    /// holds for every key.
    pub const MANY: Self = Self(NonZeroU64::MAX);

    /// The key of a path without account and query. Letter case does not matter, nor whether a
    /// character is percent-encoded: taking two keys for one is safe.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        let mut bytes = percent::decoded(path.trim_end_matches('/'));
        let mut set = None;
        let mut whole = Hash::new();
        while let Some(byte) = bytes.next() {
            if byte == b'(' && set.is_none() {
                set = Some(whole.finish());
                if bytes.clone().eq([b')']) {
                    break;
                }
            }
            whole.add(byte);
        }
        let (whole, set) = (whole.finish(), set.unwrap_or_else(|| whole.finish()));
        let both = u64::from(whole) << 32 | u64::from(set);
        let key = NonZeroU64::new(both).map_or(Self(NonZeroU64::MIN), Self);
        if key == Self::MANY {
            Self(NonZeroU64::MIN)
        } else {
            key
        }
    }

    fn whole(self) -> u32 {
        cut(self.0.get() >> 32)
    }

    fn set(self) -> u32 {
        cut(self.0.get())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "cutting is the purpose")]
const fn cut(bits: u64) -> u32 {
    bits as u32
}

/// FNV-1a over bytes in lower case, and a finaliser that spreads it over all bits.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3);
    }

    fn finish(self) -> u32 {
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        cut(bits ^ (bits >> 31))
    }
}

/// The times of acknowledged writes, in whole seconds as the service tells them.
#[derive(Debug)]
pub struct ReadFloor {
    tables: [Box<[AtomicU64]>; 2],
    /// The time of the last write whose keys are not known.
    everything: AtomicU64,
}

impl Default for ReadFloor {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadFloor {
    /// Nothing was written yet.
    #[must_use]
    pub fn new() -> Self {
        let table = || (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Self {
            tables: [table(), table()],
            everything: AtomicU64::new(0),
        }
    }

    fn places(&self, hash: u32) -> [Option<&AtomicU64>; 2] {
        let [first, second] = &self.tables;
        let low = hash as usize % PLACES;
        let high = (hash >> 16) as usize % PLACES;
        [first.get(low), second.get(high)]
    }

    /// A write of this key was acknowledged when the service's clock showed `at`.
    pub fn raise(&self, key: Key, at: SystemTime) {
        if key == Key::MANY {
            self.everything.fetch_max(seconds(at), Relaxed);
            return;
        }
        for place in self.places(key.whole()).into_iter().flatten() {
            place.fetch_max(seconds(at), Relaxed);
        }
    }

    /// When this key was written last, or another that shares its place; `None` if never.
    #[must_use]
    pub fn of(&self, key: Key) -> Option<SystemTime> {
        let of_hash = |hash| {
            let times = self.places(hash);
            let times = times.into_iter().flatten().map(|place| place.load(Relaxed));
            times.min().unwrap_or(0)
        };
        let latest = of_hash(key.whole())
            .max(of_hash(key.set()))
            .max(self.everything.load(Relaxed));
        (latest > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(latest))
    }
}

/// Whole seconds, and never 0, which is *never*. A time that no clock of a service shows is cut to
/// the year 9999, so that it can be told again.
fn seconds(at: SystemTime) -> u64 {
    const LAST: u64 = 253_402_300_799;
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    since.as_secs().clamp(1, LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn floor_of(floor: &ReadFloor, path: &str) -> Option<SystemTime> {
        floor.of(Key::of_path(path))
    }

    /// F5: the same key, however it is spelled.
    #[test]
    fn a_key_is_known_in_every_spelling() {
        let floor = ReadFloor::new();
        floor.raise(Key::of_path("/c/a%20b/"), at(7));
        assert_eq!(floor_of(&floor, "/c/a b"), Some(at(7)));
        assert_eq!(floor_of(&floor, "/C/A%20B"), Some(at(7)));
        assert_eq!(floor_of(&floor, "/c/a%2"), None);
        assert_eq!(floor_of(&floor, "/c"), None);
    }

    /// F5: an insert names the table only, so it holds for each of its entities.
    #[test]
    fn an_insert_holds_for_every_entity_of_its_table() {
        let floor = ReadFloor::new();
        floor.raise(Key::of_path("/people"), at(7));
        assert_eq!(
            floor_of(&floor, "/people(PartitionKey='a',RowKey='b')"),
            Some(at(7))
        );
        assert_eq!(
            floor_of(&floor, "/people%28PartitionKey='a',RowKey='b'%29"),
            Some(at(7))
        );
        assert_eq!(floor_of(&floor, "/people()"), Some(at(7)));
        let floor = ReadFloor::new();
        floor.raise(Key::of_path("/people(PartitionKey='a',RowKey='b')"), at(7));
        assert_eq!(
            floor_of(&floor, "/people(PartitionKey='a',RowKey='c')"),
            None
        );
    }

    /// F5: a late acknowledgement of an earlier write lowers nothing.
    #[test]
    fn a_floor_never_falls() {
        let floor = ReadFloor::new();
        floor.raise(Key::of_path("/c/b"), at(9));
        floor.raise(Key::of_path("/c/b"), at(8));
        assert_eq!(floor_of(&floor, "/c/b"), Some(at(9)));
        floor.raise(Key::MANY, at(12));
        assert_eq!(floor_of(&floor, "/c/b"), Some(at(12)));
        assert_eq!(floor_of(&floor, "/never/written"), Some(at(12)));
    }

    /// F5: no write is forgotten, however many keys there are; the memory stays what it is.
    #[test]
    fn no_write_is_forgotten_among_a_hundred_thousand() {
        let floor = ReadFloor::new();
        for n in 0..100_000_u64 {
            floor.raise(Key::of_path(&format!("/c/{n}")), at(n + 1));
        }
        for n in 0..100_000_u64 {
            assert!(floor_of(&floor, &format!("/c/{n}")) >= Some(at(n + 1)));
        }
    }

    /// F5: with a hundred keys written lately, other reads go to the copy as before.
    #[test]
    fn few_keys_are_taken_for_others() {
        let floor = ReadFloor::new();
        for n in 0..100 {
            floor.raise(Key::of_path(&format!("/written/{n}")), at(5));
        }
        let mistaken = (0..10_000)
            .filter(|n| floor_of(&floor, &format!("/read/{n}")).is_some())
            .count();
        assert!(mistaken < 50, "{mistaken} of 10000");
    }

    #[test]
    fn times_that_no_service_tells_do_no_harm() {
        let floor = ReadFloor::new();
        floor.raise(Key::of_path("/c/b"), SystemTime::UNIX_EPOCH);
        assert_eq!(floor_of(&floor, "/c/b"), Some(at(1)));
    }
}
