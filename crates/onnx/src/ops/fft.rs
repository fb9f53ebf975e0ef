//! Fourier transforms of known length along the last axis, as products with constant matrices.
//!
//! A short transform is one product with the matrix of its sines and cosines. A longer one of length `a b` is `b` transforms of
//! length `a`, a multiplication by the roots of unity between, and `a` transforms of length `b` (Cooley and Tukey, 1965): the products
//! are what the machine is best at, and the transposes in between are the only memory traffic. A length with a large prime
//! factor is a convolution, which is executed by transforms whose length is a power of two (Bluestein, 1970).
//!
//! Values are rows: real parts `[.., n]` or real and imaginary parts `[.., 2, n]`, which is `[.., 2 n]` as well.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use crate::error::NodeError;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// The longest transform that is one product.
const SHORT: usize = 64;

/// The longest transform of prime length that is one product: its matrix has 1 MB.
const SHORT_PRIME: usize = 257;

/// What is transformed how.
pub struct FftPlan {
    /// How many elements a signal has.
    pub length: usize,
    /// How many elements of the spectrum are wanted, from its beginning.
    pub wanted: usize,
    /// Whether angles are positive; nothing is scaled.
    pub inverse: bool,
    /// The type of the elements.
    pub work: DataType,
}

/// The type that a transform of elements of a type is computed in.
///
/// Short ones are computed in double precision, which costs little there: of sums that cancel, what remains would otherwise be
/// rounding, where people expect zero.
pub fn work_type(dtype: DataType, length: usize) -> DataType {
    DataType::float(if dtype == DataType::float(64) || length <= SHORT { 64 } else { 32 })
}

/// The spectra `[.., 2, m]` of signals `[.., 1 or 2, n]`, where `m` is at least as much as is wanted.
pub fn transform(scope: &mut Scope, rows: Expr, lead: &[PrimExpr], is_real: bool, plan: &FftPlan) -> Result<Expr> {
    match split(plan.length) {
        Some(first) => in_two_steps(scope, rows, lead, is_real, plan, first),
        None if plan.length <= SHORT_PRIME => by_matrix(scope, rows, lead, is_real, plan),
        None => by_convolution(scope, rows, lead, is_real, plan),
    }
}

/// The first factor of a length: none where it is short, or has no factors.
fn split(n: usize) -> Option<usize> {
    if n <= SHORT {
        return None;
    }
    // The pair of factors with the smallest sum costs least.
    let root = n.isqrt();
    (2..=root).rev().find(|a| n.is_multiple_of(*a))
}

/// The cosine and sine of a part of a turn.
fn unit(numerator: usize, denominator: usize, inverse: bool) -> (f64, f64) {
    let turn = if inverse { std::f64::consts::TAU } else { -std::f64::consts::TAU };
    let angle = turn * ((numerator % denominator) as f64 / denominator as f64);
    (angle.cos(), angle.sin())
}

fn dims(lead: &[PrimExpr], rest: &[usize]) -> Vec<PrimExpr> {
    lead.iter().cloned().chain(rest.iter().map(|n| prim::int(*n as i64))).collect()
}

/// One product.
fn by_matrix(scope: &mut Scope, rows: Expr, lead: &[PrimExpr], is_real: bool, plan: &FftPlan) -> Result<Expr> {
    let (n, m) = (plan.length, plan.wanted);
    let parts = if is_real { 1 } else { 2 };
    let mut matrix = vec![0.0; parts * n * 2 * m];
    for j in 0..n {
        for k in 0..m {
            let (cos, sin) = unit(j * k, n, plan.inverse);
            let (upper, lower) = (j * 2 * m + k, (n + j) * 2 * m + k);
            (matrix[upper], matrix[upper + m]) = (cos, sin);
            if !is_real {
                (matrix[lower], matrix[lower + m]) = (-sin, cos);
            }
        }
    }
    let matrix = scope.constant(&matrix, &[(parts * n) as i64, 2 * m as i64], plan.work)?;
    let flat = scope.reshape(rows, dims(lead, &[parts * n]))?;
    let product = scope.call("matmul", [flat, matrix])?;
    scope.reshape(product, dims(lead, &[2, m]))
}

/// The axes of `lead`, and behind them others, which are numbered from there.
fn axes(lead: usize, rest: [usize; 3]) -> Vec<usize> {
    (0..lead).chain(rest.map(|axis| lead + axis)).collect()
}

/// The element `j = j1 b + j2` of a signal contributes to the element `k = k1 + a k2` of its spectrum.
fn in_two_steps(
    scope: &mut Scope,
    rows: Expr,
    lead: &[PrimExpr],
    is_real: bool,
    plan: &FftPlan,
    a: usize,
) -> Result<Expr> {
    let (b, outer) = (plan.length / a, lead.len());
    let parts = if is_real { 1 } else { 2 };
    let rows = scope.reshape(rows, dims(lead, &[parts, a, b]))?;
    let columns = scope.transpose(rows, &axes(outer, [2, 0, 1]))?;
    let inner = FftPlan { length: a, wanted: a, inverse: plan.inverse, work: plan.work };
    let by_j2: Vec<PrimExpr> = dims(lead, &[b]);
    let first = transform(scope, columns, &by_j2, is_real, &inner)?;

    let mut roots = Vec::with_capacity(2 * a * b);
    for j2 in 0..b {
        let row: Vec<(f64, f64)> = (0..a).map(|k1| unit(j2 * k1, plan.length, plan.inverse)).collect();
        roots.extend(row.iter().map(|root| root.0));
        roots.extend(row.iter().map(|root| root.1));
    }
    let roots = scope.constant(&roots, &[b as i64, 2, a as i64], plan.work)?;
    let rotated = times(scope, first, &dims(lead, &[b, 2, a]), roots)?;
    let rows = scope.transpose(rotated, &axes(outer, [2, 1, 0]))?;

    let inner = FftPlan { length: b, wanted: (plan.wanted - 1) / a + 1, inverse: plan.inverse, work: plan.work };
    let by_k1: Vec<PrimExpr> = dims(lead, &[a]);
    let second = transform(scope, rows, &by_k1, false, &inner)?;
    let width = scope.dims(&second)?[outer + 2].clone();
    let spectrum = scope.transpose(second, &axes(outer, [1, 2, 0]))?;
    let flat = lead.iter().cloned().chain([prim::int(2), crate::dims::simplify(&(width * a as i64))]).collect();
    scope.reshape(spectrum, flat)
}

