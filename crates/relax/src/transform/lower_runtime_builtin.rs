//! LowerRuntimeBuiltin: operators that the VM knows become calls of its builtins.
//!
//! An operator whose row says [`Lowering::Builtin`](crate::op::Lowering) becomes a call of that function with the same
//! arguments. Closures and memory need more than that:
//!
//! | operator | becomes |
//! | --- | --- |
//! | `make_closure(f, (a, b))` | `vm.builtin.make_closure(f, a, b)` |
//! | `invoke_closure(c, (a, b))` | `vm.builtin.invoke_closure(vm, c, a, b)` |
//! | `memory.alloc_storage(size, device, scope, dtype)` | `vm.alloc_storage(size, device, uint8, scope)` |
//! | `memory.alloc_tensor(storage, offset, shape, dtype)` | `vm.alloc_tensor(…)` |
//! | `memory.kill_storage(x)`, `memory.kill_tensor(x)` | `vm.kill_object(x)` |
//! | `to_vdevice(x)` | `vm.builtin.to_device(x, device type, index, scope)` |
//! | `call_py_func(name, (a, b))` | `vm.builtin.call_py_func((name, (a, b)))` |
//! | `memory.view(x, shape, dtype, offset)` | `runtime.TVMTensorCreateView(x, shape, dtype, offset)`, with all of them said |
//! | `reshape(x, shape)` | `vm.builtin.reshape(x, shape)`: a view, no copy |

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::PassInfo;
use relaxide_ir::{Attrs, Type};

use crate::op::Lowering;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "LowerRuntimeBuiltin",
    "Operators that the VM knows become calls of its builtins.",
    |module, _, _| rewrite_module("LowerRuntimeBuiltin", module, &mut LowerRuntimeBuiltin),
);

struct LowerRuntimeBuiltin;

impl Rewrite for LowerRuntimeBuiltin {
    fn value(&mut self, builder: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, name)) = value.as_op_call() else { return Ok(Action::Bind(value)) };
        let flat = || {
            let (first, rest) = call.args.split_first()?;
            let rest = match rest {
                [Expr::Tuple(tuple)] => tuple.fields.clone(),
                other => other.to_vec(),
            };
            Some((first.clone(), rest))
        };
        let lowered = match (name, call.args.as_slice(), flat()) {
            ("reshape", _, _) => packed("vm.builtin.reshape", call.args.clone(), call),
            ("memory.view", _, _) => {
                let def = op::lookup(name).ok_or_else(|| op::OpError::Unknown(name.into()))?;
                let args = op::inspect::view_args(&op::CallCx::of(def, call), builder)?;
                let callee = Expr::external_typed(op::inspect::CREATE_VIEW, Type::derived_func(derived::VIEW, true));
                Ref::new(call.rebuilt(callee, args)).into()
            }
            ("make_closure", _, Some((func, args))) => packed("vm.builtin.make_closure", with_first(func, args), call),
            ("invoke_closure", _, Some((closure, args))) => {
                let args = Expr::tuple(with_first(closure, args));
                let callee = Expr::external("vm.builtin.invoke_closure");
                op::call_typed("call_builtin_with_ctx", [callee, args], Attrs::new(), vec![call.ty.clone()])?
            }
            ("to_vdevice", [data], _) => {
                let def = op::lookup(name).ok_or_else(|| op::OpError::Unknown(name.into()))?;
                let cx = op::CallCx::of(def, call);
                packed("vm.builtin.to_device", op::device::copy_args(&cx, data)?, call)
            }
            ("call_py_func", [name, args], _) => {
                packed("vm.builtin.call_py_func", vec![Expr::tuple([name.clone(), args.clone()])], call)
            }
            ("memory.alloc_storage", [size, device, scope, _], _) => {
                let args = [size.clone(), device.clone(), Expr::dtype(DataType::uint(8)), scope.clone()];
                op::call("vm.alloc_storage", args, Attrs::new())?
            }
            ("memory.alloc_tensor", args, _) => op::call("vm.alloc_tensor", args, Attrs::new())?,
            ("builtin.alloc_tensor", _, _) => {
                return Err(BuildError::Program(
                    "an allocation without storage is left; run LowerAllocTensor first".into(),
                ));
            }
            ("memory.kill_storage" | "memory.kill_tensor", args, _) => op::call("vm.kill_object", args, Attrs::new())?,
            _ => match op::lookup(name).map(|def| def.lower) {
                Some(Lowering::Builtin(function)) => packed(function, formatted(call), call),
                _ => return Ok(Action::Bind(value)),
            },
        };
        Ok(Action::Bind(lowered))
    }
}

fn with_first(first: Expr, rest: Vec<Expr>) -> Vec<Expr> {
    std::iter::once(first).chain(rest).collect()
}

/// The arguments of a call whose operator may have a format text, which the run-time function takes as an argument: first
/// for printing, behind the condition for an assertion.
fn formatted(call: &Call) -> Vec<Expr> {
    let mut args = call.args.clone();
    if let Some(format) = call.attrs.str("format") {
        let at = usize::from(call.op_name() == Some("assert_op")).min(args.len());
        args.insert(at, Expr::string(format));
    }
    args
}

/// A call of a function outside the module.
fn packed(function: &str, args: Vec<Expr>, call: &Call) -> Expr {
    let ty: Type = call.ty.clone();
    let (attrs, ty_args) = (Attrs::new(), vec![ty.clone()]);
    Ref::new(Call { op: Expr::external(function), args, attrs, ty_args, ty, span: call.span.clone() }).into()
}
