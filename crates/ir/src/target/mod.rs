//! What kernels are compiled for.
//!
//! A target is a kind (a language of kernels, [`TargetKind`]), attributes of that kind, and the target of the host that calls the kernels. It is
//! written as text, `llvm -mcpu=znver3 -mattr=+avx2,-fma`, as a dictionary of the same names, or as the name of a device that is known
//! (a tag, `nvidia/geforce-rtx-3080`). It says what was asked for; whether a back end makes kernels of the kind, and knows the processor,
//! is that back end's to say. What LLVM's processors can do ([`processors`]) is known here, as schedule rules and back ends ask it.

mod kinds;
pub mod processors;
mod tags;
mod text;

use relaxide_ffi::{Object, Ref};

pub use kinds::{COMMON, Default as OptionDefault, KINDS, KindInfo, Takes, TargetKind, TargetOption, register_kind};
pub use text::{add_tag, tag_names};

use crate::{AttrValue, Attrs, diagnostic::nearest};

/// Devices whose images lie in textures.
const ADRENO: &str = "adreno";

/// A compilation target.
#[derive(Object, Clone, Debug)]
#[object(key = "target.Target")]
pub struct Target {
    /// What kernels become.
    pub kind: TargetKind,
    /// What calls the kernels is compiled for that; nothing: for the machine that compiles.
    pub host: Option<Ref<Target>>,
    /// The options that were given, by the names in the table of kinds.
    pub attrs: Attrs,
}

/// Why a target was refused. The user's text is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The kind does not exist.
    #[error("unknown target kind `{kind}`{}; known: {}", near(kind, &kind_names()), kind_names().join(", "))]
    UnknownKind {
        /// What was asked for.
        kind: String,
    },
    /// A kind that was to be registered has the name of another, or one that no target can begin with.
    #[error("`{kind}` cannot be registered: kinds have names of lower-case letters, digits, `_` and `-`, each its own")]
    RefusedKind {
        /// The name.
        kind: String,
    },
    /// A kind has no such option.
    #[error("target option `{option}` is unknown{}; known: {}", near(option, known), known.join(", "))]
    UnknownOption {
        /// What was given.
        option: String,
        /// What the kind has.
        known: Vec<&'static str>,
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

fn kind_names() -> Vec<&'static str> {
    kinds::kinds().into_iter().map(TargetKind::name).collect()
}

/// What a misspelt word may have meant, in a message.
fn near(word: &str, known: &[&str]) -> String {
    let near = nearest(word, known.iter().copied(), 2);
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(" or ")) }
}

impl PartialEq for Target {
    /// By what they say.
    fn eq(&self, other: &Self) -> bool {
        let Target { kind, host, attrs } = self;
        (kind, attrs, host.as_deref()) == (&other.kind, &other.attrs, other.host.as_deref())
    }
}

impl Default for Target {
    fn default() -> Self {
        Target::new(TargetKind::Llvm)
    }
}

impl Target {
    /// A target of a kind, with nothing said of it.
    pub fn new(kind: TargetKind) -> Target {
        Target { kind, host: None, attrs: Attrs::new() }
    }

    /// The target that gives C, for machines that there is no native code for.
    pub fn c() -> Target {
        Target::new(TargetKind::C)
    }

    /// A target for a processor by name.
    pub fn llvm(mcpu: &str) -> Target {
        Target::default().with("mcpu", mcpu)
    }

    /// This and one option more, which the caller knows to be right; [`Target::set`] checks.
    pub fn with(mut self, option: &str, value: impl Into<AttrValue>) -> Target {
        let value = value.into();
        match value {
            AttrValue::Str(text) if text.is_empty() => self.attrs.0.shift_remove(option),
            value => self.attrs.0.insert(option.to_string(), value),
        };
        self
    }

    /// A target from a dictionary: `{"kind": "llvm", "mcpu": "znver3", "mattr": ["+avx2"]}`.
    pub fn from_attrs(attrs: &Attrs) -> Result<Target, TargetError> {
        let kind = match attrs.get("kind") {
            None => TargetKind::Llvm,
            Some(AttrValue::Str(name)) => {
                TargetKind::named(name).ok_or_else(|| TargetError::UnknownKind { kind: name.clone() })?
            }
            Some(other) => return Err(bad("kind", other, "the name of a kind")),
        };
        let mut target = Target::new(kind);
        for (name, value) in &attrs.0 {
            match (name.as_str(), value) {
                ("kind", _) | (_, AttrValue::None) => {}
                ("host", AttrValue::Str(text)) => target.host = Some(Ref::new(text.parse()?)),
                ("host", AttrValue::Map(fields)) => {
                    target.host = Some(Ref::new(Target::from_attrs(&Attrs(fields.clone()))?));
                }
                // What devices are here is the back ends' business, and a target is to mean the same on every machine.
                ("from_device", other) => return Err(bad(name, other, "no device but its attributes by name")),
                _ => target.set(name, value)?,
            }
        }
        Ok(target)
    }

