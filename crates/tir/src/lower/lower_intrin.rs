//! LowerIntrin: divisions that round down become what machines have, and exact functions what LLVM has.
//!
//! ```text
//! x // 8        ->  T.shift_right(x, 3)
//! x % 8         ->  T.bitwise_and(x, 7)
//! x // y        ->  T.Select(y >= 0 and T.truncmod(x, y) >= 0 or y < 0 and T.truncmod(x, y) <= 0, T.Div(x, y), T.Div(x, y) - 1)
//! T.fma(a, b, c)  ->  T.call_llvm_pure_intrin("llvm.fma", a, b, c)          # for LLVM's targets
//! ```
//!
//! Code generation does all this itself, and does it better where it knows the signs; the pass is for who wants to see it.

use relaxide_ir::BinaryOp;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, Binary, PrimExpr, PrimMutator};
use relaxide_ir::target::TargetKind;

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;

pub(super) const PASS: PassInfo = kernel_pass!(
    "tirx.transform.LowerIntrin",
    "Divisions that round down become what machines have.",
    lower_intrinsics
);

/// Functions whose results are exact, and thus the same from LLVM.
const EXACT: &[&str] = &["ceil", "floor", "fma", "nearbyint", "sqrt", "trunc"];

fn lower_intrinsics(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let target = func.target().map_err(|error| LowerError::Refused(error.to_string()))?;
    let for_llvm = target.is_some_and(|target| target.kind == TargetKind::Llvm);
    Ok(func.with_body(Lower { for_llvm }.mutate_stmt(&func.body)))
}

struct Lower {
    for_llvm: bool,
}

impl PrimMutator for Lower {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = self.remake_prim(e);
        match &e {
            PrimExpr::Binary(n)
                if matches!(n.op, BinaryOp::FloorDiv | BinaryOp::FloorMod) && n.a.dtype().is_integer() =>
            {
                rounded_down(n)
            }
            PrimExpr::Call(n) if self.for_llvm && n.dtype.is_float() => match n.op.strip_prefix("tirx.") {
                Some(name) if EXACT.contains(&name) => {
                    let args = std::iter::once(prim::string(format!("llvm.{name}"))).chain(n.args.iter().cloned());
                    prim::call(n.dtype, "tirx.call_llvm_pure_intrin", args.collect())
                }
                _ => e,
            },
            _ => e,
        }
    }
}

impl StmtMutator for Lower {}

/// A quotient that is rounded down, or what it leaves, by operations that round towards zero.
fn rounded_down(n: &Binary) -> PrimExpr {
    let (a, b, dtype) = (n.a.clone(), n.b.clone(), n.a.dtype());
    let is_quotient = n.op == BinaryOp::FloorDiv;
    if let Some(power) = b.as_int().filter(|c| *c > 0 && c.count_ones() == 1) {
        let (name, by) = match is_quotient {
            true => ("tirx.shift_right", i64::from(power.trailing_zeros())),
            false => ("tirx.bitwise_and", power - 1),
        };
        return prim::call(dtype, name, vec![a, prim::int_of(dtype, by)]);
    }
    let plain = |op: BinaryOp| prim::binary(op, a.clone(), b.clone());
    let (quotient, rest) = (plain(BinaryOp::Div), plain(BinaryOp::Mod));
    if dtype.is_uint() {
        return if is_quotient { quotient } else { rest };
    }
    let zero = || prim::int_of(dtype, 0);
    let signs_agree = prim::or(
        prim::and(prim::le(zero(), b.clone()), prim::le(zero(), rest.clone())),
        prim::and(prim::lt(b.clone(), zero()), prim::le(rest.clone(), zero())),
    );
    match is_quotient {
        true => {
            prim::select(signs_agree, quotient.clone(), prim::binary(BinaryOp::Sub, quotient, prim::int_of(dtype, 1)))
        }
        false => prim::select(signs_agree, rest.clone(), prim::binary(BinaryOp::Add, rest, b)),
    }
}
