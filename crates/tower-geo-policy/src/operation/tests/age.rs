//! Copies that are too old, or lack what was written (F3, F5).

use std::time::SystemTime;

use super::*;
use crate::freshness::{ReplicationStats, ReplicationStatus};

fn wall(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(second)
}

impl Bench {
    /// The copy says now that it has all that was written before second 1000; its clock shows
    /// `clock`.
    fn hears(&self, clock: u64) {
        let stats = ReplicationStats::new(ReplicationStatus::Live, Some(wall(1_000)));
        let now = self.root.handle().instant(self.now);
        let copies = self.copies.as_ref().unwrap();
        copies.last_sync.heard(stats, wall(clock), now);
    }

    fn limited(mode: LocationMode, max_staleness: u64) -> Self {
        let mut bench = Self::new(mode);
        bench.copies = Some(CopyRules {
            max_staleness: Some(Duration::from_secs(max_staleness)),
            ..CopyRules::default()
        });
        bench
    }

    fn with_floor(mode: LocationMode) -> Self {
        let mut bench = Self::new(mode);
        bench.copies = Some(CopyRules {
            floor: Some(Arc::default()),
            ..CopyRules::default()
        });
        bench
    }

    fn wrote(&self, path: &str, second: u64) {
        let floor = self
            .copies
            .as_ref()
            .and_then(|copies| copies.floor.as_ref());
        floor.unwrap().raise(Key::of_path(path), wall(second));
    }

    fn reads(&self, path: &str) -> Operation {
        let mut operation = self.begin(Intent::READ);
        operation.set_key(Key::of_path(path));
        operation
    }
}

const STALE: Finish = Finish::Failure(Failure::Stale { until: None });

/// F3: within the limit the answer is handed over; past it S is out and P is asked.
#[test]
fn a_copy_that_is_too_old_is_out_and_the_writer_is_asked() {
    let mut bench = Bench::limited(LocationMode::SecondaryThenPrimary, 300);
    bench.hears(1_240);
    let mut operation = bench.begin(Intent::READ);
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(
        bench.answers(&mut operation, 200),
        Fate::Deliver { told: true }
    );

    bench.now = bench.now + Duration::from_secs(61);
    let mut operation = bench.begin(Intent::READ);
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(bench.answers(&mut operation, 200), Fate::Discard);
    assert_eq!(bench.sends_to(&mut operation), P);
    assert_eq!(
        bench.answers(&mut operation, 200),
        Fate::Deliver { told: true }
    );
}

/// F3: with P failing as well the end is *stale*, not P's failure.
#[test]
fn a_copy_that_is_too_old_and_a_writer_that_fails_are_stale() {
    for status in [503, 429] {
        let mut bench = Bench::limited(LocationMode::PrimaryThenSecondary, 300);
        bench.settings = bench.settings.clone().max_retries(1);
        bench.hears(1_301);
        let mut operation = bench.begin(Intent::READ);
        assert_eq!(bench.sends_to(&mut operation), P);
        bench.answers(&mut operation, status);
        assert_eq!(bench.sends_to(&mut operation), S);
        assert_eq!(bench.answers(&mut operation, 200), Fate::Discard);
        assert_eq!(bench.finish(&mut operation), STALE);
    }
}

/// F3: unknown is too old; a 404 says something of the data, too.
#[test]
fn a_copy_of_unknown_age_is_too_old_for_any_limit() {
    for status in [200, 404, 304] {
        let mut bench = Bench::limited(LocationMode::SecondaryOnly, 1_000_000);
        let mut operation = bench.begin(Intent::READ);
        assert_eq!(bench.sends_to(&mut operation), S);
        assert_eq!(bench.answers(&mut operation, status), Fate::Discard);
        assert_eq!(bench.finish(&mut operation), STALE);
    }
}

/// F3 and R4: what a copy says of the request is not a matter of age.
#[test]
fn a_refusal_is_not_stale() {
    let mut bench = Bench::limited(LocationMode::SecondaryOnly, 1);
    let mut operation = bench.begin(Intent::READ);
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(
        bench.answers(&mut operation, 403),
        Fate::Deliver { told: true }
    );
}