    /// The target that an attribute is: an object, text, or a dictionary.
    pub fn of_attr(value: &AttrValue) -> Result<Target, TargetError> {
        match value {
            AttrValue::Str(text) => text.parse(),
            AttrValue::Map(fields) => Target::from_attrs(&Attrs(fields.clone())),
            AttrValue::Object(object) => match object.downcast_ref::<Target>() {
                Some(target) => Ok(Target::clone(target)),
                None => Err(bad("target", value, "a target")),
            },
            other => Err(bad("target", other, "a target")),
        }
    }

    fn unknown_option(&self, option: &str) -> TargetError {
        let names = self.kind.info().options.iter().chain(COMMON).map(|option| option.name);
        TargetError::UnknownOption { option: option.to_string(), known: names.chain(["host"]).collect() }
    }

    /// Sets an option from a word.
    fn set_text(&mut self, option: &str, text: &str) -> Result<(), TargetError> {
        if option == "host" {
            self.host = Some(Ref::new(text.parse()?));
            return Ok(());
        }
        let takes = self.kind.option(option).ok_or_else(|| self.unknown_option(option))?.takes;
        let value = match takes {
            Takes::Int | Takes::Positive | Takes::Level => text.parse().map_or(AttrValue::from(text), AttrValue::Int),
            Takes::Bool => match text {
                "0" | "false" | "False" => AttrValue::Bool(false),
                "" | "1" | "true" | "True" => AttrValue::Bool(true),
                other => other.into(),
            },
            Takes::Texts => text.split(',').filter(|item| !item.is_empty()).collect::<Vec<_>>().into(),
            Takes::Text | Takes::Features => text.into(),
        };
        self.set(option, &value)
    }

    /// Sets an option, or says what is wrong with its value. What an option is by default anyhow is not kept.
    pub fn set(&mut self, option: &str, value: &AttrValue) -> Result<(), TargetError> {
        let row = self.kind.option(option).ok_or_else(|| self.unknown_option(option))?;
        let value = match (row.takes, value) {
            // The host's own processor goes by no name here.
            (Takes::Text, AttrValue::Str(text)) if option == "mcpu" && text == "native" => AttrValue::from(""),
            (Takes::Text, AttrValue::Str(_)) | (Takes::Int, AttrValue::Int(_)) | (Takes::Bool, AttrValue::Bool(_)) => {
                value.clone()
            }
            (Takes::Bool, AttrValue::Int(0 | 1)) => AttrValue::Bool(*value == AttrValue::Int(1)),
            (Takes::Features, _) => AttrValue::Str(features(option, value)?),
            (Takes::Texts, AttrValue::Str(text)) => vec![text.as_str()].into(),
            (Takes::Texts, AttrValue::List(items)) if items.iter().all(|item| matches!(item, AttrValue::Str(_))) => {
                value.clone()
            }
            (Takes::Positive, AttrValue::Int(number)) if *number > 0 => value.clone(),
            (Takes::Level, AttrValue::Int(0..=3)) => value.clone(),
            (takes, _) => return Err(bad(option, value, takes.expected())),
        };
        let is_default = match (&value, row.default) {
            (AttrValue::Int(number), OptionDefault::Int(default)) => *number == default,
            (AttrValue::Bool(flag), OptionDefault::Int(default)) => i64::from(*flag) == default,
            (AttrValue::Str(text), OptionDefault::Text(default)) => text == default,
            (AttrValue::Str(text), _) => text.is_empty(),
            (AttrValue::List(items), _) if option == "keys" => {
                let own = self.kind.info().keys.iter().map(|key| AttrValue::from(*key));
                items.iter().cloned().eq(own)
            }
            (AttrValue::List(items), _) => items.is_empty(),
            _ => false,
        };
        match is_default {
            true => self.attrs.0.shift_remove(option),
            false => self.attrs.0.insert(option.to_string(), value),
        };
        Ok(())
    }

    /// A text option: what was given, else the default, else nothing.
    pub fn text(&self, option: &str) -> &str {
        let default = || match self.kind.option(option).map(|row| row.default) {
            Some(OptionDefault::Text(text)) => text,
            _ => "",
        };
        self.attrs.str(option).unwrap_or_else(default)
    }

    /// An option that is a number, or true or false as 1 or 0: what was given, else the default.
    pub fn int(&self, option: &str) -> Option<i64> {
        let default = || match self.kind.option(option).map(|row| row.default) {
            Some(OptionDefault::Int(number)) => Some(number),
            _ => None,
        };
        self.attrs.int(option).or_else(default)
    }

