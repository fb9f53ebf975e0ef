//! Kernels call functions of the runtime by name, and are loaded by it.

use relaxide_codegen::{compile, export_library};
use relaxide_ffi::{Any, AnyView, Error, Function, SavedBytes, Tensor, register_global};
use relaxide_ir::{Attrs, Buffer, DataType, PrimExpr, Ref, Target, Var, prim};
use relaxide_tir::{PrimFunc, Stmt};

fn load(func: PrimFunc) -> Function {
    let name = func.global_symbol().unwrap().to_string();
    let compiled = compile(&[Ref::new(func)], &Target::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernels.so");
    export_library(&SavedBytes::default(), &compiled, &path).unwrap();
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

/// Loads several kernels as one library.
fn library(funcs: Vec<PrimFunc>) -> relaxide_ffi::Module {
    let funcs: Vec<Ref<PrimFunc>> = funcs.into_iter().map(Ref::new).collect();
    let compiled = compile(&funcs, &Target::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernels.so");
    export_library(&SavedBytes::default(), &compiled, &path).unwrap();
    relaxide_runtime::load_module(&path).unwrap()
}

/// A function over one list: `body` is given the list.
fn over_list(name: &str, body: impl FnOnce(PrimExpr) -> Vec<PrimExpr>) -> PrimFunc {
    let list = Var::prim("r", DataType::handle());
    let calls = body(PrimExpr::from(&list));
    let mut func = PrimFunc::over_buffers(&[], &[list], Stmt::seq(calls.into_iter().map(Stmt::evaluate)));
    func.attrs = Attrs::new().with("global_symbol", name);
    func
}

fn item(list: &PrimExpr, index: i64) -> PrimExpr {
    prim::call(DataType::handle(), "tirx.anylist_getitem", vec![list.clone(), prim::int_of(DataType::int(32), index)])
}

fn list_call(name: &str, list: &PrimExpr, index: i64, rest: Vec<PrimExpr>) -> PrimExpr {
    let mut args = vec![list.clone(), prim::int_of(DataType::int(32), index)];
    args.extend(rest);
    prim::call(DataType::int(32), format!("tirx.{name}"), args)
}

#[test]
fn lists_lend_values_and_own_what_comes_back() {
    let pick = Function::new(|args: &[AnyView<'_>]| Ok(args[args[0].to::<i64>()? as usize].to_owned()));
    register_global("test.codegen.pick", pick).unwrap();
    let i64 = DataType::int(64);
    // Many kernels, so that they are compiled in several parts which call each other.
    let mut funcs: Vec<PrimFunc> = (0..12)
        .map(|at| {
            let a = Buffer::new("A", DataType::float(32), [4]);
            let value = PrimExpr::Float(Ref::new(prim::FloatImm { dtype: DataType::float(32), value: f64::from(at) }));
            let i = Var::dim("i");
            let store = Stmt::serial(i.clone(), 4, Stmt::store(&a, [&i], value));
            let mut func = PrimFunc::over_buffers(&[a], &[], store);
            func.attrs = Attrs::new().with("global_symbol", format!("fill{at}"));
            func
        })
        .collect();
    funcs.push(over_list("driver", |r| {
        vec![
            list_call(
                "anylist_setitem_call_packed",
                &r,
                2,
                vec![prim::string("test.codegen.pick"), prim::int_of(i64, 2), item(&r, 0), item(&r, 1)],
            ),
            prim::call(DataType::int(32), "tirx.call_cpacked", vec![prim::string("fill7"), item(&r, 2)]),
            list_call("anylist_setitem_call_cpacked", &r, 3, vec![prim::string("fill3"), item(&r, 0)]),
            list_call("anylist_resetitem", &r, 4, vec![]),
        ]
    }));
    let driver = library(funcs).get_function("driver", false).unwrap();
    let (a, b) = (Tensor::zeros(&[4], DataType::float(32)).unwrap(), Tensor::zeros(&[4], DataType::float(32)).unwrap());
    let mut list = [Any::from(&a), Any::from(&b), Any::from(&a), Any::from(&a), Any::from(&a)];
    driver.call(&[Any::from_ptr(list.as_mut_ptr().cast()).as_view()]).unwrap();
    assert_eq!(list[2].to::<Tensor>().unwrap(), b);
    assert_eq!(b.to_vec::<f32>().unwrap(), [7.0; 4]);
    assert_eq!(a.to_vec::<f32>().unwrap(), [3.0; 4]);
    assert!(list[3].is_none() && list[4].is_none());
    // One handle here and one in the list each: what was overwritten was let go.
    drop(list);
    for tensor in [a, b] {
        assert!(Any::from(tensor).as_object().unwrap().header().is_unique());
    }
}
