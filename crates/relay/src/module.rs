//! A program: functions and data types by name.

use indexmap::IndexMap;
use relaxide_ffi::{Object, Ref};
use relaxide_ir::Attrs;

use crate::{Constructor, Function, Type, TypeData, TypeVar};

/// A program. A pass clones it (nodes are shared) and replaces what it changes.
#[derive(Object, Debug, Clone, Default)]
#[object(key = "relay.Module")]
pub struct Module {
    /// The functions.
    pub functions: IndexMap<String, Ref<Function>>,
    /// The data types.
    pub types: IndexMap<String, Ref<TypeData>>,
    /// Attributes of the module.
    pub attrs: Attrs,
}

/// A constructor as it is written, before its type is in a module.
pub struct ConstructorDef {
    /// The name.
    pub name: String,
    /// The types of its fields.
    pub inputs: Vec<Type>,
}

impl Module {
    /// A module without functions.
    pub fn new() -> Module {
        Module::default()
    }

    /// A module of one function, `main`.
    pub fn of_main(main: Ref<Function>) -> Module {
        let mut module = Module::new();
        module.functions.insert("main".into(), main);
        module
    }

    /// The data type of a constructor.
    pub fn type_of(&self, constructor: &Constructor) -> Option<&Ref<TypeData>> {
        self.types.get(&constructor.belong_to)
    }

    /// The constructor of a name.
    pub fn constructor(&self, name: &str) -> Option<&Ref<Constructor>> {
        self.types.values().flat_map(|ty| &ty.constructors).find(|c| c.name == name)
    }

    /// The constructor of a tag.
    pub fn constructor_of_tag(&self, tag: i64) -> Option<&Ref<Constructor>> {
        self.types.values().flat_map(|ty| &ty.constructors).find(|c| c.tag == tag)
    }

    /// A name that no function has yet: `hint`, or `hint_1`, `hint_2` …
    pub fn fresh_name(&self, hint: &str) -> String {
        if !self.functions.contains_key(hint) {
            return hint.to_string();
        }
        (1..).map(|i| format!("{hint}_{i}")).find(|name| !self.functions.contains_key(name)).unwrap_or_default()
    }

    /// Adds the functions and types of another module that this one does not have.
    pub fn import(&mut self, other: &Module) {
        for (name, ty) in &other.types {
            self.types.entry(name.clone()).or_insert_with(|| ty.clone());
        }
        for (name, function) in &other.functions {
            self.functions.entry(name.clone()).or_insert_with(|| function.clone());
        }
    }
}

impl TypeData {
    /// A data type with its constructors, which get their tags.
    pub fn new(name: &str, type_vars: Vec<Ref<TypeVar>>, constructors: Vec<ConstructorDef>) -> Ref<TypeData> {
        let siblings = constructors.len() as i64;
        let made = constructors.into_iter().enumerate().map(|(index, def)| {
            let (belong_to, tag) = (name.to_string(), constructor_tag(name, index));
            Ref::new(Constructor { name: def.name, inputs: def.inputs, belong_to, tag, siblings })
        });
        let constructors = made.collect();
        Ref::new(TypeData { name: name.to_string(), type_vars, constructors, external: false })
    }
}

/// What tells the values of constructors apart: the type's hash in the high byte, the constructor's place in the low ones.
pub fn constructor_tag(type_name: &str, index: usize) -> i64 {
    let high = (type_hash(type_name.as_bytes()) & 0xff) as u32;
    i64::from(((high << 24) | index as u32) as i32)
}

/// The hash of a name as libstdc++ computes it: MurmurHash64A with its seed.
fn type_hash(bytes: &[u8]) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |v: u64| v ^ (v >> 47);
    let mut hash = 0xc70f_6907u64 ^ (bytes.len() as u64).wrapping_mul(MUL);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let data = mix(u64::from_le_bytes(*word).wrapping_mul(MUL)).wrapping_mul(MUL);
        hash = (hash ^ data).wrapping_mul(MUL);
    }
    if !rest.is_empty() {
        let data = rest.iter().rev().fold(0u64, |acc, byte| (acc << 8) | u64::from(*byte));
        hash = (hash ^ data).wrapping_mul(MUL);
    }
    hash = mix(hash).wrapping_mul(MUL);
    mix(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_the_reference() {
        assert_eq!(constructor_tag("List", 0), -2013265920);
        assert_eq!(constructor_tag("List", 1), -2013265919);
        assert_eq!(constructor_tag("Option", 0) as i32 as u32 >> 24, 0x42);
        assert_eq!(constructor_tag("Tree", 0) as i32 as u32 >> 24, 0x38);
        assert_eq!(constructor_tag("tensor_float32_t", 0) as i32 as u32 >> 24, 0x26);
    }
}
