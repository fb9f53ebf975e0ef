//! Objects and lists of JSON, whose parts are texts until somebody asks for them.
//!
//! Whoever sends a request chooses how many fields and items it has. Kept are the fields that the protocol has, and a list ends with an error
//! where no request has so many items: what is read takes little more memory than the text.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Error;

/// Items that a list of inputs or outputs may have.
pub(super) const MAX_ITEMS: usize = 4096;

/// The fields that requests have somewhere.
const KEYS: &[&str] = &[
    "id",
    "inputs",
    "outputs",
    "parameters",
    "name",
    "datatype",
    "shape",
    "data",
    "timeout",
    "binary_data",
    "binary_data_size",
    "binary_data_output",
    "classification",
    "sequence_id",
    "shared_memory_region",
    "ready",
];

/// The known fields of an object. Of equal ones the last counts.
#[derive(Default)]
pub(super) struct Fields<'a>(Vec<(&'static str, &'a RawValue)>);

/// The items of a list.
pub(super) struct List<'a>(pub Vec<&'a RawValue>);

/// Reads JSON.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::invalid(format!("{what} cannot be read: {error}")))
}

impl<'a> Fields<'a> {
    /// A field as its text.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// A field, if it is there, as what it should be.
    pub(super) fn read<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, Error> {
        self.get(key).map(|value| parse(value.get(), &format!("`{key}`"))).transpose()
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FieldsOf)
    }
}

struct FieldsOf;

impl<'de> Visitor<'de> for FieldsOf {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<String>()? {
            let Some(key) = KEYS.iter().find(|known| **known == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value()?;
            match fields.0.iter_mut().find(|(known, _)| known == key) {
                Some(field) => field.1 = value,
                None => fields.0.push((key, value)),
            }
        }
        Ok(fields)
    }
}

impl<'de> Deserialize<'de> for List<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ItemsOf)
    }
}

struct ItemsOf;

impl<'de> Visitor<'de> for ItemsOf {
    type Value = List<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX_ITEMS} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == MAX_ITEMS {
                return Err(serde::de::Error::invalid_length(MAX_ITEMS + 1, &self));
            }
            items.push(item);
        }
        Ok(List(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_passed_over_and_lists_end() {
        let fields: Fields<'_> = parse(r#"{"name": 1, "other": [[{}]], "name": "x", "shape": [2]}"#, "it").unwrap();
        assert_eq!(fields.read::<String>("name").unwrap().as_deref(), Some("x"));
        assert_eq!(fields.0.len(), 2);
        assert!(fields.read::<bool>("shape").is_err());
        assert!(parse::<Fields<'_>>("[]", "it").is_err());
        let long = format!("[{}0]", "0,".repeat(MAX_ITEMS));
        assert!(parse::<List<'_>>(&long, "it").is_err_and(|error| error.message.contains("at most 4096")));
    }
}
