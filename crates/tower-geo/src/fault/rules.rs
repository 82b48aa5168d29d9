//! Which rule a send meets, and which of its answers is next. Whoever answers sends by a script
//! of its own, as a simulation does, can use this without the layer.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use http::uri::Authority;
use http::{HeaderMap, HeaderName, Method, Uri};
use tower_geo_policy::config_error::ConfigError;

use super::{Answer, Pattern};

/// When a rule applies, and what it does then.
///
/// | part | default | |
/// |---|---|---|
/// | host | (needed) | the authority of the request in lower case, with the port where it is not the scheme's own |
/// | [`method`](Self::method) | all | |
/// | [`path`](Self::path) | all | path and query |
/// | [`header`](Self::header) | none | request headers that must be there and fit |
/// | [`from`](Self::from), [`until`](Self::until) | always | counted from the start; the start is included, the end is not |
/// | [`rate`](Self::rate) | 1 | the share of the matching sends that it applies to |
/// | [`answer`](Self::answer) | (at least one) | taken in order, one for each send that it applies to |
///
/// A rule answers by an [`Answer`]; whoever has a script of its own may use any other type.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rule<A = Answer> {
    host: Pattern,
    method: Option<Method>,
    path: Option<Pattern>,
    headers: Vec<(HeaderName, Pattern)>,
    from: Duration,
    until: Option<Duration>,
    rate: f64,
    answers: Vec<(A, Option<u64>)>,
}

impl<A> Rule<A> {
    /// A rule for the hosts that fit, in any case of letters; `*` stands for any run of
    /// characters.
    pub fn host(host: impl Into<Pattern>) -> Self {
        let host = host.into();
        Self {
            host: Pattern::new(host.as_str().to_ascii_lowercase()),
            method: None,
            path: None,
            headers: Vec::new(),
            from: Duration::ZERO,
            until: None,
            rate: 1.0,
            answers: Vec::new(),
        }
    }

    /// Only requests of this method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only requests whose path and query fit.
    pub fn path(mut self, path: impl Into<Pattern>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Only requests that have this header with a value that fits. Said several times, all must.
    pub fn header(mut self, name: HeaderName, value: impl Into<Pattern>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Not before this moment.
    pub const fn from(mut self, from: Duration) -> Self {
        self.from = from;
        self
    }

    /// Not at this moment, nor later.
    pub const fn until(mut self, until: Duration) -> Self {
        self.until = Some(until);
        self
    }

    /// Only to this share of the requests that fit: 0 is none, 1 is all.
    pub const fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// What happens to the next request, once; the last answer of a rule goes on for ever.
    pub fn answer(mut self, answer: A) -> Self {
        self.answers.push((answer, None));
        self
    }

    /// What happens to the next `times` requests. After the last answer of a rule the rule is used
    /// up, and those behind it are looked at.
    pub fn answer_times(mut self, times: u64, answer: A) -> Self {
        self.answers.push((answer, Some(times)));
        self
    }

    /// The answers of the rule, in order.
    pub fn answers(&self) -> impl Iterator<Item = &A> {
        self.answers.iter().map(|(answer, _)| answer)
    }

    /// The pattern of the host.
    #[must_use]
    pub fn host_pattern(&self) -> &str {
        self.host.as_str()
    }

    /// What makes no sense, with the setting that is to be changed.
    fn validate(&self) -> Result<(), ConfigError> {
        let host = self.host.as_str();
        // With a star it is no authority that could be parsed.
        let is_host = host.contains('*')
            || host
                .parse::<Authority>()
                .is_ok_and(|authority| !authority.as_str().contains('@'));
        if !is_host {
            return Err(ConfigError::new(
                "host",
                format!("`{host}` is not a host, or a host and a port"),
            ));
        }
        if !(0.0..=1.0).contains(&self.rate) {
            return Err(ConfigError::new(
                "rate",
                format!("must be between 0 and 1 (got {})", self.rate),
            ));
        }
        if self.until.is_some_and(|until| until <= self.from) {
            return Err(ConfigError::new("until", "must be later than `from`"));
        }
        if self.answers.is_empty() {
            return Err(ConfigError::new("answers", "a rule needs at least one"));
        }
        if self.answers.iter().any(|(_, times)| *times == Some(0)) {
            return Err(ConfigError::new("times", "must be at least 1 (got 0)"));
        }
        Ok(())
    }

    fn matches(&self, sent: &Sent<'_>) -> bool {
        sent.at >= self.from
            && self.until.is_none_or(|until| sent.at < until)
            && self.host.matches(sent.host.as_bytes())
            && self
                .method
                .as_ref()
                .is_none_or(|method| method == sent.method)
            && self
                .path
                .as_ref()
                .is_none_or(|path| path.matches(sent.path.as_bytes()))
            && self.headers.iter().all(|(name, pattern)| {
                let mut values = sent.headers.get_all(name).iter();
                values.any(|value| pattern.matches(value.as_bytes()))
            })
    }
}

impl<A> fmt::Display for Rule<A> {
    /// What it asks for, without a query: there may be a signature in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = &self.method {
            write!(f, "{method} ")?;
        }
        write!(f, "{}", self.host)?;
        if let Some(path) = &self.path {
            match path.as_str().split_once('?') {
                Some((path, _)) => write!(f, "{path}?…")?,
                None => write!(f, "{path}")?,
            }
        }
        Ok(())
    }
}

