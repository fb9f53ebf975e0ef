//! Reads the relocatable objects that LLVM makes.

use std::ops::Range;

use wasmparser::{
    FuncType, KnownCustom, Linking, LinkingSectionReader, Parser, Payload, RelocSectionReader, RelocationEntry,
    SymbolFlags, SymbolInfo, TypeRef,
};

use super::{ExportError, malformed, unreadable};

/// An object, taken apart.
#[derive(Debug)]
pub(super) struct Object<'a> {
    pub name: String,
    pub types: Vec<FuncType>,
    /// The functions that are here, behind the imported ones in the order of indices.
    pub functions: Vec<Function<'a>>,
    pub segments: Vec<Segment<'a>>,
    pub symbols: Vec<Symbol<'a>>,
    /// Functions to be called before the program begins, by their symbols, in order.
    pub constructors: Vec<u32>,
}

/// A function that an object has.
#[derive(Debug)]
pub(super) struct Function<'a> {
    pub ty: u32,
    /// Local variables and instructions.
    pub body: &'a [u8],
    /// Where the body's numbers depend on where things end up; offsets are from its beginning.
    pub relocations: Vec<RelocationEntry>,
}

/// A piece of data.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub bytes: &'a [u8],
    pub alignment: u64,
    /// As those of a function.
    pub relocations: Vec<RelocationEntry>,
}

