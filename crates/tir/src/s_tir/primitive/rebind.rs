//! What happens to blocks when the loops around them change: conditions are added, values of axes become simpler.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};

use crate::analysis::affine::is_affine;
use crate::analysis::iterators::{Units, by_iterators};
use crate::s_tir::state::{NodeId, Tree, replace};
use crate::stmt::*;

/// A statement whose outermost blocks are executed under one condition more.
pub(super) fn guard(body: &Stmt, condition: &PrimExpr) -> Stmt {
    change_blocks(body, &mut |n| {
        let predicate = prim::and(n.predicate.clone(), condition.clone());
        Ref::new(SBlockRealize { iter_values: n.iter_values.clone(), predicate, block: n.block.clone() })
    })
}

/// A statement with its outermost blocks put at other values.
pub(super) fn change_blocks(body: &Stmt, change: &mut dyn FnMut(&Ref<SBlockRealize>) -> Ref<SBlockRealize>) -> Stmt {
    let tree = Tree::of(body);
    let outermost = tree.blocks().filter(|(id, _)| tree.scope_of(*id).is_none());
    let changes: Vec<(Stmt, Stmt)> = outermost
        .map(|(_, n)| (Stmt::Block(n.clone()), Stmt::Block(change(n))))
        .filter(|(old, new)| old != new)
        .collect();
    replace(body, &changes)
}

/// A statement that is to stand at a node, with the values of its blocks' axes in a simpler form. Loops of extent one are
/// taken to be at their only value where they need not be kept.
pub(super) fn simplify_bindings(body: &Stmt, tree: &Tree, node: NodeId, keep_unit: bool) -> Stmt {
    let around: Vec<Ref<For>> = tree.all_loops_above(node).iter().filter_map(|id| tree.as_loop(*id).cloned()).collect();
    let inside = Tree::of(body);
    let mut changes = Vec::new();
    for (id, n) in inside.blocks().filter(|(id, _)| inside.scope_of(*id).is_none()) {
        let own = inside.loops_above(id);
        let loops: Vec<Ref<For>> =
            around.iter().cloned().chain(own.iter().filter_map(|l| inside.as_loop(*l).cloned())).collect();
        let mut analyzer = Analyzer::new();
        for l in &loops {
            analyzer.mark_dims([&l.extent]);
            if keep_unit && l.extent.is_int(1) {
                // With a range of two values the counter stays in the expression.
                analyzer.bind(&l.var, l.min.clone(), prim::int_of(l.var.dtype(), 2));
            } else {
                analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
            }
        }
        let _assumed = analyzer.assume(&n.predicate);
        let units = if keep_unit { Units::Kept } else { Units::Replaced };
        let by_parts =
            is_affine(n, &loops).then(|| by_iterators(&n.iter_values, &loops, &n.predicate, units)).flatten();
        let simplified = || n.iter_values.iter().map(|v| analyzer.simplify_as_tvm(v)).collect();
        let iter_values: Vec<PrimExpr> = by_parts.unwrap_or_else(simplified);
        if iter_values != n.iter_values {
            let changed = SBlockRealize { iter_values, predicate: n.predicate.clone(), block: n.block.clone() };
            // What is shorter is not simpler where the parts of loops can no longer be told.
            if is_affine(&changed, &loops) {
                changes.push((Stmt::Block(n.clone()), Ref::new(changed).into()));
            }
        }
    }
    replace(body, &changes)
}
