//! What a request to Azure Storage does, and whether it may be repeated (I1 to I6, V1).
//!
//! Every request passes here before anything else is decided, so a GET without a query is ruled
//! on by its method alone (for queues by its path, for tables by its headers), and nothing
//! allocates.

use http::header::HeaderName;
use http::{HeaderMap, Method, Uri};

use super::endpoints::StorageService;
use crate::conditions::harmless_by_condition;
use crate::intent::{Intent, Ruling};
use crate::percent;

static APPEND_POSITION: HeaderName = HeaderName::from_static("x-ms-blob-condition-appendpos");
static BLOB_TYPE: HeaderName = HeaderName::from_static("x-ms-blob-type");
static COPY_SOURCE: HeaderName = HeaderName::from_static("x-ms-copy-source");
static LEASE_ACTION: HeaderName = HeaderName::from_static("x-ms-lease-action");
static RENAME_SOURCE: HeaderName = HeaderName::from_static("x-ms-rename-source");
static SEQUENCE_ACTION: HeaderName = HeaderName::from_static("x-ms-sequence-number-action");
static METHOD_OVERRIDES: [HeaderName; 2] = [
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
];

const READ: Ruling = Ruling::new(
    Intent::READ,
    "GET and HEAD are reads that the secondary may answer",
);
const READ_OF_FILE: Ruling = Ruling::new(
    Intent::READ_AT_WRITER,
    "a read that stays, because file shares have no readable secondary",
);
const PREFLIGHT: Ruling = Ruling::new(
    Intent::NEUTRAL,
    "OPTIONS asks what is allowed and touches no data",
);
const STATS: Ruling = Ruling::new(
    Intent::READ_AT_COPY,
    "the statistics of a service exist on the secondary only",
);
const PEEK: Ruling = Ruling::new(
    Intent::READ,
    "peeking at messages (`peekonly=true`) is a read",
);
const BLOB_QUERY: Ruling = Ruling::new(
    Intent::READ_AT_WRITER,
    "a query of a blob is a read that stays at the primary",
);
const DELEGATION_KEY: Ruling = Ruling::new(
    Intent::NEUTRAL,
    "asking for a user delegation key touches no data",
);

const fn harmless(why: &'static str) -> Ruling {
    Ruling::new(Intent::WRITE_HARMLESS, why)
}

const fn once(why: &'static str) -> Ruling {
    Ruling::new(Intent::WRITE_ONCE, why)
}

const UNKNOWN: Ruling =
    once("a write that is not known to give the same result twice, so it may not arrive twice");
const DEQUEUE: Ruling = once("getting messages takes them off the queue, so it is a write");

