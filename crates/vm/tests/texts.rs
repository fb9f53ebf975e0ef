//! Builtins over texts, through the table of global functions, with wrong arguments too.

use relaxide_ffi::{Any, AnyView, Array, DataType, Error, Map, Tensor, get_global};
use relaxide_vm::{TextTensor, register};

fn call(name: &str, args: &[Any]) -> Result<Any, Error> {
    register();
    let function = get_global(&format!("relaxide.vm.{name}")).unwrap_or_else(|| panic!("no builtin {name}"));
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    function.call(&views)
}

fn array(texts: &[&str]) -> Array {
    texts.iter().map(|text| Any::from(*text)).collect()
}

fn tensor(texts: &[&str]) -> Any {
    TextTensor::new(&[texts.len() as i64], array(texts)).unwrap().into()
}

fn packed(texts: &[&str]) -> Any {
    let bytes: Vec<u8> = texts.concat().into_bytes();
    let mut bounds = vec![0i64];
    for text in texts {
        bounds.push(bounds.last().unwrap() + text.len() as i64);
    }
    let bytes = Tensor::from_bytes(&bytes, &[bytes.len() as i64], DataType::uint(8)).unwrap();
    let bounds = Tensor::from_slice(&bounds, &[bounds.len() as i64]).unwrap();
    Any::from(vec![Any::from(bytes), Any::from(bounds)])
}

fn whole(values: &[i64]) -> Any {
    Tensor::from_slice(values, &[values.len() as i64]).unwrap().into()
}

fn texts_of(value: &Any) -> (Vec<i64>, Vec<String>) {
    let tensor = value.downcast_ref::<TextTensor>().expect("a tensor of texts");
    (tensor.shape.to_vec(), tensor.iter().map(str::to_string).collect())
}

fn numbers(value: Any) -> Vec<i64> {
    value.to::<Tensor>().unwrap().to_vec::<i64>().unwrap()
}

#[test]
fn arrays_of_texts_are_tensors_of_their_depth() {
    let nested = Any::from(vec![Any::from(array(&["a", "b"])), Any::from(array(&["c", "d"]))]);
    let (shape, texts) = texts_of(&call("text_tensor", &[nested.clone(), 2i64.into()]).unwrap());
    assert_eq!((shape, texts.concat()), (vec![2, 2], "abcd".to_string()));
    let (shape, texts) = texts_of(&call("text_tensor", &[Any::from("one"), 0i64.into()]).unwrap());
    assert_eq!((shape, texts), (vec![], vec!["one".to_string()]));
    let ragged = Any::from(vec![Any::from(array(&["a"])), Any::from(array(&[]))]);
    for (value, rank) in [(nested, 1i64), (ragged, 2), (Any::from(3i64), 0), (whole(&[1]), 1), (tensor(&["a"]), 2)] {
        assert!(call("text_tensor", &[value, rank.into()]).is_err());
    }
}

#[test]
fn both_kinds_of_tables_give_the_same() {
    let words = ["b", "", "zoë", "b"];
    for table in [tensor(&words), packed(&words)] {
        let (_, chosen) = texts_of(&call("texts", &[whole(&[2, 0]), table.clone()]).unwrap());
        assert_eq!(chosen, ["zoë", "b"]);
        assert!(call("texts", &[whole(&[4]), table.clone()]).is_err());
        assert!(call("texts", &[whole(&[-1]), table.clone()]).is_err());
        let keys = packed(&["", "a", "b"]);
        assert_eq!(numbers(call("text_places", &[table.clone(), keys]).unwrap()), [2, 0, 3, 2]);
        assert_eq!(numbers(call("text_ids", &[table]).unwrap()), [0, 1, 2, 0]);
    }
}

#[test]
fn tables_that_are_none_are_refused() {
    let bytes = |bytes: &[u8]| Any::from(Tensor::from_bytes(bytes, &[bytes.len() as i64], DataType::uint(8)).unwrap());
    let pairs = [
        (bytes(b"abc"), whole(&[0, 4])),
        (bytes(b"abc"), whole(&[2, 1])),
        (bytes(b"abc"), whole(&[-1, 1])),
        (bytes(b"abc"), whole(&[])),
        (bytes(b"\xff"), whole(&[0, 1])),
        (whole(&[1]), whole(&[0, 1])),
    ];
    for (bytes, bounds) in pairs {
        assert!(call("text_ids", &[Any::from(vec![bytes, bounds])]).is_err());
    }
    assert!(call("text_ids", &[Any::from(3i64)]).is_err());
}

#[test]
fn texts_are_split_and_matched() {
    let parts = |delimiter: &str, most: i64| {
        let table = tensor(&["a  b c", "", ",x,"]);
        let both: Array = call("text_split", &[table, delimiter.into(), most.into()]).unwrap().to().unwrap();
        (texts_of(both.get(0).unwrap()), numbers(both.get(1).unwrap().clone()))
    };
    let ((shape, texts), counts) = parts("", 9);
    assert_eq!((shape, counts), (vec![3, 3], vec![3, 0, 1]));
    assert_eq!(texts[..3], ["a", "b", "c"]);
    let ((shape, _), counts) = parts(",", 1);
    assert_eq!((shape, counts), (vec![3, 2], vec![1, 0, 2]));
    let matched = call("text_matches", &[tensor(&["ab", "abc", ""]), "a.?".into()]).unwrap().to::<Tensor>().unwrap();
    assert_eq!(matched.to_bytes().unwrap(), [1, 0, 0]);
    assert!(call("text_matches", &[tensor(&["a"]), "(".into()]).is_err());
}

#[test]
fn maps_are_made_of_rows_and_rows_of_maps() {
    let scores: Any = Tensor::from_slice(&[0.5f32, 1.5, 2.5, 3.5], &[2, 2]).unwrap().into();
    let maps: Array = call("zip_map", &[scores.clone(), packed(&["no", "yes"])]).unwrap().to().unwrap();
    let second: Map = maps.get(1).unwrap().to().unwrap();
    assert_eq!(second.get("yes").and_then(Any::as_float), Some(3.5));
    assert!(call("zip_map", &[scores.clone(), whole(&[1])]).is_err());
    assert!(call("zip_map", &[whole(&[1, 2]), whole(&[1, 2])]).is_err());
    let keys = packed(&["no", "maybe"]);
    let row = call("map_values", &[second.into(), keys.clone(), DataType::float(32).into()]).unwrap();
    assert_eq!(row.to::<Tensor>().unwrap().to_vec::<f32>().unwrap(), [2.5, 0.0]);
    assert!(call("map_values", &[scores, keys, DataType::float(32).into()]).is_err());
}

#[test]
fn numbers_are_read_and_refused() {
    let read = |text: &str, dtype: DataType| call("text_numbers", &[tensor(&[text]), dtype.into()]);
    assert_eq!(numbers(read(" -7", DataType::int(64)).unwrap()), [-7]);
    for (text, dtype) in
        [("1.5", DataType::int(64)), ("300", DataType::uint(8)), ("x", DataType::float(32)), ("+-1", DataType::int(64))]
    {
        assert!(read(text, dtype).is_err(), "{text}");
    }
}
