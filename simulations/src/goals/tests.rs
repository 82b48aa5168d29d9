use tower_geo::BreakerSettings;

use super::*;

fn assert_hold(goals: &[Goal]) {
    let missed: Vec<_> = goals.iter().filter(|goal| !goal.holds).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// B4: what the goals are measured by are the product's defaults.
#[test]
fn the_waits_are_those_of_the_product() {
    let settings = BreakerSettings::new()
        .open_for(OPEN_FOR)
        .max_open_for(MAX_OPEN_FOR);
    assert_eq!(settings, BreakerSettings::new());
}

/// B2, R3, R7: ten sends, then none but probes.
#[test]
fn a_primary_that_is_down_fails_no_read_and_is_left_alone() {
    for seed in 0..3 {
        assert_hold(&hard_down(seed).unwrap());
    }
}

/// B8: callers that leave before any time-out do not hide an outage, however seldom or often they
/// call.
#[test]
fn a_black_hole_is_noticed_within_a_second_of_the_tenth_suspect() {
    for rate in [0.1, 0.5, 1.0, 3.0, 10.0, 40.0] {
        for seed in 0..2 {
            assert_hold(&[black_hole(seed, rate).unwrap()]);
        }
    }
}

/// B4, B5: the first probe, the ramp, and no stampede.
#[test]
fn a_fleet_comes_back_soon_and_step_by_step() {
    assert_hold(&recovery(0).unwrap());
}

/// T1: a fleet that was asked to wait does not come back in one moment, whatever it writes; without
/// chance all would (2.4 times the usual load with 30 % writes).
#[test]
fn a_fleet_that_was_told_to_wait_does_not_come_back_at_once() {
    for seed in 0..3 {
        assert_hold(&[throttled(seed).unwrap()]);
        let mut fleet = Fleet::of_gallery(Outage::Throttled);
        fleet.seed = seed;
        fleet.writes = 0.3;
        let peak = Figures::of(&fleet).unwrap().primary_peak;
        // All writes of a wait come in the course of the next: 1.3, and what chance brings together.
        assert!(peak <= 1.5, "{peak}");
    }
}
