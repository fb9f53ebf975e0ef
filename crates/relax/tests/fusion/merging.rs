//! What the kernels of a primitive function become: one kernel, or an error that says why not.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassContext;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};
use relaxide_relax::transform::pass;
use relaxide_relax::*;
use relaxide_tir::{PrimFunc, te};

use super::build::*;
use super::evaluate::{Value, call};

/// A module of a primitive function `group` and of a `main` that calls it with its own parameters.
fn with_group(
    params: &[&Ref<Var>],
    body: impl FnOnce(&mut BlockBuilder) -> Result<Expr, BuildError>,
) -> Result<IRModule, BuildError> {
    let mut b = BlockBuilder::new();
    let params: Vec<Ref<Var>> = params.iter().copied().cloned().collect();
    let attrs = Attrs::new().with("Primitive", 1);
    let group = b.function::<BuildError>(params.clone(), attrs, |b| {
        b.begin_dataflow()?;
        let result = body(b)?;
        b.end_dataflow()?;
        Ok(result)
    })?;
    let callee = b.add_function(group, "group");
    let outer: Vec<Ref<Var>> = params.iter().map(|p| Var::new(p.name.clone(), p.ty.clone())).collect();
    let main = b.function::<BuildError>(outer.clone(), Attrs::new().with("global_symbol", "main"), |b| {
        let ty = Type::missing();
        let args = outer.iter().cloned().map(Expr::Var).collect();
        let call = Call { op: callee.into(), args, attrs: Attrs::new(), ty_args: Vec::new(), ty, span: None };
        b.emit(Expr::Call(Ref::new(call)))
    })?;
    b.module_mut().insert("main", main);
    Ok(b.finish())
}

fn merged(module: &IRModule) -> (IRModule, Ref<PrimFunc>) {
    let module = after(module, &["FuseTIR"]);
    let kernel = module.get_as::<PrimFunc>("group").expect("the group is a kernel");
    (module, kernel)
}

fn refusal(module: Result<IRModule, BuildError>) -> String {
    let pass = pass("FuseTIR").expect("there is the pass");
    let result = pass.run(module.expect("the program is well formed"), &PassContext::default());
    result.expect_err("the pass refuses").to_string()
}

#[test]
fn tuples_go_in_and_out() {
    let pair = Var::new("pair", Type::tuple(vec![tensor([2, 3]), tensor([3])]));
    let module = with_group(&[&pair], |b| {
        let x = b.emit(Expr::field(pair.clone(), 0))?;
        let y = b.emit(Expr::field(pair.clone(), 1))?;
        let sum = add(b, &x, &y)?;
        let cut = relu(b, &sum)?;
        b.emit_output(Expr::tuple([cut, sum]))
    });
    let module = module.unwrap();
    let (after, kernel) = merged(&module);
    assert_eq!(kernel.params.len(), 4);
    assert_eq!(after.functions_of::<PrimFunc>().count(), 1);
    let args = [Value::Tuple(vec![numbers(&[2, 3], 1), numbers(&[3], 2)])];
    same_results(&module, &after, &args);
}

#[test]
fn a_kernel_with_several_results_is_one_of_several() {
    let x = param("x", [4]);
    let module = with_group(&[&x], |b| {
        let both = b.emit_te("both", vec![x.clone().into()], |t| {
            te::compute_multi("both", [4], |i| {
                relaxide_tir::te::Bodies::Elements(vec![t[0].at(i) + 1, t[0].at(i) * prim::float_of(F32, 2.0)])
            })
        })?;
        let first = b.emit(Expr::field(both.clone(), 0))?;
        let second = b.emit(Expr::field(both, 1))?;
        let product = mul(b, &first, &second)?;
        b.emit_output(product)
    });
    let module = module.unwrap();
    let (after, _) = merged(&module);
    same_results(&module, &after, &[numbers(&[4], 1)]);
}

#[test]
fn a_result_that_is_written_over_a_parameter_stays_in_place() {
    let x = param("x", [4]);
    let y = param("y", [4]);
    let module = with_group(&[&x, &y], |b| {
        let sum = add(b, &x.clone().into(), &y.clone().into())?;
        let kernel = in_place_scale();
        let func = b.add_kernel(kernel, "scale");
        let attrs = Attrs::new().with("inplace_indices", vec![0i64]);
        let scaled = op::call_typed(
            "call_tir_inplace",
            [func.into(), Expr::tuple([y.clone().into(), sum])],
            attrs,
            vec![tensor([4])],
        )?;
        b.emit_output(scaled)
    });
    let module = module.unwrap();
    let (after, kernel) = merged(&module);
    assert_eq!(kernel.params.len(), 2);
    let main = after.get_as::<Function>("main").unwrap();
    let Some(Expr::Call(c)) = main.body.blocks.iter().flat_map(|b| &b.bindings).map(|b| b.value().clone()).next()
    else {
        panic!("no call")
    };
    assert_eq!(c.op_name(), Some("call_tir_inplace"));
    assert_eq!(c.attrs.ints("inplace_indices"), Some(vec![1]));
    same_results(&module, &after, &[numbers(&[4], 1), numbers(&[4], 2)]);
}

