use super::*;

#[test]
fn the_grid_has_at_least_two_hundred_points_for_each_outage() {
    for outage in USUAL_OUTAGES {
        assert!(points(&[outage]).len() >= 200);
    }
}
