//! FuseLoops: a loop over the rows of tensors whose iterations are kernels becomes one kernel.
//!
//! ```text
//! def loop(at: R.Shape([i, m, n]), s, rows, x):               @T.prim_func
//!     if i < m:                                               def loop(s, x, s_out, rows):
//!         a = R.call_tir(cls.step, (s, x, i), …)        →         state = T.alloc_buffer(…)
//!         rows_append(rows, a)                                    state[…] = s[…]
//!         r = loop([i + 1, m, n], a, rows, x)                     for i in range(m):      # {"relaxide.recurrence": 1}
//!     else:                                                           …                   # the blocks of `step`
//!         r = (s,)                                                    rows[i, …] = a[…]
//!     return r                                                        state[…] = a[…]
//!                                                                 s_out[…] = state[…]
//! rows = rows_new()
//! r = loop([0, m, n], s, rows, x)                             r = R.call_tir(cls.loop, (s, x), out_ty=[…])
//! y = rows_stack(rows, …)                                     y = r[1]
//! ```
//!
//! An iteration of the virtual machine costs a call and an allocation for each kernel, which is more than the kernels of a small recurrence do. Here
//! it costs the kernels, and what lies between them is memory that all iterations share.
//!
//! **Which loops.** Those that end by their number of iterations alone, which is the length of a tensor that they are given: such a
//! kernel does no more than its arguments are large, so that nobody need interrupt it. State keeps its shape from iteration to iteration. An iteration
//! consists of calls of kernels; one that does anything else (a branch, an inner loop, a check) stays a loop of the machine.
//!
//! **Where.** On processors, behind FuseTIR; the loop of the kernel is laid out iteration by iteration (`relaxide_tir::schedule`). Programs over several devices are
//! left alone.

mod kernel;
mod read;

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};
use relaxide_ir::{GlobalVar, IRModule, Type};

use super::private_calls::{callee, private_functions};
use crate::functor::used_vars;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::shape::substitute_type;
use crate::*;

use read::{Loop, ParameterRole};

pub(super) const PASS: PassInfo = PassInfo::new(
    "FuseLoops",
    "A loop over the rows of tensors whose iterations are kernels becomes one kernel.",
    |module, context, _| if context.target.is_gpu() || !module.vdevices.is_empty() { Ok(module) } else { run(module) },
);

const ROWS_NEW: &str = "vm.builtin.rows_new";
const ROWS_APPEND: &str = "vm.builtin.rows_append";
const ROWS_STACK: &str = "vm.builtin.rows_stack";

fn run(module: IRModule) -> PassResult {
    let loops: HashMap<String, Loop> = private_functions(&module)
        .into_iter()
        .filter_map(|(name, func)| Some((name.clone(), Loop::of(&name, &func)?)))
        .collect();
    if loops.is_empty() {
        return Ok(module);
    }
    let functions: Vec<_> = module.functions_of::<Function>().map(|(name, f)| (name.to_string(), f)).collect();
    let mut b = BlockBuilder::with_module(module);
    for (name, func) in functions.into_iter().filter(|(name, _)| !loops.contains_key(name)) {
        let mut fuse = Fuse { calls: calls(&func, &loops), joined: HashMap::new() };
        if fuse.calls.is_empty() {
            continue;
        }
        let new = rewrite_function(&mut b, &func, &mut fuse).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, new);
    }
    Ok(b.finish())
}

/// A call of a loop that becomes a call of a kernel.
struct Site {
    /// The loop in the caller's words.
    iterations: kernel::IterationKernel,
    /// The lists that it fills, in the order of its rows: which variable, and whether the last row comes first.
    lists: Vec<(AnyVar, bool)>,
}

/// The calls of loops that can be kernels, by the variable that each is bound to.
fn calls(func: &Function, loops: &HashMap<String, Loop>) -> HashMap<AnyVar, Site> {
    let mut found = Bound::default();
    found.visit_seq(&func.body);
    let site = |(var, value): (&AnyVar, &Expr)| {
        let (call, name) = callee(value)?;
        Some((var.clone(), found.site(var, call, loops.get(name)?)?))
    };
    found.values.iter().filter_map(site).collect()
}

/// What variables are bound to, and how often each is used.
#[derive(Default)]
struct Bound {
    values: HashMap<AnyVar, Expr>,
    uses: HashMap<AnyVar, usize>,
    /// Uses of a variable as a tuple of which a field is taken.
    fields: HashMap<AnyVar, usize>,
}

impl ExprVisitor for Bound {
    fn visit_binding(&mut self, binding: &Binding) {
        if let Binding::Var(bound) = binding {
            self.values.insert(bound.var.clone(), bound.value.clone());
        }
        let value = binding.value();
        if let Expr::TupleGetItem(item) = value
            && let Some(tuple) = item.tuple.as_var()
        {
            *self.fields.entry(tuple).or_default() += 1;
        }
        self.visit_expr(value);
    }

    fn visit_expr(&mut self, e: &Expr) {
        if let Some(var) = e.as_var() {
            *self.uses.entry(var).or_default() += 1;
        }
        self.walk_expr(e);
    }
}

