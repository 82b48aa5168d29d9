use http::Uri;
use http::uri::Scheme;
use proptest::prelude::*;

use super::*;
use crate::intent::Intent;

fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap()
}

fn region(name: &str, url: &str) -> Region {
    Region::new(name, endpoint(url))
}

fn pair(primary: &str, secondary: &str) -> Regions {
    Regions::new(vec![
        region("primary", primary).writable(true),
        region("secondary", secondary),
    ])
    .unwrap()
}

fn host_style() -> Regions {
    pair(
        "https://contoso.blob.core.windows.net",
        "https://contoso-secondary.blob.core.windows.net",
    )
}

fn path_style() -> Regions {
    pair(
        "http://127.0.0.1:10000/fabrikam",
        "http://127.0.0.1:10000/fabrikam-secondary",
    )
}

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

const PRIMARY: RegionId = RegionId::FIRST;
const SECONDARY: RegionId = RegionId::new(1);

fn read_at(regions: &Regions, region: RegionId) -> Destination {
    regions
        .read_target(ReadProof::of(Intent::READ).unwrap(), region)
        .unwrap()
}

fn directed(regions: &Regions, region: RegionId, from: &str) -> (String, String) {
    let (to, host) = regions
        .direct(read_at(regions, region), &uri(from))
        .unwrap();
    (to.to_string(), host.to_str().unwrap().to_owned())
}

#[test]
fn endpoints_are_normalised() {
    for (given, expected) in [
        ("https://a.test", "https://a.test"),
        ("https://a.test/", "https://a.test"),
        ("HTTPS://A.Test.:443/", "https://a.test"),
        ("https://a.test:", "https://a.test"),
        ("https://a.test:80", "https://a.test:80"),
        ("http://a.test:80", "http://a.test"),
        ("http://a.test:0080", "http://a.test"),
        (
            "http://127.0.0.1:10000/acct/",
            "http://127.0.0.1:10000/acct",
        ),
        ("http://[0:0::1]:80", "http://[::1]"),
        ("http://[::1]:10000/acct", "http://[::1]:10000/acct"),
        ("http://under_score", "http://under_score"),
    ] {
        assert_eq!(endpoint(given).to_string(), expected, "{given}");
        assert_eq!(endpoint(&endpoint(given).to_string()), endpoint(given));
    }
    let azurite = endpoint("http://127.0.0.1:10000/acct");
    assert_eq!(azurite.scheme(), "http");
    assert_eq!(azurite.authority(), "127.0.0.1:10000");
    assert_eq!(azurite.host(), "127.0.0.1");
    assert_eq!(azurite.port(), Some(10000));
    assert_eq!(azurite.account_segment(), Some("acct"));
    assert_eq!(endpoint("https://[::1]").host(), "[::1]");
    assert_eq!(endpoint("https://[::1]").port(), None);
}

#[test]
fn what_is_no_endpoint_is_refused_without_repeating_it() {
    for (given, expected) in [
        ("", "begin with http"),
        ("secret.test", "begin with http"),
        ("ftp://secret.test", "begin with http"),
        ("https://", "no host"),
        ("https:///secret", "no host"),
        ("https://.", "no host that can exist"),
        ("https://secret..test", "no host that can exist"),
        ("https://sécret.test", "no host that can exist"),
        ("https://sec ret.test", "no host that can exist"),
        ("https://[secret]", "no host that can exist"),
        ("https://[::1", "no host that can exist"),
        ("https://::1", "no host that can exist"),
        ("https://secret.test:0", "port"),
        ("https://secret.test:65536", "port"),
        ("https://secret.test:+1", "port"),
        ("https://secret.test:https", "port"),
        ("https://me:secret@a.test", "user info"),
        ("https://a.test?sig=secret", "query"),
        ("https://a.test/?", "query"),
        ("https://a.test#secret", "fragment"),
        ("https://a.test/one/secret", "one account name"),
        ("https://a.test//", "one account name"),
        ("https://a.test/..", "one account name"),
        ("https://a.test/secr%65t", "one account name"),
    ] {
        let error = Endpoint::parse(given).unwrap_err().to_string();
        assert!(error.contains(expected), "{given}: {error}");
        assert!(!error.contains("secret"), "{given}: {error}");
    }
    let label = "a".repeat(64);
    assert!(Endpoint::parse(&format!("https://{label}.test")).is_err());
    let host = vec!["a".repeat(50); 6].join(".");
    assert!(Endpoint::parse(&format!("https://{host}")).is_err());
}

