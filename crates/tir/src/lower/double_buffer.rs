//! What an iteration of a loop writes for itself is written by the iteration before it.
//!
//! ```text
//! for i in range(n):                                 B = T.alloc_buffer((2, 4))
//!     B = T.alloc_buffer((4,))                       B[0, j] = A[0, j]
//!     with T.attr("double_buffer_scope", 1):  ->     for i in range(n - 1):
//!         B[j] = A[i, j]                                 B[(i + 1) % 2, j] = A[i + 1, j]
//!     C[j] += B[j]                                       C[j] += B[i % 2, j]
//!                                                    C[j] += B[(n - 1) % 2, j]
//! ```
//!
//! What stands under the attribute must depend on the loop's counter and not on other names of the loop; the scratch that it writes is
//! asked for in the loop. Source: TVM's `InjectDoubleBuffer`, which makes one buffer twice as long.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, add, floormod, gt, int_of, sub};
use relaxide_ir::{Buffer, Var};

use super::loops::{rewrite_loops, statements};
use super::versions::{Uses, Version, of_iteration, with_versions};
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::analysis::regions::shared_memory;
use crate::functor::undefined_vars;
use crate::stmt::*;

/// The attribute of what is written ahead.
const SCOPE: &str = "double_buffer_scope";

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.InjectDoubleBuffer",
    "What an iteration of a loop writes for itself is written by the iteration before it.",
    inject_double_buffers
);

fn inject_double_buffers(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    rewrite_loops(func, |n| statements(&n.body).iter().any(is_ahead).then(|| doubled(n)))
}

fn is_ahead(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Attr(n) if n.key == SCOPE)
}

fn refused(n: &For, what: &str) -> LowerError {
    LowerError::Refused(format!("`{SCOPE}` in the loop over `{}`: {what}", n.var.name))
}

fn doubled(n: &For) -> Result<Stmt, LowerError> {
    if !matches!(n.kind, ForKind::Serial | ForKind::Unrolled) || n.body.has_early_exit() {
        return Err(refused(n, "iterations are to be one after the other, without `break` and `continue`"));
    }
    let list = statements(&n.body);
    let allocated: Vec<&Ref<Buffer>> = list.iter().filter_map(allocated).collect();
    let ahead: Vec<&Stmt> = list.iter().filter(|stmt| is_ahead(stmt)).collect();
    let own: Vec<Ref<Var>> = list.iter().filter_map(bound).collect();
    let shared = shared_memory(&n.body);
    let mut twice: HashMap<Ref<Buffer>, Ref<Buffer>> = HashMap::new();
    for stmt in &ahead {
        if undefined_vars(stmt).iter().any(|var| own.contains(var)) {
            return Err(refused(
                n,
                "what is written ahead depends on a name of the same iteration; put its value there",
            ));
        }
        let written = Uses::of(stmt).written;
        if written.is_empty()
            || written.iter().any(|buffer| !allocated.contains(&buffer) || shared.contains(&buffer.data))
        {
            return Err(refused(
                n,
                "it is to write scratch that is asked for in the loop, and that nothing knows by a pointer",
            ));
        }
        twice.extend(written.into_iter().map(|buffer| (buffer.clone(), with_versions(&buffer, 2))));
    }
    let dtype = n.var.dtype();
    let one = int_of(dtype, 1);
    // Which of two it is, of an iteration that is counted from zero.
    let iteration = |stmt: &Stmt, counted: PrimExpr| {
        let at = floormod(&counted, int_of(dtype, 2));
        let buffers = twice.iter().map(|(old, new)| (old.clone(), Version::at(new, at.clone()))).collect();
        of_iteration(stmt, &n.var, &add(&n.min, counted), &buffers)
    };
    let inside = |stmt: &Stmt| match stmt {
        Stmt::Attr(n) if n.key == SCOPE => n.body.clone(),
        _ => stmt.clone(),
    };
    let rest = || list.iter().filter(|stmt| !allocated_of(stmt, &twice));
    let mut made: Vec<Stmt> = twice.values().map(Stmt::alloc).collect();
    made.extend(ahead.iter().map(|stmt| iteration(&inside(stmt), int_of(dtype, 0))));
    let counter = Var::new(n.var.name.clone(), n.var.ty.clone());
    let here = PrimExpr::from(&counter);
    let body =
        rest().map(|stmt| iteration(&inside(stmt), if is_ahead(stmt) { add(&here, &one) } else { here.clone() }));
    let body = Stmt::seq(body);
    let (min, extent) = (int_of(dtype, 0), sub(&n.extent, &one));
    made.push(Ref::new(For { var: counter, min, extent: extent.clone(), body, ..For::clone(n) }).into());
    made.extend(rest().filter(|stmt| !is_ahead(stmt)).map(|stmt| iteration(stmt, extent.clone())));
    let made = Stmt::seq(made);
    Ok(match n.extent.as_int() {
        Some(1..) => made,
        Some(_) => Stmt::nop(),
        None => Stmt::when(gt(n.extent.clone(), int_of(dtype, 0)), made),
    })
}

