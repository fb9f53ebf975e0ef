//! A program: functions and data types by name.

use std::collections::HashSet;

use indexmap::IndexMap;
use relaxide_ffi::{Object, Ref};
use relaxide_ir::Attrs;

use crate::{Constructor, Function, Type, TypeData, TypeVar, visit};

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

    /// Adds the functions and types of another module that this one does not have, and that know nothing of those which it has
    /// under their names.
    pub fn import(&mut self, other: &Module) {
        let types = self.types.iter().filter(|(name, ty)| other.types.get(*name).is_some_and(|o| !Ref::ptr_eq(o, ty)));
        let mine =
            |(name, f): &(&String, &Ref<Function>)| other.functions.get(*name).is_some_and(|o| !Ref::ptr_eq(o, f));
        let names = types.map(|(name, _)| name).chain(self.functions.iter().filter(mine).map(|(name, _)| name));
        let fitting = other.without(&names.cloned().collect::<Vec<_>>());
        for (name, ty) in fitting.types {
            self.types.entry(name).or_insert(ty);
        }
        for (name, function) in fitting.functions {
            self.functions.entry(name).or_insert(function);
        }
    }

    /// The module without definitions of those names, and without what uses them: what is known of a definition says nothing of
    /// another of its name.
    pub(crate) fn without(&self, names: &[String]) -> Module {
        let mut left = self.clone();
        if names.is_empty() {
            return left;
        }
        let mut gone: HashSet<String> = names.iter().cloned().collect();
        loop {
            let before = gone.len();
            let (mut types, mut functions) = (Vec::new(), Vec::new());
            for (name, ty) in &left.types {
                let mut used = HashSet::new();
                ty.constructors.iter().flat_map(|c| &c.inputs).for_each(|ty| visit::of_type(Some(ty), &mut used));
                if gone.contains(name) || !used.is_disjoint(&gone) {
                    types.push(name.clone());
                }
            }
            for (name, f) in &left.functions {
                let uses = !visit::data_types(f).is_disjoint(&gone)
                    || visit::globals(&f.body).iter().any(|g| gone.contains(g));
                if gone.contains(name) || uses {
                    functions.push(name.clone());
                }
            }
            types.iter().for_each(|name| drop(left.types.shift_remove(name)));
            functions.iter().for_each(|name| drop(left.functions.shift_remove(name)));
            gone.extend(types.into_iter().chain(functions));
            if gone.len() == before {
                return left;
            }
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
