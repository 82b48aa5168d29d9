//! How many sends too many a region may be asked to bear (T4).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::verdict::Verdict;

/// The price of a first visit after falling over: load moved, not multiplied.
pub const FIRST_VISIT: u32 = 1;
/// The price of a return after a transient, ambiguous or unreachable verdict.
pub const RETURN: u32 = 14;
/// The price of a return after a throttled verdict.
pub const RETURN_AFTER_THROTTLING: u32 = 5;

/// The price of a hedge (H1).
pub const HEDGE: u32 = 5;

/// The price of a return to a region, by that region's own last verdict.
#[must_use]
pub const fn price_of_return(last: Verdict) -> u32 {
    match last {
        Verdict::Throttled => RETURN_AFTER_THROTTLING,
        _ => RETURN,
    }
}

/// The token bucket of one region, shared by every operation of a service.
///
/// It starts full. Further sends of an operation pay; a success gives back what its send took,
/// or 1. While it is full, a success only reads it.
///
/// ```
/// use tower_geo_policy::budget::Budget;
///
/// let budget = Budget::new(15);
/// assert!(budget.try_pay(14));
/// assert!(!budget.try_pay(14), "one token is left");
/// budget.give_back(14);
/// assert_eq!(budget.level(), 15);
/// ```
#[derive(Debug)]
pub struct Budget {
    tokens: AtomicU32,
    capacity: u32,
}

impl Budget {
    /// A full bucket.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self {
            tokens: AtomicU32::new(capacity),
            capacity,
        }
    }

    /// The tokens that are left.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// The tokens of a full bucket.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Takes `price` tokens if there are so many.
    #[must_use]
    pub fn try_pay(&self, price: u32) -> bool {
        self.tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| {
                tokens.checked_sub(price)
            })
            .is_ok()
    }

    /// Takes `price` tokens, or as many as there are.
    pub fn pay_what_is_there(&self, price: u32) {
        let taken = self
            .tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| {
                Some(tokens.saturating_sub(price))
            });
        debug_assert!(taken.is_ok(), "the update never declines");
    }

    /// Puts tokens back, up to a full bucket.
    pub fn give_back(&self, tokens: u32) {
        if self.level() >= self.capacity {
            return;
        }
        let given = self
            .tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |level| {
                Some(level.saturating_add(tokens).min(self.capacity))
            });
        debug_assert!(given.is_ok(), "the update never declines");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T4: 14 after a transient, ambiguous or unreachable verdict, 5 after a throttled one.
    #[test]
    fn the_price_of_a_return_goes_by_the_last_verdict() {
        assert_eq!(price_of_return(Verdict::Transient), 14);
        assert_eq!(price_of_return(Verdict::TransientElsewhere), 14);
        assert_eq!(price_of_return(Verdict::Ambiguous), 14);
        assert_eq!(price_of_return(Verdict::Unreachable), 14);
        assert_eq!(price_of_return(Verdict::Throttled), 5);
    }

    /// T4: two threads never take more than there is.
    #[test]
    fn concurrent_payments_never_overdraw() {
        let budget = Budget::new(1_000);
        let paid: u32 = std::thread::scope(|scope| {
            let spend = || (0..1_000).filter(|_| budget.try_pay(1)).count();
            let threads = [scope.spawn(spend), scope.spawn(spend)];
            threads
                .into_iter()
                .map(|thread| u32::try_from(thread.join().unwrap()).unwrap())
                .sum()
        });
        assert_eq!((paid, budget.level()), (1_000, 0));
    }

    /// T4: a bucket is never fuller than full.
    #[test]
    fn giving_back_stops_at_the_capacity() {
        let budget = Budget::new(10);
        budget.give_back(5);
        assert_eq!(budget.level(), 10);
        budget.pay_what_is_there(14);
        assert_eq!(budget.level(), 0);
        budget.give_back(u32::MAX);
        assert_eq!(budget.level(), 10);
    }
}
