//! One LLVM module in the making: what functions share, as text.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write as _,
};

use super::{debug::Unit, registration::is_known};
use crate::shared::ENTRY_PREFIX;
use crate::target::Architecture;

/// The text of a module, collected piece by piece.
#[derive(Debug, Default)]
pub(crate) struct ModuleText {
    functions: String,
    /// Declarations and other globals by name, so that each is written once and in one order.
    globals: BTreeMap<String, String>,
    strings: HashMap<String, usize>,
    metadata: Vec<String>,
    foreign: Vec<String>,
    slots: BTreeSet<String>,
    /// Helper functions that were written.
    written: HashSet<String>,
    /// Entries of kernels that are called.
    entries: BTreeSet<String>,
    /// Entries of kernels that are here.
    own_entries: HashSet<String>,
    fresh: usize,
    notes_statements: bool,
    /// Lines of named metadata.
    named: Vec<String>,
    /// What line information is about, if there is any.
    pub unit: Option<Unit>,
    /// Whether addresses have 32 bits.
    short_addresses: bool,
    helpers: Helpers,
    /// What kernels have behind their names.
    suffix: String,
}

/// Where the functions are that all entries use: those that check arguments and raise errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Helpers {
    /// In this module, for it alone.
    #[default]
    Here,
    /// In this module, for all that are linked with it.
    ForAll,
    /// In another module.
    Elsewhere,
}

/// The number of a metadata node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Metadata(usize);

impl std::fmt::Display for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "!{}", self.0)
    }
}

impl ModuleText {
    /// An empty module for a machine.
    pub fn new(architecture: Architecture) -> Self {
        Self { short_addresses: architecture == Architecture::Wasm32, ..Self::default() }
    }

    /// The same with helper functions elsewhere, or here for others.
    pub fn with_helpers(self, helpers: Helpers) -> Self {
        Self { helpers, ..self }
    }

    /// The same for kernels with something behind their names.
    pub fn with_suffix(self, suffix: &str) -> Self {
        Self { suffix: suffix.to_string(), ..self }
    }

