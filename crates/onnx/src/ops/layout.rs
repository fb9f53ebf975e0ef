//! Operators that put elements elsewhere: transposing, joining, splitting, repeating.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::computed::{self, Ints};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

/// An axis attribute, counted from the front.
fn axis_of(axis: i64, rank: usize) -> Result<usize, NodeError> {
    dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))
}

/// `Transpose`; without `perm` all axes are reversed.
pub fn transpose(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let axes: Vec<usize> = match node.ints("perm")? {
        Some(perm) => perm.into_iter().map(|a| axis_of(a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() {
        return Err(NodeError::invalid(format!("`perm` is {axes:?}, which is no order of {rank} axes")));
    }
    one(scope.transpose(x, &axes)?)
}

/// `Concat`: all axes but one must agree.
pub fn concat(scope: &mut Scope, node: &Node) -> Outputs {
    let mut parts = node.inputs.iter().flatten().map(|v| scope.tensor(v)).collect::<Result<Vec<_>, _>>()?;
    let rank = match parts.first() {
        Some(first) => scope.dims(first)?.len(),
        None => return Err(NodeError::invalid("there are no inputs")),
    };
    let axis = node.int("axis")?.ok_or_else(|| NodeError::invalid("attribute `axis` is missing"))?;
    let axis = axis_of(axis, rank)?;
    if parts.len() == 1 {
        return one(parts.remove(0));
    }
    for other in (0..rank).filter(|&a| a != axis) {
        let axes = vec![other; parts.len()];
        scope.agree_on(&mut parts, &axes)?;
    }
    one(scope.op("concat", [Expr::tuple(parts)], Attrs::new().with("axis", axis as i64))?)
}

/// `Split` into given sizes or equal parts.
pub fn split(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let axis = axis_of(node.int_or("axis", 0)?, shape.len())?;
    let count = node.proto.output.len();
    let sizes = match Ints::attr_or_input_of_length(scope, node, "split", 1, count)? {
        Some(given) => match given.literals() {
            Some(sizes) => sizes,
            None if given.count() == count => {
                let parts = computed::split(scope, x, axis, given)?;
                return Ok(parts.into_iter().map(Value::Computed).collect());
            }
            None => return Err(NodeError::invalid(format!("{} sizes are given for {count} outputs", given.count()))),
        },
        None => match shape[axis].as_int() {
            Some(size) => equal_parts(size, count)?,
            None => return equal_open_parts(scope, x, axis, &shape[axis], count),
        },
    };
    if sizes.len() != count || sizes.iter().any(|s| *s < 0) {
        return Err(NodeError::invalid(format!("{sizes:?} are no sizes for {count} outputs")));
    }
    let mut wanted = shape.clone();
    wanted[axis] = prim::int(sizes.iter().sum());
    let x = scope.agree(x, &wanted)?;
    if count == 1 {
        return one(x);
    }
    let ends: Vec<i64> = sizes
        .iter()
        .scan(0, |end, size| {
            *end += size;
            Some(*end)
        })
        .take(count - 1)
        .collect();
    let attrs = Attrs::new().with("indices_or_sections", ends).with("axis", axis as i64);
    let parts = scope.op("split", [x], attrs)?;
    (0..count).map(|i| scope.emit(Expr::field(parts.clone(), i)).map(Value::Computed)).collect()
}

/// The sizes of `count` parts of a dimension; the last may be smaller.
fn equal_parts(n: i64, count: usize) -> Result<Vec<i64>, NodeError> {
    let parts = count as i64;
    let size = (n + parts - 1) / parts.max(1);
    let sizes: Vec<i64> = (0..parts).map(|i| (n - size * i).clamp(0, size)).collect();
    if sizes.is_empty() {
        return Err(NodeError::invalid("there are no outputs"));
    }
    Ok(sizes)
}

/// The same of a dimension that is not fixed.
fn equal_open_parts(scope: &mut Scope, x: Expr, axis: usize, n: &PrimExpr, count: usize) -> Outputs {
    let parts = (count as i64).max(1);
    let size = dims::floor_div(&(n + (parts - 1)), &prim::int(parts));
    let part = |i: i64| dims::simplify(&prim::max(prim::min(n - &size * i, &size), 0));
    let sizes: Vec<PrimExpr> = (0..parts).map(part).collect();
    Ok(computed::parts(scope, x, axis, &sizes)?.into_iter().map(Value::Computed).collect())
}

/// `Tile`: the whole tensor again and again.
pub fn tile(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let given = Ints::of_length(scope, node.input(1)?, rank)?;
    let Some(repeats) = given.literals() else { return one(computed::tiled(scope, x, given)?) };
    if repeats.len() != rank || repeats.iter().any(|r| *r < 0) {
        return Err(NodeError::invalid(format!("{repeats:?} are no repeats for {rank} axes")));
    }
    if repeats.iter().all(|r| *r == 1) {
        return one(x);
    }
    one(scope.op("tile", [x], Attrs::new().with("repeats", repeats))?)
}

/// The block size and dimensions of an image.
fn blocks(scope: &Scope, x: &Expr, node: &Node) -> Result<(i64, [PrimExpr; 4]), NodeError> {
    let size = node.int("blocksize")?.filter(|b| (1..=1 << 20).contains(b));
    let size = size.ok_or_else(|| NodeError::invalid("`blocksize` must be a positive number"))?;
    let dims = scope.dims(x)?;
    let rank = dims.len();
    let dims = dims.try_into().map_err(|_| NodeError::invalid(format!("the input has {rank} axes, not 4")))?;
    Ok((size, dims))
}

/// `DepthToSpace`: channels become blocks of pixels.
pub fn depth_to_space(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (b, [n, c, h, w]) = blocks(scope, &x, node)?;
    let depth = dims::floor_div(&c, &prim::int(b * b));
    let block = || prim::int(b);
    let (split, order): (Vec<PrimExpr>, [usize; 6]) = match node.str_or("mode", "DCR")? {
        "DCR" => (vec![n.clone(), block(), block(), depth.clone(), h.clone(), w.clone()], [0, 3, 4, 1, 5, 2]),
        "CRD" => (vec![n.clone(), depth.clone(), block(), block(), h.clone(), w.clone()], [0, 1, 4, 2, 5, 3]),
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    };
    let split = scope.reshape(x, split)?;
    let moved = scope.transpose(split, &order)?;
    one(scope.reshape(moved, vec![n, depth, h * b, w * b])?)
}

/// `SpaceToDepth`: blocks of pixels become channels.
pub fn space_to_depth(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (b, [n, c, h, w]) = blocks(scope, &x, node)?;
    let size = prim::int(b);
    let (rows, columns) = (dims::floor_div(&h, &size), dims::floor_div(&w, &size));
    let split = vec![n.clone(), c.clone(), rows.clone(), size.clone(), columns.clone(), size];
    let split = scope.reshape(x, split)?;
    let order = match node.str_or("mode", "DCR")? {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    };
    let moved = scope.transpose(split, &order)?;
    one(scope.reshape(moved, vec![n, c * (b * b), rows, columns])?)
}