/// A request that is about to be sent, as far as rules look at it.
#[derive(Clone, Debug)]
pub struct Sent<'a> {
    at: Duration,
    host: Cow<'a, str>,
    method: &'a Method,
    path: &'a str,
    headers: &'a HeaderMap,
}

impl<'a> Sent<'a> {
    /// A request, sent `at` after the start.
    #[must_use]
    pub fn new(at: Duration, method: &'a Method, uri: &'a Uri, headers: &'a HeaderMap) -> Self {
        Self {
            at,
            host: host_of(uri),
            method,
            path: uri.path_and_query().map_or("/", |path| path.as_str()),
            headers,
        }
    }

    /// The authority as rules see it: lower case, with the port where it is not the scheme's own.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Path and query.
    #[must_use]
    pub const fn path(&self) -> &str {
        self.path
    }
}

fn host_of(uri: &Uri) -> Cow<'_, str> {
    let authority = uri.authority().map_or("", Authority::as_str);
    let standard = match uri.scheme_str() {
        Some("https") => ":443",
        Some("http") => ":80",
        _ => "",
    };
    let host = authority.strip_suffix(standard).unwrap_or(authority);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        host.to_ascii_lowercase().into()
    } else {
        host.into()
    }
}

/// Rules in order, with what has been used of them. The first one that fits a send and has an
/// answer left wins.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, Method};
/// use tower_geo::fault::{Rule, Rules, Sent};
///
/// let rule = Rule::host("a.test").answer("first").answer_times(2, "then");
/// let mut rules = Rules::new(vec![rule])?;
/// let (uri, headers) = ("https://a.test/x".parse().unwrap(), HeaderMap::new());
/// let sent = Sent::new(Duration::ZERO, &Method::GET, &uri, &headers);
/// let answers: Vec<_> = (0..4).map(|_| rules.answer(&sent, |_| 0.5).copied()).collect();
/// assert_eq!(answers, [Some("first"), Some("then"), Some("then"), None]);
/// # Ok::<(), tower_geo::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rules<A = Answer> {
    list: Vec<Progress<A>>,
}

impl<A> Default for Rules<A> {
    /// No rules.
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

/// A rule, and how far its answers have been taken.
#[derive(Clone, Debug)]
struct Progress<A> {
    rule: Rule<A>,
    /// The answer that is next, and how often it was given.
    next: usize,
    given: u64,
    use_of: RuleUse,
}

/// How often a rule has been used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleUse {
    /// How many sends it fitted while it had answers left.
    pub matched: u64,
    /// To how many of them it applied; the rest were spared by its rate.
    pub applied: u64,
}

