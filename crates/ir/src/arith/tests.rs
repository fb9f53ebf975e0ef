//! Known identities, and random expressions that must keep their value.

use std::sync::OnceLock;

use proptest::prelude::*;
use relaxide_ffi::{DataType, Ref};

use super::*;
use crate::prim::{self, floordiv, floormod, int};
use crate::{BinaryOp, Buffer, Var};

fn dim(name: &str) -> (Ref<Var>, PrimExpr) {
    let var = Var::dim(name);
    (var.clone(), PrimExpr::Var(var))
}

/// An analyzer over `n, m >= 0`, `0 <= i < n`, `0 <= b < 8`, and the variables as expressions.
fn setting() -> (Analyzer, [PrimExpr; 4]) {
    let [(nv, n), (mv, m), (iv, i), (bv, b)] = [dim("n"), dim("m"), dim("i"), dim("b")];
    let mut analyzer = Analyzer::new();
    analyzer.mark_non_negative(&nv);
    analyzer.mark_non_negative(&mv);
    analyzer.bind(&iv, 0, &n);
    analyzer.bind(&bv, 0, 8);
    (analyzer, [n, m, i, b])
}

#[test]
fn equal_expressions_are_found_equal() {
    let (mut an, [n, m, i, b]) = setting();
    let cases = [
        ("sum", (&n * 2 + &m) - &m, &n * 2),
        ("ceiling", floordiv(&n - 1, 2) + 1, floordiv(&n + 1, 2)),
        ("exact", floordiv(&n * 4, 4), n.clone()),
        ("low part", floordiv(&m * 8 + &b, 8), m.clone()),
        ("low part of two", floordiv(&m * 16 + &b * 2 + 1, 16), m.clone()),
        ("split", floordiv(&m, 8) * 8 + floormod(&m, 8), m.clone()),
        ("split twice", floordiv(&m, 64) * 64 + floormod(floordiv(&m, 8), 8) * 8 + floormod(&m, 8), m.clone()),
        ("expanded", (&n + 1) * (&n - 1), &n * &n - 1),
        ("symbolic", floordiv(&m * &n + &i, &n), m.clone()),
        ("symbolic rest", floormod(&m * &n + &i, &n), i.clone()),
        ("symbolic split", floordiv(&m, &n) * &n + floormod(&m, &n), m.clone()),
        ("sum as divisor", floordiv((&n + 1) * 4, &n + 1), int(4)),
        ("nested", floordiv(floordiv(&m, 3), 4), floordiv(&m, 12)),
        ("nested rest", floormod(floormod(&m, 12), 4), floormod(&m, 4)),
        ("minimum", prim::min(&n + 2, &m + 2), prim::min(&m, &n) + 2),
        ("known minimum", prim::min(&i, &n), i.clone()),
        ("rest of a slice", &n - prim::min(&n, 3), prim::max(&n, 3) - 3),
        ("both parts of a slice", prim::min(&n, 3) + (&n - prim::min(&n, 3)), n.clone()),
        ("a minimum and its maximum", prim::min(&n, &m) + prim::max(&n, &m), &n + &m),
        ("maximum of maxima", prim::max(prim::max(&n, 1), 2), prim::max(&n, 2)),
        ("known maximum", prim::max(&n - 1, &i), &n - 1),
        ("negative", floordiv(int(0) - &n, 4) * -1, floordiv(&n + 3, 4)),
        ("truncating", prim::div(&n, 4), floordiv(&n, 4)),
    ];
    for (name, a, b) in cases {
        assert!(an.can_prove_equal(&a, &b), "{name}: {}\n{}", an.simplify(&a), an.simplify(&b));
    }
}

#[test]
fn slices_of_slices_stay_short() {
    let (mut an, [n, ..]) = setting();
    let mut length = n.clone();
    for _ in 0..64 {
        length = an.simplify(&(&length - prim::min(&length, 1)));
    }
    assert!(an.can_prove_equal(&length, &(prim::max(&n, 64) - 64)), "{length}");
    assert!(length.to_string().len() < 40, "{length}");
}

#[test]
fn different_expressions_are_not_found_equal() {
    let (mut an, [n, m, _, b]) = setting();
    let cases = [
        (floordiv(&n, 4) * 4, n.clone()),
        (floordiv(&m * 8 + &b + 1, 8), m.clone()),
        (prim::min(&n, &m), n.clone()),
        (floordiv(floordiv(&m, &n), &n), floordiv(&m, &n)),
    ];
    for (a, b) in cases {
        assert!(!an.can_prove_equal(&a, &b), "{a} {b}");
    }
}

