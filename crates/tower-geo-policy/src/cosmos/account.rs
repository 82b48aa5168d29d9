//! The account document: which regions the account says it has (C3).

use std::error::Error;
use std::fmt;

use http::StatusCode;
use serde::Deserialize;

use crate::region::Endpoint;

/// A region as the account lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    name: Box<str>,
    endpoint: Endpoint,
}

impl Location {
    /// Its name, as the account writes it.
    #[must_use]
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// What an account says of itself: the answer to `GET /` (C3).
///
/// Only what routing needs is read; all else, and what may come one day, is passed over. There is
/// no check of `id`, which repeats the host that was asked, nor of `_etag`, which is not sent.
/// The module has an [example](super).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountDocument {
    readable: Box<[Location]>,
    writable: Box<[Location]>,
    multi_write: bool,
    hedging_disabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDocument {
    readable_locations: Option<Vec<RawLocation>>,
    writable_locations: Option<Vec<RawLocation>>,
    enable_multiple_write_locations: Option<bool>,
    #[serde(rename = "disableCrossRegionalHedging")]
    hedging_disabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLocation {
    name: Option<String>,
    database_account_endpoint: Option<String>,
}

impl AccountDocument {
    /// Reads an answer to the account read.
    ///
    /// Locations without a name are passed over: they occur while an account fails over. The
    /// flag of multi-write may be missing, which means no.
    ///
    /// # Errors
    ///
    /// For every status but 200: the body of an error may look like a document with no regions,
    /// and is none. When the body is no JSON, when no region reads or none writes, and when the
    /// URL of a region is missing or cannot be one. The topology then stays as it was.
    pub fn of_answer(status: StatusCode, body: &[u8]) -> Result<Self, DocumentError> {
        if status != StatusCode::OK {
            return Err(DocumentError(Why::Status(status)));
        }
        let raw: RawDocument =
            serde_json::from_slice(body).map_err(|_| DocumentError(Why::NotADocument))?;
        let readable = locations(raw.readable_locations)?;
        let writable = locations(raw.writable_locations)?;
        if readable.is_empty() {
            return Err(DocumentError(Why::NothingReadable));
        }
        if writable.is_empty() {
            return Err(DocumentError(Why::NothingWritable));
        }
        Ok(Self {
            readable,
            writable,
            multi_write: raw.enable_multiple_write_locations.unwrap_or(false),
            hedging_disabled: raw.hedging_disabled,
        })
    }

    /// The regions that answer reads, in the account's order.
    #[must_use]
    pub const fn readable(&self) -> &[Location] {
        &self.readable
    }

    /// The regions that take writes, in the account's order: the first is the hub.
    #[must_use]
    pub const fn writable(&self) -> &[Location] {
        &self.writable
    }

    /// Whether the account takes writes in several regions.
    #[must_use]
    pub const fn is_multi_write(&self) -> bool {
        self.multi_write
    }

    /// What the account's switch against hedging says; none if the document does not say, and
    /// what was said before still holds.
    #[must_use]
    pub const fn hedging_disabled(&self) -> Option<bool> {
        self.hedging_disabled
    }
}

fn locations(raw: Option<Vec<RawLocation>>) -> Result<Box<[Location]>, DocumentError> {
    raw.unwrap_or_default()
        .into_iter()
        .filter_map(|location| {
            // Names go into logs and onto terminals.
            let name = location.name.unwrap_or_default();
            let name: String = name.chars().filter(|it| !it.is_control()).collect();
            let name = name.trim();
            if name.is_empty() {
                return None;
            }
            let url = location.database_account_endpoint.unwrap_or_default();
            let read = Endpoint::parse(url.trim()).map(|endpoint| Location {
                name: name.into(),
                endpoint,
            });
            Some(read.map_err(|_| DocumentError(Why::BadEndpoint(name.into()))))
        })
        .collect()
}

/// Why an answer is not taken as an account document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError(Why);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Status(StatusCode),
    NotADocument,
    NothingReadable,
    NothingWritable,
    BadEndpoint(Box<str>),
    DoesNotFit(Box<str>),
}

impl DocumentError {
    /// The document makes sense, but not for this service.
    pub(super) fn does_not_fit(why: &impl fmt::Display) -> Self {
        Self(Why::DoesNotFit(why.to_string().into_boxed_str()))
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Status(status) => {
                write!(f, "the account read was answered {}", status.as_u16())
            }
            Why::NotADocument => f.write_str("the answer is no account document"),
            Why::NothingReadable => f.write_str("the account document lists no readable region"),
            Why::NothingWritable => f.write_str("the account document lists no writable region"),
            Why::BadEndpoint(region) => {
                write!(f, "the account document gives `{region}` no usable url")
            }
            Why::DoesNotFit(why) => write!(f, "the account document cannot be used: {why}"),
        }
    }
}

