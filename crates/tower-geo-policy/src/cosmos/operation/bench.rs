//! An account and its regions, played in a time of its own, for tests.

use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::super::vectors::document_of;
use super::super::{
    AccountSettings, AccountState, AfterAnswer, Cosmos, ReadEnd, ReadStep, RequestKind, SUB_STATUS,
};
use super::*;
use crate::backoff::Jitter;
use crate::breaker::{BreakerSettings, Outcome, Sent};
use crate::budget::Budget;
use crate::events::Event;
use crate::fault::Fault;
use crate::operation::{Advice, Again, Failure, Fate};
use crate::provider::Provider;
use crate::region::{Endpoint, Region, Regions};
use crate::service_state::{ServiceConfig, ServiceRoot};

pub(in crate::cosmos) const EAST: &str = "East US";
pub(in crate::cosmos) const WEST: &str = "West US";
pub(in crate::cosmos) const CENTRAL: &str = "Central US";

/// What a region does with one send.
#[derive(Clone, Copy, Debug)]
pub(in crate::cosmos) struct Reply {
    what: What,
    after: Duration,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Answer {
        status: u16,
        sub: u32,
        told: Option<u64>,
    },
    Fault(Fault),
    Silence,
}

impl Reply {
    pub(in crate::cosmos) const fn after(mut self, milliseconds: u64) -> Self {
        self.after = Duration::from_millis(milliseconds);
        self
    }
}

/// An answer with sub-status, at once.
pub(in crate::cosmos) const fn sub(status: u16, sub: u32) -> Reply {
    Reply {
        what: What::Answer {
            status,
            sub,
            told: None,
        },
        after: Duration::ZERO,
    }
}

/// An answer, at once.
pub(in crate::cosmos) const fn answer(status: u16) -> Reply {
    sub(status, 0)
}

/// A 429 that tells how many milliseconds to wait.
pub(in crate::cosmos) const fn throttled(sub: u32, told: u64) -> Reply {
    Reply {
        what: What::Answer {
            status: 429,
            sub,
            told: Some(told),
        },
        after: Duration::ZERO,
    }
}

/// No answer, at once.
pub(in crate::cosmos) const fn fault(fault: Fault) -> Reply {
    Reply {
        what: What::Fault(fault),
        after: Duration::ZERO,
    }
}

/// No answer, ever.
pub(in crate::cosmos) const fn silence() -> Reply {
    Reply {
        what: What::Silence,
        after: Duration::ZERO,
    }
}

/// One send, as the judge sees it.
#[derive(Clone, Debug)]
pub(in crate::cosmos) struct Seen {
    pub(in crate::cosmos) region: String,
    pub(in crate::cosmos) at: u64,
    pub(in crate::cosmos) kind: SendKind,
    pub(in crate::cosmos) probe: bool,
    pub(in crate::cosmos) tentative: bool,
    pub(in crate::cosmos) new_connection: bool,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cosmos) enum End {
    Answer(u16, String),
    Failure(Failure),
    Misfit(Misfit),
}

/// An operation from beginning to end.
#[derive(Debug)]
pub(in crate::cosmos) struct Ran {
    pub(in crate::cosmos) sends: Vec<Seen>,
    pub(in crate::cosmos) end: End,
    /// When it ended, in milliseconds.
    pub(in crate::cosmos) done: u64,
}

impl Ran {
    pub(in crate::cosmos) fn regions(&self) -> Vec<&str> {
        self.sends.iter().map(|seen| &*seen.region).collect()
    }

    pub(in crate::cosmos) fn times(&self) -> Vec<u64> {
        self.sends.iter().map(|seen| seen.at).collect()
    }

    #[track_caller]
    pub(in crate::cosmos) fn answered(&self, regions: &[&str], status: u16) {
        let last = regions.last().map_or("", |last| last).to_owned();
        assert_eq!(self.regions(), regions, "{:?}", self.end);
        assert_eq!(self.end, End::Answer(status, last));
    }

