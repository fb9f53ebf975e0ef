//! What is known while the body of one function is written: variables, names, memory, values that were already computed.

use std::collections::{HashMap, HashSet};
use std::fmt::{Display, Write as _};

use relaxide_ir::{DataType, PrimExpr, Ref, Var};
use relaxide_tir::lower::{Fault, is_decomposed_float};
use relaxide_tir::{PrimFunc, SEPARATE_ROUNDING};

use super::{
    code::Code,
    names::{self, Names},
    pointers::Pointers,
    source::Source,
    types::declare,
};
use crate::{
    error::CodegenError,
    on_device::OnDevice,
    shared::{Overflow, Ty},
    stack::StackBudget,
};

/// The name of the memory in which a function of a device says which check failed.
pub(crate) const FAULTS: &str = "rx_faults";

/// What the functions of one kernel share.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// The name by which it is called.
    pub name: String,
    /// The beginning of its functions' names.
    pub identifier: String,
    pub pointers: Pointers,
    /// Whether no product and sum may become one operation.
    pub separate_rounding: bool,
    /// Whether buffers of parameters do not overlap.
    pub distinct: bool,
    /// What there is where it runs on a device.
    pub device: Option<OnDevice>,
}

impl Kernel {
    pub fn new(name: &str, func: &PrimFunc, identifier: String) -> Self {
        Self {
            name: name.to_string(),
            identifier,
            pointers: Pointers::of(func),
            separate_rounding: func.attrs.bool(SEPARATE_ROUNDING) == Some(true),
            distinct: func.attrs.bool("tirx.noalias") == Some(true),
            device: None,
        }
    }

    /// The same for a function of a device.
    pub fn on_device(self, device: OnDevice) -> Self {
        Self { device: Some(device), ..self }
    }

    /// Refuses what only a host can do.
    pub fn only_on_hosts(&self, what: &str) -> Result<(), CodegenError> {
        if self.device.is_some() { Err(self.unsupported(format!("{what} on a device"))) } else { Ok(()) }
    }

    pub fn unsupported(&self, what: impl Into<String>) -> CodegenError {
        let (kernel, what) = (self.name.clone(), what.into());
        let back_end = if self.device.is_some() { "OpenCL" } else { "C" };
        CodegenError::Unsupported { kernel, what, back_end, statement: None }
    }

    pub fn malformed(&self, what: impl Into<String>) -> CodegenError {
        CodegenError::Malformed { kernel: self.name.clone(), what: what.into(), statement: None }
    }

    pub fn ty(&self, dtype: DataType) -> Result<Ty, CodegenError> {
        // Elements that share a byte are native code's alone; a device has them decomposed, and floats among them as values in a byte.
        let is_byte = |ty: &Ty| ty.kind.bits() >= 8 || self.device.is_some() && is_decomposed_float(dtype);
        Ty::of(dtype).filter(is_byte).ok_or_else(|| CodegenError::ElementType {
            kernel: self.name.clone(),
            dtype,
            triple: if self.device.is_some() { "the target `opencl`" } else { "the target `c`" }.into(),
            statement: None,
        })
    }
}

/// A variable of TIR, in C.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// What stands for it.
    pub code: Code,
    /// The type of what stands for it; of each lane for a vector, which is an array.
    pub ty: String,
    /// Whether it is an array with an element for each lane.
    pub is_vector: bool,
    /// Whether it is no less than zero.
    pub is_natural: bool,
}

impl Known {
    pub fn scalar(name: impl Into<String>, ty: impl Into<String>) -> Self {
        Self { code: Code::atom(name), ty: ty.into(), is_vector: false, is_natural: false }
    }
}

/// A node that was computed: under which promise on integers, and for which lane.
pub(crate) type MemoKey = (PrimExpr, Overflow, Option<String>);

/// The body of one function in the making.
pub(crate) struct Body<'m, 'k> {
    pub source: &'m mut Source,
    pub kernel: &'k Kernel,
    text: String,
    depth: usize,
    names: Names,
    pub vars: HashMap<Ref<Var>, Known>,
    /// Memory of the workspace that every way out must give back, innermost last.
    pub workspaces: Vec<String>,
    /// How many workspaces there are outside of each loop around, the innermost last.
    pub loops: Vec<usize>,
    pub stack: StackBudget,
    /// What the expression at hand may assume of integer arithmetic.
    pub overflow: Overflow,
    /// The number of the lane that is computed, inside of a loop over lanes.
    pub lane: Option<Code>,
    /// Whether the statement at hand calls what may change memory, so that everything happens in the order that is written.
    pub in_order: bool,
    /// Nodes of the statement at hand that get a name because they occur more than once.
    pub shared: HashSet<PrimExpr>,
    memo: Vec<(MemoKey, String)>,
    /// Whether there is a place for a result.
    pub has_result: bool,
    /// Whether this is the body of a parallel loop; loops inside are executed by one thread.
    pub in_parallel: bool,
}

