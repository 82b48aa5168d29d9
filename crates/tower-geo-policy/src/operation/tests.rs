//! The operation, step by step, with the rules in hand. Whole outages are in the drills.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;

use super::*;
use crate::backoff::Jitter;
use crate::breaker::BreakerSettings;
use crate::fault::Fault;
use crate::region::{Endpoint, Region};
use crate::service_state::{ServiceConfig, ServiceRoot};
use crate::static_service::StaticService;
use crate::verdict::{FromCopy, Verdict};

const P: RegionId = RegionId::FIRST;
const S: RegionId = RegionId::new(1);

/// A service of two regions and one operation on it, in a time of its own.
struct Bench {
    root: ServiceRoot,
    settings: RetrySettings,
    budgets: Vec<Budget>,
    advice: Option<Box<dyn Advice>>,
    copies: Option<CopyRules>,
    now: Tick,
}

impl Bench {
    fn new(mode: LocationMode) -> Self {
        Self::with_breaker(mode, None)
    }

    fn with_breaker(mode: LocationMode, breaker: Option<BreakerSettings>) -> Self {
        let region = |name: &str| {
            let endpoint = Endpoint::parse(&format!("https://{name}.example")).unwrap();
            Region::new(name, endpoint)
        };
        let regions = Regions::new(vec![region("p").writable(true), region("s")]).unwrap();
        #[expect(clippy::disallowed_methods, reason = "any instant will do as the base")]
        let base = Instant::now();
        let config = ServiceConfig::new("shop", Arc::new(StaticService::new()), regions, base, ())
            .mode(mode)
            .breaker(breaker);
        Self {
            root: ServiceRoot::build(config).unwrap(),
            settings: RetrySettings::new().jitter(Jitter::None),
            budgets: vec![Budget::new(500), Budget::new(500)],
            advice: None,
            copies: None,
            now: Tick::ZERO + Duration::from_secs(1),
        }
    }

