//! [`BlockBuilder`]: writes functions binding by binding.
//!
//! The builder brings what it is given to A-normal form (operands that are computations get variables of their own), infers
//! types, names variables, and keeps the module that the functions and their kernels go to. Importers, the parser and the
//! passes all write through it.
//!
//! ```text
//! let y = b.emit(op::call("add", [x, x])?)?;      # y = R.add(x, x)
//! b.begin_dataflow(); … b.emit_output(e)?; b.end_dataflow();
//! b.function("main", params, |b| …)?;
//! ```
//!
//! **Gives:** every variable is bound once; every value is one operation over variables and literals; kernels that are
//! structurally equal are one kernel.

use std::collections::HashMap;

use relaxide_ffi::{FreeVars, Ref, structural_equal, structural_hash};
use relaxide_ir::span::{MaybeSpan, Span};
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};
use relaxide_tir::{PrimFunc, Stmt, te};

use crate::op::{self, KernelForm, OpError, OpPattern};
use crate::shape::{Broadcast, broadcast};
use crate::*;

pub use crate::build_error::BuildError;

/// What is done where two dimensions may or may not fit, as far as the compiler can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenDims {
    /// The result's dimensions are unknown.
    #[default]
    Unknown,
    /// They are taken to be equal, and a `match_cast` checks that when the program runs.
    AssertEqual,
}

/// Bindings under construction.
#[derive(Default)]
struct BindingScope {
    blocks: Vec<Ref<BindingBlock>>,
    open: Vec<Binding>,
    dataflow: bool,
    /// The variables of computations that were bound as operands: one that is used twice is bound once in a block.
    shared: HashMap<Ref<Call>, Expr>,
}

/// A kernel of the module and the name that it is called by.
type NamedKernel = (Ref<PrimFunc>, Ref<GlobalVar>);

/// Writes functions binding by binding.
#[derive(Default)]
pub struct BlockBuilder {
    module: IRModule,
    kernels: HashMap<u64, Vec<NamedKernel>>,
    names: HashMap<String, usize>,
    scopes: Vec<BindingScope>,
    open_dims: OpenDims,
    /// What variables are bound to, as far as this builder bound them.
    bound: HashMap<AnyVar, Expr>,
    /// What fresh variables come from.
    origin: MaybeSpan,
}

impl BlockBuilder {
    /// A builder of an empty module.
    pub fn new() -> Self {
        BlockBuilder::default()
    }

    /// A builder that adds to a module; its kernels are reused where equal ones are added.
    pub fn with_module(module: IRModule) -> Self {
        let mut builder = BlockBuilder { module, ..BlockBuilder::default() };
        let known: Vec<_> = builder.module.functions_of::<PrimFunc>().map(|(n, f)| (n.to_string(), f)).collect();
        for (name, func) in known {
            builder.remember(&func, GlobalVar::new(name));
        }
        builder
    }

    /// Chooses what is done where two dimensions may or may not fit.
    pub fn open_dims(mut self, choice: OpenDims) -> Self {
        self.open_dims = choice;
        self
    }

    /// The module so far.
    pub fn module(&self) -> &IRModule {
        &self.module
    }

    /// The module so far, to change.
    pub fn module_mut(&mut self) -> &mut IRModule {
        &mut self.module
    }

    /// The module, finished.
    pub fn finish(self) -> IRModule {
        self.module
    }

    // Functions of the module.

    fn remember(&mut self, func: &Ref<PrimFunc>, var: Ref<GlobalVar>) {
        let hash = kernel_hash(func);
        self.kernels.entry(hash).or_default().push((func.clone(), var));
    }

    /// Adds a kernel under a name like `hint`, or finds the one that is equal to it.
    pub fn add_kernel(&mut self, func: PrimFunc, hint: &str) -> Ref<GlobalVar> {
        let func = Ref::new(func);
        let alike = self.kernels.get(&kernel_hash(&func)).into_iter().flatten();
        let mut equal = alike.filter(|(known, _)| structural_equal(known, &func, FreeVars::Mapped).is_ok());
        if let Some((_, var)) = equal.next() {
            return var.clone();
        }
        let var = GlobalVar::new(self.module.fresh_name(hint));
        self.module.insert(var.name.clone(), func.clone());
        self.remember(&func, var.clone());
        var
    }

    /// Adds a function under a name like `hint`.
    pub fn add_function(&mut self, func: Ref<Function>, hint: &str) -> Ref<GlobalVar> {
        let var = GlobalVar::typed(self.module.fresh_name(hint), func.ty());
        self.module.insert(var.name.clone(), func);
        var
    }

