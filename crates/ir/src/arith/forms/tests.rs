//! Every rule holds at random values, and whole expressions keep theirs.

use proptest::prelude::*;
use relaxide_ffi::DataType;

use super::rules;
use super::term::{Condition, Node, Rule, Term};
use crate::arith::tests::{assignment, evaluate, expression, knowing};
use crate::prim::{self, PrimExpr, int};
use crate::{BinaryOp, arith::same};

/// Random numbers from a seed.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn below(&mut self, end: u64) -> i64 {
        self.0.i64(0..end as i64)
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64)
    }
}

/// What stands for a name: the lanes of a value, which is a number (`element`) or a condition.
type Lanes = Vec<i64>;

struct Setting {
    values: Vec<Lanes>,
    /// The type whose arithmetic wraps; without one nothing does, and what leaves 64 bits has no value.
    wrapping: Option<DataType>,
}

impl Setting {
    fn wrap(&self, value: i64) -> i64 {
        match self.wrapping {
            Some(dtype) if dtype.is_uint() => value & 0xff,
            Some(_) => value as i8 as i64,
            None => value,
        }
    }

    /// The value of a term; `None` where it has none.
    fn value(&self, term: &Term) -> Option<Lanes> {
        Some(match term {
            Term::Any(place) | Term::Literal(place) | Term::Lanes(place) => self.values[*place].clone(),
            Term::Int(value) => vec![*value],
            Term::Bool(value) => vec![i64::from(*value)],
            Term::Computed(inner) => {
                let value = calculated(inner, self)?;
                if self.wrap(value) != value {
                    return None;
                }
                vec![value]
            }
            Term::Binary(op, operands) => {
                let [a, b] = [self.value(&operands[0])?, self.value(&operands[1])?];
                let lanes = a.len().max(b.len());
                let at = |side: &Lanes, i: usize| if side.len() == 1 { side[0] } else { side[i] };
                let folded = |i| prim::fold(*op, at(&a, i), at(&b, i));
                let raw = (0..lanes).map(folded).collect::<Option<Lanes>>()?;
                let number = !op.is_comparison() && !op.is_logical();
                raw.into_iter().map(|value| if number { self.wrap(value) } else { value }).collect()
            }
            Term::Not(inner) => self.value(inner)?.into_iter().map(|value| i64::from(value == 0)).collect(),
            Term::Node(Node::Ramp, parts) => {
                let [base, stride] = [self.value(&parts[0])?[0], self.value(&parts[1])?[0]];
                (0..self.value(&parts[2])?[0]).map(|i| self.wrap(base + stride * i)).collect()
            }
            Term::Node(Node::Broadcast, parts) => {
                let value = self.value(&parts[0])?;
                vec![value[0]; self.value(&parts[1])?[0] as usize]
            }
            Term::Node(Node::Select | Node::IfThenElse, parts) => {
                let side = if self.value(&parts[0])?[0] != 0 { &parts[1] } else { &parts[2] };
                self.value(side)?
            }
            Term::Node(Node::Abs, parts) => vec![self.value(&parts[0])?[0].abs()],
        })
    }
}

/// A calculation with literals, which does not wrap.
fn calculated(term: &Term, setting: &Setting) -> Option<i64> {
    let plain = Setting { values: setting.values.clone(), wrapping: None };
    Some(plain.value(term)?[0])
}

/// Marks the names that stand for conditions, for the number of lanes, and for what is in a vector of its own.
fn kinds(term: &Term, condition: bool, kinds: &mut Vec<char>) {
    let mut mark = |place: usize, kind: char| {
        if kinds.len() <= place {
            kinds.resize(place + 1, ' ');
        }
        kinds[place] = kind;
    };
    match term {
        Term::Any(place) => mark(*place, if condition { 'p' } else { 'x' }),
        Term::Literal(place) => mark(*place, 'c'),
        Term::Lanes(place) => mark(*place, 'l'),
        Term::Binary(op, operands) => operands.iter().for_each(|t| kinds_of(t, op.is_logical(), kinds)),
        Term::Not(inner) => kinds_of(inner, true, kinds),
        Term::Node(Node::Select | Node::IfThenElse, parts) => {
            kinds_of(&parts[0], true, kinds);
            parts[1..].iter().for_each(|t| kinds_of(t, condition, kinds));
        }
        Term::Node(_, parts) => parts.iter().for_each(|t| kinds_of(t, condition, kinds)),
        Term::Int(_) | Term::Bool(_) | Term::Computed(_) => {}
    }
}

fn kinds_of(term: &Term, condition: bool, found: &mut Vec<char>) {
    kinds(term, condition, found);
}

/// How often the two sides were compared, of the given number of tries.
fn compared(rule: &Rule, line: &str, wrapping: Option<DataType>, numbers: &mut Numbers) -> usize {
    let mut names = Vec::new();
    kinds(&rule.left, false, &mut names);
    let mut count = 0;
    for _ in 0..40_000 {
        let (low, high) = match wrapping {
            Some(dtype) if dtype.is_uint() => (0, 255),
            Some(_) => (-128, 127),
            None => (-40, 40),
        };
        let mut draw = |kind: &char| match kind {
            'p' => numbers.below(2),
            'l' => numbers.between(2, 5),
            'c' => numbers.between(low.max(-12), 12),
            _ => numbers.between(low, high),
        };
        let mut setting = Setting { values: names.iter().map(|kind| vec![draw(kind)]).collect(), wrapping };
        if wrapping.is_some_and(|dtype| dtype.is_uint()) && setting.values.iter().any(|v| v[0] < 0) {
            continue;
        }
        let met = rule.conditions.iter().all(|condition| match condition {
            Condition::Holds(term) => calculated(term, &setting).is_some_and(|value| value != 0),
            Condition::Proved(term) => setting.value(term).is_some_and(|value| value[0] != 0),
        });
        let Some(left) = setting.value(&rule.left).filter(|_| met) else { continue };
        // A number that does not fit its type keeps the rule from being applied.
        let Some(mut right) = setting.value(&rule.right) else { continue };
        if right.len() == 1 {
            right = vec![right[0]; left.len()];
        }
        assert_eq!(left, right, "`{line}` at {:?} ({wrapping:?})", std::mem::take(&mut setting.values));
        count += 1;
        if count == 200 {
            break;
        }
    }
    count
}

