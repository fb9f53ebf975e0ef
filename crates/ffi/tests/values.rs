//! Values: what goes in comes out, what does not fit is refused, and counts survive threads and random handling.

use proptest::prelude::*;
use relaxide_ffi::{
    Any, Array, Bytes, DataType, Device, ErrorKind, FreeVars, Function, Handle, List, Map, Object, Ref, Shape, Str,
    Tensor, structural_equal, structural_hash,
};

#[derive(Object, Debug)]
#[object(key = "test.Cell")]
struct Cell {
    n: i64,
}

#[test]
fn plain_values_convert_as_the_interface_says() {
    assert_eq!(Any::from(true).to::<i64>().unwrap(), 1);
    assert!(Any::from(2i64).to::<bool>().unwrap());
    assert_eq!(Any::from(2i64).to::<f64>().unwrap(), 2.0);
    assert_eq!(Any::from("float32").to::<DataType>().unwrap(), DataType::float(32));
    assert!(Any::from(2.5f64).to::<i64>().unwrap_err().is(ErrorKind::TypeError));
    assert!(Any::from(300i64).to::<u8>().unwrap_err().is(ErrorKind::OverflowError));
    assert!(Any::from(-1i64).to::<usize>().unwrap_err().is(ErrorKind::OverflowError));
    assert!(Any::from("1").to::<i64>().is_err());
    assert_eq!(Any::none().to::<Option<i64>>().unwrap(), None);
    assert_eq!(Any::from(Some(3i64)).to::<Option<i64>>().unwrap(), Some(3));
    assert_eq!(Any::from(Device::new(2, 1)).to::<Device>().unwrap(), Device::new(2, 1));
    Any::from(()).to::<()>().unwrap();
    let error = Any::from(vec![Any::from(1i64), Any::from("x")]).to::<Vec<i64>>().unwrap_err();
    assert_eq!(error.to_string(), "TypeError: element 1: expected `int` but got `ffi.SmallStr`");
}

#[test]
fn sequences_and_maps_convert_to_each_other_by_copy() {
    let list = List::from_vec(vec![1i64.into(), 2i64.into()]);
    let array: Array = Any::from(&list).to().unwrap();
    list.push(3i64);
    assert_eq!(array.len(), 2);
    assert_eq!(Any::from(&list).to::<Vec<i64>>().unwrap(), [1, 2, 3]);
    let thawed: List = Any::from(&array).to().unwrap();
    thawed.push(4i64);
    assert_eq!((array.len(), thawed.len()), (2, 3));
    let map: Map = [("a", 1i64), ("b", 2)].into_iter().collect();
    let typed: indexmap::IndexMap<String, i64> = Any::from(&map).to().unwrap();
    assert_eq!(typed["b"], 2);
    assert_eq!(format!("{map:?} {array:?}"), r#"{"a": 1, "b": 2} [1, 2]"#);
}

#[test]
fn equal_containers_have_equal_hashes_in_any_order_of_keys() {
    let a: Map = [("a", Any::from("a long value")), ("b", Any::from(vec![1.0f64, f64::NAN]))].into_iter().collect();
    let b: Map = [("b", Any::from(vec![1.0f64, -f64::NAN])), ("a", Any::from("a long value"))].into_iter().collect();
    assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
    assert_eq!(structural_hash(&a, FreeVars::Same), structural_hash(&b, FreeVars::Same));
    let c: Map = [("a", 1i64), ("c", 2)].into_iter().collect();
    let mismatch = structural_equal(&a, &c, FreeVars::Same).unwrap_err();
    assert!(mismatch.to_string().starts_with("at <root>[\"a\"]: "), "{mismatch}");
    let f = Function::typed(|| Ok::<_, relaxide_ffi::Error>(()));
    assert!(structural_equal(&f, &f.clone(), FreeVars::Same).is_ok(), "functions equal themselves");
    assert!(structural_equal(&f, &Function::typed(|| Ok::<_, relaxide_ffi::Error>(())), FreeVars::Same).is_err());
}

#[test]
fn counts_are_right_after_many_threads() {
    let cell = Ref::new(Cell { n: 1 });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    let weak = Ref::downgrade(&cell);
                    let value = Any::from(cell.clone());
                    assert_eq!(value.to::<Ref<Cell>>().unwrap().n, 1);
                    drop(value);
                    assert!(weak.upgrade().is_some());
                }
            });
        }
    });
    assert_eq!((Ref::strong_count(&cell), cell.as_object().header().weak_count()), (1, 0));
}

