//! The passes over kernels are passes of the compilation: its context sees them, leaves them out and sets their options.

use std::sync::{Arc, Mutex};

use relaxide::ffi::Tensor;
use relaxide::ir::pass::{Pass, PassContext, PassError, PassInstrument};
use relaxide::tir::lower::{self, LowerOptions};
use relaxide::{CompileOptions, Error, Executable, IRModule, VirtualMachine, parse_script};

/// Rows that are summed and divided: a kernel with a reduction, vectors, scratch and guards.
const ROWS: &str = r#"
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 13), "float32")) -> R.Tensor(("n", 13), "float32"):
        with R.dataflow():
            y = R.nn.softmax(x, axis=-1)
            z = R.nn.pad(y, (0, 0, 1, 2))
            w = R.sum(z, axis=1, keepdims=True)
            v = R.multiply(x, w)
            R.output(v)
        return v
"#;

/// A loop that is to become vectors, by the word of whoever wrote it.
const BY_HAND: &str = r#"
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @T.prim_func
    def twice(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        for i in T.vectorized(32):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((32,), "float32")) -> R.Tensor((32,), "float32"):
        return R.call_tir(Module.twice, (x,), out_ty=R.Tensor((32,), "float32"))
"#;

fn compile(context: PassContext, check_bounds: bool) -> Result<Executable, Error> {
    let module = parse_script(ROWS, "rows").unwrap();
    relaxide::compile(&module, &mut CompileOptions { context, check_bounds, ..CompileOptions::default() })
}

fn run(executable: &Executable) -> Vec<f32> {
    let machine = VirtualMachine::of(&executable.jit().unwrap()).unwrap();
    let values: Vec<f32> = (0..5 * 13).map(|i| (i % 7) as f32 * 0.25 - 0.5).collect();
    let x = Tensor::from_slice(&values, &[5, 13]).unwrap();
    machine.invoke("main", &[(&x).into()]).unwrap().to::<Tensor>().unwrap().to_vec::<f32>().unwrap()
}

fn near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} is not {b}");
    }
}

/// Writes down the passes that it sees, and wants none of those over kernels.
struct Watch {
    seen: Mutex<Vec<String>>,
    wants: bool,
}

impl Watch {
    fn new(wants: bool) -> Arc<Watch> {
        Arc::new(Watch { seen: Mutex::default(), wants })
    }

    /// The passes over kernels that ran.
    fn of_kernels(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().filter(|name| is_over_kernels(name)).cloned().collect()
    }
}

fn is_over_kernels(name: &str) -> bool {
    name.starts_with("tirx.") || name.starts_with("s_tir.")
}

impl PassInstrument for Watch {
    fn should_run(&self, pass: &Pass, _: &IRModule) -> Result<bool, PassError> {
        Ok(self.wants || !is_over_kernels(pass.name()))
    }

    fn after(&self, pass: &Pass, _: &IRModule) -> Result<(), PassError> {
        self.seen.lock().unwrap().push(pass.name().to_string());
        Ok(())
    }
}

fn instrumented(watch: &Arc<Watch>) -> PassContext {
    PassContext { instruments: vec![watch.clone()], ..PassContext::default() }
}

fn names(options: LowerOptions) -> Vec<String> {
    let rules = std::iter::once("s_tir.transform.ApplyScheduleRules");
    rules.chain(lower::steps(options).map(|step| step.pass.name)).map(str::to_string).collect()
}

#[test]
fn instruments_see_the_passes_over_kernels() {
    for check_bounds in [false, true] {
        let watch = Watch::new(true);
        compile(instrumented(&watch), check_bounds).unwrap();
        assert_eq!(watch.of_kernels(), names(LowerOptions { check_bounds, keep_loops: false }));
    }
}

#[test]
fn what_native_code_is_made_of_cannot_be_left_out() {
    let expected = run(&compile(PassContext::default(), false).unwrap());
    let watch = Watch::new(false);
    near(&run(&compile(instrumented(&watch), false).unwrap()), &expected);
    let ran = watch.of_kernels();
    for step in lower::steps(LowerOptions::default()) {
        let name = step.pass.name;
        assert_eq!(ran.iter().any(|ran| ran == name), step.is_needed, "{name}");
        let without = PassContext { disabled: vec![name.to_string()], ..PassContext::default() };
        match compile(without, false) {
            Ok(executable) if !step.is_needed => near(&run(&executable), &expected),
            Err(error) if step.is_needed => {
                let said = error.to_string();
                assert!(said.starts_with(name) && said.contains("cannot be left out"), "{said}");
                assert!(!error.is_defect(), "{name}");
            }
            Ok(_) => panic!("{name} was left out"),
            Err(error) => panic!("without {name}: {error}"),
        }
    }
    // Blocks alone are loops that are right and slow.
    let rules = PassContext { disabled: vec!["s_tir.transform.ApplyScheduleRules".into()], ..PassContext::default() };
    near(&run(&compile(rules, false).unwrap()), &expected);
}

#[test]
fn options_of_a_context_reach_the_passes_over_kernels() {
    let with = |option: Option<&str>| {
        let mut context = PassContext::default();
        if let Some(option) = option {
            context.config.set(option, true).unwrap();
        }
        context
    };
    let text = |option| {
        let module = parse_script(BY_HAND, "by_hand").unwrap();
        let mut options = CompileOptions { context: with(option), ..CompileOptions::default() };
        relaxide::compile(&module, &mut options).unwrap().inspect_source("ll").unwrap()
    };
    assert!(text(None).contains("<32 x float>"));
    let scalar = text(Some("tirx.disable_vectorize"));
    assert!(!scalar.contains(" x float>"), "{scalar}");
    let expected = run(&compile(with(None), false).unwrap());
    for option in ["tirx.disable_vectorize", "tirx.disable_storage_rewrite"] {
        near(&run(&compile(with(Some(option)), false).unwrap()), &expected);
    }
}
