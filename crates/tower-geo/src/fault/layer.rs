use tower_geo_policy::config_error::ConfigError;
use tower_layer::Layer;

use super::rules::in_rule;
use super::{Answer, FaultService, FaultSwitch, Rule, Rules};

/// Makes faults between a stack and its client. See the [module](super).
///
/// Clones, and all services made by one layer, share rules and switch: an answer that is given
/// `times` times is given so often in all.
#[derive(Clone, Debug)]
pub struct FaultLayer {
    switch: FaultSwitch,
}

impl FaultLayer {
    /// Begins with no rules.
    pub const fn builder() -> FaultLayerBuilder {
        FaultLayerBuilder {
            seed: 0,
            rules: Vec::new(),
        }
    }

    /// Turns the faults on and off, and tells which rules were used.
    #[must_use]
    pub fn switch(&self) -> FaultSwitch {
        self.switch.clone()
    }
}

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FaultService::new(inner, self.switch())
    }
}

/// Collects rules for a [`FaultLayer`].
///
/// | option | default |
/// |---|---|
/// | [`seed`](Self::seed) | 0 |
/// | [`rule`](Self::rule) | none: nothing happens |
#[derive(Clone, Debug)]
#[must_use]
pub struct FaultLayerBuilder {
    seed: u64,
    rules: Vec<Rule>,
}

impl FaultLayerBuilder {
    /// Drives the choices of rules with a rate. Each rule has a stream of its own, so that a rule
    /// added behind the others does not change what they do. The same sends in the same order meet
    /// the same faults; with another version of this crate they may be others.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds a rule behind the others: the first one that fits wins.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The layer, switched off.
    ///
    /// # Errors
    ///
    /// A rule that makes no sense, named by its number (from 1): see [`Rules::new`]; also a body
    /// that breaks off behind its end, a status below 200, and an answer that is changed where
    /// there is none.
    pub fn build(self) -> Result<FaultLayer, ConfigError> {
        for (index, rule) in self.rules.iter().enumerate() {
            rule.answers()
                .try_for_each(Answer::validate)
                .map_err(|error| in_rule(index, rule, &error))?;
        }
        Ok(FaultLayer {
            switch: FaultSwitch::new(Rules::new(self.rules)?, self.seed),
        })
    }
}
