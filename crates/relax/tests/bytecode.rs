//! Whole functions through a pipeline to bytecode.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::PassContext;
use relaxide_ir::{Attrs, IRModule, Type, Var};
use relaxide_relax::transform::pipeline;
use relaxide_relax::{BlockBuilder, BuildError, ExecMode, Expr, vm_codegen};

fn tensor(dims: &[i64]) -> Type {
    Type::tensor(dims.iter().copied(), DataType::float(32))
}

/// A module of one function `main`.
fn main_of(params: Vec<Ref<Var>>, body: impl FnOnce(&mut BlockBuilder) -> Result<Expr, BuildError>) -> IRModule {
    let mut b = BlockBuilder::new();
    let attrs = Attrs::new().with("global_symbol", "main");
    let func = b.function::<BuildError>(params, attrs, body).expect("the function is well formed");
    b.module_mut().insert("main", func);
    b.finish()
}

/// The text of the bytecode that a pipeline and code generation make.
fn bytecode(module: IRModule, name: &str) -> String {
    let pipeline = pipeline(name).expect("the pipeline exists");
    let module = pipeline.run(module, &PassContext::default()).expect("the passes succeed");
    let (exec, _) = vm_codegen(&module, ExecMode::Bytecode).expect("bytecode is generated");
    exec.as_text().expect("it has a text")
}

#[test]
fn adding_a_tensor_to_itself_gives_the_instructions_that_tvm_gives() {
    let x = Var::new("x", tensor(&[3, 4]));
    let module = main_of(vec![x.clone()], |b| b.op("add", [Expr::Var(x.clone()), Expr::Var(x.clone())], Attrs::new()));
    insta::assert_snapshot!(bytecode(module, "default_build"));
}

#[test]
fn symbolic_shapes_are_matched_stored_and_made() {
    let n = Var::dim("n");
    let x = Var::new("x", Type::tensor([relaxide_ir::PrimExpr::from(&n), 4.into()], DataType::float(32)));
    let module = main_of(vec![x.clone()], |b| {
        b.begin_dataflow()?;
        let y = b.op("add", [Expr::Var(x.clone()), Expr::Var(x.clone())], Attrs::new())?;
        let z = b.op("reshape", [y, Expr::shape([-1])], Attrs::new())?;
        let u = b.op("exp", [z], Attrs::new())?;
        let out = b.emit_output(relaxide_relax::op::call("nn.relu", [u], Attrs::new())?)?;
        b.end_dataflow()?;
        Ok(out)
    });
    insta::assert_snapshot!(bytecode(module, "default_build"));
}
