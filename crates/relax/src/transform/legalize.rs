//! LegalizeOps: operators become kernels. DecomposeOps: what LegalizeOps does first.
//!
//! Each call of an operator whose row gives a compute becomes a `call_tir` of a kernel made from it. Equal kernels are made
//! once. Operators without a kernel (those of the language itself, VM builtins) stay.
//!
//! ```text
//! y = R.add(x, x)   →   y = R.call_tir(cls.add, (x, x), out_ty=R.Tensor((n, 4), "float32"))
//!
//!                       @T.prim_func
//!                       def add(A, B, T_add):  T_add[i, j] = A[i, j] + B[i, j]
//! ```
//!
//! A kernel has symbolic variables of its own, bound by the shapes of its tensors; those that no shape binds follow the
//! input tensors as scalars. A constant of one element becomes a literal in element-wise kernels. An element-wise operator of
//! scalars alone becomes a scalar expression.
//!
//! A program may lower operators itself ([`legalize_ops`] for one run, [`note_lowering`] for all): what its functions return and emit takes the
//! place of the call, and is lowered further where it is made of operators.
//!
//! Kernels are written as TVM writes them, for programs that schedule or match them. With `fast`, which pipelines give, they are written as
//! the schedule rules take least time for, and some operators become others first ([`OpDef::instead`]). DecomposeOps does that alone, for passes
//! that look for the others.
//!
//! A kernel is that of the value's device, or else of the target: some operators have other computes where there are many threads. Where
//! the value says its device, the kernel as TVM writes it says it too, in its name (`add_opencl`) and its attribute `target`; and a
//! convolution whose weight is packed (`OIHW4o`) stays on an Adreno device, whose pipeline gives the function that lowers it.
//!
//! **Needs** known dimensions of all tensors, and of the result. Where they are not known the call stays, and code
//! generation says so.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, Pass, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::target::TargetKind;
use relaxide_ir::{Attrs, IRModule, Target, Type, Var};
use relaxide_tir::{PrimFunc, Stmt, te};

use super::bind_kernel_targets::target_of;
use super::dispatch::kind_of;
use super::fuse_by_pattern::strings;
use super::reshape_proof::is_reshape;
use crate::builder::{kernel_arg_name, make_kernel};
use crate::compute::{Operand, scalar_compute};
use crate::constant::as_scalar;
use crate::op::core::call_tir;
use crate::op::divide;
use crate::op::kernel_names::{kernel_name, last_part};
use crate::op::{CallCx, KernelForm, Lowering, MemoryUse, OpDef, OpError, lengths, lookup};
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::shape::{substitute_type, vars_of};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new("LegalizeOps", "Operators become kernels.", |module, context, args| {
    run(module, context.target.kind, &options_of(args))
})
.params(&[CUSTOM, SKIP, WARNING, FAST]);

pub(super) const DECOMPOSE: PassInfo = PassInfo::new(
    "DecomposeOps",
    "Operators that are made of operators become those, and with `fast` some become others that do the same faster.",
    |module, context, args| decompose(DECOMPOSE.name, module, context.target.kind, &options_of(args)),
)
.params(&[CUSTOM, SKIP, WARNING, FAST, BEFORE_ALGORITHMS]);

const CUSTOM: PassParam = PassParam::optional(
    "customize_legalize_map",
    ParamKind::Absent,
    "For operators by name, functions of the block builder and the call that return what takes its place.",
);
const SKIP: PassParam = PassParam::optional("skip_ops", ParamKind::Strs, "Operators that stay.");
const WARNING: PassParam = PassParam::new(
    "enable_warning",
    ParamKind::Bool,
    ParamDefault::Bool(false),
    "For programs that give it; an operator without a kernel stays as it is.",
);
const FAST: PassParam = PassParam::new(
    "fast",
    ParamKind::Bool,
    ParamDefault::Bool(false),
    "Whether kernels are those that take least time, and operators become others that do the same faster.",
);
const BEFORE_ALGORITHMS: PassParam = PassParam::new(
    "before_algorithms",
    ParamKind::Bool,
    ParamDefault::Bool(false),
    "Whether operators stay that a later pass chooses an algorithm for.",
);

