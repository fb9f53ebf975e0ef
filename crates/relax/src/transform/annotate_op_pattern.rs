//! AnnotateTIROpPattern: says of every kernel how it may be fused, by what its blocks do.
//!
//! Fusion asks of a kernel one thing: which elements of its inputs does an element of its output need? The answer is a
//! number in the attribute `op_pattern`, smaller meaning freer:
//!
//! | pattern | blocks |
//! | --- | --- |
//! | 0, element-wise | element `i` of the inputs, or none |
//! | 1, broadcast | as above, where size-one dimensions are repeated |
//! | 2, injective | one element of each input at a time, at any place |
//! | 3, reduction | reductions that read each element once, and what is done to the reduced elements |
//! | 4, out-fusable | one sum of products, or reduction of windows, and what is done to its results element by element |
//! | 8, opaque | anything else |
//!
//! ```text
//! for i, k in T.grid(n, 64):                                  # T.func_attr({"op_pattern": 3})
//!     with T.sblock("sum"):                            →
//!         B[vi] = B[vi] + A[vi, vk]
//! ```
//!
//! **Model.** A kernel is read as the schedule rules read it ([`Program`]), so what fusion takes for a reduction is what a
//! rule can make a loop of. Blocks are joined in order: element-wise and injective ones, then an *anchor*, then
//! element-wise ones behind it. Several reductions of plain pattern (a softmax) are one anchor; everything else with two
//! anchors is opaque. A rearrangement behind an anchor (a transposed convolution) makes a reduction out-fusable.
//!
//! **Keeps** an attribute that is there: whoever wrote it knows better.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{AttrValue, BaseFunc, BinaryOp, Buffer, IRModule, Var};
use relaxide_tir::PrimFunc;
use relaxide_tir::schedule::affine::{all_same, loads};
use relaxide_tir::schedule::{Item, Program, Stage, words};

use crate::op::OpPattern;

pub(super) const PASS: PassInfo = PassInfo::new(
    "AnnotateTIROpPattern",
    "Says of every kernel how it may be fused, by what its blocks do.",
    |module, _, _| Ok(run(module)),
)
.ready(relaxide_tir::lower::module_of_unit_steps);

/// The attribute of a kernel that holds its pattern.
pub const PATTERN_ATTR: &str = "op_pattern";

fn run(mut module: IRModule) -> IRModule {
    for func in module.functions.values_mut() {
        let Some(kernel) = func.downcast::<PrimFunc>() else { continue };
        if kernel.attrs.get(PATTERN_ATTR).is_some() {
            continue;
        }
        let mut annotated = (*kernel).clone();
        annotated.attrs = annotated.attrs.with(PATTERN_ATTR, AttrValue::Int(op_pattern(&kernel) as i64));
        *func = BaseFunc::from(Ref::new(annotated));
    }
    module
}

/// How a kernel may be fused with its neighbours.
pub fn op_pattern(kernel: &PrimFunc) -> OpPattern {
    let program = Program::read(kernel);
    let mut before = OpPattern::Elemwise;
    let mut anchor = None;
    for item in &program.items {
        let Item::Stage(stage) = item else { return OpPattern::Opaque };
        if stage.reduction.is_none() {
            match (map_pattern(stage), anchor) {
                (OpPattern::Opaque, _) => return OpPattern::Opaque,
                (pattern, None) => before = before.max(pattern),
                (OpPattern::Injective, Some(_)) => anchor = Some(OpPattern::OutFusable),
                (_, Some(_)) => {}
            }
            continue;
        }
        anchor = Some(match (anchor, reduction_pattern(stage)) {
            // What is rearranged or guarded in front of a reduction is part of its access pattern.
            (None, pattern) => {
                if before <= OpPattern::Broadcast {
                    pattern
                } else {
                    OpPattern::OutFusable
                }
            }
            (Some(OpPattern::Reduce), OpPattern::Reduce) => OpPattern::Reduce,
            _ => return OpPattern::Opaque,
        });
    }
    anchor.unwrap_or(before)
}

