//! Slices whose bounds are computed.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::reshape::apart;
use super::{Arg, Args, Ints, ShapePlan, all, clamp, from_front, of_axis, reads};
use crate::dims;
use crate::error::NodeError;
use crate::scope::Scope;
use relaxide_frontend::Check;

/// What `Slice` was given.
pub struct Bounds {
    /// First indices.
    pub starts: Ints,
    /// Indices behind the last ones.
    pub ends: Ints,
    /// Axes; the first ones where none are given.
    pub axes: Ints,
    /// Steps; 1 where none are given.
    pub steps: Ints,
}

struct Read {
    starts: Arg,
    ends: Arg,
    axes: Arg,
    steps: Arg,
}

/// Where a slice begins along an axis, its step, and how many elements it has.
struct ComputedAxisSlice {
    start: PrimExpr,
    step: PrimExpr,
    count: PrimExpr,
}

/// A step that is said in the model is no longer than this, which leaves room to count with it.
const MOST_STEP: i64 = 1 << 40;

impl Read {
    fn part(&self, inputs: &[te::Tensor], axis: usize, shape: &[PrimExpr]) -> ComputedAxisSlice {
        let size = &shape[axis];
        let axes = self.axes.all(inputs);
        let given = |arg: &Arg, default: PrimExpr| of_axis(&axes, &arg.all(inputs), axis, shape.len(), default);
        let (start, step) = (given(&self.starts, prim::int(0)), given(&self.steps, prim::int(1)));
        // A step beyond the axis has one element, however long it is.
        let longest = prim::max(size.clone(), 1);
        let step = match step.as_int() {
            Some(step) => prim::int(step.clamp(-MOST_STEP, MOST_STEP)),
            None => clamp(step, prim::int(0) - &longest, longest),
        };
        // The default end is behind the axis for either direction: such axes have a step of 1.
        let end = given(&self.ends, size.clone());
        let (start, end) = (from_front(&start, size.clone()), from_front(&end, size.clone()));
        let ahead = prim::gt(&step, 0);
        // Going back, a start in front of the axis is its first element, if there is one.
        let first = clamp(start.clone(), prim::min(size - 1, 0), size - 1);
        let start = prim::select(ahead.clone(), clamp(start, 0, size.clone()), first);
        let end = prim::select(ahead.clone(), clamp(end.clone(), 0, size.clone()), clamp(end, -1, size - 1));
        let (span, stride) = (
            prim::select(ahead.clone(), &end - &start, &start - &end),
            prim::max(prim::select(ahead, step.clone(), prim::int(0) - &step), 1),
        );
        let count = prim::max(prim::floordiv(span + (&stride - 1), stride), 0);
        let start = if reads(&start) { start } else { dims::simplify(&start) };
        ComputedAxisSlice { start, step, count }
    }
}

/// A slice by bounds that are read when the program runs.
pub fn sliced(scope: &mut Scope, x: Expr, bounds: Bounds) -> Result<Expr, NodeError> {
    let shape = scope.dims(&x)?;
    let counts = [bounds.starts.count(), bounds.ends.count(), bounds.axes.count(), bounds.steps.count()];
    if counts.iter().any(|n| *n != counts[0]) {
        return Err(NodeError::invalid("`starts`, `ends`, `axes` and `steps` have different lengths"));
    }
    let mut args = Args::default();
    let read = Read {
        starts: args.ints(bounds.starts),
        ends: args.ints(bounds.ends),
        axes: args.ints(bounds.axes),
        steps: args.ints(bounds.steps),
    };
    let rank = shape.len();
    let dims = ShapePlan::bind(scope, "slice", &args, |inputs| {
        let (axes, steps) = (read.axes.all(inputs), read.steps.all(inputs));
        let ones = vec![prim::int(1); axes.len()];
        let named: Vec<PrimExpr> = (0..rank).map(|i| of_axis(&axes, &ones, i, rank, prim::int(0))).collect();
        let moving = Check::new(all(steps.iter().map(|step| prim::ne(step, 0))), "a step must not be 0");
        ShapePlan {
            dims: (0..rank).map(|axis| read.part(inputs, axis, &shape).count).collect(),
            checks: vec![moving, apart(&named, &axes)],
        }
    })?;
    let mut inputs = args.inputs();
    inputs.push(x);
    scope.te("slice", inputs, |inputs| {
        let data = &inputs[inputs.len() - 1];
        let parts: Vec<ComputedAxisSlice> = (0..shape.len()).map(|axis| read.part(inputs, axis, &shape)).collect();
        vec![te::compute("slice", &dims, |at| {
            let index: Vec<PrimExpr> = at.iter().zip(&parts).map(|(i, p)| &p.start + i * &p.step).collect();
            data.at(&index)
        })]
    })
}
