//! Proving that a kernel only copies elements in order, so that a view of its input will do.
//!
//! ```text
//! B[i, j, k] = A[i, j * 4 + k]        # A: (n, 8), B: (n, 2, 4)
//! i * 8 + (j * 4 + k)  ==  (i * 2 + j) * 4 + k
//! ```
//!
//! The flat index of the element that is read must be that of the element that is written, whatever the dimensions are,
//! and both buffers must have equally many elements. What cannot be proved is no reshape.
//!
//! How the loops visit the elements does not matter, so that scheduled kernels count as well: every store writes what a view
//! has there, and an element that is never written may have any value. Digits of the flat index come together once the axes
//! are written as its digits themselves:
//!
//! ```text
//! i = f // 3, j = f % 3:   (i * 3 + j) % 12 // 4  ==  f % 12 // 4        # B: (8, 3)
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{PrimExpr, VarMap, cast, floordiv, floormod, substitute};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::schedule::affine::flat_index;
use relaxide_tir::{BufferStore, PrimFunc, Stmt};

use super::legalize::RESHAPE_ATTR;
use crate::shape::same_dims;

/// Whether a kernel copies the elements of its first tensor, in order, to its last one.
pub fn is_reshape(kernel: &PrimFunc) -> bool {
    kernel.attrs.bool(RESHAPE_ATTR).unwrap_or_else(|| prove(kernel).is_some())
}

/// Whether a kernel only adds or drops dimensions of size one.
pub fn is_unit_reshape(kernel: &PrimFunc) -> bool {
    let [Some(input), .., Some(output)] = kernel.buffers.as_slice() else { return false };
    let real = |dims: &[PrimExpr]| dims.iter().filter(|d| !d.is_int(1)).cloned().collect::<Vec<_>>();
    is_reshape(kernel) && same_dims(&real(&input.shape), &real(&output.shape))
}

fn prove(kernel: &PrimFunc) -> Option<()> {
    let (Some(input), Some(output)) = (kernel.buffers.first()?, kernel.buffers.last()?) else { return None };
    if input == output || input.dtype != output.dtype {
        return None;
    }
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(input.shape.iter().chain(&output.shape));
    let store = only_store(&kernel.body, &mut analyzer)?;
    let PrimExpr::Load(load) = &store.value else { return None };
    let copies = store.buffer == *output && load.buffer == *input && load.predicate.is_none();
    if !copies || store.predicate.is_some() || output.num_elements().is_int(0) {
        return None;
    }
    let (from, to) = (flat_index(input, &load.indices), flat_index(output, &store.indices));
    let same_size = analyzer.can_prove_equal(&input.num_elements(), &output.num_elements());
    if !same_size {
        return None;
    }
    if analyzer.can_prove_equal(&from, &to) {
        return Some(());
    }
    let (flat, of_flat) = digits(output, &store.indices, &mut analyzer)?;
    let in_order = analyzer.can_prove_equal(&substitute(&from, &of_flat), &cast(from.dtype(), PrimExpr::from(&flat)));
    in_order.then_some(())
}

/// The one store that a kernel consists of, below loops and blocks that compute nothing else. The analyzer comes to know what
/// counts them.
fn only_store(stmt: &Stmt, analyzer: &mut Analyzer) -> Option<Ref<BufferStore>> {
    match stmt {
        Stmt::For(n) => {
            analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
            only_store(&n.body, analyzer)
        }
        Stmt::Block(n) => {
            let block = &n.block;
            if block.init.is_some() || !block.alloc_buffers.is_empty() || !block.match_buffers.is_empty() {
                return None;
            }
            for axis in &block.iter_vars {
                analyzer.bind(&axis.var, axis.min.clone(), axis.extent.clone());
            }
            only_store(&block.body, analyzer)
        }
        Stmt::Store(n) => Some(n.clone()),
        _ => None,
    }
}

