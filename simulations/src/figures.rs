//! What a run comes to: the figures of the table, from what the judges noted.

use std::time::Duration;

use serde::Serialize;
use tower_geo::{BoxError, Circuit, CircuitPhase};

use crate::fleet::Fleet;
use crate::goodput::Goodput;
use crate::log::{End, Log, Operation, Send, Turn};
use crate::region::Side;

/// A call that its caller gave up after this time, in silence, is a failure (B8).
const SUSPECT_AFTER: Duration = Duration::from_secs(1);
/// So many suspects in a row open a circuit (B2).
const STREAK: usize = 10;
/// The load of the first seconds is not yet that of every second.
const SETTLING: Duration = Duration::from_secs(2);

/// The figures of one run. Those that end in `_s` are seconds.
///
/// Where clients differ it is the worst one that counts, unless it says otherwise. What did not
/// happen is not there: a circuit that does not open has no first probe.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// Operations from the beginning of the outage to the end of the run.
    pub(crate) operations: usize,
    /// Reads among them that did not get what they asked for.
    pub(crate) failed_reads: usize,
    /// Those of the failed reads whose callers left.
    pub(crate) left_reads: usize,
    /// Writes that did not get what they asked for: refused, and others.
    pub(crate) refused_writes: usize,
    pub(crate) failed_writes: usize,
    /// Clients whose circuit of the primary opened.
    pub(crate) opened: usize,
    /// How long it took to open.
    pub(crate) opened_after_s: Option<f64>,
    /// How long it took after the tenth call had been silent for a second; less than nothing if
    /// the circuit opened sooner than that.
    pub(crate) opened_after_suspects_s: Option<f64>,
    /// Failed sends of a client to the primary before its circuit opened.
    pub(crate) failed_sends_before: Option<usize>,
    /// Sends to the primary per operation, after the circuit had opened, all clients together.
    pub(crate) primary_sends_after: Option<f64>,
    /// The same, to both regions.
    pub(crate) sends_after: Option<f64>,
    /// Sends per operation during the outage, of the operations that were sent at all.
    pub(crate) amplification: f64,
    /// From the end of the outage to the first send to the primary: of the first client, and of
    /// the last one.
    pub(crate) first_probe_s: Option<f64>,
    pub(crate) last_probe_s: Option<f64>,
    /// From the moment when a client's circuit closed, and a share of its reads went back to the
    /// primary, until all of them did.
    pub(crate) return_s: Option<f64>,
    /// The most that the primary was asked in a second after the outage, in multiples of what is
    /// usual.
    pub(crate) primary_peak: f64,
    /// The most that the secondary was asked in a second, in multiples of what the fleet asks for.
    pub(crate) secondary_peak: f64,
    /// Good answers per second before the outage, and their share of that during it.
    pub(crate) goodput_before: f64,
    pub(crate) goodput_during: f64,
    /// From the end of the outage until goodput was back for good; none if it was not.
    pub(crate) back_s: Option<f64>,
    /// Good answers per second, by the second in which they were asked for.
    pub(crate) goodput: Vec<u32>,
}

impl Figures {
    /// Plays a fleet and works its figures out.
    ///
    /// # Errors
    ///
    /// See [`Fleet::play`].
    pub(crate) fn of(fleet: &Fleet) -> Result<Self, BoxError> {
        Ok(Self::from_log(fleet, &fleet.play()?))
    }