#[inline]
pub(super) fn intent(
    service: StorageService,
    path_style: bool,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Ruling {
    let is_get = matches!(*method, Method::GET | Method::HEAD);
    let only_by_method = matches!(
        service,
        StorageService::Blob | StorageService::Dfs | StorageService::Web
    );
    if is_get && only_by_method && uri.query().is_none() {
        return READ;
    }
    with_closer_look(service, path_style, method, uri, headers)
}

fn with_closer_look(
    service: StorageService,
    path_style: bool,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Ruling {
    let request = Request {
        method,
        uri,
        headers,
        path_style,
    };
    if service == StorageService::Table
        && METHOD_OVERRIDES
            .iter()
            .any(|name| headers.contains_key(name))
    {
        return request.write(|_| once("a request that overrides its method is a write"));
    }
    match *method {
        Method::GET if service == StorageService::Queue && request.is_about_messages() => {
            if request.peeks() {
                PEEK
            } else {
                request.write(|_| DEQUEUE)
            }
        }
        Method::GET | Method::HEAD => request.read(service),
        Method::OPTIONS => PREFLIGHT,
        _ => match service {
            StorageService::Blob => {
                if *method == Method::POST {
                    let parameters = request.parameters();
                    if parameters.comp.is("query") {
                        return BLOB_QUERY;
                    }
                    if parameters.comp.is("userdelegationkey") && parameters.restype.is("service") {
                        return DELEGATION_KEY;
                    }
                }
                request.write(Request::blob_write)
            }
            StorageService::Dfs => request.write(Request::dfs_write),
            StorageService::Queue => request.write(Request::queue_write),
            StorageService::Table => request.write(Request::table_write),
            // V1 lists nothing of theirs.
            StorageService::File | StorageService::Web => request.write(|_| UNKNOWN),
        },
    }
}

struct Request<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    path_style: bool,
}

impl<'r> Request<'r> {
    fn read(&self, service: StorageService) -> Ruling {
        // I5. The query is looked at for nothing else: whatever it says, a GET is a read.
        if self.uri.query().is_some() && *self.method == Method::GET {
            let parameters = self.parameters();
            if parameters.comp.is("stats") && parameters.restype.is("service") {
                return STATS;
            }
        }
        match service {
            StorageService::File => READ_OF_FILE,
            _ => READ,
        }
    }

    /// V1: a condition makes any write harmless; without one it depends on the operation.
    fn write(&self, by_operation: impl FnOnce(&Self) -> Ruling) -> Ruling {
        harmless_by_condition(self.headers).unwrap_or_else(|| by_operation(self))
    }

    fn blob_write(&self) -> Ruling {
        let parameters = self.parameters();
        // Operations of other services, and of the future, that only look like those below.
        if !parameters.are_blob_only() || !self.has_segments() {
            return UNKNOWN;
        }
        let is_container = parameters.restype.is("container");
        if !is_container && !parameters.restype.is_absent() {
            return UNKNOWN;
        }
        match *self.method {
            Method::DELETE if !parameters.comp.is_absent() => UNKNOWN,
            Method::DELETE if is_container => harmless("deleting a container twice is harmless"),
            Method::DELETE => harmless("deleting a blob twice is harmless"),
            Method::PUT if is_container => self.container_put(parameters),
            Method::PUT => self.blob_put(parameters),
            _ => UNKNOWN,
        }
    }

    fn container_put(&self, parameters: Parameters<'_>) -> Ruling {
        if parameters.comp.is_absent() {
            harmless("creating a container twice is harmless")
        } else if parameters.comp.is("metadata") {
            harmless("setting metadata twice gives the same result")
        } else {
            UNKNOWN
        }
    }

    fn blob_put(&self, parameters: Parameters<'_>) -> Ruling {
        let has = |name: &HeaderName| self.headers.contains_key(name);
        let Value::Given(comp) = parameters.comp else {
            return match parameters.comp {
                Value::Absent if has(&RENAME_SOURCE) => once("a rename may not arrive twice"),
                Value::Absent if has(&COPY_SOURCE) && !has(&BLOB_TYPE) => {
                    once("starting a copy may not arrive twice")
                }
                Value::Absent => harmless("putting a whole blob twice gives the same result"),
                Value::Given(_) | Value::Contradictory => UNKNOWN,
            };
        };
        let is = |word| percent::decodes_to_word(comp, word);
        if is("block") {
            harmless("putting a block twice gives the same result")
        } else if is("blocklist") {
            harmless("putting a block list twice gives the same result")
        } else if is("page") {
            if has(&COPY_SOURCE) {
                once("putting pages from a url is a copy, which may not arrive twice")
            } else {
                harmless("putting pages twice gives the same result")
            }
        } else if is("appendblock") {
            if self
                .headers
                .get(&APPEND_POSITION)
                .is_some_and(|position| !position.is_empty())
            {
                harmless(
                    "appending at a position (`x-ms-blob-condition-appendpos`) is refused the second time",
                )
            } else {
                once("appending a block without a position would append it twice")
            }
        } else if is("metadata") {
            harmless("setting metadata twice gives the same result")
        } else if is("properties") {
            if self
                .headers
                .get(&SEQUENCE_ACTION)
                .is_some_and(|action| action.as_bytes().eq_ignore_ascii_case(b"increment"))
            {
                once("incrementing a sequence number twice gives another result")
            } else {
                harmless("setting properties twice gives the same result")
            }
        } else if is("tier") {
            harmless("setting the tier twice gives the same result")
        } else if is("tags") {
            harmless("setting tags twice gives the same result")
        } else {
            // Lease, snapshot, copy (and aborting one), undelete, seal and whatever comes.
            UNKNOWN
        }
    }

    fn dfs_write(&self) -> Ruling {
        let parameters = self.parameters();
        // An append or a flush may acquire or release a lease on the way.
        let is_plain = parameters.comp.is_absent()
            && parameters.restype.is_absent()
            && !self.headers.contains_key(&LEASE_ACTION);
        if !is_plain {
            return UNKNOWN;
        }
        match *self.method {
            Method::PATCH
                if parameters.action.is("append") && parameters.position.has_content() =>
            {
                harmless("appending at a position gives the same result twice")
            }
            Method::PATCH if parameters.action.is("flush") => {
                harmless("flushing twice gives the same result")
            }
            // A file system is a container.
            Method::PUT | Method::DELETE
                if parameters.resource.is("filesystem") && parameters.action.is_absent() =>
            {
                harmless("creating or deleting a file system twice is harmless")
            }
            _ => UNKNOWN,
        }
    }

    fn queue_write(&self) -> Ruling {
        let parameters = self.parameters();
        if !parameters.comp.is_absent() || !parameters.restype.is_absent() {
            return UNKNOWN;
        }
        let mut segments = self.segments();
        let (queue, messages, message) = (segments.next(), segments.next(), segments.next_back());
        match (self.method, queue, messages, message) {
            (&Method::PUT, Some(_), None, None) => harmless("creating a queue twice is harmless"),
            (&Method::DELETE, Some(_), None, None) => {
                harmless("deleting a queue twice is harmless")
            }
            // Without the account's segment taken off, `/ACCOUNT/QUEUE/messages` has three
            // segments as well, and clears the queue: no message is called `messages`.
            (&Method::DELETE, Some(_), Some(_), Some(message))
                if !percent::decodes_to_word(message, "messages")
                    && self
                        .segments()
                        .rev()
                        .nth(1)
                        .is_some_and(|before| percent::decodes_to_word(before, "messages")) =>
            {
                harmless("deleting a message twice is harmless")
            }
            _ => UNKNOWN,
        }
    }

    fn table_write(&self) -> Ruling {
        let parameters = self.parameters();
        if !parameters.comp.is_absent() || !parameters.restype.is_absent() {
            return UNKNOWN;
        }
        let last = self.segments().next_back().unwrap_or("");
        let is_tables = |name| percent::decodes_to_word(name, "Tables");
        match (self.method, keyed(self.uri.path())) {
            (&Method::PUT, Some(table)) if !is_tables(table) => {
                harmless("putting a whole entity twice gives the same result")
            }
            (&Method::DELETE, Some(table)) => {
                if is_tables(table) {
                    harmless("deleting a table twice is harmless")
                } else {
                    harmless("deleting an entity twice is harmless")
                }
            }
            (&Method::POST, None) if is_tables(last) => {
                harmless("creating a table twice is harmless")
            }
            _ => UNKNOWN,
        }
    }

    /// I2: whether the path is `/QUEUE/messages`.
    fn is_about_messages(&self) -> bool {
        let mut segments = self.segments();
        let Some(last) = segments.next_back() else {
            return false;
        };
        // A queue itself may be called `messages`. When it is not known that the first segment is
        // an account, `/ACCOUNT/messages` looks like the messages of a queue, and then is taken
        // for them: a read that is taken for a write is refused in an outage, but a write that is
        // taken for a read loses a message.
        percent::decodes_to_word(last, "messages") && segments.next_back().is_some()
    }

    /// I2: whether `peekonly` is there and is `true`. Where it is there twice, both must be.
    fn peeks(&self) -> bool {
        let query = self.uri.query().unwrap_or("");
        let mut values = percent::values(query, "peekonly").peekable();
        values.peek().is_some() && values.all(|value| percent::decodes_to(value, "true"))
    }

    /// The segments of the path below the account.
    fn segments(&self) -> impl DoubleEndedIterator<Item = &'r str> + use<'r> {
        let path = self.path_below_account();
        path.split('/').filter(|segment| !segment.is_empty())
    }

    /// Whether there are any, without looking for where they end.
    fn has_segments(&self) -> bool {
        self.path_below_account().bytes().any(|byte| byte != b'/')
    }

    fn path_below_account(&self) -> &'r str {
        let path = self.uri.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        if self.path_style {
            path.split_once('/').map_or("", |(_, below)| below)
        } else {
            path
        }
    }

    fn parameters(&self) -> Parameters<'r> {
        Parameters::of(self.uri.query().unwrap_or(""))
    }
}

