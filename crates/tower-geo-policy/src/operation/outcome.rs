//! What became of a send, and how an operation ends (R4 to R6, V1, V2, T1, T4).

use std::time::Duration;

use http::StatusCode;

use crate::fault::Fault;
use crate::region::RegionId;
use crate::retry_settings::Replay;
use crate::tick::Tick;
use crate::trail::Ending;
use crate::verdict::{FromCopy, Verdict};

use super::{Context, Failure, Finish, Operation, Past, Return, bit};

/// What to do with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// Hand it over now. `told` says whether the trail and the region belong to it (E1, R10).
    Deliver {
        /// Whether this operation is worth telling: redirected or sent more than once.
        told: bool,
    },
    /// Hold it instead of the one held before, and ask what comes next.
    Hold,
    /// Keep it beside the one held, and ask what comes next (R4).
    Keep,
    /// Drop it, and ask what comes next.
    Discard,
}

/// An answer as the operation sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// What it means.
    pub verdict: Verdict,
    /// What it means when it comes from a copy.
    pub from_copy: FromCopy,
    /// How long the server asks to be left alone.
    pub told_wait: Option<Duration>,
}

impl Answer {
    /// An answer and its meaning.
    #[must_use]
    pub const fn new(
        status: StatusCode,
        verdict: Verdict,
        from_copy: FromCopy,
        told_wait: Option<Duration>,
    ) -> Self {
        Self {
            status,
            verdict,
            from_copy,
            told_wait,
        }
    }
}

impl Operation {
    /// Whether a final answer of the send under way can be handed over without a word: the
    /// healthy path. The bucket gets its token back (T4).
    #[must_use]
    pub fn delivers_in_silence<X>(&self, context: &Context<'_, X>, verdict: Verdict) -> bool {
        let silent = self.sends == 1
            && self.past.is_none()
            && verdict.is_final()
            && !self.current.probe
            && self.current.region == self.home
            && self.home == context.state.regions().writer();
        if silent {
            self.give_back(context, verdict);
        }
        silent
    }

    /// Tells that the send under way was answered.
    pub fn answered<X>(
        &mut self,
        context: &Context<'_, X>,
        answer: &Answer,
        now: Tick,
        draw: f64,
    ) -> Fate {
        if self.delivers_in_silence(context, answer.verdict) {
            return Fate::Deliver { told: false };
        }
        let region = self.current.region;
        let writer = context.state.regions().writer();
        let ending = Ending::Answer(answer.status);
        let told = answer.told_wait.filter(|_| !answer.verdict.is_final());
        self.record(context, ending, answer.verdict, told, now, draw);
        if !answer.verdict.is_final() {
            self.past_mut().holds_answer = true;
            return Fate::Hold;
        }
        let is_from_copy = self.intent.is_read() && region != writer;
        let from_copy = if is_from_copy {
            answer.from_copy
        } else {
            FromCopy::Usual
        };
        if from_copy == FromCopy::MayNotBeRead {
            context.state.set_aside(region, now);
        }
        if is_from_copy && self.is_too_old(context, answer.verdict, now) {
            self.give_back(context, answer.verdict);
            let past = self.past_mut();
            past.out |= bit(region);
            past.too_old = true;
            return Fate::Discard;
        }
        let writer_may_decide = self
            .candidates(context.state.regions())
            .as_slice()
            .contains(&writer);
        if from_copy == FromCopy::Usual || !writer_may_decide {
            self.give_back(context, answer.verdict);
            return Fate::Deliver { told: true };
        }
        let writer_failed = self.has_failed(writer);
        let past = self.past_mut();
        past.out |= bit(region);
        if writer_failed {
            return Fate::Discard;
        }
        past.keeps_answer = true;
        Fate::Keep
    }

    /// Tells that the send under way ended without an answer.
    pub fn faulted<X>(&mut self, context: &Context<'_, X>, fault: Fault, now: Tick, draw: f64) {
        let region = self.current.region;
        if fault == Fault::TimedOut {
            let deadline = self.deadline(context.settings);
            self.current.cut_by_deadline = deadline.is_some_and(|deadline| now >= deadline);
        }
        self.record(
            context,
            Ending::Fault(fault),
            fault.verdict(),
            None,
            now,
            draw,
        );
        let is_copy = region != context.state.regions().writer();
        if fault == Fault::Dns && is_copy && self.intent.is_read() {
            context.state.set_aside(region, now);
            let candidates = self.candidates(context.state.regions());
            if candidates.as_slice().len() > 1 {
                self.past_mut().out |= bit(region);
            }
        }
    }

    /// Tells that the send under way was refused further in, or that nothing was ready to take it:
    /// nothing has left.
    pub fn not_sent<X>(&mut self, context: &Context<'_, X>) {
        let region = self.current.region;
        self.sends = self.sends.saturating_sub(1);
        if let Some(bucket) = context.budgets.get(region.index()) {
            bucket.give_back(self.current.paid);
        }
        self.past_mut().out |= bit(region);
    }

