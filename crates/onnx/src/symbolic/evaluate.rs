//! Operators on symbolic values.

use relaxide_ffi::DataType;

use super::{Largest, MAX_ELEMENTS, Ratio, Symbolic};
use crate::node::Node;
use crate::proto::ElementType;
use crate::value::Value;

/// The symbolic result of a node, where its inputs are symbolic and the operator is one of shape arithmetic.
///
/// `None` is no failure: the node is then imported as an ordinary operation.
pub fn evaluate(node: &Node) -> Option<Symbolic> {
    let inputs: Vec<Option<Symbolic>> =
        node.inputs.iter().map(|v| v.as_ref().map(Value::symbolic)).map(Option::flatten).collect();
    let given = node.inputs.iter().filter(|v| v.is_some()).count();
    if given == 0 || inputs.iter().flatten().count() != given {
        return None;
    }
    let input = |i: usize| inputs.get(i).and_then(Option::as_ref);
    let value = evaluated(node, &inputs, input(0)?).filter(is_exact)?;
    let is_symbolic = node.inputs.iter().flatten().any(|v| matches!(v, Value::Symbolic(_)));
    (is_symbolic || is_representable(node, &inputs, &value)).then_some(value)
}

/// Whether an operator on constants gives, in floats, exactly these numbers, and no zero that is negative. Quotients of whole numbers
/// count too: rounded, they lie between the same whole numbers.
fn is_representable(node: &Node, inputs: &[Option<Symbolic>], value: &Symbolic) -> bool {
    let bits: u32 = match (value.dtype.is_float(), value.dtype.bits) {
        (false, _) => return true,
        (true, 64 | 32) => 24,
        (true, 16) => 8,
        (true, _) => return false,
    };
    // Whose partial results may be rounded.
    if node.op().starts_with("Reduce") {
        return false;
    }
    let most = 1i64 << bits;
    let are_whole = |input: &Symbolic| input.literals().is_some();
    let held = |e: &Ratio| {
        let (num, den) = e.parts();
        let (num, den) = (num.as_int()?, den.as_int()?);
        let is_held =
            den.count_ones() == 1 || node.op() == "Div" && bits == 24 && inputs.iter().flatten().all(are_whole);
        (num.abs() <= most && den <= most && is_held).then_some(num)
    };
    let Some(numbers) = value.elements.iter().map(held).collect::<Option<Vec<_>>>() else { return false };
    let has_negative = || {
        let elements = inputs.iter().flatten().flat_map(|input| &input.elements);
        elements.into_iter().any(|e| e.as_float().is_none_or(|v| v < 0.0))
    };
    let may_negate_zero = matches!(node.op(), "Mul" | "Div" | "Neg" | "Ceil" | "Round");
    !(may_negate_zero && numbers.contains(&0) && (node.op() == "Neg" || has_negative()))
}

/// Whether every element is what the program would compute: literals that the type holds. What would wrap around, or leave
/// int64, is left to the program.
fn is_exact(value: &Symbolic) -> bool {
    let kept = |e: &Ratio| match e.as_int() {
        Some(_) => fits(e.clone(), value.dtype).is_some(),
        None => !e.as_whole().is_some_and(|e| relaxide_ir::prim::free_vars(e).is_empty()),
    };
    value.dtype.is_float() || value.dtype.is_bool() || value.elements.iter().all(kept)
}

