//! The account: what it says of itself, and what its regions answer.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

/// The container that documents are written to, and read from.
pub(crate) const DOCUMENTS: &str = "/dbs/shop/colls/orders/docs";
/// Says which region answered: of this example, the service has no such header.
pub(crate) const SERVED_BY: HeaderName = HeaderName::from_static("x-served-by");

/// A region of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Region {
    East,
    West,
    Central,
}

impl Region {
    pub(crate) const ALL: [Self; 3] = [Self::East, Self::West, Self::Central];

    /// As the account writes it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::East => "East US",
            Self::West => "West US",
            Self::Central => "Central US",
        }
    }

    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|region| region.name() == name)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which host a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Global,
    Regional(Region),
}

/// How a region answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reads and writes.
    Writer,
    /// Reads; a write is refused with 403 and sub-status 3.
    Reader,
    /// Nothing: everything is refused with 403 and sub-status 1008.
    Gone,
}

/// What arrived at a region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Writes that were refused with 403/3.
    pub(crate) write_forbidden: u64,
    /// Requests that were refused with 403/1008.
    pub(crate) gone: u64,
}

/// The account at this moment. Data is the same in every region, at once.
#[derive(Debug)]
pub(crate) struct Account {
    /// The URL of each region's host.
    urls: [String; 3],
    pub(crate) readable: Vec<Region>,
    pub(crate) writable: Vec<Region>,
    roles: [Role; 3],
    documents: BTreeSet<String>,
    arrived: [Arrived; 3],
    account_reads: u64,
    data_at_global: u64,
    unsigned: u64,
}

impl Account {
    /// East writes, West reads; Central is not there yet.
    pub(crate) fn new(urls: [String; 3]) -> Self {
        Self {
            urls,
            readable: vec![Region::East, Region::West],
            writable: vec![Region::East],
            roles: [Role::Writer, Role::Reader, Role::Gone],
            documents: BTreeSet::new(),
            arrived: [Arrived::default(); 3],
            account_reads: 0,
            data_at_global: 0,
            unsigned: 0,
        }
    }

    pub(crate) fn set_role(&mut self, region: Region, role: Role) {
        self.roles[region as usize] = role;
    }

    pub(crate) const fn arrived(&self, region: Region) -> Arrived {
        self.arrived[region as usize]
    }

    /// How often the account document was handed out.
    pub(crate) const fn account_reads(&self) -> u64 {
        self.account_reads
    }

    /// Refuses a request that carries no signature. Whether it is the right one is not looked at.
    pub(crate) fn refuse_unsigned(&mut self) -> Answer {
        self.unsigned += 1;
        answer(
            StatusCode::UNAUTHORIZED,
            0,
            &json!({"code": "Unauthorized"}),
        )
    }

    /// How many requests had no signature.
    pub(crate) const fn unsigned(&self) -> u64 {
        self.unsigned
    }

    /// How many requests for data came to the global host.
    pub(crate) const fn data_at_global(&self) -> u64 {
        self.data_at_global
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.documents.contains(id)
    }

    /// Puts a document there without a request.
    pub(crate) fn seed(&mut self, id: &str) {
        self.documents.insert(id.to_owned());
    }