    fn context<R>(&self, look: impl FnOnce(&Context<'_, ()>) -> R) -> R {
        let state = self.root.handle();
        look(&Context {
            state: &state,
            settings: &self.settings,
            budgets: &self.budgets,
            advice: self.advice.as_deref(),
            copies: self.copies.as_ref(),
        })
    }

    fn begin(&self, intent: Intent) -> Operation {
        Operation::new(intent, P, Reach::Everywhere, self.root.handle().mode())
    }

    fn next(&self, operation: &mut Operation) -> Step {
        self.next_with(operation, Again::Possible)
    }

    fn next_with(&self, operation: &mut Operation, again: Again) -> Step {
        self.context(|context| operation.next(context, again, self.now, &mut || 0.5))
    }

    /// Expects a send, at once or after a wait, and answers with where it went.
    fn sends_to(&mut self, operation: &mut Operation) -> RegionId {
        match self.next(operation) {
            Step::Send(plan) => plan.destination.region(),
            Step::Wait(until) => {
                self.now = until;
                self.sends_to(operation)
            }
            other => panic!("a send was expected, not {other:?}"),
        }
    }

    fn waits_until(&self, operation: &mut Operation) -> Tick {
        match self.next(operation) {
            Step::Wait(until) => until,
            other => panic!("a wait was expected, not {other:?}"),
        }
    }

    fn finish(&self, operation: &mut Operation) -> Finish {
        match self.next(operation) {
            Step::Finish(finish) => finish,
            other => panic!("an end was expected, not {other:?}"),
        }
    }

    fn answers(&self, operation: &mut Operation, status: u16) -> Fate {
        self.answers_after(operation, status, None)
    }

    fn answers_after(
        &self,
        operation: &mut Operation,
        status: u16,
        told_wait: Option<Duration>,
    ) -> Fate {
        let status = StatusCode::from_u16(status).unwrap();
        let (verdict, from_copy) = match status.as_u16() {
            429 => (Verdict::Throttled, FromCopy::Usual),
            500..=504 => (Verdict::Transient, FromCopy::Usual),
            404 | 412 => (Verdict::Answered, FromCopy::WriterDecides),
            400 | 401 | 403 => (Verdict::Refused { alive: false }, FromCopy::WriterDecides),
            _ => (Verdict::Answered, FromCopy::Usual),
        };
        let answer = Answer::new(status, verdict, from_copy, told_wait);
        self.context(|context| operation.answered(context, &answer, self.now, 0.5))
    }

    fn faults(&self, operation: &mut Operation, fault: Fault) {
        self.context(|context| operation.faulted(context, fault, self.now, 0.5));
    }
}

/// E2: a healthy operation goes home by one look, and its answer needs no word.
#[test]
fn a_healthy_operation_goes_home_and_delivers_in_silence() {
    let bench = Bench::new(LocationMode::PrimaryThenSecondary);
    for intent in [Intent::READ, Intent::WRITE_HARMLESS, Intent::WRITE_ONCE] {
        let mut operation = bench.begin(intent);
        assert!(bench.context(|context| operation.go_home(context)));
        let fate = bench.answers(&mut operation, 200);
        assert_eq!(fate, Fate::Deliver { told: false });
        assert!(operation.trail().is_none(), "nothing is kept");
    }
}

/// R2: a mode that begins elsewhere does not go home.
#[test]
fn a_read_that_begins_at_the_copy_is_decided() {
    let mut bench = Bench::new(LocationMode::SecondaryThenPrimary);
    let mut read = bench.begin(Intent::READ);
    assert!(!bench.context(|context| read.go_home(context)));
    assert_eq!(bench.sends_to(&mut read), S);
    assert_eq!(bench.answers(&mut read, 200), Fate::Deliver { told: true });
    let mut write = bench.begin(Intent::WRITE_HARMLESS);
    assert!(bench.context(|context| write.go_home(context)));
}

/// R3: falling over is immediate, only a return waits; T1: from that region's own last answer.
#[test]
fn a_new_region_goes_before_a_return() {
    let mut bench = Bench::new(LocationMode::PrimaryThenSecondary);
    let mut operation = bench.begin(Intent::READ);
    let start = bench.now;
    assert_eq!(bench.sends_to(&mut operation), P);
    assert_eq!(bench.answers(&mut operation, 503), Fate::Hold);
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(bench.now, start, "without a wait");
    bench.faults(&mut operation, Fault::Connect);
    assert_eq!(bench.sends_to(&mut operation), P);
    assert_eq!(bench.now.since(start), Duration::from_millis(800));
    let kinds: Vec<_> = operation
        .trail()
        .unwrap()
        .sends()
        .iter()
        .map(|s| s.kind)
        .collect();
    assert_eq!(kinds, [SendKind::First, SendKind::FallOver]);
}

/// R4, R5: 404 of the copy never hides a failure of the writer, earlier or later.
#[test]
fn an_answer_of_the_copy_hides_no_failure_of_the_writer() {
    for later in [false, true] {
        let mode = if later {
            LocationMode::SecondaryThenPrimary
        } else {
            LocationMode::PrimaryThenSecondary
        };
        let mut bench = Bench::new(mode);
        bench.settings = bench.settings.clone().max_retries(1);
        let mut operation = bench.begin(Intent::READ);
        if later {
            assert_eq!(bench.sends_to(&mut operation), S);
            assert_eq!(bench.answers(&mut operation, 404), Fate::Keep);
            assert_eq!(bench.sends_to(&mut operation), P);
            bench.faults(&mut operation, Fault::Reset);
            let failure = Finish::Failure(Failure::Transport);
            assert_eq!(bench.finish(&mut operation), failure);
        } else {
            assert_eq!(bench.sends_to(&mut operation), P);
            assert_eq!(bench.answers(&mut operation, 503), Fate::Hold);
            assert_eq!(bench.sends_to(&mut operation), S);
            assert_eq!(bench.answers(&mut operation, 404), Fate::Discard);
            assert_eq!(bench.finish(&mut operation), Finish::Answer);
        }
    }
}

/// R4: it is the answer when the writer is not admissible and has not failed.
#[test]
fn an_answer_of_the_copy_counts_while_the_writer_is_open() {
    let breaker = BreakerSettings::new();
    let mut bench = Bench::with_breaker(LocationMode::PrimaryThenSecondary, Some(breaker));
    bench.root.handle().force_open(P, bench.now);
    let mut operation = bench.begin(Intent::READ);
    assert!(!bench.context(|context| operation.go_home(context)));
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(bench.answers(&mut operation, 404), Fate::Keep);
    assert_eq!(bench.finish(&mut operation), Finish::Kept);
}

/// R5, R7: *breaker open* only when nothing was sent.
#[test]
fn no_region_admits() {
    let breaker = BreakerSettings::new();
    let bench = Bench::with_breaker(LocationMode::PrimaryThenSecondary, Some(breaker));
    let state = bench.root.handle();
    state.force_open(P, bench.now);
    state.force_open(S, bench.now);
    let mut operation = bench.begin(Intent::READ);
    let refused = Finish::Failure(Failure::BreakerOpen { until: None });
    assert_eq!(bench.finish(&mut operation), refused);
}

/// R1: no pin, mode or fault makes a write leave for a copy.
#[test]
fn a_write_stays_at_the_writer() {
    for mode in LocationMode::ALL {
        let mut bench = Bench::new(mode);
        let mut operation = bench.begin(Intent::WRITE_HARMLESS);
        for _ in 0..6 {
            assert_eq!(bench.sends_to(&mut operation), P);
            bench.faults(&mut operation, Fault::Connect);
        }
        let failure = Finish::Failure(Failure::Transport);
        assert_eq!(bench.finish(&mut operation), failure);

        let mut pinned = bench.begin(Intent::WRITE_ONCE);
        let options = RequestOptions::new().pin(RegionRef::Secondary);
        pinned
            .set_options(&options, bench.root.handle().regions())
            .unwrap();
        let misfit = Finish::Failure(Failure::Config(Misfit::WriteToCopy));
        assert_eq!(bench.finish(&mut pinned), misfit);
    }
}

/// V1: what may have been applied is not sent again, what surely was not is.
#[test]
fn a_write_that_may_have_been_applied_is_not_repeated() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    let mut once = bench.begin(Intent::WRITE_ONCE);
    assert_eq!(bench.sends_to(&mut once), P);
    assert_eq!(bench.answers(&mut once, 429), Fate::Hold);
    assert_eq!(bench.sends_to(&mut once), P);
    assert_eq!(bench.answers(&mut once, 500), Fate::Hold);
    assert_eq!(bench.finish(&mut once), Finish::Answer);

