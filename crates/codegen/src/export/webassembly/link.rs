//! Puts the runtime, objects and data together.

use indexmap::IndexMap;
use relaxide_ffi::SavedBytes;
use wasmparser::{ExternalKind, FuncType, RelocationEntry, RelocationType};

use super::bytes::{Id, Module, counted, function_type, signed, unsigned};
use super::object::Object;
use super::reachability::{TRAP, reached};
use super::runtime::{PAGE, Runtime};
use super::symbols::{Meaning, Symbols, type_of};
use super::{ExportError, unreadable};

/// Kernels expect tensors, and so data, to begin at a multiple of this.
const DATA_ALIGNMENT: u64 = 64;
/// The end of what an address of 32 bits reaches.
const MEMORY_END: u64 = 1 << 32;
/// The export of the memory.
const MEMORY: &str = "memory";

/// A module in the making.
pub struct WebAssemblyModule<'a> {
    runtime: Runtime<'a>,
    objects: Vec<Object<'a>>,
    data: Vec<(String, SavedBytes)>,
    first: Vec<String>,
    offered: Vec<String>,
    withheld: Vec<String>,
}

impl<'a> WebAssemblyModule<'a> {
    /// A module with a runtime and nothing else.
    pub fn new(runtime: &'a [u8]) -> Result<Self, ExportError> {
        let runtime = Runtime::parse(runtime)?;
        Ok(Self {
            runtime,
            objects: Vec::new(),
            data: Vec::new(),
            first: Vec::new(),
            offered: Vec::new(),
            withheld: Vec::new(),
        })
    }

    /// Adds a relocatable object; `name` is what errors call it.
    pub fn object(&mut self, name: impl AsRef<str>, bytes: &'a [u8]) -> Result<&mut Self, ExportError> {
        self.objects.push(Object::parse(name.as_ref(), bytes)?);
        Ok(self)
    }

    /// Adds read-only bytes under a symbol.
    pub fn data(&mut self, symbol: impl Into<String>, bytes: SavedBytes) -> &mut Self {
        self.data.push((symbol.into(), bytes));
        self
    }

    /// Has a function of the runtime called before the constructors of the objects.
    pub fn begin_with(&mut self, function: impl Into<String>) -> &mut Self {
        self.first.push(function.into());
        self
    }

    /// Offers the functions of the runtime whose names begin like this to whoever loads the module.
    pub fn offer(&mut self, prefix: impl Into<String>) -> &mut Self {
        self.offered.push(prefix.into());
        self
    }

    /// Offers none of those that begin like this.
    pub fn withhold(&mut self, prefix: impl Into<String>) -> &mut Self {
        self.withheld.push(prefix.into());
        self
    }

    /// Links everything: the bytes of the module.
    pub fn link(&self) -> Result<SavedBytes, ExportError> {
        let symbols = Symbols::of(&self.objects, &self.data)?;
        let mut linked = Linked::place(self)?;
        let start = linked.start(self, &symbols)?;
        let mut code = Vec::new();
        let mut segments = Vec::new();
        for (number, object) in self.objects.iter().enumerate() {
            for function in &object.functions {
                let code_part = Relocatable { bytes: function.body, relocations: &function.relocations, address: None };
                let body = linked.relocated(self, &symbols, number, code_part)?;
                counted(&mut code, &body);
            }
            for (segment, address) in object.segments.iter().zip(&linked.segments[number].clone()) {
                let data_part =
                    Relocatable { bytes: segment.bytes, relocations: &segment.relocations, address: Some(*address) };
                let bytes = linked.relocated(self, &symbols, number, data_part)?;
                segments.push((*address, bytes));
            }
        }
        counted(&mut code, &start);
        linked.write(self, &code, &segments)
    }
}

/// A function's code, or a segment's data, before it is relocated.
#[derive(Clone, Copy)]
struct Relocatable<'a> {
    bytes: &'a [u8],
    relocations: &'a [RelocationEntry],
    /// Where data ends up.
    address: Option<u64>,
}