    /// Answers a request.
    pub(crate) fn answer(
        &mut self,
        site: Site,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Answer {
        let region = match site {
            Site::Global if path == "/" => return self.document(),
            Site::Global => {
                self.data_at_global += 1;
                return answer(StatusCode::BAD_REQUEST, 0, &json!({"code": "BadRequest"}));
            }
            Site::Regional(region) => region,
        };
        let role = self.roles[region as usize];
        let arrived = &mut self.arrived[region as usize];
        if role == Role::Gone {
            arrived.gone += 1;
            return answer(StatusCode::FORBIDDEN, 1008, &json!({"code": "Forbidden"}));
        }
        if path == "/" {
            return self.document();
        }
        let mut response = if *method == Method::POST && path == DOCUMENTS {
            arrived.writes += 1;
            if role == Role::Writer {
                self.create(body)
            } else {
                arrived.write_forbidden += 1;
                answer(StatusCode::FORBIDDEN, 3, &json!({"code": "Forbidden"}))
            }
        } else {
            arrived.reads += 1;
            self.read(path)
        };
        let name = HeaderValue::from_static(region.name());
        response.headers_mut().insert(SERVED_BY, name);
        response
    }

    fn create(&mut self, body: &[u8]) -> Answer {
        let id = serde_json::from_slice::<Value>(body).ok();
        let id = id.as_ref().and_then(|body| body["id"].as_str());
        match id {
            None => answer(StatusCode::BAD_REQUEST, 0, &json!({"code": "BadRequest"})),
            Some(id) if self.documents.insert(id.to_owned()) => {
                answer(StatusCode::CREATED, 0, &json!({"id": id}))
            }
            Some(_) => answer(StatusCode::CONFLICT, 0, &json!({"code": "Conflict"})),
        }
    }

    fn read(&self, path: &str) -> Answer {
        let id = path.strip_prefix(DOCUMENTS);
        let id = id.and_then(|rest| rest.strip_prefix('/'));
        match id.filter(|id| self.documents.contains(*id)) {
            Some(id) => answer(StatusCode::OK, 0, &json!({"id": id})),
            None => answer(StatusCode::NOT_FOUND, 0, &json!({"code": "NotFound"})),
        }
    }

    /// The account document.
    fn document(&mut self) -> Answer {
        self.account_reads += 1;
        let locations = |regions: &[Region]| -> Vec<Value> {
            let one = |region: &Region| {
                json!({
                    "name": region.name(),
                    "databaseAccountEndpoint": self.urls[*region as usize],
                })
            };
            regions.iter().map(one).collect()
        };
        let document = json!({
            "id": "contoso",
            "writableLocations": locations(&self.writable),
            "readableLocations": locations(&self.readable),
            "enableMultipleWriteLocations": false,
        });
        answer(StatusCode::OK, 0, &document)
    }
}

pub(crate) type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, sub_status: u16, body: &Value) -> Answer {
    let mut response = Response::new(Full::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if sub_status > 0 {
        headers.insert("x-ms-substatus", HeaderValue::from(sub_status));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account::new(Region::ALL.map(|region| format!("http://{}.test", region as usize)))
    }

    #[test]
    fn a_region_answers_as_its_role_has_it() {
        let mut account = account();
        let mut write = |region, id: &str| {
            let body = json!({"id": id}).to_string();
            let site = Site::Regional(region);
            let answer = account.answer(site, &Method::POST, DOCUMENTS, body.as_bytes());
            let sub = answer.headers().get("x-ms-substatus").cloned();
            (
                answer.status().as_u16(),
                sub.map(|sub| sub.to_str().unwrap().to_owned()),
            )
        };
        assert_eq!(write(Region::East, "a"), (201, None));
        assert_eq!(write(Region::East, "a"), (409, None));
        assert_eq!(write(Region::West, "b"), (403, Some("3".to_owned())));
        assert_eq!(write(Region::Central, "b"), (403, Some("1008".to_owned())));
        assert!(account.has("a") && !account.has("b"));
        assert_eq!(account.arrived(Region::West).write_forbidden, 1);
        assert_eq!(account.arrived(Region::Central).gone, 1);
        let path = format!("{DOCUMENTS}/a");
        let read = account.answer(Site::Regional(Region::West), &Method::GET, &path, b"");
        assert_eq!(
            (read.status().as_u16(), read.headers()[SERVED_BY].as_bytes()),
            (200, &b"West US"[..])
        );
    }

    #[test]
    fn the_global_host_has_the_document_and_no_data() {
        let mut account = account();
        let global = account.answer(Site::Global, &Method::GET, "/", b"");
        assert_eq!(global.status(), StatusCode::OK);
        let data = account.answer(Site::Global, &Method::GET, "/dbs", b"");
        assert_eq!(data.status(), StatusCode::BAD_REQUEST);
        assert_eq!((account.account_reads(), account.data_at_global()), (1, 1));
    }
}
