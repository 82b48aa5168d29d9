//! When the account is read again (C3, C5, C7, C8): one read at a time, and who waits for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;

use crate::tick::Tick;

/// Between two reads of the same [`Cause`] lies at least so much time, where the cause is one that
/// may come in great numbers (C7, C8).
pub const READ_SPACING: Duration = Duration::from_secs(15);

/// Why the account is to be read before its time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A region refused (C5), or nothing is known yet (C3). Not spaced.
    Refusal,
    /// A region could not be reached (C8).
    Unreachable,
    /// A circuit opened (C7).
    Circuit,
}

impl Cause {
    const ALL: [Self; 3] = [Self::Refusal, Self::Unreachable, Self::Circuit];

    const fn is_spaced(self) -> bool {
        !matches!(self, Self::Refusal)
    }
}

/// How a read of the account ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReadEnd {
    /// With a document that is in use now.
    Taken,
    /// With 401 or 403: no other host was asked (C3).
    Refused(StatusCode),
    /// With no document from any host. The old topology goes on to hold.
    Failed,
}

/// A read of the account that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// When it began.
    pub started: Tick,
    /// How it ended.
    pub end: ReadEnd,
}

/// What the task that reads the account has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReadStep {
    /// Read it now.
    Begin,
    /// Nothing: a read is under way.
    UnderWay,
    /// Come back then, or when somebody asks for a read.
    Wait(Tick),
}

/// Whether there is the read that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Granted(Finished),
    /// It begins then at the earliest, or has begun then.
    Pending(Tick),
}

#[derive(Debug, Default)]
struct Inner {
    under_way: Option<Tick>,
    last: Option<Finished>,
    /// When the next read is due by itself.
    due: Tick,
    /// By cause: from when on a read is wanted, and when one last began for it.
    wanted: [Option<Tick>; 3],
    began_for: [Option<Tick>; 3],
    finished: u64,
}

impl Inner {
    /// From when on a read of this cause may begin.
    fn permitted(&self, cause: Cause, now: Tick) -> Tick {
        let last = self.began_for.get(cause as usize).copied().flatten();
        match last.filter(|_| cause.is_spaced()) {
            Some(last) => now.max(last + READ_SPACING),
            None => now,
        }
    }

    fn want(&mut self, cause: Cause, at: Tick) {
        if let Some(wanted) = self.wanted.get_mut(cause as usize) {
            *wanted = Some(wanted.map_or(at, |earlier| earlier.min(at)));
        }
    }
}

/// One read at a time.
#[derive(Debug, Default)]
pub(super) struct AccountReads(Mutex<Inner>);

impl AccountReads {
    /// What is behind the lock is valid after every single step, so a panic elsewhere matters not.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a read without waiting for it. Returns whether there will be one because of it: not
    /// if one has just begun, nor if the last one for this cause is too recent.
    pub(super) fn ask(&self, cause: Cause, now: Tick) -> bool {
        let mut inner = self.lock();
        let is_new = inner.under_way != Some(now) && inner.permitted(cause, now) <= now;
        if is_new {
            inner.want(cause, now);
        }
        is_new
    }

    /// Looks for a read that began at `since` or later, and asks for one if there is none.
    pub(super) fn wish(&self, cause: Cause, since: Tick, now: Tick) -> Wish {
        let mut inner = self.lock();
        if let Some(last) = inner.last.filter(|last| last.started >= since) {
            return Wish::Granted(last);
        }
        if let Some(begun) = inner.under_way.filter(|&begun| begun >= since) {
            return Wish::Pending(begun);
        }
        let at = inner.permitted(cause, now);
        inner.want(cause, at);
        Wish::Pending(at)
    }

    /// The time since which a read counts for somebody who comes now and knows nothing: the
    /// beginning of the one that is under way, or now.
    pub(super) fn join(&self, now: Tick) -> Tick {
        self.lock().under_way.unwrap_or(now)
    }

    /// How many reads have ended.
    pub(super) fn finished(&self) -> u64 {
        self.lock().finished
    }

    /// Whether a read is due. If so, it has begun with this.
    pub(super) fn poll(&self, now: Tick) -> ReadStep {
        let mut inner = self.lock();
        if inner.under_way.is_some() {
            return ReadStep::UnderWay;
        }
        let wanted = inner.wanted.iter().flatten().copied();
        let next = wanted.fold(inner.due, Tick::min);
        if next > now {
            return ReadStep::Wait(next);
        }
        inner.under_way = Some(now);
        for cause in Cause::ALL {
            let index = cause as usize;
            // A read that begins now is new enough for those, too, whose time has not come.
            let wanted = inner.wanted.get_mut(index).and_then(Option::take);
            if wanted.is_some_and(|wanted| wanted <= now) {
                if let Some(began) = inner.began_for.get_mut(index) {
                    *began = Some(now);
                }
            }
        }
        ReadStep::Begin
    }

