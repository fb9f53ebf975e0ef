//! Slicing.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::computed::{self, Bounds, Ints};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::{Node, depends_on_data};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// One axis of a slice.
struct AxisSlice {
    axis: usize,
    start: PrimExpr,
    end: PrimExpr,
    step: i64,
}

/// `Slice`: bounds are attributes up to opset 9 and inputs after; they may depend on dimensions.
pub fn slice(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    if let Some(bounds) = computed_bounds(scope, node)? {
        return one(computed::sliced(scope, x, bounds)?);
    }
    let starts = bounds(node, "starts", 1)?.ok_or_else(|| NodeError::invalid("`starts` is missing"))?;
    let ends = bounds(node, "ends", 2)?.ok_or_else(|| NodeError::invalid("`ends` is missing"))?;
    let axes = node.ints_attr_or_input("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = node.known_ints(4, "`steps`")?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|n| *n != starts.len()) {
        return Err(NodeError::invalid("`starts`, `ends`, `axes` and `steps` have different lengths"));
    }
    let mut parts = Vec::new();
    let mut result = x;
    for i in 0..starts.len() {
        let rank = shape.len();
        let axis = dims::axis(axes[i], rank)
            .ok_or_else(|| NodeError::invalid(format!("axis {} is not one of {rank} axes", axes[i])))?;
        match steps[i] {
            0 => return Err(NodeError::invalid("a step is 0")),
            step @ 1.. => {
                let (start, end) =
                    (dims::slice_bound(&starts[i], &shape[axis]), dims::slice_bound(&ends[i], &shape[axis]));
                if !(start.is_int(0) && dims::equal(&end, &shape[axis]) && step == 1) {
                    parts.push(AxisSlice { axis, start, end, step });
                }
            }
            step => result = backwards(scope, result, axis, &starts[i], &ends[i], step)?,
        }
    }
    if parts.is_empty() {
        return one(result);
    }
    one(forwards(scope, result, &parts)?)
}

/// The bounds, where the program computes some of them, or a dimension that is not fixed is gone through backwards.
fn computed_bounds(scope: &mut Scope, node: &Node) -> Result<Option<Bounds>> {
    if node.ints("starts")?.is_some() {
        return Ok(None);
    }
    let missing = |name: &str| NodeError::invalid(format!("`{name}` is missing"));
    let count = count_of_axes(scope, node)?;
    let mut given = |i: usize| node.optional(i).map(|value| Ints::of_length(scope, value, count)).transpose();
    let starts = given(1)?.ok_or_else(|| missing("starts"))?;
    let ends = given(2)?.ok_or_else(|| missing("ends"))?;
    let count = starts.count();
    let axes = given(3)?.unwrap_or_else(|| Ints::fixed(0..count as i64));
    let steps = given(4)?.unwrap_or_else(|| Ints::fixed(vec![1; count]));
    let is_known = |list: &Ints| matches!(list, Ints::Known(_));
    let backwards = |steps: &Ints| steps.literals().is_none_or(|steps| steps.iter().any(|s| *s < 0));
    let fixed = scope.value_dims(node.input(0)?)?.iter().all(|d| d.as_int().is_some());
    let literal = starts.literals().is_some() && ends.literals().is_some() && axes.literals().is_some();
    let plain = is_known(&starts) && is_known(&ends) && axes.literals().is_some() && steps.literals().is_some();
    if plain && (!backwards(&steps) || fixed && literal) {
        return Ok(None);
    }
    Ok(Some(Bounds { starts, ends, axes, steps }))
}

/// How many axes are sliced: as many as any list of bounds is known to have, else one.
fn count_of_axes(scope: &mut Scope, node: &Node) -> Result<usize> {
    for value in (1..5).filter_map(|i| node.optional(i)) {
        let known = match &scope.value_dims(value)?[..] {
            [] => Some(1),
            [n] => n.as_int().and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        if let Some(count) = known {
            return Ok(count);
        }
    }
    Ok(1)
}

fn bounds(node: &Node, name: &str, i: usize) -> Result<Option<Vec<PrimExpr>>> {
    if let Some(list) = node.ints(name)? {
        return Ok(Some(list.into_iter().map(prim::int).collect()));
    }
    match node.optional(i) {
        None => Ok(None),
        Some(value) => match value.symbolic().and_then(|s| s.ints()) {
            Some(list) => Ok(Some(list)),
            None => Err(depends_on_data(&format!("`{name}`"))),
        },
    }
}

/// Steps ahead: one strided slice over all axes.
fn forwards(scope: &mut Scope, x: Expr, parts: &[AxisSlice]) -> Result<Expr> {
    let tuple =
        |f: &dyn Fn(&AxisSlice) -> PrimExpr| Expr::tuple(parts.iter().map(|p| Expr::prim(f(p))).collect::<Vec<_>>());
    let args = [
        x,
        tuple(&|p| prim::int(p.axis as i64)),
        tuple(&|p| p.start.clone()),
        tuple(&|p| p.end.clone()),
        tuple(&|p| prim::int(p.step)),
    ];
    // Where the end may lie in front of the start, nothing is left rather than less than nothing.
    let ordered = parts.iter().all(|p| dims::non_negative(&(&p.end - &p.start)));
    scope.op("strided_slice", args, Attrs::new().with("assume_inbound", ordered))
}

/// Steps back: elements are taken by their positions, which must be known.
fn backwards(scope: &mut Scope, x: Expr, axis: usize, start: &PrimExpr, end: &PrimExpr, step: i64) -> Result<Expr> {
    let dim = scope.dims(&x)?[axis].as_int();
    let (Some(n), Some(start), Some(end)) = (dim, start.as_int(), end.as_int()) else {
        return Err(NodeError::unsupported("negative steps over a dimension that is not fixed are not supported"));
    };
    let wrap = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
    // A start in front of the axis is its first element, if there is one.
    let (first, last) = (wrap(start).clamp((n - 1).min(0), n - 1), wrap(end).clamp(-1, n - 1));
    let mut indices = Vec::new();
    let mut at = first;
    while at > last {
        indices.push(at as f64);
        at = at.saturating_add(step);
    }
    let count = indices.len() as i64;
    let indices = scope.constant(&indices, &[count], relaxide_ffi::DataType::int(64))?;
    scope.op("take", [x, indices], Attrs::new().with("axis", axis as i64))
}
