//! Arguments that the program computes: shapes, bounds, axes and counts that no one knows when the model is imported.
//!
//! The rank of a result is known from the length of such an argument; its dimensions are not. A small kernel computes them
//! from the argument and from the input's dimensions, the program makes a shape of them, and symbolic variables are bound to
//! it ([`ShapePlan::bind`]). The kernel that does the work reads the same arguments for its indices:
//!
//! ```text
//! y = Slice(x, starts, ends)     lv0: R.Tensor((1,), "int64") = slice_dims(starts, ends)
//!                                lv1: R.Shape(["d0"]) = R.match_cast(R.tensor_to_shape(lv0), …)
//!                                lv2: R.Tensor(("d0", 4), "float32") = slice(x, starts, ends)
//! ```
//!
//! **Invariant.** Bound variables count elements and are never negative: the analyses rely on it. So what may be negative
//! (a bound, an axis, a -1) is read by kernels and never bound. What a model must not say (sizes that do not add up) is a
//! [`Check`], for which the shape has further elements.
//!
//! **Left out.** Arguments whose own length is unknown, where the rank of the result would depend on it.

mod pad;
mod reduce;
mod reshape;
mod slice;

pub use pad::padded;
pub use reduce::{Axes, Resolved};
pub use reshape::{expanded, parts, ranged, reshaped, split, squeezed, tiled, unsqueezed};
pub use slice::{Bounds, sliced};

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::symbolic::MAX_ELEMENTS;
use crate::value::Value;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// A list of integers that is an argument of an operator.
#[derive(Clone)]
pub enum Ints {
    /// Its elements are known at import, as expressions over dimensions.
    Known(Vec<PrimExpr>),
    /// The program computes it: an int64 tensor of one axis, and its length.
    Computed(Expr, usize),
}

impl Ints {
    /// What an input holds; a tensor without axes counts as a list of one.
    pub fn of(scope: &mut Scope, value: &Value) -> Result<Ints> {
        if let Some(list) = value.symbolic().and_then(|s| s.ints()) {
            return Ok(Ints::Known(list));
        }
        let dims = scope.value_dims(value)?;
        let count = match &dims[..] {
            [] => Some(1),
            [n] => n.as_int().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_ELEMENTS),
            _ => {
                return Err(NodeError::invalid(format!("an argument has {} axes, where a list is needed", dims.len())));
            }
        };
        let count = count.ok_or_else(|| {
            NodeError::unsupported("the length of an argument that is computed from data is not known")
                .help("give that input a fixed shape (`shape_dict`), or simplify the model (`onnxsim`)")
        })?;
        let tensor = scope.tensor(value)?;
        let tensor = scope.cast(tensor, DataType::int(64))?;
        Ok(Ints::Computed(scope.reshape(tensor, vec![prim::int(count as i64)])?, count))
    }

    /// What an input holds; where its length follows from data, it is taken to be `count`, which is checked when the program runs.
    pub fn of_length(scope: &mut Scope, value: &Value, count: usize) -> Result<Ints> {
        let open = value.symbolic().is_none_or(|s| s.ints().is_none());
        match &scope.value_dims(value)?[..] {
            [n] if open && n.as_int().is_none() => {
                let tensor = scope.tensor(value)?;
                let tensor = scope.cast(tensor, DataType::int(64))?;
                Ok(Ints::Computed(scope.agree(tensor, &[prim::int(count as i64)])?, count))
            }
            _ => Ints::of(scope, value),
        }
    }

    /// An input that may be left out.
    pub fn input(scope: &mut Scope, node: &Node, i: usize) -> Result<Option<Ints>> {
        node.optional(i).map(|value| Ints::of(scope, value)).transpose()
    }

    /// A list that is an attribute in older versions of an operator and an input in newer ones.
    pub fn attr_or_input(scope: &mut Scope, node: &Node, name: &str, i: usize) -> Result<Option<Ints>> {
        match node.ints(name)? {
            Some(list) => Ok(Some(Ints::fixed(list))),
            None => Ints::input(scope, node, i),
        }
    }

    /// The same of a list that has so many elements.
    pub fn attr_or_input_of_length(
        scope: &mut Scope,
        node: &Node,
        name: &str,
        i: usize,
        count: usize,
    ) -> Result<Option<Ints>> {
        match node.ints(name)? {
            Some(list) => Ok(Some(Ints::fixed(list))),
            None => node.optional(i).map(|value| Ints::of_length(scope, value, count)).transpose(),
        }
    }

    /// A list of literals.
    pub fn fixed(list: impl IntoIterator<Item = i64>) -> Ints {
        Ints::Known(list.into_iter().map(prim::int).collect())
    }

    /// How long it is.
    pub fn count(&self) -> usize {
        match self {
            Ints::Known(list) => list.len(),
            Ints::Computed(_, count) => *count,
        }
    }

    /// The elements, where all are literals.
    pub fn literals(&self) -> Option<Vec<i64>> {
        match self {
            Ints::Known(list) => list.iter().map(PrimExpr::as_int).collect(),
            Ints::Computed(..) => None,
        }
    }
}

