//! What an account is built from, and what it refuses.

use super::*;

fn primary(service: &GeoService) -> String {
    let first = service.regions().iter().next().unwrap();
    first.1.endpoint().to_string()
}

fn setting(builder: AccountBuilder) -> String {
    builder.build().unwrap_err().setting().to_owned()
}

fn by_name() -> AccountBuilder {
    Account::azure_storage("contoso")
}

/// A connection string of a shared access signature often has one endpoint only.
#[test]
fn services_that_were_not_given_follow_from_one_that_was() {
    let by_string = Account::from_connection_string(
        "BlobEndpoint=https://contoso.blob.core.windows.net;SharedAccessSignature=sv=1&sig=a",
    );
    let by_endpoint =
        Account::endpoints().endpoint(StorageService::Dfs, "https://contoso.dfs.core.windows.net");
    for builder in [by_string, by_endpoint] {
        let account = builder
            .location_mode(LocationMode::PrimaryThenSecondary)
            .build()
            .unwrap();
        assert_eq!(
            [account.blob(), account.queue(), account.table()].map(|service| primary(&service)),
            ["blob", "queue", "table"]
                .map(|label| format!("https://contoso.{label}.core.windows.net"))
        );
        assert_eq!(account.queue().regions().len(), 2);
        assert!(account.service(StorageService::Dfs).is_some());
        assert!(account.service(StorageService::Web).is_none());
    }
}

/// Nothing is made up in the public cloud for an emulator or a custom domain.
#[test]
fn endpoints_that_do_not_follow_are_named() {
    for builder in [
        Account::from_connection_string(
            "AccountName=devstoreaccount1;AccountKey=Zm9v;\
             BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1",
        ),
        Account::endpoints().endpoint(StorageService::Blob, "https://files.contoso.test"),
        Account::endpoints().endpoint(StorageService::Blob, "http://contoso.blob.localhost:10000"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.setting(), "endpoints");
        let message = error.to_string();
        assert!(message.contains("of queue and table"), "{message}");
        assert!(message.contains("GeoService::azure_storage"), "{message}");
    }
}

/// No call is without effect: what cannot be the same for all services ends the build.
#[test]
fn what_is_each_services_own_is_refused_for_all() {
    for (expected, builder) in [
        ("name", by_name().each(|each| each.named("same"))),
        ("name", by_name().each(|each| each.named("x y"))),
        (
            "secondary",
            by_name().each(|each| each.secondary("https://copy.test")),
        ),
        (
            "no_secondary",
            by_name().each(GeoServiceBuilder::no_secondary),
        ),
        (
            "storage_service",
            by_name().each(|each| each.storage_service(StorageService::Blob)),
        ),
        (
            "region",
            by_name().each(|each| each.region("eu", "https://eu.test")),
        ),
        (
            "each",
            by_name().each(|_| GeoService::azure_storage("https://contoso.blob.core.windows.net")),
        ),
        (
            "endpoint",
            by_name().endpoint(
                StorageService::Blob,
                "https://contoso.queue.core.windows.net",
            ),
        ),
        (
            "endpoint_suffix",
            Account::from_connection_string("AccountName=contoso").endpoint_suffix("core.test"),
        ),
        (
            "share_state",
            by_name()
                .each(|each| each.group(GroupHandle::new(runtime::now())))
                .share_state(),
        ),
    ] {
        assert_eq!(setting(builder), expected);
    }
}

/// I6: the account's mode and hedge are for the services that have a copy.
#[test]
fn files_stay_with_the_primary() {
    let account = by_name()
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(
            RetrySettings::new()
                .hedge(Duration::from_millis(200))
                .budget(1),
        )
        .build()
        .unwrap();
    let file = account.service(StorageService::File).unwrap();
    assert_eq!(file.location_mode(), LocationMode::PrimaryOnly);
    assert_eq!(
        account.blob().location_mode(),
        LocationMode::PrimaryThenSecondary
    );
}
