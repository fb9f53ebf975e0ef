//! Caches of keys and values: what their kernels are called with, and what is refused.

use std::sync::{Arc, Mutex};

use relaxide_ffi::{Any, AnyView, Array, DataType, Error, Function, Shape, Tensor, get_global};
use relaxide_vm::register;

fn call(name: &str, args: &[Any]) -> Result<Any, Error> {
    register();
    let function = get_global(&format!("vm.builtin.{name}")).unwrap_or_else(|| panic!("no builtin {name}"));
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    function.call(&views)
}

macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$(Any::from($value)),*] };
}

fn shape(dims: &[i64]) -> Any {
    Shape::new(dims).into()
}

/// The tensors of integers that a kernel was called with.
type Seen = Arc<Mutex<Vec<Vec<i32>>>>;

fn noting(seen: &Seen) -> Any {
    let seen = seen.clone();
    let note = move |args: &[AnyView<'_>]| {
        let tensors = args.iter().filter_map(|arg| arg.to::<Tensor>().ok());
        let ints = tensors.filter(|tensor| tensor.dtype() == DataType::int(32)).map(|tensor| tensor.to_vec().unwrap());
        *seen.lock().unwrap() = ints.collect();
        Ok::<_, Error>(Any::none())
    };
    Function::new(note).into()
}

const HEADS: [i64; 2] = [2, 1];

/// A cache of one layer for three sequences and 16 tokens, with what its kernels for attention see.
fn cache(rope: i64, slides: i64) -> (Any, Seen, Seen) {
    let (prefill, tree) = (Seen::default(), Seen::default());
    let nothing = || Any::from(Function::new(|_| Ok::<_, Error>(Any::none())));
    let kernels: Vec<Any> = (0..15)
        .map(|at| match at {
            3 | 5 => Array::from_vec(vec!["tirx".into(), noting(&prefill)]).into(),
            7 => noting(&tree),
            9 => Any::none(),
            _ => nothing(),
        })
        .collect();
    let mut args = args![shape(&[3, 16, 16, 4, slides]), shape(&[0, 1]), HEADS[0], HEADS[1], 8i64, 8i64].to_vec();
    let like = Tensor::zeros(&[], DataType::float(32)).unwrap();
    args.extend_from_slice(args![shape(&[if slides == 1 { 3 } else { 0 }]), 0i64, rope, 1.0, 1e4, 0i64, like]);
    args.extend(kernels);
    (call("paged_attention_kv_cache_create", &args).unwrap(), prefill, tree)
}

fn attend(cache: &Any, rows: i64) -> Result<Any, Error> {
    let tensor = |heads: i64| Tensor::zeros(&[rows, heads, 8], DataType::float(32)).unwrap();
    call("attention_kv_cache_attention_with_fused_qkv", args![cache.clone(), 0i64, 0.5, tensor(4), tensor(2)])
}

/// A pass; what the kernel of attention saw.
fn pass(cache: &Any, seen: &Seen, sequences: &[(i64, i64)], parents: Any) -> Vec<Vec<i32>> {
    let (ids, lengths): (Vec<i64>, Vec<i64>) = sequences.iter().copied().unzip();
    call("kv_state_begin_forward", &[cache.clone(), shape(&ids), shape(&lengths), parents]).unwrap();
    attend(cache, lengths.iter().sum()).unwrap();
    call("kv_state_end_forward", args![cache.clone()]).unwrap();
    seen.lock().unwrap().clone()
}

