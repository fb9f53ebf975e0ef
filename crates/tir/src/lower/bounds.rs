//! Accesses outside of their buffers become errors.
//!
//! ```text
//! A[i + 1] = B[i]     ->     A[checked_index(i + 1, n, "buffer `A` along dimension 0")] = B[checked_index(i, m, …)]
//! ```
//!
//! A checked index is evaluated where the index was, so an access that a choice leaves out is not looked at, and in a vector
//! only the lanes that the access's predicate leaves on. A loop that was to become vectors stays a loop. Index arithmetic
//! narrower than 64 bits is done in 64, so that an index that would overflow is seen as what it is; what depends on
//! memory keeps its type, in which it may be meant to wrap.
//!
//! An access whose value nothing needs may go with it, and its check too. The pass stands behind the lowering of blocks, which resolves sub-buffers. An access by one flat index to a buffer of several
//! dimensions is held against the number of its elements; with strides of its own, against zero only.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Buffer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::analysis::wide::in_64_bits;
use crate::functor::StmtMutator;
use crate::stmt::{BufferStore, Stmt};

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.InstrumentBoundCheckers",
    "Turns accesses outside of their buffers into errors.",
    check_bounds
);

/// A kernel whose accesses are checked.
pub(super) fn check_bounds(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(CheckBounds.mutate_stmt(&func.body)))
}

struct CheckBounds;

/// The indices of an access, each checked.
fn checked(buffer: &Buffer, indices: Vec<PrimExpr>, predicate: Option<&PrimExpr>) -> Vec<PrimExpr> {
    let flat = indices.len() != buffer.ndim();
    let check = |(dimension, index): (usize, PrimExpr)| {
        let (extent, what) = match buffer.shape.get(dimension).filter(|_| !flat) {
            Some(extent) => (extent.clone(), format!("buffer `{}` along dimension {dimension}", buffer.name)),
            None if buffer.strides.is_empty() => (buffer.num_elements(), format!("buffer `{}`, flat,", buffer.name)),
            None => (prim::int(i64::MAX), format!("buffer `{}`, flat,", buffer.name)),
        };
        if matches!(&index, PrimExpr::Call(n) if n.op == "tirx.checked_index") {
            return index;
        }
        if let (Some(index), Some(extent)) = (index.as_int(), extent.as_int())
            && (0..extent).contains(&index)
        {
            return prim::int(index);
        }
        let index = in_64_bits(&index);
        let lanes = index.dtype().lanes;
        let extent = in_64_bits(&extent);
        let mut args = vec![index.clone(), extent, prim::string(what), index];
        args.extend(predicate.filter(|p| p.dtype().lanes == lanes).cloned());
        prim::call(DataType::int(64).with_lanes(lanes), "tirx.checked_index", args)
    };
    indices.into_iter().enumerate().map(check).collect()
}

impl PrimMutator for CheckBounds {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let PrimExpr::Load(n) = e else { return self.remake_prim(e) };
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        let indices = self.mutate_prims(&n.indices);
        let indices = checked(&n.buffer, indices, predicate.as_ref());
        Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate }).into()
    }
}

impl StmtMutator for CheckBounds {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Store(n) = stmt else { return self.remake_stmt(stmt) };
        let (value, predicate) = (self.mutate_prim(&n.value), n.predicate.as_ref().map(|p| self.mutate_prim(p)));
        let indices = self.mutate_prims(&n.indices);
        let indices = checked(&n.buffer, indices, predicate.as_ref());
        Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::Tensor;
    use relaxide_ir::Var;

    use crate::interp::{self, InterpError};
    use crate::lower::{LowerOptions, lower_with};
    use crate::{PrimFunc, Stmt};

    use super::*;

    const F32: DataType = DataType::float(32);
    const I32: DataType = DataType::int(32);

    /// The error of storing to `index(i)` of a buffer of some extents for `i` below four.
    fn error_of(shape: &[i64], index: impl Fn(PrimExpr) -> Vec<PrimExpr>) -> Option<String> {
        let a = Buffer::new("A", F32, shape.iter().copied());
        let i = Var::prim("i", I32);
        let store = Stmt::store(&a, index(PrimExpr::from(&i)), prim::float_of(F32, 1.0));
        let func = PrimFunc::over_buffers(&[a], &[], Stmt::serial(i, 4, store));
        let lowered = lower_with(&func, LowerOptions { check_bounds: true, ..LowerOptions::default() }).unwrap();
        match interp::run(&lowered, &[Tensor::zeros(shape, F32).unwrap().into()]) {
            Ok(_) => None,
            Err(InterpError::Assertion { kind, message }) => Some(format!("{kind}: {message}")),
            Err(other) => panic!("{other}\n{lowered}"),
        }
    }

    #[test]
    fn the_dimension_that_is_left_is_named() {
        assert_eq!(error_of(&[4, 2], |i| vec![i.clone(), prim::floormod(i, prim::int_of(I32, 2))]), None);
        // The flat index is inside of the buffer.
        let found = error_of(&[4, 2], |i| vec![prim::int_of(I32, 0), i]).unwrap();
        assert_eq!(found, "IndexError: index 2 of buffer `A` along dimension 1 is outside of the extent 2");
        let found = error_of(&[4], |i| vec![i - prim::int_of(I32, 1)]).unwrap();
        assert_eq!(found, "IndexError: index -1 of buffer `A` along dimension 0 is outside of the extent 4");
    }

    #[test]
    fn an_index_that_overflows_is_seen_as_what_it_is() {
        // 2^30 * 4 is zero in 32 bits.
        let found = error_of(&[4], |i| vec![(i + prim::int_of(I32, 1 << 30)) * prim::int_of(I32, 4)]).unwrap();
        assert_eq!(found, "IndexError: index 4294967296 of buffer `A` along dimension 0 is outside of the extent 4");
    }
}