fn evaluated(node: &Node, inputs: &[Option<Symbolic>], x: &Symbolic) -> Option<Symbolic> {
    let input = |i: usize| inputs.get(i).and_then(Option::as_ref);
    match node.op() {
        "Identity" => Some(x.clone()),
        "Cast" => cast(x, dtype_of(node.int("to").ok()??)?),
        "Add" => zip(x, input(1)?, |a, b| Some(a.add(b))),
        "Sub" => zip(x, input(1)?, |a, b| Some(a.sub(b))),
        "Mul" => zip(x, input(1)?, |a, b| Some(a.mul(b))),
        "Div" if x.dtype.is_float() => zip(x, input(1)?, Ratio::div),
        "Div" => zip(x, input(1)?, |a, b| Some(a.div(b)?.trunc())),
        // With `fmod` the sign is that of the first, as in C.
        "Mod" if !x.dtype.is_float() && node.flag("fmod", false).ok()? => {
            zip(x, input(1)?, |a, b| Some(a.sub(&a.div(b)?.trunc().mul(b))))
        }
        "Mod" if !x.dtype.is_float() => zip(x, input(1)?, |a, b| Some(a.sub(&a.div(b)?.floor().mul(b)))),
        "Max" | "Min" => {
            let largest = if node.op() == "Max" { Largest::Yes } else { Largest::No };
            inputs.iter().flatten().skip(1).try_fold(x.clone(), |m, y| zip(&m, y, |a, b| a.extreme(b, largest)))
        }
        "Clip" => clip(node, inputs),
        "Abs" => zip(x, &map(x, |e| Some(e.neg()))?, |a, b| a.extreme(b, Largest::Yes)),
        "Equal" => compare(x, input(1)?, Ratio::equals),
        "Less" => compare(x, input(1)?, Ratio::less),
        "Greater" => compare(input(1)?, x, Ratio::less),
        "LessOrEqual" => compare(input(1)?, x, |a, b| a.less(b).map(|less| !less)),
        "GreaterOrEqual" => compare(x, input(1)?, |a, b| a.less(b).map(|less| !less)),
        "And" => compare(x, input(1)?, |a, b| Some(a.as_int()? != 0 && b.as_int()? != 0)),
        "Or" => compare(x, input(1)?, |a, b| Some(a.as_int()? != 0 || b.as_int()? != 0)),
        "Not" => map(x, |e| Some(Ratio::int(i64::from(e.as_int()? == 0)))),
        "Where" => choose(x, input(1)?, input(2)?),
        "Neg" => map(x, |e| Some(e.neg())),
        "Floor" => map(x, |e| Some(e.floor())),
        "Ceil" => map(x, |e| Some(e.ceil())),
        "Concat" => concat(&inputs.iter().flatten().collect::<Vec<_>>(), node.int("axis").ok()??),
        "Gather" => gather(x, input(1)?, node.int("axis").ok()?.unwrap_or(0)),
        "Slice" => slice(node, inputs),
        "Transpose" => transpose(node, x),
        "Squeeze" => squeeze(x, axes(node, input(1))),
        "Unsqueeze" => unsqueeze(x, &axes(node, input(1))?),
        "Reshape" => reshape(x, &input(1)?.literals()?),
        "Expand" => expand(x, &input(1)?.literals()?),
        "ReduceProd" => reduce(node, x, input(1), Ratio::int(1), Ratio::mul),
        "ReduceSum" => reduce(node, x, input(1), Ratio::int(0), Ratio::add),
        "Range" => range(x, input(1)?, input(2)?),
        _ => None,
    }
}

fn dtype_of(element: i64) -> Option<DataType> {
    let element = ElementType::try_from(i32::try_from(element).ok()?).ok()?;
    crate::constant::dtype(element)
}

fn cast(x: &Symbolic, dtype: DataType) -> Option<Symbolic> {
    let elements = if dtype.is_bool() {
        x.elements.iter().map(|e| e.as_float().map(|v| Ratio::int(i64::from(v != 0.0)))).collect::<Option<_>>()?
    } else if dtype.is_float() {
        x.elements.clone()
    } else {
        x.elements.iter().map(|e| fits(e.trunc(), dtype)).collect::<Option<_>>()?
    };
    Some(Symbolic { dtype, shape: x.shape.clone(), elements })
}

