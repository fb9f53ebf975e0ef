//! Kernels call functions of the runtime by name, and are loaded by it.

use relaxide_codegen::{compile, export_library};
use relaxide_ffi::{Any, AnyView, Error, Function, Tensor, register_global};
use relaxide_ir::{Attrs, Buffer, DataType, PrimExpr, Ref, Target, Var, prim};
use relaxide_tir::{PrimFunc, Stmt};

fn load(func: PrimFunc) -> Function {
    let name = func.global_symbol().unwrap().to_string();
    let compiled = compile(&[Ref::new(func)], &Target::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernels.so");
    export_library(&[], &compiled, &path).unwrap();
    relaxide_runtime::load_module(&path).unwrap().get_function(&name, false).unwrap()
}

/// `A[i] = function("label", i, x)` for four elements.
fn caller(function: &str) -> PrimFunc {
    let (f32, f64) = (DataType::float(32), DataType::float(64));
    let (a, x, i) = (Buffer::new("A", f32, [4]), Var::prim("x", f64), Var::dim("i"));
    let args = vec![prim::string(function), prim::string("label"), PrimExpr::from(&i), PrimExpr::from(&x)];
    let body = Stmt::store(&a, [&i], prim::call(f32, "tirx.call_packed", args));
    let mut func = PrimFunc::over_buffers(&[a], &[x], Stmt::serial(i, 4, body));
    func.attrs = Attrs::new().with("global_symbol", "caller");
    func
}

#[test]
fn arguments_and_results_pass_through() {
    let weigh = Function::new(|args: &[AnyView<'_>]| {
        let (label, i, x) = (args[0].to::<String>()?, args[1].to::<i64>()?, args[2].to::<f64>()?);
        assert_eq!(label, "label");
        // An integer now and then, where a float is expected.
        Ok(if i == 3 { Any::from(7i64) } else { Any::from(x * i as f64) })
    });
    register_global("test.codegen.weigh", weigh).unwrap();
    let kernel = load(caller("test.codegen.weigh"));
    let tensor = Tensor::zeros(&[4], DataType::float(32)).unwrap();
    let args = [Any::from(tensor.clone()), Any::from(0.5f64)];
    kernel.call(&args.each_ref().map(AnyView::from)).unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [0.0, 0.5, 1.0, 7.0]);
}

#[test]
fn errors_of_the_function_and_of_its_lookup_reach_the_caller() {
    let fail = Function::new(|_: &[AnyView<'_>]| Err(Error::new("ValueError", "not today")));
    register_global("test.codegen.fail", fail).unwrap();
    let tensor = Tensor::zeros(&[4], DataType::float(32)).unwrap();
    let args = [Any::from(tensor), Any::from(0.5f64)];
    let error = load(caller("test.codegen.fail")).call(&args.each_ref().map(AnyView::from)).unwrap_err();
    assert!(error.to_string().contains("not today"), "{error}");
    let error = load(caller("test.codegen.nowhere")).call(&args.each_ref().map(AnyView::from)).unwrap_err();
    assert!(error.to_string().contains("test.codegen.nowhere"), "{error}");
}

#[test]
fn argument_errors_are_raised_in_the_runtime() {
    let error = load(caller("test.codegen.weigh")).call(&[]).unwrap_err();
    assert!(error.to_string().contains("Expected 2 arguments when calling:\n  `caller(A: Tensor("), "{error}");
}
