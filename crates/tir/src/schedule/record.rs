//! What became of the pieces of a kernel, and what was asked for them.
//!
//! A [`Note`] says of a piece which rule took it, with which parameters, and why others refused. A [`Record`] keeps the notes
//! of a kernel while it is scheduled, and hands out the [`Override`]s of its pieces. At its end every override must have met
//! its piece: none is lost in silence.

use serde_json::{Value, json};

use super::overrides::{Override, did_you_mean};
use super::parameters::{Choices, Domain, Parameter, WrongValue};
use super::{Refusal, ScheduleError};

/// What happened to one piece of work: the rule that took it, what it decided, and why those before refused.
#[derive(Clone, Debug)]
pub struct Note {
    /// Name of the stage.
    pub stage: String,
    /// The name that tells it apart from other stages of the kernel.
    pub key: String,
    /// The rule that took it.
    pub rule: &'static str,
    /// Rules that were asked before, with their reasons.
    pub refused: Vec<(&'static str, Refusal)>,
    /// What the rule decided.
    pub parameters: Vec<Parameter>,
    /// Whether it is about the second nest of pieces that have one for short rows.
    pub is_of_short_rows: bool,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.stage, self.rule)?;
        for (rule, reason) in &self.refused {
            write!(f, "\n  not {rule}: {reason}")?;
        }
        Ok(())
    }
}

impl Note {
    /// All of it as text, with the parameters.
    pub fn explained(&self) -> String {
        let parameters = self.parameters.iter().map(|parameter| format!("\n  {parameter}"));
        let refused = self.refused.iter().map(|(rule, reason)| format!("\n  not {rule}: {reason}"));
        [format!("{}: {}", self.key, self.rule)].into_iter().chain(parameters).chain(refused).collect()
    }

    /// All of it but the refusals, as [`Overrides`](super::Overrides) are read.
    pub fn to_json(&self) -> Value {
        let domain = |domain: &Domain| match domain {
            Domain::List(values) => json!(values),
            Domain::Range { first, last, step } => json!({ "first": first, "last": last, "step": step }),
        };
        let parameter = |p: &Parameter| {
            json!({
                "name": p.name, "value": p.value, "guess": p.guess, "domain": domain(&p.domain), "reason": p.reason,
                "limit": p.limit,
            })
        };
        let parameters: Vec<Value> = self.parameters.iter().map(parameter).collect();
        json!({ "stage": self.key, "rule": self.rule, "parameters": parameters })
    }
}

/// An override that does not fit the kernel that it is for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PieceError {
    /// The kernel has no such stage.
    #[error("it has no stage {stage:?}; {}", did_you_mean(stage, known.iter().map(String::as_str)))]
    NoStage {
        /// The stage.
        stage: String,
        /// The stages that there are.
        known: Vec<String>,
    },
    /// No rule of that name serves such a stage.
    #[error("stage {stage:?} is served by no rule {rule:?}; {}", did_you_mean(rule, known.iter().copied()))]
    NoRule {
        /// The stage.
        stage: String,
        /// The rule.
        rule: String,
        /// The rules for such stages.
        known: Vec<&'static str>,
    },
    /// The rule does not take the stage.
    #[error("rule {rule} does not take stage {stage:?}: {reason}")]
    Refused {
        /// The stage.
        stage: String,
        /// The rule.
        rule: String,
        /// Why.
        reason: Refusal,
    },
    /// The rule has no such parameter there.
    #[error(
        "rule {rule} has no parameter {parameter:?} for stage {stage:?}; {}",
        did_you_mean(parameter, known.iter().map(String::as_str))
    )]
    NoParameter {
        /// The stage.
        stage: String,
        /// The rule.
        rule: String,
        /// The parameter.
        parameter: String,
        /// The parameters that there are.
        known: Vec<String>,
    },
    /// The value is outside of its domain.
    #[error("stage {stage:?}, rule {rule}: {wrong}")]
    Value {
        /// The stage.
        stage: String,
        /// The rule.
        rule: String,
        /// Which, and why.
        wrong: WrongValue,
    },
}

/// The notes of a kernel and the overrides for it.
#[derive(Debug)]
pub struct Record<'a> {
    notes: Vec<Note>,
    asked: &'a [Override],
    /// Names of pieces that are noted later.
    reserved: Vec<String>,
    is_of_short_rows: bool,
}

