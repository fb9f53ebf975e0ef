//! What kernels are compiled for.
//!
//! A target is written as text, `llvm -mcpu=znver3 -mattr=+avx2,-fma`, or as a dictionary of the same names. It says what
//! was asked for; whether a back end knows the processor is that back end's to say.

use std::{fmt, str::FromStr};

use relaxide_ffi::{Any, Array, Map, Object, json};

use crate::{AttrValue, Attrs, diagnostic::nearest};

/// A compilation target: the back end and the processor.
#[derive(Object, Clone, Debug, PartialEq)]
#[object(key = "target.Target")]
pub struct Target {
    /// The back end: `"llvm"` for native code, `"c"` for C.
    pub kind: String,
    /// Processor name as the back end knows it; empty for the host's own.
    pub mcpu: String,
    /// Processor features that are added or removed, as `+avx2,-fma`.
    pub mattr: String,
    /// Target triple; empty for the host's own.
    pub mtriple: String,
    /// How many cores kernels will run on, where that is known.
    pub num_cores: Option<i64>,
    /// How hard the back end optimises, 0 to 3.
    pub opt_level: i64,
}

/// Why a target was refused. The user's text is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The back end does not exist.
    #[error("unknown target kind `{kind}`{}; known: {}", near(kind, KINDS), KINDS.join(", "))]
    UnknownKind {
        /// What was asked for.
        kind: String,
    },
    /// An option does not exist.
    #[error("target option `{option}` is unknown{}; known: {}", near(option, OPTIONS), OPTIONS.join(", "))]
    UnknownOption {
        /// What was given.
        option: String,
    },
    /// What looks like a dictionary is none.
    #[error("the target {text} is no dictionary of JSON: {why}")]
    BadDictionary {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// An option's value has the wrong form.
    #[error("target option `{option}` does not take `{value}`: {expected} is expected")]
    BadValue {
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
}

const KINDS: &[&str] = &["llvm", "c"];
const OPTIONS: &[&str] = &["mcpu", "mattr", "mtriple", "num-cores", "opt-level"];

/// What a misspelt word may have meant, in a message.
fn near(word: &str, known: &[&str]) -> String {
    let near = nearest(word, known.iter().copied(), 2);
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(" or ")) }
}

impl Default for Target {
    fn default() -> Self {
        Target {
            kind: "llvm".into(),
            mcpu: String::new(),
            mattr: String::new(),
            mtriple: String::new(),
            num_cores: None,
            opt_level: 3,
        }
    }
}

impl Target {
    /// The target that gives C, for machines that there is no native code for.
    pub fn c() -> Target {
        Target { kind: "c".into(), ..Target::default() }
    }

    /// A target for a processor by name.
    pub fn llvm(mcpu: impl Into<String>) -> Target {
        Target { mcpu: mcpu.into(), ..Target::default() }
    }

    /// A target from a dictionary: `{"kind": "llvm", "mcpu": "znver3", "mattr": ["+avx2"]}`.
    pub fn from_attrs(attrs: &Attrs) -> Result<Target, TargetError> {
        let mut target = Target::default();
        for (name, value) in &attrs.0 {
            match name.as_str() {
                "kind" => target.set_kind(&value_text(name, value)?)?,
                // What other systems add to describe a target and what has no effect on kernels for processors.
                "tag" | "keys" | "device" | "libs" | "host" => {}
                _ => target.set(name, &value_text(name, value)?)?,
            }
        }
        Ok(target)
    }

    fn set_kind(&mut self, kind: &str) -> Result<(), TargetError> {
        if !KINDS.contains(&kind) {
            return Err(TargetError::UnknownKind { kind: kind.to_string() });
        }
        self.kind = kind.to_string();
        Ok(())
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), TargetError> {
        let bad = |expected| TargetError::BadValue { option: option.to_string(), value: value.to_string(), expected };
        match option {
            // The host's own processor goes by no name here.
            "mcpu" => self.mcpu = if value == "native" { String::new() } else { value.to_string() },
            "mattr" => {
                let signed = |feature: &str| feature.len() > 1 && feature.starts_with(['+', '-']);
                if !value.is_empty() && !value.split(',').all(signed) {
                    return Err(bad("a list such as `+avx2,-fma`"));
                }
                self.mattr = value.to_string();
            }
            "mtriple" => self.mtriple = value.to_string(),
            "num-cores" => {
                let cores = value.parse::<i64>().ok().filter(|cores| *cores > 0);
                self.num_cores = Some(cores.ok_or_else(|| bad("a positive number"))?);
            }
            "opt-level" => {
                let level = value.parse::<i64>().ok().filter(|level| (0..=3).contains(level));
                self.opt_level = level.ok_or_else(|| bad("a number from 0 to 3"))?;
            }
            _ => return Err(TargetError::UnknownOption { option: option.to_string() }),
        }
        Ok(())
    }
}