/// Lowers a call in its own way.
pub type CustomLowering = dyn Fn(&mut BlockBuilder, &Ref<Call>) -> Result<Expr, PassError> + Send + Sync;

/// Options of the pass. Names of operators may carry the prefix `relax.`.
#[derive(Clone, Default)]
pub struct LegalizeOptions {
    /// Operators that the program lowers itself.
    pub custom: HashMap<String, Arc<CustomLowering>>,
    /// Operators that stay.
    pub skip: Vec<String>,
    /// Which kernels are made.
    pub form: KernelForm,
    /// Whether operators stay that a later pass chooses an algorithm for ([`OpDef::has_algorithms`]).
    pub before_algorithms: bool,
}

/// What arguments of a pass say.
fn options_of(args: &Attrs) -> LegalizeOptions {
    let form = if args.bool("fast") == Some(true) { KernelForm::Fast } else { KernelForm::Plain };
    let before_algorithms = args.bool(BEFORE_ALGORITHMS.name) == Some(true);
    LegalizeOptions { custom: noted(), skip: strings(args.get("skip_ops")), form, before_algorithms }
}

/// What [`note_lowering`] was told, by the operators' names.
static NOTED: RwLock<Option<HashMap<String, Arc<CustomLowering>>>> = RwLock::new(None);

/// Lets every run of the pass that is given no functions, as those of pipelines, ask one about an operator; `None` takes that back.
pub fn note_lowering(name: &str, lowering: Option<Arc<CustomLowering>>) {
    let mut noted = NOTED.write().unwrap_or_else(PoisonError::into_inner);
    let noted = noted.get_or_insert_default();
    match lowering {
        Some(lowering) => noted.insert(name.to_string(), lowering),
        None => noted.remove(name),
    };
}

fn noted() -> HashMap<String, Arc<CustomLowering>> {
    NOTED.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

/// Whether the program lowers an operator itself.
pub(super) fn has_own_lowering(name: &str) -> bool {
    let noted = NOTED.read().unwrap_or_else(PoisonError::into_inner);
    noted.as_ref().is_some_and(|noted| noted.keys().any(|key| plain(key) == plain(name)))
}

/// The name of an operator without its prefix.
fn plain(name: &str) -> &str {
    name.trim_start_matches("relax.")
}

/// The pass with options.
pub fn legalize_ops(options: LegalizeOptions) -> Pass {
    Pass::new(PASS.name, move |module, context| run(module, context.target.kind, &options))
}

/// The kernel attribute that says that a kernel only copies elements in order, so that a view will do.
pub const RESHAPE_ATTR: &str = "relax.reshape";

/// How often operators that are made of operators are decomposed before the pass gives up.
const MAX_ROUNDS: usize = 8;

fn run(module: IRModule, default: TargetKind, options: &LegalizeOptions) -> PassResult {
    let module = decompose(PASS.name, module, default, options)?;
    let skip = &skipped(options);
    rewrite_module(PASS.name, module, &mut Legalize { skip, default, form: options.form })
}

/// Opens operators until none is left that is made of others.
fn decompose(pass: &'static str, mut module: IRModule, default: TargetKind, options: &LegalizeOptions) -> PassResult {
    let skip = &skipped(options);
    let custom = options.custom.iter().map(|(name, lower)| (plain(name).to_string(), lower)).collect();
    let mut customize = Customize { custom, skip, seen: HashSet::new(), failed: None };
    for _ in 0..MAX_ROUNDS {
        if !customize.custom.is_empty() {
            let customized = rewrite_module(pass, module, &mut customize);
            module = customize.failed.take().map_or(customized, Err)?;
        }
        let mut decompose = Decompose { changed: false, skip, default, form: options.form };
        module = rewrite_module(pass, module, &mut decompose)?;
        if !decompose.changed {
            break;
        }
    }
    Ok(module)
}

/// The operators that stay.
fn skipped(options: &LegalizeOptions) -> HashSet<String> {
    let waiting = op::all().filter(|def| options.before_algorithms && def.has_algorithms);
    options.skip.iter().map(|name| plain(name).to_string()).chain(waiting.map(|def| def.name.to_string())).collect()
}

/// Lowers operators as the program says, each call once.
struct Customize<'a> {
    custom: HashMap<String, &'a Arc<CustomLowering>>,
    skip: &'a HashSet<String>,
    /// Variables that a lowering was asked for.
    seen: HashSet<AnyVar>,
    failed: Option<PassError>,
}