impl<'a> Record<'a> {
    /// Of a kernel for which so much is asked.
    pub fn of(asked: &'a [Override]) -> Record<'a> {
        Record { notes: Vec::new(), asked, reserved: Vec::new(), is_of_short_rows: false }
    }

    /// The name of the next piece of a stage.
    pub fn key(&self, stage: &str) -> String {
        let way = if self.is_of_short_rows { " (short rows)" } else { "" };
        let is_taken = |key: &String| self.reserved.contains(key) || self.notes.iter().any(|note| note.key == *key);
        let mut key = format!("{stage}{way}");
        let mut number = 1;
        while is_taken(&key) {
            number += 1;
            key = format!("{stage}#{number}{way}");
        }
        key
    }

    /// The name of a piece of a stage that is decided about now, and noted later.
    pub fn reserve(&mut self, stage: &str) -> String {
        let key = self.key(stage);
        self.reserved.push(key.clone());
        key
    }

    /// What is asked for a piece.
    pub fn asked(&self, key: &str) -> Option<&'a Override> {
        self.asked.iter().find(|asked| asked.stage == key)
    }

    /// Notes which rule took the next piece of a stage.
    pub fn note(
        &mut self,
        stage: String,
        rule: &'static str,
        refused: Vec<(&'static str, Refusal)>,
        parameters: Vec<Parameter>,
    ) {
        let (key, is_of_short_rows) = (self.key(&stage), self.is_of_short_rows);
        self.notes.push(Note { stage, key, rule, refused, parameters, is_of_short_rows });
    }

    /// Notes a piece that was decided about before, under the name that it has since then.
    pub fn note_reserved(&mut self, key: String, stage: String, rule: &'static str, parameters: Vec<Parameter>) {
        let (refused, is_of_short_rows) = (Vec::new(), self.is_of_short_rows);
        self.notes.push(Note { stage, key, rule, refused, parameters, is_of_short_rows });
    }

    /// Notes a piece that only one rule can take, which decides nothing.
    pub fn settle(&mut self, stage: String, rule: &'static str) -> Result<(), ScheduleError> {
        self.settle_with(stage, rule, Choices::of(None))
    }

    /// Notes a piece that stays as it is, and why no rule takes it.
    pub fn leave(
        &mut self,
        stage: String,
        what: &'static str,
        why: (&'static str, Refusal),
    ) -> Result<(), ScheduleError> {
        self.settle(stage, what)?;
        if let Some(note) = self.notes.last_mut() {
            note.refused.push(why);
        }
        Ok(())
    }

    /// Notes a piece that only one rule can take, and its parameters.
    pub fn settle_with(
        &mut self,
        stage: String,
        rule: &'static str,
        choices: Choices<'_>,
    ) -> Result<(), ScheduleError> {
        self.check_only(&self.key(&stage), rule, &choices)?;
        self.note(stage, rule, Vec::new(), choices.into_parameters());
        Ok(())
    }

    /// Fails if what is asked for a piece does not fit the only rule that can take it.
    pub fn check_only(&self, key: &str, rule: &'static str, choices: &Choices<'_>) -> Result<(), PieceError> {
        let Some(asked) = self.asked(key) else { return Ok(()) };
        if asked.rule != rule {
            return Err(PieceError::NoRule { stage: key.into(), rule: asked.rule.clone(), known: vec![rule] });
        }
        self.check(asked, choices)
    }

    /// Fails if an override does not fit what its rule asked for.
    pub fn check(&self, asked: &Override, choices: &Choices<'_>) -> Result<(), PieceError> {
        let (stage, rule) = (asked.stage.clone(), asked.rule.clone());
        if let Some(wrong) = choices.wrong() {
            return Err(PieceError::Value { stage, rule, wrong: wrong.clone() });
        }
        let known = choices.names();
        match asked.values.iter().map(|(name, _)| name).find(|name| !known.contains(name)) {
            Some(unknown) => Err(PieceError::NoParameter { stage, rule, parameter: unknown.clone(), known }),
            None => Ok(()),
        }
    }

    /// Takes notes of the nest for short rows.
    pub fn of_short_rows<T>(&mut self, nest: impl FnOnce(&mut Self) -> T) -> T {
        let outside = std::mem::replace(&mut self.is_of_short_rows, true);
        let made = nest(self);
        self.is_of_short_rows = outside;
        made
    }

    /// The notes; an error if something was asked for a stage that is not there.
    pub fn finish(self) -> Result<Vec<Note>, ScheduleError> {
        let is_lost = |asked: &&Override| !self.notes.iter().any(|note| note.key == asked.stage);
        if let Some(lost) = self.asked.iter().find(is_lost) {
            let known = self.notes.iter().map(|note| note.key.clone()).collect();
            return Err(PieceError::NoStage { stage: lost.stage.clone(), known }.into());
        }
        Ok(self.notes)
    }
}
