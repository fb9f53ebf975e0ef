//! Tensors of texts: indices into a table of texts that the model's file holds.
//!
//! Classifiers name their classes by texts, and exporters move such names about (`ArrayFeatureExtractor`, `Reshape`, `Cast`).
//! None of that computes with texts. So a tensor of texts is a tensor of indices during import, and what only moves elements
//! moves the indices; where it leaves the program, a builtin of the virtual machine makes the texts of them:
//!
//! ```text
//! label = LinearClassifier(x)  ["no", "yes"]     index: R.Tensor(("n",), "int64") = argmax(…)
//! y = Reshape(label, [-1, 1])                    lv: R.Tensor(("n", 1), "int64") = R.reshape(index, …)
//! output y                                       R.call_pure_packed("relaxide.vm.texts", lv, "no", "yes")
//! ```
//!
//! **Left out.** Texts as inputs of a model, and what computes with texts of an input.

use relaxide_ffi::DataType;
use relaxide_ir::{Attrs, Type};
use relaxide_relax::{Expr, op};

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::Rule;
use crate::proto::TensorProto;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The number of the element type of texts.
const STRING: i64 = 8;

/// Most texts that a model's table may have.
const MAX_TEXTS: usize = 1 << 16;

/// Operators of which the first input's elements are moved and nothing else.
const MOVES: &[&str] = &[
    "ArrayFeatureExtractor",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Reshape",
    "Slice",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

/// A tensor of texts.
#[derive(Clone, Debug)]
pub struct Texts {
    /// For each element which of the texts it is.
    pub index: Expr,
    /// The texts.
    pub table: Vec<String>,
}

/// Whether a tensor of the file holds texts.
pub fn is_text(proto: &TensorProto) -> bool {
    i64::from(proto.data_type) == STRING
}

/// A constant of texts.
pub fn constant(proto: &TensorProto) -> Result<Value> {
    let table = texts(&proto.string_data)?;
    let places: Vec<i64> = (0..table.len() as i64).collect();
    let index = crate::constant::whole(&places, &[places.len() as i64], DataType::int(64));
    let index = index.and_then(|t| t.reshape(&proto.dims).map_err(|e| crate::TensorError::Make(e.to_string())));
    let index = index.map_err(|e| NodeError::invalid(e.to_string()))?;
    Ok(Value::Texts(Texts { index: Expr::constant(index), table }))
}

/// Texts of the file, which must be UTF-8.
pub fn texts(list: &[prost::bytes::Bytes]) -> Result<Vec<String>> {
    if list.len() > MAX_TEXTS {
        let (count, most) = (list.len(), MAX_TEXTS);
        return Err(NodeError::unsupported(format!("a tensor has {count} texts; up to {most} are supported")));
    }
    let read = |text: &prost::bytes::Bytes| String::from_utf8(text.to_vec());
    let all = list.iter().map(read).collect::<std::result::Result<_, _>>();
    all.map_err(|_| NodeError::invalid("a text is not UTF-8"))
}

/// What becomes of a node whose first input holds texts; `None` where it has none.
pub fn moved(scope: &mut Scope, rule: Rule, node: &Node) -> Result<Option<Vec<Value>>> {
    let Some(Value::Texts(texts)) = node.optional(0) else { return Ok(None) };
    if node.op() == "Cast" && node.int("to")? == Some(STRING) {
        return Ok(Some(vec![Value::Texts(texts.clone())]));
    }
    if !MOVES.contains(&node.op()) {
        return Ok(None);
    }
    let mut inputs = node.inputs.clone();
    inputs[0] = Some(Value::Computed(texts.index.clone()));
    let values = rule.apply(scope, &Node { proto: node.proto, inputs, opset: node.opset })?;
    let wrap = |value: &Value| Ok(Value::Texts(Texts { index: scope.tensor(value)?, table: texts.table.clone() }));
    values.iter().map(wrap).collect::<Result<_>>().map(Some)
}

impl Texts {
    /// The texts as a value of the virtual machine: arrays in arrays, as deep as the tensor has axes.
    pub fn object(&self, scope: &mut Scope) -> Result<Expr> {
        let mut args = vec![Expr::external("relaxide.vm.texts"), self.index.clone()];
        args.extend(self.table.iter().map(Expr::string));
        let call = op::call_typed("call_pure_packed", args, Attrs::new(), vec![Type::any()]);
        scope.emit(call.map_err(|e| NodeError::Relax(e.to_string()))?)
    }
}

/// A list of texts as an attribute of a node, where it has one that is not empty.
pub fn attribute(node: &Node, name: &str) -> Result<Option<Vec<String>>> {
    Ok(node.strings(name)?.filter(|texts| !texts.is_empty()))
}

/// The labels of a classifier: numbers, or texts with their places in the list for numbers.
pub struct Labels {
    /// The numbers.
    pub numbers: Vec<i64>,
    texts: Option<Vec<String>>,
}

impl Labels {
    /// The attribute `ints` or `strings`, whichever is there.
    pub fn of(node: &Node, ints: &str, strings: &str) -> Result<Labels> {
        let texts = attribute(node, strings)?;
        let numbers = match &texts {
            Some(texts) => (0..texts.len() as i64).collect(),
            None => node.ints(ints)?.unwrap_or_default(),
        };
        Ok(Labels { numbers, texts })
    }

    /// The outputs, of which the first has the labels' numbers, with the labels themselves.
    pub fn put(self, mut outputs: Vec<Value>) -> Vec<Value> {
        if let (Some(table), Some(Value::Computed(index))) = (self.texts, outputs.first().cloned()) {
            outputs[0] = Value::Texts(Texts { index, table });
        }
        outputs
    }
}
