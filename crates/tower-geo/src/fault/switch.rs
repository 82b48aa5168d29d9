use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;
use tokio::time::Instant;

use super::{Answer, RuleUse, Rules, Sent};

/// Turns the faults of a [`FaultLayer`](super::FaultLayer) on and off while the application runs.
///
/// A clone is the same switch.
#[derive(Clone)]
pub struct FaultSwitch {
    shared: Arc<Shared>,
}

struct Shared {
    is_on: AtomicBool,
    run: Mutex<Run>,
}

/// What happens between turning on and turning off.
struct Run {
    began: Option<Instant>,
    rules: Rules,
    seed: u64,
    /// One stream for each rule.
    draws: Vec<fastrand::Rng>,
}

impl FaultSwitch {
    pub(super) fn new(rules: Rules, seed: u64) -> Self {
        let run = Run {
            began: None,
            rules,
            seed,
            draws: Vec::new(),
        };
        Self {
            shared: Arc::new(Shared {
                is_on: AtomicBool::new(false),
                run: Mutex::new(run),
            }),
        }
    }

    /// Turns the faults on. The times of rules count from here, on tokio's clock; answers,
    /// draws and counts begin anew. If they are on, nothing changes.
    pub fn enable(&self) {
        let mut run = self.run();
        if !self.is_enabled() {
            run.restart();
            self.shared.is_on.store(true, Ordering::Relaxed);
        }
    }

    /// Turns the faults off: all sends reach the client, as they are. Those which have met a rule
    /// already go on as it says.
    pub fn disable(&self) {
        self.shared.is_on.store(false, Ordering::Relaxed);
    }

    /// Whether the faults are on.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.shared.is_on.load(Ordering::Relaxed)
    }

    /// What the rules have done since the faults were turned on last.
    #[must_use]
    pub fn report(&self) -> FaultReport {
        let run = self.run();
        FaultReport {
            rules: run
                .rules
                .uses()
                .map(|(rule, used)| (rule.to_string(), used))
                .collect(),
        }
    }

    /// What happens to a request that is about to be sent.
    pub(super) fn meet<B>(&self, request: &Request<B>) -> Option<Answer> {
        if !self.is_enabled() {
            return None;
        }
        let mut run = self.run();
        let run = &mut *run;
        let at = Instant::now().saturating_duration_since(run.began?);
        let sent = Sent::new(at, request.method(), request.uri(), request.headers());
        let draws = &mut run.draws;
        run.rules
            .answer(&sent, |rule| {
                draws.get_mut(rule).map_or(0.0, fastrand::Rng::f64)
            })
            .cloned()
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        // Nothing that is done under the lock leaves it half done.
        self.shared
            .run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn restart(&mut self) {
        self.began = Some(Instant::now());
        self.rules.restart();
        let seed = self.seed;
        self.draws = (0..self.rules.uses().count())
            .map(|rule| stream(seed, rule as u64))
            .collect();
    }
}

/// The stream of a rule: forked off a generator of its own, so that seeds and rules that are
/// neighbours have nothing in common.
fn stream(seed: u64, rule: u64) -> fastrand::Rng {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut of_rule = fastrand::Rng::with_seed(rule.wrapping_add(1).wrapping_mul(GOLDEN));
    fastrand::Rng::with_seed(seed ^ of_rule.u64(..))
}

impl fmt::Debug for FaultSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultSwitch")
            .field("is_enabled", &self.is_enabled())
            .finish_non_exhaustive()
    }
}

/// What rules did, in their order. Prints a line for each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultReport {
    rules: Vec<(String, RuleUse)>,
}

impl FaultReport {
    /// Each rule as it prints itself, and how often it was used.
    pub fn rules(&self) -> impl Iterator<Item = (&str, RuleUse)> {
        self.rules.iter().map(|(rule, used)| (&**rule, *used))
    }

    /// The rules that no send ever met, by their number (from 1): probably a typing error in a
    /// host or a path, or a rule in front of them that takes all.
    pub fn unmatched(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..)
            .zip(&self.rules)
            .filter(|(_, (_, used))| used.matched == 0)
            .map(|(number, (rule, _))| (number, &**rule))
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (rule, used)) in self.rules.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "rule {} ({rule}) ", index + 1)?;
            match used.matched {
                0 => f.write_str("never matched anything")?,
                matched => write!(f, "applied to {} of {matched} sends", used.applied)?,
            }
        }
        Ok(())
    }
}