#[test]
fn conditions_are_proved_from_ranges_and_from_each_other() {
    let (mut an, [n, m, i, b]) = setting();
    let tile = floordiv(&n + 3, 4);
    let cases = [
        ("range", prim::lt(&i, &n), true),
        ("range, scaled", prim::lt(&i * 8 + &b, &n * 8), true),
        ("tail may be cut", prim::lt(floordiv(&n, 4) * 4 + 3, &n), false),
        ("tiles cover", prim::ge(&tile * 4, &n), true),
        ("tiles need not fit", prim::le(&tile * 4, &n), false),
        ("rounded down", prim::le(floordiv(&m, 8) * 8, &m), true),
        ("never", prim::not(prim::lt(&b, 0)), true),
        ("divisibility", prim::ne(&n * 2, &m * 4 + 1), true),
        ("flat index", prim::lt(&i * &m + floormod(&b, &m + 1), &n * &m + &m + 1), true),
        ("unknown", prim::lt(&n, &m), false),
        ("implied", prim::or(prim::lt(&n, &m), prim::le(&m, &n)), true),
    ];
    for (name, condition, expected) in cases {
        assert_eq!(an.can_prove(&condition), expected, "{name}");
    }
    let assumed = an.assuming(&prim::lt(&n, &m), |an| an.can_prove(&prim::lt(&i + 1, &m)));
    assert!(assumed);
    assert!(!an.can_prove(&prim::lt(&i + 1, &m)));
}

#[test]
fn a_guard_under_a_guard_goes() {
    let (mut an, [n, m, ..]) = setting();
    let inner = prim::if_then_else(prim::le(&n, &m), &n, &m);
    let e = prim::if_then_else(prim::lt(&n, &m), inner, 0);
    let simple = an.simplify(&e);
    assert!(same(&simple, &prim::if_then_else(prim::lt(&n, &m), &n, 0)), "{simple}");
}

#[test]
fn data_may_overflow_so_only_modular_rules_touch_it() {
    let (mut an, [n, ..]) = setting();
    let a = Buffer::new("A", DataType::int(64), [&n]);
    let x = prim::load(&a, [0]);
    let sum = an.simplify(&((&x + 1) - 1));
    assert!(same(&sum, &x), "{sum:?}");
    for e in [floordiv(&x * 2, 2), prim::lt(&x, &x + 1), prim::max(&x, &x + 1)] {
        let simple = an.simplify(&e);
        assert!(same(&simple, &e), "{simple}");
    }
}

#[test]
fn what_is_already_simple_is_returned_as_it_is() {
    let (mut an, [n, m, ..]) = setting();
    let x = Var::prim("x", DataType::float(32));
    let e = prim::add(&x, 1) * prim::math("exp", PrimExpr::Var(x));
    assert_eq!(an.simplify(&e), e);
    let e = prim::lt(&n, &m);
    assert_eq!(an.simplify(&e), e);
}

#[test]
fn bounds_follow_operators() {
    let (mut an, [n, _, _, b]) = setting();
    let byte = Buffer::new("B", DataType::uint(8), [&n]);
    let cases = [
        (&b * 3 + 1, (Some(1), Some(22))),
        (floormod(&n, 5), (Some(0), Some(4))),
        (floordiv(&b, 3), (Some(0), Some(2))),
        (&n + &b, (Some(0), None)),
        (prim::cast(DataType::int(64), prim::load(&byte, [0])), (Some(0), Some(255))),
        ((&b - 3) * (&b - 3), (Some(-33), Some(58))),
        (prim::call(DataType::int(64), "tirx.shift_left", vec![&b + 1, 2.into()]), (Some(4), Some(32))),
        (prim::call(DataType::int(64), "tirx.shift_left", vec![&b - 1, 2.into()]), (None, None)),
    ];
    for (e, (min, max)) in cases {
        assert_eq!(an.bounds(&e), Bounds { min, max }, "{e}");
    }
}

