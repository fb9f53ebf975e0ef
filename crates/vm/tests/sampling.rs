//! Draws, penalties and the tensor cache, against what real TVM 0.27 answers to the same calls.

use relaxide_ffi::{Any, AnyView, Array, DataType, Error, Module, Tensor, get_global};
use relaxide_vm::register;

/// A call with arguments of mixed types.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$(Any::from($value)),*] };
}

fn call(name: &str, args: &[Any]) -> Result<Any, Error> {
    register();
    let function = get_global(&format!("vm.builtin.{name}")).unwrap_or_else(|| panic!("no builtin {name}"));
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    function.call(&views)
}

fn row(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[1, values.len() as i64]).unwrap()
}

fn ids(values: &[i32]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64]).unwrap()
}

const LOGITS: [f32; 5] = [1.0, 2.0, 0.5, 3.0, -1.0];

#[test]
fn draws_from_scores_are_tvms() {
    let cases = [
        (1.0, 0.9, 0.1, 3),
        (1.0, 0.9, 0.5, 3),
        (1.0, 0.9, 0.7, 1),
        (1.0, 0.9, 0.9, 1),
        (1.0, 0.9, 0.999, 0),
        (0.5, 0.3, 0.5, 3),
        (0.0, 0.9, 0.9, 3),
        (1e-7, 0.9, 0.9, 3),
        (2.0, 1.0, 0.99, 4),
        (1.0, 0.0, 0.5, 3),
    ];
    for (temperature, top_p, uniform, expected) in cases {
        let found = call("sample_top_p_from_logits", args![row(&LOGITS), temperature, top_p, uniform]).unwrap();
        assert_eq!(found.as_int(), Some(expected), "{temperature} {top_p} {uniform}");
    }
    let sum: f32 = LOGITS.iter().map(|x| x.exp()).sum();
    let probabilities = LOGITS.map(|x| x.exp() / sum);
    let cases =
        [(0.9, 0.1, 3), (0.9, 0.5, 3), (0.9, 0.7, 1), (0.9, 0.9, 1), (0.9, 0.999, 0), (0.3, 0.5, 3), (1.0, 0.99, 4)];
    for (top_p, uniform, expected) in cases {
        let found = call("sample_top_p_from_prob", args![row(&probabilities), top_p, uniform]).unwrap();
        assert_eq!(found.as_int(), Some(expected), "{top_p} {uniform}");
    }
}

#[test]
fn scores_of_another_shape_or_type_are_refused() {
    let two_rows = Tensor::zeros(&[2, 3], DataType::float(32)).unwrap();
    let error = call("sample_top_p_from_logits", args![two_rows, 1.0, 1.0, 0.5]).unwrap_err();
    assert!(error.message().contains("leading dimensions must be 1"), "{error}");
    let wide = Tensor::zeros(&[1, 3], DataType::float(64)).unwrap();
    assert!(call("sample_top_p_from_logits", args![wide, 1.0, 1.0, 0.5]).unwrap_err().message().contains("float32"));
    let empty = Tensor::zeros(&[1, 0], DataType::float(32)).unwrap();
    assert!(call("sample_top_p_from_prob", args![empty, 1.0, 0.5]).is_err());
    let not_numbers = row(&[f32::NAN, f32::INFINITY, 0.0]);
    assert!(call("sample_top_p_from_logits", args![not_numbers, 1.0, 0.9, 0.5]).is_ok(), "and no panic");
}

#[test]
fn a_draw_for_each_row_is_tvms() {
    let prob = Tensor::from_slice(&[0.1_f32, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1], &[2, 4]).unwrap();
    let cases = [
        ([0.05_f32, 0.05], [0, 0]),
        ([0.1, 0.4], [1, 1]),
        ([0.3, 0.7], [2, 1]),
        ([0.6, 0.9], [3, 2]),
        ([0.99, 0.99], [3, 3]),
        ([1.0, 1.0], [3, 3]),
        ([0.0, 0.0], [0, 0]),
    ];
    for (numbers, expected) in cases {
        let uniform = Tensor::from_slice(&numbers, &[2, 1]).unwrap();
        let found: Tensor = call("multinomial_from_uniform", args![prob.clone(), uniform]).unwrap().to().unwrap();
        assert_eq!((found.shape(), found.to_vec::<i64>().unwrap()), (&[2, 1][..], expected.to_vec()), "{numbers:?}");
    }
    let short = Tensor::from_slice(&[0.5_f32], &[1, 1]).unwrap();
    assert!(call("multinomial_from_uniform", args![prob, short]).is_err());
}

#[test]
fn penalties_and_temperature_change_scores_in_place() {
    let changed = |name: &str, rest: &[Any]| {
        let scores = row(&[1.0, -2.0, 0.0, 3.0]);
        let all: Vec<Any> = [Any::from(&scores)].into_iter().chain(rest.iter().cloned()).collect();
        call(name, &all).map(|_| scores.to_vec::<f32>().unwrap())
    };
    assert_eq!(changed("apply_repetition_penalty", args![ids(&[0, 1, 1]), 2.0]).unwrap(), [0.5, -8.0, 0.0, 3.0]);
    let found =
        changed("apply_presence_and_frequency_penalty", args![ids(&[0, 1, 3]), ids(&[1, 2, 3]), 0.5, 0.1]).unwrap();
    let expected = [0.4, -2.7, 0.0, 2.2];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    let found = changed("apply_softmax_with_temperature", args![0.5]).unwrap();
    let expected = [0.017_941_738, 4.447_312e-5, 0.002_428_15, 0.979_585_65];
    assert!(found.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-7), "{found:?}");
    for token in [4, -1, i32::MAX] {
        let error = changed("apply_repetition_penalty", args![ids(&[token]), 2.0]).unwrap_err();
        assert!(error.message().contains("is not among the 4 scores"), "{error}");
    }
    assert!(changed("apply_presence_and_frequency_penalty", args![ids(&[0, 1]), ids(&[1]), 0.5, 0.1]).is_err());
}

