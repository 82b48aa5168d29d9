//! The things that are measured.

mod breaker;
mod floor;
mod floor_stack;
mod layers;
mod memory;
mod peer_breakers;
mod peer_layers;
pub(crate) mod subject;

pub(crate) use self::floor_stack::layered;
use crate::row::{Call, Row};

/// All rows, those of one name together, ours first.
pub(crate) fn all() -> Vec<&'static Row> {
    let lists: [&'static [Row]; 7] = [
        breaker::ROWS,
        layers::ROWS,
        memory::ROWS,
        crate::loopback::ROWS,
        floor::ROWS,
        peer_breakers::ROWS,
        peer_layers::ROWS,
    ];
    let rows: Vec<&Row> = lists.into_iter().flatten().collect();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        if !names.contains(&row.name) {
            names.push(row.name);
        }
    }
    names
        .iter()
        .flat_map(|name| rows.iter().copied().filter(move |row| row.name == *name))
        .collect()
}

/// A rate window that holds so many calls, and few enough calls that this stays so: for a small one
/// there are several breakers, each of which gets as many calls as it holds.
#[derive(Clone, Copy)]
struct Window {
    holds: u32,
    breakers: u32,
    calls: u32,
}

impl Window {
    const TEN: Self = Self::of(10, 50, 500);
    const THOUSAND: Self = Self::of(1_000, 1, 100);
    const TEN_THOUSAND: Self = Self::of(10_000, 1, 100);
    const MILLION: Self = Self::of(1_000_000, 1, 500);

    const fn of(holds: u32, breakers: u32, calls: u32) -> Self {
        Self {
            holds,
            breakers,
            calls,
        }
    }

    /// Calls of one breaker, then of the next.
    fn in_turn(self, mut breakers: Vec<Call>) -> Call {
        let each = self.calls / self.breakers;
        let (mut current, mut left) = (0, each);
        Box::new(move || {
            if left == 0 {
                current = (current + 1) % breakers.len();
                left = each;
            }
            left -= 1;
            if let Some(call) = breakers.get_mut(current) {
                call();
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Work;

    /// Peers whose rows are in no list of ours would be compared with nothing.
    #[test]
    fn no_row_is_there_twice() {
        let rows = all();
        for (place, row) in rows.iter().enumerate() {
            let again = rows[place + 1..]
                .iter()
                .any(|other| (other.name, other.who) == (row.name, row.who));
            assert!(!again, "{} of {}", row.name, row.who);
        }
    }

    /// Every call checks its own result, so that what is measured is what the row says.
    #[test]
    fn every_call_does_what_its_row_says() {
        let runtime = crate::timers().unwrap();
        let _context = runtime.enter();
        for row in all() {
            match row.work {
                Work::Calls(start) => {
                    let mut call = start();
                    (0..50).for_each(|_| call());
                }
                // A million calls take their time without optimisation.
                Work::Fresh(_, start) if !row.name.ends_with("0000") => {
                    let mut call = start();
                    (0..50).for_each(|_| call());
                }
                Work::Threads(start) => {
                    let mut call = start()();
                    (0..50).for_each(|_| call());
                }
                Work::Fresh(..) | Work::Memory(_) | Work::Loopback(_) => {}
            }
        }
    }
}
