//! Reads the runtime: a finished module that imports nothing.

use std::collections::HashMap;

use wasmparser::{
    ElementItems, ElementKind, ExternalKind, FuncType, Operator, Parser, Payload, RefType, TableInit, TableType,
};

use super::reachability::CalledFunctions;
use super::{ExportError, malformed, unreadable};

/// How large a page of memory is.
pub(super) const PAGE: u64 = 1 << 16;

/// What errors call it.
const NAME: &str = "the WebAssembly runtime";

/// The runtime, taken apart. Sections that stay as they are, but for what comes behind them, are kept as bytes.
pub(super) struct Runtime<'a> {
    pub types: Vec<FuncType>,
    /// The type of each function.
    pub functions: Vec<u32>,
    /// How many places of the table are taken, from the first.
    pub table: u64,
    /// How many pages of memory are taken, from the first.
    pub pages: u64,
    pub globals: Raw<'a>,
    pub elements: Raw<'a>,
    pub data: Raw<'a>,
    /// What it offers, by name.
    pub exports: HashMap<&'a str, (ExternalKind, u32)>,
    /// The exports in their order.
    pub exported: Vec<&'a str>,
    pub bodies: Vec<&'a [u8]>,
    /// What each function calls.
    pub calls: Vec<CalledFunctions>,
    /// The functions in the table.
    pub in_table: Vec<u32>,
}

/// The items of a section, as bytes, and how many they are.
#[derive(Clone, Copy, Default)]
pub(super) struct Raw<'a> {
    pub count: usize,
    pub items: &'a [u8],
}

impl<'a> Runtime<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ExportError> {
        let mut runtime = Runtime {
            types: Vec::new(),
            functions: Vec::new(),
            table: 0,
            pages: 0,
            globals: Raw::default(),
            elements: Raw::default(),
            data: Raw::default(),
            exports: HashMap::new(),
            exported: Vec::new(),
            bodies: Vec::new(),
            calls: Vec::new(),
            in_table: Vec::new(),
        };
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(malformed(NAME))?;
            runtime.check(&payload)?;
            runtime.read(payload, bytes).map_err(malformed(NAME))?;
        }
        if runtime.bodies.len() != runtime.functions.len() || runtime.table == 0 || runtime.pages == 0 {
            return Err(unreadable(NAME, "it has no table, no memory, or functions without a body"));
        }
        Ok(runtime)
    }

    /// What a function is offered as.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.exports.get(name).filter(|(kind, _)| *kind == ExternalKind::Func).map(|(_, index)| *index)
    }

    /// What a global is offered as.
    pub fn global(&self, name: &str) -> Option<u32> {
        self.exports.get(name).filter(|(kind, _)| *kind == ExternalKind::Global).map(|(_, index)| *index)
    }

    /// The type of a function by its index.
    pub fn type_of(&self, function: u32) -> Option<&FuncType> {
        self.types.get(*self.functions.get(function as usize)? as usize)
    }

    fn check(&self, payload: &Payload<'_>) -> Result<(), ExportError> {
        match payload {
            Payload::ImportSection(imports) if imports.count() > 0 => Err(unreadable(NAME, "it imports something")),
            Payload::StartSection { .. } => Err(unreadable(NAME, "it starts by itself")),
            Payload::TagSection(_) => Err(unreadable(NAME, "it throws exceptions")),
            _ => Ok(()),
        }
    }

    fn read(&mut self, payload: Payload<'a>, file: &'a [u8]) -> wasmparser::Result<()> {
        match payload {
            Payload::TypeSection(types) => {
                self.types = types.into_iter_err_on_gc_types().collect::<Result<_, _>>()?;
            }
            Payload::FunctionSection(functions) => {
                self.functions = functions.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    let table = table?;
                    let is_plain = matches!(table.init, TableInit::RefNull)
                        && matches!(table.ty, TableType { element_type: RefType::FUNCREF, table64: false, .. });
                    self.table = if is_plain { table.ty.initial } else { 0 };
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.pages = memory?.initial;
                }
            }
            Payload::GlobalSection(globals) => self.globals = raw(globals.count(), globals.range(), file),
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    self.exports.insert(export.name, (export.kind, export.index));
                    self.exported.push(export.name);
                }
            }
            Payload::ElementSection(elements) => {
                self.elements = raw(elements.count(), elements.range(), file);
                for element in elements {
                    let element = element?;
                    if let (ElementKind::Active { .. }, ElementItems::Functions(functions)) =
                        (element.kind, element.items)
                    {
                        self.in_table.extend(functions.into_iter().collect::<Result<Vec<_>, _>>()?);
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                let mut calls = CalledFunctions::default();
                for operator in body.get_operators_reader()? {
                    match operator? {
                        Operator::Call { function_index }
                        | Operator::ReturnCall { function_index }
                        | Operator::RefFunc { function_index } => calls.add(function_index),
                        _ => {}
                    }
                }
                self.calls.push(calls);
                self.bodies.push(body.as_bytes());
            }
            Payload::DataSection(data) => self.data = raw(data.count(), data.range(), file),
            _ => {}
        }
        Ok(())
    }
}

/// The items of a section, without the number in front of them.
fn raw(count: u32, range: std::ops::Range<u64>, file: &[u8]) -> Raw<'_> {
    let section = file.get(range.start as usize..range.end as usize).unwrap_or_default();
    let head = section.iter().position(|byte| byte & 0x80 == 0).map_or(0, |at| at + 1);
    Raw { count: count as usize, items: section.get(head..).unwrap_or_default() }
}
