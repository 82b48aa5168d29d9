use proptest::prelude::*;

use super::*;

use StorageService::{Blob, Dfs, File, Queue, Table, Web};

fn parse(text: &str) -> ConnectionString {
    ConnectionString::parse(text).unwrap()
}

fn primary(parsed: &ConnectionString, service: StorageService) -> Option<String> {
    parsed.primary(service).map(ToString::to_string)
}

fn secondary(parsed: &ConnectionString, service: StorageService) -> Option<String> {
    parsed.secondary(service).map(ToString::to_string)
}

#[test]
fn endpoints_follow_from_the_name() {
    let parsed = parse(
        "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=Zm9vYmE=;\
         EndpointSuffix=core.windows.net;",
    );
    for service in [Blob, Queue, Table, Dfs, File] {
        assert_eq!(
            primary(&parsed, service),
            Some(format!("https://contoso.{service}.core.windows.net"))
        );
        assert_eq!(secondary(&parsed, service), None);
    }
    assert_eq!(primary(&parsed, Web), None);
    assert_eq!(parsed.account_name(), Some("contoso"));
    assert_eq!(parsed.account_key().map(Secret::expose), Some("Zm9vYmE="));
    assert!(!parsed.is_development());
}

#[test]
fn scheme_and_suffix_have_defaults() {
    assert_eq!(
        primary(&parse("AccountName=contoso"), Blob).unwrap(),
        "https://contoso.blob.core.windows.net"
    );
    let parsed = parse(
        "defaultendpointsprotocol=HTTP ; accountname = contoso;endpointsuffix=core.chinacloudapi.cn",
    );
    assert_eq!(
        primary(&parsed, Blob).unwrap(),
        "http://contoso.blob.core.chinacloudapi.cn"
    );
}

#[test]
fn given_endpoints_outrank_the_name() {
    let parsed = parse(
        "AccountName=contoso;AccountKey=Zm9v;BlobEndpoint=https://files.contoso.test/;\
         BlobSecondaryEndpoint=https://replica.contoso.test",
    );
    assert_eq!(
        primary(&parsed, Blob).unwrap(),
        "https://files.contoso.test"
    );
    assert_eq!(
        secondary(&parsed, Blob).unwrap(),
        "https://replica.contoso.test"
    );
    assert_eq!(
        primary(&parsed, Queue).unwrap(),
        "https://contoso.queue.core.windows.net"
    );
}

/// With a local endpoint for one service, the others are not looked for in the public cloud.
#[test]
fn a_local_endpoint_keeps_the_others_out_of_the_cloud() {
    let parsed = parse(
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Zm9v;\
         BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;\
         QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1",
    );
    let known = StorageService::ALL.map(|service| parsed.primary(service).is_some());
    assert_eq!(known, [true, true, false, false, false, false]);
}

#[test]
fn every_service_has_a_pair_of_keys() {
    for (service, label) in [
        (Blob, "Blob"),
        (Queue, "Queue"),
        (Table, "Table"),
        (File, "File"),
    ] {
        let parsed = parse(&format!(
            "{label}Endpoint=https://p.test;{label}SecondaryEndpoint=https://s.test;\
             SharedAccessSignature=?sv=2024-01-01&sig=a%3D"
        ));
        assert_eq!(primary(&parsed, service).unwrap(), "https://p.test");
        assert_eq!(secondary(&parsed, service).unwrap(), "https://s.test");
        let others = StorageService::ALL
            .into_iter()
            .filter(|other| *other != service);
        for other in others {
            assert_eq!(primary(&parsed, other), None);
            assert_eq!(secondary(&parsed, other), None);
        }
        assert_eq!(
            parsed.shared_access_signature().map(Secret::expose),
            Some("sv=2024-01-01&sig=a%3D")
        );
        assert_eq!(parsed.account_name(), None);
    }
}

#[test]
fn the_emulator_is_known() {
    let parsed = parse("UseDevelopmentStorage=true");
    assert!(parsed.is_development());
    assert_eq!(parsed.account_name(), Some("devstoreaccount1"));
    assert_eq!(
        parsed.account_key().map(Secret::expose),
        Some(DEVELOPMENT_KEY)
    );
    for (service, port) in [(Blob, 10000), (Queue, 10001), (Table, 10002)] {
        assert_eq!(
            primary(&parsed, service),
            Some(format!("http://127.0.0.1:{port}/devstoreaccount1"))
        );
        assert_eq!(secondary(&parsed, service), None);
    }
    for service in [Dfs, Web, File] {
        assert_eq!(primary(&parsed, service), None);
    }
    let parsed =
        parse("UseDevelopmentStorage=True;DevelopmentStorageProxyUri=http://azurite.test/");
    assert_eq!(
        primary(&parsed, Queue).unwrap(),
        "http://azurite.test:10001/devstoreaccount1"
    );
}

