//! What all users of an account share: its topology, its marks, and the reading of it.

use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use http::StatusCode;

use crate::backoff::drawn;
use crate::breaker::{Circuit, CircuitPhase, Circuits};
use crate::config_error::ConfigError;
use crate::events::{Event, EventKind, Why};
use crate::region::{Endpoint, RegionId};
use crate::service_state::ServiceState;
use crate::tick::Tick;

use super::account::{AccountDocument, DocumentError};
use super::account_reads::{AccountReads, Cause, ReadEnd, ReadStep, Wish};
use super::marks::Marks;
use super::names::regional_endpoint;
use super::settings::AccountSettings;
use super::topology::Topology;

/// The time that a host is given to answer an account read; a later read of a slow host is given
/// twice and four times as much.
const READ_LIMIT: Duration = Duration::from_secs(5);
/// So often one read asks the same host when it does not answer in time.
const READ_TRIES: u32 = 3;

type OnAsk = Box<dyn Fn() + Send + Sync>;

/// What all users of an account share.
///
/// It does no I/O. A task of the layer's asks [`read_step`](Self::read_step) what to do, reads the
/// account with [`begin_read`](Self::begin_read), and wakes all that wait for an account when a
/// read has ended. It sleeps as long as `read_step` says, or until [`on_ask`](Self::set_on_ask).
pub struct AccountState {
    settings: AccountSettings,
    given: Endpoint,
    // Read once per operation, written when the account changes.
    topology: RwLock<Arc<Topology>>,
    /// A bit for each number that has changed hands and whose circuits have not been told.
    reassigned: AtomicU16,
    marks: Marks,
    reads: AccountReads,
    on_ask: OnceLock<OnAsk>,
}

impl fmt::Debug for AccountState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountState")
            .field("settings", &self.settings)
            .field("given", &self.given)
            .field("topology", &self.topology())
            .field("marks", &self.marks)
            .field("reads", &self.reads)
            .finish_non_exhaustive()
    }
}

impl AccountState {
    /// An account of which only the given host is known.
    ///
    /// # Errors
    ///
    /// When a setting makes no sense, or the given host cannot be an account's.
    pub fn new(given: Endpoint, settings: AccountSettings) -> Result<Self, ConfigError> {
        settings.validate()?;
        if given.account_segment().is_some() {
            return Err(ConfigError::new(
                "endpoint",
                "must not have a path: a Cosmos DB account is named by its host",
            ));
        }
        let topology = Topology::given(given.clone(), &settings)?;
        Ok(Self {
            settings,
            given,
            topology: RwLock::new(Arc::new(topology)),
            reassigned: AtomicU16::new(0),
            marks: Marks::new(),
            reads: AccountReads::default(),
            on_ask: OnceLock::new(),
        })
    }

    /// What the user said.
    pub const fn settings(&self) -> &AccountSettings {
        &self.settings
    }

    /// The host that the user gave: the account is read there.
    #[must_use]
    pub const fn given(&self) -> &Endpoint {
        &self.given
    }

    /// The topology of this moment. An operation keeps the one it has until it has asked for
    /// another, because successive documents of an account in change contradict each other.
    #[must_use]
    pub fn topology(&self) -> Arc<Topology> {
        let topology = self.topology.read();
        Arc::clone(&topology.unwrap_or_else(PoisonError::into_inner))
    }

    /// The regions that are left for last.
    #[must_use]
    pub const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Marks a region for the time that the settings say (C10). Nothing with discovery off.
    pub fn mark(&self, region: RegionId, kinds: Circuits, now: Tick) {
        if self.settings.get_discovery() {
            self.marks
                .mark(region, kinds, now + self.settings.get_mark_for());
        }
    }

    /// Called when a read is asked for, without any lock held, so that the task which reads can
    /// look at [`read_step`](Self::read_step) again. The first that is set stays.
    pub fn set_on_ask(&self, wake: impl Fn() + Send + Sync + 'static) {
        // Told above: the first stays.
        let _ = self.on_ask.set(Box::new(wake));
    }

    fn wake(&self) {
        if let Some(on_ask) = self.on_ask.get() {
            on_ask();
        }
    }

    /// Asks for an account read without waiting for it. Nothing with discovery off, and nothing
    /// if the last one for a cause that is spaced is too recent.
    pub fn ask(&self, cause: Cause, now: Tick) {
        if self.settings.get_discovery() && self.reads.ask(cause, now) {
            self.wake();
        }
    }

    pub(super) fn wish(&self, cause: Cause, since: Tick, now: Tick) -> Wish {
        let wish = self.reads.wish(cause, since, now);
        if matches!(wish, Wish::Pending(_)) {
            self.wake();
        }
        wish
    }

    pub(super) fn join(&self, now: Tick) -> Tick {
        self.reads.join(now)
    }

    /// How many account reads have ended, for those who wait for one.
    #[must_use]
    pub fn reads_finished(&self) -> u64 {
        self.reads.finished()
    }

    /// A circuit opened: the region is marked for its kind, and the account is to be read (C7). For
    /// a listener of the service; other events are ignored, and so is what an operator does.
    pub fn on_event(&self, event: &Event) {
        if let EventKind::Breaker {
            region,
            circuit,
            to: CircuitPhase::Open,
            why,
            ..
        } = event.kind
        {
            if why != Why::Operator {
                self.circuit_opened(region, circuit, event.at);
            }
        }
    }