    /// Writes a function: `body` emits bindings and returns the result. The function is not yet in the module.
    pub fn function<E: From<BuildError>>(
        &mut self,
        params: Vec<Ref<Var>>,
        attrs: Attrs,
        body: impl FnOnce(&mut Self) -> Result<Expr, E>,
    ) -> Result<Ref<Function>, E> {
        let names = std::mem::take(&mut self.names);
        for param in &params {
            self.reserve(&param.name);
        }
        self.begin_scope();
        let result = body(self).and_then(|result| Ok(self.normalize_arg(result)?));
        let seq = self.end_scope(result.as_ref().ok().cloned().unwrap_or_else(|| Expr::tuple([])));
        self.names = names;
        result?;
        let seq = seq?;
        let (ret_ty, pure) = (seq.body.ty(), is_pure_seq(&seq));
        Ok(Ref::new(Function { params, body: seq, ret_ty, pure, attrs, span: None }))
    }

    // Scopes and blocks.

    /// Begins a sequence: a function's body, or a branch.
    pub fn begin_scope(&mut self) {
        self.scopes.push(BindingScope::default());
    }

    /// Ends a sequence.
    pub fn end_scope(&mut self, body: Expr) -> Result<Ref<SeqExpr>, BuildError> {
        let mut scope = self.scopes.pop().ok_or_else(|| program("a scope ends that was not begun"))?;
        close_block(&mut scope, false);
        Ok(Ref::new(SeqExpr { blocks: scope.blocks, body }))
    }

    fn scope(&mut self) -> Result<&mut BindingScope, BuildError> {
        self.scopes.last_mut().ok_or_else(|| program("bindings are emitted inside a function"))
    }

    /// Begins a dataflow block; the open block ends.
    pub fn begin_dataflow(&mut self) -> Result<(), BuildError> {
        close_block(self.scope()?, true);
        Ok(())
    }

    /// Ends the open block and begins an ordinary one.
    pub fn end_dataflow(&mut self) -> Result<(), BuildError> {
        close_block(self.scope()?, false);
        Ok(())
    }

    /// Whether the open block is a dataflow block.
    pub fn in_dataflow(&self) -> bool {
        self.scopes.last().is_some_and(|s| s.dataflow)
    }

    // Bindings.

    /// Binds a value to a fresh variable, which lives to the end of the open block if that is a dataflow block.
    pub fn emit(&mut self, value: impl Into<Expr>) -> Result<Expr, BuildError> {
        let hint = if self.in_dataflow() { "lv" } else { "gv" };
        self.emit_named(hint, value)
    }

    /// As [`emit`](Self::emit), with a name of one's own, which is made unique.
    pub fn emit_named(&mut self, hint: &str, value: impl Into<Expr>) -> Result<Expr, BuildError> {
        let value = self.normalize(value.into())?;
        let var = self.fresh_var(hint, value.ty(), self.in_dataflow());
        self.push(Ref::new(VarBinding { var: var.clone(), value }).into())?;
        Ok(var.into())
    }

    /// Binds a value to a fresh variable that lives to the end of the function.
    pub fn emit_output(&mut self, value: impl Into<Expr>) -> Result<Expr, BuildError> {
        self.emit_output_named("gv", value)
    }

    /// As [`emit_output`](Self::emit_output), with a name of one's own, which is made unique.
    pub fn emit_output_named(&mut self, hint: &str, value: impl Into<Expr>) -> Result<Expr, BuildError> {
        let value = self.normalize(value.into())?;
        let var = self.fresh_var(hint, value.ty(), false);
        self.push(Ref::new(VarBinding { var: var.clone(), value }).into())?;
        Ok(var.into())
    }

    /// Binds a value to a given variable.
    pub fn bind(&mut self, var: AnyVar, value: impl Into<Expr>) -> Result<(), BuildError> {
        self.reserve(var.name());
        let value = self.normalize(value.into())?;
        self.push(Ref::new(VarBinding { var, value }).into())
    }

    /// Checks at run time that a value has a type, and binds symbolic variables that the type mentions first.
    pub fn match_cast(&mut self, value: impl Into<Expr>, ty: Type) -> Result<Expr, BuildError> {
        self.match_cast_with(Vec::new(), value, ty)
    }

