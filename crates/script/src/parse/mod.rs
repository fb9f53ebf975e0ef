//! The parser: TVMScript to modules.
//!
//! Python's own grammar is ruff's affair; here its tree gets a meaning. Text is looked at once before it is parsed
//! ([`limits`]), so that no text exhausts the stack, and then read function by function: signatures first, so that
//! functions may call each other in any order, bodies then.
//!
//! | file | what it reads |
//! | --- | --- |
//! | `module` | imports, `TypeVar`s, the metadata section, the class |
//! | `ty` | annotations |
//! | `expr` | names, numbers, operators: what both languages share |
//! | `relax`, `relax_call` | Relax functions; calls behind `R.` |
//! | `host`, `macros` | what Python around the text contributes |
//! | `tir`, `tir_block`, `block_head`, `tir_buffer`, `tir_call` | kernels; calls behind `T.` |
//!
//! Problems end the parse at the first one: a second would often be a consequence of it.

mod access;
mod args;
mod block_head;
mod constant;
mod device;
mod expr;
mod host;
mod layout;
mod limits;
mod macros;
mod module;
mod reducer;
mod relax;
mod relax_call;
mod relax_operators;
mod symbols;
mod tile;
mod tir;
mod tir_assign;
mod tir_block;
mod tir_buffer;
mod tir_call;
mod tir_loops;
mod tir_view;
mod ty;
mod value;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexMap;
use relaxide_ffi::{DataType, ObjectRef, Ref};
use relaxide_ir::pass::Refusal;
use relaxide_ir::{Buffer, GlobalVar, IRModule, Span, VDevice};
use relaxide_relax::wellformed;
use ruff_text_size::TextRange;

use module::Metadata;
use relax::RelaxFrame;
use relaxide_ir::diagnostic::{Code, Diagnostic, Lines, closest};
use tir::Kernel;
use value::Value;

pub use host::{Host, HostError, Local, Macro, ScopeIndex};
pub(crate) use tile::scope_id_function;
pub(crate) use tir_buffer::ALLOCATED_AT;
pub(crate) use tir_loops::{DISABLE_UNROLL, PRAGMA_UNROLL};

/// The result of reading a piece of text.
type Parsed<T> = Result<T, Box<Diagnostic>>;

/// Stack for parsing: the limits bound what is needed to less than this.
const STACK: usize = 256 << 20;

/// How a text is read.
#[derive(Clone, Copy)]
pub struct ParseOptions<'h> {
    /// The Python program that the text stands in, which gives meaning to names that the text does not bind.
    pub host: Option<&'h dyn Host>,
    /// Whether a module that breaks the [rules](relaxide_relax::wellformed) is refused. A text may say otherwise itself:
    /// `@I.ir_module(check_well_formed=False)`.
    pub check_well_formed: bool,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        ParseOptions { host: None, check_well_formed: true }
    }
}

/// Reads a module. `file` names the text in diagnostics.
///
/// A text without a class is taken as the functions of a module.
pub fn parse_module(source: &str, file: &str) -> Result<IRModule, Box<Diagnostic>> {
    parse_module_with(source, file, ParseOptions::default())
}

/// Reads a module with options.
pub fn parse_module_with(source: &str, file: &str, options: ParseOptions) -> Result<IRModule, Box<Diagnostic>> {
    let formatted = match options.host {
        Some(_) => limits::Formatted::Allowed,
        None => limits::Formatted::Refused,
    };
    if let Err(refusal) = limits::check_with(source, formatted) {
        let end = refusal.offset + 1;
        return Err(Box::new(Diagnostic::at(
            refusal.code,
            refusal.message,
            file,
            &Lines::of(source),
            refusal.offset,
            end,
        )));
    }
    let lack = |e: &dyn std::fmt::Display| {
        Box::new(Diagnostic::at(Code::Limit, format!("the parser could not run: {e}"), file, &Lines::of(source), 0, 0))
    };
    std::thread::scope(|scope| {
        let parse = std::thread::Builder::new().name("tvmscript".into()).stack_size(STACK);
        match parse.spawn_scoped(scope, || parse_here(source, file, options)) {
            Ok(thread) => {
                thread.join().unwrap_or_else(|_| Err(lack(&"it failed unexpectedly; please report the text")))
            }
            Err(e) => Err(lack(&e)),
        }
    })
}

