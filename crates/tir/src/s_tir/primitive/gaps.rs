//! Whether loops run through all numbers between the least and the greatest value of a sum of them: `i + j * 4` with `i` below
//! 4 does, with `i` below 3 it leaves gaps, and so does `j * 4` alone.
//!
//! Boxes of what is touched are intervals. Where they stand for what has been written, gaps in them are elements that nobody
//! has written.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, PrimExpr, free_vars};

use crate::stmt::For;

/// Whether a value leaves gaps while loops run. Values that are no sums of multiples of the loops are not judged.
pub(super) fn leaves_gaps(value: &PrimExpr, loops: &[&Ref<For>]) -> bool {
    let mut terms: Vec<(i64, i64)> = Vec::new();
    let mut open = vec![(value.clone(), 1i64)];
    while let Some((e, weight)) = open.pop() {
        if let PrimExpr::Binary(n) = &e {
            match (n.op, n.b.as_int()) {
                (BinaryOp::Add, _) => {
                    open.extend([(n.a.clone(), weight), (n.b.clone(), weight)]);
                    continue;
                }
                (BinaryOp::Mul, Some(by)) => {
                    open.push((n.a.clone(), weight.saturating_mul(by)));
                    continue;
                }
                _ => {}
            }
        }
        match loops.iter().find(|l| e.as_var() == Some(&l.var)) {
            Some(l) if l.extent.is_int(1) => {}
            Some(l) => match l.extent.as_int() {
                Some(extent) => terms.push((weight.saturating_abs(), extent)),
                None if weight.abs() == 1 => terms.push((1, i64::MAX)),
                None => return true,
            },
            None if loops.iter().any(|l| free_vars(&e).contains(&l.var)) => return false,
            None => {}
        }
    }
    terms.sort_unstable();
    let mut reached = 1i64;
    for (weight, extent) in terms {
        if weight > reached {
            return true;
        }
        reached = reached.saturating_add(weight.saturating_mul(extent.saturating_sub(1)));
    }
    false
}

#[cfg(test)]
mod tests {
    use relaxide_ir::Var;

    use super::*;
    use crate::stmt::Stmt;

    #[test]
    fn sums_of_loops_have_gaps_or_not() {
        let [i, j] = ["i", "j"].map(Var::dim);
        let (a, b, other) = (PrimExpr::from(&i), PrimExpr::from(&j), PrimExpr::from(&Var::dim("k")));
        let nest = Stmt::serial(i, 4, Stmt::serial(j, 3, Stmt::nop()));
        let tree = crate::s_tir::Tree::of(&nest);
        let loops: Vec<&Ref<For>> = tree.ids().filter_map(|id| tree.as_loop(id)).collect();
        let cases = [
            (&b * 4 + &a, false),
            (&b * 5 + &a + &other, true),
            (&a * 2 + &b, false),
            (&a * 2, true),
            (&other * 7 + &b, false),
            (other, false),
        ];
        for (value, gaps) in cases {
            assert_eq!(leaves_gaps(&value, &loops), gaps, "{value}");
        }
    }
}
