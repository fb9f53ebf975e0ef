//! Binds names: what each symbol of each object means.

use std::collections::HashMap;

use relaxide_ffi::SavedBytes;
use wasmparser::{FuncType, SymbolFlags};

use super::object::{Object, Symbol};
use super::runtime::Runtime;
use super::{ExportError, unreadable};

/// What is behind a name or a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A function of the runtime.
    Runtime(u32),
    /// A global of the runtime.
    Global(u32),
    /// A function of an object, by its place there.
    Function { object: usize, function: usize },
    /// Data of an object.
    Data { object: usize, segment: usize, offset: u64 },
    /// Bytes that were given.
    Given(usize),
    /// The one table.
    Table,
    /// What is weak and not there.
    Nothing,
}

/// What the names of objects and of given data mean.
pub(super) struct Symbols<'a> {
    names: HashMap<&'a str, (Meaning, SymbolFlags, usize)>,
    given: HashMap<&'a str, usize>,
}

impl<'a> Symbols<'a> {
    pub fn of(objects: &'a [Object<'_>], given: &'a [(String, SavedBytes)]) -> Result<Self, ExportError> {
        let given = given.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index)).collect();
        let mut symbols = Self { names: HashMap::new(), given };
        for (number, object) in objects.iter().enumerate() {
            for symbol in &object.symbols {
                let (name, meaning, flags) = match *symbol {
                    Symbol::Function { name, own: Some(function), flags, .. } => {
                        (name, Meaning::Function { object: number, function }, flags)
                    }
                    Symbol::Data { name, place: Some((segment, offset)), flags } => {
                        (name, Meaning::Data { object: number, segment, offset }, flags)
                    }
                    _ => continue,
                };
                if !flags.contains(SymbolFlags::BINDING_LOCAL) {
                    symbols.define(name, meaning, flags, number, objects)?;
                }
            }
        }
        Ok(symbols)
    }

    fn define(
        &mut self,
        name: &'a str,
        meaning: Meaning,
        flags: SymbolFlags,
        number: usize,
        objects: &[Object<'_>],
    ) -> Result<(), ExportError> {
        let is_weak = flags.contains(SymbolFlags::BINDING_WEAK);
        match self.names.get(name) {
            Some((_, known, first)) if !known.contains(SymbolFlags::BINDING_WEAK) && !is_weak => {
                let of = |number: usize| objects.get(number).map_or_else(String::new, |object| object.name.clone());
                Err(ExportError::DuplicateSymbol { symbol: name.to_string(), first: of(*first), second: of(number) })
            }
            Some(_) if is_weak => Ok(()),
            _ => {
                self.names.insert(name, (meaning, flags, number));
                Ok(())
            }
        }
    }

    /// What a symbol of an object means.
    pub fn meaning(
        &self,
        number: usize,
        index: u32,
        objects: &[Object<'_>],
        runtime: &Runtime<'_>,
    ) -> Result<Meaning, ExportError> {
        let object = &objects[number];
        let unknown = || unreadable(&object.name, format!("there is no symbol {index}"));
        let undefined = |name: &str, flags: SymbolFlags| match flags.contains(SymbolFlags::BINDING_WEAK) {
            true => Ok(Meaning::Nothing),
            false => Err(ExportError::NotInRuntime { symbol: name.to_string(), object: object.name.clone() }),
        };
        match *object.symbols.get(index as usize).ok_or_else(unknown)? {
            Symbol::Function { own: Some(function), flags, .. } if flags.contains(SymbolFlags::BINDING_LOCAL) => {
                Ok(Meaning::Function { object: number, function })
            }
            Symbol::Function { name, ty, flags, .. } => {
                let found = self.names.get(name).map(|(meaning, ..)| *meaning);
                match found.or_else(|| runtime.function(name).map(Meaning::Runtime)) {
                    Some(found) => same_type(object, ty, type_of(found, objects, runtime), name).map(|()| found),
                    None => undefined(name, flags),
                }
            }
            Symbol::Data { place: Some((segment, offset)), flags, .. }
                if flags.contains(SymbolFlags::BINDING_LOCAL) =>
            {
                Ok(Meaning::Data { object: number, segment, offset })
            }
            Symbol::Data { name, flags, .. } => {
                let found = self.names.get(name).map(|(meaning, ..)| *meaning);
                found
                    .or_else(|| self.given.get(name).map(|given| Meaning::Given(*given)))
                    .map_or_else(|| undefined(name, flags), Ok)
            }
            Symbol::Global { name } => runtime
                .global(name)
                .map_or_else(|| undefined(name, SymbolFlags::empty()), |found| Ok(Meaning::Global(found))),
            Symbol::Other => Ok(Meaning::Table),
        }
    }
}

/// The type of a function, as its definition has it.
pub(super) fn type_of<'a>(
    meaning: Meaning,
    objects: &'a [Object<'_>],
    runtime: &'a Runtime<'_>,
) -> Option<&'a FuncType> {
    match meaning {
        Meaning::Runtime(index) => runtime.type_of(index),
        Meaning::Function { object, function } => {
            let object = objects.get(object)?;
            object.types.get(object.functions.get(function)?.ty as usize)
        }
        _ => None,
    }
}

/// Calls are checked by their types when they run, and end with a trap there: they are compared here.
fn same_type(object: &Object<'_>, declared: u32, defined: Option<&FuncType>, name: &str) -> Result<(), ExportError> {
    let declared = object.types.get(declared as usize);
    if declared.is_some() && declared == defined {
        return Ok(());
    }
    let text = |ty: Option<&FuncType>| ty.map_or("no function".to_string(), ToString::to_string);
    let reason = format!("it calls `{name}` as {}, which is {}", text(declared), text(defined));
    Err(unreadable(&object.name, reason))
}