/// The rows that the reductions of a kernel run along: extents of the axes that tell rows apart, and of those within a
/// row. `None` unless all its reductions run along the same rows of compact memory.
pub fn rows(kernel: &PrimFunc) -> Option<(Vec<PrimExpr>, Vec<PrimExpr>)> {
    let mut found: Option<(Vec<PrimExpr>, Vec<PrimExpr>)> = None;
    for item in &Program::read(kernel).items {
        let Item::Stage(stage) = item else { return None };
        if stage.reduction.is_none() {
            continue;
        }
        let axes: Vec<&Ref<Var>> = stage.spatial.iter().chain(&stage.reduce).map(|a| &a.var).collect();
        let in_order = |indices: &[PrimExpr]| {
            let own = plain_axes(indices);
            own.is_some_and(|own| own == axes)
        };
        if !loads(&stage.value).iter().any(|l| in_order(&l.indices)) {
            return None;
        }
        let extents = |axes: &[relaxide_tir::schedule::Axis]| axes.iter().map(|a| a.extent.clone()).collect::<Vec<_>>();
        let own = (extents(&stage.spatial), extents(&stage.reduce));
        match &found {
            Some(other) if !(all_same(&other.0, &own.0) && all_same(&other.1, &own.1)) => return None,
            _ => found = Some(own),
        }
    }
    found
}

/// The pattern of a block without a reduction.
fn map_pattern(stage: &Stage) -> OpPattern {
    if !stage.is_identity() {
        return OpPattern::Opaque;
    }
    let Some(own) = plain_axes(&stage.indices) else { return OpPattern::Opaque };
    let mut pattern = OpPattern::Elemwise;
    let mut element_by_element = false;
    for load in loads(&stage.value) {
        match plain_axes(&load.indices) {
            Some(axes) if axes == own => element_by_element = true,
            Some(axes) if is_subsequence(&axes, &own) => pattern = pattern.max(OpPattern::Broadcast),
            _ => pattern = OpPattern::Injective,
        }
    }
    // One operand at full size decides: the others are repeated along it.
    if pattern == OpPattern::Broadcast && element_by_element { OpPattern::Elemwise } else { pattern }
}

/// The pattern of a block with a reduction.
fn reduction_pattern(stage: &Stage) -> OpPattern {
    let reads = loads(&stage.value);
    let axes: Vec<&Ref<Var>> = stage.spatial.iter().chain(&stage.reduce).map(|a| &a.var).collect();
    let plain: Option<Vec<Vec<&Ref<Var>>>> = reads.iter().map(|l| plain_axes(&l.indices)).collect();
    let each_once = plain.is_some_and(|all| {
        all.iter().any(|own| own.len() == axes.len() && own.iter().collect::<HashSet<_>>().len() == axes.len())
    });
    if each_once && !is_product_of_inputs(&stage.value) { OpPattern::Reduce } else { OpPattern::OutFusable }
}

/// Whether a value is a product whose factors come from different buffers, as in a matrix product.
fn is_product_of_inputs(value: &PrimExpr) -> bool {
    let (a, b) = match value {
        PrimExpr::Cast(n) => return is_product_of_inputs(&n.value),
        PrimExpr::Binary(n) if n.op == BinaryOp::Mul => (&n.a, &n.b),
        other => match words(other) {
            Some((_, a, b)) => (a, b),
            None => return false,
        },
    };
    let buffers = |e: &PrimExpr| loads(e).into_iter().map(|l| l.buffer.clone()).collect::<HashSet<Ref<Buffer>>>();
    let (a, b) = (buffers(a), buffers(b));
    !a.is_empty() && !b.is_empty() && a.is_disjoint(&b)
}

/// The axes of an index whose every entry is an axis or 0.
fn plain_axes(indices: &[PrimExpr]) -> Option<Vec<&Ref<Var>>> {
    indices.iter().filter(|i| !i.is_int(0)).map(PrimExpr::as_var).collect()
}

fn is_subsequence(part: &[&Ref<Var>], whole: &[&Ref<Var>]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|axis| rest.any(|other| other == axis))
}

#[cfg(test)]
mod tests {
    use relaxide_ir::DataType;
    use relaxide_ir::prim;
    use relaxide_tir::te;

    use super::*;

    const F32: DataType = DataType::float(32);

    fn pattern(args: &[te::Tensor]) -> OpPattern {
        op_pattern(&te::create_prim_func(args).unwrap())
    }

    #[test]
    fn blocks_without_reduction_are_told_apart_by_where_they_read() {
        let n = Var::dim("n");
        let a = te::placeholder("A", [PrimExpr::from(&n), 4.into()], F32);
        let b = te::placeholder("B", [4], F32);
        let cases = [
            (te::compute("relu", [PrimExpr::from(&n), 4.into()], |i| prim::max(a.at(i), 0)), OpPattern::Elemwise),
            (te::compute("zeros", [PrimExpr::from(&n), 4.into()], |_| prim::float_of(F32, 0.0)), OpPattern::Elemwise),
            (te::compute("bias", [PrimExpr::from(&n), 4.into()], |i| a.at(i) + b.at(&i[1..])), OpPattern::Elemwise),
            (te::compute("rows", [PrimExpr::from(&n), 4.into()], |i| b.at(&i[1..])), OpPattern::Broadcast),
            (
                te::compute("T", [4.into(), PrimExpr::from(&n)], |i| a.at(&[i[1].clone(), i[0].clone()])),
                OpPattern::Injective,
            ),
            (te::compute("flip", [4], |i| b.at(&[PrimExpr::from(3) - &i[0]])), OpPattern::Injective),
        ];
        for (out, want) in cases {
            let reads_a = matches!(out.name(), "relu" | "bias" | "T");
            let reads_b = matches!(out.name(), "bias" | "rows" | "flip");
            let mut args = Vec::new();
            args.extend(reads_a.then(|| a.clone()));
            args.extend(reads_b.then(|| b.clone()));
            args.push(out.clone());
            assert_eq!(pattern(&args), want, "{}", out.name());
        }
    }