const LIST: &str = r#"{"metadata": {}, "records": [{"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": 36,
    "records": [
    {"name": "param_0", "shape": [2, 3], "dtype": "float32", "format": "f32-to-bf16", "nbytes": 12, "byteOffset": 0},
    {"name": "param_1", "shape": [4], "dtype": "int8", "format": "f32-to-bf16", "nbytes": 4, "byteOffset": 12},
    {"name": "other", "shape": [2], "dtype": "int64", "format": "raw", "nbytes": 16, "byteOffset": 20}]}]}"#;

fn shapes(value: &Any) -> Vec<Vec<i64>> {
    value.to::<Array>().unwrap().iter().map(|tensor| tensor.to::<Tensor>().unwrap().shape().to_vec()).collect()
}

#[test]
fn weights_are_loaded_from_a_folder_and_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let mut data: Vec<u8> =
        (0..6_u8).flat_map(|x| (f32::from(x).to_bits() >> 16).to_le_bytes()[..2].to_vec()).collect();
    data.extend([0_u8, 1, 2, 3, 9, 9, 9, 9]);
    data.extend([1_i64, 2].iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(folder.path().join("params_shard_0.bin"), &data).unwrap();
    let loaded = |list: &str| {
        std::fs::write(folder.path().join("tensor-cache.json"), list).unwrap();
        call("tensor_cache.load", args![path.as_str(), 1_i64, 0_i64])
    };
    loaded(LIST).unwrap();
    let tensor = |name: &str| call("tensor_cache.get", args![name]).unwrap().to::<Tensor>().unwrap();
    assert_eq!(tensor("param_0").to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(tensor("param_1").to_vec::<i8>().unwrap(), [0, 1, 2, 3]);
    assert_eq!(tensor("other").to_vec::<i64>().unwrap(), [1, 2]);
    assert_eq!(shapes(&call("param_array_from_cache", args!["param", -1_i64]).unwrap()), [vec![2, 3], vec![4]]);
    assert_eq!(shapes(&call("param_array_from_cache", args!["param", 1_i64]).unwrap()), [vec![2, 3]]);
    let error = call("param_array_from_cache", args!["param", 5_i64]).unwrap_err();
    assert!(error.message().contains("Cannot find param_2 in cache"), "{error}");
    let by_name = call("param_array_from_cache_by_name_unpacked", args!["other", "param_0"]).unwrap();
    assert_eq!(shapes(&by_name), [vec![2], vec![2, 3]]);
    let error = call("param_array_from_cache_by_name", args![vec!["nobody"]]).unwrap_err();
    assert!(error.message().contains("Cannot find parameter in cache: nobody"), "{error}");
    let module: Module = call("param_module_from_cache", args!["param", 2_i64]).unwrap().to().unwrap();
    let params = module.get_function("get_params", false).unwrap().call(&[]).unwrap();
    assert_eq!((module.kind(), shapes(&params)), ("param_module", vec![vec![2, 3], vec![4]]));

    // What is wrong with a list is said, and nothing of it is loaded.
    let wrong = [
        ("\"byteOffset\": 20", "\"byteOffset\": 21", "16 bytes at 21 of a file of 36 bytes"),
        ("\"nbytes\": 16", "\"nbytes\": 8", "other"),
        ("\"shape\": [2]", "\"shape\": [-2]", "other"),
        ("\"dtype\": \"int64\"", "\"dtype\": \"int65x\"", "dtype"),
        ("\"format\": \"raw\", \"nbytes\": 16", "\"format\": \"zip\", \"nbytes\": 16", "the format \"zip\""),
        ("\"name\": \"other\",", "", "no field \"name\""),
        ("params_shard_0.bin", "../params_shard_0.bin", "is not below the folder"),
        ("params_shard_0.bin", "nobody.bin", "cannot read"),
        ("{\"metadata\"", "{metadata", "tensor-cache.json"),
    ];
    for (from, to, text) in wrong {
        assert!(LIST.contains(from), "{from}");
        call("tensor_cache.clear", &[]).unwrap();
        let error = loaded(&LIST.replace(from, to)).unwrap_err();
        assert!(error.message().contains(text), "{to}: {error}");
        assert!(call("tensor_cache.get", args!["param_0"]).unwrap().is_none(), "{to}");
    }

    let zero = || Tensor::zeros(&[2], DataType::float(32)).unwrap();
    call("tensor_cache.update", args!["mine", zero()]).unwrap();
    let error = call("tensor_cache.update", args!["mine", zero(), false]).unwrap_err();
    assert!(error.message().contains("Name mine already exists in the cache"), "{error}");
    call("tensor_cache.update", args!["mine", zero(), true]).unwrap();
    call("tensor_cache.remove", args!["mine"]).unwrap();
    assert!(call("tensor_cache.get", args!["mine"]).unwrap().is_none());
    assert!(
        call("tensor_cache.load", args!["/nonexistent", 1_i64, 0_i64]).unwrap_err().message().contains("Cannot open")
    );
}
