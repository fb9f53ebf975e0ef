//! `SVMRegressor` and `SVMClassifier`: sums over support vectors, or products where there are none.
//!
//! Where there are vectors, those of each two classes decide between these, and the class that wins most decisions is the
//! label; otherwise it is that of the largest score.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::coupling::coupled;
use super::score::{self, Other, Transform};
use super::{matrix, numbers, rows_of};
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{clip_between, with_number};
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::text::Labels;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

const FLOAT: DataType = DataType::float(32);

/// How alike a row and a support vector are.
enum Kernel {
    Linear,
    Polynomial,
    Radial,
    Sigmoid,
}

/// A kernel and its numbers.
struct Likeness {
    kernel: Kernel,
    gamma: f64,
    offset: f64,
    degree: f64,
}

impl Likeness {
    fn of(node: &Node) -> Result<Likeness> {
        let params = node.floats("kernel_params")?.unwrap_or_default();
        let at = |i: usize| params.get(i).map_or(0.0, |v| f64::from(*v));
        let kernel = match node.str_or("kernel_type", "LINEAR")? {
            "LINEAR" => Kernel::Linear,
            "POLY" => Kernel::Polynomial,
            "RBF" => Kernel::Radial,
            "SIGMOID" => Kernel::Sigmoid,
            other => return Err(NodeError::invalid(format!("`kernel_type` is \"{other}\""))),
        };
        Ok(Likeness { kernel, gamma: at(0), offset: at(1), degree: at(2) })
    }

    /// A column for each vector: how alike each row is to it.
    fn measure(&self, scope: &mut Scope, x: Expr, vectors: Expr) -> Result<Expr> {
        if matches!(self.kernel, Kernel::Radial) {
            let distance = distances(scope, x, vectors)?;
            let scaled = with_number(scope, "multiply", distance, -self.gamma)?;
            return scope.call("exp", [scaled]);
        }
        let transposed = scope.transpose(vectors, &[1, 0])?;
        let product = scope.call("matmul", [x, transposed])?;
        if matches!(self.kernel, Kernel::Linear) {
            return Ok(product);
        }
        let scaled = with_number(scope, "multiply", product, self.gamma)?;
        let moved = with_number(scope, "add", scaled, self.offset)?;
        match self.kernel {
            Kernel::Sigmoid => scope.call("tanh", [moved]),
            _ => with_number(scope, "power", moved, self.degree),
        }
    }
}

/// Squares of the distances between rows and vectors.
fn distances(scope: &mut Scope, x: Expr, vectors: Expr) -> Result<Expr> {
    let (own, other) = (scope.dims(&x)?, scope.dims(&vectors)?);
    scope.te("distances", vec![x, vectors], |inputs| {
        vec![te::compute("distances", [&own[0], &other[0]], |at: &[PrimExpr]| {
            let k = te::reduce_axis(own[1].clone());
            let apart = inputs[0].at(&[at[0].clone(), k.var()]) - inputs[1].at(&[at[1].clone(), k.var()]);
            te::sum(apart.clone() * apart, [&k])
        })]
    })
}

/// A product of rows with a transposed matrix, and a number for each column.
fn affine(scope: &mut Scope, x: Expr, weight: Expr, offset: &[f64]) -> Result<Expr> {
    let transposed = scope.transpose(weight, &[1, 0])?;
    let product = scope.call("matmul", [x, transposed])?;
    let offset = scope.constant(offset, &[offset.len() as i64], FLOAT)?;
    scope.call("add", [product, offset])
}

/// `SVMRegressor`: a number for each row, or for a model of one class whether it belongs to that.
pub fn regressor(scope: &mut Scope, node: &Node) -> Outputs {
    let coefficients = numbers(node, "coefficients")?;
    let rho = numbers(node, "rho")?;
    let supports = node.int_or("n_supports", 0)?;
    let supports = usize::try_from(supports).map_err(|_| NodeError::invalid(format!("`n_supports` is {supports}")))?;
    let y = if supports > 0 {
        let (vectors, features) = matrix(scope, &numbers(node, "support_vectors")?, supports, FLOAT)?;
        if coefficients.len() != supports {
            let given = coefficients.len();
            return Err(NodeError::invalid(format!("{given} coefficients are given for {supports} vectors")));
        }
        let x = rows_of(scope, node, features)?;
        let x = scope.cast(x, FLOAT)?;
        let alike = Likeness::of(node)?.measure(scope, x, vectors)?;
        let (weight, _) = matrix(scope, &coefficients, 1, FLOAT)?;
        affine(scope, alike, weight, &rho[..1])?
    } else {
        let (weight, features) = matrix(scope, &coefficients, 1, FLOAT)?;
        let x = rows_of(scope, node, features)?;
        let x = scope.cast(x, FLOAT)?;
        affine(scope, x, weight, &rho[..1])?
    };
    if node.flag("one_class", false)? {
        let inside = with_number(scope, "greater", y, 0.0)?;
        let (yes, no) = (scope.scalar(1.0, FLOAT)?, scope.scalar(-1.0, FLOAT)?);
        return one(scope.call("where", [inside, yes, no])?);
    }
    one(Transform::of(node)?.apply(scope, y)?)
}

