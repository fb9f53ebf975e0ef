//! Makes one relocatable object of several, for linking a model into a program: what `ld -r` does, for the subset of objects
//! that code generators make.
//!
//! ```text
//! kernels0.o   .text  .rodata  .eh_frame ┐
//! kernels1.o   .text  .rodata  .eh_frame ├─▶  model.o   .text .rodata .eh_frame .init_array .data
//! entry.o      .text  .data  .init_array ┘              + the module tree in a section of its own
//! ```
//!
//! Sections of a class follow each other in one, and relocations and symbols move along. Every object is linked with the
//! others here and now, so that only functions of the runtime and of libc stay undefined. Several models may be linked into
//! one program: what a model offers carries its prefix, and everything else becomes local to the object. What is offered is
//! hidden from dynamic linking, so that a model may end up in a shared library too. Objects that are made for that
//! ([`RelocatableObject::for_libraries`]) offer it to dynamic linking, and leave weak symbols, of which a library has one, as they are.
//!
//! # Left out
//!
//! Merging of equal constants, which linkers do as well. Debug sections keep their order, and are joined by their names.

use std::{borrow::Cow, collections::HashMap};

use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, elf,
    write::{Object, Relocation, SectionId, StreamingBuffer, Symbol, SymbolId, SymbolSection},
};

use super::{
    error::ExportError,
    input::{InputObject, InputPlace, InputSymbol},
    layout::SectionClass,
    library::Machine,
};

/// Beyond this, data of x86-64 lies in sections that code reaches by 64-bit addresses.
const LARGE: usize = 1 << 30;

/// Marks such a section.
const SHF_X86_64_LARGE: u64 = 0x1000_0000;

/// A relocatable object in the making.
#[derive(Debug)]
pub struct RelocatableObject<'a> {
    machine: Machine,
    objects: Vec<InputObject<'a>>,
    /// Bytes that ride along: the symbol that objects know them by, and the bytes.
    data: Vec<(String, &'a [u8])>,
    /// Names that stay visible: as the objects have them, and as they are offered.
    offered: HashMap<String, String>,
    for_libraries: bool,
}

impl<'a> RelocatableObject<'a> {
    /// An empty object for `machine`.
    pub fn new(machine: Machine) -> Self {
        Self { machine, objects: Vec::new(), data: Vec::new(), offered: HashMap::new(), for_libraries: false }
    }

    /// What is offered is for the users of the library that the object is linked into.
    pub fn for_libraries(mut self) -> Self {
        self.for_libraries = true;
        self
    }

    /// Adds a relocatable object; `name` is what errors call it.
    pub fn object(&mut self, name: impl Into<String>, bytes: &'a [u8]) -> Result<&mut Self, ExportError> {
        self.objects.push(InputObject::parse(name.into(), bytes, self.machine)?);
        Ok(self)
    }

    /// Adds read-only bytes under a symbol, aligned to a cache line.
    pub fn data(&mut self, symbol: impl Into<String>, bytes: &'a [u8]) -> &mut Self {
        self.data.push((symbol.into(), bytes));
        self
    }

    /// Offers a symbol to the rest of the program under another name, or the same. All others become local.
    pub fn offer(&mut self, symbol: impl Into<String>, name: impl Into<String>) -> &mut Self {
        self.offered.insert(symbol.into(), name.into());
        self
    }

    /// Joins all and writes the object.
    pub fn write_to(&self, out: &mut dyn std::io::Write) -> Result<(), ExportError> {
        let mut joined = Joined::new(self);
        for object in &self.objects {
            joined.place_sections(object);
        }
        joined.place_data();
        let definitions = joined.choose_definitions()?;
        let symbols = joined.define(&definitions)?;
        joined.relocate(&symbols)?;
        let mut out = StreamingBuffer::new(out);
        joined.out.emit(&mut out).map_err(|error| ExportError::Object(error.to_string()))?;
        Ok(out.result()?)
    }
}

/// What is behind a global name: a symbol of an object, or a piece of data.
#[derive(Debug, Clone, Copy)]
enum Definition {
    Symbol { object: usize, symbol: usize },
    Data { section: SectionId, size: u64 },
}

/// Who sees a symbol of the new object, and whether others may define it too.
#[derive(Debug, Clone, Copy)]
struct Visibility {
    scope: SymbolScope,
    weak: bool,
}

