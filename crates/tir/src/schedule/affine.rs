//! Index expressions as linear functions of axes, and the few questions that rules ask of them.
//!
//! A rule wants to know how an access moves when one axis moves: by one element (contiguous), by a constant or symbolic
//! stride, or in a way that no stride describes (a gather). [`linear`] answers for one axis and leaves everything that it
//! does not understand to the caller as `None`. Equality of extents is structural up to commutativity ([`same`]): what is
//! not seen to be equal is treated as different, which costs speed and never correctness.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, BufferLoad, PrimExpr, PrimVisitor, VarMap, add, binary, free_vars, int, mul, substitute,
};
use relaxide_ir::{Buffer, Var};

/// Whether an expression mentions a variable.
pub fn uses(e: &PrimExpr, var: &Ref<Var>) -> bool {
    free_vars(e).contains(var)
}

/// Whether an expression mentions any of some variables.
pub fn uses_any<'a>(e: &PrimExpr, vars: impl IntoIterator<Item = &'a Ref<Var>>) -> bool {
    let free = free_vars(e);
    vars.into_iter().any(|v| free.contains(v))
}

/// An expression as `coefficient * var + rest`, both free of the variable; `None` where it is not linear in it.
pub fn linear(e: &PrimExpr, var: &Ref<Var>) -> Option<(PrimExpr, PrimExpr)> {
    if !uses(e, var) {
        return Some((int(0), e.clone()));
    }
    match e {
        PrimExpr::Var(_) => Some((int(1), int(0))),
        PrimExpr::Binary(n) => match n.op {
            BinaryOp::Add | BinaryOp::Sub => {
                let (ca, ra) = linear(&n.a, var)?;
                let (cb, rb) = linear(&n.b, var)?;
                Some((binary(n.op, ca, cb), binary(n.op, ra, rb)))
            }
            BinaryOp::Mul if !uses(&n.b, var) => {
                let (c, r) = linear(&n.a, var)?;
                Some((mul(c, &n.b), mul(r, &n.b)))
            }
            BinaryOp::Mul if !uses(&n.a, var) => {
                let (c, r) = linear(&n.b, var)?;
                Some((mul(&n.a, c), mul(&n.a, r)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The constant coefficient of a variable in an expression that is linear in it.
pub fn coefficient(e: &PrimExpr, var: &Ref<Var>) -> Option<i64> {
    linear(e, var)?.0.as_int()
}

/// The row-major flat index of an element of a compact buffer.
pub fn flat_index(buffer: &Buffer, indices: &[PrimExpr]) -> PrimExpr {
    let dims = buffer.shape.iter().skip(1).cloned().chain(std::iter::once(int(1)));
    indices.iter().zip(dims).fold(int(0), |flat, (index, next)| mul(add(flat, index), next))
}

/// Whether two expressions are seen to be equal: the same tree, up to the order of commutative operands.
pub fn same(a: &PrimExpr, b: &PrimExpr) -> bool {
    if a == b {
        return true;
    }
    match (a, b) {
        (PrimExpr::Int(x), PrimExpr::Int(y)) => x.value == y.value,
        (PrimExpr::Float(x), PrimExpr::Float(y)) => x.value.to_bits() == y.value.to_bits(),
        (PrimExpr::Cast(x), PrimExpr::Cast(y)) => x.dtype == y.dtype && same(&x.value, &y.value),
        (PrimExpr::Binary(x), PrimExpr::Binary(y)) => {
            let commutes = matches!(x.op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
            x.op == y.op && (same(&x.a, &y.a) && same(&x.b, &y.b) || commutes && same(&x.a, &y.b) && same(&x.b, &y.a))
        }
        (PrimExpr::Call(x), PrimExpr::Call(y)) => x.op == y.op && x.dtype == y.dtype && all_same(&x.args, &y.args),
        (PrimExpr::Load(x), PrimExpr::Load(y)) => x.buffer == y.buffer && all_same(&x.indices, &y.indices),
        _ => false,
    }
}

/// Whether two lists are equal, element by element, in the sense of [`same`].
pub fn all_same(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y))
}

/// Every load in an expression, in order.
pub fn loads(e: &PrimExpr) -> Vec<Ref<BufferLoad>> {
    struct Loads(Vec<Ref<BufferLoad>>);
    impl PrimVisitor for Loads {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Load(load) = e {
                self.0.push(load.clone());
            }
            self.walk_prim(e);
        }
    }
    let mut found = Loads(Vec::new());
    found.visit_prim(e);
    found.0
}

/// Rough cost of evaluating an expression once, in simple operations; transcendental calls count as sixteen. Integers that
/// come from axes and dimensions alone (indices, guards) are free: a loop nest computes them once for many elements.
pub fn cost(e: &PrimExpr) -> i64 {
    struct Cost(i64);
    impl PrimVisitor for Cost {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if (e.dtype().is_int() || e.dtype().is_bool()) && loads(e).is_empty() {
                return;
            }
            self.0 += match e {
                PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => 0,
                PrimExpr::Call(c) if is_cheap_call(&c.op) => 1,
                PrimExpr::Call(_) => 16,
                PrimExpr::Binary(b) if b.op == BinaryOp::Div => 4,
                _ => 1,
            };
            // What an index costs is no measure of what its element costs.
            if !matches!(e, PrimExpr::Load(_)) {
                self.walk_prim(e);
            }
        }
    }
    let mut total = Cost(0);
    total.visit_prim(e);
    total.0
}

/// Whether an intrinsic is a handful of instructions.
fn is_cheap_call(op: &str) -> bool {
    const CHEAP: [&str; 18] = [
        "if_then_else",
        "fabs",
        "floor",
        "ceil",
        "round",
        "trunc",
        "sqrt",
        "fma",
        "dot_bytes",
        "dot_pairs",
        "isnan",
        "isinf",
        "isfinite",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "min_value",
        "max_value",
    ];
    op.strip_prefix("tirx.").is_some_and(|name| CHEAP.contains(&name))
}

/// `ceil(a / b)` of non-negative `a` and a positive constant.
pub fn ceil_div(a: &PrimExpr, b: i64) -> PrimExpr {
    ceil_div_by(a, &int(b))
}

/// The same by a number that need not be known.
pub fn ceil_div_by(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    relaxide_ir::prim::floordiv(add(a, relaxide_ir::prim::sub(b, int(1))), b)
}

/// An expression with one variable replaced.
pub fn with_var(e: &PrimExpr, var: &Ref<Var>, value: impl Into<PrimExpr>) -> PrimExpr {
    substitute(e, &VarMap::from([(var.clone(), value.into())]))
}

/// The product of some extents.
pub fn product<'a>(extents: impl IntoIterator<Item = &'a PrimExpr>) -> PrimExpr {
    extents.into_iter().fold(int(1), mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use relaxide_ir::DataType;

    #[test]
    fn a_window_index_is_linear_in_each_of_its_axes() {
        let (y, ry) = (Var::dim("y"), Var::dim("ry"));
        let e = PrimExpr::from(&y) * 2 + PrimExpr::from(&ry) * 3 - int(1);
        assert_eq!(coefficient(&e, &y), Some(2));
        assert_eq!(coefficient(&e, &ry), Some(3));
    }

    #[test]
    fn a_quotient_is_not_linear() {
        let x = Var::dim("x");
        assert!(linear(&relaxide_ir::prim::floordiv(PrimExpr::from(&x), int(2)), &x).is_none());
    }

    #[test]
    fn flat_index_of_the_last_axis_moves_by_one() {
        let (h, w) = (Var::dim("h"), Var::dim("w"));
        let buffer = Buffer::new("A", DataType::float(32), [PrimExpr::from(&h), PrimExpr::from(&w)]);
        let (i, j) = (Var::dim("i"), Var::dim("j"));
        let flat = flat_index(&buffer, &[PrimExpr::from(&i), PrimExpr::from(&j)]);
        assert_eq!(coefficient(&flat, &j), Some(1));
        assert!(same(&linear(&flat, &i).map(|l| l.0).unwrap_or_else(|| int(0)), &PrimExpr::from(&w)));
    }

    #[test]
    fn sums_are_equal_in_either_order() {
        let (a, b) = (PrimExpr::from(&Var::dim("a")), PrimExpr::from(&Var::dim("b")));
        assert!(same(&(&a + &b), &(&b + &a)));
        assert!(!same(&(&a - &b), &(&b - &a)));
    }
}