/// Every error names its key and repeats no value.
#[test]
fn errors_name_the_key_and_never_the_value() {
    for (text, expected) in [
        ("", "`connection_string`: must have"),
        (";;", "`connection_string`: must have"),
        (
            "SharedAccessSignature=hidden",
            "`connection_string`: must have",
        ),
        (
            "DefaultEndpointsProtocol=https",
            "`connection_string`: must have",
        ),
        ("hidden", "`connection_string`: part 1 has no `=`"),
        (
            "AccountName=contoso;hidden",
            "`connection_string`: part 2 has no `=`",
        ),
        (
            "AccountNane=hidden",
            "`connection_string`: has the unknown key `AccountNane`",
        ),
        (
            "BlobEndpiont=hidden",
            "`connection_string`: has the unknown key `BlobEndpiont`",
        ),
        (
            "hidden/+x=hidden",
            "`connection_string`: part 1 begins with no known key",
        ),
        (
            "AccountName=contoso;ACCOUNTNAME=hidden",
            "`AccountName`: is there twice",
        ),
        ("AccountName=", "`AccountName`: is empty"),
        ("AccountName= ;", "`AccountName`: is empty"),
        ("AccountName=contoso;AccountKey=", "`AccountKey`: is empty"),
        ("AccountName=Hidden", "`AccountName`: must be 3 to 24"),
        (
            "AccountName=contoso;AccountKey=hidden!",
            "`AccountKey`: is not base64",
        ),
        (
            "AccountName=contoso;AccountKey=hidde===",
            "`AccountKey`: is not base64",
        ),
        (
            "AccountName=contoso;AccountKey=hidden",
            "`AccountKey`: is not base64",
        ),
        (
            "BlobEndpoint=https://b.test;AccountKey=hiddenZm",
            "`AccountKey`: needs `AccountName`",
        ),
        (
            "AccountName=contoso;AccountKey=hiddenZm;SharedAccessSignature=hidden",
            "`AccountKey`: cannot be used with `SharedAccessSignature`",
        ),
        (
            "AccountName=contoso;SharedAccessSignature=?",
            "`SharedAccessSignature`: is empty",
        ),
        (
            "AccountName=contoso;DefaultEndpointsProtocol=hidden",
            "`DefaultEndpointsProtocol`: must be",
        ),
        (
            "AccountName=contoso;EndpointSuffix=hidden/x",
            "`EndpointSuffix`: must be",
        ),
        (
            "AccountName=contoso;EndpointSuffix=hidden..x",
            "`EndpointSuffix`: must be",
        ),
        (
            "BlobEndpoint=hidden",
            "`BlobEndpoint`: must begin with http",
        ),
        (
            "TableEndpoint=https://t.test/?sig=hidden",
            "`TableEndpoint`: must not have a query",
        ),
        (
            "QueueEndpoint=https://hidden:x@q.test",
            "`QueueEndpoint`: must not have user info",
        ),
        (
            "BlobSecondaryEndpoint=https://hidden.test",
            "`BlobSecondaryEndpoint`: needs `BlobEndpoint`",
        ),
        (
            "AccountName=contoso;FileSecondaryEndpoint=https://hidden.test",
            "`FileSecondaryEndpoint`: needs `FileEndpoint`",
        ),
        (
            "UseDevelopmentStorage=hidden",
            "`UseDevelopmentStorage`: must be `true`",
        ),
        (
            "UseDevelopmentStorage=false",
            "`UseDevelopmentStorage`: must be `true`",
        ),
        (
            "UseDevelopmentStorage=true;AccountKey=hiddenZm",
            "`AccountKey`: cannot be used together",
        ),
        (
            "AccountName=contoso;DevelopmentStorageProxyUri=http://hidden.test",
            "`DevelopmentStorageProxyUri`: needs `UseDevelopmentStorage=true`",
        ),
        (
            "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://hidden.test:81",
            "`DevelopmentStorageProxyUri`: must be scheme and host alone",
        ),
        (
            "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=hidden",
            "`DevelopmentStorageProxyUri`: must begin with http",
        ),
    ] {
        let error = ConnectionString::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
        assert!(!error.to_lowercase().contains("hidden"), "{text}: {error}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let key = format!("{:?}", parse("AccountName=contoso;AccountKey=aGlkZGVu"));
    assert!(
        !key.contains("aGlkZGVu") && key.contains("Secret(..)"),
        "{key}"
    );
    let signature = format!(
        "{:?}",
        parse("AccountName=contoso;SharedAccessSignature=sig=aGlkZGVu")
    );
    assert!(!signature.contains("aGlkZGVu"), "{signature}");
}

proptest! {
    /// Whatever the text, there is an answer; and what is taken for a key or a signature is in
    /// neither the error nor the debug form.
    #[test]
    fn any_text_is_answered_without_its_secrets(
        parts in prop::collection::vec(
            (
                prop::sample::select(Key::ALL.iter().map(|key| key.name()).chain(["Other", ""]).collect::<Vec<_>>()),
                prop::sample::select(vec!["=", "==", "", " = "]),
                prop::sample::select(vec!["true", "contoso", "https://p.test", "https", "http://a.test:1/x", "HIDDEN00", "é"]),
            ),
            0..6,
        ),
        tail in ".{0,12}",
    ) {
        let mut text: String = parts
            .iter()
            .map(|(key, equals, value)| format!("{key}{equals}{value};"))
            .collect();
        text.push_str(&tail);
        let shown = match ConnectionString::parse(&text) {
            Ok(parsed) => format!("{parsed:?}"),
            Err(error) => error.to_string(),
        };
        prop_assert!(!shown.contains("HIDDEN00"), "{}", shown);
    }
}
