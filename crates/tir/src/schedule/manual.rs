//! Whether a kernel was scheduled manually, so that rules leave it as it is.
//!
//! Computes and fusion make plain nests: one serial loop for each axis of a block, in the order of its axes, and nothing
//! else. Whoever wrote a [schedule](crate::s_tir) made something else of them: loops of other kinds or with hints, axes at
//! other values than a loop of their own, predicates, several blocks in one nest. One such place is enough: a rule that
//! took the other blocks of the kernel apart would undo decisions that were made for all of them. The attribute
//! `tirx.is_scheduled` says the same of a kernel that looks plain.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::PrimExpr;

use crate::s_tir::state::{NodeId, Tree};
use crate::{ForKind, IterKind, PrimFunc};

/// The attribute of kernels that rules leave alone.
pub const IS_SCHEDULED: &str = "tirx.is_scheduled";

/// Why a kernel counts as scheduled manually; `None` where rules are to schedule it.
pub fn manually_scheduled(func: &PrimFunc) -> Option<String> {
    if func.attrs.bool(IS_SCHEDULED) == Some(true) {
        return Some(format!("the kernel says {IS_SCHEDULED}"));
    }
    let tree = Tree::of(&func.body);
    tree.ids().find_map(|id| of_loop(&tree, id).or_else(|| of_block(&tree, id)))
}

/// Loops of other kinds, and loops with hints, around blocks.
fn of_loop(tree: &Tree, id: NodeId) -> Option<String> {
    let n = tree.as_loop(id)?;
    if tree.child_blocks(id).is_empty() {
        return None;
    }
    if n.kind != ForKind::Serial {
        return Some(format!("loop `{}` is {:?}", n.var.name, n.kind).to_lowercase());
    }
    (!n.annotations.is_empty()).then(|| format!("loop `{}` has hints", n.var.name))
}

/// Blocks at other places than one loop for each axis makes.
fn of_block(tree: &Tree, id: NodeId) -> Option<String> {
    let n = tree.as_block(id)?;
    let loops: Vec<&Ref<Var>> = tree.loops_above(id).iter().filter_map(|l| Some(&tree.as_loop(*l)?.var)).collect();
    let known = |kind| matches!(kind, IterKind::Spatial | IterKind::Reduce);
    if n.block.iter_vars.is_empty() || !n.block.iter_vars.iter().all(|iter| known(iter.kind)) {
        return None;
    }
    if !n.predicate.is_int(1) {
        return Some(format!("block `{}` has a predicate", n.block.name));
    }
    let at = |value: &PrimExpr| value.as_var().and_then(|var| loops.iter().position(|l| *l == var));
    let places: Vec<Option<usize>> = n.iter_values.iter().filter(|v| v.as_int().is_none()).map(at).collect();
    let plain = places.iter().all(Option::is_some) && places.is_sorted();
    (!plain).then(|| format!("the loops around block `{}` are not those of its axes, in order", n.block.name))
}

#[cfg(test)]
mod tests {
    use relaxide_ir::{DataType, Target};

    use super::*;
    use crate::s_tir::Schedule;
    use crate::{schedule, te};

    fn sum_of_rows() -> PrimFunc {
        let f32 = DataType::float(32);
        let a = te::placeholder("A", [16, 32], f32);
        let k = te::reduce_axis(32);
        let b = te::compute("B", [16], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
        te::create_prim_func(&[a, b]).unwrap()
    }

    #[test]
    fn plain_kernels_are_for_the_rules() {
        assert_eq!(manually_scheduled(&sum_of_rows()), None);
        let marked = PrimFunc { attrs: sum_of_rows().attrs.with(IS_SCHEDULED, true), ..sum_of_rows() };
        assert!(manually_scheduled(&marked).is_some());
    }

    #[test]
    fn the_loops_of_a_schedule_stay() {
        let mut sch = Schedule::of_func(sum_of_rows());
        let block = sch.get_sblock("B", None).unwrap();
        let loops = sch.get_loops(&block).unwrap();
        let i = sch.split(&loops[0], &[None, Some(8.into())]).unwrap();
        sch.reorder(&[i[0].clone(), loops[1].clone(), i[1].clone()]).unwrap();
        sch.vectorize(&i[1]).unwrap();
        sch.parallel(&i[0]).unwrap();
        let func = sch.func("main").unwrap();
        let scheduled = schedule::apply(&func, &Target::default()).unwrap();
        assert_eq!(scheduled.func.body, func.body);
        assert_eq!(scheduled.notes.len(), 1);
        let lowered = crate::lower::lower(&scheduled.func).unwrap().to_string();
        for sign in ["for ax0_0 in parallel(2)", "for k in serial(32)", "ramp("] {
            assert!(lowered.to_lowercase().contains(sign), "{sign} in\n{lowered}");
        }
    }
}
