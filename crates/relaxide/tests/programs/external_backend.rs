//! A backend that is registered under `relax.ext.<name>` compiles what a pattern matches, and its module runs.

use relaxide::ffi::{Any, Array, ErrorKind, Function, Module, ModuleImpl, Tensor, register_global};
use relaxide::{CompileOptions, Pipeline, VirtualMachine};

/// Functions that double their first argument into their last.
struct Doubler(Vec<String>);

impl ModuleImpl for Doubler {
    fn kind(&self) -> &str {
        "doubler"
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        self.0.iter().any(|known| known == name).then(|| {
            Function::new(|args| {
                let (Some(input), Some(output)) = (args.first(), args.last()) else {
                    return Err(relaxide::ffi::Error::new(ErrorKind::TypeError, "two tensors are expected"));
                };
                let numbers: Vec<f32> = input.to::<Tensor>()?.to_vec::<f32>()?.iter().map(|v| v * 2.0).collect();
                let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
                output.to::<Tensor>()?.copy_from_bytes(&bytes)?;
                Ok(Any::none())
            })
        })
    }
}

const PROGRAM: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        with R.dataflow():
            gv = R.add(x, x)
            R.output(gv)
        return gv
"#;

#[test]
fn what_a_pattern_matches_runs_in_the_backend() {
    let compile = Function::new(|args| {
        let functions = args[0].to::<Array>()?;
        assert_eq!(functions.iter().count(), 1);
        Ok(Any::from(Array::from_vec(vec![Any::from(Module::new(Doubler(vec!["fused_relax_add_unit".into()])))])))
    });
    register_global("relax.ext.unit", compile).expect("the name is free");
    let module = relaxide::parse_script(PROGRAM, "program").expect("the program is right");
    let passes = ["FuseOpsByPattern([[unit.add, 'add(*, *)']], annotate_codegen=True)", "RunCodegen"];
    let module = relaxide::run_passes(&module, &passes).expect("the backend is registered");
    let mut options = CompileOptions { pipeline: Pipeline::DefaultBuild, ..CompileOptions::default() };
    let executable = relaxide::compile(&module, &mut options).expect("it compiles");
    let machine = VirtualMachine::of(executable.module()).expect("nothing is missing");
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).expect("the shape fits");
    let result = machine.invoke("main", &[(&x).into()]).expect("it runs");
    assert_eq!(result.to::<Tensor>().expect("a tensor").to_vec::<f32>().expect("floats"), [2.0, 4.0, 6.0]);
}

#[test]
fn a_backend_that_is_not_registered_is_named() {
    let module = relaxide::parse_script(PROGRAM, "program").expect("the program is right");
    let passes = ["FuseOpsByPattern([[nobody.add, 'add(*, *)']], annotate_codegen=True)", "RunCodegen"];
    let error = relaxide::run_passes(&module, &passes).expect_err("there is no such backend").to_string();
    assert!(error.contains("relax.ext.nobody"), "{error}");
}
