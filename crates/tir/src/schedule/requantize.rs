//! Quantization within a kernel: numbers that become steps, and steps that become numbers again.
//!
//! What is quantized and used as a number in the same kernel is a whole number between bounds, and need not become an integer in between:
//!
//! ```text
//! float(int32(uint8(min(max(round(v) + z, 0), 255))) - z)    ->    min(max(round(v), -z), 255 - z)
//! ```
//!
//! A quotient by a constant that is rounded to a whole number between bounds takes three multiply-adds, since the error of a first guess is exact:
//!
//! ```text
//! min(max(round(x / s), low), high)    ->    t = min(max(x, low * s), high * s)
//!                                            q = t * (1 / s)
//!                                            round(q + (t - q * s) * (1 / s))
//! ```
//!
//! That is the quotient, correctly rounded, where nothing leaves the range of normal numbers (Markstein, *Computation of elementary functions
//! on the IBM RISC System/6000 processor*, 1990): the bounds keep large numbers and infinities away, and a quotient that is too small for it is
//! rounded to nothing. What is no number meets the same bounds in the same order. Neither pays alone: a processor divides beside other
//! instructions, of which there are fewer without the integers.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, Let, PrimExpr, PrimMutator, add, binary, call, constant, lt, select, sub};
use relaxide_ir::{DataType, Var};

use super::Machine;
use super::affine::same;
use super::group::Work;
use super::lanes::multiply_add;

/// Divisors whose products with bounds of integers, and whose inverses, are normal numbers.
const DIVISORS: std::ops::Range<f64> = 1e-20..1e20;

/// Whole numbers up to which sums of them are exact.
const EXACT: f64 = 131_072.0;

const F32: DataType = DataType::float(32);

/// Rewrites the values of pieces of work, quotients where the processor adds to a product without rounding it.
pub fn run(mut work: Vec<Work>, machine: &Machine) -> Vec<Work> {
    let rewrite = |e: &PrimExpr| Requantize { multiplies: machine.fma }.mutate_prim(e);
    for piece in &mut work {
        match piece {
            Work::Map(stage) => stage.value = rewrite(&stage.value),
            Work::Reduce(reduce) => {
                reduce.stage.value = rewrite(&reduce.stage.value);
                reduce.epilogue = rewrite(&reduce.epilogue);
            }
            Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => {}
        }
    }
    work
}

/// A bound of a value; its form says what becomes of what is no number.
struct Bound {
    op: BinaryOp,
    number: f64,
    form: ClampForm,
}

#[derive(Clone, Copy, PartialEq)]
enum ClampForm {
    /// `op(number, value)`.
    First,
    /// `op(value, number)`.
    Second,
    /// The value where it lies on the right side of the number, else the number.
    Choice,
}

