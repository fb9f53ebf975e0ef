//! Models with control flow, functions and sequences, edited at random: each is imported or refused; no import panics.

use crate::edits;
use proptest::prelude::*;
use prost::Message;
use relaxide_onnx::proto::ModelProto;
use relaxide_onnx::{ImportOptions, Model, import};

fn seed(index: usize) -> ModelProto {
    ModelProto::decode(edits::SEEDS[index % edits::SEEDS.len()]).unwrap()
}

fn imports(bytes: Vec<u8>) -> bool {
    Model::from_bytes(bytes).is_ok_and(|model| import(&model, &ImportOptions::default()).is_ok())
}

#[test]
fn the_models_themselves_are_imported() {
    for bytes in edits::SEEDS {
        let model = Model::from_bytes(bytes.to_vec()).unwrap();
        import(&model, &ImportOptions::default()).unwrap();
    }
}

#[test]
fn some_edits_leave_a_model_that_is_imported_and_others_do_not() {
    let script = |n: usize| -> Vec<u8> { (0..8).map(|i| (n * 31 + i * 17) as u8).collect() };
    let outcomes: Vec<bool> = (0..400).map(|n| imports(edits::edited(&seed(n), &script(n)).encode_to_vec())).collect();
    let fine = outcomes.iter().filter(|fine| **fine).count();
    assert!((20..380).contains(&fine), "{fine} of {}", outcomes.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("RELAXIDE_DEEP").is_some() { 20_000 } else { 2000 }))]

    #[test]
    fn edited_models_never_panic(index in 0usize..8, script in prop::collection::vec(any::<u8>(), 0..96)) {
        imports(edits::edited(&seed(index), &script).encode_to_vec());
    }

    #[test]
    fn changed_bytes_never_panic(
        index in 0usize..8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = edits::SEEDS[index % edits::SEEDS.len()].to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        imports(bytes);
    }
}