/// Where things are, and what was found to be needed while relocating.
struct Linked {
    types: Vec<FuncType>,
    /// The type of each function of the objects, and of the one that starts the module.
    functions: Vec<u32>,
    /// The index of each object's first function.
    first: Vec<u32>,
    /// The address of each segment of each object.
    segments: Vec<Vec<u64>>,
    /// The address of the data that was given.
    given: Vec<u64>,
    /// Where all data ends.
    end: u64,
    /// The functions whose address is taken, with their places in the table.
    table: IndexMap<u32, u32>,
    /// The functions of the runtime that are called.
    called: Vec<u32>,
}

impl Linked {
    fn place(module: &WebAssemblyModule<'_>) -> Result<Self, ExportError> {
        let mut linked = Self {
            types: module.runtime.types.clone(),
            functions: Vec::new(),
            first: Vec::new(),
            segments: Vec::new(),
            given: Vec::new(),
            end: module.runtime.pages * PAGE,
            table: IndexMap::new(),
            called: Vec::new(),
        };
        for object in &module.objects {
            linked.first.push((module.runtime.functions.len() + linked.functions.len()) as u32);
            for function in &object.functions {
                let ty = linked.type_of(object, function.ty)?;
                linked.functions.push(ty);
            }
            let addresses = object.segments.iter();
            let addresses = addresses.map(|segment| linked.room(segment.bytes.len(), segment.alignment));
            let addresses = addresses.collect::<Result<_, _>>()?;
            linked.segments.push(addresses);
        }
        for (_, bytes) in &module.data {
            let address = linked.room(bytes.len(), DATA_ALIGNMENT)?;
            linked.given.push(address);
        }
        Ok(linked)
    }

    /// Takes memory behind what is taken.
    fn room(&mut self, bytes: usize, alignment: u64) -> Result<u64, ExportError> {
        let begin = self.end.next_multiple_of(alignment);
        self.end = begin + bytes as u64;
        if self.end > MEMORY_END {
            return Err(ExportError::TooLarge("a WebAssembly module addresses 4 GiB; compile with the weights apart"));
        }
        Ok(begin)
    }

    /// The index of an object's type in the module.
    fn type_of(&mut self, object: &Object<'_>, ty: u32) -> Result<u32, ExportError> {
        let ty =
            object.types.get(ty as usize).ok_or_else(|| unreadable(&object.name, format!("there is no type {ty}")))?;
        Ok(self.type_index(ty))
    }

    fn type_index(&mut self, ty: &FuncType) -> u32 {
        let known = self.types.iter().position(|known| known == ty);
        let index = known.unwrap_or_else(|| {
            self.types.push(ty.clone());
            self.types.len() - 1
        });
        index as u32
    }

    /// The body of the function that starts the module, and its type among the others'.
    fn start(&mut self, module: &WebAssemblyModule<'_>, symbols: &Symbols<'_>) -> Result<Vec<u8>, ExportError> {
        let mut calls = Vec::new();
        for name in &module.first {
            let function = module.runtime.function(name);
            let missing = || ExportError::NotInRuntime { symbol: name.clone(), object: "the start".into() };
            calls.push(Meaning::Runtime(function.ok_or_else(missing)?));
        }
        for (number, object) in module.objects.iter().enumerate() {
            for symbol in &object.constructors {
                calls.push(symbols.meaning(number, *symbol, &module.objects, &module.runtime)?);
            }
        }
        let nothing = FuncType::new([], []);
        let mut body = vec![0];
        for call in calls {
            if type_of(call, &module.objects, &module.runtime) != Some(&nothing) {
                return Err(unreadable("the start", "a function takes or gives something"));
            }
            body.push(0x10);
            unsigned(&mut body, u64::from(self.function_index(call).unwrap_or(0)));
        }
        body.push(0x0b);
        let ty = self.type_index(&nothing);
        self.functions.push(ty);
        Ok(body)
    }

    /// The index of a function, which is called from now on.
    fn function_index(&mut self, meaning: Meaning) -> Option<u32> {
        match meaning {
            Meaning::Runtime(index) => {
                self.called.push(index);
                Some(index)
            }
            Meaning::Function { object, function } => Some(self.first.get(object)? + function as u32),
            _ => None,
        }
    }