    /// Processor name as the back end knows it; empty for the host's own.
    pub fn mcpu(&self) -> &str {
        self.text("mcpu")
    }

    /// Processor features that are added or removed, as `+avx2,-fma`.
    pub fn mattr(&self) -> &str {
        self.text("mattr")
    }

    /// Target triple; empty for the host's own.
    pub fn mtriple(&self) -> &str {
        self.text("mtriple")
    }

    /// How many cores kernels will run on, where that is known.
    pub fn num_cores(&self) -> Option<i64> {
        self.int("num-cores")
    }

    /// Whether results have the same bits on every processor that kernels are compiled for.
    pub fn is_deterministic(&self) -> bool {
        self.attrs.bool("deterministic") == Some(true)
    }

    /// How hard the back end optimises, 0 to 3.
    pub fn opt_level(&self) -> i64 {
        self.int("opt-level").unwrap_or(3)
    }

    /// What the target is among, as `gpu` or `adreno`.
    pub fn keys(&self) -> Vec<&str> {
        match self.attrs.get("keys") {
            Some(AttrValue::List(items)) => items
                .iter()
                .filter_map(|item| if let AttrValue::Str(text) = item { Some(&**text) } else { None })
                .collect(),
            _ if self.is_arm() => [&["arm_cpu"], self.kind.info().keys].concat(),
            _ => self.kind.info().keys.to_vec(),
        }
    }

    /// Whether it says that its processor is one of ARM's.
    fn is_arm(&self) -> bool {
        let begins = |option: &str, with: &[&str]| match self.attrs.get(option) {
            Some(AttrValue::Str(text)) => with.iter().any(|start| text.starts_with(start)),
            _ => false,
        };
        matches!(self.kind, TargetKind::Llvm | TargetKind::C)
            && (begins("mcpu", &["cortex-"]) || begins("mtriple", &["aarch64", "arm", "thumb"]))
    }

    /// Whether images lie in textures of its device, kernels over which have passes of their own.
    pub fn has_textures(&self) -> bool {
        self.text("device") == ADRENO || self.keys().contains(&ADRENO)
    }

    /// Whether its kernels run over the threads of a GPU.
    pub fn is_gpu(&self) -> bool {
        self.kind.is_gpu()
    }

    /// The type of device that data lives on, as DLPack numbers it.
    pub fn device_type(&self) -> i32 {
        let given = self.int("target_device_type").and_then(|number| i32::try_from(number).ok());
        given.unwrap_or_else(|| self.kind.device_type())
    }
}

impl Takes {
    fn expected(self) -> &'static str {
        match self {
            Takes::Text => "text",
            Takes::Features => "a list such as `+avx2,-fma`",
            Takes::Texts => "text or a list of texts",
            Takes::Int => "a number",
            Takes::Positive => "a positive number",
            Takes::Level => "a number from 0 to 3",
            Takes::Bool => "true or false",
        }
    }
}