impl<'m, 'k> Body<'m, 'k> {
    pub fn new(kernel: &'k Kernel, source: &'m mut Source) -> Self {
        Self {
            source,
            kernel,
            text: String::new(),
            depth: 1,
            names: Names::default(),
            vars: HashMap::new(),
            workspaces: Vec::new(),
            loops: Vec::new(),
            stack: StackBudget::default(),
            overflow: Overflow::Wraps,
            lane: None,
            in_order: false,
            shared: HashSet::new(),
            memo: Vec::new(),
            has_result: false,
            in_parallel: false,
        }
    }

    /// The function's text: its head, lines in front of all others, and the rest.
    pub fn finish(self, head: &str, opening: &str) -> String {
        let (attribute, rounding) = match self.kernel.separate_rounding {
            true => ("RX_SEPARATE_ROUNDING\n", "    RX_NO_FUSION\n"),
            false => ("", ""),
        };
        format!("{attribute}{head} {{\n{rounding}{opening}{}}}\n", self.text)
    }

    /// The names in the text so far, those in literals left out.
    pub fn mentioned(&self) -> HashSet<String> {
        names::words(&self.text)
    }

    /// The same for a function that computes with no floats.
    pub fn finish_plain(self, head: &str, opening: &str) -> String {
        format!("{head} {{\n{opening}{}}}\n", self.text)
    }

    /// Whether nothing stands in the block at hand yet.
    pub fn at_beginning(&self) -> bool {
        self.text.is_empty()
    }

    /// One line.
    pub fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{:width$}{line}", "", width = 4 * self.depth);
    }

    /// A name that no other thing in reach has.
    pub fn fresh(&mut self, wanted: &str) -> String {
        self.names.fresh(wanted)
    }

    /// Where names of a part begin that ends before its block does.
    pub fn mark_names(&self) -> usize {
        self.names.mark()
    }

    /// Ends such a part.
    pub fn release_names(&mut self, mark: usize) {
        self.names.release(mark);
    }

    /// Declares a constant of a value; its name.
    pub fn define(&mut self, wanted: &str, ty: &str, value: &Code) -> String {
        let name = self.fresh(wanted);
        let declared = match ty.strip_suffix('*') {
            Some(_) => declare(&format!("{ty}const "), &name).replace("const  ", "const "),
            None => format!("const {ty} {name}"),
        };
        self.line(format_args!("{declared} = {};", value.text));
        name
    }

    /// Lines between braces behind a head: `for (…)`.
    pub fn block<T>(
        &mut self,
        head: impl Display,
        inside: impl FnOnce(&mut Self) -> Result<T, CodegenError>,
    ) -> Result<T, CodegenError> {
        let (value, lines) = self.apart(inside);
        let value = value?;
        let head = head.to_string();
        self.line(if head.is_empty() { "{".into() } else { format!("{head} {{") });
        self.text.push_str(&lines);
        self.line("}");
        Ok(value)
    }

    /// The lines of something, a block deeper than here, which are not yet part of the text. What they define is not known
    /// behind them.
    pub fn apart<T>(&mut self, inside: impl FnOnce(&mut Self) -> T) -> (T, String) {
        let outer = std::mem::take(&mut self.text);
        let (names, memo) = (self.names.mark(), self.memo.len());
        self.depth += 1;
        let value = inside(self);
        self.depth -= 1;
        self.names.release(names);
        self.memo.truncate(memo);
        (value, std::mem::replace(&mut self.text, outer))
    }

    /// Adds lines that were made apart.
    pub fn add(&mut self, lines: &str) {
        self.text.push_str(lines);
    }

    /// The name of a node that was computed.
    pub fn known(&self, key: &MemoKey) -> Option<&str> {
        self.memo.iter().rev().find(|(known, _)| known == key).map(|(_, name)| name.as_str())
    }

    /// Remembers a node that was computed.
    pub fn remember(&mut self, key: MemoKey, name: String) {
        self.memo.push((key, name));
    }

    /// Forgets all values, at the end of a statement.
    pub fn forget(&mut self) {
        self.memo.clear();
    }

    /// Leaves the function: 0 is success, anything else means that an error was raised.
    pub fn leave(&mut self, code: &str) {
        for workspace in self.workspaces.clone().iter().rev() {
            self.free_workspace(workspace);
        }
        match self.kernel.device {
            Some(_) => self.line("return;"),
            None => self.line(format_args!("return {code};")),
        }
    }

    /// Says in the device's memory that a check failed, and ends the thread.
    pub fn fault(&mut self, fault: &Fault, [index, extent]: [&str; 2]) {
        let number = self.kernel.device.as_ref().map_or(0, |device| device.number_of(fault));
        self.line(format_args!("rx_fault({FAULTS}, {number}, {index}, {extent});"));
        self.leave("");
    }

    /// Leaves with an error if a condition holds that says that one was raised.
    pub fn leave_if(&mut self, condition: &str) -> Result<(), CodegenError> {
        self.block(format_args!("if ({condition})"), |this| {
            this.leave("-1");
            Ok(())
        })
    }
}