    /// The same, with what is said of each dimension that is not what it must be ([`Span::notes`]; see also [`guard_note`](crate::guard_note)).
    pub fn match_cast_with(
        &mut self,
        notes: Vec<String>,
        value: impl Into<Expr>,
        ty: Type,
    ) -> Result<Expr, BuildError> {
        let hint = if self.in_dataflow() { "lv" } else { "gv" };
        let value = self.normalize_arg(value.into())?;
        let noted = |origin: &MaybeSpan| {
            let words = origin.as_ref().map_or_else(String::new, |span| span.source.clone());
            Some(Span::with_notes(words, notes.clone()))
        };
        let outer = if notes.is_empty() { self.origin.clone() } else { self.set_origin(noted(&self.origin)) };
        let var = self.fresh_var(hint, ty.clone(), self.in_dataflow());
        self.set_origin(outer);
        self.push(Ref::new(MatchCast { var: var.clone(), value, ty }).into())?;
        Ok(var.into())
    }

    /// A call of an operator, bound to a fresh variable.
    pub fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr, BuildError> {
        let args = args.into().into_iter().map(|a| self.normalize_arg(a)).collect::<Result<Vec<_>, _>>()?;
        let call = op::call(name, args, attrs)?;
        self.emit(call)
    }

    /// A call of a kernel that is described here and now: `f` gets a tensor for each argument and returns the outputs.
    pub fn emit_te(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        f: impl FnOnce(&[te::Tensor]) -> Vec<te::Tensor>,
    ) -> Result<Expr, BuildError> {
        let call = self.call_te(name, args, f)?;
        self.emit(call)
    }

    /// As [`emit_te`](Self::emit_te), but the call is not bound.
    pub fn call_te(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        f: impl FnOnce(&[te::Tensor]) -> Vec<te::Tensor>,
    ) -> Result<Expr, BuildError> {
        let inputs = kernel_inputs(name, &args)?;
        let outputs = f(&inputs);
        self.call_stages(name, args, inputs, outputs)
    }

    fn call_stages(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        inputs: Vec<te::Tensor>,
        outputs: Vec<te::Tensor>,
    ) -> Result<Expr, BuildError> {
        let out: Vec<Type> = outputs.iter().map(|t| Type::tensor(t.shape(), t.dtype())).collect();
        let (kernel, scalars) = make_kernel(name, inputs, outputs, Vec::new(), KernelForm::Fast)?;
        let func = self.add_kernel(kernel, name);
        let out = if let [one] = out.as_slice() { one.clone() } else { Type::tuple(out) };
        let out = op::device::beside(&args, out);
        let scalars = scalars.iter().map(Expr::prim);
        Ok(op::core::call_tir(func, args.into_iter().chain(scalars).collect::<Vec<_>>(), out)?)
    }

    fn push(&mut self, binding: Binding) -> Result<(), BuildError> {
        self.bound.insert(binding.var().clone(), binding.value().clone());
        self.scope()?.open.push(binding);
        Ok(())
    }

    /// The value that a variable is bound to, as far as this builder bound it.
    pub fn lookup_binding(&self, var: &AnyVar) -> Option<Expr> {
        self.bound.get(var).cloned()
    }

    /// How many sequences have begun and not ended.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Binds as it is, without bringing the value to normal form: for passes that know that it is.
    pub fn push_binding(&mut self, binding: Binding) -> Result<(), BuildError> {
        self.reserve(binding.var().name());
        self.push(binding)
    }

    /// Says what the variables come from that are made from now on; what they came from before is returned.
    pub fn set_origin(&mut self, origin: MaybeSpan) -> MaybeSpan {
        std::mem::replace(&mut self.origin, origin)
    }

    /// What the variables come from that are made now.
    pub fn origin(&self) -> &MaybeSpan {
        &self.origin
    }

    // Names.

