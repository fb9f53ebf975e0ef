//! Decisions that replace guesses of schedule rules, and their form in JSON.
//!
//! ```json
//! {"schedule": [{"kernel": "fused_conv2d_add_relu", "pieces": [
//!     {"stage": "conv2d_nchw", "rule": "conv", "parameters": [
//!         {"name": "rows", "value": 6, "guess": 6, "domain": {"first": 1, "last": 14, "step": 1},
//!          "reason": "…", "limit": "…"}]}]}]}
//! ```
//!
//! This is what a compilation says of its decisions ([`Note::to_json`](super::Note::to_json)). To replace some, one changes
//! their values and hands the text back. Whatever else a parameter says (its guess, domain and reasons) is not read; kernels,
//! pieces and parameters may be left out. A piece names the rule that serves it: another than the first that would take it,
//! if that one does.
//!
//! Stages of a kernel with one name are told apart by `#2`, `#3` behind it; the nest for rows that turn out to be short has
//! its own decisions, under the stage's name and `(short rows)`.

use relaxide_ir::diagnostic::closest;
use serde_json::{Map, Value};

/// The decisions for one piece of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The stage.
    pub stage: String,
    /// The rule that is to serve it.
    pub rule: String,
    /// Values of its parameters by their names.
    pub values: Vec<(String, i64)>,
}

impl Override {
    /// The value of a parameter, if it is replaced.
    pub fn value(&self, name: &str) -> Option<i64> {
        self.values.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }
}

/// The decisions for the kernels of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    kernels: Vec<(String, Vec<Override>)>,
}

/// A text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// The file that a context names cannot be read.
    #[error("cannot read the schedule {file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What kind of failure.
        kind: std::io::ErrorKind,
        /// What the system said.
        reason: String,
    },
    /// The text is no JSON.
    #[error("the schedule is no JSON: {reason}")]
    NoJson {
        /// Where, and what is wrong with it.
        reason: String,
    },
    /// Something in it has another form.
    #[error("{place} is expected to be {expected}, and is {found}")]
    Form {
        /// Where.
        place: String,
        /// What was expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A field that nobody knows.
    #[error("{place} has no field {field:?}; {}", did_you_mean(field, known.iter().copied()))]
    Field {
        /// Where.
        place: String,
        /// The field.
        field: String,
        /// The fields that there are.
        known: &'static [&'static str],
    },
    /// Two entries for one thing.
    #[error("{place} names {name:?} twice")]
    Twice {
        /// Where.
        place: String,
        /// What.
        name: String,
    },
    /// A kernel that the program does not have.
    #[error("the program has no kernel {kernel:?}; {}", did_you_mean(kernel, known.iter().map(String::as_str)))]
    NoKernel {
        /// The kernel.
        kernel: String,
        /// The kernels that there are.
        known: Vec<String>,
    },
}

/// What a misspelt name may have meant, or all that there is.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match closest(name, known.clone()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => match known.map(|name| format!("{name:?}")).collect::<Vec<_>>() {
            known if known.is_empty() => "there is none".into(),
            known => format!("there are {}", known.join(", ")),
        },
    }
}

impl Overrides {
    /// Reads the text of a schedule.
    pub fn from_json(text: &str) -> Result<Overrides, OverrideError> {
        let value = serde_json::from_str(text).map_err(|error| OverrideError::NoJson { reason: error.to_string() })?;
        let Value::Object(all) = &value else { return Err(wrong("the schedule", "an object", &value)) };
        // An answer of the command says other things of the compilation, too.
        let list = array("the schedule", all, "schedule")?;
        let mut kernels: Vec<(String, Vec<Override>)> = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            let place = format!("entry {at} of the schedule");
            let entry = fields(&place, entry, &["kernel", "pieces"])?;
            let kernel = text_of(&place, entry, "kernel")?;
            if kernels.iter().any(|(known, _)| *known == kernel) {
                return Err(OverrideError::Twice { place: "the schedule".into(), name: kernel });
            }
            let place = format!("kernel {kernel:?} of the schedule");
            let mut pieces: Vec<Override> = Vec::new();
            for piece in array(&place, entry, "pieces")? {
                let piece = read_piece(&place, piece)?;
                if pieces.iter().any(|known| known.stage == piece.stage) {
                    return Err(OverrideError::Twice { place, name: piece.stage });
                }
                pieces.push(piece);
            }
            kernels.push((kernel, pieces));
        }
        Ok(Overrides { kernels })
    }

    /// The decisions for one kernel.
    pub fn of_kernel(&self, kernel: &str) -> &[Override] {
        self.kernels.iter().find(|(name, _)| name == kernel).map_or(&[], |(_, pieces)| pieces)
    }

    /// Fails if there are decisions for kernels that are not among those of a program.
    pub fn check_kernels<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Result<(), OverrideError> {
        let unknown = self.kernels.iter().map(|(name, _)| name).find(|name| !known.clone().any(|k| k == *name));
        unknown.map_or(Ok(()), |kernel| {
            let known = known.map(str::to_string).collect();
            Err(OverrideError::NoKernel { kernel: kernel.clone(), known })
        })
    }
}