/// The arguments that kernels read.
#[derive(Default)]
pub struct Args {
    tensors: Vec<Expr>,
}

/// One argument, as a kernel sees it.
pub enum Arg {
    /// Expressions.
    Known(Vec<PrimExpr>),
    /// Elements of the kernel's `i`th input, of which there are so many.
    Input(usize, usize),
}

impl Args {
    /// Adds a list.
    pub fn ints(&mut self, list: Ints) -> Arg {
        match list {
            Ints::Known(list) => Arg::Known(list),
            Ints::Computed(tensor, count) => Arg::Input(self.tensor(tensor), count),
        }
    }

    /// Adds a tensor; returns its place among the inputs.
    pub fn tensor(&mut self, tensor: Expr) -> usize {
        self.tensors.push(tensor);
        self.tensors.len() - 1
    }

    /// The inputs of a kernel.
    pub fn inputs(&self) -> Vec<Expr> {
        self.tensors.clone()
    }
}

impl Arg {
    /// Element `k`, an int64.
    pub fn at(&self, inputs: &[te::Tensor], k: usize) -> PrimExpr {
        match self {
            Arg::Known(list) => list[k].clone(),
            Arg::Input(i, _) => inputs[*i].at(&[prim::int(k as i64)]),
        }
    }

    /// All elements.
    pub fn all(&self, inputs: &[te::Tensor]) -> Vec<PrimExpr> {
        let count = match self {
            Arg::Known(list) => list.len(),
            Arg::Input(_, count) => *count,
        };
        (0..count).map(|k| self.at(inputs, k)).collect()
    }
}

/// The dimensions of a result, and what must be so for the operator to make sense.
#[derive(Default)]
pub struct ShapePlan {
    /// Dimensions, none of them negative.
    pub dims: Vec<PrimExpr>,
    /// What is checked when the program runs.
    pub checks: Vec<Check>,
}

/// Whether an expression reads a tensor.
fn reads(e: &PrimExpr) -> bool {
    !te::reads_of_expr([e]).is_empty()
}

impl ShapePlan {
    /// Dimensions that follow from arguments by `f`. Those that need no argument stay the expressions that they are.
    pub fn bind(
        scope: &mut Scope,
        name: &str,
        args: &Args,
        f: impl Fn(&[te::Tensor]) -> ShapePlan,
    ) -> Result<Vec<PrimExpr>> {
        ShapePlan::bind_by(scope, name, args, &f)
    }

    fn bind_by(
        scope: &mut Scope,
        name: &str,
        args: &Args,
        f: &dyn Fn(&[te::Tensor]) -> ShapePlan,
    ) -> Result<Vec<PrimExpr>> {
        let stand_ins = placeholders(scope, &args.tensors)?;
        let plan = f(&stand_ins);
        if let Some(wrong) = plan.checks.iter().find(|check| check.condition.as_int() == Some(0)) {
            return Err(NodeError::invalid(format!(
                "its arguments do not fit the shapes of its inputs: {}",
                wrong.said()
            )));
        }
        let open: Vec<usize> = (0..plan.dims.len()).filter(|&i| reads(&plan.dims[i])).collect();
        let is_open = |check: &&Check| check.condition.as_int().is_none();
        let checks: Vec<Check> = plan.checks.iter().filter(is_open).cloned().collect();
        let mut result: Vec<PrimExpr> = plan.dims.iter().map(dims::simplify).collect();
        if open.is_empty() && checks.is_empty() {
            return Ok(result);
        }
        let count = open.len() + checks.iter().map(|check| check.dims().len()).sum::<usize>();
        let vector = scope.te(&format!("{name}_dims"), args.inputs(), |inputs| {
            let plan = f(inputs);
            let checks = plan.checks.iter().filter(is_open).flat_map(Check::dims);
            let all: Vec<PrimExpr> = open.iter().map(|&i| plan.dims[i].clone()).chain(checks).collect();
            vec![te::compute("dims", [count as i64], |at| choose(&at[0], &all))]
        })?;
        let shape = scope.call("tensor_to_shape", [vector])?;
        let bound = scope.bind_noted(shape, open.len(), &checks)?;
        for (i, dim) in open.into_iter().zip(bound) {
            result[i] = dim;
        }
        Ok(result)
    }
}

