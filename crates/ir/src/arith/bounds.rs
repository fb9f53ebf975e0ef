//! Constant bounds of expressions, by interval arithmetic over the canonical form.

use relaxide_ffi::DataType;

use super::Analyzer;
use super::atom::{Atom, AtomId, Head, Value};
use super::sum::Sum;
use crate::{BinaryOp, prim};

/// The constants between which a value lies; `None` where nothing is known on that side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The value is at least this.
    pub min: Option<i64>,
    /// The value is at most this.
    pub max: Option<i64>,
}

impl Bounds {
    /// Exactly one value.
    pub fn point(value: i64) -> Bounds {
        Bounds { min: Some(value), max: Some(value) }
    }

    /// Everything between two constants.
    pub fn between(min: i64, max: i64) -> Bounds {
        Bounds { min: Some(min), max: Some(max) }
    }

    /// What lies within both.
    pub fn meet(self, other: Bounds) -> Bounds {
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Bounds { min: self.min.max(other.min), max }
    }

    /// What covers both.
    pub fn join(self, other: Bounds) -> Bounds {
        let (min, max) = (self.min.zip(other.min), self.max.zip(other.max));
        Bounds { min: min.map(|(a, b)| a.min(b)), max: max.map(|(a, b)| a.max(b)) }
    }

    /// Whether every value lies in `low .. high`.
    pub fn within(self, low: i64, high: i64) -> bool {
        self.min.is_some_and(|min| min >= low) && self.max.is_some_and(|max| max < high)
    }

    /// The values that a type can hold; everything for floats and indices.
    fn of_dtype(dtype: DataType) -> Bounds {
        if dtype.is_bool() {
            Bounds::between(0, 1)
        } else if dtype.is_uint() && dtype.bits < 63 {
            Bounds::between(0, (1 << dtype.bits) - 1)
        } else if dtype.is_int() && dtype.bits < 32 {
            Bounds::between(-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
        } else {
            Bounds { min: dtype.is_uint().then_some(0), max: None }
        }
    }
}

/// A bound or infinity, wide enough that no product of two bounds overflows.
type Wide = i128;
const INFINITE: Wide = 1 << 100;

/// An interval between wide bounds.
#[derive(Clone, Copy)]
struct Interval(Wide, Wide);

impl From<Bounds> for Interval {
    fn from(b: Bounds) -> Interval {
        Interval(b.min.map_or(-INFINITE, Wide::from), b.max.map_or(INFINITE, Wide::from))
    }
}

impl From<Interval> for Bounds {
    fn from(Interval(min, max): Interval) -> Bounds {
        Bounds { min: i64::try_from(min).ok(), max: i64::try_from(max).ok() }
    }
}

fn limited_mul(a: Wide, b: Wide) -> Wide {
    if let (Ok(a), Ok(b)) = (i64::try_from(a), i64::try_from(b)) {
        return (Wide::from(a) * Wide::from(b)).clamp(-INFINITE, INFINITE);
    }
    // Two finite bounds of single products stay below the limit; anything larger counts as infinite.
    a.checked_mul(b).unwrap_or(if (a < 0) == (b < 0) { INFINITE } else { -INFINITE }).clamp(-INFINITE, INFINITE)
}

impl Interval {
    fn add(self, other: Interval) -> Interval {
        Interval((self.0 + other.0).max(-INFINITE), (self.1 + other.1).min(INFINITE))
    }

    /// All values times a constant.
    fn scale(self, by: i64) -> Interval {
        let (low, high) = (limited_mul(self.0, by.into()), limited_mul(self.1, by.into()));
        if by < 0 { Interval(high, low) } else { Interval(low, high) }
    }

    fn mul(self, other: Interval) -> Interval {
        let corners = [
            limited_mul(self.0, other.0),
            limited_mul(self.0, other.1),
            limited_mul(self.1, other.0),
            limited_mul(self.1, other.1),
        ];
        Interval(corners.into_iter().min().unwrap_or(-INFINITE), corners.into_iter().max().unwrap_or(INFINITE))
    }

    /// Division by a positive constant; infinity stays infinite.
    fn floor_div(self, by: i64) -> Interval {
        let div = |x: Wide| if x.abs() >= INFINITE { x } else { x.div_euclid(Wide::from(by)) };
        Interval(div(self.0), div(self.1))
    }
}

impl Analyzer {
    /// The bounds of a sum.
    pub(super) fn bounds_of(&self, sum: &Sum) -> Bounds {
        let mut total = Interval(sum.constant.into(), sum.constant.into());
        for (product, coefficient) in &sum.terms {
            total = total.add(self.interval_of_product(product).scale(*coefficient));
        }
        total.into()
    }

