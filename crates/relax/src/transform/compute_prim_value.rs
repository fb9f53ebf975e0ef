//! ComputePrimValue: computes scalar conditions by kernels.
//!
//! A branch on a scalar expression, such as `if n > 4`, needs the value in a register, but the virtual machine computes
//! nothing by itself. The expression becomes a kernel over its variables:
//!
//! ```text
//! if R.prim_value(n > 4):         cond = cls.compute_symbolic_expr(R.prim_value(n))
//!     ...                         if cond:
//!                                     ...
//! ```
//!
//! Integers elsewhere are left to VMShapeLower, which computes all of them of one function at once, on its heap of integers. What
//! that cannot hold, a float or a small integer, is computed here wherever it stands; one that has a name already is passed
//! under it:
//!
//! ```text
//! R.call_tir(cls.f, (x, R.prim_value(p * 2.0)))      scalar = cls.compute_symbolic_expr(p)
//!                                                    R.call_tir(cls.f, (x, scalar))
//! ```

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Attrs, BaseFunc, GlobalVar, IRModule, Type, Var};
use relaxide_tir::{PrimFunc, Stmt};

use super::emit;
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("ComputePrimValue", "Scalar conditions are computed by kernels.", |module, _, _| run(module));

fn run(module: IRModule) -> PassResult {
    let functions: Vec<(String, Ref<Function>)> =
        module.functions_of::<Function>().map(|(name, f)| (name.to_string(), f)).collect();
    let mut compute = Compute { module };
    for (name, f) in functions {
        let f = compute.mutate_function(&f);
        compute.module.functions.insert(name, BaseFunc::from(f));
    }
    Ok(compute.module)
}

struct Compute {
    /// The module so far, which gains a kernel for each condition.
    module: IRModule,
}

impl Compute {
    fn kernel(&mut self, value: &PrimExpr) -> Expr {
        let vars = free_vars(value);
        let params: Vec<Ref<Var>> = vars.iter().map(|v| Var::prim(v.name.clone(), v.dtype())).collect();
        let rename: VarMap = vars.iter().cloned().zip(params.iter().map(|p| PrimExpr::Var(p.clone()))).collect();
        let dtype = value.dtype();
        let result = substitute(value, &rename);
        let kernel = PrimFunc {
            buffers: params.iter().map(|_| None).collect(),
            params,
            ret_type: Type::prim(dtype),
            attrs: Attrs::new().with(relaxide_tir::HOST_FUNC, true),
            body: Stmt::ret(result),
        };
        let name = self.module.fresh_name("compute_symbolic_expr");
        self.module.insert(name.clone(), Ref::new(kernel));
        let args = vars.into_iter().map(passed).collect();
        emit::call(GlobalVar::new(name), args, Type::prim(dtype))
    }
}

/// A variable as an argument.
fn passed(var: Ref<Var>) -> Expr {
    if is_on_heap(var.dtype()) { Expr::prim(PrimExpr::Var(var)) } else { Expr::Var(var) }
}

/// Whether a scalar of that type has a place on the heap of VMShapeLower.
fn is_on_heap(dtype: DataType) -> bool {
    dtype.is_int() && dtype.bits >= 32
}

/// Computes the scalars among operands that have no place on the heap.
struct Operands<'a> {
    compute: &'a mut Compute,
    out: &'a mut Vec<Binding>,
}

impl ExprMutator for Operands<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Prim(p) if !is_on_heap(p.value.dtype()) => match &p.value {
                PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => e.clone(),
                PrimExpr::Var(var) => Expr::Var(var.clone()),
                value => {
                    let computed = self.compute.kernel(value);
                    emit::emit(self.out, "scalar", Type::prim(value.dtype()), computed)
                }
            },
            // Their bindings are visited by themselves.
            Expr::If(_) | Expr::Function(_) | Expr::Seq(_) => e.clone(),
            _ => self.remake_expr(e),
        }
    }
}

impl ExprMutator for Compute {
    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let new = self.remake_binding(binding);
        let new = Operands { compute: self, out }.remake_binding(&new);
        let (Binding::Var(b), Expr::If(choice)) = (&new, new.value()) else { return out.push(new) };
        let Expr::Prim(p) = &choice.condition else { return out.push(new) };
        let computed = self.kernel(&p.value);
        let condition = emit::emit(out, "cond", Type::prim(p.value.dtype()), computed);
        let (true_branch, false_branch) = (choice.true_branch.clone(), choice.false_branch.clone());
        let value = Ref::new(If { condition, true_branch, false_branch, ty: choice.ty.clone() }).into();
        out.push(Ref::new(VarBinding { var: b.var.clone(), value }).into());
    }
}