#[test]
fn each_rule_holds_at_random_values() {
    let mut numbers = Numbers(fastrand::Rng::with_seed(7));
    let int8 = [None, Some(DataType::int(8)), Some(DataType::uint(8))];
    for (lines, types) in [(rules::WRAPPING, &int8[..]), (rules::INDEX, &int8[..1]), (rules::COMPARISONS, &int8[..1])] {
        for line in lines {
            for rule in Rule::parse(line).expect(line) {
                let counts: Vec<usize> =
                    types.iter().map(|dtype| compared(&rule, line, *dtype, &mut numbers)).collect();
                assert!(counts[0] >= 20, "`{line}` was compared {} times", counts[0]);
            }
        }
    }
}

const LANES: i64 = 4;

/// Random vectors: steps and repetitions of random scalars, and what operators make of them.
fn vector() -> impl Strategy<Value = PrimExpr> {
    let leaf = prop_oneof![
        (expression(), -4i64..5).prop_map(|(base, stride)| prim::ramp(base, stride, LANES)),
        expression().prop_map(|value| prim::broadcast(value, LANES)),
        (-9i64..17).prop_map(|value| prim::broadcast(int(value), LANES)),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        use BinaryOp::*;
        let op = prop::sample::select(vec![Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max]);
        let by = prop::sample::select(vec![Mul, Div, Mod, FloorDiv, FloorMod]);
        prop_oneof![
            1 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| prim::binary(op, a, b)),
            1 => (by, inner, 1i64..17).prop_map(|(op, a, c)| prim::binary(op, a, c)),
        ]
    })
}

/// One lane of a vector, as a scalar.
fn lane(e: &PrimExpr, at: i64) -> PrimExpr {
    match e {
        PrimExpr::Ramp(n) => &n.base + &n.stride * at,
        PrimExpr::Broadcast(n) => n.value.clone(),
        PrimExpr::Binary(n) => prim::binary(n.op, lane(&n.a, at), lane(&n.b, at)),
        other => other.clone(),
    }
}

/// A condition of two comparisons, which the rules of ranges are about.
fn condition() -> impl Strategy<Value = PrimExpr> {
    use BinaryOp::*;
    let comparison = || {
        let op = prop::sample::select(vec![Lt, Le, Gt, Ge, Eq, Ne]);
        let side = prop_oneof![2 => expression(), 1 => (-9i64..20).prop_map(int)];
        (op, expression(), side).prop_map(|(op, a, b)| prim::binary(op, a, b))
    };
    (prop::sample::select(vec![And, Or]), comparison(), comparison(), any::<bool>()).prop_map(|(op, a, b, opposite)| {
        let both = prim::binary(op, a, b);
        if opposite { prim::not(both) } else { both }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rewritten_expressions_have_the_same_value(
        e in prop_oneof![3 => expression(), 2 => condition()], values in prop::collection::vec(assignment(), 12),
    ) {
        let form = knowing().rewrite(&e);
        for values in &values {
            if let Some(expected) = evaluate(&e, values) {
                prop_assert_eq!(evaluate(&form, values), Some(expected), "{}\n{}\n{:?}", e, form, values);
            }
        }
    }

    #[test]
    fn rewritten_vectors_have_the_same_lanes(e in vector(), values in prop::collection::vec(assignment(), 8)) {
        let form = knowing().rewrite(&e);
        prop_assert_eq!(form.dtype(), e.dtype());
        for (at, values) in (0..LANES).flat_map(|at| values.iter().map(move |values| (at, values))) {
            if let Some(expected) = evaluate(&lane(&e, at), values) {
                let found = evaluate(&lane(&form, at), values);
                prop_assert_eq!(found, Some(expected), "{}\n{}\n{:?} lane {}", e, form, values, at);
            }
        }
    }
}

#[test]
fn forms_keep_the_shape_of_what_was_written() {
    let [x, y, z] = ["x", "y", "z"].map(|name| PrimExpr::Var(crate::Var::dim(name)));
    let vector = |base: PrimExpr, stride: i64| prim::ramp(base, stride, LANES);
    let cases = [
        (&x * &y + &x * 10, (&y + 10) * &x),
        (prim::min(&x + 2, &y + 3) + -2, prim::min(x.clone(), &y + 1)),
        (&x - prim::min(&x + &y, z.clone()), prim::max(int(0) - &y, &x - &z)),
        (prim::floordiv(vector(&x * 8 + 1, 1), 8), prim::broadcast(x.clone(), LANES)),
        (prim::floormod(vector(&x * 8 + 7, 1), 4), prim::floormod(vector(int(3), 1), 4)),
        (vector(x.clone(), 1) + vector(y.clone(), 2), vector(&x + &y, 3)),
        (
            prim::and(prim::eq(prim::floordiv(&x, 10), 5), prim::lt(prim::floormod(&x, 10), 7)),
            prim::and(prim::le(50, &x), prim::lt(&x, 57)),
        ),
    ];
    for (before, expected) in cases {
        let form = crate::arith::Analyzer::counting_vscale().rewrite(&before);
        assert!(same(&form, &expected), "{before} became {form}, not {expected}");
    }
}
