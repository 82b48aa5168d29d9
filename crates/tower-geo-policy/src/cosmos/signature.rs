//! What is signed with the key of an account.
//!
//! The host is not among it, nor the query, nor the body, so a signed request may be sent to
//! another region as it is. Path and date must stay.

/// The resource type and the resource link of a path, as they are signed.
///
/// ```
/// use tower_geo_policy::cosmos::resource_of;
///
/// assert_eq!(resource_of("/dbs/Shop/colls/Orders/docs"), ("docs", "dbs/Shop/colls/Orders"));
/// assert_eq!(resource_of("/dbs/Shop/colls/Orders"), ("colls", "dbs/Shop/colls/Orders"));
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
    (parts.next().unwrap_or(""), path)
}

/// What is signed: the verb and the type of the resource, in lower case, the link to it as it is
/// written, and the value of `x-ms-date`, in lower case.
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
    text.push_str(link);
    text.push('\n');
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
}
