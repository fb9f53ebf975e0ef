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
//! An entry may say for which `target` it is (the name of the processor included), and then counts for that one only; `relaxide tune`
//! writes such, with the `microseconds` that it measured. There may be one for each target.
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
    kernels: Vec<KernelOverrides>,
}

/// The decisions for a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelOverrides {
    kernel: String,
    /// The target that they are for, where they are for one only.
    target: Option<String>,
    pieces: Vec<Override>,
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
        let mut kernels: Vec<KernelOverrides> = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            let place = format!("entry {at} of the schedule");
            let entry = fields(&place, entry, &["kernel", "target", "pieces", "microseconds"])?;
            let kernel = text_of(&place, entry, "kernel")?;
            let target = entry.contains_key("target").then(|| text_of(&place, entry, "target")).transpose()?;
            if kernels.iter().any(|known| (&known.kernel, &known.target) == (&kernel, &target)) {
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
            kernels.push(KernelOverrides { kernel, target, pieces });
        }
        Ok(Overrides { kernels })
    }

    /// Decisions for kernels by their names.
    pub fn of(kernels: Vec<(String, Vec<Override>)>) -> Overrides {
        let entry = |(kernel, pieces)| KernelOverrides { kernel, target: None, pieces };
        Overrides { kernels: kernels.into_iter().map(entry).collect() }
    }

    /// The decisions for one kernel.
    pub fn of_kernel(&self, kernel: &str) -> &[Override] {
        self.kernels.iter().find(|entry| entry.kernel == kernel).map_or(&[], |entry| &entry.pieces)
    }

    /// The decisions that count for the kernels of one target. Those that name a target are for that one alone, and come first; of the
    /// others, those are meant that have `suffix` behind one of the `plain` names.
    pub fn for_target(&self, target: &str, suffix: &str, plain: &[String]) -> Overrides {
        let of_target = self.kernels.iter().filter(|entry| entry.target.as_deref() == Some(target));
        let named: Vec<(String, Vec<Override>)> =
            of_target.map(|entry| (entry.kernel.clone(), entry.pieces.clone())).collect();
        let general = self.kernels.iter().filter(|entry| entry.target.is_none()).filter_map(|entry| {
            let name = entry.kernel.strip_suffix(suffix).filter(|name| plain.iter().any(|known| known == name))?;
            let is_new = named.iter().all(|(known, _)| known != name);
            is_new.then(|| (name.to_string(), entry.pieces.clone()))
        });
        let general: Vec<_> = general.collect();
        Overrides::of(named.into_iter().chain(general).collect())
    }

    /// The targets that decisions name, each once.
    pub fn targets(&self) -> Vec<&str> {
        let mut targets: Vec<&str> = self.kernels.iter().filter_map(|entry| entry.target.as_deref()).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Fails if there are decisions for kernels that are not among those of a program, by the names of all targets.
    pub fn check_kernels<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Result<(), OverrideError> {
        let unknown = self.kernels.iter().map(|e| &e.kernel).find(|name| !known.clone().any(|k| k == *name));
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
    fn decisions_for_a_target_count_for_that_one() {
        let entry = |more: &str, rows: i64| {
            format!(
                r#"{{"kernel": "k"{more}, "pieces": [{{"stage": "s", "rule": "conv", "parameters": [{{"name": "rows", "value": {rows}}}]}}]}}"#
            )
        };
        let list = [
            entry(r#", "target": "a", "microseconds": {"before": 2, "after": 1}"#, 1),
            entry(r#", "target": "b""#, 2),
            entry("", 3),
        ];
        let all = Overrides::from_json(&format!(r#"{{"schedule": [{}]}}"#, list.join(","))).unwrap();
        let rows = |target: &str, suffix: &str| {
            let own = all.for_target(target, suffix, &["k".to_string()]);
            own.of_kernel("k").first().and_then(|piece| piece.value("rows"))
        };
        assert_eq!((rows("a", ""), rows("b", ".b"), rows("c", ""), rows("c", ".c")), (Some(1), Some(2), Some(3), None));
        assert_eq!(all.targets(), ["a", "b"]);
        let twice = format!(r#"{{"schedule": [{}, {}]}}"#, entry("", 1), entry("", 2));
        assert!(Overrides::from_json(&twice).is_err());
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