    /// The bounds of a product of atoms.
    pub(super) fn bounds_of_product(&self, product: &[AtomId]) -> Bounds {
        self.interval_of_product(product).into()
    }

    fn interval_of_product(&self, product: &[AtomId]) -> Interval {
        if let [atom] = product {
            return self.bounds_of_atom(*atom).into();
        }
        let mut result = Interval(1, 1);
        for run in product.chunk_by(|a, b| a == b) {
            let base = Interval::from(self.bounds_of_atom(run[0]));
            let mut power = run.iter().fold(Interval(1, 1), |power, _| power.mul(base));
            if run.len() % 2 == 0 {
                power.0 = power.0.max(0);
            }
            result = result.mul(power);
        }
        result
    }

    /// The bounds of an atom.
    pub(super) fn bounds_of_atom(&self, id: AtomId) -> Bounds {
        let at = id.index();
        if let Some(Some(known)) = self.atom_bounds.borrow().get(at) {
            return *known;
        }
        let bounds = self.find_bounds_of_atom(id);
        let mut known = self.atom_bounds.borrow_mut();
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        known[at] = Some(bounds);
        bounds
    }

    fn find_bounds_of_atom(&self, id: AtomId) -> Bounds {
        match self.atoms.get(id) {
            Atom::Var(var) => self.ranges.get(var).copied().unwrap_or_else(|| Bounds::of_dtype(var.dtype())),
            Atom::FloorDiv(a, b) => self.bounds_of_quotient(a, b),
            Atom::FloorMod(a, b) => self.bounds_of_remainder(a, b),
            Atom::Min(a, b) => {
                let (a, b) = (self.bounds_of(a), self.bounds_of(b));
                let max = a.meet(b).max;
                Bounds { min: a.join(b).min, max }
            }
            Atom::Max(a, b) => {
                let (a, b) = (self.bounds_of(a), self.bounds_of(b));
                Bounds { min: a.min.max(b.min), max: a.join(b).max }
            }
            Atom::Compare(..) => Bounds::between(0, 1),
            Atom::Node(head, args) => self.bounds_of_node(head, args, id),
        }
    }

    fn bounds_of_value(&self, value: &Value) -> Bounds {
        match value {
            Value::Index(sum) => self.bounds_of(sum),
            Value::Other(atom) => self.bounds_of_atom(*atom),
        }
    }

    fn bounds_of_node(&self, head: &Head, args: &[Value], id: AtomId) -> Bounds {
        let dtype = self.atoms.dtype(id);
        match (head, args) {
            (Head::Int(dtype, value), _) if prim::holds(*dtype, *value) => Bounds::point(*value),
            (Head::Select, [_, a, b]) => self.bounds_of_value(a).join(self.bounds_of_value(b)),
            (Head::Call(name, _), []) if name == prim::VSCALE => Bounds { min: Some(1), max: None },
            (Head::Binary(op @ (BinaryOp::Div | BinaryOp::Mod)), [Value::Index(a), Value::Index(b)]) => {
                self.bounds_of_truncated(*op, a, b)
            }
            (Head::Call(name, _), [_, a, b]) if name == "tirx.if_then_else" => {
                self.bounds_of_value(a).join(self.bounds_of_value(b))
            }
            (Head::Call(name, _), [_, Value::Index(extent), ..]) if name == "tirx.checked_index" => {
                Bounds { min: Some(0), max: self.bounds_of(extent).max.map(|end| end.saturating_sub(1)) }
            }
            (Head::Call(name, _), [a, by]) if name == "tirx.shift_left" => {
                self.bounds_of_shifted(a, by, dtype).unwrap_or_else(|| Bounds::of_dtype(dtype))
            }
            (Head::Cast(_), [a]) => self.bounds_of_log2(a).unwrap_or_else(|| self.bounds_of_cast(a, dtype)),
            _ => Bounds::of_dtype(dtype),
        }
    }

