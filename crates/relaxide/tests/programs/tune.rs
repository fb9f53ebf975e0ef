//! Search over the parameters of schedule rules.

use relaxide::ffi::Tensor;
use relaxide::tir::schedule::Overrides;
use relaxide::{
    Comparison, CompileOptions, Database, IRModule, Measure, MeasureError, Pair, TuneOptions, Tuned, Tuner,
    VirtualMachine, Vm, parse_script,
};
use serde_json::Value;

const PROGRAM: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((32, 48), "float32"), w: R.Tensor((48, 64), "float32")):
        with R.dataflow():
            product = R.matmul(x, w)
            even = R.nn.softmax(product, axis=-1)
            gv = R.sum(even, axis=0)
            R.output(gv)
        return gv
"#;

fn inputs() -> [Tensor; 2] {
    [[32, 48], [48, 64]].map(|shape| {
        let values: Vec<f32> = (0..shape[0] * shape[1]).map(|n| (n % 13) as f32 / 13.0 - 0.4).collect();
        Tensor::from_slice(&values, &shape).unwrap()
    })
}

fn result(module: &IRModule, schedule: Option<Overrides>) -> Vec<f32> {
    let mut options = CompileOptions { schedule, ..CompileOptions::default() };
    let machine = VirtualMachine::of(&relaxide::compile(module, &mut options).unwrap().jit().unwrap()).unwrap();
    let [x, w] = inputs();
    machine.invoke("main", &[(&x).into(), (&w).into()]).unwrap().to::<Tensor>().unwrap().to_vec::<f32>().unwrap()
}

/// Says of every candidate the same.
struct Always(Option<Comparison>, Vec<String>);

impl Measure for Always {
    fn compare(&mut self, pair: Pair<'_>) -> Result<Comparison, MeasureError> {
        assert!(pair.incumbent.exists() && pair.candidate.exists() && !pair.arguments.is_empty());
        self.1.push(pair.kernel.to_string());
        self.0.ok_or(MeasureError::TooLong)
    }
}

fn comparison(candidate: f64, wins: f64, agrees: bool) -> Option<Comparison> {
    Some(Comparison { incumbent: 1.0, candidate, wins, agrees })
}

fn tune(
    module: &IRModule,
    database: &mut Database,
    said: Option<Comparison>,
    trials: usize,
) -> (Vec<Tuned>, Vec<String>, Vec<String>) {
    let machine =
        VirtualMachine::of(&relaxide::compile(module, &mut CompileOptions::default()).unwrap().jit().unwrap()).unwrap();
    let Vm::Relax(vm) = machine.inner() else { panic!("not of Relax") };
    let [x, w] = inputs();
    let (_, report) = vm.profile("main", &[(&x).into(), (&w).into()]).unwrap();
    let mut options = CompileOptions::default();
    let mut tuner = Tuner::new(module, &report, &mut options, database, 7).unwrap();
    let stale = tuner.stale.clone();
    let mut measure = Always(said, Vec::new());
    let budget = TuneOptions { trials, limit: None, seed: 7 };
    let found = tuner.run(budget, &mut measure, database, &mut |_| Ok(())).unwrap();
    (found, measure.1, stale)
}

#[test]
fn what_wins_is_kept_in_a_file_that_a_compilation_reads() {
    let module = parse_script(PROGRAM, "program").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuned.json");
    let mut database = Database::read(&file).unwrap();
    let (found, measured, stale) = tune(&module, &mut database, comparison(0.5, 1.0, true), 4);
    // What is won has to be won again.
    assert!(measured.len() == 8 && stale.is_empty());
    assert_eq!(found.iter().map(|kernel| kernel.trials).sum::<usize>(), 4);
    assert!(found.iter().any(|kernel| kernel.speedup >= 2.0 && !kernel.changed.is_empty()), "{found:?}");
    database.write(&file).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let schedule = Overrides::from_json(&text).unwrap();
    assert_eq!(schedule.targets().len(), 1);
    let (tuned, guessed) = (result(&module, Some(schedule)), result(&module, None));
    assert!(tuned.iter().zip(&guessed).all(|(a, b)| (a - b).abs() <= 1e-4), "{tuned:?} {guessed:?}");

    // A second search begins with what is there, and keeps it where nothing is won.
    let mut again = Database::read(&file).unwrap();
    let (_, _, stale) = tune(&module, &mut again, comparison(0.99, 0.6, true), 3);
    again.write(&file).unwrap();
    assert!(stale.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn candidates_that_crash_or_compute_something_else_change_nothing_and_end_nothing() {
    let module = parse_script(PROGRAM, "program").unwrap();
    for said in [None, comparison(0.1, 1.0, false)] {
        let mut database = Database::default();
        let (found, measured, _) = tune(&module, &mut database, said, 5);
        assert_eq!((measured.len(), found.iter().map(|kernel| kernel.wrong).sum::<usize>()), (5, 5));
        assert!(found.iter().all(|kernel| kernel.speedup == 1.0 && kernel.changed.is_empty()));
    }
}

#[test]
fn decisions_that_no_longer_fit_are_told_and_forgotten() {
    let module = parse_script(PROGRAM, "program").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuned.json");
    let text = r#"{"schedule": [
        {"kernel": "gone", "pieces": []},
        {"kernel": "softmax", "target": "llvm -mcpu=other", "pieces": []},
        {"kernel": "matmul", "pieces": [{"stage": "no such", "rule": "matmul"}]}]}"#;
    std::fs::write(&file, text).unwrap();
    let mut database = Database::read(&file).unwrap();
    let (_, _, stale) = tune(&module, &mut database, comparison(1.0, 0.5, true), 1);
    assert_eq!(stale.len(), 2, "{stale:?}");
    assert!(stale[0].starts_with("gone: ") && stale[1].contains("no stage \"no such\""), "{stale:?}");
    database.write(&file).unwrap();
    // What is for another target stays.
    let left: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(left["schedule"].as_array().unwrap().len(), 1);
    assert_eq!(left["schedule"][0]["target"], "llvm -mcpu=other");
}
