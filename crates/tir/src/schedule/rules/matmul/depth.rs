//! A deep product's depth in blocks.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, int, min, mul, sub, substitute};

use super::super::contraction::Contraction;
use crate::Stmt;
use crate::schedule::Axis;

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
    /// The blocks of a sum over one axis that is known to be deep.
    pub(super) fn of(c: &Contraction) -> Option<DepthBlocks> {
        let [axis] = c.inner.as_slice() else { return None };
        let depth = axis.extent.as_int().filter(|depth| *depth > MOST_DEPTH)?;
        let count = (depth + DEPTH_BLOCK - 1) / DEPTH_BLOCK;
        let size = ((depth + count - 1) / count + 7) / 8 * 8;
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