fn bad(option: &str, value: &AttrValue, expected: &'static str) -> TargetError {
    let value = match value {
        AttrValue::Str(text) => text.clone(),
        AttrValue::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    TargetError::BadValue { option: option.to_string(), value, expected }
}

/// Features, from a text or a list of texts, as one text.
fn features(option: &str, value: &AttrValue) -> Result<String, TargetError> {
    let wrong = || bad(option, value, Takes::Features.expected());
    let text = match value {
        AttrValue::Str(text) => text.clone(),
        AttrValue::List(items) => {
            let texts =
                items.iter().map(|item| if let AttrValue::Str(text) = item { Ok(&**text) } else { Err(wrong()) });
            texts.collect::<Result<Vec<&str>, _>>()?.join(",")
        }
        _ => return Err(wrong()),
    };
    let is_signed = |feature: &str| feature.len() > 1 && feature.starts_with(['+', '-']);
    if text.is_empty() || text.split(',').all(is_signed) { Ok(text) } else { Err(wrong()) }
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
        let kind = failure("lvm");
        assert!(kind.starts_with("unknown target kind `lvm` (did you mean llvm?); known: llvm, c, cuda"), "{kind}");
        let option = failure("llvm -mcup=znver3");
        assert!(
            option.starts_with("target option `mcup` is unknown (did you mean mcpu?); known: mtriple, mcpu"),
            "{option}"
        );
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
        let target = Target::llvm("skylake").with("mattr", "+avx2,-fma").with("num-cores", 8);
        assert_eq!(Target::from_attrs(&attrs), Ok(target));
        assert!(Target::from_attrs(&Attrs::new().with("mcup", "skylake")).is_err());
    }

    #[test]
    fn kinds_have_options_and_defaults_of_their_own() {
        let cuda: Target = "cuda -arch=sm_80".parse().unwrap();
        assert_eq!((cuda.text("arch"), cuda.int("max_num_threads"), cuda.device_type()), ("sm_80", Some(1024), 2));
        assert!(cuda.is_gpu() && cuda.keys() == ["cuda", "gpu"]);
        assert_eq!(cuda.to_string(), "cuda -arch=sm_80");
        let opencl: Target = "opencl".parse().unwrap();
        assert_eq!((opencl.int("max_threads_per_block"), opencl.device_type()), (Some(256), 4));
        assert!(!opencl.has_textures() && "opencl -device=adreno".parse::<Target>().unwrap().has_textures());
        assert!("opencl -arch=sm_80".parse::<Target>().unwrap_err().to_string().contains("texture_spatial_limit"));
        assert!(
            "cuda -max_num_threads=many".parse::<Target>().unwrap_err().to_string().contains("a number is expected")
        );
        for info in KINDS.iter().map(|kind| kind.info()) {
            let target: Target = info.name.parse().unwrap();
            assert_eq!((target.kind.name(), target.is_plain()), (info.name, true));
            assert_eq!(target.to_json().parse::<Target>(), Ok(target));
        }
    }

    #[test]
    fn what_is_said_of_a_kind_by_default_is_not_kept() {
        let printed =
            r#"{"kind": "opencl", "tag": "", "keys": ["opencl", "gpu"], "thread_warp_size": 1, "max_num_threads": 64}"#;
        let target: Target = printed.parse().unwrap();
        assert_eq!(target.to_string(), "opencl -max_num_threads=64");
    }

    #[test]
    fn kinds_from_outside_are_kinds() {
        let mine = KindInfo { name: "mine", device_type: 1, keys: &["cpu"], is_portable: false, options: &[] };
        let kind = register_kind(mine).unwrap();
        let target: Target = "mine -model=first".parse().unwrap();
        assert_eq!((target.kind, target.kind.name(), target.text("model")), (kind, "mine", "first"));
        assert_eq!(target.to_string().parse::<Target>(), Ok(target));
        for name in ["mine", "llvm", "", "two words", "-mine"] {
            let error = register_kind(KindInfo { name, ..mine }).unwrap_err();
            assert_eq!(error, TargetError::RefusedKind { kind: name.to_string() });
        }
        assert!("other".parse::<Target>().unwrap_err().to_string().contains("mine"));
    }

    #[test]
    fn a_host_is_a_target_of_its_own() {
        let target: Target = r#"{"kind": "cuda", "host": {"kind": "llvm", "mcpu": "znver3"}}"#.parse().unwrap();
        assert_eq!(target.host.as_deref(), Some(&Target::llvm("znver3")));
        assert_eq!(target.to_string().parse::<Target>(), Ok(target));
        assert_eq!("cuda -host=llvm".parse::<Target>().unwrap().host.as_deref(), Some(&Target::default()));
    }

    #[test]
    fn devices_are_known_by_their_tags() {
        let card: Target = "nvidia/geforce-rtx-3080".parse().unwrap();
        assert_eq!((card.kind, card.text("arch")), (TargetKind::Cuda, "sm_86"));
        let board: Target = "nvidia/jetson-orin-nano".parse().unwrap();
        assert_eq!(board.host.as_ref().unwrap().mcpu(), "carmel");
        for tags in tags::TAGS {
            for name in tags.names {
                let target = name.parse::<Target>().unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(target.text("tag"), *name);
            }
        }
    }

    #[test]
    fn whatever_is_written_is_a_target_or_an_error() {
        // Pieces of targets, put together in every order of three.
        let pieces = [
            "llvm",
            "cuda",
            "-mcpu=",
            "-mattr=+a,",
            "-num-cores",
            "-1",
            "{",
            "}",
            "\"kind\":",
            "\"llvm\"",
            ",",
            "\"host\":",
            "[",
            "]",
            " ",
            "-",
            "=",
            "nvidia/geforce-rtx-3080",
            "-host=llvm",
            "-keys=a,b",
            "99999999999999999999",
            "\u{0}",
            "é",
        ];
        let mut read = 0;
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for text in [format!("{a}{b}{c}"), format!("{a} {b} {c}")] {
                        if let Ok(target) = text.parse::<Target>() {
                            // What is printed is read as the same.
                            assert_eq!(target.to_string().parse::<Target>().as_ref(), Ok(&target), "{text:?}");
                            read += 1;
                        }
                    }
                }
            }
        }
        assert!(read > 50, "{read}");
    }

    #[test]
    fn hosts_inside_of_hosts_are_bounded() {
        let text = "{\"host\":".repeat(20_000);
        assert!(text.parse::<Target>().is_err());
        let nested = format!("{}{{}}{}", "{\"host\":".repeat(300), "}".repeat(300));
        // Whether it is read or refused, it is not by running out of stack.
        let _ = nested.parse::<Target>();
    }
}