/// The table that a path with a key addresses: `/Orders(PartitionKey='a',RowKey='1')`, but not
/// `/Orders` or `/Orders()`. A key may hold slashes and parentheses of its own.
fn keyed(path: &str) -> Option<&str> {
    let (inside, close) = percent::split_last(path)?;
    if close != b')' {
        return None;
    }
    let open = inside
        .find('(')
        .map(|at| (at, 1))
        .into_iter()
        .chain(inside.find("%28").map(|at| (at, 3)))
        .min()?;
    let (table, key) = (inside.get(..open.0)?, inside.get(open.0 + open.1..)?);
    if key.is_empty() {
        return None;
    }
    table.rsplit('/').next().filter(|name| !name.is_empty())
}

/// The query parameters that tell operations apart. Names are compared whatever their case.
#[derive(Clone, Copy, Default)]
struct Parameters<'q> {
    comp: Value<'q>,
    restype: Value<'q>,
    action: Value<'q>,
    mode: Value<'q>,
    position: Value<'q>,
    resource: Value<'q>,
}

#[derive(Clone, Copy, Default)]
enum Value<'q> {
    #[default]
    Absent,
    /// As it was written, that is: still encoded.
    Given(&'q str),
    /// Given twice, with two values: nobody knows which one the service takes.
    Contradictory,
}

