//! Parameters of schedule rules: what a rule decides is a value.
//!
//! ```text
//! rows = 6        of 1 to 14, as more rows than that have no registers
//!                 because six rows of two vectors leave registers for the operands
//! ```
//!
//! A rule asks [`Choices`] for its parameters one after the other, each with its guess, the values that it may have, and the
//! reason for the guess. It gets the guess back, or what replaces it. So later guesses and domains follow from earlier
//! values: with more rows a tile has fewer vectors. A replacement outside of its domain is remembered as wrong, and the rule
//! goes on with the guess; whoever asked the rule finds the [`WrongValue`] afterwards.
//!
//! Numbers only: a choice between two ways is 0 or 1. Which nest a number leads to is the rule's affair.

use super::overrides::Override;

/// The values that a parameter may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Each of these, ascending.
    List(Vec<i64>),
    /// From `first` to `last` in steps.
    Range {
        /// The least.
        first: i64,
        /// The greatest.
        last: i64,
        /// From one to the next.
        step: i64,
    },
}

impl Domain {
    /// The numbers of a list.
    pub fn list(values: impl IntoIterator<Item = i64>) -> Domain {
        let mut values: Vec<i64> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        Domain::List(values)
    }

    /// No or yes.
    pub fn flag() -> Domain {
        Domain::list([0, 1])
    }

    /// All numbers from one to another, both included.
    pub fn range(first: i64, last: i64) -> Domain {
        Domain::steps(first, last, 1)
    }

    /// Numbers from one to another in steps.
    pub fn steps(first: i64, last: i64, step: i64) -> Domain {
        Domain::Range { first, last: last.max(first), step: step.max(1) }
    }

    /// The powers of two from one number to another; at least the first of them.
    pub fn powers_of_two(first: i64, last: i64) -> Domain {
        let more = std::iter::successors(Some(first.max(1)), |n| n.checked_mul(2)).skip(1);
        Domain::list([first].into_iter().chain(more.take_while(|n| *n <= last)))
    }

    /// The same domain and one value more: a guess that is not round.
    pub fn with(self, value: i64) -> Domain {
        match self {
            _ if self.contains(value) => self,
            Domain::List(values) => Domain::list(values.into_iter().chain([value])),
            Domain::Range { .. } => Domain::list(self.values().chain([value])),
        }
    }

    /// Whether a value is in it.
    pub fn contains(&self, value: i64) -> bool {
        match self {
            Domain::List(values) => values.contains(&value),
            Domain::Range { first, last, step } => (*first..=*last).contains(&value) && (value - first) % step == 0,
        }
    }

    /// Its values, ascending.
    pub fn values(&self) -> Box<dyn Iterator<Item = i64> + '_> {
        match self {
            Domain::List(values) => Box::new(values.iter().copied()),
            Domain::Range { first, last, step } => {
                Box::new(std::iter::successors(Some(*first), move |n| n.checked_add(*step)).take_while(|n| n <= last))
            }
        }
    }

    /// Its greatest value.
    pub fn last(&self) -> i64 {
        match self {
            Domain::List(values) => values.last().copied().unwrap_or(0),
            Domain::Range { last, .. } => *last,
        }
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Domain::List(values) if values.len() > 4 && values.windows(2).all(|pair| pair[1] == 2 * pair[0]) => {
                write!(f, "{} to {} by doubling", values[0], values[values.len() - 1])
            }
            Domain::List(values) => {
                let texts: Vec<String> = values.iter().map(i64::to_string).collect();
                match texts.split_last() {
                    Some((last, [])) => write!(f, "{last}"),
                    Some((last, more)) => write!(f, "{} or {last}", more.join(", ")),
                    None => write!(f, "nothing"),
                }
            }
            Domain::Range { first, last, step: 1 } => write!(f, "{first} to {last}"),
            Domain::Range { first, last, step } => write!(f, "{first} to {last} in steps of {step}"),
        }
    }
}

/// A decision of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name, within the rule.
    pub name: String,
    /// The value.
    pub value: i64,
    /// What the value was guessed to be.
    pub guess: i64,
    /// What it may be.
    pub domain: Domain,
    /// Why the guess is what it is.
    pub reason: &'static str,
    /// Why the domain ends where it does.
    pub limit: &'static str,
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Parameter { name, value, guess, domain, reason, .. } = self;
        match value == guess {
            true => write!(f, "{name} = {value} (of {domain}): {reason}"),
            false => write!(f, "{name} = {value} (of {domain}): as asked; the guess is {guess}: {reason}"),
        }
    }
}

/// What a rule asks a parameter by.
#[derive(Clone, Debug)]
pub struct Guess {
    /// The name, within the rule.
    pub name: &'static str,
    /// The value, where nothing replaces it.
    pub value: i64,
    /// What it may be.
    pub domain: Domain,
    /// Why the value is what it is.
    pub reason: &'static str,
    /// Why the domain ends where it does.
    pub limit: &'static str,
}