/// `A[i] = A[i] * B[i]`.
fn in_place_scale() -> PrimFunc {
    let a = relaxide_ir::Buffer::new("A", F32, [4]);
    let b = relaxide_ir::Buffer::new("B", F32, [4]);
    let i = Var::dim("i");
    let value = prim::load(&a, [&i]) * prim::load(&b, [&i]);
    let body = relaxide_tir::Stmt::serial(i.clone(), 4, relaxide_tir::Stmt::store(&a, [&i], value));
    PrimFunc::over_buffers(&[a, b], &[], body)
}

#[test]
fn two_uses_of_one_kernel_have_variables_of_their_own() {
    let x = param("x", [4]);
    let module = with_group(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        let y = relu(b, &y)?;
        b.emit_output(y)
    });
    let module = module.unwrap();
    let (after, kernel) = merged(&module);
    let mut seen = std::collections::HashSet::new();
    loop_vars(&kernel.body, &mut |var| assert!(seen.insert(var.clone()), "`{}` is defined twice", var.name));
    assert_eq!(seen.len(), 4);
    same_results(&module, &after, &[numbers(&[4], 1)]);
}

fn loop_vars(stmt: &relaxide_tir::Stmt, f: &mut dyn FnMut(&Ref<Var>)) {
    use relaxide_tir::Stmt;
    match stmt {
        Stmt::For(n) => {
            f(&n.var);
            loop_vars(&n.body, f);
        }
        Stmt::Seq(n) => n.seq.iter().for_each(|s| loop_vars(s, f)),
        Stmt::Block(n) => {
            n.block.iter_vars.iter().for_each(|v| f(&v.var));
            loop_vars(&n.block.body, f);
        }
        _ => {}
    }
}

#[test]
fn scalars_and_dimensions_are_passed_on() {
    let n = Var::dim("n");
    let (x, k) = (param("x", [PrimExpr::from(&n)]), Var::prim("k", relaxide_ir::DataType::int(64)));
    let module = with_group(&[&x, &k], |b| {
        let y = relu(b, &x.clone().into())?;
        let own = (Var::dim("n"), Var::dim("k"));
        let a = te::placeholder("A", [&own.0], F32);
        let out = te::compute("S", [&own.0], |i| a.at(i) + prim::cast(F32, PrimExpr::from(&own.1)));
        let mut kernel = te::create_prim_func(&[a, out]).expect("it is a kernel");
        kernel.params.swap(1, 2);
        kernel.buffers.swap(1, 2);
        let func = b.add_kernel(kernel, "shift");
        let call = op::core::call_tir(func, [y, Expr::prim(&k)], tensor([PrimExpr::from(&n)]))?;
        b.emit_output(call)
    });
    let module = module.unwrap();
    let (after, kernel) = merged(&module);
    assert_eq!(kernel.buffers.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    let result = call(&after, "main", &[numbers(&[3], 1), Value::Int(2)]).floats();
    let x = numbers(&[3], 1).floats();
    assert!(result.iter().zip(&x).all(|(r, x)| (r - (x.max(0.0) + 2.0)).abs() < 1e-6));
}

#[test]
fn what_cannot_be_one_kernel_is_refused_with_its_reason() {
    let x = param("x", [4]);
    let returned = with_group(&[&x], |b| b.emit_output(Expr::Var(x.clone())));
    assert!(refusal(returned).contains("`x` is returned, but is a parameter"));
    let twice = with_group(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        b.emit_output(Expr::tuple([y.clone(), y]))
    });
    assert!(refusal(twice).contains("is returned already"));
    let operator = with_group(&[&x], |b| {
        let y = b.op("exp", [Expr::Var(x.clone())], Attrs::new())?;
        b.emit_output(y)
    });
    assert!(refusal(operator).contains("is bound to something else than a call of a kernel"));
    let unknown = with_group(&[&x], |b| {
        let call = op::core::call_tir(GlobalVar::new("nowhere"), [Expr::Var(x.clone())], tensor([4]))?;
        b.emit_output(call)
    });
    assert!(refusal(unknown).contains("in function `group`"));
    let misfit = with_group(&[&x], |b| {
        let Expr::DataflowVar(y) = relu(b, &x.clone().into())? else { panic!("a dataflow variable") };
        let call = op::core::call_tir(GlobalVar::new("relu"), [Expr::Var(x.clone()), y.into()], tensor([4]))?;
        b.emit_output(call)
    });
    assert!(refusal(misfit).contains("takes 2 arguments and gets 3"));
}

#[test]
fn the_default_pipeline_calls_the_merged_kernel_from_bytecode() {
    let n = Var::dim("n");
    let (x, w) = (param("x", [PrimExpr::from(&n), 4.into()]), param("w", [4, 5]));
    let module = program(&[&x, &w], |b| {
        let y = b.op("matmul", [Expr::Var(x.clone()), Expr::Var(w.clone())], Attrs::new())?;
        b.op("nn.relu", [y], Attrs::new())
    });
    let pipeline = relaxide_relax::transform::pipeline("default").expect("there is a pipeline");
    let module = pipeline.run(module, &PassContext::default()).expect("the passes succeed");
    let (exec, rest) = vm_codegen(&module, ExecMode::Bytecode).expect("bytecode is generated");
    assert!(rest.get("fused_matmul_relu").is_some());
    let text = exec.as_text().expect("it has a text");
    assert_eq!(text.matches("fused_matmul_relu").count(), 2, "{text}");
}