    #[track_caller]
    pub(in crate::cosmos) fn failed(&self, regions: &[&str], failure: Failure) {
        assert_eq!(self.regions(), regions, "{:?}", self.end);
        assert_eq!(self.end, End::Failure(failure));
    }
}

/// The body of an account document.
type Body = Vec<u8>;

/// A service, its account, and what stands for the world.
pub(in crate::cosmos) struct Bench {
    root: ServiceRoot,
    pub(in crate::cosmos) account: Arc<AccountState>,
    pub(in crate::cosmos) settings: RetrySettings,
    pub(in crate::cosmos) budgets: Vec<Budget>,
    pub(in crate::cosmos) advice: Option<Box<dyn Advice>>,
    pub(in crate::cosmos) now: Tick,
    /// What the account read is answered from which time on, and how long that takes.
    documents: Vec<(Tick, StatusCode, Body)>,
    pub(in crate::cosmos) read_takes: Duration,
    /// The hosts that cannot be reached for an account read.
    pub(in crate::cosmos) deaf: Vec<String>,
    /// The account reads that were made: when, and whom.
    pub(in crate::cosmos) reads: Vec<(u64, String)>,
    under_way: Option<Sent>,
    held: Option<(u16, String)>,
}

pub(in crate::cosmos) fn ms(tick: Tick) -> u64 {
    u64::try_from(tick.since(Tick::ZERO).as_millis()).unwrap()
}

pub(in crate::cosmos) fn at(milliseconds: u64) -> Tick {
    Tick::ZERO + Duration::from_millis(milliseconds)
}

impl Bench {
    /// An account with these readable and writable regions; nothing is known of it yet.
    pub(in crate::cosmos) fn new(
        settings: AccountSettings,
        readable: &[&str],
        writable: &[&str],
        multi_write: bool,
    ) -> Self {
        Self::of_document(settings, &document_of(readable, writable, multi_write))
    }

    /// The same with a single writer, East.
    pub(in crate::cosmos) fn single(preferred: &[&str]) -> Self {
        let settings = AccountSettings::new().preferred(preferred);
        Self::new(settings, &[EAST, WEST, CENTRAL], &[EAST], false)
    }

    /// The same with three writers, East being the hub.
    pub(in crate::cosmos) fn multi(preferred: &[&str]) -> Self {
        let settings = AccountSettings::new().preferred(preferred);
        Self::new(
            settings,
            &[EAST, WEST, CENTRAL],
            &[EAST, WEST, CENTRAL],
            true,
        )
    }

    pub(in crate::cosmos) fn of_document(settings: AccountSettings, document: &[u8]) -> Self {
        let given = Endpoint::parse("https://acct.documents.azure.com").unwrap();
        Self::build(given, settings, document, None)
    }

