//! Every operator's kernel, run by the reference interpreter, agrees with what NumPy computes.
//!
//! The cases are in `operators.json`, written by `operators.py`. Each is legalized twice: with the dimensions known, and with
//! those of the inputs symbolic where the operator allows it.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::pass::PassContext;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, Var};
use relaxide_relax::{BlockBuilder, BuildError, Expr, constant, op, transform};
use serde_json::Value as Json;

use crate::machine::Machine;

/// Whether the compiler knows the inputs' dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shapes {
    Fixed,
    Symbolic,
}

fn number(v: &Json) -> f64 {
    v.as_f64().or_else(|| v.as_str()?.parse().ok()).expect("a number")
}

fn ints(v: &Json) -> Vec<i64> {
    v.as_array().expect("a list").iter().map(|v| v.as_i64().expect("an integer")).collect()
}

fn tensor(v: &Json) -> Tensor {
    let dtype: DataType = v["dtype"].as_str().expect("a dtype").parse().expect("a known dtype");
    let data = v["data"].as_array().expect("elements");
    let bytes: Vec<u8> = data
        .iter()
        .flat_map(|v| match (dtype.is_float(), dtype.bytes()) {
            (true, 8) => number(v).to_le_bytes().to_vec(),
            (true, _) => (number(v) as f32).to_le_bytes().to_vec(),
            (false, n) => v.as_i64().expect("an integer").to_le_bytes()[..n].to_vec(),
        })
        .collect();
    Tensor::from_bytes(&bytes, &ints(&v["shape"]), dtype).expect("a tensor")
}

fn attr(v: &Json) -> AttrValue {
    match v {
        Json::Bool(v) => (*v).into(),
        Json::Number(n) if n.is_i64() => n.as_i64().expect("an integer").into(),
        Json::Number(n) => n.as_f64().expect("a number").into(),
        Json::String(s) => s.as_str().into(),
        Json::Array(list) => AttrValue::List(list.iter().map(attr).collect()),
        _ => AttrValue::None,
    }
}

fn scalar(v: &Json) -> Expr {
    match v.as_i64() {
        Some(i) => Expr::prim(i),
        None => Expr::prim(prim::float_of(DataType::float(32), number(v))),
    }
}

fn argument(v: &Json, params: &[Ref<Var>]) -> Expr {
    if let Some(name) = v.as_str() {
        let index: usize = name[1..].parse().expect("an index");
        return params[index].clone().into();
    }
    let list = |key: &str| v[key].as_array().expect("a list");
    match v.as_object().and_then(|o| o.keys().next()).map(String::as_str) {
        Some("shape") => Expr::shape(ints(&v["shape"])),
        Some("scalar") => scalar(&v["scalar"]),
        Some("scalars") => Expr::tuple(list("scalars").iter().map(scalar).collect::<Vec<_>>()),
        _ => Expr::tuple(list("tuple").iter().map(|a| argument(a, params)).collect::<Vec<_>>()),
    }
}

/// A legalized module whose `main` is one call; `None` where the operator refuses symbolic dimensions.
fn build(case: &Json, inputs: &[Tensor], shapes: Shapes, legalize: &str) -> Result<IRModule, String> {
    let mut sizes: HashMap<i64, Ref<Var>> = HashMap::new();
    let mut dim = |size: i64| match shapes {
        Shapes::Symbolic if size > 1 => {
            PrimExpr::Var(sizes.entry(size).or_insert_with(|| Var::dim(format!("n{size}"))).clone())
        }
        _ => PrimExpr::from(size),
    };
    let mut param = |(i, t): (usize, &Tensor)| {
        let dims: Vec<PrimExpr> = t.shape().iter().map(|d| dim(*d)).collect();
        Var::new(format!("x{i}"), Type::tensor(dims, t.dtype()))
    };
    let params: Vec<_> = inputs.iter().enumerate().map(&mut param).collect();
    let args: Vec<_> = case["args"].as_array().expect("arguments").iter().map(|a| argument(a, &params)).collect();
    let attrs = case["attrs"].as_object().expect("attributes").iter();
    let attrs = attrs.fold(Attrs::new(), |attrs, (name, v)| attrs.with(name.as_str(), attr(v)));
    let mut b = BlockBuilder::new();
    let name = case["op"].as_str().expect("a name");
    let main = b
        .function::<BuildError>(params, Attrs::new(), |b| {
            let value = op::call(name, args, attrs)?;
            b.emit(value)
        })
        .map_err(|e| e.to_string())?;
    b.module_mut().insert("main", main);
    let passes = transform::parse_passes(legalize).expect("the pass exists");
    passes
        .into_iter()
        .try_fold(b.finish(), |module, pass| pass.run(module, &PassContext::default()).map_err(|e| e.to_string()))
}

/// Why two tensors differ, if they do.
fn difference(got: &Tensor, want: &Tensor) -> Option<String> {
    if got.shape() != want.shape() || got.dtype() != want.dtype() {
        return Some(format!("{:?} {} instead of {:?} {}", got.shape(), got.dtype(), want.shape(), want.dtype()));
    }
    let (got, want) = (constant::as_floats(got)?, constant::as_floats(want)?);
    let far = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-5 + 1e-5 * b.abs() && !(a.is_nan() && b.is_nan());
    let at = got.iter().zip(&want).position(far)?;
    Some(format!("element {at} is {} instead of {}", got[at], want[at]))
}

/// Kernels in both forms.
fn check(case: &Json, shapes: Shapes) -> Result<(), String> {
    ["LegalizeOps", "LegalizeOps(fast=True)"]
        .into_iter()
        .try_for_each(|passes| check_form(case, shapes, passes).map_err(|problem| format!("{passes}: {problem}")))
}

fn check_form(case: &Json, shapes: Shapes, passes: &str) -> Result<(), String> {
    let inputs: Vec<Tensor> = case["inputs"].as_array().expect("inputs").iter().map(tensor).collect();
    let module = match build(case, &inputs, shapes, passes) {
        Ok(module) => module,
        Err(_) if shapes == Shapes::Symbolic => return Ok(()),
        Err(e) => return Err(e),
    };
    let got = match Machine::run(&module, &inputs) {
        Ok(got) => got,
        Err(e) if shapes == Shapes::Symbolic && e.contains("not legalized") => return Ok(()),
        Err(e) => return Err(e),
    };
    let want: Vec<Tensor> = case["expect"].as_array().expect("results").iter().map(tensor).collect();
    if got.len() != want.len() {
        return Err(format!("{} results instead of {}", got.len(), want.len()));
    }
    got.iter().zip(&want).find_map(|(g, w)| difference(g, w)).map_or(Ok(()), Err)
}

fn check_all(shapes: Shapes) {
    let cases: Vec<Json> = serde_json::from_str(include_str!("operators.json")).expect("the cases are JSON");
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let problem = check(case, shapes).err()?;
            Some(format!("{} {} {}: {problem}", case["op"], case["args"], case["attrs"]))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} cases fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn operators_of_fixed_shape_agree_with_numpy() {
    check_all(Shapes::Fixed);
}

#[test]
fn operators_of_symbolic_shape_agree_with_numpy() {
    check_all(Shapes::Symbolic);
}