    /// A fresh variable of a name like `hint`.
    pub fn fresh_var(&mut self, hint: &str, ty: Type, dataflow: bool) -> AnyVar {
        let name = self.fresh_name(hint);
        let span = self.origin.clone();
        if dataflow {
            AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span }))
        } else {
            AnyVar::Var(Ref::new(Var { name, ty, span }))
        }
    }

    fn fresh_name(&mut self, hint: &str) -> String {
        loop {
            let count = self.names.entry(hint.to_string()).or_insert(0);
            let name = if *count == 0 { hint.to_string() } else { format!("{hint}{count}") };
            *count += 1;
            if *count == 1 || !self.names.contains_key(&name) {
                self.names.entry(name.clone()).or_insert(1);
                return name;
            }
        }
    }

    /// Keeps a name from being given to a fresh variable.
    pub fn reserve(&mut self, name: &str) {
        let count = self.names.entry(name.to_string()).or_insert(0);
        *count = (*count).max(1);
    }

    // Normal form.

    /// Brings an expression to a form that one binding may hold.
    pub fn normalize(&mut self, expr: Expr) -> Result<Expr, BuildError> {
        match expr {
            Expr::Call(call) => self.normalize_call(call),
            Expr::Tuple(tuple) => {
                let fields = self.normalize_args(&tuple.fields)?;
                Ok(if fields == tuple.fields { tuple.into() } else { Expr::tuple(fields) })
            }
            Expr::TupleGetItem(item) => {
                let tuple = self.normalize_arg(item.tuple.clone())?;
                if tuple == item.tuple {
                    return Ok(item.into());
                }
                Ok(Ref::new(TupleGetItem { tuple, index: item.index }).into())
            }
            Expr::If(choice) => {
                let condition = self.normalize_arg(choice.condition.clone())?;
                if condition == choice.condition && !choice.ty.is_missing() {
                    return Ok(choice.into());
                }
                let (true_branch, false_branch) = (choice.true_branch.clone(), choice.false_branch.clone());
                let ty = crate::shape::unify(&true_branch.body.ty(), &false_branch.body.ty());
                Ok(Ref::new(If { condition, true_branch, false_branch, ty }).into())
            }
            Expr::Seq(seq) => {
                for binding in seq.blocks.iter().flat_map(|b| &b.bindings) {
                    self.push_binding(binding.clone())?;
                }
                self.normalize(seq.body.clone())
            }
            leaf => Ok(leaf),
        }
    }

    /// Brings an expression to a form that may stand as an operand, binding it if it is a computation.
    pub fn normalize_arg(&mut self, expr: Expr) -> Result<Expr, BuildError> {
        let call = if let Expr::Call(call) = &expr { Some(call.clone()) } else { None };
        let known = call.as_ref().and_then(|call| self.scopes.last()?.shared.get(call).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let bound = match self.normalize(expr)? {
            value @ (Expr::Call(_) | Expr::TupleGetItem(_) | Expr::If(_) | Expr::Function(_)) => self.emit(value)?,
            leaf => leaf,
        };
        if let (Some(call), Some(scope)) = (call, self.scopes.last_mut()) {
            scope.shared.insert(call, bound.clone());
        }
        Ok(bound)
    }

    fn normalize_args(&mut self, args: &[Expr]) -> Result<Vec<Expr>, BuildError> {
        args.iter().map(|a| self.normalize_arg(a.clone())).collect()
    }

    fn normalize_call(&mut self, call: Ref<Call>) -> Result<Expr, BuildError> {
        let args = self.normalize_args(&call.args)?;
        let call = if args == call.args {
            call
        } else {
            let ty = if let Expr::Op(_) = call.op { Type::missing() } else { call.ty.clone() };
            call.with_args(args, ty)
        };
        let call = if call.ty.is_missing() { call.with_args(call.args.clone(), infer(&call)?) } else { call };
        if self.open_dims == OpenDims::AssertEqual
            && let Some(asserted) = self.assert_equal_dims(&call)?
        {
            return Ok(asserted);
        }
        Ok(call.into())
    }

    /// The call over operands whose dimensions are checked to be equal at run time, where that makes its shape known.
    fn assert_equal_dims(&mut self, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
        let Some(def) = call.op_name().and_then(op::lookup).filter(|d| d.pattern == OpPattern::Broadcast) else {
            return Ok(None);
        };
        if call.ty.as_tensor().is_none_or(|t| t.shape.is_some()) {
            return Ok(None);
        }
        let mut args = call.args.clone();
        for i in 1..args.len() {
            for j in 0..i {
                self.align(&mut args, j, i)?;
            }
        }
        if args == call.args {
            return Ok(None);
        }
        Ok(Some(op::call(def.name, args, call.attrs.clone())?))
    }

    /// Casts operands `i` and `j` so that they can be broadcast.
    fn align(&mut self, args: &mut [Expr], i: usize, j: usize) -> Result<(), BuildError> {
        let dims_of = |e: &Expr| e.ty().as_tensor().and_then(|t| t.shape.clone());
        let (Some(mut a), Some(mut b)) = (dims_of(&args[i]), dims_of(&args[j])) else { return Ok(()) };
        let Broadcast::Open(open) = broadcast(&a, &b) else { return Ok(()) };
        let ndim = a.len().max(b.len());
        let (mut cast_a, mut cast_b) = (false, false);
        for at in open {
            let (ia, ib) = (at + a.len() - ndim, at + b.len() - ndim);
            if b[ib].as_int().is_some() {
                a[ia] = b[ib].clone();
                cast_a = true;
            } else {
                b[ib] = a[ia].clone();
                cast_b = true;
            }
        }
        for (index, dims, cast) in [(i, a, cast_a), (j, b, cast_b)] {
            if cast && let Some(ty) = args[index].ty().as_tensor() {
                args[index] = self.match_cast(args[index].clone(), Type::tensor(dims, ty.dtype))?;
            }
        }
        Ok(())
    }
}

