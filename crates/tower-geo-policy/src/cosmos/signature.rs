//! What is signed with the key of an account.
//!
//! The host is not among it, nor the query, nor the body, so a signed request may be sent to
//! another region as it is. Path and date must stay.

use crate::percent;

/// The type of the resources that are known by their internal ids alone.
const OFFERS: &str = "offers";

/// The resource type and the resource link of a path, as they are signed; the link is still
/// percent-encoded where the path is. Of an offer the link is its id alone.
///
/// For paths that name resources by their names (and offers). The service signs a path of internal
/// ids (`_rid`) differently.
///
/// ```
/// use tower_geo_policy::cosmos::resource_of;
///
/// assert_eq!(resource_of("/dbs/Shop/colls/Orders/docs"), ("docs", "dbs/Shop/colls/Orders"));
/// assert_eq!(resource_of("/dbs/Shop/colls/Orders"), ("colls", "dbs/Shop/colls/Orders"));
/// assert_eq!(resource_of("/offers/Fb2z"), ("offers", "Fb2z"));
/// assert_eq!(resource_of("/"), ("", ""));
/// ```
#[must_use]
pub fn resource_of(path: &str) -> (&str, &str) {
    let path = path.trim_matches('/');
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or("");
    // Types and names take turns, beginning with a type.
    if path.split('/').count() % 2 == 1 {
        let link = path.strip_suffix(last).unwrap_or("").trim_end_matches('/');
        return (last, link);
    }
    match parts.next().unwrap_or("") {
        OFFERS => (OFFERS, last),
        kind => (kind, path),
    }
}

/// What is signed of a request for `path`, which is percent-encoded as it is sent: the link is
/// signed decoded.
///
/// ```
/// use tower_geo_policy::cosmos::string_to_sign_for;
///
/// let date = "Thu, 27 Apr 2017 00:51:12 GMT";
/// assert_eq!(
///     string_to_sign_for("GET", "/dbs/To%20Do", date),
///     "get\ndbs\ndbs/To Do\nthu, 27 apr 2017 00:51:12 gmt\n\n"
/// );
/// ```
#[must_use]
pub fn string_to_sign_for(verb: &str, path: &str, date: &str) -> String {
    let (kind, link) = resource_of(path);
    if !link.contains('%') {
        return string_to_sign(verb, kind, link, date);
    }
    // Names are UTF-8; what is not names nothing.
    match String::from_utf8(percent::decoded(link).collect()) {
        Ok(decoded) => string_to_sign(verb, kind, &decoded, date),
        Err(_) => string_to_sign(verb, kind, link, date),
    }
}

/// What is signed: the verb and the type of the resource, in lower case, the link to it as it is
/// written (that of an offer in lower case), and the value of `x-ms-date`, in lower case.
///
/// To be signed with HMAC-SHA256 and the account's key, decoded from base64; see
/// [`authorization_token`].
#[must_use]
pub fn string_to_sign(verb: &str, resource_type: &str, link: &str, date: &str) -> String {
    let mut text = String::with_capacity(
        verb.len() + resource_type.len() + link.len() + date.len() + "\n\n\n\n\n".len(),
    );
    let lower = |text: &mut String, part: &str| {
        text.extend(part.chars().map(|letter| letter.to_ascii_lowercase()));
        text.push('\n');
    };
    lower(&mut text, verb);
    lower(&mut text, resource_type);
    if resource_type.eq_ignore_ascii_case(OFFERS) {
        lower(&mut text, link);
    } else {
        text.push_str(link);
        text.push('\n');
    }
    lower(&mut text, date);
    text.push('\n');
    text
}

/// The value of the `Authorization` header, before it is percent-encoded, for a signature in
/// base64.
#[must_use]
pub fn authorization_token(signature: &str) -> String {
    format!("type=master&ver=1.0&sig={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources() {
        for (path, expected) in [
            ("/dbs", ("dbs", "")),
            ("/dbs/d", ("dbs", "dbs/d")),
            ("/dbs/d/colls/", ("colls", "dbs/d")),
            ("/dbs/d/colls/c/docs/1", ("docs", "dbs/d/colls/c/docs/1")),
            (
                "/dbs/d/colls/c/sprocs/s",
                ("sprocs", "dbs/d/colls/c/sprocs/s"),
            ),
            ("/dbs/docs/colls/docs/docs", ("docs", "dbs/docs/colls/docs")),
            ("/dbs/offers", ("dbs", "dbs/offers")),
            ("/offers", ("offers", "")),
            ("/offers/aB+c==", ("offers", "aB+c==")),
            ("", ("", "")),
        ] {
            assert_eq!(resource_of(path), expected, "{path}");
        }
    }

    #[test]
    fn five_lines_are_signed() {
        let text = string_to_sign("GET", "Docs", "dbs/A", "Thu, 01 JAN");
        assert_eq!(text, "get\ndocs\ndbs/A\nthu, 01 jan\n\n");
    }
    /// A `+` is itself in a path, and a percent sign that was encoded is decoded once.
    #[test]
    fn the_link_is_signed_decoded() {
        for (path, link) in [
            ("/dbs/d/colls/c/docs/a%20b+c", "dbs/d/colls/c/docs/a b+c"),
            ("/dbs/d/colls/c/docs/50%25%41", "dbs/d/colls/c/docs/50%A"),
            ("/dbs/d/colls/c/docs/%C3%A9", "dbs/d/colls/c/docs/\u{e9}"),
            ("/dbs/d/colls/c/docs/50%", "dbs/d/colls/c/docs/50%"),
            ("/dbs/d/colls/c/docs/%FF", "dbs/d/colls/c/docs/%FF"),
        ] {
            let text = string_to_sign_for("GET", path, "d");
            assert_eq!(text, format!("get\ndocs\n{link}\nd\n\n"), "{path}");
        }
    }

    /// An offer has an internal id and no name: only that is signed, in lower case.
    #[test]
    fn an_offer_is_signed_by_its_id_in_lower_case() {
        let text = string_to_sign_for("PUT", "/offers/aB+c==", "d");
        assert_eq!(text, "put\noffers\nab+c==\nd\n\n");
        assert_eq!(
            string_to_sign_for("GET", "/offers", "d"),
            "get\noffers\n\nd\n\n"
        );
    }
}