/// Bounds are inputs, or attributes before opset 11.
fn clip(node: &Node, inputs: &[Option<Symbolic>]) -> Option<Symbolic> {
    if node.float("min").ok()?.is_some() || node.float("max").ok()?.is_some() {
        return None;
    }
    let bounds = [(1, Largest::Yes), (2, Largest::No)];
    bounds.into_iter().try_fold(inputs.first()?.clone()?, |x, (i, largest)| {
        match inputs.get(i).and_then(Option::as_ref) {
            Some(bound) => zip(&x, bound, |a, b| a.extreme(b, largest)),
            None => Some(x),
        }
    })
}

/// A literal must lie in the type; a dimension is taken to.
fn fits(element: Ratio, dtype: DataType) -> Option<Ratio> {
    let Some(value) = element.as_int() else { return dtype.is_int().then_some(element) };
    let inside = match (dtype.is_int(), dtype.bits) {
        (true, 64) => true,
        (true, bits) => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value),
        (false, 64) => value >= 0,
        (false, bits) => (0..1i64 << bits).contains(&value),
    };
    inside.then_some(element)
}

fn map(x: &Symbolic, f: impl Fn(&Ratio) -> Option<Ratio>) -> Option<Symbolic> {
    Some(Symbolic { elements: x.elements.iter().map(f).collect::<Option<_>>()?, ..x.clone() })
}

/// Element by element, the shorter shape repeated as in any broadcast.
fn zip(a: &Symbolic, b: &Symbolic, f: impl Fn(&Ratio, &Ratio) -> Option<Ratio>) -> Option<Symbolic> {
    let shape = broadcast_shape(&a.shape, &b.shape)?;
    let (a, b) = (expand_to(a, &shape)?, expand_to(b, &shape)?);
    let elements = a.elements.iter().zip(&b.elements).map(|(a, b)| f(a, b)).collect::<Option<_>>()?;
    Some(Symbolic { dtype: a.dtype, shape, elements })
}

fn compare(a: &Symbolic, b: &Symbolic, f: impl Fn(&Ratio, &Ratio) -> Option<bool>) -> Option<Symbolic> {
    let result = zip(a, b, |a, b| f(a, b).map(|v| Ratio::int(i64::from(v))))?;
    Some(Symbolic { dtype: DataType::bool(), ..result })
}

fn choose(condition: &Symbolic, a: &Symbolic, b: &Symbolic) -> Option<Symbolic> {
    let shape = broadcast_shape(&broadcast_shape(&condition.shape, &a.shape)?, &b.shape)?;
    let (c, a, b) = (expand_to(condition, &shape)?, expand_to(a, &shape)?, expand_to(b, &shape)?);
    let pick =
        |i: usize| Some(if c.elements[i].as_int()? != 0 { a.elements[i].clone() } else { b.elements[i].clone() });
    let elements = (0..c.elements.len()).map(pick).collect::<Option<_>>()?;
    Some(Symbolic { dtype: a.dtype, shape, elements })
}

fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let dim = |s: &[usize], i: usize| if i + s.len() >= rank { s[i + s.len() - rank] } else { 1 };
    let shape: Vec<usize> = (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (1, n) | (n, 1) => Some(n),
            (n, m) => (n == m).then_some(n),
        })
        .collect::<Option<_>>()?;
    (shape.iter().product::<usize>() <= MAX_ELEMENTS).then_some(shape)
}

/// Repeats a value to a shape that it broadcasts to.
fn expand_to(x: &Symbolic, shape: &[usize]) -> Option<Symbolic> {
    let count: usize = shape.iter().product();
    let lead = shape.len().checked_sub(x.shape.len())?;
    let elements = (0..count)
        .map(|flat| {
            let (mut rest, mut index, mut stride) = (flat, 0, 1);
            for axis in (0..shape.len()).rev() {
                let position = rest % shape[axis];
                rest /= shape[axis];
                if let Some(&own) = axis.checked_sub(lead).and_then(|a| x.shape.get(a)) {
                    index += if own == 1 { 0 } else { position * stride };
                    stride *= own;
                }
            }
            x.elements.get(index).cloned()
        })
        .collect::<Option<_>>()?;
    Some(Symbolic { dtype: x.dtype, shape: shape.to_vec(), elements })
}

