//! What is known while the body of one kernel is written: variables, memory, what must be given back.

use std::collections::HashMap;

use relaxide_ir::prim::is_data;
use relaxide_ir::{BinaryOp, Buffer, DataType, PrimExpr, Ref, Var, prim::PrimVisitor};
use relaxide_tir::lower::Fault;
use relaxide_tir::{PrimFunc, SEPARATE_ROUNDING, Stmt, StmtVisitor};

use super::{
    dot_bytes::DotUnits,
    function::{FunctionText, Label, join},
    module::{Metadata, ModuleText},
    neighbours::Pair,
    value::{Overflow, Ty, Val},
};
use crate::{error::CodegenError, on_device::OnDevice, stack::StackBudget, target::NativeTarget};

/// The body of one function in the making.
pub(crate) struct Body<'m, 'k> {
    pub f: FunctionText<'m>,
    pub kernel: &'k Kernel,
    /// Scalars, and the pointers of buffers under their data variables.
    pub vars: HashMap<Ref<Var>, Val>,
    /// Workspace memory that every way out must free, innermost last.
    pub workspaces: Vec<Val>,
    /// The loops around, the innermost last.
    pub loops: Vec<LoopEnds>,
    /// What of the stack is left for buffers.
    pub stack: StackBudget,
    /// What the expression at hand may assume of integer arithmetic.
    pub overflow: Overflow,
    /// Lanes outside of which nothing may be read, while one side of a lane-wise choice is evaluated.
    pub mask: Option<Val>,
    /// Values of expression nodes that were already evaluated in this statement and are still in reach.
    pub memo: Vec<(MemoKey, Val)>,
    /// The lookup of `memo`.
    pub memo_index: HashMap<MemoKey, usize>,
    /// Loads of the statement at hand that read neighbours.
    pub pairs: Vec<Pair>,
    /// Where a result goes that the kernel returns.
    pub result: Option<Val>,
    /// Whether this is the body of a parallel loop; loops inside are executed by one thread.
    pub in_parallel: bool,
}

/// An expression node, and under which promise about integers it was evaluated.
pub(crate) type MemoKey = (PrimExpr, Overflow);

/// What the functions of one kernel share.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub name: String,
    /// Lists for the accesses of each buffer, by its data variable: its own alias scope and the scopes of all others.
    aliasing: HashMap<Ref<Var>, (Metadata, Metadata)>,
    pub native_f16: bool,
    native_fma: bool,
    native_scaling: bool,
    reads_coefficients: bool,
    /// Whether the processor has scalable vectors.
    pub scalable: bool,
    /// Whether the processor gathers elements of 32 bits and more in the lanes of a mask.
    pub gathers: bool,
    /// What there is for products of bytes.
    pub dots: DotUnits,
    /// Whether one instruction rounds floats to integers of 32 bits, lane by lane, and gives 0x80000000 for what is no number.
    pub rounds_to_ints: bool,
    /// Whether a masked store takes the last bits of wider elements.
    pub narrows_as_it_stores: bool,
    /// Whether masks are vectors of the elements' width, as those of AVX are.
    pub masks_are_vectors: bool,
    /// For which machine, in errors.
    triple: String,
    /// Whether a product and a sum may become one operation.
    pub contract: bool,
    /// The type of the device that its tensors are on, and that its scratch memory comes from.
    pub device_type: i64,
    /// What there is where it runs on a device.
    pub device: Option<OnDevice>,
}

impl Kernel {
    /// Learns which buffers there are, and writes down that they do not overlap.
    pub fn new(name: String, func: &PrimFunc, native: &NativeTarget, text: &mut ModuleText) -> Self {
        let params: Vec<Ref<Var>> = func.buffers.iter().flatten().map(|buffer| buffer.data.clone()).collect();
        let mut locals = Locals::default();
        locals.visit_stmt(&func.body);
        let distinct_params = func.attrs.bool("tirx.noalias") == Some(true);
        let domain = text.metadata("distinct !{{self}}");
        let mut scope = || text.metadata(&format!("distinct !{{{{self}}, {domain}}}"));
        // Parameters that may overlap share one scope.
        let shared = scope();
        let mut scopes: Vec<(Ref<Var>, Metadata)> = Vec::new();
        for var in params {
            let own = if distinct_params { scope() } else { shared };
            scopes.push((var, own));
        }
        for var in locals.0 {
            scopes.push((var, scope()));
        }
        let mut aliasing = HashMap::new();
        for (var, own) in &scopes {
            let others = join(scopes.iter().filter(|(_, scope)| scope != own).map(|(_, scope)| scope));
            let lists = (text.metadata(&format!("!{{{own}}}")), text.metadata(&format!("!{{{others}}}")));
            aliasing.insert(var.clone(), lists);
        }
        let (native_f16, native_fma) = (native.has_f16_conversion(), native.has_fused_multiply_add());
        let reads_coefficients = native.reads_coefficients();
        // Which products and sums LLVM joins depends on the processor.
        let contract = func.attrs.bool(SEPARATE_ROUNDING) != Some(true) && !native.deterministic;
        let (scalable, gathers) = (native.has_scalable_vectors(), native.has_masked_gather());
        Self {
            name,
            aliasing,
            native_f16,
            native_fma,
            native_scaling: native.has_scaling(),
            reads_coefficients,
            scalable,
            gathers,
            dots: DotUnits::of(native),
            rounds_to_ints: native.rounds_to_ints(),
            narrows_as_it_stores: native.narrows_as_it_stores(),
            masks_are_vectors: native.has_vectors_as_masks(),
            triple: native.triple.clone(),
            contract,
            device_type: func.attrs.int(relaxide_tir::lower::DEVICE_TYPE).unwrap_or(1),
            device: None,
        }
    }