impl<A> Rules<A> {
    /// Rules, in the order in which they are looked at.
    ///
    /// # Errors
    ///
    /// A rule that makes no sense, named by its number (from 1): no answer, `times` of 0, a rate
    /// outside 0 to 1, an end that is not after the beginning, a host that is none.
    pub fn new(rules: Vec<Rule<A>>) -> Result<Self, ConfigError> {
        for (index, rule) in rules.iter().enumerate() {
            rule.validate()
                .map_err(|error| in_rule(index, rule, &error))?;
        }
        Ok(Self {
            list: rules
                .into_iter()
                .map(|rule| Progress {
                    rule,
                    next: 0,
                    given: 0,
                    use_of: RuleUse::default(),
                })
                .collect(),
        })
    }

    /// What happens to a send; `None` where no rule applies.
    ///
    /// `draw` gives a number from `0.0..1.0` for the rule of that index (from 0). It is asked only
    /// for rules with a rate below 1; with a stream for each rule, one rule's draws do not shift
    /// another's.
    pub fn answer(&mut self, sent: &Sent<'_>, mut draw: impl FnMut(usize) -> f64) -> Option<&A> {
        self.list
            .iter_mut()
            .enumerate()
            .find_map(|(index, rule)| rule.answer(sent, || draw(index)))
    }

    /// The rules in order, each with how often it was used.
    pub fn uses(&self) -> impl Iterator<Item = (&Rule<A>, RuleUse)> {
        self.list
            .iter()
            .map(|progress| (&progress.rule, progress.use_of))
    }

    /// Begins anew: nothing used, nothing matched.
    pub fn restart(&mut self) {
        for progress in &mut self.list {
            progress.next = 0;
            progress.given = 0;
            progress.use_of = RuleUse::default();
        }
    }
}

/// An error about one of several rules.
pub(super) fn in_rule<A>(index: usize, rule: &Rule<A>, error: &ConfigError) -> ConfigError {
    let setting = match error.setting() {
        "host" => "host",
        "rate" => "rate",
        "until" => "until",
        "answers" => "answers",
        "times" => "times",
        "status" => "status",
        "body" => "body",
        "cut_after" => "cut_after",
        "stall_after" => "stall_after",
        _ => "rule",
    };
    let whole = error.to_string();
    let message = whole
        .split_once(": ")
        .map_or(&*whole, |(_, message)| message);
    ConfigError::new(setting, format!("rule {} ({rule}): {message}", index + 1))
}

