//! A deep product's depth in blocks.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, int, min, mul, sub, substitute};

use super::super::contraction::Contraction;
use crate::Stmt;
use crate::schedule::Axis;
use crate::schedule::parameters::{Choices, Domain, Guess};

/// Terms up to which a sum is taken in one go.
const MOST_DEPTH: i64 = 1024;
/// Terms of a block of a deeper one, at most.
const DEPTH_BLOCK: i64 = 768;

/// The depth of a product in blocks, whose panels stay in the second-level cache beside what else is in use.
pub(super) struct DepthBlocks {
    /// The block's number.
    pub(super) var: Ref<Var>,
    /// The axis within a block.
    inner: Axis,
    /// Terms of a block, of all but the last.
    pub(super) size: i64,
    /// Blocks.
    pub(super) count: i64,
    depth: i64,
}

impl DepthBlocks {
    /// Asks how many terms a block has; `None` for sums that are taken in one go.
    pub(super) fn decide(choices: &mut Choices<'_>, c: &Contraction) -> Option<i64> {
        let [axis] = c.inner.as_slice() else { return None };
        let depth = axis.extent.as_int()?;
        let count = (depth + DEPTH_BLOCK - 1) / DEPTH_BLOCK;
        let size = ((depth + count - 1) / count.max(1) + 7) / 8 * 8;
        let is_deep = depth > MOST_DEPTH;
        let block = choices.choose(Guess {
            name: "depth_block",
            value: if is_deep { size } else { 0 },
            domain: Domain::steps(0, (depth + 7) / 8 * 8, 8),
            reason: match is_deep {
                true => "panels of so many terms stay in the second-level cache, and blocks are equal",
                false => "panels of all terms stay in the second-level cache",
            },
            limit: "0 takes a sum in one go; blocks are multiples of eight terms, no larger than the sum",
        });
        (block > 0).then_some(block)
    }

    /// The blocks of a sum over one axis of known depth, of so many terms each.
    pub(super) fn of(c: &Contraction, size: i64) -> Option<DepthBlocks> {
        let [axis] = c.inner.as_slice() else { return None };
        let depth = axis.extent.as_int()?;
        let length = Var::dim("length");
        let extent = if depth % size == 0 { int(size) } else { PrimExpr::from(&length) };
        let var = Var::dim("depth_block");
        Some(DepthBlocks {
            var,
            inner: Axis { var: axis.var.clone(), extent },
            size,
            count: (depth + size - 1) / size,
            depth,
        })
    }

    /// Where the block begins.
    pub(super) fn start(&self) -> PrimExpr {
        mul(PrimExpr::from(&self.var), int(self.size))
    }

    /// The block's length, where the last block's differs.
    pub(super) fn binds(&self) -> Option<Stmt> {
        let PrimExpr::Var(length) = &self.inner.extent else { return None };
        Some(Stmt::bind(length.clone(), min(int(self.size), sub(int(self.depth), self.start()))))
    }

    /// The sum over one block.
    pub(super) fn contraction(&self, c: &Contraction) -> Contraction {
        let moved: VarMap = [(self.inner.var.clone(), add(self.start(), PrimExpr::from(&self.inner.var)))].into();
        let (row, column) = (substitute(&c.row, &moved), substitute(&c.column, &moved));
        Contraction { row, column, inner: vec![self.inner.clone()], ..c.clone() }
    }
}