    let mut lost = bench.begin(Intent::WRITE_ONCE);
    assert_eq!(bench.sends_to(&mut lost), P);
    bench.faults(&mut lost, Fault::Reset);
    let unknown = Finish::Failure(Failure::UnknownOutcome);
    assert_eq!(bench.finish(&mut lost), unknown);
}

/// V1: an answer stands, unless a later send was ambiguous.
#[test]
fn a_later_ambiguous_send_outweighs_an_answer() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    bench.settings = bench.settings.clone().max_retries(1);
    for (fault, end) in [
        (Fault::Connect, Finish::Answer),
        (Fault::Reset, Finish::Failure(Failure::UnknownOutcome)),
    ] {
        let mut operation = bench.begin(Intent::WRITE_HARMLESS);
        assert_eq!(bench.sends_to(&mut operation), P);
        assert_eq!(bench.answers(&mut operation, 503), Fate::Hold);
        assert_eq!(bench.sends_to(&mut operation), P);
        bench.faults(&mut operation, fault);
        assert_eq!(bench.finish(&mut operation), end);
    }
}

/// V2: 404 of a DELETE, 409 and 412 may be the doing of an earlier send.
#[test]
fn a_conflict_after_a_lost_answer_is_marked() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    for (is_delete, status, marked) in [
        (true, 404, true),
        (false, 404, false),
        (false, 409, true),
        (false, 412, true),
        (true, 200, false),
    ] {
        let mut operation = bench.begin(Intent::WRITE_HARMLESS);
        if is_delete {
            operation.set_is_delete();
        }
        bench.sends_to(&mut operation);
        bench.faults(&mut operation, Fault::Reset);
        bench.sends_to(&mut operation);
        bench.answers(&mut operation, status);
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(operation.is_after_ambiguous(status), marked, "{status}");
    }
}