fn allocated(stmt: &Stmt) -> Option<&Ref<Buffer>> {
    if let Stmt::Alloc(n) = stmt { Some(&n.buffer) } else { None }
}

fn bound(stmt: &Stmt) -> Option<Ref<Var>> {
    if let Stmt::Bind(n) = stmt { Some(n.var.clone()) } else { None }
}

fn allocated_of(stmt: &Stmt, twice: &HashMap<Ref<Buffer>, Ref<Buffer>>) -> bool {
    allocated(stmt).is_some_and(|buffer| twice.contains_key(buffer))
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Tensor};
    use relaxide_ir::prim::{constant, int, load};

    use super::*;
    use crate::testing::Sample;

    const F32: DataType = DataType::float(32);

    /// `C[i] = 2 A[i] + 1` by scratch of each iteration, for as many iterations as a scalar says.
    fn sample(iterations: i64, named: bool) -> Sample {
        let (a, c) = (Buffer::new("A", F32, [8]), Buffer::new("C", F32, [8]));
        let b = Buffer::scoped("B", F32, [int(1)], "local");
        let [n, place] = ["n", "place"].map(Var::dim);
        let zeros = Stmt::each("j", 8, |j| Stmt::store(&c, [j.clone()], constant(F32, 0.0)));
        let loop_ = Stmt::each("i", PrimExpr::from(&n), |i| {
            let from = if named { PrimExpr::from(&place) } else { i.clone() };
            let body = Stmt::store(&b, [int(0)], load(&a, [from]) * constant(F32, 2.0));
            let ahead: Stmt = Ref::new(AttrStmt { node: None, key: SCOPE.into(), value: int(1), body }).into();
            let used = Stmt::store(&c, [i.clone()], load(&b, [int(0)]) + constant(F32, 1.0));
            Stmt::seq([Stmt::alloc(&b), Stmt::bind(place.clone(), i.clone()), ahead, used])
        });
        let func = PrimFunc::over_buffers(&[a, c], &[n], Stmt::seq([zeros, loop_]));
        let inputs = vec![Tensor::from_slice(&[1.0_f32, 2.0, -3.0, 0.5, 4.0, 7.0, 8.0, 9.0], &[8]).unwrap()];
        Sample { func, inputs, outputs: vec![(vec![8], F32)], scalars: vec![iterations] }
    }

    #[test]
    fn an_iteration_writes_for_the_next() {
        for iterations in 0..5 {
            let sample = sample(iterations, false);
            let made = inject_double_buffers(&sample.func).unwrap();
            assert!(!made.to_string().contains(SCOPE), "{made}");
            let (found, expected) = (sample.interpret(&made).unwrap(), sample.interpret(&sample.func).unwrap());
            assert_eq!(found, expected, "{iterations} iterations\n{made}");
        }
    }

    #[test]
    fn names_of_the_iteration_are_refused() {
        let error = inject_double_buffers(&sample(3, true).func).unwrap_err().to_string();
        assert!(error.contains("a name of the same iteration"), "{error}");
    }
}