    /// How the operation ends when the service below is not ready for the next send (T7).
    #[must_use]
    pub fn finish_unready<X>(&self, context: &Context<'_, X>) -> Finish {
        match self.finish(context, None) {
            Finish::Failure(Failure::BreakerOpen { .. }) => Finish::Failure(Failure::Transport),
            finish => finish,
        }
    }

    fn past_mut(&mut self) -> &mut Past {
        self.past.get_or_insert_default()
    }

    fn give_back<X>(&self, context: &Context<'_, X>, verdict: Verdict) {
        if verdict == Verdict::Answered {
            if let Some(bucket) = context.budgets.get(self.current.region.index()) {
                bucket.give_back(self.current.paid.max(1));
            }
        }
    }

    fn record<X>(
        &mut self,
        context: &Context<'_, X>,
        ending: Ending,
        verdict: Verdict,
        told: Option<Duration>,
        now: Tick,
        draw: f64,
    ) {
        self.set_sent_at(now);
        let send = self.current.ended(self.started, ending, verdict, now);
        let past = self.past.get_or_insert_default();
        past.trail.push(send);
        if verdict.is_final() {
            return;
        }
        let rests = told.map(|told| rest(context, send.region, told, now, draw));
        past.note_return(context, send.region, told, rests, now, draw);
    }

    pub(super) fn has_failed(&self, region: RegionId) -> bool {
        self.past.as_ref().is_some_and(|past| {
            past.trail
                .to_region(region)
                .any(|send| !send.verdict.is_final())
        })
    }

    /// Whether the rule lets a write go out once more (V1). Reads may always.
    fn may_repeat<X>(&self, context: &Context<'_, X>) -> bool {
        let last = self
            .past
            .as_ref()
            .and_then(|past| past.trail.sends().last());
        self.intent.is_harmless_to_repeat()
            || self.replayable
            || context.settings.get_replay() == Replay::All
            || last.is_none_or(|send| send.verdict.surely_not_applied())
    }

    /// Whether V1 ends the operation here.
    pub(super) fn is_ended_by_its_last_send<X>(&self, context: &Context<'_, X>) -> bool {
        !self.may_repeat(context)
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

    /// How the operation ends when nothing more is sent (R5, V1, T3).
    pub(super) fn finish<X>(&self, context: &Context<'_, X>, until: Option<Tick>) -> Finish {
        let Some(past) = self
            .past
            .as_ref()
            .filter(|past| !past.trail.sends().is_empty())
        else {
            return Finish::Failure(if self.is_kept_from_copies(context) {
                Failure::Stale { until }
            } else {
                Failure::BreakerOpen { until }
            });
        };
        let sends = past.trail.sends();
        if self.intent.is_write() {
            return past.trail.end_of_write();
        }
        if past.too_old {
            return Finish::Failure(Failure::Stale { until });
        }
        let writer_failed = self.has_failed(context.state.regions().writer());
        if past.keeps_answer && !writer_failed {
            return Finish::Kept;
        }
        if past.holds_answer {
            return Finish::Answer;
        }
        let only_cut = sends.len() == 1 && self.current.cut_by_deadline;
        Finish::Failure(if only_cut {
            Failure::Deadline
        } else {
            Failure::Transport
        })
    }
}

/// Lets a region rest as long as it was told, and how long that is with what chance adds (T1).
fn rest<X>(
    context: &Context<'_, X>,
    region: RegionId,
    told: Duration,
    now: Tick,
    draw: f64,
) -> Duration {
    let state = context.state;
    // One draw for each rest: the longest of many would be much the same everywhere.
    let added = match state.resting(region, now) {
        Some(_) => Duration::ZERO,
        None => context.settings.backoff.beyond_told(told, draw),
    };
    state.rest(region, now + told + added, now);
    // Others may have been told more.
    let until = state.resting(region, now);
    until.map_or(told, |until| until.since(now))
}

impl Past {
    /// When the region of a failed send can be returned to (T1).
    fn note_return<X>(
        &mut self,
        context: &Context<'_, X>,
        region: RegionId,
        told: Option<Duration>,
        rests: Option<Duration>,
        now: Tick,
        draw: f64,
    ) {
        let backoff = &context.settings.backoff;
        let never = told.is_some_and(|told| told > backoff.max_delay);
        if let Some(back) = self.returns.iter_mut().find(|back| back.region == region) {
            back.tries += 1;
            back.ready = now + backoff.wait(back.tries, rests, draw);
            back.never |= never;
            return;
        }
        self.returns.push(Return {
            region,
            ready: now + backoff.wait(1, rests, draw),
            never,
            tries: 1,
        });
    }
}