/// The axes that a store is indexed by, as digits of a flat index of the buffer; nothing where another index stands.
fn digits(output: &Buffer, indices: &[PrimExpr], analyzer: &mut Analyzer) -> Option<(Ref<Var>, VarMap)> {
    let size = output.num_elements();
    let flat = Var::prim("flat", output.shape.first().map_or(size.dtype(), PrimExpr::dtype));
    let (mut rest, mut of_flat) = (PrimExpr::from(&flat), VarMap::new());
    if output.shape.iter().chain(indices).any(|e| e.dtype() != flat.dtype()) {
        return None;
    }
    for (index, dim) in indices.iter().zip(&output.shape).rev() {
        match index {
            PrimExpr::Var(var) => {
                let digit = floormod(rest.clone(), dim.clone());
                if of_flat.insert(var.clone(), digit).is_some() {
                    return None;
                }
                rest = floordiv(rest, dim.clone());
            }
            other if other.is_int(0) && dim.is_int(1) => {}
            _ => return None,
        }
    }
    analyzer.bind(&flat, 0, cast(flat.dtype(), size));
    Some((flat, of_flat))
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim::{floordiv, floormod};
    use relaxide_ir::{DataType, Var};
    use relaxide_tir::te;

    use super::*;

    const F32: DataType = DataType::float(32);

    fn check(from: &[PrimExpr], to: &[PrimExpr], index: impl Fn(&[PrimExpr]) -> Vec<PrimExpr>) -> bool {
        let a = te::placeholder("A", from, F32);
        let b = te::compute("B", to, |i| a.at(&index(i)));
        is_reshape(&te::create_prim_func(&[a, b]).unwrap())
    }

    #[test]
    fn splits_and_merges_of_dimensions_are_reshapes() {
        let n = PrimExpr::from(&Var::dim("n"));
        assert!(check(&[n.clone(), 8.into()], &[n.clone(), 2.into(), 4.into()], |i| vec![
            i[0].clone(),
            &i[1] * 4 + &i[2]
        ]));
        assert!(check(&[n.clone(), 2.into(), 4.into()], &[n.clone(), 8.into()], |i| vec![
            i[0].clone(),
            floordiv(i[1].clone(), 4),
            floormod(i[1].clone(), 4)
        ]));
        assert!(check(&[n.clone(), 1.into(), 4.into()], &[n.clone() * 4], |i| vec![
            floordiv(i[0].clone(), 4),
            0.into(),
            floormod(i[0].clone(), 4)
        ]));
    }

    #[test]
    fn rearrangements_and_cuts_are_not() {
        let n = PrimExpr::from(&Var::dim("n"));
        assert!(!check(&[n.clone(), 8.into()], &[8.into(), n.clone()], |i| vec![i[1].clone(), i[0].clone()]));
        assert!(!check(&[8.into()], &[4.into()], |i| vec![i[0].clone()]));
        assert!(!check(&[4.into()], &[8.into()], |i| vec![floormod(i[0].clone(), 4)]));
    }

    #[test]
    fn dimensions_of_size_one_are_told_from_others() {
        let n = PrimExpr::from(&Var::dim("n"));
        let kernel = |from: &[PrimExpr], to: &[PrimExpr], index: fn(&[PrimExpr]) -> Vec<PrimExpr>| {
            let a = te::placeholder("A", from, F32);
            let b = te::compute("B", to, |i| a.at(&index(i)));
            te::create_prim_func(&[a, b]).unwrap()
        };
        let squeeze = kernel(&[n.clone(), 1.into(), 4.into()], &[n.clone(), 4.into()], |i| {
            vec![i[0].clone(), 0.into(), i[1].clone()]
        });
        assert!(is_unit_reshape(&squeeze));
        let split = kernel(&[n.clone(), 8.into()], &[n, 2.into(), 4.into()], |i| vec![i[0].clone(), &i[1] * 4 + &i[2]]);
        assert!(is_reshape(&split) && !is_unit_reshape(&split));
    }

    #[test]
    fn digits_of_the_flat_index_come_together() {
        let flat = |i: &[PrimExpr]| &i[0] * 3 + &i[1];
        let dims = |list: &[i64]| list.iter().map(|d| PrimExpr::from(*d)).collect::<Vec<_>>();
        assert!(check(&dims(&[1, 2, 3, 4]), &dims(&[8, 3]), |i| vec![
            floordiv(flat(i), 24),
            floordiv(floormod(flat(i), 24), 12),
            floordiv(floormod(flat(i), 12), 4),
            floormod(flat(i), 4)
        ]));
        assert!(!check(&dims(&[1, 2, 3, 4]), &dims(&[8, 3]), |i| vec![
            0.into(),
            floordiv(flat(i), 12),
            floormod(flat(i), 3),
            floordiv(floormod(flat(i), 12), 3)
        ]));
    }

    #[test]
    fn without_elements_nothing_is_told() {
        assert!(!check(&[3.into(), 0.into()], &[0.into(), 3.into()], |i| vec![i[1].clone(), i[0].clone()]));
    }

    #[test]
    fn kernels_that_compute_are_not() {
        let a = te::placeholder("A", [4], F32);
        let b = te::compute("B", [4], |i| a.at(i) + 1);
        assert!(!is_reshape(&te::create_prim_func(&[a, b]).unwrap()));
    }
}