impl<'q> Parameters<'q> {
    fn of(query: &'q str) -> Self {
        let mut parameters = Self::default();
        if query.is_empty() {
            return parameters;
        }
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            // Signatures have many parameters that are of no interest; most are told apart by
            // their length.
            let slot = match name.len() {
                4 if name.eq_ignore_ascii_case("comp") => &mut parameters.comp,
                4 if name.eq_ignore_ascii_case("mode") => &mut parameters.mode,
                6 if name.eq_ignore_ascii_case("action") => &mut parameters.action,
                7 if name.eq_ignore_ascii_case("restype") => &mut parameters.restype,
                8 if name.eq_ignore_ascii_case("position") => &mut parameters.position,
                8 if name.eq_ignore_ascii_case("resource") => &mut parameters.resource,
                _ => match parameters.encoded(name) {
                    Some(slot) => slot,
                    None => continue,
                },
            };
            slot.put(value);
        }
        parameters
    }

    /// The slot of a name that is written with percent signs.
    fn encoded(&mut self, name: &str) -> Option<&mut Value<'q>> {
        if !name.contains('%') {
            return None;
        }
        let is = |word| percent::decodes_to_word(name, word);
        if is("comp") {
            Some(&mut self.comp)
        } else if is("restype") {
            Some(&mut self.restype)
        } else if is("action") {
            Some(&mut self.action)
        } else if is("mode") {
            Some(&mut self.mode)
        } else if is("position") {
            Some(&mut self.position)
        } else if is("resource") {
            Some(&mut self.resource)
        } else {
            None
        }
    }

    /// Whether there is none that belongs to an operation on files and directories.
    const fn are_blob_only(self) -> bool {
        self.action.is_absent() && self.mode.is_absent() && self.resource.is_absent()
    }
}

impl<'q> Value<'q> {
    fn put(&mut self, value: &'q str) {
        *self = match *self {
            Self::Absent => Self::Given(value),
            Self::Given(before) if before == value => Self::Given(value),
            Self::Given(_) | Self::Contradictory => Self::Contradictory,
        };
    }

    const fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }

    fn is(self, word: &str) -> bool {
        matches!(self, Self::Given(value) if percent::decodes_to_word(value, word))
    }

    const fn has_content(self) -> bool {
        matches!(self, Self::Given(value) if !value.is_empty())
    }
}

#[cfg(test)]
mod tests;