impl Rewrite for Customize<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, name)) = value.as_op_call() else { return Ok(Action::Bind(value)) };
        let name = name.trim_start_matches("relax.");
        let Some(lower) = self.custom.get(name).filter(|_| !self.skip.contains(name)) else {
            return Ok(Action::Bind(value));
        };
        if !self.seen.insert(var.clone()) {
            return Ok(Action::Bind(value));
        }
        match lower(b, call) {
            Ok(new) => Ok(Action::Bind(new)),
            Err(error) => {
                let why = BuildError::Program(error.to_string());
                self.failed = Some(error);
                Err(why)
            }
        }
    }
}

/// Opens operators that are made of operators.
struct Decompose<'a> {
    changed: bool,
    skip: &'a HashSet<String>,
    /// Where values are that say nothing.
    default: TargetKind,
    form: KernelForm,
}

impl Rewrite for Decompose<'_> {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, name)) = value.as_op_call() else { return Ok(Action::Bind(value)) };
        let Some(def) = lookup(name).filter(|d| !self.skip.contains(d.name)) else { return Ok(Action::Bind(value)) };
        let divided = def.divide.filter(|_| divide::is_wide(call) && is_known(call));
        let over_threads = kind_of(&call.ty).unwrap_or(self.default).is_gpu();
        let (args, attrs, ty_args) = (&call.args, &call.attrs, &call.ty_args);
        let cx = CallCx { def, args, attrs, ty_args, over_threads, form: self.form };
        if let Some(instead) = def.instead.filter(|_| self.form == KernelForm::Fast && is_known(call))
            && let Some(emit) = instead(&cx)?
        {
            self.changed = true;
            return Ok(Action::Bind(emit(b)?));
        }
        if divided.is_none() && is_in_steps(def, call, self.form) {
            return Ok(Action::Bind(value));
        }
        let open = match (divided, def.lower) {
            (Some(divide), _) | (None, Lowering::Decompose(divide)) => divide,
            _ => return Ok(Action::Bind(value)),
        };
        self.changed = true;
        Ok(Action::Bind(open(&cx, b)?))
    }
}

struct Legalize<'a> {
    skip: &'a HashSet<String>,
    /// Where values are that say nothing.
    default: TargetKind,
    form: KernelForm,
}

impl Rewrite for Legalize<'_> {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, name)) = value.as_op_call() else { return Ok(Action::Bind(value)) };
        let Some(def) = lookup(name) else { return Err(OpError::Unknown(name.to_string()).into()) };
        let has_kernel =
            matches!(def.lower, Lowering::Scalar(_) | Lowering::Compute(_)) || is_in_steps(def, call, self.form);
        if let Some(function) = def.at_run_time.filter(|_| !is_known(call) && !self.skip.contains(def.name)) {
            let args = [vec![Expr::external(function)], call.args.clone()].concat();
            return Ok(Action::Bind(op::call_typed("call_pure_packed", args, Attrs::new(), vec![call.ty.clone()])?));
        }
        let is_left = self.form == KernelForm::Plain && is_left_to_device(call);
        if !has_kernel || !is_known(call) || self.skip.contains(def.name) || is_left {
            return Ok(Action::Bind(value));
        }
        let over_threads = kind_of(&call.ty).unwrap_or(self.default).is_gpu();
        Ok(Action::Bind(lower(b, def, call, Way { over_threads, form: self.form })?))
    }
}