    fn address(&self, meaning: Meaning) -> Option<u64> {
        match meaning {
            Meaning::Data { object, segment, offset } => Some(self.segments.get(object)?.get(segment)? + offset),
            Meaning::Given(index) => self.given.get(index).copied(),
            Meaning::Nothing => Some(0),
            _ => None,
        }
    }

    /// What a relocation puts in its place.
    fn value(
        &mut self,
        module: &WebAssemblyModule<'_>,
        symbols: &Symbols<'_>,
        number: usize,
        entry: &RelocationEntry,
        part: Relocatable<'_>,
    ) -> Result<i64, ExportError> {
        use RelocationType as R;
        if entry.ty == R::TypeIndexLeb {
            return self.type_of(&module.objects[number], entry.index).map(i64::from);
        }
        let meaning = symbols.meaning(number, entry.index, &module.objects, &module.runtime)?;
        let value = match entry.ty {
            R::FunctionIndexLeb | R::FunctionIndexI32 => self.function_index(meaning).map(i64::from),
            R::TableIndexSleb | R::TableIndexI32 if meaning == Meaning::Nothing => Some(0),
            R::TableIndexSleb | R::TableIndexI32 => self.function_index(meaning).map(|function| {
                let next = module.runtime.table as u32 + self.table.len() as u32;
                i64::from(*self.table.entry(function).or_insert(next))
            }),
            R::MemoryAddrLeb | R::MemoryAddrSleb | R::MemoryAddrI32 => {
                self.address(meaning).map(|address| (address as i64).wrapping_add(entry.addend))
            }
            // How far it is from the place that says so: tables of constants are written like this.
            R::MemoryAddrLocrelI32 => self.address(meaning).zip(part.address).map(|(address, begin)| {
                (address as i64).wrapping_add(entry.addend) - (begin as i64 + i64::from(entry.offset))
            }),
            R::GlobalIndexLeb | R::GlobalIndexI32 => match meaning {
                Meaning::Global(index) => Some(i64::from(index)),
                _ => None,
            },
            R::TableNumberLeb => Some(0),
            _ => None,
        };
        value.ok_or_else(|| {
            let reason = format!("a relocation {:?} against {meaning:?} is not made here", entry.ty);
            unreadable(&module.objects[number].name, reason)
        })
    }

    /// Code or data with its relocations made. Numbers of variable length are written as short as they are.
    fn relocated(
        &mut self,
        module: &WebAssemblyModule<'_>,
        symbols: &Symbols<'_>,
        number: usize,
        part: Relocatable<'_>,
    ) -> Result<Vec<u8>, ExportError> {
        use RelocationType as R;
        let (bytes, mut out, mut at) = (part.bytes, Vec::with_capacity(part.bytes.len()), 0);
        for entry in part.relocations {
            let begin = entry.offset as usize;
            let outside = || unreadable(&module.objects[number].name, "relocations overlap or lie outside");
            out.extend_from_slice(bytes.get(at..begin).ok_or_else(outside)?);
            at = begin + entry.ty.extent();
            let value = self.value(module, symbols, number, entry, part)?;
            match entry.ty {
                R::TableIndexI32
                | R::MemoryAddrI32
                | R::MemoryAddrLocrelI32
                | R::GlobalIndexI32
                | R::FunctionIndexI32 => {
                    out.extend((value as u32).to_le_bytes());
                }
                // An address beyond 2 GiB is a negative number there.
                R::TableIndexSleb | R::MemoryAddrSleb => signed(&mut out, i64::from(value as u32 as i32)),
                _ => unsigned(&mut out, u64::from(value as u32)),
            }
        }
        let outside = || unreadable(&module.objects[number].name, "a relocation lies outside");
        out.extend_from_slice(bytes.get(at..).ok_or_else(outside)?);
        Ok(out)
    }