    pub(in crate::cosmos) fn build(
        given: Endpoint,
        settings: AccountSettings,
        document: &[u8],
        breaker: Option<BreakerSettings>,
    ) -> Self {
        let settings = settings.refresh_jitter(Duration::ZERO);
        let account = Arc::new(AccountState::new(given, settings).unwrap());
        // The circuits go by number; what the account's regions are called is the topology's.
        let slots = (0..Regions::MAX).map(|number| {
            let endpoint = Endpoint::parse(&format!("https://slot{number}.example")).unwrap();
            // A single-write account's writer has number 1.
            Region::new(format!("slot {number}"), endpoint).writable(number == 1)
        });
        let regions = Regions::new(slots.collect()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "any instant will do as the base")]
        let base = Instant::now();
        let listener = Arc::clone(&account);
        let config = ServiceConfig::new("docs", Arc::new(Cosmos::new()), regions, base, ())
            .breaker(breaker)
            .listener(Arc::new(move |event: &Event| listener.on_event(event)));
        Self {
            root: ServiceRoot::build(config).unwrap(),
            account,
            settings: RetrySettings::new().jitter(Jitter::None),
            budgets: (0..Regions::MAX).map(|_| Budget::new(500)).collect(),
            advice: None,
            now: at(1000),
            documents: vec![(Tick::ZERO, StatusCode::OK, document.to_vec())],
            read_takes: Duration::ZERO,
            deaf: Vec::new(),
            reads: Vec::new(),
            under_way: None,
            held: None,
        }
    }

    /// The account changes at this time.
    pub(in crate::cosmos) fn changes(
        &mut self,
        milliseconds: u64,
        readable: &[&str],
        writable: &[&str],
        multi_write: bool,
    ) {
        let body = document_of(readable, writable, multi_write);
        self.documents
            .push((at(milliseconds), StatusCode::OK, body));
    }

    /// The account read is answered so from this time on.
    pub(in crate::cosmos) fn account_says(&mut self, milliseconds: u64, status: u16, body: &[u8]) {
        let status = StatusCode::from_u16(status).unwrap();
        self.documents
            .push((at(milliseconds), status, body.to_vec()));
    }

    pub(in crate::cosmos) fn state(&self) -> crate::service_state::ServiceState {
        self.root.handle()
    }

    fn with<R>(&self, look: impl FnOnce(&Context<'_, ()>) -> R) -> R {
        let state = self.root.handle();
        let service = operation::Context {
            state: &state,
            settings: &self.settings,
            budgets: &self.budgets,
            advice: self.advice.as_deref(),
            copies: None,
        };
        look(&Context::new(service, &self.account))
    }

    fn name(&self, operation: &Operation, region: RegionId) -> String {
        let topology = operation.topology().unwrap();
        topology.name(region).unwrap().to_owned()
    }

    /// Lets the task that reads the account do what is due until that time.
    pub(in crate::cosmos) fn at(&mut self, milliseconds: u64) {
        let until = at(milliseconds);
        loop {
            match self.account.read_step(self.now) {
                ReadStep::Begin => {
                    self.read_account();
                }
                ReadStep::Wait(next) if next <= until => self.now = next,
                _ => break,
            }
        }
        self.now = until;
    }

    fn read_account(&mut self) -> ReadEnd {
        let account = Arc::clone(&self.account);
        let mut read = account.begin_read();
        loop {
            let host = read.host().host().to_owned();
            self.reads.push((ms(self.now), host.clone()));
            let after = if self.deaf.contains(&host) {
                read.failed(self.now, 0.0)
            } else {
                let (_, status, body) = self
                    .documents
                    .iter()
                    .rfind(|(from, ..)| *from <= self.now)
                    .unwrap();
                read.answered(*status, body, self.now, 0.0)
            };
            match after {
                AfterAnswer::Ask => {}
                AfterAnswer::Over(end) => return end,
            }
        }
    }

    fn step(&self, operation: &mut Operation, again: Again) -> Step {
        self.with(|context| operation.next(context, again, self.now, &mut || 0.5))
    }

    /// Goes on until something is sent, or there is an end.
    pub(in crate::cosmos) fn next_send(
        &mut self,
        operation: &mut Operation,
    ) -> Result<Seen, Finish> {
        self.next_send_with(operation, Again::Possible)
    }

    pub(in crate::cosmos) fn next_send_with(
        &mut self,
        operation: &mut Operation,
        again: Again,
    ) -> Result<Seen, Finish> {
        loop {
            match self.step(operation, again) {
                Step::Send(directed) => return Ok(self.sent(operation, directed)),
                Step::Wait(until) => {
                    assert!(until > self.now, "a wait leads forward");
                    let until = ms(until);
                    self.at(until);
                }
                Step::AwaitAccount(wait) => self.await_account(wait),
                Step::Finish(finish) => return Err(finish),
            }
        }
    }

    fn await_account(&mut self, wait: AwaitAccount) {
        assert_eq!(wait.finished, self.account.reads_finished());
        let until = wait.until.unwrap_or(Tick::FOREVER);
        loop {
            match self.account.read_step(self.now) {
                ReadStep::Begin => {
                    self.read_account();
                    self.now = (self.now + self.read_takes).min(until);
                    return;
                }
                ReadStep::Wait(next) if next < until => self.now = next,
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    fn sent(&mut self, operation: &Operation, directed: Directed) -> Seen {
        let region = directed.plan.destination.region();
        assert_eq!(region, operation.region());
        let topology = operation.topology().unwrap();
        let uri = format!("{}/dbs/d", self.account.given()).parse().unwrap();
        let regions = topology.regions();
        assert!(regions.direct(directed.plan.destination, &uri).is_ok());
        let given = directed.plan.failure_given;
        let (circuit, state) = (operation.circuit(), self.state());
        let probe = directed.plan.slot.is_some();
        self.under_way = match directed.plan.slot {
            Some(slot) => state.probe_started(slot, circuit, given, self.now),
            None => state.send_restarted(region, circuit, given, self.now),
        };
        Seen {
            region: self.name(operation, region),
            at: ms(self.now),
            kind: directed.plan.kind,
            probe,
            tentative: directed.tentative,
            new_connection: directed.new_connection,
        }
    }

    /// Expects a send.
    pub(in crate::cosmos) fn send(&mut self, operation: &mut Operation) -> Seen {
        match self.next_send(operation) {
            Ok(seen) => seen,
            Err(finish) => panic!("a send was expected, not {finish:?}"),
        }
    }

    pub(in crate::cosmos) fn answer(&mut self, operation: &mut Operation, status: u16, sub: u32) {
        self.reply(operation, self::sub(status, sub));
    }

    pub(in crate::cosmos) fn fault(&mut self, operation: &mut Operation, fault: Fault) {
        self.reply(operation, self::fault(fault));
    }

    /// The region does so; returns the end if the answer is handed over.
    pub(in crate::cosmos) fn reply(
        &mut self,
        operation: &mut Operation,
        reply: Reply,
    ) -> Option<End> {
        let region = self.name(operation, operation.region());
        self.now = self.now + reply.after;
        let (status, sub, told) = match reply.what {
            What::Answer { status, sub, told } => (status, sub, told),
            What::Fault(fault) => {
                self.fails(operation, fault);
                return None;
            }
            What::Silence => {
                let limit = operation.send_limit(&self.settings, None);
                self.now = limit.expect("nothing would end the silence");
                self.fails(operation, Fault::TimedOut);
                return None;
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(SUB_STATUS, HeaderValue::from(sub));
        if let Some(told) = told {
            let name = HeaderName::from_static("x-ms-retry-after-ms");
            headers.insert(name, HeaderValue::from(told));
        }
        let code = StatusCode::from_u16(status).unwrap();
        let verdict = Cosmos::new().verdict(operation.intent(), code, &headers);
        self.settle(Outcome::answer(verdict.evidence()));
        let answer = Answer::read(code, &headers, || UNIX_EPOCH);
        match self.with(|context| operation.answered(context, &answer, self.now)) {
            Fate::Deliver { .. } => Some(End::Answer(status, region)),
            Fate::Hold => {
                self.held = Some((status, region));
                None
            }
            other => panic!("{other:?} is no fate of an answer of Cosmos DB"),
        }
    }

    /// Asks for a hedge beside the send under way.
    pub(in crate::cosmos) fn hedge(&self, operation: &mut Operation) -> Option<String> {
        let directed = self.with(|context| operation.hedge(context, self.now))?;
        assert!(directed.plan.slot.is_none() && !directed.tentative);
        let region = directed.plan.destination.region();
        assert_eq!(region, operation.region());
        Some(self.name(operation, region))
    }

    /// What becomes of an answer with sub-status to the send that is spoken of.
    pub(in crate::cosmos) fn fate_of(
        &self,
        operation: &mut Operation,
        status: u16,
        sub: u32,
    ) -> Fate {
        let mut headers = HeaderMap::new();
        headers.insert(SUB_STATUS, HeaderValue::from(sub));
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Answer::read(status, &headers, || UNIX_EPOCH);
        self.with(|context| operation.answered(context, &answer, self.now))
    }

    pub(in crate::cosmos) fn not_sent(&mut self, operation: &mut Operation) {
        self.under_way = None;
        self.with(|context| operation.not_sent(context));
    }

    pub(in crate::cosmos) fn goes_home(&self, operation: &mut Operation) -> bool {
        self.with(|context| operation.go_home(context))
    }

    /// What becomes of a plain answer.
    pub(in crate::cosmos) fn fate(&self, operation: &mut Operation, status: u16) -> Fate {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Answer::read(status, &HeaderMap::new(), || UNIX_EPOCH);
        self.with(|context| operation.answered(context, &answer, self.now))
    }

    fn fails(&mut self, operation: &mut Operation, fault: Fault) {
        self.settle(Outcome::fault(fault.verdict().evidence()));
        self.with(|context| operation.faulted(context, fault, self.now));
    }

    fn settle(&mut self, outcome: Outcome) {
        if let Some(sent) = self.under_way.take() {
            self.state().send_settled(sent, outcome, self.now, || 1.0);
        }
    }

    /// Plays an operation: `world` says what a region does with its next send.
    pub(in crate::cosmos) fn run(
        &mut self,
        operation: Operation,
        mut world: impl FnMut(&str) -> Reply,
    ) -> Ran {
        self.run_with_time(operation, |region, _| world(region))
    }

    /// The same for a world that changes: it is told the time, too, in milliseconds.
    pub(in crate::cosmos) fn run_with_time(
        &mut self,
        mut operation: Operation,
        mut world: impl FnMut(&str, u64) -> Reply,
    ) -> Ran {
        let mut sends = Vec::new();
        self.held = None;
        let end = loop {
            match self.next_send(&mut operation) {
                Ok(seen) => {
                    let reply = world(&seen.region, seen.at);
                    sends.push(seen);
                    if let Some(end) = self.reply(&mut operation, reply) {
                        break end;
                    }
                }
                Err(finish) => break self.end(finish),
            }
        };
        let done = ms(self.now);
        // What nobody waited for is done beside.
        self.at(done);
        Ran { sends, end, done }
    }

    fn end(&mut self, finish: Finish) -> End {
        match finish {
            Finish::Answer => {
                let (status, region) = self.held.take().expect("an answer was held");
                End::Answer(status, region)
            }
            Finish::Failure(Failure::Config(misfit)) => End::Misfit(misfit),
            Finish::Failure(failure) => End::Failure(failure),
            Finish::Kept => panic!("nothing is kept"),
        }
    }

    /// A read that begins at this time.
    pub(in crate::cosmos) fn read(
        &mut self,
        milliseconds: u64,
        world: impl FnMut(&str) -> Reply,
    ) -> Ran {
        self.at(milliseconds);
        self.run(begin(RequestKind::Read), world)
    }

    /// A write of a document that begins at this time.
    pub(in crate::cosmos) fn write(
        &mut self,
        milliseconds: u64,
        world: impl FnMut(&str) -> Reply,
    ) -> Ran {
        self.at(milliseconds);
        self.run(begin(RequestKind::DocumentWrite), world)
    }
}

/// An operation of that kind on the given host.
pub(in crate::cosmos) fn begin(kind: RequestKind) -> Operation {
    Operation::new(kind, RegionId::FIRST, Reach::Everywhere)
}

/// A world where all is well.
pub(in crate::cosmos) fn well(_: &str) -> Reply {
    answer(200)
}
