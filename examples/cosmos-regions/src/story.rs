//! What is claimed, and whether it holds.

use std::time::Duration;

use serde::Serialize;

use crate::account::{Account, Region};
use crate::client::{REFRESH, REFRESH_JITTER};
use crate::load::{End, Kind, Op, id_of};

/// So many requests may meet a change before the first answer tells of it.
const UNDER_WAY: u64 = 10;
/// A machine that does other things too.
const SLACK: Duration = Duration::from_secs(1);
/// Cutting connections takes a moment; what is sent meanwhile is cut off, too.
const CUT: Duration = Duration::from_millis(250);
/// A writer that is lost is left within this time; the service's own driver may take 300 s.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);
/// Of the last operations, so many must have gone where they belong.
const LAST: usize = 5;

/// When what happened, from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    /// West refuses everything, and is still listed.
    pub(crate) leaves: Duration,
    /// It is listed no longer.
    pub(crate) has_left: Duration,
    /// Central is listed.
    pub(crate) joins: Duration,
    /// Writes move from East to Central: East refuses them, both are listed.
    pub(crate) moves: Duration,
    /// East is no longer listed as a writer.
    pub(crate) has_moved: Duration,
    /// Central is off the network, and East writes.
    pub(crate) lost: Duration,
}

/// A claim, and whether it is so.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Claim {
    pub(crate) claim: &'static str,
    pub(crate) holds: bool,
    pub(crate) found: String,
}

impl Claim {
    const fn new(claim: &'static str, holds: bool, found: String) -> Self {
        Self {
            claim,
            holds,
            found,
        }
    }
}

/// What is claimed.
pub(crate) fn claims(
    duration: Duration,
    begun: u64,
    ops: &[Op],
    moments: &Moments,
    account: &Account,
) -> Vec<Claim> {
    let count = |kind: Kind, is: fn(&End) -> bool| {
        ops.iter()
            .filter(|op| op.kind == kind && is(&op.end))
            .count()
    };
    let is_failed: fn(&End) -> bool = |end| matches!(end, End::Failed { .. });
    let is_unknown: fn(&End) -> bool = |end| *end == End::Unknown;
    let is_done: fn(&End) -> bool = |end| matches!(end, End::Done(_));
    let failed_reads = count(Kind::Read, |end| !matches!(end, End::Done(_)));
    let unknown = count(Kind::Write, is_unknown);
    // The connections were cut while such a write was under way, or it was no accident.
    let cut = |op: &&Op| op.at <= moments.lost + CUT && op.ended() >= moments.lost;
    let unknown_when_cut = ops
        .iter()
        .filter(|op| is_unknown(&op.end))
        .filter(cut)
        .count();
    let acknowledged = ops
        .iter()
        .filter(|op| op.kind == Kind::Write && is_done(&op.end));
    let missing = acknowledged
        .clone()
        .filter(|op| !account.has(&id_of(op.kind, op.number)));
    let missing = missing.count();
    let first = |kind: Kind, region: Region, after: Duration| {
        let done = ops
            .iter()
            .filter(|op| op.kind == kind && op.ended() >= after);
        let done = done.filter(|op| op.end == End::Done(region));
        done.map(Op::ended).min().map(|at| at.saturating_sub(after))
    };
    let within = |took: Option<Duration>, limit: Duration| took.is_some_and(|took| took <= limit);
    let gone = account.arrived(Region::West).gone;
    let joined = first(Kind::Read, Region::Central, moments.joins);
    let refused = account.arrived(Region::East).write_forbidden;
    let moved = first(Kind::Write, Region::Central, moments.moves);
    let recovered = first(Kind::Write, Region::East, moments.lost);
    let reads = account.account_reads();
    // Once a period, and a few because of what happened.
    let most_reads = duration.as_secs() / REFRESH.as_secs() + 15;
    let at_the_end = last_region(ops);
    vec![
        Claim::new(
            "every read was answered",
            failed_reads == 0 && ops.len() as u64 == begun,
            format!("{failed_reads} of {} were not", count(Kind::Read, |_| true)),
        ),
        Claim::new(
            "every write was acknowledged; only one that was cut off may have an unknown fate",
            count(Kind::Write, is_failed) == 0 && unknown == unknown_when_cut,
            format!(
                "{} of {} acknowledged, {unknown} unknown",
                acknowledged.count(),
                count(Kind::Write, |_| true)
            ),
        ),
        Claim::new(
            "every acknowledged write is there",
            missing == 0,
            format!("{missing} are missing"),
        ),
        Claim::new(
            "a region that left was left at once, though the account still listed it",
            (1..=UNDER_WAY).contains(&gone),
            format!("requests that it refused: {gone}"),
        ),
        Claim::new(
            "a region that joined was used after the next account read",
            within(joined, REFRESH + REFRESH_JITTER + SLACK),
            show(joined),
        ),
        Claim::new(
            "writes followed the writer",
            // None, when the account happens to be read before the next write.
            refused <= UNDER_WAY && within(moved, SLACK),
            format!("{}; refused by the old one: {refused}", show(moved)),
        ),
        Claim::new(
            "a writer whose name is gone was left within 20 s",
            within(recovered, LEAVES_WITHIN),
            show(recovered),
        ),
        Claim::new(
            "at the end everything is where the account has it",
            at_the_end == Some(Region::East),
            at_the_end.map_or_else(|| "several regions".to_owned(), |region| region.to_string()),
        ),
        Claim::new(
            "the global host was asked for the account, and for nothing else",
            account.data_at_global() == 0 && reads > 0,
            format!("{} requests for data", account.data_at_global()),
        ),
        Claim::new(
            "every request was signed, those for the account too",
            account.unsigned() == 0,
            format!("{} were not", account.unsigned()),
        ),
        Claim::new(
            "the account was not read for every request",
            reads <= most_reads,
            format!("{reads} times in {} s", duration.as_secs()),
        ),
    ]
}