/// Sizes that an input holds, as dimensions: none of them is negative, which is checked when the program runs.
pub fn sizes(scope: &mut Scope, tensor: Expr, count: usize) -> Result<Vec<PrimExpr>> {
    let tensor = scope.cast(tensor, DataType::int(64))?;
    let mut args = Args::default();
    let given = args.ints(Ints::Computed(scope.reshape(tensor, vec![prim::int(count as i64)])?, count));
    ShapePlan::bind(scope, "sizes", &args, |inputs| {
        let sizes = given.all(inputs);
        let natural = all(sizes.iter().map(|size| prim::ge(size, 0)));
        let values = sizes.iter().enumerate().map(|(i, size)| (format!("size {i}"), size.clone()));
        let natural = Check::new(natural, "sizes must not be negative").with(values);
        ShapePlan { dims: sizes.iter().map(|size| prim::max(size, 0)).collect(), checks: vec![natural] }
    })
}

/// Checks, when the program runs, what a tensor holds; `condition` is about the kernel's input.
pub fn require(scope: &mut Scope, tensor: Expr, check: impl Fn(&te::Tensor) -> Check) -> Result<()> {
    let mut args = Args::default();
    let at = args.tensor(tensor);
    ShapePlan::bind(scope, "check", &args, |inputs| ShapePlan { dims: Vec::new(), checks: vec![check(&inputs[at])] })?;
    Ok(())
}

/// Inputs that stand for tensors until a kernel is made.
fn placeholders(scope: &Scope, tensors: &[Expr]) -> Result<Vec<te::Tensor>> {
    let stand_in = |(i, t): (usize, &Expr)| Ok(te::placeholder(format!("in{i}"), scope.dims(t)?, scope.dtype(t)));
    tensors.iter().enumerate().map(stand_in).collect()
}

/// The expression of a list that an index picks.
pub fn choose(index: &PrimExpr, list: &[PrimExpr]) -> PrimExpr {
    match list {
        [] => prim::int(0),
        [rest @ .., last] => rest
            .iter()
            .enumerate()
            .rev()
            .fold(last.clone(), |other, (i, e)| prim::if_then_else(prim::eq(index, i as i64), e.clone(), other)),
    }
}

/// An index that may count from the end, counted from the front.
pub fn from_front(index: &PrimExpr, size: impl Into<PrimExpr>) -> PrimExpr {
    match index.as_int() {
        Some(i) if i >= 0 => index.clone(),
        _ => prim::select(prim::lt(index, 0), index + size.into(), index.clone()),
    }
}

/// Of values that are given for axes, that of one axis; `default` where none is given.
pub fn of_axis(axes: &[PrimExpr], values: &[PrimExpr], axis: usize, rank: usize, default: PrimExpr) -> PrimExpr {
    let places = axes.iter().map(|a| from_front(a, rank as i64));
    places
        .zip(values)
        .fold(default, |other, (place, value)| prim::select(prim::eq(place, axis as i64), value.clone(), other))
}

/// An index brought between two others.
pub fn clamp(index: PrimExpr, low: impl Into<PrimExpr>, high: impl Into<PrimExpr>) -> PrimExpr {
    prim::max(prim::min(index, high.into()), low.into())
}

/// All of some conditions.
pub fn all(conditions: impl IntoIterator<Item = PrimExpr>) -> PrimExpr {
    conditions.into_iter().fold(prim::boolean(true), prim::and)
}

/// The product of expressions.
pub fn product(factors: impl IntoIterator<Item = PrimExpr>) -> PrimExpr {
    factors.into_iter().fold(prim::int(1), |n, f| n * f)
}