impl<A> Progress<A> {
    fn answer(&mut self, sent: &Sent<'_>, draw: impl FnOnce() -> f64) -> Option<&A> {
        // A rule that is used up has matched before, so nothing is lost by not looking.
        let index = self.next;
        let times = self.rule.answers.get(index)?.1;
        if !self.rule.matches(sent) {
            return None;
        }
        self.use_of.matched += 1;
        // No draw for a rule that always applies: nothing random is in it.
        if self.rule.rate < 1.0 && draw() >= self.rule.rate {
            return None;
        }
        self.use_of.applied += 1;
        self.given += 1;
        let is_last = index + 1 == self.rule.answers.len();
        let enough = match times {
            Some(times) => self.given >= times,
            None => !is_last,
        };
        if enough {
            self.next += 1;
            self.given = 0;
        }
        self.rule.answers.get(index).map(|(answer, _)| answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(rules: &mut Rules<u16>, at: u64, method: &Method, uri: &str) -> Option<u16> {
        let (uri, headers) = (uri.parse().unwrap(), HeaderMap::new());
        let sent = Sent::new(Duration::from_secs(at), method, &uri, &headers);
        rules.answer(&sent, |_| 0.5).copied()
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn the_first_rule_that_fits_wins() {
        let mut rules = Rules::new(vec![
            Rule::host("a.test").method(Method::PUT).answer(503),
            Rule::host("A.test")
                .path("/x*y=1")
                .from(secs(1))
                .until(secs(2))
                .answer(500),
            Rule::host("*.test").answer(404),
            Rule::host("nobody.test").answer(400),
        ])
        .unwrap();
        let put = ask(&mut rules, 0, &Method::PUT, "https://a.test/");
        assert_eq!(put, Some(503));
        for (at, uri, wanted) in [
            (1, "https://A.test:443/x?y=1", Some(500)),
            (0, "https://a.test/x?y=1", Some(404)),
            (2, "https://a.test/x?y=1", Some(404)),
            (1, "http://a.test:443/x?y=1", None),
            (1, "https://a.other/", None),
        ] {
            assert_eq!(ask(&mut rules, at, &Method::GET, uri), wanted, "{uri}");
        }
        let unused: Vec<_> = rules
            .uses()
            .filter(|(_, used)| used.matched == 0)
            .map(|(rule, _)| rule.to_string())
            .collect();
        assert_eq!(unused, ["nobody.test"]);
    }

    #[test]
    fn headers_must_be_there_and_fit() {
        let rule = Rule::host("a.test").header(HeaderName::from_static("x-ms-version"), "2024-*");
        let mut rules = Rules::new(vec![rule.answer(1)]).unwrap();
        let uri = "https://a.test".parse().unwrap();
        for (version, fits) in [
            (None, false),
            (Some("2023-01-03"), false),
            (Some("2024-11-04"), true),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(version) = version {
                headers.insert("x-ms-version", http::HeaderValue::from_static(version));
            }
            let sent = Sent::new(secs(0), &Method::GET, &uri, &headers);
            assert_eq!(rules.answer(&sent, |_| 0.0).is_some(), fits, "{version:?}");
        }
    }

    #[test]
    fn the_last_answer_repeats_unless_it_has_times() {
        let mut forever = Rules::new(vec![
            Rule::host("a.test")
                .answer_times(2, 500)
                .answer(502)
                .answer(503),
        ])
        .unwrap();
        let mut given = || ask(&mut forever, 0, &Method::GET, "https://a.test").unwrap();
        let given: Vec<_> = (0..6).map(|_| given()).collect();
        assert_eq!(given, [500, 500, 502, 503, 503, 503]);
    }

    #[test]
    fn a_rule_that_is_used_up_lets_those_behind_it_answer() {
        let mut rules = Rules::new(vec![
            Rule::host("a.test").answer(500).answer_times(1, 502),
            Rule::host("a.test").answer(404),
        ])
        .unwrap();
        for _ in 0..2 {
            let mut ask = || ask(&mut rules, 0, &Method::GET, "https://a.test").unwrap();
            assert_eq!([ask(), ask(), ask(), ask()], [500, 502, 404, 404]);
            rules.restart();
        }
    }

    #[test]
    fn a_rate_of_half_spares_those_that_draw_half_or_more() {
        let rule = Rule::host("a.test").rate(0.5).answer(503);
        let mut rules = Rules::new(vec![rule]).unwrap();
        let (uri, headers) = ("https://a.test".parse().unwrap(), HeaderMap::new());
        let sent = Sent::new(secs(0), &Method::GET, &uri, &headers);
        assert!(rules.answer(&sent, |_| 0.5).is_none());
        assert!(rules.answer(&sent, |_| 0.499).is_some());
        let (_, used) = rules.uses().next().unwrap();
        assert_eq!((used.matched, used.applied), (2, 1));
    }

    #[test]
    fn rules_that_make_no_sense_are_refused_with_their_number() {
        let whole = || Rule::host("a.test").answer(1);
        for (rule, setting) in [
            (Rule::host("a.test"), "answers"),
            (whole().rate(1.1), "rate"),
            (whole().rate(-0.1), "rate"),
            (whole().rate(f64::NAN), "rate"),
            (whole().from(secs(2)).until(secs(2)), "until"),
            (whole().answer_times(0, 2), "times"),
            (Rule::host("https://a.test/x").answer(1), "host"),
            (Rule::host("me@a.test").answer(1), "host"),
            (Rule::host("").answer(1), "host"),
        ] {
            let error = Rules::new(vec![whole(), rule]).unwrap_err();
            assert_eq!(error.setting(), setting);
            assert!(error.to_string().contains("rule 2"), "{error}");
        }
    }

    #[test]
    fn a_rule_is_told_without_its_query() {
        let rule: Rule<u16> = Rule::host("a.test")
            .method(Method::GET)
            .path("/x?sig=secret*");
        assert_eq!(rule.to_string(), "GET a.test/x?…");
    }
}
