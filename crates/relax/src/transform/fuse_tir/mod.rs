//! FuseTIR: the kernels of a primitive function become one kernel.
//!
//! ```text
//! @R.function(private=True)                                   @T.prim_func(private=True)
//! def fused_add_exp(x, y):    # {"Primitive": True}           def fused_add_exp(x, y, gv):
//!     with R.dataflow():                                          lv = T.alloc_buffer((n, 4))
//!         lv = R.call_tir(cls.add, (x, y), …)          →          for i, j in T.grid(n, 4):
//!         gv = R.call_tir(cls.exp, (lv,), …)                          with T.sblock("T_add"): lv[…] = x[…] + y[…]
//!         R.output(gv)                                            for i, j in T.grid(n, 4):
//!     return gv                                                       with T.sblock("T_exp"): gv[…] = T.exp(lv[…])
//!
//! gv = cls.fused_add_exp(a, b)                         →      gv = R.call_tir(cls.fused_add_exp, (a, b), …)
//! ```
//!
//! **Model.** The blocks of the kernels stand in order inside one root block, over buffers for the function's parameters
//! and results and scratch buffers for what lies between; making one loop nest of them is the schedule's business. Every
//! use of a kernel has loop and block variables of its own. A kernel's symbolic dimensions are replaced by the dimensions
//! of what it is called with.
//!
//! **Arguments.** Tensors, and tensors in tuples, become buffers in order. A constant of one element becomes a literal,
//! any other an argument of the call. A dimension of a shape parameter becomes a scalar behind the tensors where no buffer
//! has it as a dimension. Scalars stay scalars. A result that `call_tir_inplace` writes over a parameter makes the call a
//! `call_tir_inplace`.
//!
//! The functions are called with the fields of tuples that they use, one by one, as ExpandTupleArguments and
//! RemoveUnusedParameters make it.
//!
//! **Gives** a module without primitive functions and without kernels that only they called. **Refuses** a primitive
//! function that holds anything but calls of kernels, tuples and fields of tuples, and one that returns a parameter or
//! returns one value twice.

mod instantiate;
pub(super) mod merge;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{Attrs, IRModule, Type};

pub(super) use self::merge::root;
use self::merge::{Argument, Merged};
use super::callees::{callees, drop_uncalled};
use super::fuse_ops::PRIMITIVE_ATTR;
use super::{expand_tuple_arguments, remove_unused_parts};
use crate::op::core::output_types;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_module};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("FuseTIR", "The kernels of a primitive function become one kernel.", |module, _, _| run(module))
        .ready(relaxide_tir::lower::module_of_unit_steps);

fn run(module: IRModule) -> PassResult {
    let is_primitive = |f: &Function| f.attrs.bool(PRIMITIVE_ATTR) == Some(true);
    if !module.functions_of::<Function>().any(|(_, f)| is_primitive(&f)) {
        return Ok(module);
    }
    // A kernel takes only what it reads, the fields of tuples one by one.
    let mut module = remove_unused_parts::parameters(expand_tuple_arguments::run(module)?)?;
    let primitives: Vec<(String, Ref<Function>)> =
        module.functions_of::<Function>().filter(|(_, f)| is_primitive(f)).map(|(n, f)| (n.to_string(), f)).collect();
    let mut merged = HashMap::new();
    let mut used = HashSet::new();
    for (name, func) in &primitives {
        merged.insert(
            name.clone(),
            merge::merge(&module, func).map_err(|e| in_function(PASS.name, name, e.to_string()))?,
        );
        used.extend(callees(&func.body));
    }
    for (name, one) in &merged {
        module.insert(name.clone(), Ref::new(one.kernel.clone()));
    }
    let mut module = rewrite_module(PASS.name, module, &mut PrimitiveCalls { merged: &merged })?;
    drop_uncalled(&mut module, &used);
    Ok(module)
}

/// Puts calls of kernels in the place of calls of primitive functions.
struct PrimitiveCalls<'a> {
    merged: &'a HashMap<String, Merged>,
}

impl Rewrite for PrimitiveCalls<'_> {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Expr::Call(call) = &value else { return Ok(Action::Bind(value)) };
        let Expr::Global(callee) = &call.op else { return Ok(Action::Bind(value)) };
        let Some(merged) = self.merged.get(&callee.name) else { return Ok(Action::Bind(value)) };
        let mut args = Vec::with_capacity(merged.arguments.len());
        for argument in &merged.arguments {
            args.push(pass(b, argument, &call.args)?);
        }
        let func = relaxide_ir::GlobalVar::new(callee.name.clone());
        let Some(inplace) = &merged.inplace else {
            return Ok(Action::Bind(op::core::call_tir(func, args, call.ty.clone())?.made_of(call.span.clone())));
        };
        let attrs = Attrs::new().with("inplace_indices", inplace.clone());
        let args = [func.into(), Expr::tuple(args)];
        let types: Vec<Type> = match &call.ty {
            Type::Tuple(_) => vec![Type::tuple(output_types(&call.ty))],
            one => vec![one.clone()],
        };
        Ok(Action::Bind(op::call_typed("call_tir_inplace", args, attrs, types)?.made_of(call.span.clone())))
    }
}

/// An argument of the kernel, taken from the arguments of the function.
fn pass(b: &mut BlockBuilder, argument: &Argument, args: &[Expr]) -> Result<Expr, BuildError> {
    let at = |i: usize| args.get(i).cloned().ok_or_else(|| BuildError::Program(format!("a call lacks argument {i}")));
    match argument {
        Argument::Constant(constant) => Ok(constant.clone()),
        Argument::Field { param, path } => {
            let mut value = at(*param)?;
            for index in path {
                value = match &value {
                    Expr::Tuple(t) if *index < t.fields.len() => t.fields[*index].clone(),
                    _ => b.normalize_arg(Expr::field(value, *index))?,
                };
            }
            Ok(value)
        }
        Argument::Dim { param, dim } => {
            let value = at(*param)?;
            let dims = match (&value, value.ty()) {
                (Expr::Shape(s), _) => s.values.clone(),
                (_, Type::Shape(ty)) => ty.values.clone().unwrap_or_default(),
                _ => Vec::new(),
            };
            let found = dims.get(*dim).cloned();
            let unknown = || BuildError::Program(format!("the dimensions of shape argument {param} are not known"));
            Ok(Expr::prim(found.ok_or_else(unknown)?))
        }
    }
}
