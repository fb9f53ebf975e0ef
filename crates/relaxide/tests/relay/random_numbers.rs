//! Random numbers and sparse operators give what TVM 0.16 gave. More cases stand in `tests/relay/operators.tsv`.

use relaxide::ffi::{Any, AnyView, Tensor};
use relaxide::relay::prelude::parse_with_prelude;
use relaxide::relay::text::Source;
use relaxide::relay::{Interpreter, scalar};
use relaxide::relay_vm::Adt;

use crate::programs::machine;

const TEXT: &str = r#"#[version = "0.0.5"]
def @words(%k: Tensor[(10), uint64]) { random.threefry_generate(%k, out_shape=[3, 3]).1 }
def @uniform(%k: Tensor[(10), uint64]) { random.uniform(%k, -1f, 2f, out_shape=[2, 3], out_dtype="float32").1 }
def @normal(%k: Tensor[(10), uint64]) { random.normal(%k, 0.5f, 2f, out_shape=[2, 3], out_dtype="float32").1 }
def @unique(%x: Tensor[(6), int32]) { unique(%x, return_counts=True) }
def @first(%x: Tensor[(6), int32]) { unique(%x, sorted=False, return_counts=True) }
def @reshaped(%i: Tensor[(5, 3), int32], %a: Tensor[(3), int32], %b: Tensor[(2), int32]) { sparse_reshape(%i, %a, %b) }
def @filled(%i: Tensor[(4, 2), int64], %v: Tensor[(4), int64], %s: Tensor[(2), int64], %d: Tensor[(1), int64]) {
  sparse_fill_empty_rows(%i, %v, %s, %d)
}
def @transposed(%v: Tensor[(5), float32], %i: Tensor[(5), int32], %p: Tensor[(4), int32]) { nn.sparse_transpose(%v, %i, %p) }
"#;

fn numbers(value: &Any, out: &mut Vec<f64>) {
    if let Some(adt) = value.downcast_ref::<Adt>() {
        adt.fields.iter().for_each(|field| numbers(field, out));
        return;
    }
    for number in scalar::numbers(value.as_tensor().unwrap()).unwrap() {
        out.push(match number {
            scalar::Number::Int(v) => v as f64,
            scalar::Number::Float(v) => v,
            scalar::Number::Bool(v) => f64::from(u8::from(v)),
        });
    }
}

fn key() -> Tensor {
    Tensor::from_slice(&[1234567890123456789u64, 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0], &[10]).unwrap()
}

/// Functions, what they are given, and the first numbers that they give.
fn cases() -> Vec<(&'static str, Vec<Tensor>, Vec<f64>)> {
    let key = key();
    let ints = |values: &[i32], shape: &[i64]| Tensor::from_slice(values, shape).unwrap();
    let wide = |values: &[i64], shape: &[i64]| Tensor::from_slice(values, shape).unwrap();
    let six = ints(&[3, 1, 2, 3, 1, 7], &[6]);
    vec![
        ("uniform", vec![key.clone()], vec![-0.82644534, -0.7557974, 0.53150165, -0.7597413]),
        ("normal", vec![key.clone()], vec![-0.18844324, 1.0005884, -0.6890185, 1.1386356]),
        (
            "unique",
            vec![six.clone()],
            [[1, 2, 3, 7, 0, 0], [1, 2, 0, 5, 6, 6], [2, 0, 1, 2, 0, 3]]
                .concat()
                .into_iter()
                .chain([4, 2, 1, 2, 1])
                .map(f64::from)
                .collect(),
        ),
        (
            "first",
            vec![six],
            [[3, 1, 2, 7, 0, 0], [0, 1, 2, 5, 6, 6], [0, 1, 2, 0, 1, 3]]
                .concat()
                .into_iter()
                .chain([4, 2, 2, 1, 1])
                .map(f64::from)
                .collect(),
        ),
        (
            "reshaped",
            vec![
                ints(&[0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 2, 3], &[5, 3]),
                ints(&[2, 3, 6], &[3]),
                ints(&[9, -1], &[2]),
            ],
            [0, 0, 0, 1, 1, 2, 4, 2, 8, 1, 9, 4].map(f64::from).to_vec(),
        ),
        (
            "filled",
            vec![
                wide(&[0, 1, 0, 3, 2, 0, 3, 1], &[4, 2]),
                wide(&[1, 2, 3, 4], &[4]),
                wide(&[5, 6], &[2]),
                wide(&[10], &[1]),
            ],
            [0, 1, 0, 3, 1, 0, 2, 0, 3, 1, 4, 0, 1, 2, 10, 3, 4, 10, 0, 1, 0, 0, 1].map(f64::from).to_vec(),
        ),
        (
            "transposed",
            vec![
                Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0], &[5]).unwrap(),
                ints(&[0, 2, 1, 0, 2], &[5]),
                ints(&[0, 2, 3, 5], &[4]),
            ],
            [1, 4, 3, 2, 5, 0, 2, 1, 0, 2, 0, 2, 3, 5].map(f64::from).to_vec(),
        ),
    ]
}

#[test]
fn random_numbers_and_sparse_operators_are_those_of_the_reference() {
    let (key, cases) = (key(), cases());
    let vm = machine(TEXT);
    let module = parse_with_prelude(&Source::new("random.relay", TEXT)).unwrap();
    let mut problems = Vec::new();
    for by_machine in [true, false] {
        let run = |name: &str, args: &[Tensor]| {
            let views: Vec<AnyView<'_>> = args.iter().map(AnyView::from).collect();
            match by_machine {
                true => vm.invoke(name, &views),
                false => Interpreter::new(&module).run(name, &views),
            }
        };
        match run("words", std::slice::from_ref(&key)) {
            Ok(words) => {
                let words = words.as_tensor().unwrap().to_vec::<u64>().unwrap();
                if words[..4] != [9242102174732737555, 3368649267007107329, 17743745551174740610, 9039233977331779882] {
                    problems.push(format!("words, by machine {by_machine}: {words:?}"));
                }
            }
            Err(e) => problems.push(format!("words, by machine {by_machine}: {e}")),
        }
        for (name, args, expected) in &cases {
            let mut found = Vec::new();
            match run(name, args) {
                Ok(value) => numbers(&value, &mut found),
                Err(e) => problems.push(format!("{name}, by machine {by_machine}: {e}")),
            }
            let close = found.len() >= expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
            if !close {
                problems.push(format!("{name}, by machine {by_machine}: {found:?} is not {expected:?}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