    /// A kernel's name as users know it.
    pub fn plain<'n>(&self, name: &'n str) -> &'n str {
        name.strip_suffix(&self.suffix).unwrap_or(name)
    }

    /// Writes a helper function once, or declares it where another module has it: `define ptr @name(ptr %a) {` …, with
    /// `{linkage}` behind `define`.
    pub fn helper(&mut self, name: &str, declaration: &str, definition: impl FnOnce(&mut Self) -> String) {
        if self.globals.contains_key(name) {
            return;
        }
        let linkage = match self.helpers {
            Helpers::Here => "internal",
            Helpers::ForAll => "hidden",
            Helpers::Elsewhere => {
                self.globals.insert(name.to_string(), format!("declare hidden {declaration}"));
                return;
            }
        };
        let text = definition(self).replace("{linkage}", linkage);
        self.globals.insert(name.to_string(), text);
    }

    /// Makes functions note from which statement each instruction comes.
    pub fn with_notes(self) -> Self {
        Self { notes_statements: true, ..self }
    }

    /// The type of integers that are as wide as an address.
    pub fn word(&self) -> &'static str {
        if self.short_addresses { "i32" } else { "i64" }
    }

    /// Whether statements are noted.
    pub fn notes_statements(&self) -> bool {
        self.notes_statements
    }

    /// Adds a finished function.
    pub fn function(&mut self, text: &str) {
        self.functions.push_str(text);
        self.functions.push('\n');
    }

    /// Declares a function once: `declare float @llvm.sqrt.f32(float)`.
    pub fn declare(&mut self, name: &str, result: &str, params: &str) {
        if !self.globals.contains_key(name) {
            self.globals.insert(name.to_string(), format!("declare {result} @{name}({params})"));
        }
    }

    /// Declares a function that the process must offer, with whatever arguments it is called.
    pub fn foreign(&mut self, function: &str, symbol: &str) {
        if !self.foreign.iter().any(|known| known == function) {
            self.foreign.push(function.to_string());
            self.globals.insert(function.to_string(), format!("declare void {symbol}(...)"));
        }
    }

    /// Whether a function with this name was written; the first who asks has to.
    pub fn defines(&mut self, name: &str) -> bool {
        !self.written.insert(name.to_string())
    }

    /// An entry of a kernel by its plain name, in this module or in another that is linked with it.
    pub fn entry_of(&mut self, kernel: &str) -> String {
        let symbol = format!("{ENTRY_PREFIX}{kernel}{}", self.suffix);
        let shown = global_name(&symbol);
        self.entries.insert(symbol);
        shown
    }

    /// Notes that the entry of a kernel is in this module.
    pub fn own_entry(&mut self, symbol: &str) {
        self.own_entries.insert(symbol.to_string());
    }

    /// A function that only a host has: of its runtime, of its libraries. Those of LLVM's own are instructions.
    pub fn needed_of_host(&self) -> Option<&str> {
        let declared = self.globals.iter().filter(|(_, text)| text.starts_with("declare "));
        let foreign = declared.map(|(name, _)| name.as_str()).find(|name| !name.starts_with("llvm."));
        foreign.or_else(|| self.slots.first().map(String::as_str)).or_else(|| self.entries.first().map(String::as_str))
    }

    /// The functions that the process must offer.
    pub fn foreign_functions(&self) -> &[String] {
        &self.foreign
    }

    /// A number that no other caller got, for names.
    pub fn fresh_number(&mut self) -> usize {
        self.fresh += 1;
        self.fresh - 1
    }

    /// Defines a global once, by the text of its definition.
    pub fn define(&mut self, name: &str, definition: impl FnOnce() -> String) {
        if !self.globals.contains_key(name) {
            self.globals.insert(name.to_string(), definition());
        }
    }

    /// A slot that the loader of a library fills with a function of the runtime; the library looks there for it.
    pub fn runtime_slot(&mut self, function: &str) -> String {
        debug_assert!(is_known(function), "`{function}` has no row in the table of functions behind slots");
        self.loader_slot(&format!("__{function}"))
    }

    /// A slot that the loader of a library fills.
    pub fn loader_slot(&mut self, name: &str) -> String {
        self.define(name, || format!("@{name} = weak dso_local global ptr null, align 8"));
        self.slots.insert(name.to_string());
        format!("@{name}")
    }

    /// The slots that a loader fills.
    pub fn slots(&self) -> &BTreeSet<String> {
        &self.slots
    }

    /// A NUL-terminated string; equal ones share their place.
    pub fn string(&mut self, text: &str) -> String {
        let next = self.strings.len();
        let index = *self.strings.entry(text.to_string()).or_insert(next);
        format!("@.text{index}")
    }

    /// A metadata node; `{self}` in its text stands for its own number.
    pub fn metadata(&mut self, text: &str) -> Metadata {
        let number = Metadata(self.metadata.len());
        self.metadata.push(text.replace("{self}", &number.to_string()));
        number
    }

    /// A line of metadata that goes by a name.
    pub fn name_metadata(&mut self, line: String) {
        self.named.push(line);
    }

    /// The whole module.
    pub fn finish(self, triple: &str, layout: &str) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "target datalayout = \"{layout}\"\ntarget triple = \"{triple}\"\n");
        let mut strings: Vec<_> = self.strings.iter().collect();
        strings.sort_by_key(|(_, index)| **index);
        for (text, index) in strings {
            let (length, escaped) = (text.len() + 1, escape(text));
            let _ = writeln!(
                out,
                "@.text{index} = private unnamed_addr constant [{length} x i8] c\"{escaped}\\00\", align 1"
            );
        }
        for entry in self.entries.iter().filter(|entry| !self.own_entries.contains(*entry)) {
            let _ = writeln!(out, "declare i32 {}(ptr, ptr, i32, ptr)", global_name(entry));
        }
        for global in self.globals.values() {
            let _ = writeln!(out, "{global}");
        }
        out.push('\n');
        out.push_str(&self.functions);
        out.push_str("attributes #0 = { mustprogress nounwind uwtable }\n");
        out.push_str("attributes #1 = { mustprogress nounwind optsize uwtable }\n");
        for line in &self.named {
            let _ = writeln!(out, "{line}");
        }
        for (number, text) in self.metadata.iter().enumerate() {
            let _ = writeln!(out, "!{number} = {text}");
        }
        out
    }
}

/// Text between LLVM's double quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => out.push(byte as char),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out
}

/// A global name as LLVM reads it, quoted where needed.
pub(crate) fn global_name(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'));
    if plain && !name.is_empty() { format!("@{name}") } else { format!("@\"{}\"", escape(name)) }
}
