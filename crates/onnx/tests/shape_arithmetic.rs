//! Shape arithmetic, as exporters write it, is evaluated at import over symbolic dimensions.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Var;
use relaxide_ir::prim::PrimExpr;
use relaxide_onnx::proto::{AttributeKind, AttributeProto, NodeProto};
use relaxide_onnx::testing::{Node, Ratio, Symbolic, Value, evaluate};

/// Values of one test: they share the dimensions `n`, `h` and `w`.
struct Dims {
    shape: Value,
}

impl Dims {
    fn new() -> Dims {
        let dim = |name: &str| PrimExpr::Var(Var::dim(name));
        Dims { shape: Value::Symbolic(Symbolic::shape_of(&[dim("n"), 3.into(), dim("h"), dim("w")])) }
    }
}

fn ints(values: &[i64]) -> Value {
    Value::Constant(Tensor::from_slice(values, &[values.len() as i64]).unwrap())
}

fn number(value: i64) -> Value {
    Value::Constant(Tensor::from_slice(&[value], &[]).unwrap())
}

fn float(value: f32) -> Value {
    Value::Constant(Tensor::from_slice(&[value], &[]).unwrap())
}

fn floats(values: &[f32]) -> Value {
    Value::Constant(Tensor::from_slice(values, &[values.len() as i64]).unwrap())
}

/// Attributes from names and integers; a list is an integer list.
fn attributes(list: &[(&str, &[i64])]) -> Vec<AttributeProto> {
    let scalar = |name: &str| matches!(name, "axis" | "to" | "keepdims");
    list.iter()
        .map(|(name, values)| AttributeProto {
            name: name.to_string(),
            i: values[0],
            ints: if scalar(name) { vec![] } else { values.to_vec() },
            r#type: if scalar(name) { AttributeKind::Int } else { AttributeKind::Ints } as i32,
            ..Default::default()
        })
        .collect()
}

fn eval(op: &str, inputs: &[&Value], attrs: &[(&str, &[i64])]) -> Option<Value> {
    let proto = NodeProto { op_type: op.into(), attribute: attributes(attrs), ..Default::default() };
    let inputs = inputs.iter().map(|&v| Some(v.clone())).collect();
    evaluate(&Node { proto: &proto, inputs, opset: 13 }).map(Value::Symbolic)
}

/// The elements as text; `None` where the value is not tracked.
fn text(value: &Option<Value>) -> String {
    let Some(symbolic) = value.as_ref().and_then(Value::symbolic) else { return "untracked".into() };
    let element = |e: &Ratio| match (e.as_whole(), e.as_float()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(float)) => float.to_string(),
        (None, None) => format!("{} / {}", e.parts().0, e.parts().1),
    };
    let elements: Vec<String> = symbolic.elements.iter().map(element).collect();
    format!("{:?} [{}]", symbolic.shape, elements.join(", "))
}

const INT32: i64 = 6;
const INT64: i64 = 7;
const FLOAT: i64 = 1;
const DOUBLE: i64 = 11;
const BOOL: i64 = 9;

#[test]
fn vectors_are_picked_sliced_and_joined() {
    let s = Dims::new().shape;
    let cases: Vec<(&str, Option<Value>, &str)> = vec![
        ("gather one", eval("Gather", &[&s, &number(2)], &[]), "[] [h]"),
        ("gather from the back", eval("Gather", &[&s, &ints(&[-1, 0])], &[]), "[2] [w, n]"),
        ("gather beyond the end", eval("Gather", &[&s, &number(4)], &[]), "untracked"),
        ("slice", eval("Slice", &[&s, &ints(&[2]), &ints(&[4])], &[]), "[2] [h, w]"),
        ("slice to the end", eval("Slice", &[&s, &ints(&[1]), &ints(&[i64::MAX])], &[]), "[3] [3, h, w]"),
        ("slice from the back", eval("Slice", &[&s, &ints(&[-2]), &ints(&[i64::MAX])], &[]), "[2] [h, w]"),
        (
            "slice backwards",
            eval("Slice", &[&s, &ints(&[-1]), &ints(&[i64::MIN]), &ints(&[0]), &ints(&[-1])], &[]),
            "[4] [w, h, 3, n]",
        ),
        ("slice of nothing", eval("Slice", &[&s, &ints(&[3]), &ints(&[1])], &[]), "[0] []"),
        ("old slice", eval("Slice", &[&s], &[("starts", &[0]), ("ends", &[1])]), "[1] [n]"),
        ("concat", eval("Concat", &[&ints(&[-1]), &s], &[("axis", &[0])]), "[5] [-1, n, 3, h, w]"),
        ("squeeze", eval("Squeeze", &[&ints(&[7])], &[("axes", &[0])]), "[] [7]"),
        ("unsqueeze", eval("Unsqueeze", &[&number(7), &ints(&[0])], &[]), "[1] [7]"),
        ("product", eval("ReduceProd", &[&s], &[("keepdims", &[0])]), "[] [n * 3 * h * w]"),
    ];
    check(cases);
}

