//! What became of a send, what follows from it, and how an operation ends (C5 to C9, V1, V2, T3).

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};

use crate::breaker::{Circuit, Circuits};
use crate::fault::Fault;
use crate::operation::{Failure, Fate, Finish, Reach};
use crate::region::RegionId;
use crate::retry_after;
use crate::tick::Tick;
use crate::trail::{Ending, Send};
use crate::verdict::Verdict;

use super::super::account_reads::Cause;
use super::super::intents::RequestKind;
use super::super::routing::{Route, bit};
use super::super::topology::Topology;
use super::super::verdicts::Meaning;
use super::{Context, Due, Operation, Past};

/// C5: when the new choice is tried, counted from the first refusal.
const AFTER_REFUSAL: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// C9: the wait after a 429 that tells none.
const UNTOLD_WAIT: Duration = Duration::from_secs(5);
/// C9: repeats after 429.
const THROTTLED_REPEATS: u32 = 9;
/// C9: no repeat in place later than so long after the first such answer.
const IN_PLACE_FOR: Duration = Duration::from_secs(30);
/// C9: the first wait after a 449, and the longest.
const FIRST_RETRY_WITH: Duration = Duration::from_millis(10);
const LAST_RETRY_WITH: Duration = Duration::from_secs(1);

/// An answer as the operation sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// What it means.
    pub meaning: Meaning,
    /// How long the server asks to be left alone.
    pub told_wait: Option<Duration>,
}

impl Answer {
    /// Reads an answer. `wall` is the time on the clock on the wall; it is only asked for if the
    /// answer carries a date to wait for.
    #[must_use]
    pub fn read(
        status: StatusCode,
        headers: &HeaderMap,
        wall: impl FnOnce() -> SystemTime,
    ) -> Self {
        let meaning = Meaning::of(status, headers);
        let told_wait = match meaning {
            Meaning::Throttled { .. } => retry_after::told_wait(headers, wall),
            _ => None,
        };
        Self {
            status,
            meaning,
            told_wait,
        }
    }
}

impl Operation {
    /// Tells that the send under way was answered.
    ///
    /// Either the answer is handed over ([`Fate::Deliver`]; `told` when the request was directed,
    /// or sent more than once), or it is held and [`next`](Self::next) says what to do.
    pub fn answered<X>(&mut self, context: &Context<'_, X>, answer: &Answer, now: Tick) -> Fate {
        let verdict = answer.meaning.for_trail();
        let first_answer = self.sends == 1 && self.past.is_none();
        let mut due = self.follow_up(context, answer, now);
        if due.is_none() && self.is_hedging() && !answer.meaning.is_final_for_hedge() {
            // H2: what the other region says may be better.
            due = Some(Due::Over);
        }
        if due.is_none() && first_answer {
            self.give_back(context, verdict);
            return Fate::Deliver {
                told: self.current.region != self.home,
            };
        }
        self.record(Ending::Answer(answer.status), verdict, now);
        let Some(due) = due else {
            self.give_back(context, verdict);
            return Fate::Deliver { told: true };
        };
        self.due = due;
        self.past_mut().holds_answer = true;
        Fate::Hold
    }

    /// Tells that the send under way ended without an answer.
    pub fn faulted<X>(&mut self, context: &Context<'_, X>, fault: Fault, now: Tick) {
        if fault == Fault::TimedOut {
            let deadline = self.deadline(context.service.settings);
            self.current.cut_by_deadline = deadline.is_some_and(|deadline| now >= deadline);
        }
        let verdict = fault.verdict();
        self.record(Ending::Fault(fault), verdict, now);
        self.due = if verdict == Verdict::Unreachable {
            self.after_unreachable(context, now)
        } else {
            self.after_silence(context)
        };
    }

    /// Tells that the send under way was refused further in, or that nothing was ready to take it:
    /// nothing has left.
    pub fn not_sent<X>(&mut self, context: &Context<'_, X>) {
        let region = self.current.region;
        self.sends = self.sends.saturating_sub(1);
        if let Some(bucket) = context.service.budgets.get(region.index()) {
            bucket.give_back(self.current.paid);
        }
        self.past_mut().done |= bit(region);
        self.due = if self.sends == 0 {
            Due::First
        } else {
            Due::Move {
                lag: false,
                follow: false,
            }
        };
    }