/// The region that answered all of the last operations, by their beginnings.
fn last_region(ops: &[Op]) -> Option<Region> {
    let mut by_start: Vec<&Op> = ops.iter().collect();
    by_start.sort_by_key(|op| std::cmp::Reverse(op.at));
    let mut last = by_start.iter().take(LAST).map(|op| match op.end {
        End::Done(region) => Some(region),
        _ => None,
    });
    let first = last.next().flatten()?;
    last.all(|region| region == Some(first)).then_some(first)
}

fn show(took: Option<Duration>) -> String {
    match took {
        Some(took) => format!("after {} ms", took.as_millis()),
        None => "never".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Role, Site};

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn op(number: u64, kind: Kind, ms: u64, end: End) -> Op {
        let (at, took) = (at(ms), at(5));
        Op {
            number,
            kind,
            at,
            took,
            end,
        }
    }

    fn moments() -> Moments {
        Moments {
            leaves: at(1_000),
            has_left: at(2_000),
            joins: at(3_000),
            moves: at(4_000),
            has_moved: at(5_000),
            lost: at(6_000),
        }
    }

    /// The shortest story in which all is well.
    fn good() -> Vec<Op> {
        let reads = [
            (0, Region::West),
            (1_500, Region::East),
            (3_500, Region::Central),
            (6_100, Region::East),
            (7_000, Region::East),
        ];
        let writes = [
            (1, Region::East),
            (4_100, Region::Central),
            (6_200, Region::East),
            (7_100, Region::East),
            (7_200, Region::East),
        ];
        let ops = [(Kind::Read, reads), (Kind::Write, writes)];
        let ops = ops
            .into_iter()
            .flat_map(|(kind, ops)| ops.map(|(ms, region)| (kind, ms, region)));
        let ops = ops.zip(0..);
        ops.map(|((kind, ms, region), number)| op(number, kind, ms, End::Done(region)))
            .collect()
    }

    /// The account after a story.
    fn account(ops: &[Op]) -> Account {
        let mut account = Account::new([const { String::new() }; 3]);
        let get = http::Method::GET;
        account.set_role(Region::West, Role::Gone);
        for site in [Site::Regional(Region::West), Site::Global] {
            account.answer(site, &get, "/", b"");
        }
        for op in ops.iter().filter(|op| op.kind == Kind::Write) {
            account.seed(&id_of(op.kind, op.number));
        }
        account
    }

    fn broken(ops: &[Op], account: &Account) -> Vec<&'static str> {
        let all = claims(at(8_000), ops.len() as u64, ops, &moments(), account);
        let broken = all.iter().filter(|claim| !claim.holds);
        broken.map(|claim| claim.claim).collect()
    }

    #[test]
    fn a_good_story_holds_and_each_fault_breaks_a_claim() {
        let ops = good();
        assert!(broken(&ops, &account(&ops)).is_empty());
        let with = |index: usize, end: End| {
            let mut changed = good();
            changed[index].end = end;
            let account = account(&changed);
            broken(&changed, &account)
        };
        let failed = || End::Failed {
            why: "x".to_owned(),
        };
        assert_eq!(with(0, failed()), ["every read was answered"]);
        assert!(with(5, failed())[0].starts_with("every write was acknowledged"));
        assert!(with(5, End::Unknown)[0].starts_with("every write was acknowledged"));
        assert!(with(2, End::Done(Region::East))[0].starts_with("a region that joined"));
        assert_eq!(
            with(6, End::Done(Region::East)),
            ["writes followed the writer"]
        );
        assert!(with(9, End::Done(Region::Central))[0].starts_with("at the end"));
        let mut late = good();
        late[6].at = at(5_500);
        assert_eq!(
            broken(&late, &account(&late)),
            ["writes followed the writer"]
        );
        let lost = broken(&ops, &account(&ops[..9]));
        assert_eq!(lost, ["every acknowledged write is there"]);
        let mut unsigned = account(&ops);
        unsigned.refuse_unsigned();
        let told = broken(&ops, &unsigned);
        assert_eq!(
            told,
            ["every request was signed, those for the account too"]
        );
        let none = Account::new([const { String::new() }; 3]);
        assert!(
            broken(&ops, &none)
                .iter()
                .any(|claim| claim.starts_with("a region that left"))
        );
    }

    /// A write that was under way when the connections were cut may have any fate.
    #[test]
    fn only_a_write_that_was_cut_off_may_be_unknown() {
        let with = |ms| {
            let mut ops = good();
            ops.push(op(90, Kind::Write, ms, End::Unknown));
            let account = account(&ops);
            broken(&ops, &account)
        };
        assert!(with(5_998).is_empty());
        assert!(!with(3_000).is_empty());
    }
}