/// One thing that a program does with values.
#[derive(Clone, Debug)]
enum Step {
    Copy(usize),
    Drop(usize),
    Wrap(usize, usize),
    View(usize),
    Downcast(usize),
    ThroughCall(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0..8usize;
    let step = prop_oneof![
        at.clone().prop_map(Step::Copy),
        at.clone().prop_map(Step::Drop),
        (at.clone(), at.clone()).prop_map(|(a, b)| Step::Wrap(a, b)),
        at.clone().prop_map(Step::View),
        at.clone().prop_map(Step::Downcast),
        at.prop_map(Step::ThroughCall),
    ];
    proptest::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn whatever_is_done_with_values_no_reference_is_lost_or_left(steps in steps()) {
        let cell = Ref::new(Cell { n: 5 });
        let identity = Function::new(|args| Ok(args[0].to_owned()));
        let mut values: Vec<Any> = vec![Any::from(&cell), Any::from("some longer text"), Any::from(1.5f64)];
        for step in steps {
            let pick = |at: usize| (!values.is_empty()).then(|| values[at % values.len()].clone());
            match step {
                Step::Copy(at) => values.extend(pick(at)),
                Step::Drop(at) if !values.is_empty() => drop(values.swap_remove(at % values.len())),
                Step::Drop(_) => {}
                Step::Wrap(a, b) => values.push(pick(a).into_iter().chain(pick(b)).collect::<Array>().into()),
                Step::View(at) => values.extend(pick(at).map(|value| value.as_view().to_owned())),
                Step::Downcast(at) => {
                    if let Some(Ok(cell)) = pick(at).map(|value| value.to::<Ref<Cell>>()) {
                        values.push(cell.into());
                    }
                }
                Step::ThroughCall(at) => {
                    if let Some(value) = pick(at) {
                        values.push(identity.call(&[value.as_view()]).unwrap());
                    }
                }
            }
        }
        // As many references as a walk over what is left can find: one per value that is the cell, counted once per
        // array however often that array is held.
        let mut seen = std::collections::HashSet::new();
        let mut pending: Vec<Any> = values.clone();
        let mut found = 0;
        while let Some(value) = pending.pop() {
            if value.to::<Ref<Cell>>().is_ok() {
                found += 1;
            } else if let Ok(array) = value.to::<Array>() && seen.insert(array.clone()) {
                pending.extend(array.to_vec());
            }
        }
        prop_assert_eq!(Ref::strong_count(&cell), found + 1);
        drop((values, pending, seen));
        prop_assert_eq!(Ref::strong_count(&cell), 1);
    }

    #[test]
    fn numbers_come_back(int in any::<i64>(), float in any::<f64>(), flag in any::<bool>(), small in any::<i32>()) {
        prop_assert_eq!(Any::from(int).to::<i64>().unwrap(), int);
        prop_assert_eq!(Any::from(float).to::<f64>().unwrap().to_bits(), float.to_bits());
        prop_assert_eq!(Any::from(flag).to::<bool>().unwrap(), flag);
        prop_assert_eq!(Any::from(small).to::<i32>().unwrap(), small);
        prop_assert_eq!(Any::from(int).to::<i32>().ok(), i32::try_from(int).ok());
    }

    #[test]
    fn a_value_never_converts_to_what_it_is_not(which in 0usize..8) {
        let values = [
            Any::none(), Any::from(1i64), Any::from("text"), Any::from(Bytes::new(b"bytes of some length")),
            Any::from(Shape::from([1, 2])), Any::from(Tensor::zeros(&[1], DataType::int(8)).unwrap()),
            Any::from(Ref::new(Cell { n: 0 })), Any::from(DataType::bool()),
        ];
        let value = &values[which];
        prop_assert_eq!(value.to::<Tensor>().is_ok(), which == 5);
        prop_assert_eq!(value.to::<Ref<Cell>>().is_ok(), which == 6);
        prop_assert_eq!(value.to::<Shape>().is_ok(), which == 4);
        prop_assert_eq!(value.to::<Bytes>().is_ok(), which == 3);
        prop_assert_eq!(value.to::<Str>().is_ok(), which == 2);
        prop_assert_eq!(value.to::<()>().is_ok(), which == 0);
        prop_assert_eq!(value.to::<Device>().is_ok(), false);
    }
}
