//! No call to a builder is without effect: what makes no sense is named by `build`.

use super::*;

const BLOB: &str = "https://contoso.blob.core.windows.net";

fn blob() -> GeoServiceBuilder {
    GeoService::azure_storage(BLOB)
}

fn shop() -> GeoServiceBuilder {
    GeoService::static_copies("shop").region("eu", "https://eu.test")
}

fn setting(builder: GeoServiceBuilder) -> String {
    builder.build().unwrap_err().setting().to_owned()
}

#[test]
fn settings_of_another_kind_of_service_are_refused() {
    for (expected, builder) in [
        ("region", blob().region("x", "https://x.test")),
        (
            "region",
            blob().region_that_writes("x", "https://x.test", true),
        ),
        ("secondary", shop().secondary("https://us.test")),
        ("no_secondary", shop().no_secondary()),
        (
            "storage_service",
            shop().storage_service(StorageService::Blob),
        ),
        (
            "secondary",
            shop().secondary("https://us.test").no_secondary(),
        ),
    ] {
        assert_eq!(setting(builder), expected);
    }
}

#[test]
fn endpoints_of_another_storage_service_are_refused() {
    let queue = "https://contoso-secondary.queue.core.windows.net";
    let error = blob().secondary(queue).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`secondary`: is of the service queue, not of blob"
    );
    assert_eq!(
        setting(blob().storage_service(StorageService::Queue)),
        "endpoint"
    );
    for good in [
        "https://contoso-secondary.blob.core.windows.net",
        "https://copy.contoso.test",
    ] {
        assert!(blob().secondary(good).build().is_ok(), "{good}");
    }
}

#[test]
fn names_of_regions_are_checked_as_names_of_services_are() {
    for name in ["", "e u", "ü"] {
        assert_eq!(setting(shop().region(name, "https://us.test")), "region");
    }
    assert!(shop().region("us-1", "https://us.test").build().is_ok());
}

/// T4: a bucket that holds less than any further send costs is a mistake. With another region a
/// first visit costs one token.
#[test]
fn a_budget_pays_for_some_further_send() {
    let budget = |tokens| blob().retry(RetrySettings::new().budget(tokens));
    let then = LocationMode::PrimaryThenSecondary;
    assert_eq!(setting(budget(4)), "budget");
    assert_eq!(setting(budget(0).location_mode(then)), "budget");
    assert!(budget(5).build().is_ok());
    assert!(budget(1).location_mode(then).build().is_ok());
}

/// H1: a hedge that no read can ever send is a mistake.
#[test]
fn a_hedge_needs_two_regions_and_time() {
    let hedge = |after| RetrySettings::new().hedge(Duration::from_millis(after));
    let then = LocationMode::PrimaryThenSecondary;
    assert_eq!(setting(blob().retry(hedge(200))), "hedge");
    let copy_only = blob().location_mode(LocationMode::SecondaryOnly);
    assert_eq!(setting(copy_only.retry(hedge(200))), "hedge");
    let late = blob().location_mode(then).retry(hedge(20_000));
    assert_eq!(setting(late), "hedge");
    assert!(blob().location_mode(then).retry(hedge(200)).build().is_ok());
}

/// T1, B5: chance that is no number from `0.0..1.0` is made one, so that no wait panics.
#[test]
fn chance_is_a_number_from_0_to_1() {
    for (given, least, most) in [
        (f64::NAN, 0.0, 0.0),
        (-1.0, 0.0, 0.0),
        (0.25, 0.25, 0.25),
        (1.0, 0.99, 1.0),
        (f64::INFINITY, 0.99, 1.0),
    ] {
        let service = blob().random(move || given).build().unwrap();
        let drawn = (service.state_ref().extra().random)();
        assert!((least..=most).contains(&drawn) && drawn < 1.0, "{given}");
    }
}
