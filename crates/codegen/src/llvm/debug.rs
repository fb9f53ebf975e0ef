//! Line information: which line of a text each instruction comes from, for debuggers and profilers.
//!
//! The text is a file of TVMScript that somebody printed the kernels to ([`DebugInfo`]). Every function of a kernel becomes a
//! subprogram of one compile unit; the computation itself has the kernel's name, so that `break KERNEL` stops there, and its
//! entry, which checks arguments, that of its symbol. Instructions that a loop's head needs have the head's line, as those of
//! a choice have. There is no information on variables: after optimisation little of them would be left.

use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use relaxide_tir::{Stmt, lines::Lines};

use super::{
    function::FunctionText,
    module::{Metadata, ModuleText, escape},
};

/// The version of the format that is written: what all tools read.
const DWARF: u32 = 4;

/// A text that kernels were printed to, and where in it they stand.
#[derive(Debug, Clone)]
pub struct DebugInfo {
    /// The file that holds the text.
    pub file: PathBuf,
    /// The lines of kernels and statements.
    pub lines: Lines,
}

/// The nodes that all functions of a module share.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    info: Arc<DebugInfo>,
    file: Metadata,
    unit: Metadata,
    function_type: Metadata,
}

/// Where a function's instructions come from.
#[derive(Debug)]
pub(crate) struct Scope {
    subprogram: Metadata,
    /// The nodes of lines that were met.
    known: HashMap<u32, Metadata>,
    line: u32,
    location: Metadata,
}

impl ModuleText {
    /// Lets instructions have their lines.
    pub fn with_debug(mut self, info: Option<&Arc<DebugInfo>>) -> Self {
        let Some(info) = info.cloned() else { return self };
        let directory = info.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let file = self.metadata(&format!(
            "!DIFile(filename: \"{}\", directory: \"{}\")",
            text_of(Path::new(info.file.file_name().unwrap_or_default())),
            text_of(directory.unwrap_or(Path::new(".")))
        ));
        let unit = self.metadata(&format!(
            "distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, producer: \"Relaxide {}\", isOptimized: true, \
             runtimeVersion: 0, emissionKind: FullDebug)",
            env!("CARGO_PKG_VERSION")
        ));
        let types = self.metadata("!{null}");
        let function_type = self.metadata(&format!("!DISubroutineType(types: {types})"));
        let version = self.metadata("!{i32 2, !\"Debug Info Version\", i32 3}");
        let dwarf = self.metadata(&format!("!{{i32 7, !\"Dwarf Version\", i32 {DWARF}}}"));
        self.name_metadata(format!("!llvm.dbg.cu = !{{{unit}}}"));
        self.name_metadata(format!("!llvm.module.flags = !{{{version}, {dwarf}}}"));
        self.unit = Some(Unit { info, file, unit, function_type });
        self
    }

    fn line_of(&self, stmt: &Stmt) -> Option<u32> {
        self.unit.as_ref()?.info.lines.of_statement(stmt)
    }
}

impl FunctionText<'_> {
    /// Makes this function known to debuggers by a name, if that is asked for. `line` is its own, or that of its kernel. It gets
    /// no name for linking, which gdb would take for its only name.
    pub fn describe(&mut self, kernel: &str, name: &str, line: Option<u32>) {
        let Some(unit) = self.module.unit.clone() else { return };
        let Some(line) = line.or_else(|| unit.info.lines.of_kernel(kernel)) else { return };
        let subprogram = self.module.metadata(&format!(
            "distinct !DISubprogram(name: \"{}\", scope: {file}, file: {file}, line: {line}, type: {}, \
             scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {})",
            escape(name),
            unit.function_type,
            unit.unit,
            file = unit.file,
        ));
        let location = location(self.module, line, subprogram);
        self.scope = Some(Scope { subprogram, known: HashMap::from([(line, location)]), line, location });
    }

    /// Lets the following instructions come from a statement; the line that they came from before.
    pub fn enter(&mut self, stmt: &Stmt) -> Option<u32> {
        let before = self.scope.as_ref()?.line;
        if let Some(line) = self.module.line_of(stmt) {
            self.at_line(line);
        }
        Some(before)
    }

    /// Lets the following instructions come from a line, if there are lines.
    pub fn at_line(&mut self, line: u32) {
        let Some(scope) = &mut self.scope else { return };
        let subprogram = scope.subprogram;
        scope.line = line;
        scope.location = *scope.known.entry(line).or_insert_with(|| location(self.module, line, subprogram));
    }

    /// The line that a statement stands in.
    pub fn line_of(&self, stmt: &Stmt) -> Option<u32> {
        self.module.line_of(stmt)
    }
}

impl Scope {
    /// What follows an instruction.
    pub fn of_instruction(&self) -> String {
        format!(", !dbg {}", self.location)
    }

    /// What follows a function's head.
    pub fn of_function(&self) -> String {
        format!(" !dbg {}", self.subprogram)
    }
}

fn location(module: &mut ModuleText, line: u32, subprogram: Metadata) -> Metadata {
    module.metadata(&format!("!DILocation(line: {line}, column: 1, scope: {subprogram})"))
}

/// A path between quotes, without steps that lead nowhere.
fn text_of(path: &Path) -> String {
    let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
    escape(&path.to_string_lossy())
}