/// The type of a call.
pub fn infer(call: &Call) -> Result<Type, OpError> {
    match &call.op {
        Expr::Op(_) => op::infer_call(call),
        callee => Ok(match callee.ty() {
            Type::Func(func) if func.derive.is_some() => {
                func.derive.as_deref().map_or(Ok(Type::any()), |rule| crate::derived::type_of(rule, call))?
            }
            Type::Func(func) if func.params.is_some() => {
                crate::shape::call_type(&func, &call.args.iter().map(Expr::ty).collect::<Vec<_>>())
            }
            ty => match call.ty_args.as_slice() {
                [] => match ty {
                    Type::Func(func) => func.ret.clone(),
                    _ => Type::any(),
                },
                [ty] => ty.clone(),
                types => Type::tuple(types.to_vec()),
            },
        }),
    }
}

/// Whether evaluating an expression has no visible effect.
pub fn is_pure(expr: &Expr) -> bool {
    match expr {
        Expr::Call(call) => match &call.op {
            Expr::Op(op) => op.def().is_some_and(|d| d.pure),
            callee => matches!(callee.ty(), Type::Func(f) if f.pure),
        },
        Expr::If(choice) => is_pure_seq(&choice.true_branch) && is_pure_seq(&choice.false_branch),
        Expr::Seq(seq) => is_pure_seq(seq),
        _ => true,
    }
}

/// Whether evaluating a sequence has no visible effect.
pub fn is_pure_seq(seq: &SeqExpr) -> bool {
    seq.blocks.iter().flat_map(|b| &b.bindings).all(|b| is_pure(b.value())) && is_pure(&seq.body)
}

/// A kernel of described tensors, and the scalars that it takes: parameters are the inputs, the scalars, the outputs.
pub fn make_kernel(
    name: &str,
    inputs: Vec<te::Tensor>,
    outputs: Vec<te::Tensor>,
    checks: Vec<Stmt>,
    form: KernelForm,
) -> Result<(PrimFunc, Vec<Ref<Var>>), BuildError> {
    let (n, all) = (inputs.len(), inputs.into_iter().chain(outputs).collect::<Vec<_>>());
    let create = match form {
        KernelForm::Plain => te::create_simplified,
        KernelForm::Fast => te::create_checked,
    };
    let mut kernel = create(&all, checks).map_err(|source| BuildError::Kernel { name: name.to_string(), source })?;
    let scalars = kernel.params.split_off(all.len());
    kernel.buffers.truncate(all.len());
    kernel.params.splice(n..n, scalars.iter().cloned());
    kernel.buffers.splice(n..n, scalars.iter().map(|_| None));
    Ok((kernel, scalars))
}

/// A tensor of a kernel for each argument.
fn kernel_inputs(name: &str, args: &[Expr]) -> Result<Vec<te::Tensor>, BuildError> {
    let input = |(i, arg): (usize, &Expr)| {
        let Type::Tensor(ty) = arg.ty() else { return Err(program(format!("{name}: argument {i} is no tensor"))) };
        let dims = ty.shape.as_ref().ok_or_else(|| program(format!("{name}: argument {i} has no known shape")))?;
        Ok(te::placeholder(kernel_arg_name(i), dims, ty.dtype))
    };
    args.iter().enumerate().map(input).collect()
}

/// The name of a kernel's `i`th input: `A`, `B` … `Z`, `in26` …
pub fn kernel_arg_name(i: usize) -> String {
    match u8::try_from(i) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => format!("in{i}"),
    }
}

fn kernel_hash(func: &Ref<PrimFunc>) -> u64 {
    structural_hash(func, FreeVars::Mapped)
}

fn program(message: impl Into<String>) -> BuildError {
    BuildError::Program(message.into())
}

/// Ends the open block of a scope and begins another.
fn close_block(scope: &mut BindingScope, dataflow: bool) {
    if !scope.open.is_empty() {
        let bindings = std::mem::take(&mut scope.open);
        scope.blocks.push(Ref::new(BindingBlock { bindings, dataflow: scope.dataflow }));
    }
    scope.dataflow = dataflow;
    // Variables of a dataflow block end with it.
    scope.shared.clear();
}
