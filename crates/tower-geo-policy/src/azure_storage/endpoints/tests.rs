use proptest::prelude::*;

use super::*;

/// URL, service, account, the normalised URL (none: not said), the secondary's.
type Derived = (
    &'static str,
    Option<&'static str>,
    &'static str,
    Option<&'static str>,
    &'static str,
);

#[rustfmt::skip]
const DERIVED: &[Derived] = &[
    ("https://contoso.blob.core.windows.net", Some("blob"), "contoso", Some("https://contoso.blob.core.windows.net"), "https://contoso-secondary.blob.core.windows.net"),
    ("https://fabrikam.queue.core.windows.net", Some("queue"), "fabrikam", Some("https://fabrikam.queue.core.windows.net"), "https://fabrikam-secondary.queue.core.windows.net"),
    ("https://core.table.core.windows.net", Some("table"), "core", Some("https://core.table.core.windows.net"), "https://core-secondary.table.core.windows.net"),
    ("https://contoso.dfs.core.windows.net", Some("dfs"), "contoso", Some("https://contoso.dfs.core.windows.net"), "https://contoso-secondary.dfs.core.windows.net"),
    ("https://tailspin.z13.web.core.windows.net", Some("web"), "tailspin", Some("https://tailspin.z13.web.core.windows.net"), "https://tailspin-secondary.z13.web.core.windows.net"),
    ("https://northwind-ipv6.blob.core.windows.net", Some("blob"), "northwind", Some("https://northwind-ipv6.blob.core.windows.net"), "https://northwind-secondary-ipv6.blob.core.windows.net"),
    ("https://contoso.blob.core.chinacloudapi.cn", Some("blob"), "contoso", Some("https://contoso.blob.core.chinacloudapi.cn"), "https://contoso-secondary.blob.core.chinacloudapi.cn"),
    ("https://contoso.z01.blob.storage.azure.net", Some("blob"), "contoso", Some("https://contoso.z01.blob.storage.azure.net"), "https://contoso-secondary.z01.blob.storage.azure.net"),
    ("https://wingtip.blob.core.windows.net:8443", Some("blob"), "wingtip", Some("https://wingtip.blob.core.windows.net:8443"), "https://wingtip-secondary.blob.core.windows.net:8443"),
    ("http://contoso.blob.localhost:10000", Some("blob"), "contoso", Some("http://contoso.blob.localhost:10000"), "http://contoso-secondary.blob.localhost:10000"),
    ("https://CONTOSO.Blob.Core.Windows.NET.", Some("blob"), "contoso", None, "https://contoso-secondary.blob.core.windows.net"),
    ("http://127.0.0.1:10000/devstoreaccount1", None, "devstoreaccount1", Some("http://127.0.0.1:10000/devstoreaccount1"), "http://127.0.0.1:10000/devstoreaccount1-secondary"),
    ("https://table.blob.core.windows.net", Some("blob"), "table", Some("https://table.blob.core.windows.net"), "https://table-secondary.blob.core.windows.net"),
    ("https://net.queue.core.windows.net", Some("queue"), "net", None, "https://net-secondary.queue.core.windows.net"),
    ("https://windows.blob.core.windows.net/", Some("blob"), "windows", None, "https://windows-secondary.blob.core.windows.net"),
    ("https://blob.blob.core.usgovcloudapi.net:443", Some("blob"), "blob", Some("https://blob.blob.core.usgovcloudapi.net"), "https://blob-secondary.blob.core.usgovcloudapi.net"),
    ("https://contoso-dualstack.dfs.core.windows.net", Some("dfs"), "contoso", None, "https://contoso-secondary-dualstack.dfs.core.windows.net"),
    ("https://contoso-dualstack.z22.web.core.windows.net", Some("web"), "contoso", None, "https://contoso-secondary-dualstack.z22.web.core.windows.net"),
    ("http://[::1]:10000/devstoreaccount1", None, "devstoreaccount1", None, "http://[::1]:10000/devstoreaccount1-secondary"),
    ("http://[0:0:0:0:0:0:0:1]:10000/devstoreaccount1/", None, "devstoreaccount1", Some("http://[::1]:10000/devstoreaccount1"), "http://[::1]:10000/devstoreaccount1-secondary"),
    ("http://localhost:10000/devstoreaccount1", None, "devstoreaccount1", None, "http://localhost:10000/devstoreaccount1-secondary"),
    ("http://azurite:10001/devstoreaccount1", None, "devstoreaccount1", None, "http://azurite:10001/devstoreaccount1-secondary"),
];