    /// How the operation ends when the service below is not ready for the next send (T7).
    #[must_use]
    pub fn finish_unready(&self) -> Finish {
        match self.finish(None) {
            Finish::Failure(Failure::BreakerOpen { .. }) => Finish::Failure(Failure::Transport),
            finish => finish,
        }
    }

    fn past_mut(&mut self) -> &mut Past {
        self.past.get_or_insert_default()
    }

    fn give_back<X>(&self, context: &Context<'_, X>, verdict: Verdict) {
        if verdict == Verdict::Answered {
            if let Some(bucket) = context.service.budgets.get(self.current.region.index()) {
                bucket.give_back(self.current.paid.max(1));
            }
        }
    }

    fn record(&mut self, ending: Ending, verdict: Verdict, now: Tick) {
        self.set_sent_at(now);
        let send = self.current.ended(self.started, ending, verdict, now);
        self.past_mut().trail.push(send);
    }

    /// What follows from an answer; none if it is handed over.
    fn follow_up<X>(
        &mut self,
        context: &Context<'_, X>,
        answer: &Answer,
        now: Tick,
    ) -> Option<Due> {
        let topology = self.topology.clone()?;
        match answer.meaning {
            Meaning::Answered | Meaning::Refused { .. } => None,
            Meaning::WriteForbidden => {
                // The hub of a multi-write account refuses what is not for documents: that says
                // nothing of documents (C2).
                let is_hub_only = self.request.route() == Route::Hub && topology.is_multi_write();
                let kinds = if is_hub_only {
                    Circuits::NONE
                } else {
                    Circuit::Writes.into()
                };
                self.after_refusal(context, kinds, now)
            }
            Meaning::RegionGone => self.after_refusal(context, self.circuit().into(), now),
            Meaning::SessionLag => self.after_session_lag(context, &topology, now),
            Meaning::Throttled { overloaded } => {
                if overloaded
                    && topology.is_multi_write()
                    && self.has_another(context, &topology, now)
                {
                    self.past_mut().done |= bit(self.current.region);
                    return Some(Due::Move {
                        lag: false,
                        follow: false,
                    });
                }
                Some(self.after_throttling(answer.told_wait, now))
            }
            Meaning::RetryWith => Some(self.after_retry_with(now)),
            Meaning::Transient => self.after_failure(context, &topology, answer.status),
        }
    }

    /// C5.
    fn after_refusal<X>(
        &mut self,
        context: &Context<'_, X>,
        kinds: Circuits,
        now: Tick,
    ) -> Option<Due> {
        if !context.account.settings().get_discovery() || self.reach == Reach::Home {
            return None;
        }
        let region = self.current.region;
        context.account.mark(region, kinds, now);
        let past = self.past_mut();
        past.refused |= bit(region);
        let first = *past.first_refusal.get_or_insert(now);
        let Some(&after) = AFTER_REFUSAL.get(past.refusals) else {
            return Some(Due::Over);
        };
        past.refusals += 1;
        Some(Due::Refused {
            at: now.max(first + after),
        })
    }

    /// C6. Of a write it is an answer like any other.
    fn after_session_lag<X>(
        &mut self,
        context: &Context<'_, X>,
        topology: &Topology,
        now: Tick,
    ) -> Option<Due> {
        let region = self.current.region;
        let writer = topology.writer(context.account.marks(), now);
        let has_said_so = |writer| writer == region || self.has_not_found(writer);
        let writer_says_so = !topology.is_multi_write() && writer.is_some_and(has_said_so);
        if !self.intent.is_read() || writer_says_so {
            return None;
        }
        self.past_mut().done |= bit(region);
        Some(Due::Move {
            lag: true,
            follow: false,
        })
    }

    /// Whether a region has answered 404 without ending the operation, which only 404/1002 does not.
    fn has_not_found(&self, region: RegionId) -> bool {
        let mut sends = self.sends_so_far().iter();
        sends.any(|send| {
            send.region == region && send.ending == Ending::Answer(StatusCode::NOT_FOUND)
        })
    }

    /// C7, with an answer. The caller gets the answer to a write that may not move.
    fn after_failure<X>(
        &mut self,
        context: &Context<'_, X>,
        topology: &Topology,
        status: StatusCode,
    ) -> Option<Due> {
        let moves = if self.intent.is_read() {
            true
        } else if status == StatusCode::SERVICE_UNAVAILABLE {
            topology.is_multi_write() && self.request == RequestKind::DocumentWrite
        } else {
            status != StatusCode::REQUEST_TIMEOUT && self.may_move_unmarked(context, topology)
        };
        if !moves {
            return None;
        }
        self.past_mut().done |= bit(self.current.region);
        Some(Due::Move {
            lag: false,
            follow: false,
        })
    }