    fn circuit_opened(&self, region: RegionId, circuit: Circuit, now: Tick) {
        self.mark(region, circuit.into(), now);
        self.ask(Cause::Circuit, now);
    }

    /// What the task that reads the account has to do. With discovery off: nothing, ever.
    #[must_use]
    pub fn read_step(&self, now: Tick) -> ReadStep {
        if self.settings.get_discovery() {
            self.reads.poll(now)
        } else {
            ReadStep::Wait(Tick::FOREVER)
        }
    }

    /// The read that [`read_step`](Self::read_step) said is to begin. At start, while nothing is
    /// known, it goes on to the guessed hosts of the preferred regions when the given host has no
    /// document (C3).
    pub fn begin_read(&self) -> AccountRead<'_> {
        let mut hosts = vec![self.given.clone()];
        if !self.topology().is_known() {
            for region in self.settings.get_preferred() {
                let guess = regional_endpoint(&self.given, region);
                hosts.extend(guess.filter(|guess| !hosts.contains(guess)));
            }
        }
        AccountRead {
            account: self,
            hosts,
            at: 0,
            tries: 0,
            error: None,
            is_over: false,
        }
    }

    /// Tells the circuits and the gate of a service which regions the account has now. To be called
    /// after a read that ended with [`ReadEnd::Taken`].
    pub fn tell<X>(&self, service: &ServiceState<X>, now: Tick) {
        let topology = self.topology();
        let reassigned = self.reassigned.swap(0, Ordering::AcqRel);
        service.set_regions(topology.regions(), topology.listed(), reassigned, now);
    }

    /// Takes a document. The old topology goes on to hold if it cannot be used.
    fn take(&self, document: &AccountDocument) -> Result<(), DocumentError> {
        let mut place = self
            .topology
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let new = place.with_document(document, &self.settings)?;
        for (region, _) in new.topology.regions().iter() {
            if new.reassigned & super::routing::bit(region) != 0 {
                self.marks.forget(region);
            }
        }
        self.reassigned.fetch_or(new.reassigned, Ordering::AcqRel);
        *place = Arc::new(new.topology);
        Ok(())
    }
}

/// What comes after an answer to an account read, or its absence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AfterAnswer {
    /// Ask [`AccountRead::host`], which may be another one now.
    Ask,
    /// The read is over.
    Over(ReadEnd),
}

/// One read of the account: which hosts are asked, and what their answers mean (C3).
///
/// Dropped before it is over, it is begun again.
#[derive(Debug)]
#[must_use = "a read that is dropped is begun again"]
pub struct AccountRead<'a> {
    account: &'a AccountState,
    hosts: Vec<Endpoint>,
    at: usize,
    tries: u32,
    error: Option<DocumentError>,
    is_over: bool,
}

impl AccountRead<'_> {
    /// Whom to send `GET /` now.
    #[must_use]
    pub fn host(&self) -> &Endpoint {
        self.hosts.get(self.at).unwrap_or(&self.account.given)
    }

    /// How long to wait for the answer; then call [`timed_out`](Self::timed_out).
    #[must_use]
    pub fn limit(&self) -> Duration {
        READ_LIMIT * (1 << self.tries.min(READ_TRIES))
    }

    /// Why the last answer was no document, for the log.
    #[must_use]
    pub const fn error(&self) -> Option<&DocumentError> {
        self.error.as_ref()
    }

    /// The host answered. `draw` from `0.0..1.0` is for the jitter of the next read.
    pub fn answered(
        &mut self,
        status: StatusCode,
        body: &[u8],
        now: Tick,
        draw: f64,
    ) -> AfterAnswer {
        let taken = AccountDocument::of_answer(status, body)
            .and_then(|document| self.account.take(&document));
        match taken {
            Ok(()) => self.over(ReadEnd::Taken, now, draw),
            Err(error) => {
                self.error = Some(error);
                if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                    return self.over(ReadEnd::Refused(status), now, draw);
                }
                self.next_host(now, draw)
            }
        }
    }

    /// The host could not be reached, or the answer broke off.
    pub fn failed(&mut self, now: Tick, draw: f64) -> AfterAnswer {
        self.next_host(now, draw)
    }

    /// The host did not answer in time. It is given more, unless there is another one to ask.
    pub fn timed_out(&mut self, now: Tick, draw: f64) -> AfterAnswer {
        self.tries += 1;
        if self.hosts.len() == 1 && self.tries < READ_TRIES {
            return AfterAnswer::Ask;
        }
        self.next_host(now, draw)
    }

    fn next_host(&mut self, now: Tick, draw: f64) -> AfterAnswer {
        self.at += 1;
        if self.at < self.hosts.len() {
            self.tries = 0;
            return AfterAnswer::Ask;
        }
        self.over(ReadEnd::Failed, now, draw)
    }

    fn over(&mut self, end: ReadEnd, now: Tick, draw: f64) -> AfterAnswer {
        let settings = &self.account.settings;
        let jitter = drawn(settings.get_refresh_jitter(), draw);
        self.is_over = true;
        self.account
            .reads
            .finish(end, now + settings.get_refresh() + jitter);
        AfterAnswer::Over(end)
    }
}

impl Drop for AccountRead<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.account.reads.abandon();
            self.account.wake();
        }
    }
}