    fn write(
        &self,
        module: &WebAssemblyModule<'_>,
        code: &[u8],
        segments: &[(u64, Vec<u8>)],
    ) -> Result<SavedBytes, ExportError> {
        let runtime = &module.runtime;
        let mut out = Module::new();
        let mut types = Vec::new();
        self.types.iter().try_for_each(|ty| function_type(&mut types, ty))?;
        out.vector(Id::Type, self.types.len(), &types);
        let mut functions = Vec::new();
        let all = runtime.functions.iter().chain(&self.functions);
        all.for_each(|ty| unsigned(&mut functions, u64::from(*ty)));
        let count = runtime.functions.len() + self.functions.len();
        out.vector(Id::Function, count, &functions);
        let mut table = vec![0x70, 0];
        unsigned(&mut table, runtime.table + self.table.len() as u64);
        out.vector(Id::Table, 1, &table);
        let mut memory = vec![0];
        unsigned(&mut memory, self.end.div_ceil(PAGE));
        out.vector(Id::Memory, 1, &memory);
        out.vector(Id::Global, runtime.globals.count, runtime.globals.items);
        let offered = self.exports(module, &mut out);
        let mut start = Vec::new();
        unsigned(&mut start, count as u64 - 1);
        out.section(Id::Start, SavedBytes::from(start));
        self.elements(runtime, &mut out);
        let is_reached = reached(&runtime.calls, offered.iter().chain(&self.called).chain(&runtime.in_table).copied());
        let mut bodies = Vec::new();
        for (body, is_reached) in runtime.bodies.iter().zip(is_reached) {
            counted(&mut bodies, if is_reached { body } else { TRAP });
        }
        bodies.extend_from_slice(code);
        out.vector(Id::Code, count, &bodies);
        self.data(module, segments, &mut out);
        Ok(out.finish())
    }

    /// Writes what is offered: the memory, and functions of the runtime, whose indices are given back.
    fn exports(&self, module: &WebAssemblyModule<'_>, out: &mut Module) -> Vec<u32> {
        let (mut exports, mut functions, mut count) = (Vec::new(), Vec::new(), 0);
        for name in &module.runtime.exported {
            let Some((kind, index)) = module.runtime.exports.get(name) else { continue };
            let begins = |prefixes: &[String]| prefixes.iter().any(|prefix| name.starts_with(prefix));
            let is_offered = begins(&module.offered) && !begins(&module.withheld);
            let number = match kind {
                ExternalKind::Func if is_offered => 0,
                ExternalKind::Memory if *name == MEMORY => 2,
                _ => continue,
            };
            if number == 0 {
                functions.push(*index);
            }
            counted(&mut exports, name.as_bytes());
            exports.push(number);
            unsigned(&mut exports, u64::from(*index));
            count += 1;
        }
        out.vector(Id::Export, count, &exports);
        functions
    }

    /// Writes what the table holds.
    fn elements(&self, runtime: &Runtime<'_>, out: &mut Module) {
        let mut elements = runtime.elements.items.to_vec();
        elements.extend([0, 0x41]);
        signed(&mut elements, runtime.table as i64);
        elements.push(0x0b);
        unsigned(&mut elements, self.table.len() as u64);
        self.table.keys().for_each(|function| unsigned(&mut elements, u64::from(*function)));
        out.vector(Id::Element, runtime.elements.count + 1, &elements);
    }

    /// Writes what memory holds from the start. Zeros are there without.
    fn data(&self, module: &WebAssemblyModule<'_>, segments: &[(u64, Vec<u8>)], out: &mut Module) {
        let (mut content, mut items) = (SavedBytes::default(), SavedBytes::from(module.runtime.data.items.to_vec()));
        let mut count = module.runtime.data.count;
        let mut head = |address: u64, bytes: usize| {
            let mut head = vec![0, 0x41];
            signed(&mut head, i64::from(address as u32 as i32));
            head.push(0x0b);
            unsigned(&mut head, bytes as u64);
            count += 1;
            head
        };
        for (address, bytes) in segments.iter().filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0)) {
            items.push(&head(*address, bytes.len()));
            items.push(bytes);
        }
        for (address, (_, bytes)) in self.given.iter().zip(&module.data) {
            items.push(&head(*address, bytes.len()));
            items.append(bytes.clone());
        }
        let mut number = Vec::new();
        unsigned(&mut number, count as u64);
        content.push(&number);
        content.append(items);
        out.section(Id::Data, content);
    }
}