impl Error for DocumentError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(body: &str) -> Result<AccountDocument, DocumentError> {
        AccountDocument::of_answer(StatusCode::OK, body.as_bytes())
    }

    fn location(name: &str, url: &str) -> String {
        format!(r#"{{"name": "{name}", "databaseAccountEndpoint": "{url}"}}"#)
    }

    fn with(readable: &str, writable: &str) -> Result<AccountDocument, DocumentError> {
        document(&format!(
            r#"{{"readableLocations": [{readable}], "writableLocations": [{writable}]}}"#
        ))
    }

    /// C3: incomplete documents are errors, whatever is missing.
    #[test]
    fn incomplete_documents_are_refused() {
        let east = location("East US", "https://a-eastus.documents.azure.com:443/");
        assert!(with(&east, &east).is_ok());
        for (readable, writable) in [
            ("", east.as_str()),
            (&east, ""),
            (&east, &location(" ", "https://b.documents.azure.com")),
            (&east, &location("West US", "")),
            (&location("West US", "ftp://a"), &east),
            (&east, r#"{"name": "West US"}"#),
        ] {
            let error = with(readable, writable).unwrap_err();
            assert!(
                error.to_string().starts_with("the account document"),
                "{error}"
            );
        }
        for body in ["", "{", "[]", "null", "{}", "<html></html>", "\u{feff}{}"] {
            assert!(document(body).is_err(), "{body}");
        }
    }

    /// C3, E1, E3: a name is one line of text wherever it is told.
    #[test]
    fn names_have_no_control_characters() {
        let url = "https://a-eastus.documents.azure.com:443/";
        let evil = location(r"East\n US\u001b[31m\u0085", url);
        let read = with(&evil, &evil).unwrap();
        assert_eq!(read.readable()[0].name(), "East US[31m");
        let nothing = location(r"\n\u0000", url);
        let east = location("East US", url);
        assert_eq!(
            with(&nothing, &east).unwrap_err(),
            DocumentError(Why::NothingReadable)
        );
    }

    /// C3: error bodies are never parsed as topology, not even good ones.
    #[test]
    fn only_200_carries_a_document() {
        let east = location("East US", "https://a-eastus.documents.azure.com:443/");
        let body = format!(r#"{{"readableLocations": [{east}], "writableLocations": [{east}]}}"#);
        for status in [201, 204, 304, 401, 403, 404, 429, 500, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = AccountDocument::of_answer(status, body.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(status.as_str()), "{error}");
        }
        assert!(document(&body).is_ok());
    }

    /// C3: missing, null and new members are tolerated; C15: the switch against hedging.
    #[test]
    fn what_is_missing_says_nothing() {
        let east = location("East US", "https://a-eastus.documents.azure.com:443/");
        let lists = format!(r#""readableLocations": [{east}], "writableLocations": [{east}]"#);
        let read = |more: &str| document(&format!("{{{lists}{more}}}")).unwrap();
        assert!(!read("").is_multi_write());
        assert!(!read(r#", "enableMultipleWriteLocations": null, "id": 7"#).is_multi_write());
        assert!(read(r#", "enableMultipleWriteLocations": true, "new": [{}]"#).is_multi_write());
        assert_eq!(read("").hedging_disabled(), None);
        for (text, said) in [("null", None), ("true", Some(true)), ("false", Some(false))] {
            let member = format!(r#", "disableCrossRegionalHedging": {text}"#);
            assert_eq!(read(&member).hedging_disabled(), said);
        }
    }

    proptest::proptest! {
        /// C3: no body is trusted: nothing panics, and what is taken is complete.
        #[test]
        fn any_body_is_read_or_refused(
            body in r#"(\{|\[|"(readable|writable)Locations":|"name":|"databaseAccountEndpoint":|"https://a"|""|null|true|7|,|\}|\]){0,24}"#,
        ) {
            if let Ok(read) = document(&body) {
                proptest::prop_assert!(!read.readable().is_empty());
                proptest::prop_assert!(!read.writable().is_empty());
            }
        }
    }
}