/// Only vectors are joined.
fn concat(parts: &[&Symbolic], axis: i64) -> Option<Symbolic> {
    let first = parts.first()?;
    if parts.iter().any(|p| p.shape.len() != 1) || !(axis == 0 || axis == -1) {
        return None;
    }
    let elements: Vec<Ratio> = parts.iter().flat_map(|p| p.elements.iter().cloned()).collect();
    (elements.len() <= MAX_ELEMENTS).then(|| Symbolic { dtype: first.dtype, shape: vec![elements.len()], elements })
}

/// Only vectors are gathered from.
fn gather(x: &Symbolic, indices: &Symbolic, axis: i64) -> Option<Symbolic> {
    if x.shape.len() != 1 || !(axis == 0 || axis == -1) {
        return None;
    }
    let n = x.elements.len() as i64;
    let pick = |i: i64| x.elements.get(usize::try_from(if i < 0 { i + n } else { i }).ok()?).cloned();
    let elements = indices.literals()?.into_iter().map(pick).collect::<Option<_>>()?;
    Some(Symbolic { dtype: x.dtype, shape: indices.shape.clone(), elements })
}

/// A slice along some axes.
fn slice(node: &Node, inputs: &[Option<Symbolic>]) -> Option<Symbolic> {
    let x = inputs.first()?.as_ref()?;
    let bound = |i: usize, name: &str| -> Option<Vec<i64>> {
        match inputs.get(i).and_then(Option::as_ref) {
            Some(value) => value.literals(),
            None => node.ints(name).ok()?,
        }
    };
    let (starts, ends) = (bound(1, "starts")?, bound(2, "ends")?);
    let axes = bound(3, "axes").unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = bound(4, "steps").unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|n| *n != starts.len()) {
        return None;
    }
    let mut places: Vec<Vec<usize>> = x.shape.iter().map(|&n| (0..n).collect()).collect();
    for (i, &axis) in axes.iter().enumerate() {
        let axis = crate::dims::axis(axis, x.shape.len())?;
        places[axis] = sliced(x.shape[axis] as i64, starts[i], ends[i], steps[i])?;
    }
    let shape = places.iter().map(Vec::len).collect();
    gathered(x, shape, |index| index.iter().zip(&places).map(|(&i, places)| places.get(i).copied()).collect())
}

/// The places of a slice of an axis.
fn sliced(n: i64, start: i64, end: i64, step: i64) -> Option<Vec<usize>> {
    if step == 0 {
        return None;
    }
    let wrap = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let (start, end) = (wrap(start).clamp(0, n.max(1) - i64::from(step < 0)), wrap(end).clamp(low, high));
    let mut places = Vec::new();
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        places.push(usize::try_from(at).ok().filter(|&at| (at as i64) < n)?);
        at = at.saturating_add(step);
    }
    Some(places)
}

/// The elements at places that are computed from those in the result.
fn gathered(x: &Symbolic, shape: Vec<usize>, place: impl Fn(&[usize]) -> Option<Vec<usize>>) -> Option<Symbolic> {
    let count: usize = shape.iter().product();
    let mut elements = Vec::with_capacity(count);
    for flat in 0..count {
        let mut rest = flat;
        let mut index = vec![0; shape.len()];
        for (i, n) in shape.iter().enumerate().rev() {
            index[i] = rest % n;
            rest /= n;
        }
        let from = place(&index)?;
        let at = from.iter().zip(&x.shape).fold(0, |at, (i, n)| at * n + i);
        elements.push(x.elements.get(at)?.clone());
    }
    Some(Symbolic { dtype: x.dtype, shape, elements })
}