    fn from_log(fleet: &Fleet, log: &Log) -> Self {
        let run = Run::new(fleet, log);
        let trips = run.trips();
        let after: Vec<_> = run.operations_from(fleet.before).collect();
        let reads = || after.iter().filter(|operation| !operation.is_write);
        let writes = || after.iter().filter(|operation| operation.is_write);
        let goodput = Goodput::of(fleet, log);
        let (primary_sends_after, sends_after) = run.sends_after(&trips).unzip();
        let usual = fleet.load() * run.share_of_primary();
        Self {
            operations: after.len(),
            failed_reads: reads().filter(|read| read.end != End::Good).count(),
            left_reads: reads().filter(|read| read.end == End::Left).count(),
            refused_writes: writes().filter(|write| write.end == End::Refused).count(),
            failed_writes: writes()
                .filter(|write| !matches!(write.end, End::Good | End::Refused))
                .count(),
            opened: trips.len(),
            opened_after_s: most(trips.iter().map(|trip| seconds(trip.at - fleet.before))),
            opened_after_suspects_s: most(trips.iter().filter_map(|trip| run.lateness(trip))),
            failed_sends_before: trips.iter().map(|trip| run.failed_before(trip)).max(),
            primary_sends_after,
            sends_after,
            amplification: run.amplification(),
            first_probe_s: least(trips.iter().filter_map(|trip| run.first_probe(trip))),
            last_probe_s: most(trips.iter().filter_map(|trip| run.first_probe(trip))),
            return_s: most(trips.iter().filter_map(|trip| run.return_of(trip.client))),
            primary_peak: run.peak(Side::Primary, fleet.until()) / usual,
            secondary_peak: run.peak(Side::Secondary, Duration::ZERO) / fleet.load(),
            goodput_before: goodput.usual(),
            goodput_during: goodput.share_between(fleet.before, fleet.until()),
            back_s: goodput.back_after().map(seconds),
            goodput: goodput.by_second().to_vec(),
        }
    }
}

struct Run<'a> {
    fleet: &'a Fleet,
    log: &'a Log,
    /// By client, the sends to the primary since the beginning of the outage, in order.
    to_primary: Vec<Vec<&'a Send>>,
}

impl<'a> Run<'a> {
    fn new(fleet: &'a Fleet, log: &'a Log) -> Self {
        let mut to_primary: Vec<Vec<_>> = (0..fleet.clients).map(|_| Vec::new()).collect();
        for send in &log.sends {
            let counts = send.side == Side::Primary && send.at >= fleet.before;
            if let Some(own) = to_primary.get_mut(send.client as usize)
                && counts
            {
                own.push(send);
            }
        }
        Self {
            fleet,
            log,
            to_primary,
        }
    }