impl Visibility {
    const OBJECT: Visibility = Visibility { scope: SymbolScope::Compilation, weak: false };
    const WEAK: Visibility = Visibility { scope: SymbolScope::Dynamic, weak: true };
}

/// A symbol of the new object, and what to add to offsets from the old one.
type NewPlace = (SymbolId, u64);

struct Joined<'l, 'a> {
    from: &'l RelocatableObject<'a>,
    out: Object<'a>,
    /// The joined sections by their names.
    sections: HashMap<Cow<'static, str>, SectionId>,
    /// For each object, where each of its sections went.
    places: Vec<Vec<Option<(SectionId, u64)>>>,
    /// The sections of the appended data.
    data: Vec<SectionId>,
}

impl<'l, 'a> Joined<'l, 'a> {
    fn new(from: &'l RelocatableObject<'a>) -> Self {
        let architecture = match from.machine {
            Machine::X86_64 => Architecture::X86_64,
            Machine::Aarch64 => Architecture::Aarch64,
        };
        let mut out = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
        // Says that the stack need not be executable.
        let note = out.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);
        out.section_mut(note).flags = flags(elf::SHT_PROGBITS, 0);
        Self { from, out, sections: HashMap::new(), places: Vec::new(), data: Vec::new() }
    }

    fn place_sections(&mut self, object: &InputObject<'a>) {
        let mut places = Vec::with_capacity(object.sections.len());
        for section in &object.sections {
            let Some(section) = section else {
                places.push(None);
                continue;
            };
            let id = self.section_of(section.class, section.name);
            let offset = if section.class == SectionClass::Bss {
                self.out.append_section_bss(id, section.size, section.alignment)
            } else {
                self.out.append_section_data(id, section.data, section.alignment)
            };
            places.push(Some((id, offset)));
        }
        self.places.push(places);
    }

    fn section_of(&mut self, class: SectionClass, name: &str) -> SectionId {
        let (joined, kind) = match class {
            SectionClass::Rodata => (".rodata", SectionKind::ReadOnlyData),
            SectionClass::EhFrame => (".eh_frame", SectionKind::ReadOnlyData),
            SectionClass::Text => (".text", SectionKind::Text),
            SectionClass::RelRo => (".data.rel.ro", SectionKind::ReadOnlyDataWithRel),
            SectionClass::InitArray => (".init_array", SectionKind::Data),
            SectionClass::FiniArray => (".fini_array", SectionKind::Data),
            SectionClass::Data => (".data", SectionKind::Data),
            SectionClass::Bss => (".bss", SectionKind::UninitializedData),
            SectionClass::Debug => ("", SectionKind::Debug),
        };
        let joined: Cow<'static, str> =
            if joined.is_empty() { Cow::Owned(name.to_string()) } else { Cow::Borrowed(joined) };
        if let Some(id) = self.sections.get(&joined) {
            return *id;
        }
        let id = self.out.add_section(Vec::new(), joined.as_bytes().to_vec(), kind);
        let list = match class {
            SectionClass::InitArray => Some(elf::SHT_INIT_ARRAY),
            SectionClass::FiniArray => Some(elf::SHT_FINI_ARRAY),
            _ => None,
        };
        if let Some(list) = list {
            self.out.section_mut(id).flags = flags(list, elf::SHF_ALLOC.0 | elf::SHF_WRITE.0);
        }
        self.sections.insert(joined, id);
        id
    }

    fn place_data(&mut self) {
        for (symbol, bytes) in &self.from.data {
            let is_large = self.from.machine == Machine::X86_64 && bytes.len() > LARGE;
            let name = if is_large { format!(".lrodata.{symbol}") } else { format!(".rodata.{symbol}") };
            let id = self.out.add_section(Vec::new(), name.into_bytes(), SectionKind::ReadOnlyData);
            if is_large {
                self.out.section_mut(id).flags = flags(elf::SHT_PROGBITS, elf::SHF_ALLOC.0 | SHF_X86_64_LARGE);
            }
            self.out.set_section_data(id, *bytes, 64);
            self.data.push(id);
        }
    }

    /// What each global name means: a strong definition wins over weak ones, the first weak one otherwise.
    fn choose_definitions(&self) -> Result<HashMap<&'l [u8], Definition>, ExportError> {
        let mut chosen: HashMap<&[u8], (Definition, bool)> = HashMap::new();
        for ((symbol, bytes), section) in self.from.data.iter().zip(&self.data) {
            let definition = Definition::Data { section: *section, size: bytes.len() as u64 };
            chosen.insert(symbol.as_bytes(), (definition, false));
        }
        for (at, object) in self.from.objects.iter().enumerate() {
            for (index, symbol) in object.symbols.iter().enumerate() {
                let is_defined = matches!(symbol.place, InputPlace::Section { .. } | InputPlace::Absolute(_));
                if symbol.binding == elf::STB_LOCAL || !is_defined {
                    continue;
                }
                let is_weak = symbol.binding == elf::STB_WEAK;
                let definition = Definition::Symbol { object: at, symbol: index };
                match chosen.get(symbol.name) {
                    Some(_) if is_weak => {}
                    Some((first, false)) => return Err(self.defined_twice(symbol, *first, object)),
                    Some((_, true)) | None => {
                        chosen.insert(symbol.name, (definition, is_weak));
                    }
                }
            }
        }
        Ok(chosen.into_iter().map(|(name, (definition, _))| (name, definition)).collect())
    }

    fn defined_twice(&self, symbol: &InputSymbol<'_>, first: Definition, second: &InputObject<'_>) -> ExportError {
        let first = match first {
            Definition::Symbol { object, .. } => self.from.objects[object].name.clone(),
            Definition::Data { .. } => "the appended data".to_string(),
        };
        let symbol = String::from_utf8_lossy(symbol.name).into_owned();
        ExportError::DuplicateSymbol { symbol, first, second: second.name.clone() }
    }

    /// Enters all symbols; where each symbol of each object went.
    fn define(
        &mut self,
        definitions: &HashMap<&'l [u8], Definition>,
    ) -> Result<Vec<Vec<Option<NewPlace>>>, ExportError> {
        let mut globals: HashMap<&[u8], SymbolId> = HashMap::new();
        let mut all = Vec::with_capacity(self.from.objects.len());
        for (at, object) in self.from.objects.iter().enumerate() {
            let mut symbols = Vec::with_capacity(object.symbols.len());
            for (index, symbol) in object.symbols.iter().enumerate() {
                symbols.push(match (symbol.place, symbol.binding) {
                    (InputPlace::Dropped, _) => None,
                    _ if symbol.name.is_empty() => self.section_symbol(at, symbol),
                    (_, elf::STB_LOCAL) => self.defined_symbol(at, symbol, symbol.name.to_vec(), Visibility::OBJECT),
                    _ => Some((self.global(symbol.name, at, index, definitions, &mut globals)?, 0)),
                });
            }
            all.push(symbols);
        }
        for (symbol, _) in &self.from.data {
            self.global(symbol.as_bytes(), usize::MAX, 0, definitions, &mut globals)?;
        }
        Ok(all)
    }

    /// The symbol of the section that an unnamed symbol marks, and how far into it that is.
    fn section_symbol(&mut self, object: usize, symbol: &InputSymbol<'_>) -> Option<NewPlace> {
        let InputPlace::Section { index, offset } = symbol.place else { return None };
        let (section, start) = self.places.get(object)?.get(index).copied().flatten()?;
        Some((self.out.section_symbol(section), start + offset))
    }

    fn global(
        &mut self,
        name: &'l [u8],
        at: usize,
        index: usize,
        definitions: &HashMap<&'l [u8], Definition>,
        globals: &mut HashMap<&'l [u8], SymbolId>,
    ) -> Result<SymbolId, ExportError> {
        if let Some(known) = globals.get(name) {
            return Ok(*known);
        }
        let shown = String::from_utf8_lossy(name);
        let offered = self.from.offered.get(shown.as_ref()).cloned();
        let visibility = if offered.is_some() { self.visibility_of_offered() } else { Visibility::OBJECT };
        let new_name = offered.map_or_else(|| name.to_vec(), String::into_bytes);
        let id = match definitions.get(name).copied() {
            Some(Definition::Data { section, size }) => {
                Some(self.add(new_name, 0, size, SymbolKind::Data, SymbolSection::Section(section), visibility))
            }
            Some(Definition::Symbol { object, symbol }) => {
                let from = self.from.objects.get(object).and_then(|object| object.symbols.get(symbol));
                let stays = |from: &&InputSymbol<'_>| self.from.for_libraries && from.binding == elf::STB_WEAK;
                let visibility = if from.as_ref().is_some_and(stays) { Visibility::WEAK } else { visibility };
                from.and_then(|from| self.defined_symbol(object, from, new_name, visibility)).map(|(id, _)| id)
            }
            None => {
                let weak = self.from.objects.get(at).and_then(|object| object.symbols.get(index));
                let weak = weak.is_some_and(|symbol| symbol.binding == elf::STB_WEAK);
                Some(self.undefined(new_name, weak))
            }
        };
        let id = id.ok_or_else(|| ExportError::Object(format!("symbol `{shown}` is nowhere")))?;
        globals.insert(name, id);
        Ok(id)
    }

    fn defined_symbol(
        &mut self,
        object: usize,
        symbol: &InputSymbol<'_>,
        name: Vec<u8>,
        visibility: Visibility,
    ) -> Option<NewPlace> {
        let (section, value) = match symbol.place {
            InputPlace::Absolute(value) => (SymbolSection::Absolute, value),
            InputPlace::Section { index, offset } => {
                let (section, start) = self.places.get(object)?.get(index).copied().flatten()?;
                (SymbolSection::Section(section), start + offset)
            }
            InputPlace::Undefined | InputPlace::Dropped => return None,
        };
        let kind = match symbol.kind {
            elf::STT_FUNC => SymbolKind::Text,
            elf::STT_OBJECT => SymbolKind::Data,
            _ => SymbolKind::Label,
        };
        Some((self.add(name, value, symbol.size, kind, section, visibility), 0))
    }

    fn add(
        &mut self,
        name: Vec<u8>,
        value: u64,
        size: u64,
        kind: SymbolKind,
        section: SymbolSection,
        Visibility { scope, weak }: Visibility,
    ) -> SymbolId {
        let symbol_type = if kind == SymbolKind::Text { elf::STT_FUNC } else { elf::STT_OBJECT };
        let flags = if weak {
            // Code finds it by its distance, which linkers allow where no other library can take its place.
            SymbolFlags::Elf {
                st_info: elf::SymbolInfo::new(elf::STB_WEAK, symbol_type),
                st_other: elf::STV_PROTECTED.into(),
            }
        } else {
            SymbolFlags::None
        };
        self.out.add_symbol(Symbol { name, value, size, kind, scope, weak, section, flags })
    }

    fn visibility_of_offered(&self) -> Visibility {
        // In ELF, the scope of a whole link is a global symbol that is hidden.
        let scope = if self.from.for_libraries { SymbolScope::Dynamic } else { SymbolScope::Linkage };
        Visibility { scope, weak: false }
    }

    fn undefined(&mut self, name: Vec<u8>, weak: bool) -> SymbolId {
        self.out.add_symbol(Symbol {
            name,
            value: 0,
            size: 0,
            kind: SymbolKind::Unknown,
            scope: SymbolScope::Unknown,
            weak,
            section: SymbolSection::Undefined,
            flags: SymbolFlags::None,
        })
    }

    fn relocate(&mut self, symbols: &[Vec<Option<NewPlace>>]) -> Result<(), ExportError> {
        for ((object, places), symbols) in self.from.objects.iter().zip(&self.places).zip(symbols) {
            for (section, place) in object.sections.iter().zip(places) {
                let (Some(section), Some((id, start))) = (section, place) else { continue };
                for relocation in &section.relocations {
                    let Some((symbol, offset)) = symbols.get(relocation.symbol).copied().flatten() else {
                        return Err(ExportError::Relocation {
                            object: object.name.clone(),
                            section: section.name.to_string(),
                            kind: relocation.kind,
                            symbol: object.symbol_name(relocation.symbol),
                            reason: "refers to nothing that is kept",
                        });
                    };
                    let moved = Relocation {
                        offset: start + relocation.offset,
                        symbol,
                        addend: relocation.addend.wrapping_add(offset as i64),
                        flags: RelocationFlags::Elf { r_type: elf::RelocationType(relocation.kind) },
                    };
                    let added = self.out.add_relocation(*id, moved);
                    added.map_err(|error| ExportError::Object(error.to_string()))?;
                }
            }
        }
        Ok(())
    }
}

fn flags(kind: elf::SectionType, flags: u64) -> SectionFlags {
    SectionFlags::Elf { sh_type: kind, sh_flags: elf::SectionFlags(flags) }
}
