//! Endpoint URLs: what is taken prints itself so that it is taken again, and its secondary is
//! another endpoint of the same account.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_geo_policy::azure_storage::AccountEndpoint;
use tower_geo_policy::region::Endpoint;

fuzz_target!(|url: &str| {
    if let Ok(endpoint) = Endpoint::parse(url) {
        let printed = endpoint.to_string();
        assert!(!printed.ends_with('/') && !printed.contains(['@', '?', '#']));
        assert_eq!(Endpoint::parse(&printed).as_ref(), Ok(&endpoint));
    }
    let account = match AccountEndpoint::parse(url) {
        Ok(account) => account,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    match account.derive_secondary() {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(secondary) => {
            assert_ne!(&secondary, account.endpoint());
            assert_eq!(secondary.scheme(), account.endpoint().scheme());
            assert_eq!(secondary.port(), account.endpoint().port());
            let Ok(back) = AccountEndpoint::parse(&secondary.to_string()) else {
                panic!("{secondary} was derived, and is refused");
            };
            assert_eq!(back.account(), account.account());
            assert!(back.derive_secondary().is_err() || account.endpoint().account_segment().is_some());
        }
    }
});
