//! Binds names: which definition each symbol of each object means, and what must come from outside.

use std::collections::HashMap;

use object::elf;

use super::{
    error::ExportError,
    input::{InputObject, InputPlace, InputSymbol},
    library::SharedLibrary,
};

/// What a symbol turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Binding {
    /// An index into [`Symbols::definitions`].
    Defined(usize),
    /// An index into [`Symbols::imports`].
    Imported(usize),
    /// Nothing that can be referred to.
    Nothing,
}

/// A symbol that the library defines.
#[derive(Debug, Clone)]
pub(super) struct Definition<'a> {
    pub name: &'a [u8],
    pub place: SymbolLocation,
    pub size: u64,
    pub kind: elf::SymbolType,
    pub binding: elf::SymbolBind,
    pub exported: bool,
}

/// Where a definition lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolLocation {
    Absolute(u64),
    Input { object: usize, section: usize, offset: u64 },
    Extra(usize),
}

/// A symbol that the process must offer.
#[derive(Debug, Clone)]
pub(super) struct Import<'a> {
    pub name: &'a [u8],
    pub weak: bool,
    pub from: Option<SystemLibrary>,
}

/// The libraries that every system has and that a library may name as needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SystemLibrary {
    C,
    Math,
}

impl SystemLibrary {
    pub fn file_name(self) -> &'static str {
        match self {
            Self::C => "libc.so.6",
            Self::Math => "libm.so.6",
        }
    }

    fn offering(name: &str) -> Option<Self> {
        if LIBC.contains(&name) {
            return Some(Self::C);
        }
        let base = name.strip_suffix('f').unwrap_or(name);
        (LIBM.contains(&name) || LIBM.contains(&base)).then_some(Self::Math)
    }
}

/// The C functions that code generators call on their own account.
const LIBC: &[&str] = &["memcpy", "memset", "memmove", "memcmp", "bcmp", "strlen", "abort", "malloc", "free"];

/// The functions of the math library in double precision; the names of single precision end in `f`.
const LIBM: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "hypot",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "lround",
    "llround",
    "modf",
    "nearbyint",
    "nextafter",
    "pow",
    "remainder",
    "rint",
    "round",
    "roundeven",
    "scalbn",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
];

/// Every symbol of every object, bound.
#[derive(Debug)]
pub(super) struct Symbols<'a> {
    pub definitions: Vec<Definition<'a>>,
    pub imports: Vec<Import<'a>>,
    /// By object, then by the object's symbol index.
    bindings: Vec<Vec<Binding>>,
}

impl<'a> Symbols<'a> {
    pub fn resolve(library: &'a SharedLibrary<'_>) -> Result<Self, ExportError> {
        let mut resolver = Resolver::new(library);
        resolver.define_extra()?;
        for (index, object) in library.objects.iter().enumerate() {
            resolver.define_object(index, object)?;
        }
        for (index, object) in library.objects.iter().enumerate() {
            resolver.bind_undefined(index, object)?;
        }
        Ok(resolver.symbols)
    }

    pub fn binding(&self, object: usize, symbol: usize) -> Binding {
        self.bindings.get(object).and_then(|symbols| symbols.get(symbol)).copied().unwrap_or(Binding::Nothing)
    }
}

struct Resolver<'a, 'l> {
    library: &'a SharedLibrary<'l>,
    symbols: Symbols<'a>,
    /// The definition of each global name, and the object that it came from (`None`: an appended section).
    global: HashMap<&'a [u8], (usize, Option<usize>)>,
    imported: HashMap<&'a [u8], usize>,
}

impl<'a, 'l> Resolver<'a, 'l> {
    fn new(library: &'a SharedLibrary<'l>) -> Self {
        let bindings = library.objects.iter().map(|object| vec![Binding::Nothing; object.symbols.len()]).collect();
        let symbols = Symbols { definitions: Vec::new(), imports: Vec::new(), bindings };
        Self { library, symbols, global: HashMap::new(), imported: HashMap::new() }
    }

    fn define_extra(&mut self) -> Result<(), ExportError> {
        for (index, section) in self.library.extra.iter().enumerate() {
            let Some(name) = section.exported_as() else { continue };
            let definition = Definition {
                name: name.as_bytes(),
                place: SymbolLocation::Extra(index),
                size: section.size(),
                kind: elf::STT_OBJECT,
                binding: elf::STB_GLOBAL,
                exported: true,
            };
            let id = self.push(definition);
            if self.global.insert(name.as_bytes(), (id, None)).is_some() {
                let appended = || "the appended sections".to_owned();
                return Err(ExportError::DuplicateSymbol {
                    symbol: name.to_owned(),
                    first: appended(),
                    second: appended(),
                });
            }
        }
        Ok(())
    }