/// Whether a call is one that the pipeline of its device lowers in its own way.
fn is_left_to_device(call: &Call) -> bool {
    let is_packed = call.attrs.str("kernel_layout").is_some_and(|layout| layout.contains(|c: char| c.is_ascii_digit()));
    is_packed && device_of(&call.ty).is_some_and(|target| target.has_textures())
}

/// The target of the first device that a value says.
fn device_of(ty: &Type) -> Option<Ref<Target>> {
    match ty {
        Type::Tuple(t) => t.fields.iter().find_map(device_of),
        ty => target_of(ty),
    }
}

/// Whether all dimensions are known that a kernel needs.
pub(crate) fn is_known(call: &Call) -> bool {
    fn known(ty: &Type) -> bool {
        match ty {
            Type::Tensor(t) => t.shape.is_some() && !t.dtype.is_void(),
            Type::Shape(t) => t.values.is_some(),
            Type::Tuple(t) => t.fields.iter().all(known),
            Type::Any(_) | Type::Missing(_) => false,
            _ => true,
        }
    }
    known(&call.ty) && call.args.iter().all(|a| known(&a.ty()))
}

/// A call of an operator as a call of a kernel, if the operator becomes one and all dimensions are known.
pub(super) fn kernel_call(b: &mut BlockBuilder, call: &Call, over_threads: bool) -> Result<Option<Expr>, BuildError> {
    let Some(def) = call.op_name().and_then(lookup) else { return Ok(None) };
    let has_kernel = matches!(def.lower, Lowering::Scalar(_) | Lowering::Compute(_));
    let way = Way { over_threads, form: KernelForm::Fast };
    if has_kernel && is_known(call) { lower(b, def, call, way).map(Some) } else { Ok(None) }
}

/// Whether a call of an operator is one kernel of several blocks, for programs that go on with the kernels themselves.
fn is_in_steps(def: &OpDef, call: &Call, form: KernelForm) -> bool {
    let is_known = || call.args.iter().all(|arg| arg.ty().as_tensor().is_some_and(|t| t.shape.is_some()));
    form == KernelForm::Plain && def.steps.is_some() && matches!(def.lower, Lowering::Decompose(_)) && is_known()
}

/// For what a kernel is made.
#[derive(Clone, Copy)]
struct Way {
    over_threads: bool,
    form: KernelForm,
}

/// A call of an operator as a call of a kernel.
fn lower(b: &mut BlockBuilder, def: &'static OpDef, call: &Call, way: Way) -> Result<Expr, BuildError> {
    let renaming = Renaming::of(call);
    let Way { over_threads, form } = way;
    let args: Vec<Expr> = call.args.iter().map(|a| renaming.arg(a)).collect();
    let cx = CallCx { def, args: &args, attrs: &call.attrs, ty_args: &call.ty_args, over_threads, form };
    let mut inputs = Inputs::default();
    let operands: Vec<Vec<Operand>> =
        call.args.iter().zip(&args).map(|(old, new)| inputs.take(def, old, new)).collect();
    let name = kernel_name(def);
    let tensors: Vec<_> = operands.iter().flatten().filter_map(Operand::tensor).cloned().collect();
    let outputs = match def.lower {
        Lowering::Scalar(f) if matches!(call.ty, Type::Prim(_)) => {
            let values: Option<Vec<PrimExpr>> = call.args.iter().map(|arg| scalar_of(b, arg)).collect();
            let cx = CallCx { args: &call.args, ..cx };
            let values = values.ok_or_else(|| OpError::unsupported(def.name, "makes a scalar of scalars only"))?;
            return Ok(Expr::prim(f(&cx, &values)?));
        }
        _ if form == KernelForm::Plain && def.steps.is_some_and(|_| tensors.len() == operands.len()) => {
            def.steps.map_or(Ok(Vec::new()), |steps| steps(&cx, &tensors))?
        }
        Lowering::Scalar(f) => {
            let dims = output_dims(&substitute_type(&call.ty, &renaming.forward));
            vec![scalar_compute(last_part(def), &cx, f, &operands, &dims)?]
        }
        Lowering::Compute(f) => f(&cx, &tensors)?,
        _ => return Err(OpError::unsupported(def.name, "has no kernel").into()),
    };
    let checks = lengths::assertions(&cx)?;
    let (mut kernel, scalars, mut args) = kernel_of_read(name, inputs, outputs, checks, form)?;
    if form == KernelForm::Fast && def.memory == MemoryUse::View && !is_reshape(&kernel) {
        kernel.attrs = kernel.attrs.with(RESHAPE_ATTR, true);
    }
    args.extend(scalars.iter().map(|v| renaming.back(v)));
    let device = device_of(&call.ty).filter(|_| form == KernelForm::Plain);
    let func = match device {
        None => b.add_kernel(kernel, name),
        Some(target) => {
            kernel.attrs = kernel.attrs.with("target", target.to_string());
            b.add_kernel(kernel, &format!("{name}_{}", target.kind))
        }
    };
    Ok(call_tir(func, args, call.ty.clone())?)
}