#[rustfmt::skip]
const NOT_DERIVED: &[(&str, &str)] = &[
    ("http://127.0.0.1:10000", "not-derivable"),
    ("https://contoso-secondary.blob.core.windows.net", "already-secondary"),
    ("https://contoso.file.core.windows.net", "no-readable-secondary"),
    ("https://contoso.privatelink.blob.core.windows.net", "not-derivable"),
    ("https://files.contoso.test", "not-derivable"),
    ("https://", "invalid-url"),
    ("https://contoso-secondary-ipv6.blob.core.windows.net", "already-secondary"),
    ("https://contoso-secondary-dualstack.table.core.windows.net", "already-secondary"),
    ("http://127.0.0.1:10000/devstoreaccount1-secondary", "already-secondary"),
    ("https://contoso-secondary.file.core.windows.net", "no-readable-secondary"),
    ("https://contoso.z01.file.storage.azure.net", "no-readable-secondary"),
    ("https://contoso.blob.privatelink.test", "not-derivable"),
    ("https://contoso.z1.web.core.windows.net", "not-derivable"),
    ("https://contoso.z123.web.core.windows.net", "not-derivable"),
    ("https://contoso.y13.web.core.windows.net", "not-derivable"),
    ("https://contoso.management.core.windows.net", "not-derivable"),
    ("https://contoso-west.blob.core.windows.net", "not-derivable"),
    ("https://contoso-secondary-secondary.blob.core.windows.net", "not-derivable"),
    ("https://ab.blob.core.windows.net", "not-derivable"),
    ("https://a_b_c.blob.core.windows.net", "not-derivable"),
    ("https://azurite", "not-derivable"),
    ("http://[::1]:10000", "not-derivable"),
    ("http://127.0.0.1:10000/Container", "not-derivable"),
    ("https://files.contoso.test/contoso", "not-derivable"),
    ("https://contoso.blob.core.windows.net/container", "invalid-url"),
    ("contoso.blob.core.windows.net", "invalid-url"),
    ("ftp://contoso.blob.core.windows.net", "invalid-url"),
    ("https://contoso.blob.core.windows.net?sv=1&sig=secret", "invalid-url"),
    ("https://contoso.blob.core.windows.net#x", "invalid-url"),
    ("https://user:secret@contoso.blob.core.windows.net", "invalid-url"),
    ("https://contoso.blob.core.windows.net:0", "invalid-url"),
    ("https://contoso..blob.core.windows.net", "invalid-url"),
    ("", "invalid-url"),
];

/// R11
#[test]
fn secondaries_are_derived() {
    for (url, service, account, primary, secondary) in DERIVED {
        let parsed = AccountEndpoint::parse(url).unwrap();
        assert_eq!(
            parsed.service().map(StorageService::as_str),
            *service,
            "{url}"
        );
        assert_eq!(parsed.account(), Some(*account), "{url}");
        if let Some(primary) = primary {
            assert_eq!(parsed.endpoint().to_string(), *primary, "{url}");
        }
        assert_eq!(
            parsed.derive_secondary().unwrap().to_string(),
            *secondary,
            "{url}"
        );
        assert!(!parsed.is_secondary());
    }
}

/// R11: already secondary, `file`, `privatelink`, custom domains and IP addresses are errors that
/// say what to configure instead, and repeat nothing of the URL.
#[test]
fn what_cannot_be_derived_says_why() {
    for (url, kind) in NOT_DERIVED {
        let error = AccountEndpoint::parse(url)
            .and_then(|parsed| parsed.derive_secondary())
            .expect_err(url);
        assert_eq!(error.kind().as_str(), *kind, "{url}: {error}");
        let message = error.to_string();
        assert!(
            !message.ends_with('.') && !message.contains("secret"),
            "{message}"
        );
    }
}

/// R11: a derived secondary is a secondary, of the same account and service, and is not derived
/// from again.
#[test]
fn a_secondary_is_known_as_one() {
    for (url, ..) in DERIVED {
        let primary = AccountEndpoint::parse(url).unwrap();
        let derived = primary.derive_secondary().unwrap();
        let secondary = AccountEndpoint::parse(&derived.to_string()).unwrap();
        assert!(secondary.is_secondary(), "{derived}");
        assert_eq!(secondary.account(), primary.account());
        assert_eq!(secondary.service(), primary.service());
        assert_eq!(
            secondary.derive_secondary().unwrap_err().kind(),
            AlreadySecondary
        );
    }
}

