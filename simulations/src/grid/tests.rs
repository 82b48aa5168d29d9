use super::*;

const COMMON: Common = Common {
    seed: 0,
    length: OUTAGE,
    bare: false,
};

/// The worst point of the whole grid: the last to return.
const WORST: Point = Point {
    outage: Outage::HardDown,
    clients: 5,
    rate: 8.0,
    time_out_s: 3,
    retries: 5,
    hedge_ms: Some(100),
    secondary: 0.6,
};

/// A point that does not return when nothing but retries is left.
const DANGEROUS: Point = Point {
    outage: Outage::Slow,
    clients: 5,
    rate: 2.0,
    time_out_s: 1,
    retries: 5,
    hedge_ms: Some(100),
    secondary: 0.6,
};

fn assert_back(point: Point, common: Common) {
    let judged = point.judge(common).unwrap();
    assert!(judged.holds, "{judged:#?}");
}

#[test]
fn the_grid_has_at_least_two_hundred_points_for_each_outage() {
    for outage in USUAL_OUTAGES {
        assert!(points(&[outage]).len() >= 200);
    }
    let all = points(&USUAL_OUTAGES);
    assert!(all.contains(&WORST) && all.contains(&DANGEROUS));
}

/// B4, B5, T4: the point that takes longest, by several seeds.
#[test]
fn the_worst_point_returns_to_normal() {
    for seed in 0..2 {
        assert_back(WORST, Common { seed, ..COMMON });
    }
}

/// T4, B2: what circuits and budget are for. Without them the queues that an outage has filled
/// stay full of what nobody waits for any more, because everybody asks again.
#[test]
fn retries_alone_outlive_an_outage_and_the_product_does_not() {
    let bare = Common {
        bare: true,
        ..COMMON
    };
    let judged = DANGEROUS.judge(bare).unwrap();
    assert_eq!(judged.back_s, None, "{judged:#?}");
    assert_back(DANGEROUS, COMMON);
}

/// B4: after an outage in which the wait has grown as long as it may.
#[test]
fn a_long_outage_is_over_within_the_longest_wait() {
    let point = Point {
        clients: 5,
        rate: 2.0,
        ..WORST
    };
    let length = Duration::from_secs(1200);
    assert_back(point, Common { length, ..COMMON });
}

/// Every kind of outage, at the corner of the grid with the least to spare.
#[test]
fn no_outage_of_the_gallery_is_outlived() {
    for outage in Outage::GALLERY {
        assert_back(
            Point {
                outage,
                ..DANGEROUS
            },
            COMMON,
        );
    }
}