/// A kernel, its scalars, and the tensors that it is given.
type LegalizedKernel = (PrimFunc, Vec<Ref<Var>>, Vec<Expr>);

/// The kernel of computes, and what is passed to it. A tensor that nothing reads is not passed, unless its dimensions are only known by it.
fn kernel_of_read(
    name: &str,
    inputs: Inputs,
    outputs: Vec<te::Tensor>,
    checks: Vec<Stmt>,
    form: KernelForm,
) -> Result<LegalizedKernel, BuildError> {
    let read = te::placeholders_of(&outputs);
    let is_read = |tensor: &te::Tensor| read.contains(tensor.buffer());
    let (kernel, scalars) = make_kernel(name, inputs.tensors.clone(), outputs.clone(), checks.clone(), form)?;
    if !inputs.tensors.iter().all(is_read) {
        let kept = inputs.tensors.iter().filter(|t| is_read(t)).cloned().collect();
        let (smaller, same) = make_kernel(name, kept, outputs, checks, form)?;
        if same.len() == scalars.len() {
            let args = inputs.tensors.iter().zip(inputs.args).filter(|(t, _)| is_read(t)).map(|(_, arg)| arg);
            return Ok((smaller, same, args.collect()));
        }
    }
    Ok((kernel, scalars, inputs.args))
}

/// What a scalar is; one that has a name within a dataflow block stands for its value.
fn scalar_of(b: &BlockBuilder, arg: &Expr) -> Option<PrimExpr> {
    match arg {
        Expr::DataflowVar(var) => b.lookup_binding(&AnyVar::Dataflow(var.clone()))?.as_scalar(),
        other => other.as_scalar(),
    }
}

fn output_dims(ty: &Type) -> Vec<PrimExpr> {
    ty.as_tensor().and_then(|t| t.shape.clone()).unwrap_or_default()
}

/// The tensors that a kernel takes, and what is passed for them.
#[derive(Default)]
struct Inputs {
    tensors: Vec<te::Tensor>,
    args: Vec<Expr>,
}

