//! The printer: modules, functions, types and expressions as TVMScript.
//!
//! The text has the form that TVM 0.27 prints. Symbolic dimensions are `TypeVar`s above the module, bindings carry their
//! types, tensor constants beyond scalars stand in a metadata section that is shown on demand.
//!
//! Functions come in the module's own order; attributes are sorted by name. Names are unique within their scope.

mod attrs;
mod lines;
mod metadata;
mod module;
mod names;
mod prim;
mod relax;
mod relax_call;
mod spans;
mod tile;
mod tir;
mod tir_block;
mod tir_view;
mod ty;

use std::collections::{BTreeSet, HashMap, HashSet};

use relaxide_ffi::{DataType, ObjectRef, Ref};
use relaxide_ir::{Buffer, IRModule, PrimExpr, Type, Var};
use relaxide_relax::{Binding, BindingBlock, Expr, Function};
use relaxide_tir::{BufferRegion, CommReducer, For, IndexMap, IterKind, IterVar, PrimFunc, Range, SBlock, Stmt};

pub use lines::print_with_lines;
use metadata::Metadata;
use names::{Names, identifier};
pub use spans::{NoLetterLeft, Spans, print_with_spans};

/// What a print shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    /// Whether the metadata section (tensor constants) is part of the text. Without it, a text with such constants is for
    /// reading only.
    pub show_meta: bool,
}

/// A module as text, without its metadata section.
pub fn print_module(module: &IRModule) -> String {
    print_module_with(module, PrintOptions::default())
}

/// A module as text that parses back to the same module.
pub fn print_module_with(module: &IRModule, options: PrintOptions) -> String {
    let mut printer = Printer::new(Some(module));
    printer.module(module);
    printer.finish(options)
}

/// A kernel as text, under the name that it is exported by.
pub fn print_prim_func(func: &PrimFunc) -> String {
    let mut printer = Printer::new(None);
    printer.prim_func(func.global_symbol().unwrap_or("main"), func);
    printer.finish(PrintOptions::default())
}

/// A Relax function as text, under the name that it is exported by.
pub fn print_function(func: &Function) -> String {
    let mut printer = Printer::new(None);
    printer.function(func.attrs.str("global_symbol").unwrap_or("main"), func);
    printer.finish(PrintOptions::default())
}

/// A variable, under the name that it gets where no other is near.
pub fn print_variable(var: &Var) -> String {
    names::standing_alone(&var.name)
}

/// A Relax expression in one line; a function and what binds variables in several.
pub fn print_expr(expr: &Expr) -> String {
    let mut printer = Printer::new(None);
    if let Expr::Function(func) = expr {
        printer.function("main", func);
        return printer.out;
    }
    printer.is_part = true;
    if let Expr::Seq(seq) = expr {
        printer.blocks(seq);
    }
    let value = printer.expr(expr);
    printer.out + &value
}

/// A binding, with its type.
pub fn print_binding(binding: &Binding) -> String {
    let mut printer = Printer::new(None);
    printer.is_part = true;
    printer.binding(binding);
    printer.out
}

/// A block of bindings.
pub fn print_block(block: &BindingBlock) -> String {
    let mut printer = Printer::new(None);
    printer.is_part = true;
    printer.block(block);
    printer.out
}

/// A statement of a kernel.
pub fn print_stmt(stmt: &Stmt) -> String {
    let mut printer = Printer::new(None);
    printer.enter_tir();
    printer.stmt(stmt);
    printer.out
}

/// A part of a kernel that is no statement and no scalar: a buffer, a box of one, an axis, a range, a block, a reducer, a map of indices.
/// Nothing for other nodes.
pub fn print_part(node: &ObjectRef) -> Option<String> {
    let mut printer = Printer::new(None);
    printer.enter_tir();
    if let Some(buffer) = node.downcast_ref::<Buffer>() {
        return Some(identifier(&buffer.name));
    }
    if let Some(region) = node.downcast_ref::<BufferRegion>() {
        printer.names.alias(region.buffer.clone().into(), identifier(&region.buffer.name));
        return Some(printer.region(region));
    }
    if let Some(range) = node.downcast_ref::<Range>() {
        return Some(printer.range("I.Range", &range.min, &range.extent));
    }
    if let Some(block) = node.downcast_ref::<SBlock>() {
        printer.block_alone(block);
        return Some(printer.out);
    }
    if let Some(reducer) = node.downcast_ref::<CommReducer>() {
        return Some(printer.reducer(reducer));
    }
    if let Some(map) = node.downcast_ref::<IndexMap>() {
        return Some(printer.index_map(map));
    }
    let axis = node.downcast_ref::<IterVar>()?;
    let kind = match axis.kind {
        IterKind::Spatial => "DataPar",
        IterKind::Reduce => "CommReduce",
        IterKind::Scan => "Ordered",
        IterKind::Opaque => "Opaque",
    };
    let range = printer.range("T.Range", &axis.min, &axis.extent);
    Some(format!("T.iter_var({}, {range}, \"{kind}\", \"\")", identifier(&axis.var.name)))
}