fn parse_here(source: &str, file: &str, options: ParseOptions) -> Parsed<IRModule> {
    let host = options.host;
    let macros = host.map(|host| host.macros()).unwrap_or_default();
    let mut parser = Parser::new(source, file);
    if let Some(host) = host {
        parser.enter_host(host, &macros);
    }
    let parsed = ruff_python_parser::parse_module(source).map_err(|e| {
        let message = e.error.to_string();
        let mut letters = message.chars();
        let lower: String = letters.next().map(|c| c.to_lowercase().chain(letters).collect()).unwrap_or_default();
        parser.error(Code::Syntax, lower, e.location)
    })?;
    let module = parser.module(&parsed.syntax().body)?;
    match parser.first_violation(&module).filter(|_| options.check_well_formed) {
        Some(violation) => Err(Box::new(Refusal::from(violation).diagnostic(|_| Some(source.to_string())))),
        None => Ok(module),
    }
}

/// Which language the text is in at the moment; it decides what bare integers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Relax,
    Tir,
}

/// The state of one parse.
struct Parser<'s> {
    source: &'s str,
    lines: Lines<'s>,
    file: &'s str,
    /// Where the text of a string is that is being read as an expression; its errors are reported there.
    inside: Option<TextRange>,
    /// What names stand for at the top: `R`, `tvm`, … with the canonical path of each.
    namespaces: HashMap<String, String>,
    module_name: String,
    globals: IndexMap<String, Ref<GlobalVar>>,
    vdevices: Vec<Ref<VDevice>>,
    metadata: Option<Metadata>,
    type_vars: HashMap<String, DataType>,
    scopes: Vec<HashMap<String, Value>>,
    /// The scope that symbolic dimensions of the function go to.
    symbol_scope: usize,
    /// Symbolic dimensions that the body of the function declares.
    declared: HashMap<String, DataType>,
    /// Whether a name in a dimension may define a symbolic dimension, as in signatures.
    defining: bool,
    language: Language,
    depth: usize,
    frames: Vec<RelaxFrame>,
    /// Names that bindings of the function have taken, for those that the parser makes up.
    taken: HashSet<String>,
    /// Names that ended with the last dataflow block.
    ended: HashSet<String>,
    /// Names that the body of a block has made, while its head is read.
    behind: HashSet<String>,
    kernel: Kernel,
    /// Buffers of one element that are used like variables.
    scalars: HashSet<Ref<Buffer>>,
    /// What the text stands in, where that is a Python program.
    host: Option<&'s dyn Host>,
    /// In which of the host's surroundings names are looked up at the moment.
    place: ScopeIndex,
    macros: &'s [Macro],
    /// Calls of macros that are being written out.
    expansions: usize,
    /// How many of them have scopes of their own.
    level: usize,
    /// Macros that the program defines.
    inlines: Vec<Rc<macros::Inner<'s>>>,
    /// Kernels of the module that return nothing.
    kernels: HashMap<String, DataType>,
    /// Functions that need not be well-formed.
    unchecked: HashSet<String>,
    /// The statement of a Relax function that is being read.
    statement: TextRange,
    /// Functions of the surroundings that became functions of the module.
    outer_functions: Vec<(ObjectRef, Ref<GlobalVar>)>,
}

/// Depth of expressions, which is also the depth of what later walks over them.
const MAX_DEPTH: usize = 256;