impl Inputs {
    /// The operands of one argument: `old` is passed, `new` has the kernel's own variables in its type.
    fn take(&mut self, def: &OpDef, old: &Expr, new: &Expr) -> Vec<Operand> {
        if let Expr::Prim(p) = new {
            return vec![Operand::Scalar(p.value.clone())];
        }
        let literal = |e: &Expr| match e {
            Expr::Constant(c) if matches!(def.lower, Lowering::Scalar(_)) && c.value.ndim() == 0 => as_scalar(&c.value),
            _ => None,
        };
        if let Some(value) = literal(old) {
            return vec![Operand::Scalar(value)];
        }
        match (old, new.ty()) {
            (_, Type::Tensor(ty)) => {
                let dims = ty.shape.clone().unwrap_or_default();
                let tensor = te::placeholder(kernel_arg_name(self.tensors.len()), dims, ty.dtype);
                self.tensors.push(tensor.clone());
                self.args.push(old.clone());
                vec![Operand::Tensor(tensor)]
            }
            (Expr::Tuple(tuple), Type::Tuple(_)) => {
                let Expr::Tuple(renamed) = new else { return Vec::new() };
                tuple.fields.iter().zip(&renamed.fields).flat_map(|(o, n)| self.take(def, o, n)).collect()
            }
            (whole, Type::Tuple(ty)) => {
                let field = |i: usize| (Expr::field(whole.clone(), i), Expr::field(new.clone(), i));
                (0..ty.fields.len()).map(field).flat_map(|(o, n)| self.take(def, &o, &n)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The kernel's own symbolic variables in the place of the caller's.
struct Renaming {
    forward: VarMap,
    backward: HashMap<Ref<Var>, Ref<Var>>,
    /// Scalars that the call is given by their variables.
    named: HashSet<Ref<Var>>,
}

impl Renaming {
    fn of(call: &Call) -> Renaming {
        let types: Vec<Type> = call.args.iter().map(Expr::ty).chain([call.ty.clone()]).collect();
        let mut vars = vars_of(&types);
        for arg in &call.args {
            for value in scalars_in(arg) {
                vars.extend(free_vars(&value));
            }
        }
        let named = call.args.iter().flat_map(named_scalars).collect();
        let mut renaming = Renaming { forward: VarMap::new(), backward: HashMap::new(), named };
        for var in vars {
            if !renaming.forward.contains_key(&var) {
                let own = Var::prim(var.name.clone(), var.dtype());
                renaming.backward.insert(own.clone(), var.clone());
                renaming.forward.insert(var, PrimExpr::Var(own));
            }
        }
        renaming
    }

    /// The caller's variable behind one of the kernel's.
    fn back(&self, own: &Ref<Var>) -> Expr {
        let var = self.backward.get(own).unwrap_or(own).clone();
        if self.named.contains(&var) { Expr::Var(var) } else { Expr::prim(PrimExpr::Var(var)) }
    }

    /// An argument over the kernel's variables. Tensors are stood in for by variables of the renamed type.
    fn arg(&self, arg: &Expr) -> Expr {
        if self.forward.is_empty() {
            return arg.clone();
        }
        match arg {
            Expr::Prim(p) => Expr::prim(substitute(&p.value, &self.forward)),
            Expr::Shape(s) => Expr::shape(s.values.iter().map(|d| substitute(d, &self.forward))),
            Expr::Tuple(t) => Expr::tuple(t.fields.iter().map(|f| self.arg(f)).collect::<Vec<_>>()),
            Expr::Var(v) if matches!(v.ty, Type::Prim(_)) => match self.forward.get(v) {
                Some(own) => Expr::prim(own.clone()),
                None => arg.clone(),
            },
            Expr::Var(_) | Expr::DataflowVar(_) | Expr::TupleGetItem(_) => {
                Var::new("arg", substitute_type(&arg.ty(), &self.forward)).into()
            }
            other => other.clone(),
        }
    }
}

/// The scalars in an argument that are variables of the program.
fn named_scalars(arg: &Expr) -> Vec<Ref<Var>> {
    match arg {
        Expr::Var(v) if matches!(v.ty, Type::Prim(_)) => vec![v.clone()],
        Expr::Tuple(t) => t.fields.iter().flat_map(named_scalars).collect(),
        _ => Vec::new(),
    }
}

/// The scalars that an argument holds.
fn scalars_in(arg: &Expr) -> Vec<PrimExpr> {
    match arg {
        Expr::Prim(p) => vec![p.value.clone()],
        Expr::Var(v) if matches!(v.ty, Type::Prim(_)) => vec![PrimExpr::Var(v.clone())],
        Expr::Tuple(t) => t.fields.iter().flat_map(scalars_in).collect(),
        _ => Vec::new(),
    }
}
