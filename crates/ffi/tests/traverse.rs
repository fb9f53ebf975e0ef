//! Visiting and rewriting by structure, through the functions that front ends use.

use std::sync::{Arc, Mutex};

use relaxide_ffi::{Any, AnyView, Array, Dict, Error, Function, Map, get_global};

const ANY: i64 = -1;
const BEFORE: i64 = 0;
const AFTER: i64 = 1;

fn call(name: &str, args: &[Any]) -> Result<Any, Error> {
    let args: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    get_global(name).unwrap().call(&args)
}

fn callbacks(entries: &[(i64, &Function)]) -> Any {
    let entries = entries.iter().map(|(index, function)| Any::from(vec![Any::from(*index), Any::from(*function)]));
    entries.collect::<Array>().into()
}

fn int_index() -> i64 {
    Any::from(1i64).type_index().into()
}

/// `[1, {"a": [2, 3]}]`
fn graph() -> Any {
    let inner = Any::from(vec![2i64, 3]);
    let map: Map = [("a", inner)].into_iter().collect();
    vec![Any::from(1i64), map.into()].into()
}

#[test]
fn a_walk_sees_values_in_order_and_never_keys() {
    for (order, expected) in [(BEFORE, "A 1 M A 2 3"), (AFTER, "1 2 3 A M A")] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let note = Function::new(move |args| {
            let text = args[0].as_int().map_or_else(|| args[0].type_key()[4..5].to_string(), |int| int.to_string());
            log.lock().unwrap().push(text);
            Ok(Any::none())
        });
        let none = Any::from(Array::empty());
        let result = call("ffi.StructuralWalk", &[graph(), callbacks(&[(ANY, &note)]), none, order.into()]).unwrap();
        assert!(result.is_none());
        assert_eq!(seen.lock().unwrap().join(" "), expected);
    }
}

#[test]
fn a_callback_ends_a_walk_or_fails_it() {
    let stop = Function::new(|args| match args[0].as_int() {
        Some(2) => call("ffi.VisitInterrupt", &["found".into()]),
        _ => Ok(Any::none()),
    });
    let walk = |callback: &Function| {
        let callbacks = callbacks(&[(int_index(), callback)]);
        call("ffi.StructuralWalk", &[graph(), callbacks, Array::empty().into(), BEFORE.into()])
    };
    let interrupt = walk(&stop).unwrap();
    assert_eq!(interrupt.as_object().unwrap().field("value").unwrap().as_str(), Some("found"));
    let fail = Function::new(|_| Err(Error::new("KeyError", "no")));
    assert_eq!(walk(&fail).unwrap_err().to_string(), "KeyError: no");
    let nonsense = Function::new(|_| Ok("text".into()));
    assert!(walk(&nonsense).unwrap_err().message().contains("WalkResult"));
    let panics = Function::new(|_| panic!("in a callback"));
    assert!(walk(&panics).unwrap_err().message().contains("in a callback"));
}

#[test]
fn a_map_copies_what_changes_and_shares_the_rest() {
    let root = graph();
    let twice = Function::new(|args| {
        Ok((args[0].as_int().unwrap_or(0) * if args[0].as_int() == Some(1) { 2 } else { 1 }).into())
    });
    let none = || Any::from(Array::empty());
    let new = call("ffi.StructuralMap", &[root.clone(), callbacks(&[(int_index(), &twice)]), none(), AFTER.into()]);
    let (old, new): (Array, Array) = (root.to().unwrap(), new.unwrap().to().unwrap());
    assert_eq!((old.get(0).unwrap().as_int(), new.get(0).unwrap().as_int()), (Some(1), Some(2)));
    assert_eq!(old.get(1).unwrap().as_object(), new.get(1).unwrap().as_object(), "the map did not change");
    let keep = Function::new(|args| Ok(args[0].to_owned()));
    let same = call("ffi.StructuralMap", &[root.clone(), callbacks(&[(ANY, &keep)]), none(), BEFORE.into()]).unwrap();
    assert_eq!(same.as_object(), root.as_object());
}

#[test]
fn a_mutation_goes_where_the_callback_sends_it() {
    let dict: Dict = [("a", 1i64), ("b", 2)].into_iter().collect();
    let add = Function::new(|args| Ok((args[0].as_int().unwrap_or(0) + 10).into()));
    let new = call("ffi.StructuralMutate", &[Any::from(&dict), callbacks(&[(int_index(), &add)])]).unwrap();
    let new: Dict = new.to().unwrap();
    assert_eq!((new.get("a").unwrap().as_int(), dict.get("a").unwrap().as_int()), (Some(11), Some(1)));
    let default =
        Function::new(|args| call("ffi.StructuralMutatorDefaultMutate", &[args[1].to_owned(), args[0].to_owned()]));
    let array = i64::from(Any::from(Array::empty()).type_index());
    let new = call("ffi.StructuralMutate", &[graph(), callbacks(&[(array, &default), (int_index(), &add)])]).unwrap();
    assert_eq!(new.to::<Array>().unwrap().get(0).unwrap().as_int(), Some(11));
}

#[test]
fn depth_ends_in_an_error_and_not_in_the_stack() {
    let deep = (0..3_000).fold(Any::from(1i64), |inner, _| Any::from(vec![inner]));
    let keep = Function::new(|args| Ok(args[0].to_owned()));
    let none = || Any::from(Array::empty());
    for name in ["ffi.StructuralWalk", "ffi.StructuralMap"] {
        let error = call(name, &[deep.clone(), callbacks(&[(int_index(), &keep)]), none(), AFTER.into()]).unwrap_err();
        assert!(error.message().contains("deep"), "{error}");
    }
}