/// A type.
pub fn print_type(ty: &Type) -> String {
    Printer::new(None).ty(ty)
}

/// A scalar expression, with 64-bit integers bare, as dimensions are written.
pub fn print_prim(e: &PrimExpr) -> String {
    Printer::new(None).prim(e)
}

/// A scalar expression by itself, with 32-bit integers bare, as kernels write them.
pub fn print_scalar(e: &PrimExpr) -> String {
    let mut printer = Printer::new(None);
    printer.enter_tir();
    printer.prim(e)
}

/// The state of one print.
struct Printer<'a> {
    out: String,
    indent: usize,
    names: Names,
    /// The module around, for the indices of devices.
    context: Option<&'a IRModule>,
    /// Symbolic dimensions that need a declaration above the module.
    type_vars: BTreeSet<String>,
    /// Variables whose definition stands further behind in the signature.
    forward: HashSet<Ref<Var>>,
    /// Symbolic dimensions that the function's body has to declare.
    declarations: Vec<(String, String)>,
    metadata: Metadata,
    uses_tir: bool,
    uses_relax: bool,
    /// The type of integers that are written bare.
    bare_int: DataType,
    /// The loops around, for blocks.
    loops: Vec<Ref<For>>,
    /// Relax variables that are used at all; a result without a use needs no name.
    used: HashSet<ObjectRef>,
    /// Buffers of one element that are written as variables.
    scalars: HashSet<Ref<Buffer>>,
    /// The buffers whose pointers are written behind their names.
    owners: HashMap<Ref<Var>, Ref<Buffer>>,
    /// Whether the text is a part of a program, outside of any module.
    is_part: bool,
    /// Where statements come to stand, if that is asked for.
    marks: Option<lines::Marks>,
    /// Nodes whose places in the text are asked for.
    located: Option<spans::Located>,
}

impl<'a> Printer<'a> {
    fn new(context: Option<&'a IRModule>) -> Self {
        Printer {
            out: String::new(),
            indent: 0,
            names: Names::new(),
            context,
            type_vars: BTreeSet::new(),
            forward: HashSet::new(),
            declarations: Vec::new(),
            metadata: Metadata::default(),
            uses_tir: false,
            uses_relax: false,
            bare_int: DataType::int(64),
            loops: Vec::new(),
            used: HashSet::new(),
            scalars: HashSet::new(),
            owners: HashMap::new(),
            is_part: false,
            marks: None,
            located: None,
        }
    }

    fn enter_tir(&mut self) {
        self.bare_int = DataType::int(32);
        self.uses_tir = true;
    }

    fn range(&mut self, name: &str, min: &PrimExpr, extent: &PrimExpr) -> String {
        let end = relaxide_ir::prim::add(min, extent);
        format!("{name}({}, {})", self.prim(min), self.prim(&end))
    }

    /// Writes one line at the current indentation.
    fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        if !text.is_empty() {
            self.out.extend(std::iter::repeat_n("    ", self.indent));
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Puts imports, declarations and metadata around what was written.
    fn finish(self, options: PrintOptions) -> String {
        let mut text = String::new();
        if options.show_meta && !self.metadata.is_empty() {
            text.push_str(&self.metadata.section());
        }
        let imports = [
            (!self.type_vars.is_empty(), "# from typing import TypeVar\n"),
            (self.context.is_some(), "# from tvm.script import ir as I\n"),
            (self.uses_tir, "# from tvm.script import tirx as T\n# from tvm.tirx.layout import Axis\n"),
            (self.uses_relax, "# from tvm.script import relax as R\n"),
        ];
        imports.iter().filter(|(used, _)| *used).for_each(|(_, line)| text.push_str(line));
        text.push('\n');
        for name in &self.type_vars {
            text.push_str(&format!("{name} = TypeVar(\"{name}\")\n"));
        }
        text.push_str(&self.out);
        if !options.show_meta && !self.metadata.is_empty() {
            text.push_str("\n# Metadata omitted. Use show_meta=True in script() method to show it.\n");
        }
        text
    }
}