    /// The same for a function of a device.
    pub fn on_device(self, device: OnDevice) -> Self {
        Self { device: Some(device), ..self }
    }

    /// What follows a load or store instruction of the buffer.
    pub fn access_metadata(&self, data: &Ref<Var>) -> String {
        match self.aliasing.get(data) {
            Some((own, others)) => format!(", !alias.scope {own}, !noalias {others}"),
            None => String::new(),
        }
    }

    pub fn unsupported(&self, what: impl Into<String>) -> CodegenError {
        let back_end = if self.device.is_some() { "PTX" } else { "LLVM" };
        CodegenError::Unsupported { kernel: self.name.clone(), what: what.into(), back_end, statement: None }
    }

    pub fn malformed(&self, what: impl Into<String>) -> CodegenError {
        CodegenError::Malformed { kernel: self.name.clone(), what: what.into(), statement: None }
    }

    pub fn ty(&self, dtype: DataType) -> Result<Ty, CodegenError> {
        Ty::of(dtype).ok_or_else(|| CodegenError::ElementType {
            kernel: self.name.clone(),
            dtype,
            triple: self.triple.clone(),
            statement: None,
        })
    }
}

/// Where a loop is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopEnds {
    /// Where its next iteration begins.
    pub next: Label,
    /// What stands behind it.
    pub done: Label,
    /// How many workspaces there are outside of it.
    pub workspaces: usize,
}

impl<'m, 'k> Body<'m, 'k> {
    pub fn new(kernel: &'k Kernel, module: &'m mut ModuleText) -> Self {
        let mut f = FunctionText::new(module, kernel.native_f16);
        f.contract = kernel.contract;
        f.native_fma = kernel.native_fma;
        f.native_scaling = kernel.native_scaling;
        f.reads_coefficients = kernel.reads_coefficients;
        f.has_library = kernel.device.is_none();
        Self {
            f,
            kernel,
            vars: HashMap::new(),
            workspaces: Vec::new(),
            loops: Vec::new(),
            stack: StackBudget::default(),
            overflow: Overflow::Wraps,
            mask: None,
            memo: Vec::new(),
            memo_index: HashMap::new(),
            pairs: Vec::new(),
            result: None,
            in_parallel: false,
        }
    }

    /// The value of a variable.
    pub fn var(&self, var: &Ref<Var>) -> Result<Val, CodegenError> {
        let known = self.vars.get(var).cloned();
        known.ok_or_else(|| self.kernel.malformed(format!("variable `{}` has no value here", var.name)))
    }

    /// Leaves the function: 0 is success, anything else means that an error was raised.
    pub fn leave(&mut self, code: i32) {
        for workspace in self.workspaces.clone().iter().rev() {
            self.free_workspace(workspace);
        }
        match self.kernel.device {
            Some(_) => self.f.ret("void"),
            None => self.f.ret(format_args!("i32 {code}")),
        }
    }

    /// Leaves with -1 unless `code` is zero.
    pub fn leave_unless_zero(&mut self, code: &Val) {
        let failed = self.f.icmp("ne", code, &Val::zero(code.ty));
        let (fail, go_on) = (self.f.label(), self.f.label());
        self.f.branch_if(&failed, fail, go_on);
        self.f.start(fail);
        self.leave(-1);
        self.f.start(go_on);
    }

    /// Forgets all values, at the end of a statement.
    pub fn forget_values(&mut self) {
        self.memo.clear();
        self.memo_index.clear();
        self.pairs.clear();
    }

    /// Forgets values that were made since `mark`, because what follows is not reached through them.
    pub fn forget_since(&mut self, mark: usize) {
        for (node, _) in self.memo.drain(mark..) {
            self.memo_index.remove(&node);
        }
    }

    /// Evaluates an index with the promise that no integer overflows, and as 64 bits.
    pub fn index(&mut self, e: &PrimExpr) -> Result<Val, CodegenError> {
        let value = self.index_typed(e)?;
        Ok(self.f.convert(&value, Ty::I64))
    }

    /// Evaluates an index, extent or condition of indices in its own type. What depends on memory is data, which nobody has
    /// promised anything of.
    pub fn index_typed(&mut self, e: &PrimExpr) -> Result<Val, CodegenError> {
        let promise = if is_data(e) { Overflow::Wraps } else { Overflow::Never };
        let outer = std::mem::replace(&mut self.overflow, promise);
        let value = self.eval(e);
        self.overflow = outer;
        value
    }

    /// Raises an error of fixed text and leaves.
    pub fn fail(&mut self, kind: &str, message: &str) {
        if self.kernel.device.is_some() {
            let nothing = Val::int(Ty::I64, 0);
            return self.fault(&Fault::Assertion(kind.to_string(), message.to_string()), [&nothing, &nothing]);
        }
        super::raise::raise(&mut self.f, kind, message);
        self.leave(-1);
    }

    /// The product of a buffer's dimensions.
    pub fn num_elements(&mut self, buffer: &Buffer) -> Result<Val, CodegenError> {
        let mut product = Val::int(Ty::I64, 1);
        for dimension in &buffer.shape {
            let dimension = self.index(dimension)?;
            product = self.f.binary(BinaryOp::Mul, &product, &dimension, Overflow::Never);
        }
        Ok(product)
    }
}

/// The data variables of buffers that are allocated inside.
#[derive(Default)]
struct Locals(Vec<Ref<Var>>);

impl PrimVisitor for Locals {}
impl StmtVisitor for Locals {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::Alloc(alloc) = stmt {
            self.0.push(alloc.buffer.data.clone());
        }
        self.walk_stmt(stmt);
    }
}