/// The variables of random expressions: two of known range, one that is only known not to be negative, one unknown.
fn variables() -> &'static [Ref<Var>; 4] {
    static VARS: OnceLock<[Ref<Var>; 4]> = OnceLock::new();
    VARS.get_or_init(|| ["x", "y", "n", "u"].map(Var::dim))
}

pub(super) fn knowing() -> Analyzer {
    let [x, y, n, _] = variables();
    let mut an = Analyzer::new();
    an.bind(x, 0, 8);
    an.mark_non_negative(n);
    an.bind(y, 0, PrimExpr::from(n) + 1);
    an
}

/// The value of an expression; `None` where a divisor is zero or the value leaves 64 bits.
pub(super) fn evaluate(e: &PrimExpr, values: &[i64; 4]) -> Option<i64> {
    Some(match e {
        PrimExpr::Int(n) => n.value,
        PrimExpr::Var(var) => values[variables().iter().position(|v| v == var)?],
        PrimExpr::Binary(n) => prim::fold(n.op, evaluate(&n.a, values)?, evaluate(&n.b, values)?)?,
        PrimExpr::Not(n) => i64::from(evaluate(&n.a, values)? == 0),
        PrimExpr::Select(n) => {
            let (yes, no) = (evaluate(&n.true_value, values), evaluate(&n.false_value, values));
            if evaluate(&n.condition, values)? != 0 { yes? } else { no? }
        }
        _ => return None,
    })
}

pub(super) fn expression() -> impl Strategy<Value = PrimExpr> {
    let leaf = prop_oneof![(0usize..4).prop_map(|i| PrimExpr::from(&variables()[i])), (-9i64..10).prop_map(int),];
    leaf.prop_recursive(4, 24, 3, |inner| {
        use BinaryOp::*;
        let op = prop::sample::select(vec![Add, Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, Div, Mod]);
        let by_constant = prop::sample::select(vec![FloorDiv, FloorMod, Mul]);
        let comparison = prop::sample::select(vec![Lt, Le, Gt, Ge, Eq, Ne]);
        prop_oneof![
            3 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| prim::binary(op, a, b)),
            3 => (by_constant, inner.clone(), -8i64..17).prop_map(|(op, a, c)| prim::binary(op, a, c)),
            1 => (comparison, inner.clone(), inner.clone(), inner.clone(), inner)
                .prop_map(|(op, a, b, yes, no)| prim::select(prim::binary(op, a, b), yes, no)),
        ]
    })
}