    fn to_primary(&self, client: u32) -> impl Iterator<Item = &'a Send> {
        let own = self.to_primary.get(client as usize);
        own.into_iter().flatten().copied()
    }

    /// The circuit that decides for most of what the fleet does.
    fn circuit(&self) -> Circuit {
        if self.fleet.writes < 1.0 {
            Circuit::Reads
        } else {
            Circuit::Writes
        }
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> {
        let circuit = self.circuit();
        let turns = self.log.turns.iter();
        turns.filter(move |turn| turn.circuit == circuit && turn.at >= self.fleet.before)
    }

    /// The first opening of each client during the outage.
    fn trips(&self) -> Vec<Turn> {
        let mut trips: Vec<Turn> = Vec::new();
        for turn in self.turns() {
            let opens = turn.to == CircuitPhase::Open && turn.at < self.fleet.until();
            if opens && trips.iter().all(|trip| trip.client != turn.client) {
                trips.push(*turn);
            }
        }
        trips
    }

    fn operations_from(&self, from: Duration) -> impl Iterator<Item = &Operation> {
        let operations = self.log.operations.iter();
        operations.filter(move |operation| operation.at >= from)
    }

    fn failed_before(&self, trip: &Turn) -> usize {
        self.failed_of(trip.client)
            .take_while(|&at| at <= trip.at)
            .count()
    }

    /// When the sends of a client to the primary left that failed.
    fn failed_of(&self, client: u32) -> impl Iterator<Item = Duration> {
        self.to_primary(client)
            .filter(|send| send.failed)
            .map(|send| send.at)
    }

    fn lateness(&self, trip: &Turn) -> Option<f64> {
        let tenth = self.failed_of(trip.client).nth(STREAK - 1)?;
        Some(trip.at.as_secs_f64() - (tenth + SUSPECT_AFTER).as_secs_f64())
    }

    /// Sends per operation to the primary, and to both, between the opening of a client's circuit
    /// and the end of the outage.
    fn sends_after(&self, trips: &[Turn]) -> Option<(f64, f64)> {
        let mut opened_at = vec![None; self.to_primary.len()];
        for trip in trips {
            if let Some(opened_at) = opened_at.get_mut(trip.client as usize) {
                *opened_at = Some(trip.at);
            }
        }
        let opened = |client: u32, at: Duration| {
            let opened_at = opened_at.get(client as usize).copied().flatten();
            opened_at.is_some_and(|opened| opened < at && at < self.fleet.until())
        };
        let operations = self.log.operations.iter();
        let operations = operations.filter(|op| opened(op.client, op.at)).count();
        let sends = self.log.sends.iter();
        let sends: Vec<_> = sends.filter(|send| opened(send.client, send.at)).collect();
        let to_primary = sends.iter().filter(|send| send.side == Side::Primary);
        (operations > 0).then(|| {
            let operations = operations as f64;
            let to_primary = to_primary.count() as f64;
            (to_primary / operations, sends.len() as f64 / operations)
        })
    }

    fn amplification(&self) -> f64 {
        let during = |at| self.fleet.before <= at && at < self.fleet.until();
        let operations = self.log.operations.iter();
        let sent = operations.filter(|op| during(op.at) && op.end != End::Refused);
        let sends = self.log.sends.iter().filter(|send| during(send.at));
        sends.count() as f64 / (sent.count() as f64).max(1.0)
    }

    /// From the end of the outage to the first send of a client to the primary.
    fn first_probe(&self, trip: &Turn) -> Option<f64> {
        let until = self.fleet.until();
        let first = self.to_primary(trip.client).find(|send| send.at >= until)?;
        Some(seconds(first.at - until))
    }

    /// From the last closing of the circuit of a client until all of its reads began at the
    /// primary; for writes, which have no other region, there is nothing to measure.
    fn return_of(&self, client: u32) -> Option<f64> {
        if self.circuit() == Circuit::Writes {
            return None;
        }
        let last = self.turns().filter(|turn| turn.client == client).last()?;
        if last.to != CircuitPhase::Closed {
            return None;
        }
        let elsewhere = self.log.operations.iter().filter(|op| {
            op.client == client && op.at >= last.at && !op.is_write && op.first == Side::Secondary
        });
        let end = elsewhere.map(|op| op.at).max().unwrap_or(last.at);
        Some(seconds(end - last.at))
    }

    /// The share of operations that goes to the primary while all is well: more than one with
    /// hedges, which cost a send of their own elsewhere.
    fn share_of_primary(&self) -> f64 {
        let usual = |at| SETTLING <= at && at < self.fleet.before;
        let operations = self.log.operations.iter().filter(|op| usual(op.at)).count();
        let sends = self.log.sends.iter();
        let sends = sends.filter(|send| send.side == Side::Primary && usual(send.at));
        sends.count() as f64 / (operations as f64).max(1.0)
    }

    /// The most sends in any second from then on.
    fn peak(&self, side: Side, from: Duration) -> f64 {
        const STEP: u128 = 100;
        let mut steps = Vec::new();
        for send in &self.log.sends {
            if send.side != side || send.at < from || send.at >= self.fleet.end() {
                continue;
            }
            let step = usize::try_from((send.at - from).as_millis() / STEP).unwrap_or(usize::MAX);
            if steps.len() <= step {
                steps.resize(step + 1, 0_u32);
            }
            steps[step] += 1;
        }
        let seconds = steps.windows(10).map(|second| second.iter().sum::<u32>());
        f64::from(seconds.max().unwrap_or_default())
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::min)
}
