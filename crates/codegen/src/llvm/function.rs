//! One LLVM function in the making: blocks, instructions, stack slots.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};

use super::{
    debug::Scope,
    module::{Metadata, ModuleText},
    region::Region,
    value::{Ty, Val},
};

/// What stands before the statement in a note.
pub(crate) const NOTE: &str = "  ; ";

/// A basic block's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label(u32);

impl Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// Writes the instructions of one function. Values are named in the order of their making.
#[derive(Debug)]
pub(crate) struct FunctionText<'m> {
    pub module: &'m mut ModuleText,
    /// Whether the processor converts half-precision numbers itself.
    pub native_f16: bool,
    /// Whether the processor adds to a product without rounding it first.
    pub native_fma: bool,
    /// Whether the processor multiplies vectors by powers of two, whatever the result is.
    pub native_scaling: bool,
    /// Whether there are so few vector registers that coefficients of polynomials are better read from memory.
    pub reads_coefficients: bool,
    /// Whether a product and a sum may become one operation.
    pub contract: bool,
    /// Whether there is a math library to call.
    pub has_library: bool,
    stack_slots: String,
    /// Slots that serve one purpose after the other, by purpose and size.
    shared: HashMap<(&'static str, u64), Val>,
    /// What is being written, from the function itself to the innermost loop or branch.
    pub(super) regions: Vec<Region>,
    values: u32,
    labels: u32,
    current: Label,
    /// Whether the current block has ended, so that another must be started.
    ended: bool,
    /// Where instructions come from, if that is to be known.
    pub scope: Option<Scope>,
}

impl<'m> FunctionText<'m> {
    pub fn new(module: &'m mut ModuleText, native_f16: bool) -> Self {
        let (stack_slots, regions) = (String::new(), Vec::new());
        let shared = HashMap::new();
        let (values, labels, current, ended, contract) = (0, 1, Label(0), false, true);
        let (native_fma, native_scaling, reads_coefficients) = (false, false, false);
        Self {
            module,
            native_f16,
            native_fma,
            native_scaling,
            reads_coefficients,
            contract,
            has_library: true,
            stack_slots,
            shared,
            regions,
            values,
            labels,
            current,
            ended,
            scope: None,
        }
    }

    /// The whole function behind its `define …` line.
    pub fn finish(mut self, head: &str) -> String {
        debug_assert!(self.depth() == 0, "a loop or branch was not finished");
        let body = std::mem::take(&mut self.region().text);
        let described = self.scope.as_ref().map(Scope::of_function).unwrap_or_default();
        let mut text = format!("{head}{described} {{\nentry:\n{}  br label %b0\nb0:\n{body}", self.stack_slots);
        if !self.ended {
            text.push_str("  unreachable\n");
        }
        text.push_str("}\n");
        text
    }

    /// Notes which statement the following instructions come from.
    pub fn note(&mut self, statement: &str) {
        let _ = writeln!(self.region().text, "{NOTE}{statement}");
    }

    /// An instruction that makes a value.
    pub fn emit(&mut self, ty: Ty, instruction: impl Display) -> Val {
        debug_assert!(!self.ended, "an instruction behind the end of its block");
        self.emit_at(self.depth(), ty, instruction)
    }

    /// The same at the end of what an outer region has so far.
    pub(super) fn emit_at(&mut self, depth: u16, ty: Ty, instruction: impl Display) -> Val {
        let number = self.values;
        self.values += 1;
        let from = self.scope.as_ref().map(Scope::of_instruction).unwrap_or_default();
        if self.regions.is_empty() {
            self.region();
        }
        let _ = writeln!(self.regions[usize::from(depth)].text, "  %v{number} = {instruction}{from}");
        Val { depth, ..Val::new(ty, format!("%v{number}")) }
    }

    /// An instruction that makes a value of a type that kernels do not compute with; its name.
    pub fn emit_raw(&mut self, instruction: impl Display) -> String {
        self.emit(Ty::I64, instruction).text.to_string()
    }

    /// An instruction for its effect.
    pub fn effect(&mut self, instruction: impl Display) {
        debug_assert!(!self.ended, "an instruction behind the end of its block");
        let from = self.scope.as_ref().map(Scope::of_instruction).unwrap_or_default();
        let _ = writeln!(self.region().text, "  {instruction}{from}");
    }

    /// A call of an LLVM intrinsic that is overloaded on `over` and takes and returns values.
    pub fn intrinsic(&mut self, name: &str, over: Ty, result: Ty, args: &[&Val]) -> Val {
        let name = format!("llvm.{name}.{}", over.mangled());
        self.call(&name, result, args)
    }

    /// A call of a declared function.
    pub fn call(&mut self, name: &str, result: Ty, args: &[&Val]) -> Val {
        self.flagged_call("", name, result, args)
    }

