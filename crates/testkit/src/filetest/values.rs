//! Execution tests: arguments and results as text.

use relaxide::{CompileOptions, ExecMode, Pipeline, VirtualMachine};
use relaxide_ffi::{Any, Array, DataType, Shape, Tensor};
use relaxide_ir::IRModule;
use relaxide_relax::{Expr, Function};
use relaxide_script::parse_module;

use super::difference;

/// Compiles a module and calls it as each line says: `main(R.const([1, 2], "float32"), R.shape([3]))`. Every pipeline
/// that ends in an executable must give the same results, unless the test names `only` one.
pub(super) fn run_calls<'a>(
    module: &IRModule,
    calls: impl Iterator<Item = &'a str>,
    only: Option<&str>,
) -> Result<String, String> {
    let calls: Vec<(String, Vec<Any>)> = calls.map(parse_call).collect::<Result<_, _>>()?;
    if calls.is_empty() {
        return Err("there is no `# call:` line".into());
    }
    let mut first: Option<String> = None;
    // Every way to compile gives the same answers.
    let ways = [
        (Pipeline::DefaultBuild, ExecMode::Bytecode),
        (Pipeline::Default, ExecMode::Bytecode),
        (Pipeline::Default, ExecMode::Compiled),
    ];
    for (pipeline, mode) in ways {
        if only.is_some_and(|name| name != pipeline.name()) {
            continue;
        }
        let way = format!("pipeline {}, {mode:?}", pipeline.name());
        let results = run_with(module, &calls, pipeline, mode).map_err(|e| format!("{way}: {e}"))?;
        match &first {
            Some(other) if *other != results => {
                return Err(format!("{way} gives other results:\n{}", difference(other, &results)));
            }
            Some(_) => {}
            None => first = Some(results),
        }
    }
    first.ok_or_else(|| "there is no pipeline".into())
}

fn run_with(
    module: &IRModule,
    calls: &[(String, Vec<Any>)],
    pipeline: Pipeline,
    exec_mode: ExecMode,
) -> Result<String, String> {
    let mut options = CompileOptions { pipeline, exec_mode, ..CompileOptions::default() };
    let executable = relaxide::compile(module, &mut options).map_err(|e| e.to_string())?;
    let machine = VirtualMachine::of(&executable.jit().map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let mut out = String::new();
    for (name, args) in calls {
        let views: Vec<_> = args.iter().map(Any::as_view).collect();
        let text = match machine.invoke(name, &views) {
            Ok(result) => value_text(&result),
            Err(error) => format!("{}: {}", error.kind(), error.message().lines().next().unwrap_or_default()),
        };
        out.push_str(&text);
        out.push('\n');
    }
    Ok(out)
}

/// The function that a call names, and its arguments.
fn parse_call(call: &str) -> Result<(String, Vec<Any>), String> {
    let (name, args) = call.split_once('(').ok_or("a call is written `name(args)`")?;
    let args = args.trim_end().strip_suffix(')').ok_or("a call is written `name(args)`")?;
    let text = format!("@R.function\ndef call():\n    return R.tuple({args})\n");
    let module = parse_module(&text, "call").map_err(|e| e.to_string())?;
    let func = module.get_as::<Function>("call").ok_or("no arguments")?;
    let Expr::Tuple(tuple) = &func.body.body else { return Err("no arguments".into()) };
    Ok((name.trim().to_string(), tuple.fields.iter().map(value).collect::<Result<_, _>>()?))
}

fn value(expr: &Expr) -> Result<Any, String> {
    match expr {
        Expr::Constant(c) => Ok(Any::from(c.value.clone())),
        Expr::Shape(s) => {
            let dims: Option<Vec<i64>> = s.values.iter().map(|d| d.as_int()).collect();
            Ok(Any::from(Shape::new(&dims.ok_or("a shape of numbers is expected")?)))
        }
        Expr::Prim(p) => p.value.as_int().map(Any::from).ok_or_else(|| "an integer is expected".into()),
        Expr::Str(s) => Ok(Any::from(s.value.as_str())),
        Expr::Tuple(t) => {
            let fields: Vec<Any> = t.fields.iter().map(value).collect::<Result<_, _>>()?;
            Ok(Any::from(Array::from_vec(fields)))
        }
        other => Err(format!("{other:?} is no argument")),
    }
}

fn value_text(value: &Any) -> String {
    if let Ok(tensor) = value.to::<Tensor>() {
        return tensor_text(&tensor);
    }
    if let Ok(shape) = value.to::<Shape>() {
        return format!("R.shape({:?})", shape.as_slice());
    }
    if let Ok(array) = value.to::<Array>() {
        let items: Vec<_> = array.iter().map(value_text).collect();
        return format!("({})", items.join(", "));
    }
    match value.as_int() {
        Some(v) => v.to_string(),
        None => format!("{value:?}"),
    }
}

/// A tensor as `R.const` would take it; floats with five digits.
fn tensor_text(tensor: &Tensor) -> String {
    let dtype = tensor.dtype();
    let items: Vec<String> = match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 32) => floats(tensor.to_vec::<f32>().unwrap_or_default().into_iter().map(f64::from)),
        (DataType::FLOAT, 64) => floats(tensor.to_vec::<f64>().unwrap_or_default().into_iter()),
        (DataType::FLOAT, 16) => floats(tensor.to_vec::<half::f16>().unwrap_or_default().into_iter().map(f64::from)),
        (DataType::INT, 64) => ints(tensor.to_vec::<i64>()),
        (DataType::INT, 32) => ints(tensor.to_vec::<i32>()),
        (DataType::INT, 8) => ints(tensor.to_vec::<i8>()),
        (DataType::UINT, 8) => ints(tensor.to_vec::<u8>()),
        (DataType::BOOL, _) => {
            let bytes = tensor.to_vec::<u8>().unwrap_or_default();
            bytes.into_iter().map(|b| if b != 0 { "True".into() } else { "False".into() }).collect()
        }
        _ => return format!("{tensor:?}"),
    };
    format!("R.const({}, \"{dtype}\")", nest(&items, tensor.shape()))
}

fn ints<T: std::fmt::Display, E>(values: Result<Vec<T>, E>) -> Vec<String> {
    values.unwrap_or_default().iter().map(T::to_string).collect()
}

fn floats(values: impl Iterator<Item = f64>) -> Vec<String> {
    values
        .map(|v| {
            let rounded: f64 = format!("{v:.4e}").parse().unwrap_or(v);
            format!("{rounded}")
        })
        .collect()
}

/// Items as nested lists of a shape.
fn nest(items: &[String], shape: &[i64]) -> String {
    let Some((first, rest)) = shape.split_first() else { return items.first().cloned().unwrap_or_default() };
    let size: usize = rest.iter().map(|d| usize::try_from(*d).unwrap_or(0)).product();
    let rows = (0..usize::try_from(*first).unwrap_or(0)).map(|i| nest(items.get(i * size..).unwrap_or_default(), rest));
    format!("[{}]", rows.collect::<Vec<_>>().join(", "))
}
