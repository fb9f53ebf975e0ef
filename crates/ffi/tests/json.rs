//! JSON text and JSON graphs: what is written reads back, and what is damaged ends in an error or a value.

use proptest::prelude::*;
use relaxide_ffi::json::{from_graph, parse, stringify, to_graph};
use relaxide_ffi::{
    Any, Array, BigInt, Bytes, CompareOptions, DataType, Device, Dict, List, Map, Object, Ref, Shape, Tensor,
    first_mismatch, value_hash,
};

#[derive(Object)]
#[object(key = "test.json.Node")]
struct Node {
    name: String,
    weight: f64,
    count: i64,
    flag: bool,
    parts: Any,
}

fn is_same(a: &Any, b: &Any) -> bool {
    first_mismatch(a, b, CompareOptions::default()).unwrap().is_none()
        && value_hash(a, CompareOptions::default()).unwrap() == value_hash(b, CompareOptions::default()).unwrap()
}

/// What JSON text can say.
///
/// The interface writes whole floats from 2^53 to 1e17 without a point, so that they read back as integers; they are left
/// out.
fn json_value() -> impl Strategy<Value = Any> {
    let leaf = prop_oneof![
        Just(Any::none()),
        any::<bool>().prop_map(Any::from),
        any::<i64>().prop_map(Any::from),
        any::<f64>()
            .prop_filter("without a point", |float| float.fract() != 0.0 || !(9e15..1e17).contains(&float.abs()))
            .prop_map(Any::from),
        "\\PC{0,12}".prop_map(|text| Any::from(text.as_str())),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let entries = prop::collection::vec(("\\PC{0,9}", inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(|values| Any::from(Array::from_vec(values))),
            entries.prop_map(|entries| {
                let entries = entries.iter().map(|(key, value)| (key.as_str(), value.clone()));
                Any::from(entries.collect::<Map>())
            }),
        ]
    })
}

/// What a graph can hold.
fn graph_value() -> impl Strategy<Value = Any> {
    let leaf = prop_oneof![
        json_value(),
        "-?[1-9][0-9]{20,60}".prop_map(|digits| BigInt::parse(&digits).unwrap()),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Any::from(Bytes::new(&bytes))),
        prop::collection::vec(any::<i64>(), 0..5).prop_map(|dims| Any::from(Shape::new(&dims))),
        (0u8..3, 1u8..65, 1u16..9).prop_map(|(code, bits, lanes)| DataType { code, bits, lanes }.into()),
        (1i32..17, 0i32..9).prop_map(|(kind, id)| Device::new(kind, id).into()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let values = prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            values.clone().prop_map(|values| Any::from(List::from_vec(values))),
            values.clone().prop_map(|values| Any::from(Array::from_vec(values))),
            values.prop_map(|values| (-2i64..).zip(values).collect::<Dict>().into()),
            ("\\PC{0,12}", any::<f64>(), any::<i64>(), any::<bool>(), inner).prop_map(
                |(name, weight, count, flag, parts)| Ref::new(Node { name, weight, count, flag, parts }).into()
            ),
        ]
    })
}

proptest! {
    #[test]
    fn text_reads_back(value in json_value(), indent in 0usize..4) {
        let text = stringify(&value, indent).unwrap();
        let again = parse(&text).unwrap();
        prop_assert!(is_same(&value, &again), "{}", text);
        prop_assert_eq!(stringify(&again, indent).unwrap(), text);
    }

    #[test]
    fn graphs_read_back(value in graph_value()) {
        let text = stringify(&to_graph(&value, &Any::none()).unwrap(), 0).unwrap();
        let again = from_graph(&parse(&text).unwrap()).unwrap();
        prop_assert!(is_same(&value, &again), "{}", text);
        prop_assert_eq!(stringify(&to_graph(&again, &Any::none()).unwrap(), 0).unwrap(), text);
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in "[\\[\\]{},:\"\\\\0-9eE.+\\-tfnNIaulrse u]{0,40}") {
        if let Ok(value) = parse(&text) {
            let written = stringify(&value, 0).unwrap();
            prop_assert!(is_same(&value, &parse(&written).unwrap()), "{}", text);
        }
    }

    #[test]
    fn damaged_graphs_are_errors_or_values(value in graph_value(), damage in prop::collection::vec((any::<u16>(), 0u8..128), 1..4)) {
        let mut text = stringify(&to_graph(&value, &Any::none()).unwrap(), 0).unwrap().into_bytes();
        for (place, byte) in damage {
            let place = usize::from(place) % text.len();
            text[place] = byte;
        }
        if let Ok(graph) = String::from_utf8(text).map_err(drop).and_then(|text| parse(&text).map_err(drop))
            && let Ok(value) = from_graph(&graph)
        {
            to_graph(&value, &Any::none()).unwrap();
        }
    }
}

#[test]
fn shared_parts_are_written_once() {
    let part = Any::from(List::from_vec(vec![1i64.into()]));
    let node =
        |parts: &Any| Ref::new(Node { name: "n".into(), weight: 1.0, count: 2, flag: true, parts: parts.clone() });
    let value: Any = vec![Any::from(node(&part)), node(&part).into()].into();
    let graph = to_graph(&value, &Any::none()).unwrap();
    let again: Array = from_graph(&graph).unwrap().to().unwrap();
    let parts = |position: usize| again.get(position).unwrap().as_object().unwrap().field("parts").unwrap();
    assert_eq!(parts(0).as_object(), parts(1).as_object());
    assert_ne!(again.get(0).unwrap().as_object(), again.get(1).unwrap().as_object());
}

#[test]
fn what_no_graph_can_hold_is_refused_when_it_is_written() {
    let tensor = Tensor::from_slice(&[1.5f32], &[1]).unwrap();
    let error = to_graph(&vec![Any::from(tensor)].into(), &Any::none()).unwrap_err();
    assert!(error.to_string().starts_with("TypeError: Type `ffi.Tensor` does not support ToJSONGraph"), "{error}");
}

#[test]
fn deep_graphs_compare_and_hash_or_fail_without_the_stack() {
    let chain = || (0..200_000).fold(Any::from(1i64), |inner, _| Any::from(vec![inner]));
    let (a, b) = (chain(), chain());
    if let Err(error) = first_mismatch(&a, &b, CompareOptions::default()) {
        assert!(error.message().contains("nested"), "{error}");
    }
    if let Err(error) = value_hash(&a, CompareOptions::default()) {
        assert!(error.message().contains("nested"), "{error}");
    }
    if let Err(error) = to_graph(&a, &Any::none()) {
        assert!(error.message().contains("nested"), "{error}");
    }
}
