//! Each builtin through the table of global functions, as compiled code and front ends call it.

use crate::support;
use relaxide_ffi::{Any, AnyView, Array, DataType, Error, Shape, Tensor, get_global};
use relaxide_vm::register;

fn call(name: &str, args: &[Any]) -> Result<Any, Error> {
    register();
    let function = get_global(&format!("vm.builtin.{name}")).unwrap_or_else(|| panic!("no builtin {name}"));
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    function.call(&views)
}

fn float_tensor(shape: &[i64]) -> Any {
    Tensor::zeros(shape, DataType::float(32)).unwrap().into()
}

fn heap() -> Any {
    Tensor::zeros(&[4], DataType::int(64)).unwrap().into()
}

fn shape(dims: &[i64]) -> Any {
    Shape::new(dims).into()
}

fn codes(values: &[i64]) -> impl Iterator<Item = Any> + '_ {
    values.iter().map(|value| Any::from(*value))
}

/// A call with arguments of mixed types.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$(Any::from($value)),*] };
}

const CONTEXT: &str = "ErrorContext(fn=main, loc=param[0], param=x) ";

#[test]
fn checks_pass_and_fail_with_the_context_in_front() {
    let f32 = DataType::float(32);
    let x = || float_tensor(&[3, 4]);
    let pair = || Any::from(vec![1_i64, 2]);
    let cases: Vec<(&str, Vec<Any>, Result<(), &str>)> = vec![
        ("check_tensor_info", args![x(), 2_i64, f32, CONTEXT].to_vec(), Ok(())),
        ("check_tensor_info", args![x(), -1_i64, CONTEXT].to_vec(), Ok(())),
        ("check_tensor_info", args![x(), 3_i64, f32, CONTEXT].to_vec(), Err("expect Tensor with ndim 3 but get 2")),
        (
            "check_tensor_info",
            args![x(), 2_i64, DataType::int(8), CONTEXT].to_vec(),
            Err("expect Tensor with dtype int8 but get float32"),
        ),
        ("check_tensor_info", args![5_i64, 2_i64, f32, CONTEXT].to_vec(), Err("expect a Tensor but get int")),
        ("check_shape_info", args![shape(&[1, 2]), 2_i64, CONTEXT].to_vec(), Ok(())),
        ("check_shape_info", args![shape(&[1, 2]), 3_i64, CONTEXT].to_vec(), Err("expect Shape with ndim 3 but get 2")),
        ("check_shape_info", args![x(), 3_i64, CONTEXT].to_vec(), Err("expect a Shape but get ffi.Tensor")),
        ("check_prim_value_info", args![3_i64, DataType::int(64), CONTEXT].to_vec(), Ok(())),
        ("check_prim_value_info", args![3_i64, f32, CONTEXT].to_vec(), Ok(())),
        ("check_prim_value_info", args![true, DataType::bool(), CONTEXT].to_vec(), Ok(())),
        (
            "check_prim_value_info",
            args![x(), DataType::int(64), CONTEXT].to_vec(),
            Err(", expected dtype int64, but received ffi.Tensor"),
        ),
        ("check_prim_value_info", args![1.5, DataType::int(64), CONTEXT].to_vec(), Err("received float")),
        ("check_string_info", args!["text", CONTEXT].to_vec(), Ok(())),
        ("check_string_info", args![1_i64, CONTEXT].to_vec(), Err("expect a string")),
        ("check_tuple_info", args![pair(), 2_i64, CONTEXT].to_vec(), Ok(())),
        (
            "check_tuple_info",
            args![pair(), 3_i64, CONTEXT].to_vec(),
            Err("expect a Tuple with 3 elements,  but get a Tuple with 2 elements."),
        ),
        ("check_tuple_info", args![x(), 3_i64, CONTEXT].to_vec(), Err("expect a Tuple but get ffi.Tensor")),
        ("check_func_info", args![x(), CONTEXT].to_vec(), Err("expect a Function but get ffi.Tensor")),
    ];
    for (name, args, expected) in cases {
        match (call(name, &args), expected) {
            (Ok(value), Ok(())) => assert!(value.is_none(), "{name}{args:?}"),
            (Err(error), Err(text)) => {
                let message = error.message();
                assert!(
                    message.starts_with("argument `x` of `main`: ") && message.contains(text),
                    "{name}{args:?}: {message}"
                );
            }
            (found, expected) => panic!("{name}{args:?}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn match_shape_checks_and_stores() {
    let heap = heap();
    let matching = |input: Any, heap: &Any, codes_and_regs: &[i64]| {
        let size = codes_and_regs.len() as i64 / 2;
        let args: Vec<Any> = [input, heap.clone(), size.into()]
            .into_iter()
            .chain(codes(codes_and_regs))
            .chain([CONTEXT.into()])
            .collect();
        call("match_shape", &args)
    };
    matching(float_tensor(&[3, 4]), &heap, &[1, 0, 1, 2]).unwrap();
    assert_eq!(heap.to::<Tensor>().unwrap().to_vec::<i64>().unwrap(), [3, 0, 4, 0]);
    matching(shape(&[3, 9, 4, 7]), &heap, &[3, 0, 2, 0, 3, 2, 0, 7]).unwrap();
    let text = |result: Result<Any, Error>| result.unwrap_err().message().to_owned();
    assert_eq!(text(matching(shape(&[3, 5]), &heap, &[0, 3, 0, 6])), "argument `x` of `main`: dimension 1 is 5, not 6");
    assert_eq!(text(matching(shape(&[3, 5]), &heap, &[3, 0, 3, 2])), "argument `x` of `main`: dimension 1 is 5, not 4");
    assert_eq!(text(matching(shape(&[3]), &heap, &[2, 0, 2, 0])), "argument `x` of `main`: it has 1 dimensions, not 2");
    assert!(text(matching(shape(&[3]), &heap, &[1, 4])).contains("place 4"));
    assert!(text(matching(shape(&[3]), &heap, &[9, 0])).contains("no code 9"));
    assert!(text(matching(shape(&[3]), &Any::none(), &[1, 0])).contains("no shape heap"));
    let short = args![shape(&[3]), heap.clone(), i64::MAX, 1_i64];
    assert!(text(call("match_shape", short)).contains("arguments"));
}

#[test]
fn shapes_and_values_are_made_from_the_heap() {
    let heap = heap();
    call("match_prim_value", args![5_i64, heap.clone(), 1_i64, 3_i64, CONTEXT]).unwrap();
    let error = call("match_prim_value", args![6_i64, heap.clone(), 3_i64, 3_i64, CONTEXT]).unwrap_err();
    assert_eq!(error.message(), "argument `x` of `main`: it is 6, not 5");
    let made = call("make_shape", args![heap.clone(), 3_i64, 1_i64, 3_i64, 0_i64, 9_i64, 1_i64, 0_i64]).unwrap();
    assert_eq!(made.to::<Shape>().unwrap().as_slice(), [5, 9, 0]);
    assert_eq!(call("make_prim_value", args![heap, 1_i64, 3_i64]).unwrap().as_int(), Some(5));
    let none = call("make_shape", args![(), 1_i64, 0_i64, 7_i64]).unwrap();
    assert_eq!(none.to::<Shape>().unwrap().as_slice(), [7]);
    assert!(call("make_shape", args![(), 1_i64, 1_i64, 7_i64]).is_err());
}

#[test]
fn conditions_are_read_from_values_and_tensors() {
    let of = |bytes: &[u8], dtype: DataType| Any::from(Tensor::from_bytes(bytes, &[], dtype).unwrap());
    let cases = [
        (true.into(), Some(true)),
        (0_i64.into(), Some(false)),
        (of(&[1], DataType::bool()), Some(true)),
        (of(&[0, 0, 0, 0], DataType::int(32)), Some(false)),
        (of(&[0, 0, 0, 1], DataType::uint(32)), Some(true)),
        (of(&0.0_f32.to_le_bytes(), DataType::float(32)), None),
        (Any::from(Tensor::zeros(&[2], DataType::bool()).unwrap()), None),
        (1.0_f64.into(), None),
    ];
    for (value, expected) in cases {
        let found = call("read_if_cond", std::slice::from_ref(&value));
        assert_eq!(found.ok().and_then(|found| found.to::<bool>().ok()), expected, "{value:?}");
    }
}

#[test]
fn tuples_are_made_and_taken_apart() {
    let tuple = call("make_tuple", args![1_i64, "two", float_tensor(&[1])]).unwrap();
    assert_eq!(tuple.to::<Array>().unwrap().len(), 3);
    assert_eq!(call("tuple_getitem", args![tuple.clone(), 0_i64]).unwrap().as_int(), Some(1));
    for index in [3_i64, -1] {
        let error = call("tuple_getitem", args![tuple.clone(), index]).unwrap_err();
        assert_eq!(error.message(), format!("Index {index} out of bounds 3"));
    }
    call("tuple_reset_item", args![tuple.clone(), 0_i64]).unwrap();
    assert!(call("tuple_reset_item", args![tuple, 3_i64]).is_err());
}

#[test]
fn tensors_become_shapes_and_views() {
    let tensor = Any::from(Tensor::from_slice(&[2_i32, 3], &[2]).unwrap());
    assert_eq!(call("tensor_to_shape", &[tensor]).unwrap().to::<Shape>().unwrap().as_slice(), [2, 3]);
    assert!(call("tensor_to_shape", &[float_tensor(&[2])]).is_err());
    assert!(call("tensor_to_shape", &[Any::from(Tensor::zeros(&[1, 1], DataType::int(64)).unwrap())]).is_err());
    let x = float_tensor(&[3, 4]);
    assert_eq!(call("shape_of", std::slice::from_ref(&x)).unwrap().to::<Shape>().unwrap().as_slice(), [3, 4]);
    let view: Tensor = call("reshape", args![x.clone(), shape(&[2, 6])]).unwrap().to().unwrap();
    assert_eq!((view.shape(), view.data_ptr()), (&[2, 6][..], x.to::<Tensor>().unwrap().data_ptr()));
    let fewer: Tensor = call("reshape", args![x.clone(), shape(&[5])]).unwrap().to().unwrap();
    assert_eq!(fewer.shape(), [5]);
    assert!(call("reshape", args![x.clone(), shape(&[13])]).unwrap_err().message().contains("only contains 48 bytes"));
    let same: Tensor = call("to_device", args![x.clone(), 1_i64, 0_i64]).unwrap().to().unwrap();
    assert_eq!(same.data_ptr(), view.data_ptr());
    assert!(call("to_device", args![x, 2_i64, 0_i64]).unwrap_err().message().contains("cuda:0"));
}

#[test]
fn dynamic_kernels_get_the_shape_as_integers() {
    support::register("test.builtins.join", |x| x.iter().fold(0, |all, digit| all * 10 + digit));
    let function = Any::from(get_global("test.builtins.join").unwrap());
    let joined = call("call_tir_dyn", args![function.clone(), 1_i64, shape(&[2, 3])]).unwrap();
    assert_eq!(joined.as_int(), Some(123));
    assert!(call("call_tir_dyn", args![function.clone(), 1_i64]).is_err());
    assert!(call("call_tir_dyn", &[function]).is_err());
}

#[test]
fn debug_functions_are_called_with_the_line() {
    support::register("test.builtins.debug", |x| x[0]);
    let passed = call("invoke_debug_func", args![7_i64, "test.builtins.debug", 12_i64]).unwrap();
    assert_eq!(passed.as_int(), Some(7));
    let error = call("invoke_debug_func", args![(), "test.builtins.nobody", 12_i64]).unwrap_err();
    assert!(error.message().contains("test.builtins.nobody is not found"), "{error}");
}

#[test]
fn a_false_handle_of_a_machine_is_refused() {
    let errors = [Any::none(), Any::from_ptr(std::ptr::null_mut()), Any::from_ptr(8 as *mut _), 1_i64.into()]
        .map(|vm| call("alloc_storage", args![vm, shape(&[4]), 0_i64, DataType::uint(8), "global"]).unwrap_err());
    for error in errors {
        assert!(error.message().contains("virtual machine") || error.message().contains("alloc_storage"), "{error}");
    }
}

#[test]
fn functions_of_a_front_end_are_called_by_name() {
    support::register("test.builtins.front", |x| x[0] - x[1]);
    let function = Any::from(get_global("test.builtins.front").unwrap());
    let pair = |name: &str| {
        let arguments = Array::from_vec(args![9_i64, 2_i64].to_vec());
        Any::from(Array::from_vec(args![name, arguments].to_vec()))
    };
    call("register_py_func", args!["front", function]).unwrap();
    assert!(call("get_py_func", args!["front"]).unwrap().to::<relaxide_ffi::Function>().is_ok());
    assert_eq!(call("call_py_func", &[pair("front")]).unwrap().as_int(), Some(7));
    let error = call("call_py_func", &[pair("back")]).unwrap_err();
    assert!(error.message().contains("Python function 'back' not found"), "{error}");
    assert!(call("call_py_func", args!["front"]).is_err());
    call("clear_py_func_registry", &[]).unwrap();
    assert!(call("call_py_func", &[pair("front")]).is_err());
}

#[test]
fn a_list_becomes_a_sequence_that_later_values_are_no_part_of() {
    let list = call("list_new", &[]).unwrap();
    call("list_append", args![list.clone(), 7_i64]).unwrap();
    let sequence: Array = call("list_array", args![list.clone()]).unwrap().as_view().to().unwrap();
    call("list_append", args![list, 8_i64]).unwrap();
    assert_eq!(sequence.len(), 1);
    assert!(call("list_array", args![7_i64]).is_err());
    assert!(call("list_array", &[]).is_err());
}

#[test]
fn a_cache_grows_and_shows_the_rows_that_are_in_it() {
    let rows = |values: &[f32]| Tensor::from_slice(values, &[values.len() as i64 / 2, 2]).unwrap();
    let view = |cache: &Any, count: i64| {
        let shape = Shape::new(&[count, 2]);
        call("attention_kv_cache_view", args![cache.clone(), shape])?.as_view().to::<Tensor>()
    };
    let cache = call("attention_kv_cache_create", args![rows(&[1.0, 2.0]), Shape::new(&[1, 2]), 1_i64]).unwrap();
    let first = view(&cache, 1).unwrap();
    for at in 0..5 {
        let value = at as f32;
        call("attention_kv_cache_append", args![cache.clone(), rows(&[value, value, value, -value])]).unwrap();
    }
    let all = view(&cache, 11).unwrap().to_vec::<f32>().unwrap();
    assert_eq!((&all[..4], &all[18..]), ([1.0, 2.0, 0.0, 0.0].as_slice(), [4.0, 4.0, 4.0, -4.0].as_slice()));
    assert_eq!(first.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert!(view(&cache, 10).unwrap_err().message().contains("not [10, 2]"));
    let caches = Any::from(Array::from_vec(vec![cache.clone()]));
    call("attention_kv_cache_array_popn", args![caches.clone(), 9_i64]).unwrap();
    assert_eq!(view(&cache, 2).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 0.0, 0.0]);
    assert!(call("attention_kv_cache_array_popn", args![caches.clone(), 3_i64]).is_err());
    call("attention_kv_cache_update", args![cache.clone(), rows(&[7.0, 8.0])]).unwrap();
    assert_eq!(view(&cache, 1).unwrap().to_vec::<f32>().unwrap(), [7.0, 8.0]);
    call("attention_kv_cache_array_clear", &[caches]).unwrap();
    assert!(view(&cache, 0).is_ok());
    let wide = Tensor::from_slice(&[1.0_f32; 3], &[1, 3]).unwrap();
    assert!(call("attention_kv_cache_append", args![cache, wide]).is_err());
}

/// Rows that hold what is given.
fn rows_with(values: &[Any]) -> Result<Any, Error> {
    let rows = call("rows_new", &[]).unwrap();
    for value in values {
        call("rows_append", args![rows.clone(), value.clone()])?;
    }
    Ok(rows)
}

fn stacked(rows: &Any, from_end: bool) -> Result<Tensor, Error> {
    call("rows_stack", args![rows.clone(), DataType::float(32), Shape::new(&[2]), from_end])?.as_view().to()
}

#[test]
fn rows_become_one_tensor_in_either_order_and_once() {
    // So many that they lie in several pieces of memory.
    let count = 3000;
    let row = |i: usize| Any::from(Tensor::from_slice(&[i as f32, -(i as f32)], &[2]).unwrap());
    let values: Vec<Any> = (0..count).map(row).collect();
    for from_end in [false, true] {
        let rows = rows_with(&values).unwrap();
        let tensor = stacked(&rows, from_end).unwrap();
        assert_eq!(tensor.shape(), [count as i64, 2]);
        let first = |place: usize| if from_end { count - 1 - place } else { place } as f32;
        let wanted: Vec<f32> = (0..count).flat_map(|place| [first(place), -first(place)]).collect();
        assert_eq!(tensor.to_vec::<f32>().unwrap(), wanted);
        assert!(stacked(&rows, from_end).unwrap_err().message().contains("joined before"));
        assert!(call("rows_append", args![rows, row(0)]).is_err());
    }
}

#[test]
fn rows_have_one_shape_and_none_have_the_declared_one() {
    assert_eq!(stacked(&rows_with(&[]).unwrap(), false).unwrap().shape(), [0, 2]);
    let row = |n: i64| Any::from(Tensor::zeros(&[n], DataType::float(32)).unwrap());
    let error = rows_with(&[row(2), row(2), row(3)]).unwrap_err();
    assert!(error.message().contains("row 2 is"), "{error}");
    assert!(rows_with(&[row(2), Any::from(7_i64)]).unwrap_err().message().contains("a row is"));
    let empty = stacked(&rows_with(&[row(0), row(0)]).unwrap(), true).unwrap();
    assert_eq!(empty.shape(), [2, 0]);
    let whole = Any::from(Tensor::zeros(&[2], DataType::int(64)).unwrap());
    assert!(stacked(&rows_with(&[whole]).unwrap(), false).unwrap_err().message().contains("the rows are int64"));
    assert!(stacked(&rows_with(&[Any::from(7_i64)]).unwrap(), false).is_err());
    assert!(call("rows_append", args![7_i64, row(2)]).is_err());
}