impl Bound {
    /// A bound, and the value that it bounds.
    fn of(e: &PrimExpr) -> Option<(Bound, &PrimExpr)> {
        match e {
            PrimExpr::Binary(n) if matches!(n.op, BinaryOp::Min | BinaryOp::Max) => {
                match (number(&n.a), number(&n.b)) {
                    (None, Some(number)) => Some((Bound { op: n.op, number, form: ClampForm::Second }, &n.a)),
                    (Some(number), None) => Some((Bound { op: n.op, number, form: ClampForm::First }, &n.b)),
                    _ => None,
                }
            }
            PrimExpr::Select(n) => {
                let (PrimExpr::Binary(compared), Some(bound)) = (&n.condition, number(&n.false_value)) else {
                    return None;
                };
                let value = &n.true_value;
                let op = match (number(&compared.a), number(&compared.b)) {
                    (Some(below), None) if below == bound && same(&compared.b, value) => BinaryOp::Max,
                    (None, Some(above)) if above == bound && same(&compared.a, value) => BinaryOp::Min,
                    _ => return None,
                };
                let is_less = compared.op == BinaryOp::Lt;
                is_less.then_some((Bound { op, number: bound, form: ClampForm::Choice }, value))
            }
            // A choice whose value has a name, as this file writes it.
            PrimExpr::Let(n) => match Bound::of(&n.body)? {
                (bound, PrimExpr::Var(var)) if bound.form == ClampForm::Choice && *var == n.var => {
                    Some((bound, &n.value))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// All bounds of a value, from the inside to the outside, and the value.
    fn all(mut e: &PrimExpr) -> (Vec<Bound>, &PrimExpr) {
        let mut bounds = Vec::new();
        while let Some((bound, inner)) = Bound::of(e) {
            bounds.push(bound);
            e = inner;
        }
        bounds.reverse();
        (bounds, e)
    }

    /// The same bound, elsewhere, of another value.
    fn moved(&self, value: PrimExpr, number: f64) -> PrimExpr {
        let bound = constant(value.dtype(), number);
        match self.form {
            ClampForm::First => binary(self.op, bound, value),
            ClampForm::Second => binary(self.op, value, bound),
            ClampForm::Choice => {
                let var = Var::prim("value", value.dtype());
                let name = PrimExpr::from(&var);
                let inside = if self.op == BinaryOp::Max { lt(bound.clone(), &name) } else { lt(&name, bound.clone()) };
                Ref::new(Let { var, value, body: select(inside, name, bound) }).into()
            }
        }
    }
}

/// The largest of lower bounds and the smallest of upper ones, where there are both.
fn limits(bounds: &[Bound]) -> Option<(f64, f64)> {
    let of = |op| bounds.iter().filter(move |bound| bound.op == op).map(|bound| bound.number);
    Some((of(BinaryOp::Max).reduce(f64::max)?, of(BinaryOp::Min).reduce(f64::min)?))
}

fn is_whole(v: f64) -> bool {
    v.fract() == 0.0 && v.abs() <= EXACT
}

/// A rounded number and what is added to it, if that is a constant whole number.
fn rounded(e: &PrimExpr) -> Option<(&PrimExpr, Option<&PrimExpr>, f64)> {
    let (offset, rounded) = match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::Add && number(&n.b).is_some() => (Some(&n.b), &n.a),
        other => (None, other),
    };
    let shift = offset.map_or(Some(0.0), number).filter(|shift| is_whole(*shift))?;
    match rounded {
        PrimExpr::Call(n) if n.op == "tirx.round" => Some((n.args.first()?, offset, shift)),
        _ => None,
    }
}

fn number(e: &PrimExpr) -> Option<f64> {
    match e {
        PrimExpr::Float(n) => Some(n.value),
        _ => None,
    }
}

/// Steps that become numbers again, and rounded quotients between bounds.
struct Requantize {
    /// Whether quotients become products: where the processor adds to a product without rounding it.
    multiplies: bool,
}

impl PrimMutator for Requantize {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        if let PrimExpr::Cast(n) = e
            && n.dtype == F32
            && let Some(number) = as_number(&n.value, 0.0)
        {
            return self.mutate_prim(&number);
        }
        match Quotient::of(e).filter(|_| self.multiplies) {
            Some(quotient) => quotient.multiplied(self.mutate_prim(quotient.dividend)),
            None => self.remake_prim(e),
        }
    }
}

/// An integer less another as a number, where it is the integer of a whole number in single precision.
fn as_number(e: &PrimExpr, less: f64) -> Option<PrimExpr> {
    match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::Sub && n.a.dtype().is_int() => {
            as_number(&n.a, less + n.b.as_int().map(|by| by as f64)?)
        }
        PrimExpr::Cast(n) if n.value.dtype().is_integer() && n.dtype.is_int() && n.dtype.bits >= 32 => {
            as_number(&n.value, less)
        }
        PrimExpr::Cast(n) if n.value.dtype() == F32 && n.dtype.bits <= 16 => of_steps(&n.value, n.dtype, less),
        PrimExpr::Let(n) => {
            let body = match &n.body {
                PrimExpr::Cast(steps) if steps.value.dtype() == F32 && steps.dtype.bits <= 16 => {
                    of_steps(&steps.value, steps.dtype, less)?
                }
                body => as_number(body, less)?,
            };
            Some(Ref::new(Let { var: n.var.clone(), value: n.value.clone(), body }).into())
        }
        _ => None,
    }
}

/// A rounded number between bounds that a type holds, less a whole number.
fn of_steps(e: &PrimExpr, dtype: DataType, less: f64) -> Option<PrimExpr> {
    let (bounds, inner) = Bound::all(e);
    let (low, high) = limits(&bounds)?;
    let (least, most) = match dtype.is_uint() {
        true => (0.0, f64::from(dtype.bits).exp2() - 1.0),
        false if dtype.is_int() => (-f64::from(dtype.bits - 1).exp2(), f64::from(dtype.bits - 1).exp2() - 1.0),
        false => return None,
    };
    let fits = low >= least && high <= most && bounds.iter().all(|bound| is_whole(bound.number)) && is_whole(less);
    let (value, _, shift) = rounded(inner).filter(|_| fits)?;
    let steps = call(F32, "tirx.round", vec![value.clone()]);
    let steps = match shift - less {
        0.0 => steps,
        left if left > 0.0 => add(steps, constant(F32, left)),
        left => sub(steps, constant(F32, -left)),
    };
    Some(bounds.iter().fold(steps, |value, bound| bound.moved(value, bound.number - less)))
}

/// A rounded quotient between bounds.
struct Quotient<'a> {
    dividend: &'a PrimExpr,
    divisor: f64,
    /// What is added behind rounding.
    offset: Option<&'a PrimExpr>,
    shift: f64,
    bounds: Vec<Bound>,
}