fn value_text(option: &str, value: &AttrValue) -> Result<String, TargetError> {
    match value {
        AttrValue::None => Ok(String::new()),
        AttrValue::Str(text) => Ok(text.clone()),
        AttrValue::Int(number) => Ok(number.to_string()),
        AttrValue::List(list) => {
            let texts = list.iter().map(|item| value_text(option, item)).collect::<Result<Vec<_>, _>>()?;
            Ok(texts.join(","))
        }
        other => Err(TargetError::BadValue {
            option: option.to_string(),
            value: format!("{other:?}"),
            expected: "text, a number or a list of texts",
        }),
    }
}

/// A dictionary in JSON, as Python's targets are written.
fn dictionary(text: &str) -> Result<Attrs, TargetError> {
    let bad = |why: String| TargetError::BadDictionary { text: text.to_string(), why };
    let parsed = json::parse(text).map_err(|error| bad(error.message().to_string()))?;
    let map: Map = parsed.to().map_err(|_| bad("it is no object".into()))?;
    let mut attrs = Attrs::default();
    for (name, value) in map.iter() {
        let name: String = name.to().map_err(|_| bad("a name is no text".into()))?;
        attrs = attrs.with(name, attr(value));
    }
    Ok(attrs)
}

/// A value of JSON. What is neither a text, a number nor a list has no meaning for options that take any.
fn attr(value: &Any) -> AttrValue {
    if let Ok(text) = value.to::<String>() {
        AttrValue::Str(text)
    } else if let Some(number) = value.as_int() {
        AttrValue::Int(number)
    } else if let Ok(list) = value.to::<Array>() {
        AttrValue::List(list.iter().map(attr).collect())
    } else {
        AttrValue::None
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        if text.trim_start().starts_with('{') {
            return Target::from_attrs(&dictionary(text)?);
        }
        let mut words = text.split_whitespace();
        let mut target = Target::default();
        if let Some(kind) = words.next() {
            target.set_kind(kind)?;
        }
        while let Some(word) = words.next() {
            let option = word.trim_start_matches('-');
            if option.len() == word.len() {
                return Err(TargetError::UnknownOption { option: word.to_string() });
            }
            // Both `-mcpu=x` and `-mcpu x` are usual.
            let (name, value) = option.split_once('=').unwrap_or_else(|| (option, words.next().unwrap_or("")));
            target.set(name, value)?;
        }
        Ok(target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        for (option, value) in [("mtriple", &self.mtriple), ("mcpu", &self.mcpu), ("mattr", &self.mattr)] {
            if !value.is_empty() {
                write!(f, " -{option}={value}")?;
            }
        }
        if let Some(cores) = self.num_cores {
            write!(f, " -num-cores={cores}")?;
        }
        if self.opt_level != Target::default().opt_level {
            write!(f, " -opt-level={}", self.opt_level)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_was_written() {
        for text in
            ["llvm", "llvm -mcpu=znver3", "llvm -mtriple=aarch64-linux-gnu -mcpu=a64fx -mattr=+neon,-sve -num-cores=4"]
        {
            assert_eq!(text.parse::<Target>().map(|target| target.to_string()), Ok(text.to_string()));
        }
        assert_eq!("llvm -mcpu znver3".parse::<Target>(), Ok(Target::llvm("znver3")));
        let dictionary = r#"{"kind": "llvm", "mcpu": "znver3", "mattr": ["+avx2", "-fma"], "num-cores": 2}"#;
        let words = "llvm -mcpu=znver3 -mattr=+avx2,-fma -num-cores=2";
        assert_eq!(dictionary.parse::<Target>(), words.parse::<Target>());
        assert_eq!("llvm -mcpu=native".parse::<Target>(), Ok(Target::default()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let failure = |text: &str| text.parse::<Target>().unwrap_err().to_string();
        assert!(failure("{\"kind\": ").contains("no dictionary of JSON"), "{}", failure("{\"kind\": "));
        assert_eq!(failure("cuda"), "unknown target kind `cuda`; known: llvm, c");
        assert_eq!(failure("lvm"), "unknown target kind `lvm` (did you mean llvm?); known: llvm, c");
        let option = failure("llvm -mcup=znver3");
        assert!(option.starts_with("target option `mcup` is unknown (did you mean mcpu?); known: mcpu"), "{option}");
        assert!(failure("llvm -opt-level=9").contains("a number from 0 to 3"));
        assert!(failure("llvm -mattr=avx2").contains("`+avx2,-fma`"));
        assert!(failure("llvm znver3").contains("`znver3`"));
    }

    #[test]
    fn dictionaries_use_the_same_names() {
        let attrs = Attrs::new()
            .with("kind", "llvm")
            .with("mcpu", "skylake")
            .with("mattr", vec!["+avx2", "-fma"])
            .with("num-cores", 8)
            .with("keys", vec!["cpu"]);
        let target = Target { mattr: "+avx2,-fma".into(), num_cores: Some(8), ..Target::llvm("skylake") };
        assert_eq!(Target::from_attrs(&attrs), Ok(target));
        assert!(Target::from_attrs(&Attrs::new().with("mcup", "skylake")).is_err());
    }
}