/// A replacement outside of its domain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} = {asked} is refused: the value is one of {}, because {}; the guess is {}, because {}",
    parameter.name, parameter.domain, parameter.limit, parameter.guess, parameter.reason
)]
pub struct WrongValue {
    /// What was asked for.
    pub asked: i64,
    /// The parameter.
    pub parameter: Box<Parameter>,
}

/// The parameters of a rule, in the order in which it asks for them.
#[derive(Debug, Default)]
pub struct Choices<'a> {
    asked: Option<&'a Override>,
    within: &'static str,
    made: Vec<Parameter>,
    wrong: Option<WrongValue>,
}

impl<'a> Choices<'a> {
    /// Guesses, where nothing is asked for.
    pub fn of(asked: Option<&'a Override>) -> Choices<'a> {
        Choices { asked, ..Choices::default() }
    }

    /// The value of a parameter: the guess, or what replaces it.
    pub fn choose(&mut self, guess: Guess) -> i64 {
        let Guess { name, value: guess, domain, reason, limit } = guess;
        // A guess is never wrong, however odd the machine.
        let domain = domain.with(guess);
        let name = if self.within.is_empty() { name.to_string() } else { format!("{}.{name}", self.within) };
        let mut parameter = Parameter { name, value: guess, guess, domain, reason, limit };
        if let Some(asked) = self.asked.and_then(|asked| asked.value(&parameter.name)) {
            if parameter.domain.contains(asked) {
                parameter.value = asked;
            } else if self.wrong.is_none() {
                self.wrong = Some(WrongValue { asked, parameter: Box::new(parameter.clone()) });
            }
        }
        let value = parameter.value;
        self.made.push(parameter);
        value
    }

    /// Puts `part.` before the names of the parameters that `decide` asks for.
    pub fn within<T>(&mut self, part: &'static str, decide: impl FnOnce(&mut Choices<'a>) -> T) -> T {
        let outside = std::mem::replace(&mut self.within, part);
        let decided = decide(self);
        self.within = outside;
        decided
    }

    /// The parameters so far.
    pub fn into_parameters(self) -> Vec<Parameter> {
        self.made
    }

    /// The first replacement that was refused.
    pub fn wrong(&self) -> Option<&WrongValue> {
        self.wrong.as_ref()
    }

    /// The names of the parameters.
    pub fn names(&self) -> Vec<String> {
        self.made.iter().map(|parameter| parameter.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(value: i64) -> Guess {
        Guess {
            name: "rows",
            value,
            domain: Domain::range(1, 14),
            reason: "registers",
            limit: "there are 16 registers",
        }
    }

    fn asked(value: i64) -> Override {
        Override { stage: "s".into(), rule: "r".into(), values: vec![("rows".into(), value)] }
    }

    #[test]
    fn domains_know_their_values() {
        assert_eq!(Domain::powers_of_two(2, 20).values().collect::<Vec<_>>(), [2, 4, 8, 16]);
        assert_eq!(Domain::steps(8, 33, 8).values().collect::<Vec<_>>(), [8, 16, 24, 32]);
        assert!(Domain::steps(8, 32, 8).contains(24) && !Domain::steps(8, 32, 8).contains(25));
        assert_eq!(Domain::list([4, 1]).to_string(), "1 or 4");
        assert_eq!(Domain::powers_of_two(2, 100).to_string(), "2 to 64 by doubling");
        assert_eq!(Domain::range(1, 14).with(20).last(), 20);
    }

    #[test]
    fn a_replacement_takes_the_place_of_a_guess() {
        let asked = asked(4);
        let mut choices = Choices::of(Some(&asked));
        assert_eq!(choices.choose(rows(6)), 4);
        assert_eq!(choices.wrong(), None);
        let made = choices.into_parameters();
        assert_eq!((made[0].value, made[0].guess), (4, 6));
    }

    #[test]
    fn a_replacement_outside_of_the_domain_is_refused_with_the_reason() {
        let asked = asked(40);
        let mut choices = Choices::of(Some(&asked));
        assert_eq!(choices.choose(rows(6)), 6);
        let said = choices.wrong().unwrap().to_string();
        assert_eq!(
            said,
            "rows = 40 is refused: the value is one of 1 to 14, because there are 16 registers; the guess is 6, because registers"
        );
    }

    #[test]
    fn a_part_of_a_rule_has_names_of_its_own() {
        let asked = asked(4);
        let mut choices = Choices::of(Some(&asked));
        assert_eq!(choices.within("rest", |choices| choices.choose(rows(6))), 6);
        assert_eq!(choices.choose(rows(6)), 4);
        assert_eq!(choices.names(), ["rest.rows", "rows"]);
    }
}