#[test]
fn endpoints_follow_from_names() {
    let endpoint = |service: StorageService, account, suffix| {
        service
            .endpoint(account, suffix)
            .map(|endpoint| endpoint.to_string())
    };
    for service in StorageService::ALL {
        assert_eq!(service.as_str().parse(), Ok(service));
        if service != StorageService::Web {
            assert_eq!(
                endpoint(service, "contoso", DEFAULT_SUFFIX).unwrap(),
                format!("https://contoso.{service}.core.windows.net")
            );
        }
    }
    assert_eq!(
        endpoint(StorageService::Blob, "a1b", ".core.chinacloudapi.cn").unwrap(),
        "https://a1b.blob.core.chinacloudapi.cn"
    );
    for account in [
        "",
        "ab",
        "Contoso",
        "con-toso",
        "con.toso",
        "contosocontosocontosocontoso1",
        "contosoé",
    ] {
        let error = endpoint(StorageService::Blob, account, DEFAULT_SUFFIX).unwrap_err();
        assert!(error.starts_with_setting("account"), "{account}: {error}");
    }
    for suffix in [
        "",
        "core.windows.net/x",
        "core.windows.net:80",
        "u@core",
        "a b",
    ] {
        let error = endpoint(StorageService::Blob, "contoso", suffix).unwrap_err();
        assert!(
            error.starts_with_setting("endpoint_suffix"),
            "{suffix}: {error}"
        );
    }
    let error = endpoint(StorageService::Web, "contoso", DEFAULT_SUFFIX).unwrap_err();
    assert!(error.to_string().contains("zone"), "{error}");
    assert!("Blob".parse::<StorageService>().is_err());
}

impl ConfigError {
    fn starts_with_setting(&self, setting: &str) -> bool {
        self.setting() == setting && self.to_string().starts_with(&format!("`{setting}`: "))
    }
}

proptest! {
    /// R11: only the first label changes, and it stays one that DNS can carry; port and scheme
    /// stay.
    #[test]
    fn only_the_first_label_changes(
        scheme in prop::sample::select(vec!["http", "https"]),
        account in "[a-z0-9]{3,24}",
        feature in prop::sample::select(vec!["", "-ipv6", "-dualstack"]),
        zone in prop::sample::select(vec!["", "z01.", "z13.", "z99."]),
        service in prop::sample::select(vec!["blob", "queue", "table", "dfs", "web"]),
        suffix in "[a-z]{1,8}(\\.[a-z]{1,8}){0,3}",
        port in prop::option::of(1..=65535_u16),
    ) {
        prop_assume!(!suffix.contains("privatelink"));
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let rest = format!("{zone}{service}.{suffix}{port}");
        let url = format!("{scheme}://{account}{feature}.{rest}");
        let primary = AccountEndpoint::parse(&url).unwrap();
        let secondary = primary.derive_secondary().unwrap();
        prop_assert_eq!(secondary.scheme(), primary.endpoint().scheme());
        prop_assert_eq!(secondary.port(), primary.endpoint().port());
        let (label, rest_after) = secondary.host().split_once('.').unwrap();
        let (_, rest_before) = primary.endpoint().host().split_once('.').unwrap();
        prop_assert_eq!(rest_after, rest_before);
        prop_assert_eq!(label, format!("{account}-secondary{feature}"));
        prop_assert!(label.len() <= 63);
    }

    /// R11: whatever the text, there is an answer without a panic, and what is derived differs
    /// from what it was derived from.
    #[test]
    fn any_text_is_answered(
        url in "(https?://)?[a-zA-Z0-9.:@/?#\\[\\]%_-]{0,70}(\\.blob\\.core\\.windows\\.net)?.{0,3}",
    ) {
        if let Ok(parsed) = AccountEndpoint::parse(&url) {
            if let Ok(secondary) = parsed.derive_secondary() {
                prop_assert_ne!(&secondary, parsed.endpoint());
                let label = secondary.host().split('.').next().unwrap();
                prop_assert!(label.len() <= 63);
            }
        }
    }
}

/// F1: `dfs` and `web` take blob's Last Sync Time.
#[test]
fn dfs_and_web_have_a_blob_sibling() {
    for (url, wanted) in [
        (
            "https://acct-secondary.dfs.core.windows.net",
            Some("https://acct-secondary.blob.core.windows.net"),
        ),
        (
            "https://dfs.dfs.core.windows.net:8443",
            Some("https://dfs.blob.core.windows.net:8443"),
        ),
        (
            "https://acct.z01.web.storage.azure.net",
            Some("https://acct.z01.blob.storage.azure.net"),
        ),
        (
            "https://acct.z01.dfs.storage.azure.net",
            Some("https://acct.z01.blob.storage.azure.net"),
        ),
        (
            "https://acct.z13.web.core.windows.net",
            Some("https://acct.blob.core.windows.net"),
        ),
        ("https://acct.blob.core.windows.net", None),
        ("https://www.contoso.test", None),
        ("http://127.0.0.1:10000/acct", None),
    ] {
        let sibling = AccountEndpoint::parse(url).unwrap().blob_sibling();
        assert_eq!(
            sibling.map(|url| url.to_string()).as_deref(),
            wanted,
            "{url}"
        );
    }
}
