//! Targets as text: words (`llvm -mcpu=znver3`), dictionaries of JSON, tags.

use std::sync::{PoisonError, RwLock};
use std::{fmt, str::FromStr};

use relaxide_ffi::{Any, Array, Map, abi, json};

use super::kinds::TargetKind;
use super::tags::TAGS;
use super::{Target, TargetError};
use crate::{AttrValue, Attrs};

/// A dictionary of JSON.
fn dictionary(text: &str) -> Result<Attrs, TargetError> {
    let bad = |why: String| TargetError::BadDictionary { text: text.to_string(), why };
    let parsed = json::parse(text).map_err(|error| bad(error.message().to_string()))?;
    match value(&parsed) {
        AttrValue::Map(map) => Ok(Attrs(map)),
        _ => Err(bad("it is no object".into())),
    }
}

fn value(any: &Any) -> AttrValue {
    if let Ok(text) = any.to::<String>() {
        AttrValue::Str(text)
    } else if let Ok(map) = any.to::<Map>() {
        let fields = map.iter().filter_map(|(name, field)| Some((name.to::<String>().ok()?, value(field))));
        AttrValue::Map(fields.collect())
    } else if let Ok(list) = any.to::<Array>() {
        AttrValue::List(list.iter().map(value).collect())
    } else if let (abi::type_index::BOOL, Some(flag)) = (any.type_index(), any.as_int()) {
        AttrValue::Bool(flag != 0)
    } else {
        any.as_int().map_or(AttrValue::None, AttrValue::Int)
    }
}

/// Tags that programs have added, with what targets of them say.
static ADDED: RwLock<Vec<(String, Attrs)>> = RwLock::new(Vec::new());

/// Lets a tag stand for a target, whatever it stood for before.
pub fn add_tag(tag: &str, target: &str) -> Result<Target, TargetError> {
    let mut attrs = dictionary(target)?;
    attrs.0.insert("tag".to_string(), AttrValue::Str(tag.to_string()));
    let made = Target::from_attrs(&attrs)?;
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    added.retain(|(known, _)| known != tag);
    added.push((tag.to_string(), attrs));
    Ok(made)
}

/// The names of all tags.
pub fn tag_names() -> Vec<String> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let mut names: Vec<String> = TAGS.iter().flat_map(|tags| tags.names).map(|name| (*name).to_string()).collect();
    names.extend(added.iter().map(|(name, _)| name.clone()));
    names.sort_unstable();
    names.dedup();
    names
}

fn of_tag(tag: &str) -> Option<Result<Target, TargetError>> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, attrs)) = added.iter().find(|(known, _)| known == tag) {
        return Some(Target::from_attrs(attrs));
    }
    let tags = TAGS.iter().find(|tags| tags.names.contains(&tag))?;
    let made = || {
        let mut attrs = Attrs::new().with("kind", tags.kind).with("tag", tag);
        attrs.0.extend(dictionary(tags.attributes)?.0);
        Target::from_attrs(&attrs)
    };
    Some(made())
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let text = text.trim();
        if text.starts_with('{') {
            return Target::from_attrs(&dictionary(text)?);
        }
        let mut words = text.split_whitespace();
        let mut target = match words.next() {
            None => Target::default(),
            Some(word) => match TargetKind::named(word) {
                Some(kind) => Target::new(kind),
                None => of_tag(word).unwrap_or_else(|| Err(TargetError::UnknownKind { kind: word.to_string() }))?,
            },
        };
        while let Some(word) = words.next() {
            let option = word.trim_start_matches('-');
            if option.len() == word.len() {
                return Err(target.unknown_option(word));
            }
            // Both `-mcpu=x` and `-mcpu x` are usual.
            let (name, value) = option.split_once('=').unwrap_or_else(|| (option, words.next().unwrap_or("")));
            target.set_text(name, value)?;
        }
        Ok(target)
    }
}

impl Target {
    /// The options that were given, in the table's order: the kind's own, then the common ones.
    fn given(&self) -> impl Iterator<Item = (&str, &AttrValue)> {
        let options = self.kind.info().options.iter().chain(super::kinds::COMMON);
        options.filter_map(|option| Some((option.name, self.attrs.get(option.name)?)))
    }

    /// The target as a dictionary of JSON, with its host in it.
    pub fn to_json(&self) -> String {
        let mut fields = vec![format!("\"kind\": {}", quoted(self.kind.name()))];
        fields.extend(self.given().map(|(name, value)| format!("{}: {}", quoted(name), json_text(value))));
        fields.extend(self.host.iter().map(|host| format!("\"host\": {}", host.to_json())));
        format!("{{{}}}", fields.join(", "))
    }

    /// Whether nothing but the kind is said.
    pub fn is_plain(&self) -> bool {
        self.attrs.is_empty() && self.host.is_none()
    }
}

fn quoted(text: &str) -> String {
    json::stringify(&Any::from(text), 0).unwrap_or_default()
}

fn json_text(value: &AttrValue) -> String {
    match value {
        AttrValue::Str(text) => quoted(text),
        AttrValue::List(items) => format!("[{}]", items.iter().map(json_text).collect::<Vec<_>>().join(", ")),
        AttrValue::Bool(flag) => flag.to_string(),
        AttrValue::Int(number) => number.to_string(),
        // `Target::set` lets no other value in.
        _ => "null".into(),
    }
}

fn word(value: &AttrValue) -> String {
    match value {
        AttrValue::Str(text) => text.clone(),
        AttrValue::List(items) => items.iter().map(word).collect::<Vec<_>>().join(","),
        AttrValue::Bool(flag) => i64::from(*flag).to_string(),
        other => json_text(other),
    }
}

impl fmt::Display for Target {
    /// Words, where words can say it, else a dictionary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_blank = |value: &AttrValue| word(value).contains(char::is_whitespace);
        if self.host.is_some() || self.given().any(|(_, value)| has_blank(value)) {
            return f.write_str(&self.to_json());
        }
        write!(f, "{}", self.kind)?;
        self.given().try_for_each(|(name, value)| write!(f, " -{name}={}", word(value)))
    }
}