/// F3: the writer is never too old, nor is what only a copy can tell (I5).
#[test]
fn only_reads_of_data_have_an_age() {
    let mut bench = Bench::limited(LocationMode::SecondaryOnly, 1);
    let mut stats = bench.begin(Intent::READ_AT_COPY);
    assert_eq!(bench.sends_to(&mut stats), S);
    assert_eq!(bench.answers(&mut stats, 200), Fate::Deliver { told: true });
    let mut bench = Bench::limited(LocationMode::PrimaryOnly, 1);
    let mut read = bench.begin(Intent::READ);
    assert_eq!(bench.sends_to(&mut read), P);
    assert_eq!(bench.answers(&mut read, 200), Fate::Deliver { told: false });
}

/// F3: a request has the last word, in both directions.
#[test]
fn a_request_overrides_the_limit_of_its_service() {
    let mut bench = Bench::limited(LocationMode::SecondaryOnly, 1);
    let regions = bench.root.handle().regions().clone();
    let any_age = RequestOptions::new().max_staleness(None);
    assert_eq!(any_age.get_max_staleness(), Some(None));
    let mut operation = bench.begin(Intent::READ);
    operation.set_options(&any_age, &regions).unwrap();
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(
        bench.answers(&mut operation, 200),
        Fate::Deliver { told: true }
    );

    bench.copies = Some(CopyRules::default());
    let limit = Duration::from_millis(1_500);
    let young = RequestOptions::new().max_staleness(limit);
    assert_eq!(young.get_max_staleness(), Some(Some(limit)));
    assert_eq!(RequestOptions::new().get_max_staleness(), None);
    let mut operation = bench.begin(Intent::READ);
    operation.set_options(&young, &regions).unwrap();
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(bench.answers(&mut operation, 200), Fate::Discard);
}

/// F5: while LST ≤ w a read of the same key does not go to S; others do.
#[test]
fn a_read_of_what_was_written_does_not_go_to_a_copy_that_may_lack_it() {
    let mut bench = Bench::with_floor(LocationMode::SecondaryThenPrimary);
    bench.hears(1_000);
    bench.wrote("/c/b", 1_000);
    bench.wrote("/c/earlier", 999);
    for (path, wanted) in [("/c/b", P), ("/c/earlier", S), ("/c/other", S)] {
        let mut operation = bench.reads(path);
        assert_eq!(bench.sends_to(&mut operation), wanted, "{path}");
    }
}

/// F5: a P that fails is returned to, and its failure is the answer (R5).
#[test]
fn below_the_floor_the_writer_is_all_there_is() {
    let mut bench = Bench::with_floor(LocationMode::PrimaryThenSecondary);
    bench.settings = bench.settings.clone().max_retries(1);
    bench.wrote("/c/b", 1);
    let mut operation = bench.reads("/c/b");
    for _ in 0..2 {
        assert_eq!(bench.sends_to(&mut operation), P);
        bench.answers(&mut operation, 503);
    }
    assert_eq!(bench.finish(&mut operation), Finish::Answer);
}

/// F5: where only a copy could be asked, nothing is sent.
#[test]
fn below_the_floor_a_read_of_the_copy_alone_is_stale() {
    let bench = Bench::with_floor(LocationMode::SecondaryOnly);
    bench.wrote("/c/b", 1);
    let mut operation = bench.reads("/c/b");
    assert_eq!(bench.finish(&mut operation), STALE);
    assert_eq!(operation.sends(), 0);
    let mut other = bench.reads("/c/other");
    assert!(matches!(bench.next(&mut other), Step::Send(_)));
}

/// F5 and R7: with P open the end says when it may be asked again.
#[test]
fn below_the_floor_an_open_writer_says_when_to_come_back() {
    let settings = BreakerSettings::new().streak(1);
    let mut bench = Bench::with_breaker(LocationMode::PrimaryThenSecondary, Some(settings));
    bench.copies = Some(CopyRules {
        floor: Some(Arc::default()),
        ..CopyRules::default()
    });
    bench.wrote("/c/b", 1);
    let state = bench.root.handle();
    let sent = state.send_started(P, Circuit::Reads, bench.now).unwrap();
    let failure = crate::breaker::Outcome::fault(crate::verdict::Evidence::Failure);
    let _ = state.send_settled(sent, failure, bench.now, || 1.0);
    let mut operation = bench.reads("/c/b");
    let until = Some(bench.now + Duration::from_secs(30));
    let stale = Finish::Failure(Failure::Stale { until });
    assert_eq!(bench.finish(&mut operation), stale);
}