fn read_piece(kernel: &str, piece: &Value) -> Result<Override, OverrideError> {
    let place = format!("a piece of {kernel}");
    let piece = fields(&place, piece, &["stage", "rule", "parameters"])?;
    let stage = text_of(&place, piece, "stage")?;
    let place = format!("stage {stage:?} of {kernel}");
    let rule = text_of(&place, piece, "rule")?;
    let mut values: Vec<(String, i64)> = Vec::new();
    let none = Vec::new();
    let parameters = match piece.contains_key("parameters") {
        true => array(&place, piece, "parameters")?,
        false => &none,
    };
    for parameter in parameters {
        let own = format!("a parameter of {place}");
        let parameter = fields(&own, parameter, &["name", "value", "guess", "domain", "reason", "limit"])?;
        let name = text_of(&own, parameter, "name")?;
        let own = format!("the value of {name:?} of {place}");
        let value = parameter.get("value").unwrap_or(&Value::Null);
        let value = value.as_i64().ok_or_else(|| wrong(&own, "a whole number", value))?;
        if values.iter().any(|(known, _)| *known == name) {
            return Err(OverrideError::Twice { place, name });
        }
        values.push((name, value));
    }
    Ok(Override { stage, rule, values })
}

fn wrong(place: &str, expected: &'static str, found: &Value) -> OverrideError {
    let found = match found {
        Value::Null => "missing".to_string(),
        Value::Object(_) => "an object".to_string(),
        Value::Array(_) => "a list".to_string(),
        other => other.to_string(),
    };
    OverrideError::Form { place: place.to_string(), expected, found }
}

fn fields<'v>(
    place: &str,
    value: &'v Value,
    known: &'static [&'static str],
) -> Result<&'v Map<String, Value>, OverrideError> {
    let Value::Object(map) = value else { return Err(wrong(place, "an object", value)) };
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(field) => Err(OverrideError::Field { place: place.to_string(), field: field.clone(), known }),
        None => Ok(map),
    }
}

fn array<'v>(place: &str, map: &'v Map<String, Value>, field: &str) -> Result<&'v Vec<Value>, OverrideError> {
    match map.get(field).unwrap_or(&Value::Null) {
        Value::Array(list) => Ok(list),
        other => Err(wrong(&format!("{field:?} of {place}"), "a list", other)),
    }
}

fn text_of(place: &str, map: &Map<String, Value>, field: &str) -> Result<String, OverrideError> {
    match map.get(field).unwrap_or(&Value::Null) {
        Value::String(text) => Ok(text.clone()),
        other => Err(wrong(&format!("{field:?} of {place}"), "a text", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_may_be_as_short_as_what_it_replaces() {
        let text = r#"{"command": "compile", "schedule": [{"kernel": "k", "pieces": [
            {"stage": "s", "rule": "conv", "parameters": [{"name": "rows", "value": 4}]}, {"stage": "t", "rule": "matmul"}]}]}"#;
        let read = Overrides::from_json(text).unwrap();
        assert_eq!(read.of_kernel("k")[0].value("rows"), Some(4));
        assert_eq!((read.of_kernel("k").len(), read.of_kernel("l").len()), (2, 0));
        read.check_kernels(["k", "l"].into_iter()).unwrap();
        let said = read.check_kernels(["kk"].into_iter()).unwrap_err().to_string();
        assert_eq!(said, r#"the program has no kernel "k"; did you mean "kk"?"#);
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said_with_its_place() {
        let wrong = [
            ("[", "no JSON"),
            ("[]", "the schedule is expected to be an object, and is a list"),
            ("{}", "\"schedule\" of the schedule is expected to be a list, and is missing"),
            (r#"{"schedule": [{"kernel": "k", "piece": []}]}"#, "did you mean \"pieces\"?"),
            (r#"{"schedule": [{"kernel": 3, "pieces": []}]}"#, "expected to be a text, and is 3"),
            (
                r#"{"schedule": [{"kernel": "k", "pieces": []}, {"kernel": "k", "pieces": []}]}"#,
                "the schedule names \"k\" twice",
            ),
            (
                r#"{"schedule": [{"kernel": "k", "pieces": [{"stage": "s", "rule": "r",
                    "parameters": [{"name": "rows", "value": 1.5}]}]}]}"#,
                "the value of \"rows\" of stage \"s\" of kernel \"k\" of the schedule is expected to be a whole number, and is 1.5",
            ),
        ];
        for (text, said) in wrong {
            let error = Overrides::from_json(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