/// The product of complex numbers `[.., 2, n]` with constant ones, whose shape is that of the last axes.
fn times(scope: &mut Scope, x: Expr, shape: &[PrimExpr], factors: Expr) -> Result<Expr> {
    let own = scope.dims(&factors)?.len();
    scope.te("times_roots", vec![x, factors], |inputs| {
        vec![te::compute("times_roots", shape, |at| {
            let part = at.len() - 2;
            let of = |tensor: &te::Tensor, number: i64, skipped: usize| {
                let mut place = at.to_vec();
                place[part] = prim::int(number);
                tensor.at(&place[skipped..])
            };
            let skipped = at.len() - own;
            let (re, im) = (of(&inputs[0], 0, 0), of(&inputs[0], 1, 0));
            let (cos, sin) = (of(&inputs[1], 0, skipped), of(&inputs[1], 1, skipped));
            let real = re.clone() * cos.clone() - im.clone() * sin.clone();
            prim::if_then_else(prim::eq(&at[part], 0), real, re * sin + im * cos)
        })]
    })
}

/// Since `j k = (j² + k² - (k - j)²) / 2`, a transform is a convolution with a chirp, between multiplications by it.
fn by_convolution(scope: &mut Scope, rows: Expr, lead: &[PrimExpr], is_real: bool, plan: &FftPlan) -> Result<Expr> {
    let (n, outer) = (plan.length, lead.len());
    let padded = (2 * n - 1).next_power_of_two();
    let chirp: Vec<(f64, f64)> = (0..n).map(|j| unit(j * j, 2 * n, plan.inverse)).collect();
    let apart = |numbers: &[(f64, f64)]| -> Vec<f64> {
        numbers.iter().map(|c| c.0).chain(numbers.iter().map(|c| c.1)).collect()
    };
    let factors = scope.constant(&apart(&chirp), &[2, n as i64], plan.work)?;
    let signal = scope.te("chirped", vec![rows, factors.clone()], |inputs| {
        vec![te::compute("chirped", dims(lead, &[2, padded]), |at| {
            let (part, j) = (&at[outer], &at[outer + 1]);
            let of = |number: i64| {
                let mut place = at.to_vec();
                place[outer] = prim::int(number);
                inputs[0].at(&place)
            };
            let root = |number: i64| inputs[1].at(&[prim::int(number), j.clone()]);
            let zero = prim::constant(plan.work, 0.0);
            let im = if is_real { zero.clone() } else { of(1) };
            let real = of(0) * root(0) - im.clone() * root(1);
            let imaginary = of(0) * root(1) + im * root(0);
            let value = prim::if_then_else(prim::eq(part, 0), real, imaginary);
            prim::if_then_else(prim::lt(j, n as i64), value, zero)
        })]
    })?;

    let mut kernel = vec![(0.0, 0.0); padded];
    for (j, (cos, sin)) in chirp.iter().enumerate() {
        kernel[j] = (*cos, -*sin);
        kernel[(padded - j) % padded] = (*cos, -*sin);
    }
    power_of_two(&mut kernel);
    let kernel = scope.constant(&apart(&kernel), &[2, padded as i64], plan.work)?;

    let forward = FftPlan { length: padded, wanted: padded, inverse: false, work: plan.work };
    let spectrum = transform(scope, signal, lead, false, &forward)?;
    let spectrum = times(scope, spectrum, &dims(lead, &[2, padded]), kernel)?;
    let back = FftPlan { length: padded, wanted: plan.wanted, inverse: true, work: plan.work };
    let convolved = transform(scope, spectrum, lead, false, &back)?;
    let scaled: Vec<(f64, f64)> =
        chirp[..plan.wanted].iter().map(|(cos, sin)| (cos / padded as f64, sin / padded as f64)).collect();
    let factors = scope.constant(&apart(&scaled), &[2, plan.wanted as i64], plan.work)?;
    times(scope, convolved, &dims(lead, &[2, plan.wanted]), factors)
}

/// The spectrum of as many numbers as a power of two, in place.
fn power_of_two(x: &mut [(f64, f64)]) {
    let n = x.len();
    if n <= 1 {
        return;
    }
    let mut halves: [Vec<(f64, f64)>; 2] = [0, 1].map(|odd| x.iter().skip(odd).step_by(2).copied().collect());
    halves.iter_mut().for_each(|half| power_of_two(half));
    for k in 0..n / 2 {
        let ((re, im), (cos, sin)) = (halves[1][k], unit(k, n, false));
        let rotated = (re * cos - im * sin, re * sin + im * cos);
        let even = halves[0][k];
        x[k] = (even.0 + rotated.0, even.1 + rotated.1);
        x[k + n / 2] = (even.0 - rotated.0, even.1 - rotated.1);
    }
}