/// `SVMClassifier`: the label of each row, and the scores of classes, or of pairs of them where vectors vote.
pub fn classifier(scope: &mut Scope, node: &Node) -> Outputs {
    let labels = Labels::of(node, "classlabels_ints", "classlabels_strings")?;
    let outputs = classified(scope, node, &labels.numbers)?;
    Ok(labels.put(outputs))
}

fn classified(scope: &mut Scope, node: &Node, labels: &[i64]) -> Outputs {
    let classes = labels.len().max(1);
    let coefficients = numbers(node, "coefficients")?;
    let rho = numbers(node, "rho")?;
    let transform = Transform::of(node)?;
    let per_class = node.ints("vectors_per_class")?.unwrap_or_default();
    if per_class.is_empty() {
        let (weight, features) = matrix(scope, &coefficients, classes, FLOAT)?;
        let x = rows_of(scope, node, features)?;
        let x = scope.cast(x, FLOAT)?;
        let y = affine(scope, x, weight, &vec![rho[0]; classes])?;
        let best = score::best(scope, y.clone())?;
        return finish(scope, y, best, labels, &rho, transform);
    }
    let votes = Votes::new(&per_class, classes, &coefficients, &rho)?;
    let (vectors, features) = matrix(scope, &numbers(node, "support_vectors")?, votes.total, FLOAT)?;
    let x = rows_of(scope, node, features)?;
    let x = scope.cast(x, FLOAT)?;
    let alike = Likeness::of(node)?.measure(scope, x, vectors)?;
    let weight = scope.constant(&votes.weights, &[votes.pairs.len() as i64, votes.total as i64], FLOAT)?;
    let y = affine(scope, alike, weight, &rho[..votes.pairs.len()])?;
    let best = votes.winner(scope, y.clone())?;
    let (a, b) = (node.floats("prob_a")?.unwrap_or_default(), node.floats("prob_b")?.unwrap_or_default());
    if a.is_empty() {
        return finish(scope, y, best, labels, &rho, transform);
    }
    let y = votes.probabilities(scope, y, &a, &b)?;
    let label = score::named(scope, best, labels)?;
    Ok(vec![Value::Computed(label), Value::Computed(transform.apply(scope, y)?)])
}

/// Label and scores, once the best class is known.
fn finish(scope: &mut Scope, y: Expr, best: Expr, labels: &[i64], rho: &[f64], transform: Transform) -> Outputs {
    let single = scope.dims(&y)?.get(1).is_some_and(|n| n.is_int(1));
    let label = match labels {
        [] => best,
        labels => score::named(scope, best, labels)?,
    };
    let scores = if single && rho.len() == 1 && labels.len() == 2 {
        score::both(scope, y, Other::Opposite, transform)?
    } else {
        transform.apply(scope, y)?
    };
    Ok(vec![Value::Computed(label), Value::Computed(scores)])
}

/// How vectors decide between each two classes.
struct Votes {
    pairs: Vec<(usize, usize)>,
    /// Weights of all vectors, a row for each pair.
    weights: Vec<f64>,
    total: usize,
    classes: usize,
}

/// The most pairs of classes.
const MOST_PAIRS: usize = 1 << 16;

