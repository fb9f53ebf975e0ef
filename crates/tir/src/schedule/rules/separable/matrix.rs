//! Constants of a term as matrices, and products with them.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{BinaryOp, PrimExpr, PrimVisitor, add, constant, free_vars, int, mul, sub, substitute};

use crate::schedule::affine::{loads, uses};
use crate::schedule::lanes::{multiply_add, splat};
use crate::schedule::{Axis, Reduce, Refusal};

/// The constant that a term has at each place of a tile's side, for each value of an axis of the sum.
pub struct Matrix {
    /// By place, then by value.
    pub rows: Vec<Vec<f64>>,
    /// The axis of the sum.
    pub tap: Axis,
    /// What the place depends on, and by which number it is divided, if the place is a remainder.
    pub place: Ref<Var>,
    pub modulus: Option<i64>,
}

impl Matrix {
    /// Values of the axis of the sum.
    pub fn taps(&self) -> i64 {
        self.rows.first().map_or(0, |row| row.len() as i64)
    }

    fn of(reduce: &Reduce, factor: &PrimExpr, tap: &Axis, most: i64) -> Result<Matrix, Refusal> {
        let few = |n: Option<i64>| n.filter(|n| (2..=most).contains(n));
        let Some(taps) = few(tap.extent.as_int()) else { return Err(Refusal::new("an axis of the sum is not short")) };
        let mut others = free_vars(factor).into_iter().filter(|v| *v != tap.var);
        let (Some(place), None) = (others.next(), others.next()) else {
            return Err(Refusal::new("a constant does not depend on one axis of the result"));
        };
        let modulus = modulus(factor, &place);
        let extent = reduce.stage.spatial.iter().find(|a| a.var == place).and_then(|a| a.extent.as_int());
        let Some(count) = few(modulus.or(extent)) else {
            return Err(Refusal::new("a constant depends on a long axis"));
        };
        let mut analyzer = Analyzer::new();
        let mut entry = |row: i64, value: i64| {
            let at = [(place.clone(), int(row)), (tap.var.clone(), int(value))].into();
            match analyzer.simplify(&substitute(factor, &at)) {
                PrimExpr::Float(imm) => Ok(imm.value),
                _ => Err(Refusal::new("a factor is no constant")),
            }
        };
        let rows = (0..count).map(|row| (0..taps).map(|value| entry(row, value)).collect());
        Ok(Matrix { rows: rows.collect::<Result<_, _>>()?, tap: tap.clone(), place, modulus })
    }
}

/// The number by which a place is divided.
fn modulus(factor: &PrimExpr, place: &Ref<Var>) -> Option<i64> {
    struct Search<'a> {
        place: &'a Ref<Var>,
        found: Option<i64>,
    }
    impl PrimVisitor for Search<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Binary(n) = e
                && n.op == BinaryOp::FloorMod
                && uses(&n.a, self.place)
            {
                self.found = n.b.as_int();
            }
            self.walk_prim(e);
        }
    }
    let mut search = Search { place, found: None };
    search.visit_prim(factor);
    search.found
}

/// The matrices of the two axes of a sum, and the element of its terms.
pub fn factors(reduce: &Reduce, most: i64) -> Result<(Matrix, Matrix, PrimExpr), Refusal> {
    let stage = &reduce.stage;
    let sums = stage.reduction.as_ref().is_some_and(|r| r.op == BinaryOp::Add && is_zero(&r.init));
    let [down, along] = stage.reduce.as_slice() else { return Err(Refusal::new("it does not sum over two axes")) };
    let dtype = stage.output.dtype;
    if !sums || !dtype.is_float() || dtype.bits < 32 || stage.value.dtype() != dtype {
        return Err(Refusal::new("it is no sum of numbers of 32 bits or more"));
    }
    let (mut constants, mut elements) = (Vec::new(), Vec::new());
    let mut rest = vec![&stage.value];
    while let Some(e) = rest.pop() {
        match e {
            PrimExpr::Binary(n) if n.op == BinaryOp::Mul => rest.extend([&n.b, &n.a]),
            _ if loads(e).is_empty() => constants.push(e),
            _ => elements.push(e),
        }
    }
    let ([first, second], [element]) = (constants.as_slice(), elements.as_slice()) else {
        return Err(Refusal::new("the terms are no products of two constants and an element"));
    };
    let (first, second) = if uses(first, &down.var) { (first, second) } else { (second, first) };
    if uses(first, &along.var) || uses(second, &down.var) {
        return Err(Refusal::new("a constant depends on both axes of the sum"));
    }
    let (down, along) = (Matrix::of(reduce, first, down, most)?, Matrix::of(reduce, second, along, most)?);
    Ok((down, along, (*element).clone()))
}

fn is_zero(e: &PrimExpr) -> bool {
    match e {
        PrimExpr::Float(imm) => imm.value == 0.0,
        other => other.is_int(0),
    }
}

/// The sum of some vectors, each times its coefficient.
pub fn combine(coefficients: &[f64], vectors: &[PrimExpr], fma: bool) -> PrimExpr {
    let mut terms: Vec<(f64, &PrimExpr)> =
        coefficients.iter().copied().zip(vectors).filter(|(c, _)| *c != 0.0).collect();
    // What needs no multiplication comes first, to be what the others are added to.
    terms.sort_by_key(|(c, _)| *c != 1.0);
    let times = |c: f64, v: &PrimExpr| mul(v.clone(), same_everywhere(c, v));
    let Some(((c, first), rest)) = terms.split_first() else {
        return vectors.first().map_or_else(|| int(0), |v| same_everywhere(0.0, v));
    };
    let start = if *c == 1.0 { (*first).clone() } else { times(*c, first) };
    rest.iter().fold(start, |sum, (c, v)| match *c {
        1.0 => add(sum, (*v).clone()),
        -1.0 => sub(sum, (*v).clone()),
        c => multiply_add(fma, (*v).clone(), same_everywhere(c, v), sum),
    })
}

fn same_everywhere(value: f64, like: &PrimExpr) -> PrimExpr {
    let dtype = like.dtype();
    splat(constant(dtype.with_lanes(1), value), i64::from(dtype.lanes))
}

#[cfg(test)]
mod tests {
    use relaxide_ir::DataType;

    use super::*;

    #[test]
    fn coefficients_of_one_and_zero_cost_no_multiplication() {
        let v: Vec<PrimExpr> =
            ["a", "b", "c"].map(|n| PrimExpr::from(&Var::prim(n, DataType::float(32)))).into_iter().collect();
        let sum = combine(&[0.0, 1.0, -1.0], &v, true);
        assert_eq!(format!("{sum:?}"), format!("{:?}", sub(v[1].clone(), v[2].clone())));
        assert_eq!(combine(&[0.0, 0.0, 1.0], &v, true), v[2]);
    }
}
