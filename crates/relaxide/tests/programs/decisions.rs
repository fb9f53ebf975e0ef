//! Decisions of schedule rules that a program's compilation is given.

use relaxide::codegen::Cache;
use relaxide::ffi::Tensor;
use relaxide::ir::AttrValue;
use relaxide::ir::pass::PassContext;
use relaxide::tir::schedule::Overrides;
use relaxide::{CompileOptions, Error, Executable, Pipeline, VirtualMachine, parse_script};
use serde_json::{Value, json};

/// Two kernels that do the same, called one after the other.
const TWICE: &str = r#"
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @T.prim_func
    def first(A: T.Buffer((40, 300), "float32"), B: T.Buffer((40, 300), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j in T.grid(40, 300):
            with T.sblock("twice"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                B[v_i, v_j] = A[v_i, v_j] + A[v_i, v_j]

    @T.prim_func
    def second(A: T.Buffer((40, 300), "float32"), B: T.Buffer((40, 300), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j in T.grid(40, 300):
            with T.sblock("twice"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                B[v_i, v_j] = A[v_i, v_j] + A[v_i, v_j]

    @R.function
    def main(x: R.Tensor((40, 300), "float32")) -> R.Tensor((40, 300), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.first, (x,), out_ty=R.Tensor((40, 300), "float32"))
            z = R.call_tir(cls.second, (y,), out_ty=R.Tensor((40, 300), "float32"))
            R.output(z)
        return z
"#;

fn compile(cache: Option<&Cache>, schedule: Option<Value>) -> Result<Executable, Error> {
    let schedule = schedule.map(|value| Overrides::from_json(&value.to_string()).unwrap());
    let module = parse_script(TWICE, "twice").unwrap();
    // Without fusion there are two kernels.
    let (cache, pipeline) = (cache.cloned(), Pipeline::DefaultBuild);
    relaxide::compile(&module, &mut CompileOptions { cache, pipeline, schedule, ..CompileOptions::default() })
}

fn together(kernel: &str, value: i64) -> Value {
    let parameters = json!([{ "name": "together", "value": value }]);
    json!({ "schedule": [{ "kernel": kernel, "pieces": [
        { "stage": "twice", "rule": "elementwise", "parameters": parameters }] }] })
}

/// The value of the parameter in each kernel.
fn decided(executable: &Executable) -> Vec<(String, i64)> {
    let values = executable.notes().iter().flat_map(|note| {
        let parameters = note.notes.iter().flat_map(|piece| &piece.parameters);
        parameters.filter(|p| p.name == "together").map(|p| (note.kernel.clone(), p.value))
    });
    values.collect()
}

fn result(executable: &Executable) -> Vec<f32> {
    let machine = VirtualMachine::of(&executable.jit().unwrap()).unwrap();
    let x: Vec<f32> = (0..40 * 300).map(|n| n as f32).collect();
    let x = Tensor::from_slice(&x, &[40, 300]).unwrap();
    machine.invoke("main", &[(&x).into()]).unwrap().to::<Tensor>().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn a_decision_for_one_of_two_equal_kernels_is_its_own_and_part_of_the_key_of_its_object() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let guessed = compile(Some(&cache), None).unwrap();
    assert_eq!(decided(&guessed), [("first".into(), 1), ("second".into(), 1)]);
    assert_eq!(compile(Some(&cache), None).unwrap().cache_use().kept, 0);
    let other = compile(Some(&cache), Some(together("second", 4))).unwrap();
    assert_eq!(decided(&other), [("first".into(), 1), ("second".into(), 4)]);
    assert!(other.cache_use().kept > 0, "{:?}", other.cache_use());
    assert_ne!(other.inspect_source("ll").unwrap(), guessed.inspect_source("ll").unwrap());
    let expected: Vec<f32> = (0..40 * 300).map(|n| 4.0 * n as f32).collect();
    assert!(result(&guessed) == expected && result(&other) == expected);
}

#[test]
fn all_decisions_can_be_given_back_and_change_nothing() {
    let guessed = compile(None, None).unwrap();
    let again = compile(None, Some(json!({ "schedule": guessed.schedule() }))).unwrap();
    assert_eq!(guessed.schedule(), again.schedule());
    assert!(guessed.inspect_source("ll").unwrap() == again.inspect_source("ll").unwrap());
}

#[test]
fn decisions_that_do_not_fit_are_refused_with_the_kernel() {
    let refused = |schedule| compile(None, Some(schedule)).err().expect("it is refused");
    let error = refused(together("secnd", 4));
    assert_eq!(error.to_string(), "the program has no kernel \"secnd\"; did you mean \"second\"?");
    let error = refused(together("second", 3));
    assert!(
        error.to_string().starts_with(
            "s_tir.transform.ApplyScheduleRules: kernel `second`: stage \"twice\", rule elementwise: together = 3 is refused: the value is one of 1, 2, 4 or 8, because"
        ),
        "{error}"
    );
    assert_eq!((error.code().as_str(), error.is_defect()), ("E0608", false));
}

#[test]
fn a_context_may_name_a_file_of_decisions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernels.json");
    let with = |file: &std::path::Path| {
        let mut context = PassContext::default();
        context.config.set("relaxide.schedule", AttrValue::Str(file.display().to_string())).unwrap();
        let module = parse_script(TWICE, "twice").unwrap();
        let pipeline = Pipeline::DefaultBuild;
        relaxide::compile(&module, &mut CompileOptions { context, pipeline, ..CompileOptions::default() })
    };
    std::fs::write(&file, together("first", 2).to_string()).unwrap();
    assert_eq!(decided(&with(&file).unwrap()), [("first".into(), 2), ("second".into(), 1)]);
    let error = with(&folder.path().join("nowhere.json")).err().expect("there is no such file").to_string();
    assert!(error.starts_with("cannot read the schedule ") && error.contains("nowhere.json"), "{error}");
}