fn transpose(node: &Node, x: &Symbolic) -> Option<Symbolic> {
    let rank = x.shape.len();
    let perm = match node.ints("perm").ok()? {
        Some(perm) => perm.into_iter().map(|a| crate::dims::axis(a, rank)).collect::<Option<Vec<_>>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() {
        return None;
    }
    let shape = perm.iter().map(|&a| x.shape[a]).collect();
    gathered(x, shape, |index| {
        let mut from = vec![0; rank];
        perm.iter().zip(index).for_each(|(&a, &i)| from[a] = i);
        Some(from)
    })
}

/// The axes of an operator that takes them as an attribute or, since opset 13, as an input.
fn axes(node: &Node, input: Option<&Symbolic>) -> Option<Vec<i64>> {
    match input {
        Some(value) => value.literals(),
        None => node.ints("axes").ok()?,
    }
}

fn squeeze(x: &Symbolic, axes: Option<Vec<i64>>) -> Option<Symbolic> {
    let rank = x.shape.len() as i64;
    let gone = |i: usize| match &axes {
        Some(axes) => axes.iter().any(|&a| (if a < 0 { a + rank } else { a }) == i as i64),
        None => x.shape[i] == 1,
    };
    let kept = (0..x.shape.len()).filter(|&i| !gone(i)).map(|i| x.shape[i]).collect();
    x.reshaped(kept)
}

fn unsqueeze(x: &Symbolic, axes: &[i64]) -> Option<Symbolic> {
    let rank = (x.shape.len() + axes.len()) as i64;
    let mut kept = x.shape.iter();
    let new = |i: i64| axes.iter().any(|&a| (if a < 0 { a + rank } else { a }) == i);
    let shape = (0..rank).map(|i| if new(i) { Some(1) } else { kept.next().copied() }).collect::<Option<_>>()?;
    x.reshaped(shape)
}

fn reshape(x: &Symbolic, target: &[i64]) -> Option<Symbolic> {
    let copied = |i: usize, d: i64| if d == 0 { x.shape.get(i).map(|&d| d as i64) } else { Some(d) };
    let dims: Vec<i64> = target.iter().enumerate().map(|(i, &d)| copied(i, d)).collect::<Option<_>>()?;
    let known = dims.iter().filter(|&&d| d >= 0).try_fold(1i64, |n, &d| n.checked_mul(d))?;
    let shape = dims
        .iter()
        .map(|&d| if d < 0 { (x.elements.len() as i64).checked_div(known) } else { Some(d) })
        .map(|d| usize::try_from(d?).ok())
        .collect::<Option<Vec<_>>>()?;
    x.reshaped(shape)
}

fn expand(x: &Symbolic, target: &[i64]) -> Option<Symbolic> {
    let target: Vec<usize> = target.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
    expand_to(x, &broadcast_shape(&x.shape, &target)?)
}

/// Only over the whole of a vector.
fn reduce(
    node: &Node,
    x: &Symbolic,
    axes_input: Option<&Symbolic>,
    start: Ratio,
    f: impl Fn(&Ratio, &Ratio) -> Ratio,
) -> Option<Symbolic> {
    let whole = axes(node, axes_input).is_none_or(|axes| axes == [0] || axes == [-1]);
    if x.shape.len() != 1 || !whole {
        return None;
    }
    let keep = node.int("keepdims").ok()?.unwrap_or(1) != 0;
    let total = x.elements.iter().fold(start, |total, e| f(&total, e));
    Some(Symbolic { dtype: x.dtype, shape: if keep { vec![1] } else { Vec::new() }, elements: vec![total] })
}

fn range(start: &Symbolic, limit: &Symbolic, delta: &Symbolic) -> Option<Symbolic> {
    let literal = |x: &Symbolic| (x.elements.len() == 1).then(|| x.elements[0].as_int()).flatten();
    let (start_at, limit, delta) = (literal(start)?, literal(limit)?, literal(delta)?);
    let count = if delta == 0 {
        return None;
    } else {
        limit.checked_sub(start_at)?.checked_add(delta - delta.signum())? / delta
    };
    let count = usize::try_from(count.max(0)).ok().filter(|&n| n <= MAX_ELEMENTS)?;
    let elements = (0..count as i64).map(|i| Ratio::int(start_at + i * delta)).collect();
    Some(Symbolic { dtype: start.dtype, shape: vec![count], elements })
}