pub(super) fn assignment() -> impl Strategy<Value = [i64; 4]> {
    (0i64..8, 0i64..100, 0i64..100, -50i64..50).prop_map(|(x, y, n, u)| [x, y.min(n), n, u])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn simplified_expressions_have_the_same_value(
        e in expression(), values in prop::collection::vec(assignment(), 12),
    ) {
        let simple = knowing().simplify(&e);
        for values in &values {
            // Where the original has no value (a zero divisor), any value is as good.
            if let Some(expected) = evaluate(&e, values) {
                prop_assert_eq!(evaluate(&simple, values), Some(expected), "{}\n{}\n{:?}", e, simple, values);
            }
        }
    }

    #[test]
    fn proved_conditions_hold_and_bounds_bound(
        a in expression(), b in expression(), values in prop::collection::vec(assignment(), 12),
    ) {
        let mut an = knowing();
        let bounds = an.bounds(&a);
        for (op, negated) in [(BinaryOp::Lt, BinaryOp::Ge), (BinaryOp::Eq, BinaryOp::Ne)] {
            let condition = prim::binary(op, &a, &b);
            let proved = an.can_prove(&condition);
            let refuted = an.can_prove(&prim::binary(negated, &a, &b));
            for values in &values {
                let (Some(x), Some(y)) = (evaluate(&a, values), evaluate(&b, values)) else { continue };
                let truth = prim::fold(op, x, y) == Some(1);
                prop_assert!(if truth { !refuted } else { !proved }, "{} at {:?}", condition, values);
                prop_assert!(bounds.min.is_none_or(|min| min <= x) && bounds.max.is_none_or(|max| x <= max));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_said_of_dimensions_holds_for_all_counts(
        a in expression(), b in expression(), counts in prop::collection::vec(prop::array::uniform4(0i64..40), 12),
    ) {
        use crate::arith::dims;
        let (equal, differ, least) = (dims::equal(&a, &b), dims::differ(&a, &b), dims::at_least(&a, 1));
        let simple = dims::simplify(&a);
        for counts in &counts {
            let (Some(x), Some(y)) = (evaluate(&a, counts), evaluate(&b, counts)) else { continue };
            prop_assert!(!equal || x == y, "{} is not {} at {:?}", a, b, counts);
            prop_assert!(!differ || x != y, "{} is {} at {:?}", a, b, counts);
            prop_assert!(!least || x >= 1, "{} is {} at {:?}", a, x, counts);
            prop_assert_eq!(evaluate(&simple, counts), Some(x), "{}\n{}\n{:?}", a, simple, counts);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What was found under an assumption is not kept beyond it, nor what was found before a range became known.
    #[test]
    fn answers_hold_for_what_is_known_when_they_are_asked_for(
        a in expression(), b in expression(), c in expression(), values in prop::collection::vec(assignment(), 12),
    ) {
        let mut an = knowing();
        let (assumed, asked) = (prim::le(&a, &b), prim::lt(&c, &a));
        let sound = |an: &mut Analyzer, holds: &dyn Fn(&[i64; 4]) -> bool| {
            let (proved, simple) = (an.can_prove(&asked), an.simplify(&c));
            let (least, most) = (an.bounds(&c).min, an.bounds(&c).max);
            values.iter().filter(|values| holds(values)).all(|values| {
                let Some(x) = evaluate(&c, values) else { return true };
                let bounded = least.is_none_or(|min| min <= x) && most.is_none_or(|max| x <= max);
                let true_if_proved = !proved || evaluate(&asked, values).is_none_or(|truth| truth == 1);
                bounded && true_if_proved && evaluate(&simple, values) == Some(x)
            })
        };
        let [_, _, _, u] = variables();
        prop_assert!(sound(&mut an, &|_| true), "at first");
        let mark = an.assume(&assumed);
        prop_assert!(sound(&mut an, &|values| evaluate(&assumed, values) == Some(1)), "under {}", assumed);
        an.forget(mark);
        prop_assert!(sound(&mut an, &|_| true), "behind {}", assumed);
        an.mark_at_least(u, 7);
        prop_assert!(sound(&mut an, &|values| values[3] >= 7), "with a range");
        let mark = an.assume(&prim::not(assumed.clone()));
        an.bind(u, 9, &a);
        let within = |values: &[i64; 4]| {
            let end = evaluate(&a, values).map(|a| a + 9);
            evaluate(&assumed, values) == Some(0) && end.is_some_and(|end| (9..end).contains(&values[3]))
        };
        prop_assert!(sound(&mut an, &within), "with another range under the opposite of {}", assumed);
        an.forget(mark);
    }
}

#[test]
fn proofs_by_cases_find_what_rules_do_not() {
    let [(_, a), (_, b), (_, c), (_, d)] = [dim("a"), dim("b"), dim("c"), dim("d")];
    let order = [prim::lt(&a, &b), prim::lt(&b, &c)];
    let found = |known: &[PrimExpr], goal: PrimExpr| solver::follows(known, &goal);
    assert!(found(&[order.as_slice(), &[prim::lt(&a * &d, &b * &d)]].concat(), prim::lt(&b * &d, &c * &d)));
    assert!(!found(&order, prim::lt(&b * &d, &c * &d)), "the factor may be negative");
    let positive = [prim::gt(&a, int(0)), prim::gt(&c, int(0))];
    assert!(found(&positive, prim::le(floordiv(&b - &a, &c) * &c + &a, &b)));
    assert!(!found(&positive, prim::lt(floordiv(&b - &a, &c) * &c + &a, &b)));
    let sixes = [prim::eq(floormod(&a, 6), int(0)), prim::eq(floormod(&b, 6), int(0))];
    assert!(found(&sixes, prim::eq(floormod(&a + &b, 2), int(0))));
    assert!(!found(&sixes, prim::eq(floormod(&a + &b, 4), int(0))));
}

#[test]
fn conditions_that_contradict_each_other_prove_everything_and_nothing_else_does() {
    let (_, a) = dim("a");
    let never = [prim::lt(&a, int(0)), prim::gt(&a, int(0))];
    assert!(solver::follows(&never, &prim::boolean(false)));
    assert!(!solver::follows(&never[..1], &prim::boolean(false)));
    assert!(solver::follows(&[], &prim::boolean(true)));
}
