//! What is proved, what is checked before a kernel begins, and what is checked in it.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr};

use super::{Held, hold};
use crate::interp::{self, InterpError};
use crate::{PrimFunc, te};

const F32: DataType = DataType::float(32);
const I64: DataType = DataType::int(64);

/// How many checks a kernel has: before it begins, and in it.
fn checks(func: &PrimFunc) -> (usize, usize) {
    let Held { func, entry } = hold(func);
    (entry.len(), func.to_string().matches("checked_index").count())
}

fn kernel(args: &[te::Tensor]) -> PrimFunc {
    te::create_prim_func(args).unwrap()
}

/// The error of a kernel for some tensors, or its result.
fn run(func: &PrimFunc, args: Vec<Tensor>) -> Result<Tensor, String> {
    let scheduled = crate::schedule::apply(func, &relaxide_ir::Target::default()).unwrap().func;
    let lowered = crate::lower::lower(&scheduled).unwrap();
    let last = args.last().unwrap().clone();
    match interp::run(&lowered, &args.into_iter().map(Into::into).collect::<Vec<_>>()) {
        Ok(_) => Ok(last),
        Err(InterpError::Assertion { message, .. }) => Err(message),
        Err(other) => panic!("{other}\n{lowered}"),
    }
}

#[test]
fn what_guards_ask_for_needs_no_check() {
    let (h, w) = (Var::dim("h"), Var::dim("w"));
    for shape in [[PrimExpr::from(&h), PrimExpr::from(&w)], [prim::int(112), prim::int(112)]] {
        let a = te::placeholder("A", shape.clone(), F32);
        let padded = [&shape[0] + 2, &shape[1] + 2];
        let b = te::compute("B", padded, |at| {
            let place: Vec<PrimExpr> = at.iter().map(|i| i - 1).collect();
            let inside = place.iter().zip(&shape).map(|(i, n)| prim::and(prim::ge(i, 0), prim::lt(i, n)));
            let inside = inside.reduce(prim::and).unwrap();
            prim::if_then_else(inside, a.at(&place), prim::float_of(F32, 0.0))
        });
        assert_eq!(checks(&kernel(&[a.clone(), b])), (0, 0), "{shape:?}");
    }
}

#[test]
fn data_is_proved_by_its_form_or_checked() {
    let n = Var::dim("n");
    let size = PrimExpr::from(&n);
    let a = te::placeholder("A", [&size], F32);
    let i = te::placeholder("I", [prim::int(4)], I64);
    let gather = |f: &dyn Fn(PrimExpr) -> PrimExpr| {
        let b = te::compute("B", [4i64], |at| a.at(&[f(i.at(at))]));
        checks(&kernel(&[a.clone(), i.clone(), b]))
    };
    let some = prim::gt(&size, 0);
    let zero = prim::float_of(F32, 0.0);
    assert_eq!(gather(&|i| i), (0, 1));
    assert_eq!(gather(&|i| prim::select(prim::lt(&i, 0), &i + &size, i)), (0, 1));
    // A maximum of zero is no index of a tensor without elements.
    assert_eq!(gather(&|i| prim::max(prim::min(i, &size - 1), 0)), (1, 0));
    let clipped = te::compute("B", [4i64], |at| {
        let place = prim::max(prim::min(i.at(at), &size - 1), 0);
        prim::if_then_else(some.clone(), a.at(&[place]), zero.clone())
    });
    assert_eq!(checks(&kernel(&[a.clone(), i.clone(), clipped])), (0, 0));
    let asked = te::compute("B", [4i64], |at| {
        let place = i.at(at);
        let inside = prim::and(prim::ge(&place, 0), prim::lt(&place, &size));
        prim::if_then_else(inside, a.at(&[place]), zero.clone())
    });
    assert_eq!(checks(&kernel(&[a.clone(), i.clone(), asked])), (0, 0));
}

#[test]
fn lengths_that_do_not_fit_are_found_before_anything_is_read() {
    let (n, m) = (Var::dim("n"), Var::dim("m"));
    let (a, b) = (te::placeholder("A", [&n], F32), te::placeholder("B", [&m], F32));
    let c = te::compute("C", [&n], |i| a.at(i) + b.at(i));
    let func = kernel(&[a, b, c]);
    assert_eq!(checks(&func), (1, 0));
    let vector = |n: usize| Tensor::from_slice(&vec![1f32; n], &[n as i64]).unwrap();
    assert!(run(&func, vec![vector(3), vector(5), vector(3)]).is_ok());
    assert!(run(&func, vec![vector(0), vector(0), vector(0)]).is_ok());
    let error = run(&func, vec![vector(5), vector(3), vector(5)]).unwrap_err();
    assert_eq!(error, "index 4 of buffer `B` along dimension 0 is outside of the extent 3");
}

#[test]
fn what_is_clamped_or_wrapped_around_needs_an_element_and_no_more() {
    let n = Var::dim("n");
    let size = PrimExpr::from(&n);
    let a = te::placeholder("A", [&size], F32);
    let wrapped: &dyn Fn(&PrimExpr) -> PrimExpr = &|i| prim::floormod(i - 1, &size);
    let clamped: &dyn Fn(&PrimExpr) -> PrimExpr = &|i| prim::max(prim::min(i - 1, &size - 1), 0);
    for (place, first) in [(wrapped, 3.0), (clamped, 1.0)] {
        let b = te::compute("B", [&size + 2], |at| a.at(&[place(&at[0])]));
        let func = kernel(&[a.clone(), b]);
        assert_eq!(checks(&func), (1, 0), "{func}");
        let source = |values: &[f32]| Tensor::from_slice(values, &[values.len() as i64]).unwrap();
        let result = run(&func, vec![source(&[1.0, 2.0, 3.0]), Tensor::zeros(&[5], F32).unwrap()]).unwrap();
        assert_eq!(result.to_vec::<f32>().unwrap()[0], first);
        let error = run(&func, vec![source(&[]), Tensor::zeros(&[2], F32).unwrap()]).unwrap_err();
        assert_eq!(error, "index 0 of buffer `A` along dimension 0 is outside of the extent 0");
    }
}

#[test]
fn the_error_shows_the_index_as_it_was_given() {
    let a = te::placeholder("A", [prim::int(3), prim::int(2)], F32);
    let i = te::placeholder("I", [prim::int(4)], I64);
    let b = te::compute("B", [4i64, 2], |at| {
        let i = i.at(&at[..1]);
        a.at(&[prim::select(prim::lt(&i, 0), &i + 3, i), at[1].clone()])
    });
    let func = kernel(&[a, i, b]);
    let data = || Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]).unwrap();
    let out = || Tensor::zeros(&[4, 2], F32).unwrap();
    let of = |list: [i64; 4]| run(&func, vec![data(), Tensor::from_slice(&list, &[4]).unwrap(), out()]);
    assert!(of([0, -3, 2, -1]).is_ok());
    for (wrong, at) in [(3, 2), (-4, 0), (i64::MIN, 1), (i64::MAX, 3)] {
        let mut list = [0; 4];
        list[at] = wrong;
        let expected = format!("index {wrong} of buffer `A` along dimension 0 is outside of the extent 3");
        assert_eq!(of(list).unwrap_err(), expected);
    }
}
