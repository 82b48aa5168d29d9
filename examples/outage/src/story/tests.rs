//! A story that does not hold is told from one that does: each claim can fail.

use super::*;

fn op(at: u64, end: End) -> Op {
    Op {
        at: Duration::from_millis(at),
        took: Duration::from_millis(1),
        sends: 1,
        end,
    }
}

fn read(at: u64, from_secondary: bool) -> Op {
    op(at, End::Read { from_secondary })
}

fn write(at: u64, end: WriteEnd) -> Op {
    op(at, End::Write { number: at, end })
}

/// A short story that holds.
fn good() -> (Vec<Op>, Moments, Standing) {
    let mut ops = vec![
        read(1000, false),
        write(1100, WriteEnd::Stored),
        write(2010, WriteEnd::NotSent),
        write(2020, WriteEnd::Unknown),
        read(2200, true),
        write(2300, WriteEnd::Refused),
    ];
    ops.extend((0..5).map(|n| read(4000 + n, false)));
    ops.push(write(4100, WriteEnd::Stored));
    let moments = Moments {
        opened_before: false,
        gone: Duration::from_millis(2000),
        back: Duration::from_millis(3000),
        reads_switched: Some(Duration::from_millis(2100)),
        read_only: Some(Duration::from_millis(2100)),
        reads_closed: Some(Duration::from_millis(3500)),
        writes_back: Some(Duration::from_millis(3500)),
    };
    let standing = Standing {
        begun: 12,
        arrived: Arrived::default(),
        books: Books {
            kept: 2,
            unknown_stored: 1,
            ..Books::default()
        },
        all_closed: true,
        takes_writes: true,
    };
    (ops, moments, standing)
}

fn broken(ops: &[Op], moments: &Moments, standing: &Standing) -> Vec<&'static str> {
    let checks = checks(ops, moments, standing);
    checks
        .iter()
        .filter(|check| !check.holds())
        .map(Check::claim)
        .collect()
}

#[test]
fn a_good_story_holds() {
    let (ops, moments, standing) = good();
    assert_eq!(broken(&ops, &moments, &standing), [""; 0]);
}

/// Changes a good story and expects exactly one claim to break: the one with these words.
fn breaks(words: &str, change: impl FnOnce(&mut Vec<Op>, &mut Moments, &mut Standing)) {
    let (mut ops, mut moments, mut standing) = good();
    change(&mut ops, &mut moments, &mut standing);
    let broken = broken(&ops, &moments, &standing);
    assert!(
        broken.len() == 1 && broken[0].contains(words),
        "{words:?}: {broken:?}"
    );
}

#[test]
fn each_claim_can_break() {
    breaks("every read was answered", |ops, _, standing| {
        let why = "no answer".to_owned();
        ops.insert(0, op(1, End::ReadFailed { why }));
        standing.begun += 1;
    });
    breaks("reads moved", |_, moments, _| moments.reads_switched = None);
    breaks("refused at once", |_, moments, _| moments.read_only = None);
    breaks("no write reached the secondary", |_, _, standing| {
        standing.arrived.writes_at_secondary = 1;
    });
    breaks("its caller was told", |ops, _, standing| {
        let why = "answered with 500".to_owned();
        ops.insert(0, write(1, WriteEnd::Unexpected { why }));
        standing.begun += 1;
    });
    breaks("every acknowledged write", |_, _, standing| {
        standing.books.kept = 1;
        standing.books.lost = 1;
    });
    breaks("all was well", |_, moments, _| moments.opened_before = true);
    breaks("could be read back", |_, _, standing| {
        standing.books.unread = 1
    });
    breaks("nothing was sent", |_, _, standing| {
        standing.books.ghosts = 1
    });
    breaks("unknown fate", |_, _, standing| {
        standing.books.unknown_wrong = 1;
    });
    breaks("came to an end", |_, _, standing| standing.begun += 1);
    breaks("all is back", |_, _, standing| standing.all_closed = false);
    breaks("all is back", |_, _, standing| {
        standing.takes_writes = false
    });
    breaks("all is back", |ops, _, standing| {
        ops.push(read(5000, true));
        standing.begun += 1;
    });
    breaks("all is back", |ops, _, standing| {
        ops.push(write(5000, WriteEnd::Refused));
        standing.begun += 1;
    });
}