/// T3: the deadline is an error only if it cut a send and there is nothing else to hand over.
#[test]
fn a_deadline_that_cut_the_only_send_is_told() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    bench.settings = bench
        .settings
        .clone()
        .attempt_timeout(None)
        .deadline(Duration::from_secs(4));
    let mut operation = bench.begin(Intent::READ);
    bench.sends_to(&mut operation);
    let limit = operation.send_limit(&bench.settings, None).unwrap();
    assert_eq!(limit.since(bench.now), Duration::from_secs(4));
    bench.now = limit;
    bench.faults(&mut operation, Fault::TimedOut);
    let failure = Finish::Failure(Failure::Deadline);
    assert_eq!(bench.finish(&mut operation), failure);
}

/// T3: a send may use its share of what is left; T10: and at most its own time-out.
#[test]
fn a_send_gets_its_share() {
    let mut bench = Bench::new(LocationMode::PrimaryThenSecondary);
    bench.settings = bench.settings.clone().deadline(Duration::from_secs(8));
    let mut operation = bench.begin(Intent::READ);
    assert!(bench.context(|context| operation.go_home(context)));
    operation.set_sent_at(bench.now);
    let limit = operation.send_limit(&bench.settings, None).unwrap();
    assert_eq!(
        limit.since(bench.now),
        Duration::from_secs(4),
        "half for each region"
    );
    let short = bench
        .settings
        .clone()
        .attempt_timeout(Duration::from_secs(1));
    let taken = bench.now + Duration::from_secs(2);
    let limit = operation.send_limit(&short, Some(taken)).unwrap();
    assert_eq!(
        limit.since(bench.now),
        Duration::from_secs(3),
        "from the last byte"
    );
}

/// T1: chance adds to a told wait, one draw for each rest, which then holds for the whole service: who
/// was told comes back a little after who waited, and nobody before.
#[test]
fn a_rest_is_longer_by_chance_and_the_same_for_all() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    bench.settings = RetrySettings::new(); // equal jitter, and all draws are 0.5
    let at = |bench: &Bench, millis| bench.now + Duration::from_millis(millis);
    let told = Some(Duration::from_secs(8));
    let (mut first, mut second) = (
        bench.begin(Intent::WRITE_HARMLESS),
        bench.begin(Intent::WRITE_HARMLESS),
    );
    assert_eq!(bench.sends_to(&mut first), P);
    assert_eq!(bench.sends_to(&mut second), P);
    assert_eq!(bench.answers_after(&mut first, 429, told), Fate::Hold);
    assert_eq!(bench.answers_after(&mut second, 429, told), Fate::Hold);
    let rests_until = at(&bench, 10_000);
    let mut other = bench.begin(Intent::WRITE_HARMLESS);
    assert_eq!(bench.waits_until(&mut other), rests_until);
    let returns = rests_until + Duration::from_millis(400);
    assert_eq!(bench.waits_until(&mut first), returns);
    assert_eq!(bench.waits_until(&mut second), returns);
}

/// T1: a told wait longer than `max_delay` means no return in this operation.
#[test]
fn a_long_told_wait_ends_the_returns() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    let mut operation = bench.begin(Intent::READ);
    bench.sends_to(&mut operation);
    let told = Some(Duration::from_secs(61));
    assert_eq!(bench.answers_after(&mut operation, 503, told), Fate::Hold);
    assert_eq!(bench.finish(&mut operation), Finish::Answer);
    let mut other = bench.begin(Intent::READ);
    let Finish::Failure(Failure::BreakerOpen { until }) = bench.finish(&mut other) else {
        panic!("the region rests for every operation of the service");
    };
    assert_eq!(until.unwrap().since(bench.now), Duration::from_secs(61));
}

/// T4: further sends pay; a region that cannot be paid is not admissible.
#[test]
fn a_region_that_cannot_be_paid_is_left_out() {
    let mut bench = Bench::new(LocationMode::PrimaryThenSecondary);
    bench.budgets = vec![Budget::new(13), Budget::new(1)];
    let mut operation = bench.begin(Intent::READ);
    assert_eq!(bench.sends_to(&mut operation), P);
    bench.answers(&mut operation, 503);
    assert_eq!(bench.sends_to(&mut operation), S);
    assert_eq!(bench.budgets[1].level(), 0, "a first visit costs one");
    bench.answers(&mut operation, 503);
    assert_eq!(bench.finish(&mut operation), Finish::Answer);
    assert_eq!(bench.budgets[0].level(), 13, "a return would cost 14");
}