    fn bounds_of_cast(&self, a: &Value, dtype: DataType) -> Bounds {
        let from = self.atoms.dtype_of(a);
        let (inner, outer) = (self.bounds_of_value(a), Bounds::of_dtype(dtype));
        let whole = from.is_integer() || from.is_bool();
        // A value that the type holds is converted unchanged; any other may become anything.
        let held = |v: Option<i64>| v.is_some_and(|v| prim::holds(dtype, v));
        let signs = from.is_int() == dtype.is_int();
        let widens = !dtype.is_bool() && (dtype.bits > from.bits || signs && dtype.bits == from.bits);
        let fits = held(inner.min) && held(inner.max) || widens && (signs || dtype.is_int());
        if whole && fits { inner } else { outer }
    }

    /// Of the number of bits that count so far, `ceil(log2(x))` of an integer, in double precision and thus exact.
    fn bounds_of_log2(&self, a: &Value) -> Option<Bounds> {
        let called = |value: &Value, wanted: &str| match value {
            Value::Other(atom) => match self.atoms.get(*atom) {
                Atom::Node(Head::Call(name, dtype), args) if name == wanted && *dtype == DataType::float(64) => {
                    args.first().cloned()
                }
                _ => None,
            },
            Value::Index(_) => None,
        };
        let Value::Other(of) = called(&called(a, "tirx.ceil")?, "tirx.log2")? else { return None };
        let bounds = match self.atoms.get(of) {
            Atom::Node(Head::Float(_, bits), _) => {
                Bounds::point(Some(f64::from_bits(*bits)).filter(|v| v.fract() == 0.0 && v.abs() < 1e12)? as i64)
            }
            Atom::Node(Head::Cast(_), args) => match args.as_slice() {
                [Value::Index(sum)] => self.bounds_of(sum),
                _ => return None,
            },
            _ => return None,
        };
        let bits = |v: i64| (1..1 << 40).contains(&v).then(|| 64 - i64::from((v - 1).leading_zeros()));
        Some(Bounds::between(bits(bounds.min?)?, bits(bounds.max?)?))
    }

    /// Of a number that is not negative, shifted to the left by one that is not, where the type holds what that gives.
    fn bounds_of_shifted(&self, a: &Value, by: &Value, dtype: DataType) -> Option<Bounds> {
        let (a, by) = (self.bounds_of_value(a), self.bounds_of_value(by));
        let shifted = |value: Option<i64>, by: Option<i64>| {
            let by = u32::try_from(by?).ok()?;
            value?.checked_mul(1i64.checked_shl(by)?).filter(|v| *v >= 0)
        };
        let is_positive = a.min.is_some_and(|min| min >= 0) && by.min.is_some_and(|min| min >= 0);
        let bounds = Bounds::between(shifted(a.min, by.min)?, shifted(a.max, by.max)?);
        (is_positive && bounds.max.is_some_and(|max| prim::holds(dtype, max))).then_some(bounds)
    }

    /// Of division that truncates, and of what it leaves, which has the sign of what was divided.
    fn bounds_of_truncated(&self, op: BinaryOp, a: &Sum, b: &Sum) -> Bounds {
        let numerator = self.bounds_of(a);
        let Some(c) = b.as_constant().filter(|c| *c > 0) else { return Bounds::default() };
        if op == BinaryOp::Div {
            return Bounds { min: numerator.min.map(|min| min / c), max: numerator.max.map(|max| max / c) };
        }
        let min = if numerator.min.is_some_and(|min| min >= 0) { 0 } else { 1 - c };
        let max = if numerator.max.is_some_and(|max| max <= 0) { 0 } else { c - 1 };
        Bounds::between(min, max)
    }

    fn bounds_of_quotient(&self, a: &Sum, b: &Sum) -> Bounds {
        let numerator = self.bounds_of(a);
        if let Some(c) = b.as_constant().filter(|c| *c > 0) {
            return Interval::from(numerator).floor_div(c).into();
        }
        let positive = self.bounds_of(b).min.is_some_and(|min| min > 0);
        match numerator.min {
            Some(min) if min >= 0 && positive => Bounds { min: Some(0), max: numerator.max },
            _ => Bounds::default(),
        }
    }

    fn bounds_of_remainder(&self, a: &Sum, b: &Sum) -> Bounds {
        let divisor = self.bounds_of(b);
        if divisor.min.is_none_or(|min| min <= 0) {
            return Bounds::default();
        }
        let below = Bounds { min: Some(0), max: divisor.max.map(|max| max - 1) };
        let numerator = self.bounds_of(a);
        if numerator.min.is_some_and(|min| min >= 0) { below.meet(Bounds { min: None, ..numerator }) } else { below }
    }
}