impl<'s> Parser<'s> {
    fn new(source: &'s str, file: &'s str) -> Self {
        let known = [
            ("I", "I"),
            ("R", "R"),
            ("T", "T"),
            ("ir", "I"),
            ("relax", "R"),
            ("tir", "T"),
            ("tirx", "T"),
            ("tvm", "tvm"),
            ("relaxide", "tvm"),
        ];
        Parser {
            source,
            lines: Lines::of(source),
            file,
            inside: None,
            namespaces: known.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            module_name: String::new(),
            globals: IndexMap::new(),
            vdevices: Vec::new(),
            metadata: None,
            type_vars: HashMap::new(),
            scopes: vec![HashMap::new()],
            symbol_scope: 0,
            declared: HashMap::new(),
            defining: false,
            language: Language::Relax,
            depth: 0,
            frames: Vec::new(),
            taken: HashSet::new(),
            ended: HashSet::new(),
            behind: HashSet::new(),
            kernel: Kernel::default(),
            scalars: HashSet::new(),
            host: None,
            place: 0,
            macros: &[],
            expansions: 0,
            level: 0,
            inlines: Vec::new(),
            kernels: HashMap::new(),
            unchecked: HashSet::new(),
            statement: TextRange::default(),
            outer_functions: Vec::new(),
        }
    }

    fn error(&self, code: Code, message: impl Into<String>, range: TextRange) -> Box<Diagnostic> {
        let range = self.inside.unwrap_or(range);
        Box::new(Diagnostic::at(code, message, self.file, &self.lines, range.start().into(), range.end().into()))
    }

    /// The first rule that a function breaks which is to keep them.
    fn first_violation(&self, module: &IRModule) -> Option<wellformed::Violation> {
        // A function by itself may call those of the module that it is made for, which its surroundings know.
        let elsewhere =
            |v: &wellformed::Violation| v.code == Code::Callee && self.host.is_some() && self.module_name.is_empty();
        let counts = |v: &wellformed::Violation| !self.unchecked.contains(&v.function) && !elsewhere(v);
        wellformed::check_module(module).into_iter().find(counts)
    }

    fn unsupported(&self, what: &str, range: TextRange) -> Box<Diagnostic> {
        self.error(Code::Unsupported, format!("{what} has no meaning in TVMScript"), range)
    }

    fn unknown_name(&self, name: &str, range: TextRange) -> Box<Diagnostic> {
        let error = self.error(Code::UnknownName, format!("no name `{name}` is in scope"), range);
        if self.ended.contains(name) {
            return Box::new(
                error.with_help(format!("`{name}` ends with its dataflow block; name it in R.output to keep it")),
            );
        }
        if self.behind.contains(name) {
            let help =
                format!("the body of a block makes `{name}`; what the block says of itself stands in front of that");
            return Box::new(error.with_help(help));
        }
        let known = self.scopes.iter().flat_map(|s| s.keys()).map(String::as_str);
        match closest(name, known) {
            Some(near) => Box::new(error.with_help(format!("did you mean `{near}`?"))),
            None => error,
        }
    }

    /// The place of a range, as nodes keep it.
    fn span(&self, range: TextRange) -> Option<Ref<Span>> {
        let range = self.inside.unwrap_or(range);
        let (start, end) = (self.lines.place(range.start().into()), self.lines.place(range.end().into()));
        Some(Ref::new(Span {
            source: self.file.to_string(),
            line: start.line as i64,
            end_line: end.line as i64,
            column: start.column as i64,
            end_column: end.column as i64,
            notes: Vec::new(),
        }))
    }

    /// Goes one level down, as long as the level exists.
    fn nested<T>(&mut self, range: TextRange, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("expressions are nested more than {MAX_DEPTH} levels deep");
            return Err(self.error(Code::Limit, message, range));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn lookup(&self, name: &str) -> Option<&Value> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    fn define(&mut self, name: &str, value: Value) {
        self.taken.insert(name.to_string());
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), value);
        }
    }

    /// Runs `f` in a scope of its own.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.scopes.push(HashMap::new());
        let result = f(self);
        self.scopes.pop();
        result
    }
}