    fn define_object(&mut self, object_index: usize, object: &'a InputObject<'_>) -> Result<(), ExportError> {
        for (symbol_index, symbol) in object.symbols.iter().enumerate() {
            let place = match symbol.place {
                InputPlace::Undefined | InputPlace::Dropped => continue,
                InputPlace::Absolute(value) => SymbolLocation::Absolute(value),
                InputPlace::Section { index, offset } => {
                    SymbolLocation::Input { object: object_index, section: index, offset }
                }
            };
            let id = if symbol.binding == elf::STB_LOCAL {
                self.push(definition(symbol, place))
            } else {
                self.define_global(object_index, symbol, place)?
            };
            self.symbols.bindings[object_index][symbol_index] = Binding::Defined(id);
        }
        Ok(())
    }

    /// The definition that a global symbol stands for: a strong one wins over weak ones, the first weak one otherwise.
    fn define_global(
        &mut self,
        object: usize,
        symbol: &'a InputSymbol<'_>,
        place: SymbolLocation,
    ) -> Result<usize, ExportError> {
        let Some(&(known, origin)) = self.global.get(symbol.name) else {
            let id = self.push(definition(symbol, place));
            self.global.insert(symbol.name, (id, Some(object)));
            return Ok(id);
        };
        if symbol.binding == elf::STB_WEAK {
            return Ok(known);
        }
        if self.symbols.definitions[known].binding != elf::STB_WEAK {
            let named = |index: usize| self.library.objects[index].name.clone();
            return Err(ExportError::DuplicateSymbol {
                symbol: String::from_utf8_lossy(symbol.name).into_owned(),
                first: origin.map_or_else(|| "the appended sections".to_owned(), named),
                second: named(object),
            });
        }
        // The strong definition takes the weak one's entry, so that earlier bindings follow.
        self.symbols.definitions[known] = definition(symbol, place);
        self.global.insert(symbol.name, (known, Some(object)));
        Ok(known)
    }

    fn bind_undefined(&mut self, object_index: usize, object: &'a InputObject<'_>) -> Result<(), ExportError> {
        for (symbol_index, symbol) in object.symbols.iter().enumerate() {
            if symbol.place != InputPlace::Undefined || symbol.name.is_empty() {
                continue;
            }
            let binding = match self.global.get(symbol.name) {
                Some(&(id, _)) => Binding::Defined(id),
                None => Binding::Imported(self.import(object, symbol)?),
            };
            self.symbols.bindings[object_index][symbol_index] = binding;
        }
        Ok(())
    }

    fn import(&mut self, object: &InputObject<'_>, symbol: &'a InputSymbol<'_>) -> Result<usize, ExportError> {
        let weak = symbol.binding == elf::STB_WEAK;
        if let Some(&known) = self.imported.get(symbol.name) {
            self.symbols.imports[known].weak &= weak;
            return Ok(known);
        }
        let name = String::from_utf8_lossy(symbol.name);
        let from = SystemLibrary::offering(&name);
        if from.is_none() && !weak && !self.offered_by_host(&name) {
            return Err(ExportError::UndefinedSymbol { symbol: name.into_owned(), object: object.name.clone() });
        }
        let id = self.symbols.imports.len();
        self.symbols.imports.push(Import { name: symbol.name, weak, from });
        self.imported.insert(symbol.name, id);
        Ok(id)
    }

    fn offered_by_host(&self, name: &str) -> bool {
        name.starts_with("TVMFFI")
            || name.starts_with("TVMBackend")
            || self.library.host_symbols.iter().any(|allowed| allowed == name)
    }

    fn push(&mut self, definition: Definition<'a>) -> usize {
        self.symbols.definitions.push(definition);
        self.symbols.definitions.len() - 1
    }
}

fn definition<'a>(symbol: &InputSymbol<'a>, place: SymbolLocation) -> Definition<'a> {
    let visible = matches!(symbol.visibility, elf::STV_DEFAULT | elf::STV_PROTECTED);
    Definition {
        name: symbol.name,
        place,
        size: symbol.size,
        kind: symbol.kind,
        binding: symbol.binding,
        exported: symbol.binding != elf::STB_LOCAL && visible && !symbol.name.is_empty(),
    }
}