impl<'a> Quotient<'a> {
    fn of(e: &'a PrimExpr) -> Option<Quotient<'a>> {
        let (bounds, inner) = Bound::all(e);
        limits(&bounds)?;
        let (PrimExpr::Binary(quotient), offset, shift) = rounded(inner)? else { return None };
        let divisor = number(&quotient.b).filter(|_| quotient.op == BinaryOp::Div)?;
        let is_single = quotient.a.dtype() == F32;
        let fits = is_single && DIVISORS.contains(&divisor) && bounds.iter().all(|bound| is_whole(bound.number));
        fits.then_some(Quotient { dividend: &quotient.a, divisor, offset, shift, bounds })
    }

    /// The same by products.
    fn multiplied(&self, dividend: PrimExpr) -> PrimExpr {
        let number = |value: f32| constant(F32, f64::from(value));
        // Numbers of single precision, as the program has them.
        let (divisor, inverse) = (self.divisor as f32, 1.0 / self.divisor as f32);
        let bounded = self
            .bounds
            .iter()
            .fold(dividend, |value, bound| bound.moved(value, f64::from((bound.number - self.shift) as f32 * divisor)));
        let (t, q) = (Var::prim("bounded", F32), Var::prim("guess", F32));
        let guess = binary(BinaryOp::Mul, PrimExpr::from(&t), number(inverse));
        let left = multiply_add(true, PrimExpr::from(&q), number(-divisor), PrimExpr::from(&t));
        let exact = multiply_add(true, left, number(inverse), PrimExpr::from(&q));
        let steps = call(F32, "tirx.round", vec![exact]);
        let steps = self.offset.map_or(steps.clone(), |offset| add(steps, offset));
        let inner: PrimExpr = Ref::new(Let { var: q, value: guess, body: steps }).into();
        Ref::new(Let { var: t, value: bounded, body: inner }).into()
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim::{cast, div, int_of, max, min};

    use super::*;

    /// The result of both forms for a number.
    fn both(x: f32, scale: f32, (low, zero, high): (f32, f32, f32)) -> (f32, f32) {
        let divided = ((x / scale).round_ties_even() + zero).max(low).min(high);
        let inverse = 1.0 / scale;
        let t = x.max((low - zero) * scale).min((high - zero) * scale);
        let q = t * inverse;
        (divided, q.mul_add(-scale, t).mul_add(inverse, q).round_ties_even() + zero)
    }

    #[test]
    fn the_product_is_the_quotient() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..40 {
            let scale = f32::from_bits(random.u32(0x3000_0000..0x4800_0000));
            let limits = [(0.0, 0.0, 255.0), (-128.0, 3.0, 127.0), (0.0, 32768.0, 65535.0)][random.usize(0..3)];
            for _ in 0..20_000 {
                // Halves, where a bit decides, and what lies beside them; numbers of all sizes; bounds.
                let half = (random.i32(-70_000..70_000) as f32 + 0.5) * scale;
                let near = f32::from_bits(half.to_bits().wrapping_add(random.u32(0..5)).wrapping_sub(2));
                let any = f32::from_bits(random.u32(..));
                for x in [near, any, f32::INFINITY, f32::NEG_INFINITY, 0.0].into_iter().filter(|x| !x.is_nan()) {
                    let (divided, multiplied) = both(x, scale, limits);
                    assert_eq!(divided, multiplied, "{x:e} / {scale:e} in {limits:?}");
                }
            }
        }
    }

    fn number(value: f64) -> PrimExpr {
        constant(F32, value)
    }

    fn round(value: PrimExpr) -> PrimExpr {
        call(F32, "tirx.round", vec![value])
    }

    #[test]
    fn bounds_come_first() {
        let x = Var::prim("x", F32);
        let steps = round(div(PrimExpr::from(&x), number(0.5)));
        let e = max(min(add(steps, number(128.0)), number(255.0)), number(0.0));
        let PrimExpr::Let(bounded) = &Requantize { multiplies: true }.mutate_prim(&e) else { panic!("{e:?}") };
        let expected = max(min(PrimExpr::from(&x), number(63.5)), number(-64.0));
        assert!(same(&bounded.value, &expected), "{bounded:?}");
    }

    #[test]
    fn a_quotient_without_bounds_is_divided() {
        let x = Var::prim("x", F32);
        let steps = round(div(PrimExpr::from(&x), number(0.5)));
        assert!(same(&Requantize { multiplies: true }.mutate_prim(&steps), &steps));
    }

    #[test]
    fn steps_that_become_numbers_are_no_integers() {
        let x = Var::prim("x", F32);
        let i32 = DataType::int(32);
        let steps = max(min(add(round(PrimExpr::from(&x)), number(128.0)), number(255.0)), number(0.0));
        let again = |steps: PrimExpr| cast(F32, sub(cast(i32, cast(DataType::uint(8), steps)), int_of(i32, 128)));
        let expected = max(min(round(PrimExpr::from(&x)), number(127.0)), number(-128.0));
        let made = Requantize { multiplies: false }.mutate_prim(&again(steps));
        assert!(same(&made, &expected), "{made:?}");
        // What the type does not hold wraps, or is anything.
        let wide = max(min(round(PrimExpr::from(&x)), number(300.0)), number(0.0));
        assert!(same(&Requantize { multiplies: false }.mutate_prim(&again(wide.clone())), &again(wide)));
    }
}