    /// The read under way has ended; the next is due then.
    pub(super) fn finish(&self, end: ReadEnd, due: Tick) {
        let mut inner = self.lock();
        if let Some(started) = inner.under_way.take() {
            inner.last = Some(Finished { started, end });
            inner.finished += 1;
            inner.due = due;
        }
    }

    /// The read under way was dropped: another is due at once, since somebody may wait for it.
    pub(super) fn abandon(&self) {
        let mut inner = self.lock();
        if inner.under_way.take().is_some() {
            inner.due = Tick::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::ZERO + Duration::from_secs(seconds)
    }

    fn read(reads: &AccountReads, now: Tick, due: Tick) {
        assert_eq!(reads.poll(now), ReadStep::Begin);
        reads.finish(ReadEnd::Taken, due);
    }

    /// C3: at start, then once per period; one at a time.
    #[test]
    fn reads_come_one_by_one() {
        let reads = AccountReads::default();
        assert_eq!(reads.poll(at(0)), ReadStep::Begin);
        assert!(
            reads.ask(Cause::Refusal, at(1)),
            "the one under way may be too old"
        );
        assert_eq!(reads.poll(at(2)), ReadStep::UnderWay);
        reads.finish(ReadEnd::Taken, at(300));
        read(&reads, at(3), at(303));
        assert_eq!(reads.poll(at(4)), ReadStep::Wait(at(303)));
        read(&reads, at(303), at(603));
        assert_eq!(reads.finished(), 3);
    }

    /// C5: a fresh read is one that began after the refusal; many who wait share it.
    #[test]
    fn those_who_wait_share_a_fresh_read() {
        let reads = AccountReads::default();
        read(&reads, at(0), at(300));
        for _ in 0..5 {
            assert_eq!(
                reads.wish(Cause::Refusal, at(60), at(60)),
                Wish::Pending(at(60))
            );
        }
        assert_eq!(reads.poll(at(60)), ReadStep::Begin);
        assert_eq!(
            reads.wish(Cause::Refusal, at(60), at(61)),
            Wish::Pending(at(60))
        );
        let late = reads.wish(Cause::Refusal, at(61), at(61));
        assert_eq!(late, Wish::Pending(at(61)), "it began before this refusal");
        reads.finish(ReadEnd::Taken, at(360));
        let granted = reads.wish(Cause::Refusal, at(60), at(62));
        assert!(matches!(granted, Wish::Granted(last) if last.started == at(60)));
        assert_eq!(reads.poll(at(62)), ReadStep::Begin);
        reads.finish(ReadEnd::Failed, at(362));
        let granted = reads.wish(Cause::Refusal, at(61), at(63));
        assert!(matches!(granted, Wish::Granted(last) if last.end == ReadEnd::Failed));
        assert_eq!(reads.poll(at(63)), ReadStep::Wait(at(362)));
    }

    /// C8: at most every 15 s, counted between such reads only; who waits gets the next one.
    #[test]
    fn reads_of_one_cause_are_spaced() {
        let reads = AccountReads::default();
        read(&reads, at(0), at(600));
        assert!(
            reads.ask(Cause::Unreachable, at(1)),
            "the read at start does not count"
        );
        read(&reads, at(1), at(601));
        assert!(!reads.ask(Cause::Unreachable, at(5)));
        assert_eq!(reads.poll(at(5)), ReadStep::Wait(at(601)));
        assert!(reads.ask(Cause::Circuit, at(5)), "another cause");
        read(&reads, at(5), at(605));
        assert!(!reads.ask(Cause::Circuit, at(19)), "C7: spaced, too");
        assert!(reads.ask(Cause::Circuit, at(20)));
        reads.lock().wanted = [None; 3];
        assert_eq!(
            reads.wish(Cause::Unreachable, at(6), at(6)),
            Wish::Pending(at(16))
        );
        assert_eq!(reads.poll(at(6)), ReadStep::Wait(at(16)));
        // Whatever read comes first will do.
        assert!(reads.ask(Cause::Refusal, at(8)));
        read(&reads, at(8), at(608));
        let granted = reads.wish(Cause::Unreachable, at(6), at(9));
        assert!(matches!(granted, Wish::Granted(_)));
        assert_eq!(reads.poll(at(16)), ReadStep::Wait(at(608)));
        assert!(
            reads.ask(Cause::Unreachable, at(16)),
            "not spaced from the refusal's"
        );
    }

    /// C3: a read that is dropped half way is made up for.
    #[test]
    fn an_abandoned_read_is_begun_again() {
        let reads = AccountReads::default();
        assert_eq!(reads.poll(at(0)), ReadStep::Begin);
        assert_eq!(reads.join(at(1)), at(0));
        reads.abandon();
        assert_eq!(reads.join(at(1)), at(1));
        assert_eq!(reads.poll(at(1)), ReadStep::Begin);
    }
}