/// What a relocation refers to.
#[derive(Debug)]
pub(super) enum Symbol<'a> {
    /// A function: its type, and its place among the object's functions if it is there.
    Function { name: &'a str, ty: u32, own: Option<usize>, flags: SymbolFlags },
    /// Data: where it is in a segment, if it is in one of the object's.
    Data { name: &'a str, place: Option<(usize, u64)>, flags: SymbolFlags },
    /// A global from elsewhere.
    Global { name: &'a str },
    /// What only sections refer to that are dropped.
    Other,
}

/// What is collected while the sections go by.
#[derive(Default)]
struct Sections<'a> {
    types: Vec<FuncType>,
    /// The functions from elsewhere: name and index of the type.
    imported: Vec<(&'a str, u32)>,
    /// The globals from elsewhere; objects of kernels have none of their own.
    globals: Vec<&'a str>,
    declared: Vec<u32>,
    /// Bodies, and where they are in the file.
    bodies: Vec<(&'a [u8], Range<u64>)>,
    data: Vec<(&'a [u8], Range<u64>)>,
    /// The beginning of each section's content in the file, in the order in which relocations number sections.
    begins: Vec<u64>,
    alignments: Vec<u64>,
    symbols: Vec<SymbolInfo<'a>>,
    constructors: Vec<(u32, u32)>,
    is_relocatable: bool,
    relocations: Vec<(u32, Vec<RelocationEntry>)>,
}

impl<'a> Object<'a> {
    pub fn parse(name: &str, bytes: &'a [u8]) -> Result<Self, ExportError> {
        let mut sections = Sections::default();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(malformed(name))?;
            if let Some((_, range)) = payload.as_section() {
                sections.begins.push(range.start);
            }
            sections.read(payload).map_err(malformed(name))?;
        }
        sections.assemble(name)
    }
}

impl<'a> Sections<'a> {
    fn read(&mut self, payload: Payload<'a>) -> wasmparser::Result<()> {
        match payload {
            Payload::TypeSection(types) => {
                self.types = types.into_iter_err_on_gc_types().collect::<Result<_, _>>()?;
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    match import.ty {
                        TypeRef::Func(ty) | TypeRef::FuncExact(ty) => self.imported.push((import.name, ty)),
                        TypeRef::Global(_) => self.globals.push(import.name),
                        // The one memory and the one table.
                        TypeRef::Memory(_) | TypeRef::Table(_) | TypeRef::Tag(_) => {}
                    }
                }
            }
            Payload::FunctionSection(functions) => {
                self.declared = functions.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::CodeSectionEntry(body) => self.bodies.push((body.as_bytes(), body.range())),
            Payload::DataSection(data) => {
                for segment in data {
                    let segment = segment?;
                    let end = segment.range.end;
                    self.data.push((segment.data, end - segment.data.len() as u64..end));
                }
            }
            Payload::CustomSection(custom) => match custom.as_known() {
                KnownCustom::Linking(linking) => self.linking(linking)?,
                KnownCustom::Reloc(relocations) => self.relocations(&relocations)?,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn linking(&mut self, linking: LinkingSectionReader<'a>) -> wasmparser::Result<()> {
        self.is_relocatable = true;
        for part in linking {
            match part? {
                Linking::SegmentInfo(segments) => {
                    for segment in segments {
                        self.alignments.push(1 << segment?.alignment.min(16));
                    }
                }
                Linking::SymbolTable(symbols) => self.symbols = symbols.into_iter().collect::<Result<_, _>>()?,
                Linking::InitFuncs(functions) => {
                    for function in functions {
                        let function = function?;
                        self.constructors.push((function.priority, function.symbol_index));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn relocations(&mut self, relocations: &RelocSectionReader<'a>) -> wasmparser::Result<()> {
        let entries = relocations.entries().into_iter().collect::<Result<_, _>>()?;
        self.relocations.push((relocations.section_index(), entries));
        Ok(())
    }

    fn assemble(mut self, name: &str) -> Result<Object<'a>, ExportError> {
        if !self.is_relocatable {
            return Err(unreadable(name, "it is no relocatable object, or ends early"));
        }
        if self.declared.len() != self.bodies.len() || self.alignments.len() < self.data.len() {
            return Err(unreadable(name, "functions or data are declared and not there"));
        }
        let mut functions = Vec::with_capacity(self.bodies.len());
        for (ty, (body, place)) in self.declared.iter().zip(&self.bodies) {
            functions.push(Function { ty: *ty, body, relocations: self.take_relocations(place) });
        }
        let mut segments = Vec::with_capacity(self.data.len());
        for ((bytes, place), alignment) in self.data.iter().zip(&self.alignments) {
            segments.push(Segment { bytes, alignment: *alignment, relocations: self.take_relocations(place) });
        }
        let mut symbols = Vec::with_capacity(self.symbols.len());
        for symbol in &self.symbols {
            symbols.push(match *symbol {
                SymbolInfo::Func { flags, index, name } => self.function(flags, index, name),
                SymbolInfo::Data { flags, name, symbol } => {
                    let place = symbol.map(|symbol| (symbol.index as usize, u64::from(symbol.offset)));
                    let is_there = place.is_none_or(|(segment, _)| segment < segments.len());
                    is_there.then_some(Symbol::Data { name, place, flags })
                }
                SymbolInfo::Global { index, .. } => {
                    self.globals.get(index as usize).map(|name| Symbol::Global { name })
                }
                _ => Some(Symbol::Other),
            });
        }
        let wrong = || unreadable(name, "a symbol names what is not there");
        let symbols = symbols.into_iter().map(|symbol| symbol.ok_or_else(wrong));
        self.constructors.sort_by_key(|(priority, _)| *priority);
        Ok(Object {
            name: name.to_string(),
            types: self.types,
            functions,
            segments,
            symbols: symbols.collect::<Result<_, _>>()?,
            constructors: self.constructors.into_iter().map(|(_, symbol)| symbol).collect(),
        })
    }

    /// The symbol of a function: one from elsewhere goes by the name of its import.
    fn function(&self, flags: SymbolFlags, index: u32, name: Option<&'a str>) -> Option<Symbol<'a>> {
        let index = index as usize;
        if let Some((import, ty)) = self.imported.get(index) {
            return Some(Symbol::Function { name: name.unwrap_or(import), ty: *ty, own: None, flags });
        }
        let own = index - self.imported.len();
        let ty = *self.declared.get(own)?;
        Some(Symbol::Function { name: name?, ty, own: Some(own), flags })
    }

    /// The relocations within a part of the file, with offsets from its beginning, in order.
    fn take_relocations(&self, part: &Range<u64>) -> Vec<RelocationEntry> {
        let mut found = Vec::new();
        for (section, entries) in &self.relocations {
            let Some(begin) = self.begins.get(*section as usize) else { continue };
            // They are sorted, as a linker wants them.
            let first = entries.partition_point(|entry| begin + u64::from(entry.offset) < part.start);
            let rest = entries.get(first..).unwrap_or_default();
            for entry in rest.iter().take_while(|entry| begin + u64::from(entry.offset) < part.end) {
                // The part begins behind the section, and its bytes are fewer than 4 GiB. Entries of a damaged file are not sorted: one in front of the
                // part is far behind its end, where whoever applies it refuses it.
                let offset = (begin + u64::from(entry.offset)).wrapping_sub(part.start) as u32;
                found.push(RelocationEntry { offset, ..*entry });
            }
        }
        found
    }
}