/// T5: the same signed bytes are not sent again after their time.
#[test]
fn an_old_signature_ends_the_returns() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    let mut operation = bench.begin(Intent::READ);
    bench.sends_to(&mut operation);
    bench.answers(&mut operation, 503);
    operation.set_signature_limit(bench.now + Duration::from_millis(799));
    assert_eq!(bench.finish(&mut operation), Finish::Answer);
}

/// T6: a send is due and the body is gone.
#[test]
fn a_body_that_is_gone_is_told() {
    let mut bench = Bench::new(LocationMode::PrimaryOnly);
    for (fault, failure) in [
        (Fault::Connect, Failure::NotReplayable),
        (Fault::Reset, Failure::UnknownOutcome),
    ] {
        let mut operation = bench.begin(Intent::WRITE_HARMLESS);
        bench.sends_to(&mut operation);
        bench.faults(&mut operation, fault);
        let step = bench.next_with(&mut operation, Again::BodyGone);
        assert!(
            matches!(step, Step::Finish(Finish::Failure(f)) if f == failure),
            "{step:?}"
        );
    }
}

#[derive(Debug)]
struct Always(Advised);

impl Advice for Always {
    fn advise(&self, trail: &Trail, _planned: &Planned) -> Advised {
        assert!(!trail.sends().is_empty(), "it sees what was tried");
        self.0
    }
}

/// T9: advice may stop, change the wait or choose another admissible region; it breaks neither T2
/// nor T3.
#[test]
fn advice_is_taken_within_the_rules() {
    let advised = |advice| {
        let mut bench = Bench::new(LocationMode::PrimaryThenSecondary);
        bench.advice = Some(Box::new(Always(advice)));
        let mut operation = bench.begin(Intent::READ);
        assert_eq!(bench.sends_to(&mut operation), P);
        bench.answers(&mut operation, 503);
        (bench, operation)
    };
    let (bench, mut operation) = advised(Advised::Stop);
    assert_eq!(bench.finish(&mut operation), Finish::Answer);

    let (bench, mut operation) = advised(Advised::After(Duration::from_secs(3600)));
    assert_eq!(
        bench.finish(&mut operation),
        Finish::Answer,
        "the deadline is kept"
    );

    let (bench, mut operation) = advised(Advised::After(Duration::from_secs(2)));
    let step = bench.next(&mut operation);
    assert!(matches!(step, Step::Wait(until) if until.since(bench.now) == Duration::from_secs(2)));

    let (mut bench, mut operation) = advised(Advised::To(P));
    assert_eq!(
        bench.sends_to(&mut operation),
        P,
        "although the copy is untried"
    );

    let (mut bench, mut operation) = advised(Advised::To(RegionId::new(9)));
    assert_eq!(
        bench.sends_to(&mut operation),
        S,
        "no such region: as planned"
    );

    let (mut bench, mut operation) = advised(Advised::After(Duration::ZERO));
    for _ in 0..5 {
        bench.sends_to(&mut operation);
        bench.answers(&mut operation, 503);
    }
    assert_eq!(
        bench.finish(&mut operation),
        Finish::Answer,
        "T2: six sends"
    );
}

/// A redirect alone: each region at most once, without waits.
#[test]
fn a_redirect_alone_asks_each_region_once() {
    let mut bench = Bench::new(LocationMode::PrimaryThenSecondary);
    let mode = LocationMode::PrimaryThenSecondary;
    let mut operation = Operation::new(Intent::READ, P, Reach::OnceEach, mode);
    assert_eq!(bench.sends_to(&mut operation), P);
    bench.answers(&mut operation, 503);
    assert_eq!(bench.sends_to(&mut operation), S);
    bench.answers(&mut operation, 503);
    assert_eq!(bench.finish(&mut operation), Finish::Answer);
    assert_eq!(operation.send_limit(&bench.settings, None), None);
}

/// A retry alone stays in the region that the request names.
#[test]
fn a_retry_alone_stays_home() {
    let mut bench = Bench::new(LocationMode::PrimaryThenSecondary);
    let mode = LocationMode::PrimaryThenSecondary;
    let mut operation = Operation::new(Intent::READ, P, Reach::Home, mode);
    for _ in 0..3 {
        assert_eq!(bench.sends_to(&mut operation), P);
        bench.answers(&mut operation, 503);
    }
}

mod age;