#[test]
fn senseless_sets_of_regions_are_refused() {
    let a = || region("a", "https://a.test").writable(true);
    let many = (0..17)
        .map(|n| region(&format!("r{n}"), &format!("https://r{n}.test")).writable(n == 0))
        .collect::<Vec<_>>();
    assert!(Regions::new(many[..16].to_vec()).is_ok());
    for (regions, expected) in [
        (vec![], "at least one"),
        (many, "at most 16"),
        (vec![region("a", "https://a.test")], "takes writes"),
        (vec![a(), region("", "https://b.test")], "have names"),
        (vec![a(), region("a", "https://b.test")], "distinct names"),
        (
            vec![a(), region("b", "https://A.test.:443/")],
            "redirecting to itself disables the feature",
        ),
        (
            vec![a(), region("b", "http://a.test")],
            "redirecting to itself disables the feature",
        ),
        (vec![a(), region("b", "http://b.test")], "off tls"),
        (
            vec![
                region("a", "http://a.test").writable(true),
                region("b", "https://b.test"),
            ],
            "off tls",
        ),
        (
            vec![a(), region("b", "https://b.test/acct")],
            "of all endpoints or of none",
        ),
        (
            vec![
                a(),
                region("b", "https://b.test"),
                region("c", "https://c.test"),
                region("d", "https://b.test"),
            ],
            "(`b` and `d` are both https://b.test)",
        ),
    ] {
        let error = Regions::new(regions).unwrap_err();
        assert_eq!(error.setting(), "regions");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn regions_are_found_by_number_and_by_name() {
    let regions = Regions::new(vec![
        region("us", "https://us.test"),
        region("eu", "https://eu.test").writable(true),
        region("asia", "https://asia.test").writable(true),
    ])
    .unwrap();
    assert_eq!(regions.len(), 3);
    assert_eq!(regions.writer(), RegionId::new(1));
    assert_eq!(regions.by_name("asia"), Some(RegionId::new(2)));
    assert_eq!(regions.by_name("Asia"), None);
    assert_eq!(regions.get(RegionId::new(3)), None);
    assert_eq!(regions.get(RegionId::new(255)), None);
    let names: Vec<_> = regions
        .iter()
        .map(|(id, region)| (id.index(), region.name()))
        .collect();
    assert_eq!(names, [(0, "us"), (1, "eu"), (2, "asia")]);
}

/// I8, R10: which region a request names.
#[test]
fn requests_name_regions_by_their_authority() {
    let regions = host_style();
    for (text, expected) in [
        ("https://contoso.blob.core.windows.net/c/b", Some(PRIMARY)),
        (
            "https://contoso.blob.core.windows.net:443/c/b",
            Some(PRIMARY),
        ),
        ("https://Contoso.BLOB.core.windows.net./c/b", Some(PRIMARY)),
        ("https://user@contoso.blob.core.windows.net/", Some(PRIMARY)),
        ("http://contoso.blob.core.windows.net/c/b", Some(PRIMARY)),
        ("http://CONTOSO.blob.core.windows.net:80/c/b", Some(PRIMARY)),
        (
            "https://contoso-secondary.blob.core.windows.net?x",
            Some(SECONDARY),
        ),
        (
            "https://CONTOSO-secondary.blob.core.windows.net:443",
            Some(SECONDARY),
        ),
        ("contoso.blob.core.windows.net:443", Some(PRIMARY)),
        ("https://contoso.blob.core.windows.net:444/c/b", None),
        ("https://contoso.blob.core.windows.net:80/c/b", None),
        ("https://contoso.queue.core.windows.net/c/b", None),
        ("https://contoso.blob.core.windows.net.evil.test/", None),
        (
            "https://login.example.test/contoso.blob.core.windows.net",
            None,
        ),
        ("https://contoso.blob.core.windows.net@evil.test/", None),
        ("/c/b", None),
        ("*", None),
    ] {
        assert_eq!(regions.region_of(&uri(text)), expected, "{text}");
    }
}

/// I8: path style, and its first segment.
#[test]
fn requests_name_regions_by_their_first_segment() {
    let regions = path_style();
    for (text, expected) in [
        ("http://127.0.0.1:10000/fabrikam/c/b", Some(PRIMARY)),
        ("http://127.0.0.1:10000/fabrikam", Some(PRIMARY)),
        ("http://127.0.0.1:10000/fabrikam/", Some(PRIMARY)),
        ("http://127.0.0.1:10000/fabrikam?comp=list", Some(PRIMARY)),
        (
            "http://127.0.0.1:10000/fabrikam-secondary/c",
            Some(SECONDARY),
        ),
        (
            "http://127.0.0.1:10000/fabrikam%2Dsecondary/c",
            Some(SECONDARY),
        ),
        ("http://127.0.0.1:10000/Fabrikam/c", None),
        ("http://127.0.0.1:10000/fabrikam2/c", None),
        ("http://127.0.0.1:10000/", None),
        ("http://127.0.0.1:10000//fabrikam/c", None),
        ("http://127.0.0.1:10001/fabrikam/c", None),
        ("http://127.0.0.1/fabrikam/c", None),
    ] {
        assert_eq!(regions.region_of(&uri(text)), expected, "{text}");
    }
    let regions = pair(
        "http://[::1]:10000/acct",
        "http://[::1]:10000/acct-secondary",
    );
    assert_eq!(
        regions.region_of(&uri("http://[0:0:0::1]:10000/acct/c")),
        Some(PRIMARY)
    );
}

/// R1: there is no way from a write to a region that takes none.
#[test]
fn a_write_has_no_way_to_a_copy() {
    let regions = host_style();
    for intent in [
        Intent::WRITE_ONCE,
        Intent::WRITE_HARMLESS,
        Intent::NEUTRAL,
        Intent::READ_AT_WRITER,
    ] {
        assert!(ReadProof::of(intent).is_none(), "{intent:?}");
    }
    assert_eq!(regions.write_target(SECONDARY), None);
    assert_eq!(regions.write_target(RegionId::new(2)), None);
    assert_eq!(regions.write_target(PRIMARY).unwrap().region(), PRIMARY);
}

/// R1: a permission to write at one service is none at another.
#[test]
fn a_write_target_holds_only_where_it_was_given() {
    let other = Regions::new(vec![
        region("a", "https://a.test"),
        region("b", "https://b.test").writable(true),
        region("c", "https://c.test").writable(true),
    ])
    .unwrap();
    let regions = host_style();
    let from = uri("https://contoso.blob.core.windows.net/c/b");
    for foreign in [SECONDARY, RegionId::new(2)] {
        let target = other.write_target(foreign).unwrap();
        let error = regions.direct(target, &from).unwrap_err();
        assert_eq!(error.to_string(), "the destination is of another service");
    }
}

/// I5: what only a copy answers is not sent to the writer.
#[test]
fn a_read_for_a_copy_has_no_way_to_the_writer() {
    let regions = host_style();
    let proof = ReadProof::of(Intent::READ_AT_COPY).unwrap();
    assert_eq!(regions.read_target(proof, PRIMARY), None);
    assert_eq!(
        regions.read_target(proof, SECONDARY).unwrap().region(),
        SECONDARY
    );
    let proof = ReadProof::of(Intent::READ).unwrap();
    assert!(regions.read_target(proof, PRIMARY).is_some());
    assert_eq!(regions.read_target(proof, RegionId::new(2)), None);
}

/// R8: authority and `Host`, and nothing else; port and scheme come from the endpoint.
#[test]
fn a_redirect_changes_the_authority_and_nothing_else() {
    let regions = host_style();
    for path in [
        "/c/b",
        "/",
        "/c/a%20b%2F?comp=list&prefix=a%2Bb&sig=x%3D",
        "//c///b/?",
        "/contoso/contoso.blob.core.windows.net?x=contoso",
    ] {
        let from = format!("https://contoso.blob.core.windows.net{path}");
        let (to, host) = directed(&regions, SECONDARY, &from);
        assert_eq!(
            to,
            format!("https://contoso-secondary.blob.core.windows.net{path}")
        );
        assert_eq!(host, "contoso-secondary.blob.core.windows.net");
    }
    let regions = pair("https://p.test:8443", "https://s.test:9443");
    assert_eq!(
        directed(&regions, SECONDARY, "https://P.test:8443/a"),
        ("https://s.test:9443/a".into(), "s.test:9443".into())
    );
    // The request came without TLS, the endpoint has it.
    let regions = host_style();
    assert_eq!(
        directed(
            &regions,
            SECONDARY,
            "http://contoso.blob.core.windows.net/a"
        )
        .0,
        "https://contoso-secondary.blob.core.windows.net/a"
    );
}

/// R8: path style swaps the first segment, exactly, and not every one that looks like it.
#[test]
fn path_style_swaps_the_first_segment() {
    let regions = path_style();
    let base = "http://127.0.0.1:10000";
    for (from, to) in [
        ("/fabrikam", "/fabrikam-secondary"),
        ("/fabrikam/", "/fabrikam-secondary/"),
        ("/fabrikam?comp=list", "/fabrikam-secondary?comp=list"),
        (
            "/fabrikam/fabrikam/fabrikam?fabrikam",
            "/fabrikam-secondary/fabrikam/fabrikam?fabrikam",
        ),
        ("/fabrikam//c?/fabrikam", "/fabrikam-secondary//c?/fabrikam"),
    ] {
        let (there, host) = directed(&regions, SECONDARY, &format!("{base}{from}"));
        assert_eq!(there, format!("{base}{to}"));
        assert_eq!(host, "127.0.0.1:10000");
        let (back, _) = directed(&regions, PRIMARY, &there);
        assert_eq!(back, format!("{base}{from}"));
    }
}

/// I8: what is for another service is not directed anywhere.
#[test]
fn foreign_requests_are_not_directed() {
    let regions = host_style();
    for text in ["https://login.example.test/token", "/c/b"] {
        let error = regions
            .direct(read_at(&regions, SECONDARY), &uri(text))
            .unwrap_err();
        assert_eq!(error.to_string(), "the request is for another service");
    }
    let error = regions
        .direct(
            read_at(&regions, SECONDARY),
            &uri("contoso.blob.core.windows.net:443"),
        )
        .unwrap_err();
    assert_eq!(error.to_string(), "the request has no absolute http uri");
}

/// R2
#[test]
fn location_modes_are_written_and_read() {
    for (bits, text) in [
        "primary-only",
        "primary-then-secondary",
        "secondary-only",
        "secondary-then-primary",
    ]
    .into_iter()
    .enumerate()
    {
        let mode: LocationMode = text.parse().unwrap();
        assert_eq!(mode.to_string(), text);
        assert_eq!(usize::from(mode.to_bits()), bits);
        assert_eq!(LocationMode::from_bits(mode.to_bits()), Some(mode));
        assert_eq!(mode.needs_secondary(), mode != LocationMode::PrimaryOnly);
    }
    assert_eq!(LocationMode::default(), LocationMode::PrimaryOnly);
    assert_eq!(LocationMode::from_bits(4), None);
    let error = "PrimaryOnly".parse::<LocationMode>().unwrap_err();
    assert_eq!(error.setting(), "location_mode");
}

/// Two to four regions, host style or path style, with or without ports of their own.
fn any_regions() -> impl Strategy<Value = Regions> {
    (
        any::<bool>(),
        any::<bool>(),
        prop::collection::btree_set("[a-z][a-z0-9]{0,8}", 2..5),
        prop::option::of(1..=65535_u16),
    )
        .prop_map(|(https, in_path, names, port)| {
            let scheme = if https { "https" } else { "http" };
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            let regions = names
                .into_iter()
                .enumerate()
                .map(|(index, name)| {
                    let url = if in_path {
                        format!("{scheme}://127.0.0.1{port}/{name}")
                    } else {
                        format!("{scheme}://{name}.test{port}")
                    };
                    region(&name, &url).writable(index == 0)
                })
                .collect();
            Regions::new(regions).unwrap()
        })
}

proptest! {
    /// R8: there and back is the same URI, and each region is known again in between.
    #[test]
    fn directing_there_and_back_changes_nothing(
        regions in any_regions(),
        path in "(/[a-zA-Z0-9._~%!$&'()*+,;=:@-]{0,8}){0,4}",
        query in prop::option::of("[a-zA-Z0-9._~%=&?/:@-]{0,20}"),
        from in 0..5_u8,
        to in 0..5_u8,
    ) {
        let count = u8::try_from(regions.len()).unwrap();
        let (from, to) = (RegionId::new(from % count), RegionId::new(to % count));
        let mut text = format!("{}{path}", regions.get(from).unwrap().endpoint());
        if let Some(query) = &query {
            text.push('?');
            text.push_str(query);
        }
        let origin = uri(&text);
        prop_assert_eq!(regions.region_of(&origin), Some(from));

        let (there, host) = regions.direct(read_at(&regions, to), &origin).unwrap();
        prop_assert_eq!(regions.region_of(&there), Some(to));
        prop_assert_eq!(there.query(), origin.query());
        let endpoint = regions.get(to).unwrap().endpoint();
        prop_assert_eq!(there.scheme().map(Scheme::as_str), Some(endpoint.scheme()));
        prop_assert_eq!(there.authority().unwrap().as_str(), endpoint.authority());
        prop_assert_eq!(host.to_str().unwrap(), endpoint.authority());

        let (back, _) = regions.direct(read_at(&regions, from), &there).unwrap();
        prop_assert_eq!(back.to_string(), origin.to_string());
    }

    /// Any text is either refused or normalised for good.
    #[test]
    fn parsing_an_endpoint_is_idempotent(
        url in "(https?://)?[a-zA-Z0-9.:@/?#\\[\\]%_-]{0,40}.{0,3}",
    ) {
        if let Ok(endpoint) = Endpoint::parse(&url) {
            let again = Endpoint::parse(&endpoint.to_string()).unwrap();
            prop_assert_eq!(&again, &endpoint);
            // What is normalised names itself, and a client can send to it.
            let regions = Regions::new(vec![Region::new("a", endpoint.clone()).writable(true)]).unwrap();
            let uri: Uri = endpoint.to_string().parse().unwrap();
            prop_assert_eq!(regions.region_of(&uri), Some(RegionId::FIRST));
        }
    }
}