    /// C7, without an answer: it may have been applied.
    fn after_silence<X>(&mut self, context: &Context<'_, X>) -> Due {
        let Some(topology) = self.topology.clone() else {
            return Due::Over;
        };
        self.past_mut().done |= bit(self.current.region);
        if self.intent.is_read() || self.may_move_unmarked(context, &topology) {
            Due::Move {
                lag: false,
                follow: false,
            }
        } else {
            Due::Over
        }
    }

    /// C8.
    fn after_unreachable<X>(&mut self, context: &Context<'_, X>, now: Tick) -> Due {
        let region = self.current.region;
        let follow = self.may_follow(context);
        let once_each = self.reach == Reach::OnceEach;
        let past = self.past_mut();
        let is_second = past.unreachable & bit(region) != 0;
        past.unreachable |= bit(region);
        if !is_second && !once_each {
            return Due::Back { region, at: now };
        }
        past.done |= bit(region);
        // One failed connection alone marks nothing: the next may work.
        if is_second {
            context.account.mark(region, Circuits::BOTH, now);
        }
        context.account.ask(Cause::Unreachable, now);
        Due::Move { lag: false, follow }
    }

    /// C9, 429.
    fn after_throttling(&mut self, told: Option<Duration>, now: Tick) -> Due {
        let region = self.current.region;
        let past = self.past_mut();
        let first = *past.first_throttled.get_or_insert(now);
        let at = now + told.unwrap_or(UNTOLD_WAIT);
        if past.throttled >= THROTTLED_REPEATS || at.since(first) > IN_PLACE_FOR {
            return Due::Over;
        }
        past.throttled += 1;
        Due::Back { region, at }
    }

    /// C9, 449.
    fn after_retry_with(&mut self, now: Tick) -> Due {
        let region = self.current.region;
        let past = self.past_mut();
        let first = *past.first_retry_with.get_or_insert(now);
        let doubled = FIRST_RETRY_WITH * (1 << past.retries_with.min(10));
        let at = now + doubled.min(LAST_RETRY_WITH);
        if at.since(first) > IN_PLACE_FOR {
            return Due::Over;
        }
        past.retries_with += 1;
        Due::Back { region, at }
    }

    /// Whether there is a region that was not tried yet.
    fn has_another<X>(&self, context: &Context<'_, X>, topology: &Topology, now: Tick) -> bool {
        let all = self
            .all_candidates(context, topology, now)
            .unwrap_or_default();
        all.iter()
            .any(|region| region != self.current.region && !self.tried(region))
    }

    /// Whether 404, 409 or 412 may be the doing of an earlier send of this very write (V2).
    #[must_use]
    pub fn is_after_ambiguous(&self, status: StatusCode) -> bool {
        self.trail()
            .is_some_and(|trail| trail.explains(self.intent, status, self.is_delete))
    }

    /// T6: a send was due and the body is gone.
    pub(super) fn body_is_gone(&self) -> Failure {
        self.trail().map_or(Failure::NotReplayable, |trail| {
            trail.end_without_body(self.intent)
        })
    }

    fn sends_so_far(&self) -> &[Send] {
        self.past.as_ref().map_or(&[], |past| past.trail.sends())
    }

    /// How the operation ends when nothing more is sent: with the last answer, if there is one,
    /// unless a later send of a write was ambiguous (V1, C7).
    pub(super) fn finish(&self, until: Option<Tick>) -> Finish {
        let tried = self.past.as_ref().and_then(|past| {
            let last = past.trail.sends().last()?;
            Some((past, last))
        });
        let Some((past, last)) = tried else {
            let nothing_was_awaited = self.reading.is_none();
            return Finish::Failure(if nothing_was_awaited {
                Failure::BreakerOpen { until }
            } else {
                // The deadline passed while the account was read for the first time (C3).
                Failure::Transport
            });
        };
        if self.intent.is_write() {
            return past.trail.end_of_write();
        }
        if past.holds_answer {
            return Finish::Answer;
        }
        let is_only = past.trail.sends().len() == 1;
        let only_cut =
            is_only && self.current.cut_by_deadline && last.verdict == Verdict::Ambiguous;
        Finish::Failure(if only_cut {
            Failure::Deadline
        } else {
            Failure::Transport
        })
    }
}