impl Votes {
    /// Of a pair, the vectors of either class count, with the coefficients that they have against the other.
    fn new(per_class: &[i64], classes: usize, coefficients: &[f64], rho: &[f64]) -> Result<Votes> {
        let counts = per_class.iter().map(|n| usize::try_from(*n)).collect::<std::result::Result<Vec<_>, _>>();
        let counts = counts.map_err(|_| NodeError::invalid("`vectors_per_class` has a negative number"))?;
        let total = counts.iter().try_fold(0usize, |sum, n| sum.checked_add(*n)).filter(|n| *n <= coefficients.len());
        let total = total.ok_or_else(|| NodeError::invalid("there are fewer coefficients than vectors"))?;
        let pairs: Vec<(usize, usize)> =
            (0..classes.min(1 << 9)).flat_map(|i| (i + 1..classes.min(1 << 9)).map(move |j| (i, j))).collect();
        if counts.len() != classes || total == 0 || classes < 2 || pairs.len() > MOST_PAIRS || classes > 1 << 9 {
            return Err(NodeError::invalid(format!(
                "`vectors_per_class` has {} numbers, {total} vectors in all, for {classes} classes",
                counts.len()
            )));
        }
        if coefficients.len() != (classes - 1) * total || rho.len() < pairs.len() {
            let (given, needed) = (coefficients.len(), (classes - 1) * total);
            return Err(NodeError::invalid(format!(
                "{given} coefficients and {} offsets where {needed} and {} are needed",
                rho.len(),
                pairs.len()
            )));
        }
        let starts: Vec<usize> = counts.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
        let mut weights = vec![0.0; pairs.len() * total];
        for (row, &(i, j)) in weights.chunks_exact_mut(total).zip(&pairs) {
            for (own, against) in [(i, j - 1), (j, i)] {
                let range = starts[own]..starts[own] + counts[own];
                row[range.clone()].copy_from_slice(&coefficients[against * total..][range]);
            }
        }
        Ok(Votes { pairs, weights, total, classes })
    }

    /// The class that wins most decisions, the first of several.
    fn winner(&self, scope: &mut Scope, decisions: Expr) -> Result<Expr> {
        let (rows, columns) = (self.pairs.len(), self.classes);
        let mut for_first = vec![0.0; rows * columns];
        let mut for_second = vec![0.0; rows * columns];
        for (at, &(i, j)) in self.pairs.iter().enumerate() {
            for_first[at * columns + i] = 1.0;
            for_second[at * columns + j] = 1.0;
        }
        let table = |scope: &Scope, values: &[f64]| scope.constant(values, &[rows as i64, columns as i64], FLOAT);
        let (first, second) = (table(scope, &for_first)?, table(scope, &for_second)?);
        let won = with_number(scope, "greater", decisions, 0.0)?;
        let won = scope.cast(won, FLOAT)?;
        let lost = with_number(scope, "equal", won.clone(), 0.0)?;
        let lost = scope.cast(lost, FLOAT)?;
        let a = scope.call("matmul", [won, first])?;
        let b = scope.call("matmul", [lost, second])?;
        let votes = scope.call("add", [a, b])?;
        scope.op("argmax", [votes], Attrs::new().with("axis", 1i64).with("keepdims", false))
    }

    /// How likely classes are, from a logistic function of each decision.
    fn probabilities(&self, scope: &mut Scope, decisions: Expr, a: &[f32], b: &[f32]) -> Result<Expr> {
        const LEAST: f64 = 1e-7;
        let (count, classes) = (self.pairs.len(), self.classes);
        if a.len() != count || b.len() != count {
            let given = (a.len(), b.len());
            return Err(NodeError::invalid(format!("`prob_a` and `prob_b` have {given:?} numbers for {count} pairs")));
        }
        let line = |scope: &Scope, list: &[f32]| {
            let values: Vec<f64> = list.iter().map(|v| f64::from(*v)).collect();
            scope.constant(&values, &[count as i64], FLOAT)
        };
        let (slope, offset) = (line(scope, a)?, line(scope, b)?);
        let scaled = scope.call("multiply", [decisions, slope])?;
        let moved = scope.call("add", [scaled, offset])?;
        let negated = scope.call("negative", [moved])?;
        let likely = scope.call("sigmoid", [negated])?;
        let likely = clip_between(scope, likely, Some(LEAST), Some(1.0 - LEAST))?;
        let mut places = vec![0.0; classes * classes];
        for (at, &(i, j)) in self.pairs.iter().enumerate() {
            (places[i * classes + j], places[j * classes + i]) = (at as f64, at as f64);
        }
        let places = scope.constant(&places, &[classes as i64, classes as i64], DataType::int(64))?;
        let rows = scope.dims(&likely)?[0].clone();
        let shape = vec![rows, (classes as i64).into(), (classes as i64).into()];
        let pairs = scope.te("pairs", vec![likely, places], |inputs| {
            vec![te::compute("pairs", shape, |at: &[PrimExpr]| {
                let own = inputs[0].at(&[at[0].clone(), inputs[1].at(&at[1..])]);
                let one = prim::constant(FLOAT, 1.0);
                prim::select(prim::lt(&at[1], &at[2]), own.clone(), one - own)
            })]
        })?;
        coupled(scope, pairs, classes as i64)
    }
}