    /// A call with fast-math flags.
    pub fn flagged_call(&mut self, flags: &str, name: &str, result: Ty, args: &[&Val]) -> Val {
        let params = join(args.iter().map(|arg| arg.ty));
        self.module.declare(name, &result.to_string(), &params);
        let args = join(args);
        self.emit(result, format_args!("call {flags}{result} @{name}({args})"))
    }

    /// A call where the arguments at `immediate` must be literals, as some intrinsics demand in their declaration.
    pub fn call_with_immediates(&mut self, name: &str, result: Ty, args: &[&Val], immediate: &[usize]) -> Val {
        self.declare_with_immediates(name, &result.to_string(), args, immediate);
        let args = join(args);
        self.emit(result, format_args!("call {result} @{name}({args})"))
    }

    /// The same for a function without a result.
    pub fn effect_call(&mut self, name: &str, args: &[&Val], immediate: &[usize]) {
        self.declare_with_immediates(name, "void", args, immediate);
        let args = join(args);
        self.effect(format_args!("call void @{name}({args})"));
    }

    fn declare_with_immediates(&mut self, name: &str, result: &str, args: &[&Val], immediate: &[usize]) {
        let attribute = |index| if immediate.contains(&index) { " immarg" } else { "" };
        let params = join(args.iter().enumerate().map(|(index, arg)| format!("{}{}", arg.ty, attribute(index))));
        self.module.declare(name, result, &params);
    }

    /// A stack slot of `count` elements, allocated once per call of the function whatever loop it is asked for in.
    ///
    /// Several are one array: `alloca float, i64 24` is no slot that LLVM's first pass would take apart into registers.
    pub fn stack_slot(&mut self, ty: impl Display, count: u64, alignment: u64) -> Val {
        let number = self.values;
        self.values += 1;
        let _ = match count {
            1 => writeln!(self.stack_slots, "  %v{number} = alloca {ty}, align {alignment}"),
            _ => writeln!(self.stack_slots, "  %v{number} = alloca [{count} x {ty}], align {alignment}"),
        };
        Val { depth: 0, ..Val::new(Ty::PTR, format!("%v{number}")) }
    }

    /// A stack slot for what is needed only until the next of the same purpose.
    pub fn shared_slot(&mut self, purpose: &'static str, ty: &str, count: u64, alignment: u64) -> Val {
        if let Some(slot) = self.shared.get(&(purpose, count)) {
            return slot.clone();
        }
        let slot = self.stack_slot(ty, count, alignment);
        self.shared.insert((purpose, count), slot.clone());
        slot
    }

    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Begins a block; the block before must have ended.
    pub fn start(&mut self, label: Label) {
        debug_assert!(self.ended, "block {} falls through", self.current);
        self.forget_known();
        let _ = writeln!(self.region().text, "{label}:");
        self.current = label;
        self.ended = false;
    }

    pub fn current(&self) -> Label {
        self.current
    }

    pub fn branch(&mut self, to: Label) {
        self.terminate(format_args!("br label %{to}"));
    }

    /// The branch that closes a loop.
    pub fn loop_branch(&mut self, to: Label, hints: Option<Metadata>) {
        match hints {
            Some(hints) => self.terminate(format_args!("br label %{to}, !llvm.loop {hints}")),
            None => self.branch(to),
        }
    }

    pub fn branch_if(&mut self, condition: &Val, then: Label, otherwise: Label) {
        self.terminate(format_args!("br {condition}, label %{then}, label %{otherwise}"));
    }

    pub fn ret(&mut self, value: impl Display) {
        self.terminate(format_args!("ret {value}"));
    }

    fn terminate(&mut self, instruction: impl Display) {
        self.effect(instruction);
        self.ended = true;
    }

    /// The counter of a loop: `first` when coming from the current block's predecessor `from`, and from `latch` the value
    /// that [`Self::loop_step`] makes there.
    pub fn loop_phi(&mut self, first: &Val, from: Label, latch: Label) -> Val {
        let (ty, next) = (first.ty, format!("%v{}.next", self.values));
        self.emit(ty, format_args!("phi {ty} [ {}, %{from} ], [ {next}, %{latch} ]", first.text))
    }

    /// Makes a counter's next value, in its loop's latch.
    pub fn loop_step(&mut self, counter: &Val, instruction: impl Display) {
        self.effect(format_args!("{}.next = {instruction}", counter.text));
    }

    /// A phi of known incoming values.
    pub fn phi(&mut self, ty: Ty, incoming: &[(Val, Label)]) -> Val {
        let list: Vec<String> = incoming.iter().map(|(value, from)| format!("[ {}, %{from} ]", value.text)).collect();
        self.emit(ty, format_args!("phi {ty} {}", list.join(", ")))
    }
}

/// Operands with commas between them.
pub(crate) fn join<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for item in items {
        let separator = if out.is_empty() { "" } else { ", " };
        let _ = write!(out, "{separator}{item}");
    }
    out
}