#[test]
fn arithmetic_goes_through_casts_and_floats() {
    let s = Dims::new().shape;
    let h = eval("Gather", &[&s, &number(2)], &[]).unwrap();
    let as_float = eval("Cast", &[&h], &[("to", &[FLOAT])]).unwrap();
    let half = eval("Mul", &[&as_float, &float(0.5)], &[]).unwrap();
    let floor = eval("Floor", &[&half], &[]).unwrap();
    let back = |v: &Value| eval("Cast", &[v], &[("to", &[INT64])]);
    let quotient = eval("Div", &[&as_float, &as_float], &[]).unwrap();
    let cases = vec![
        (
            "int32 and back",
            eval("Cast", &[&eval("Cast", &[&s], &[("to", &[INT32])]).unwrap()], &[("to", &[INT64])]),
            "[4] [n, 3, h, w]",
        ),
        ("double", back(&eval("Cast", &[&s], &[("to", &[DOUBLE])]).unwrap()), "[4] [n, 3, h, w]"),
        ("half, floored", back(&floor), "[] [h // 2]"),
        ("half, truncated", back(&half), "[] [h // 2]"),
        ("half, rounded up", eval("Ceil", &[&half], &[]), "[] [(h + 1) // 2]"),
        ("h over h is one", back(&quotient), "[] [1]"),
        ("integer division", eval("Div", &[&h, &number(4)], &[]), "[] [h // 4]"),
        ("division by zero is left to the program", eval("Div", &[&h, &number(0)], &[]), "untracked"),
        ("a third is no short fraction", eval("Mul", &[&as_float, &float(1.0 / 3.0)], &[]), "untracked"),
        ("remainder of literals", eval("Mod", &[&ints(&[7]), &ints(&[4])], &[]), "[1] [3]"),
    ];
    check(cases);
}

#[test]
fn choices_are_made_where_dimensions_decide_them() {
    let s = Dims::new().shape;
    let minus_one = ints(&[-1, -1, -1, -1]);
    let target = ints(&[-1, 5, 7, 9]);
    let dynamic = eval("Equal", &[&target, &minus_one], &[]).unwrap();
    let chosen = eval("Where", &[&dynamic, &s, &target], &[]);
    let cases = vec![
        ("dimensions are not negative", eval("Equal", &[&s, &minus_one], &[]), "[4] [0, 0, 0, 0]"),
        ("equal to themselves", eval("Equal", &[&s, &s], &[]), "[4] [1, 1, 1, 1]"),
        ("anything else is open", eval("Equal", &[&s, &ints(&[5, 5, 5, 5])], &[]), "untracked"),
        ("where", chosen, "[4] [n, 5, 7, 9]"),
        ("minimum", eval("Min", &[&s, &number(-1)], &[]), "[4] [-1, -1, -1, -1]"),
        ("literals as bools", eval("Cast", &[&ints(&[0, 2])], &[("to", &[BOOL])]), "[2] [0, 1]"),
        ("too large for the type", eval("Cast", &[&ints(&[1 << 40])], &[("to", &[INT32])]), "untracked"),
    ];
    check(cases);
}

#[test]
fn bounds_are_kept_to() {
    let s = Dims::new().shape;
    let h = eval("Gather", &[&s, &number(2)], &[]).unwrap();
    let above = eval("Sub", &[&h, &number(7)], &[]).unwrap();
    let cases = vec![
        ("a lower bound", eval("Clip", &[&above, &number(0)], &[]), "[] [max(h - 7, 0)]"),
        ("a bound that decides", eval("Clip", &[&h, &number(-3), &number(-1)], &[]), "[] [-1]"),
        ("literals", eval("Clip", &[&ints(&[-4, 2, 9]), &number(0), &number(5)], &[]), "[3] [0, 2, 5]"),
        ("absolute", eval("Abs", &[&ints(&[-4, 3])], &[]), "[2] [4, 3]"),
        ("not below", eval("GreaterOrEqual", &[&s, &number(-1)], &[]), "[4] [1, 1, 1, 1]"),
        ("not above", eval("LessOrEqual", &[&ints(&[1, 2, 3]), &number(2)], &[]), "[3] [1, 1, 0]"),
    ];
    check(cases);
}

#[test]
fn constants_of_floats_are_computed_where_that_is_exact() {
    let third = eval("Div", &[&float(23.0), &float(3.0)], &[]);
    let above = eval("Ceil", &[third.as_ref().unwrap()], &[]);
    let cases = vec![
        ("a sum", eval("Add", &[&float(1.0), &float(2.5)], &[]), "[] [3.5]"),
        ("a half rounded up", eval("Ceil", &[&float(0.5)], &[]), "[] [1]"),
        ("a quotient of whole numbers, rounded up", above, "[] [8]"),
        (
            "a quotient that is rounded is left to the program",
            eval("Div", &[&float(2.5), &float(3.0)], &[]),
            "untracked",
        ),
        ("a sum that is rounded, too", eval("Add", &[&float(16_777_216.0), &float(0.5)], &[]), "untracked"),
        ("a zero that is negative, too", eval("Mul", &[&float(-2.0), &float(0.0)], &[]), "untracked"),
        ("and one that is given", eval("Add", &[&float(-0.0), &float(-0.0)], &[]), "untracked"),
        ("a sum of many, too", eval("ReduceSum", &[&floats(&[16_777_216.0, 1.0, -16_777_216.0])], &[]), "untracked"),
        ("less than half rounded up", eval("Ceil", &[&float(-0.5)], &[]), "untracked"),
    ];
    check(cases);
    let big = Value::Constant(Tensor::zeros(&[100], DataType::int(64)).unwrap());
    assert!(eval("Add", &[&big, &number(1)], &[]).is_none());
}

fn check(cases: Vec<(&str, Option<Value>, &str)>) {
    let faults: Vec<String> = cases
        .iter()
        .filter(|(_, value, wanted)| text(value) != *wanted)
        .map(|(what, value, wanted)| format!("{what}: {} instead of {wanted}", text(value)))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
