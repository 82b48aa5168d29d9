use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn region(per_second: f64, queue: Duration, spells: &[Spell]) -> Region {
    let capacity = Capacity { per_second, queue };
    Region::new(Side::Primary, capacity, spells, Rng::with_seed(1))
}

fn spell(from: u64, until: u64, trouble: Trouble) -> Spell {
    Spell {
        side: Side::Primary,
        from: ms(from),
        until: ms(until),
        trouble,
    }
}

/// Asks at a steady rate, and counts what is done in time.
fn done_in_time(region: &mut Region, per_second: u64, seconds: u64, patience: Duration) -> u64 {
    let mut done = 0;
    for number in 0..per_second * seconds {
        let now = ms(number * 1000 / per_second);
        if let Some((at, Reply::Done)) = region.arrive(now, false) {
            done += u64::from(at - now <= patience);
        }
    }
    done
}

#[test]
fn a_region_does_as_much_as_it_can_and_refuses_the_rest() {
    for per_second in [10.0, 90.0, 1000.0] {
        let mut region = region(per_second, ms(2000), &[]);
        let asked = whole(per_second * 2.0) as u64;
        let done = done_in_time(&mut region, asked, 100, ms(60_000));
        let expected = per_second * 102.0;
        let error = (done as f64 - expected).abs() / expected;
        assert!(error < 0.05, "{per_second}: {done} of {expected}");
    }
}

#[test]
fn half_a_load_meets_no_queue() {
    let mut region = region(200.0, ms(2000), &[]);
    assert_eq!(done_in_time(&mut region, 100, 60, ms(60)), 6000);
}

/// Who leaves makes no room: with a queue that is longer than patience, an overloaded region does
/// nothing that anybody wants.
#[test]
fn work_that_nobody_waits_for_is_done_all_the_same() {
    let mut region = region(100.0, ms(2000), &[]);
    done_in_time(&mut region, 200, 10, ms(1000));
    let mut late = 0;
    for number in 0..100 {
        let now = ms(10_000 + number * 5);
        if let Some((at, Reply::Done)) = region.arrive(now, false) {
            assert!(at - now > ms(1000));
            late += 1;
        }
    }
    assert!(late > 0);
}

#[test]
fn an_outage_resets_what_is_under_way() {
    let mut region = region(10.0, ms(5000), &[spell(20, 100, Trouble::Down)]);
    assert_eq!(region.arrive(ms(0), false), Some((ms(20), Reply::Reset)));
    assert_eq!(region.arrive(ms(50), false), Some((ms(52), Reply::Refused)));
    let (_, reply) = region.arrive(ms(100), false).unwrap();
    assert_eq!(reply, Reply::Done);
}

#[test]
fn a_black_hole_swallows_what_is_under_way() {
    let mut region = region(10.0, ms(5000), &[spell(20, 100, Trouble::Silent)]);
    assert_eq!(region.arrive(ms(0), false), None);
    assert_eq!(region.arrive(ms(99), false), None);
    assert!(region.arrive(ms(100), false).is_some());
}

#[test]
fn a_slow_region_does_less() {
    let spells = [spell(0, 100_000, Trouble::Slow(10.0))];
    let mut region = region(100.0, ms(1000), &spells);
    let done = done_in_time(&mut region, 100, 50, ms(60_000));
    assert!((500..700).contains(&done), "{done}");
}

#[test]
fn only_new_objects_lag() {
    let mut region = region(10.0, ms(5000), &[spell(0, 100, Trouble::Lagging)]);
    let reply = |region: &mut Region, new| region.arrive(ms(1), new).unwrap().1;
    assert_eq!(reply(&mut region, true), Reply::NotFound);
    assert_eq!(reply(&mut region, false), Reply::Done);
}