    #[test]
    fn a_mean_is_a_reduction_and_a_matrix_product_is_out_fusable() {
        let a = te::placeholder("A", [8, 16], F32);
        let b = te::placeholder("B", [16, 4], F32);
        let k = te::reduce_axis(16);
        let total = te::compute("sum", [8], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
        let mean = te::compute("mean", [8], |i| total.at(i) * prim::float_of(F32, 0.0625));
        assert_eq!(pattern(&[a.clone(), mean]), OpPattern::Reduce);
        let product = te::compute("C", [8, 4], |i| {
            te::sum(a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]), [&k])
        });
        assert_eq!(pattern(&[a, b, product]), OpPattern::OutFusable);
    }

    #[test]
    fn windows_are_out_fusable_also_behind_padding() {
        let a = te::placeholder("A", [16], F32);
        let padded = te::compute("pad", [18], |i| {
            let inside = prim::and(prim::ge(&i[0], 1), prim::lt(&i[0], 17));
            prim::if_then_else(inside, a.at(&[i[0].clone() - 1]), prim::float_of(F32, 0.0))
        });
        let k = te::reduce_axis(3);
        let pool = te::compute("pool", [16], |i| te::max(padded.at(&[i[0].clone() + k.var()]), [&k]));
        assert_eq!(pattern(&[a, pool]), OpPattern::OutFusable);
    }

    #[test]
    fn a_softmax_is_a_reduction_along_rows() {
        let a = te::placeholder("A", [8, 16], F32);
        let (k, j) = (te::reduce_axis(16), te::reduce_axis(16));
        let top = te::compute("max", [8], |i| te::max(a.at(&[i[0].clone(), k.var()]), [&k]));
        let exp = te::compute("exp", [8, 16], |i| prim::math("exp", a.at(i) - top.at(&i[..1])));
        let sum = te::compute("sum", [8], |i| te::sum(exp.at(&[i[0].clone(), j.var()]), [&j]));
        let out = te::compute("div", [8, 16], |i| prim::div(exp.at(i), sum.at(&i[..1])));
        let kernel = te::create_prim_func(&[a, out]).unwrap();
        assert_eq!(op_pattern(&kernel), OpPattern::Reduce);
        let (across, along) = rows(&kernel).unwrap();
        assert!(across[0].is_int(8) && along[0].is_int(16));
    }

    #[test]
    fn statements_are_opaque_and_rearranged_results_of_reductions_out_fusable() {
        let a = te::placeholder("A", [8, 16], F32);
        let k = te::reduce_axis(16);
        let total = te::compute("sum", [8], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
        let flipped = te::compute("flip", [8], |i| total.at(&[PrimExpr::from(7) - &i[0]]));
        assert_eq!(pattern(&[a.clone(), flipped]), OpPattern::OutFusable);
        let copied = te::extern_stage(
            "copy",
            std::slice::from_ref(&a),
            [("O".to_string(), vec![8.into()], F32)],
            |ins, outs| {
                let i = Var::dim("i");
                relaxide_tir::Stmt::serial(
                    i.clone(),
                    8,
                    relaxide_tir::Stmt::store(&outs[0], [&i], prim::load(&ins[0], [PrimExpr::from(&i), 0.into()])),
                )
            },
        );
        assert_eq!(pattern(&[a, copied[0].clone()]), OpPattern::Opaque);
    }

    #[test]
    fn a_pattern_that_is_given_stays() {
        let a = te::placeholder("A", [8], F32);
        let mut kernel = te::create_prim_func(&[a.clone(), te::compute("B", [8], |i| a.at(i))]).unwrap();
        kernel.attrs = kernel.attrs.with(PATTERN_ATTR, 8);
        let mut module = IRModule::new();
        module.insert("k", Ref::new(kernel));
        let module = run(module);
        assert_eq!(module.get_as::<PrimFunc>("k").unwrap().attrs.int(PATTERN_ATTR), Some(8));
    }
}
