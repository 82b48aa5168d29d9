//! What arrived, in order.

use std::sync::Mutex;

use http::{HeaderMap, Method};

/// What is noted of requests.
#[derive(Default)]
pub(super) struct Log {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    all: Vec<Entry>,
    taken: usize,
}

struct Entry {
    host: String,
    method: Method,
    is_account_read: bool,
    /// C12
    is_tentative: bool,
    has_token: bool,
    /// Status and sub-status, once it has been answered.
    answer: Option<(u16, Option<String>)>,
}

/// The number of an entry.
#[derive(Clone, Copy)]
pub(super) struct Arrival(usize);

/// What arrived, as `METHOD REGION STATUS/SUB-STATUS`; `-` where nothing was answered (yet).
#[derive(Clone, Debug, Default)]
pub(crate) struct Sends {
    /// Requests for data.
    pub(crate) data: Vec<String>,
    /// Reads of the account.
    pub(crate) account: Vec<String>,
    /// The regions where writes carried `x-ms-cosmos-allow-tentative-writes: True`.
    pub(crate) tentative: Vec<String>,
    /// How many requests for data carried a session token.
    pub(crate) with_token: usize,
}

impl Log {
    pub(super) fn arrived(
        &self,
        host: &str,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Arrival {
        let entry = Entry {
            host: host.to_owned(),
            method: method.clone(),
            is_account_read: path == "/",
            is_tentative: headers
                .get("x-ms-cosmos-allow-tentative-writes")
                .is_some_and(|value| value == "True"),
            has_token: headers.contains_key("x-ms-session-token"),
            answer: None,
        };
        let all = &mut self.entries.lock().unwrap().all;
        all.push(entry);
        Arrival(all.len() - 1)
    }

    pub(super) fn answered(&self, arrival: Arrival, status: u16, headers: &HeaderMap) {
        let sub_status = headers
            .get("x-ms-substatus")
            .map(|value| value.to_str().unwrap().to_owned())
            .filter(|sub_status| sub_status != "0");
        self.entries.lock().unwrap().all[arrival.0].answer = Some((status, sub_status));
    }

    pub(super) fn take(&self) -> Sends {
        let mut entries = self.entries.lock().unwrap();
        let sends = Sends::of(&entries.all[entries.taken..]);
        entries.taken = entries.all.len();
        sends
    }

    pub(super) fn since_taken(&self) -> Sends {
        let entries = self.entries.lock().unwrap();
        Sends::of(&entries.all[entries.taken..])
    }
}

impl Sends {
    fn of(entries: &[Entry]) -> Self {
        let mut sends = Self::default();
        for entry in entries {
            let answer = match &entry.answer {
                Some((status, Some(sub_status))) => format!("{status}/{sub_status}"),
                Some((status, None)) => status.to_string(),
                None => "-".to_owned(),
            };
            let text = format!("{} {} {answer}", entry.method, entry.host);
            if entry.is_account_read {
                sends.account.push(text);
                continue;
            }
            sends.data.push(text);
            if entry.is_tentative {
                sends.tentative.push(entry.host.clone());
            }
            sends.with_token += usize::from(entry.has_token);
        }
        sends
    }
}
