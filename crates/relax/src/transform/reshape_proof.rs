//! Proving that a kernel only copies elements in order, so that a view of its input will do.
//!
//! ```text
//! B[i, j, k] = A[i, j * 4 + k]        # A: (n, 8), B: (n, 2, 4)
//! i * 8 + (j * 4 + k)  ==  (i * 2 + j) * 4 + k
//! ```
//!
//! The flat index of the element that is read must be that of the element that is written, whatever the dimensions are,
//! and both buffers must have equally many elements. What cannot be proved is no reshape.

use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::PrimFunc;
use relaxide_tir::schedule::affine::flat_index;
use relaxide_tir::schedule::{Item, Program};

use super::legalize::RESHAPE_ATTR;
use crate::shape::same_dims;

/// Whether a kernel of one input and one output copies elements in order.
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
    let [Some(input), .., Some(output)] = kernel.buffers.as_slice() else { return None };
    if kernel.buffers.iter().flatten().count() != 2 || input.dtype != output.dtype {
        return None;
    }
    let program = Program::read(kernel);
    let [Item::Stage(stage)] = program.items.as_slice() else { return None };
    let PrimExpr::Load(load) = &stage.value else { return None };
    let copies = stage.reduction.is_none() && stage.is_identity() && stage.output == *output && load.buffer == *input;
    if !copies {
        return None;
    }
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(input.shape.iter().chain(&output.shape));
    for axis in &stage.spatial {
        analyzer.bind(&axis.var, 0, axis.extent.clone());
    }
    let (from, to) = (flat_index(input, &load.indices), flat_index(output, &stage.indices));
    let same_size = analyzer.can_prove_equal(&input.num_elements(), &output.num_elements());
    (same_size && analyzer.can_prove_equal(&from, &to)).then_some(())
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
    fn kernels_that_compute_are_not() {
        let a = te::placeholder("A", [4], F32);
        let b = te::compute("B", [4], |i| a.at(i) + 1);
        assert!(!is_reshape(&te::create_prim_func(&[a, b]).unwrap()));
    }
}
