//! Connection strings: read, or refused without a secret in the message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tower_geo_policy::azure_storage::ConnectionString;

fuzz_target!(|text: &str| {
    // Long enough not to be in a message by chance.
    const SECRET: &str = "c2VjcmV0LXRoYXQtaXMtbm90LXRvbGQ=";
    let with_key = format!("{text};AccountKey={SECRET}");
    for text in [text, &with_key] {
        let told = match ConnectionString::parse(text) {
            Ok(read) => format!("{read:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!told.contains(SECRET) || text.matches(SECRET).count() > 1);
    }
});