impl Bound {
    /// A call of a loop in the caller's words; `None` where it has to stay a loop of the machine.
    fn site(&self, var: &AnyVar, call: &Call, of: &Loop) -> Option<Site> {
        // Of what it gives, fields are taken and nothing else.
        let uses = |var: &AnyVar| self.uses.get(var).copied().unwrap_or(0);
        if uses(var) != self.fields.get(var).copied().unwrap_or(0) || call.args.len() != of.params.len() {
            return None;
        }
        let (Some(Expr::Shape(at)), Some((index, dims))) = (call.args.first(), of.dims.split_first()) else {
            return None;
        };
        let (start, outer) = at.values.split_first()?;
        if !start.is_int(0) || outer.len() != dims.len() {
            return None;
        }
        let map: VarMap = dims.iter().cloned().zip(outer.iter().cloned()).collect();
        let limit = substitute(&PrimExpr::from(&of.limit), &map);
        let mut lists = Vec::new();
        for row in &of.rows {
            let list = call.args.get(row.list)?.as_var()?;
            let new = matches!(self.values.get(&list), Some(Expr::Call(made)) if external(made) == Some(ROWS_NEW));
            let stacked: Vec<&Ref<Call>> = self.values.values().filter_map(|value| stack_of(value, &list)).collect();
            let ([stack], true, 2) = (stacked.as_slice(), new, uses(&list)) else { return None };
            let from_end = stack.args.get(3)?.as_scalar()?.as_int()? != 0;
            lists.push((list, from_end));
        }
        let types: Vec<Type> = of.params.iter().map(|param| substitute_type(&param.ty, &map)).collect();
        let mut analyzer = Analyzer::new();
        for ((part, ty), arg) in of.parts.iter().zip(&types).zip(&call.args) {
            if !matches!(part, ParameterRole::List | ParameterRole::At) && !agrees(&mut analyzer, ty, &arg.ty()) {
                return None;
            }
        }
        let is_limit = |d: &PrimExpr, analyzer: &mut Analyzer| analyzer.can_prove_equal(d, &limit);
        let long_as = |ty: &Type, analyzer: &mut Analyzer| {
            ty.as_tensor().and_then(|t| t.shape.as_ref()).is_some_and(|dims| dims.iter().any(|d| is_limit(d, analyzer)))
        };
        if !call.args.iter().any(|arg| long_as(&arg.ty(), &mut analyzer)) {
            return None;
        }
        let from_end = lists.iter().map(|(_, from_end)| *from_end).collect();
        let called = kernel::Called { args: &call.args, types: &types, index, limit };
        let iterations = kernel::IterationKernel::new(of, called, &map, from_end)?;
        Some(Site { iterations, lists })
    }
}

/// Whether an argument is a tensor of the parameter's very shape.
fn agrees(analyzer: &mut Analyzer, param: &Type, arg: &Type) -> bool {
    let shape = |ty: &Type| match ty {
        Type::Tensor(t) => t.shape.clone().map(|dims| (dims, t.dtype)),
        _ => None,
    };
    match (shape(param), shape(arg)) {
        (Some((p, own)), Some((a, given))) => {
            own == given && p.len() == a.len() && p.iter().zip(&a).all(|(p, a)| analyzer.can_prove_equal(p, a))
        }
        _ => false,
    }
}

/// The name of the function outside of the module that is called.
fn external(call: &Call) -> Option<&str> {
    match &call.op {
        Expr::Extern(f) => Some(&f.global_symbol),
        _ => None,
    }
}

/// The call that makes one tensor of the rows of a list.
fn stack_of<'a>(value: &'a Expr, list: &AnyVar) -> Option<&'a Ref<Call>> {
    let Expr::Call(call) = value else { return None };
    let of = call.args.first().and_then(Expr::as_var);
    (external(call) == Some(ROWS_STACK) && of.as_ref() == Some(list)).then_some(call)
}

/// Puts calls of kernels in the place of calls of loops.
struct Fuse {
    calls: HashMap<AnyVar, Site>,
    /// What takes the place of the tensor of a list's rows.
    joined: HashMap<AnyVar, Expr>,
}

impl Rewrite for Fuse {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        if self.calls.values().any(|site| site.lists.iter().any(|(list, _)| list == var)) {
            return Ok(Action::Drop);
        }
        if let Expr::Call(call) = &value
            && external(call) == Some(ROWS_STACK)
            && let Some(joined) = used_vars(&value).iter().find_map(|list| self.joined.get(list))
        {
            return Ok(Action::Bind(joined.clone()));
        }
        let (Some(site), Expr::Call(call)) = (self.calls.get(var), &value) else { return Ok(Action::Bind(value)) };
        let made = site.iterations.kernel(b.module()).map_err(|e| BuildError::Program(e.to_string()))?;
        let name = b.module().fresh_name(&made.name);
        let args = made.arguments.iter().map(|argument| argument.of(&call.args)).collect::<Vec<_>>();
        b.module_mut().insert(name.clone(), Ref::new(made.func));
        let (ty, several) = match made.outputs.as_slice() {
            [one] => (one.clone(), false),
            all => (Type::tuple(all.to_vec()), true),
        };
        let done = op::core::call_tir(GlobalVar::new(name), args, ty)?.made_of(made.span);
        let done = b.emit(done)?;
        let output = |i: usize| if several { Expr::field(done.clone(), i) } else { done.clone() };
        for ((list, _), output) in site.lists.iter().zip((made.states..).map(output)) {
            self.joined.insert(list.clone(), output);
        }
        let result = |gives: &kernel::Gives| match gives {
            kernel::Gives::Output(i) => output(*i),
            kernel::Gives::Argument(i) => call.args[*i].clone(),
        };
        let results: Vec<Expr> = made.results.iter().map(result).collect();
        let results = results.into_iter().map(|e| b.normalize_arg(e)).collect::<Result<Vec<_>, _>>()?;
        Ok(Action::Bind(Expr::tuple(results)))
    }
}