#[test]
fn kernels_get_the_places_of_each_sequence() {
    let (cache, seen, _) = cache(1, 0);
    for id in 0..2i64 {
        call("kv_state_add_sequence", args![cache.clone(), id]).unwrap();
    }
    let tables = pass(&cache, &seen, &[(0, 3), (1, 2)], Any::none());
    assert_eq!(tables, [vec![0, 3, 5], vec![0, 3, 5], vec![0, 1, 2, 3, 4], vec![0, 1, 2, 0, 1]]);
    call("kv_state_fork_sequence", args![cache.clone(), 0i64, 2i64, 2i64]).unwrap();
    let tables = pass(&cache, &seen, &[(2, 1), (1, 1)], Any::none());
    assert_eq!(tables, [vec![0, 1, 2], vec![0, 3, 6], vec![0, 1, 5, 3, 4, 6], vec![2, 2]]);
    let number = |name: &str| call(name, args![cache.clone()]).unwrap().as_int();
    assert_eq!(number("attention_kv_cache_get_total_sequence_length"), Some(9));
    assert_eq!(number("attention_kv_cache_get_num_available_pages"), Some(5));
    let length = call("attention_kv_cache_get_sequence_length", args![cache.clone(), 2i64]).unwrap();
    assert_eq!(length.as_int(), Some(3));
    call("kv_state_clear", args![cache.clone()]).unwrap();
    assert!(call("attention_kv_cache_empty", args![cache.clone()]).unwrap().to::<bool>().unwrap());
}

#[test]
fn trees_are_walks_and_their_accepted_branch_stays() {
    let (cache, prefill, tree) = cache(0, 0);
    call("kv_state_add_sequence", args![cache.clone(), 4i64]).unwrap();
    pass(&cache, &prefill, &[(4, 2)], Any::none());
    let tables = pass(&cache, &tree, &[(4, 3)], shape(&[-1, 0, 0]));
    assert_eq!(tables[3..], [vec![2, 3, 3], vec![0, 3], vec![0, 5, 1, 2, 3, 4]]);
    call("attention_kv_cache_commit_accepted_token_tree_nodes", args![cache.clone(), shape(&[4]), shape(&[2])])
        .unwrap();
    let tables = pass(&cache, &prefill, &[(4, 1)], Any::none());
    assert_eq!(tables[2..], [vec![0, 1, 2, 4, 3], vec![4]]);
}

#[test]
fn windows_slide_when_a_pass_is_over() {
    let (cache, seen, _) = cache(2, 1);
    call("kv_state_add_sequence", args![cache.clone(), 0i64]).unwrap();
    call("attention_kv_cache_enable_sliding_window_for_seq", args![cache.clone(), 0i64, 4i64, 1i64]).unwrap();
    pass(&cache, &seen, &[(0, 6)], Any::none());
    let tables = pass(&cache, &seen, &[(0, 1)], Any::none());
    assert_eq!(tables[1..3], [vec![0, 5], vec![0, 3, 4, 5, 2]]);
}

#[test]
fn what_cannot_be_is_refused() {
    let (cache, ..) = cache(1, 0);
    call("kv_state_add_sequence", args![cache.clone(), 0i64]).unwrap();
    let begin = |ids: &[i64], lengths: &[i64]| {
        call("kv_state_begin_forward", &[cache.clone(), shape(ids), shape(lengths), Any::none()])
    };
    for (result, message) in [
        (attend(&cache, 1), "between begin_forward and end_forward"),
        (begin(&[0], &[100]), "The KV cache is full: 100 tokens"),
        (begin(&[0], &[i64::MAX]), "The KV cache is full"),
        (begin(&[0], &[0]), "expected positive ones"),
        (begin(&[0, 0], &[1, 1]), "a length for each sequence, once"),
        (begin(&[3], &[1]), "sequence 3 cannot be found"),
        (call("kv_state_popn", args![cache.clone(), 0i64, 1i64]), "of which 1 cannot be popped"),
        (call("kv_state_fork_sequence", args![cache.clone(), 0i64, 1i64, -2i64]), "cannot be forked behind -2"),
        (call("kv_state_clear", args![3i64]), "neither a KV cache nor an RNN state"),
        (call("attention_kv_cache_append_mla_kv", args![cache.clone()]), "compressed keys"),
    ] {
        let error = result.unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    begin(&[0], &[2]).unwrap();
    let error = attend(&cache, 3).unwrap_err();
    assert!(error.message().contains("qkv has 3 tokens, but 2 were announced"), "{error}");
}
