//! [`Node`]: a node under import, with typed access to its attributes and inputs.

use relaxide_ffi::Tensor;
use relaxide_relax::Expr;

use crate::constant;
use crate::error::NodeError;
use crate::proto::{AttributeKind, AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto};
use crate::value::Value;

/// A node and what its inputs stand for.
pub struct Node<'a> {
    /// The node as it is in the file.
    pub proto: &'a NodeProto,
    /// Inputs in order; `None` where one is left out.
    pub inputs: Vec<Option<Value>>,
    /// Version of its operator set.
    pub opset: i64,
}

type Result<T> = std::result::Result<T, NodeError>;

impl<'a> Node<'a> {
    /// The operator.
    pub fn op(&self) -> &'a str {
        &self.proto.op_type
    }

    /// The same node with other inputs: an operator that another is made of.
    pub fn with_inputs(&self, inputs: impl IntoIterator<Item = Expr>) -> Node<'a> {
        let inputs = inputs.into_iter().map(|expr| Some(Value::Computed(expr))).collect();
        Node { proto: self.proto, inputs, opset: self.opset }
    }

    /// The same node with another first input.
    pub fn with_first(&self, first: Expr) -> Node<'a> {
        let rest = self.inputs.iter().skip(1).cloned();
        let inputs = std::iter::once(Some(Value::Computed(first))).chain(rest).collect();
        Node { proto: self.proto, inputs, opset: self.opset }
    }

    /// How many outputs are wanted, counting those left out before the last.
    pub fn outputs(&self) -> usize {
        self.proto.output.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1)
    }

    /// An input that must be there.
    pub fn input(&self, i: usize) -> Result<&Value> {
        self.optional(i).ok_or_else(|| NodeError::invalid(format!("input {i} is missing")))
    }

    /// An input that may be left out.
    pub fn optional(&self, i: usize) -> Option<&Value> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    fn attribute(&self, name: &str, kind: AttributeKind) -> Result<Option<&'a AttributeProto>> {
        let Some(attribute) = self.proto.attribute.iter().find(|a| a.name == name) else { return Ok(None) };
        if !attribute.ref_attr_name.is_empty() {
            return Err(NodeError::invalid(format!("attribute `{name}` refers to a function, but this is none")));
        }
        if attribute.r#type() != kind && attribute.r#type() != AttributeKind::Undefined {
            let found = attribute.r#type();
            return Err(NodeError::invalid(format!("attribute `{name}` must be of kind {kind:?}, but is {found:?}")));
        }
        Ok(Some(attribute))
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        Ok(self.attribute(name, AttributeKind::Int)?.map(|a| a.i))
    }

    /// An integer attribute with a default.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer attribute used as a bool.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int(name)?.map_or(default, |v| v != 0))
    }

    /// A number attribute.
    pub fn float(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.attribute(name, AttributeKind::Float)?.map(|a| f64::from(a.f)))
    }

    /// A number attribute with a default.
    pub fn float_or(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        Ok(self.attribute(name, AttributeKind::Ints)?.map(|a| a.ints.clone()))
    }

    /// A list of numbers.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        Ok(self.attribute(name, AttributeKind::Floats)?.map(|a| a.floats.clone()))
    }

    /// A list of texts.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        let text = |s: &prost::bytes::Bytes| String::from_utf8(s.to_vec());
        match self.attribute(name, AttributeKind::Strings)? {
            None => Ok(None),
            Some(a) => {
                let texts = a.strings.iter().map(text).collect::<std::result::Result<_, _>>();
                texts.map(Some).map_err(|_| NodeError::invalid(format!("attribute `{name}` is not text")))
            }
        }
    }

    /// A text attribute.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        let there = self.attribute(name, AttributeKind::String)?.is_some();
        Ok(if there { Some(self.str_or(name, "")?.to_string()) } else { None })
    }

    /// A text attribute with a default.
    pub fn str_or(&self, name: &str, default: &'a str) -> Result<&'a str> {
        match self.attribute(name, AttributeKind::String)? {
            None => Ok(default),
            Some(a) => {
                std::str::from_utf8(&a.s).map_err(|_| NodeError::invalid(format!("attribute `{name}` is not text")))
            }
        }
    }

    /// A tensor attribute.
    pub fn tensor(&self, name: &str) -> Result<Option<&'a TensorProto>> {
        Ok(self.attribute(name, AttributeKind::Tensor)?.and_then(|a| a.t.as_ref()))
    }

    /// A type attribute.
    pub fn type_proto(&self, name: &str) -> Result<Option<&'a TypeProto>> {
        Ok(self.attribute(name, AttributeKind::TypeProto)?.and_then(|a| a.tp.as_ref()))
    }

    /// A graph attribute that must be there.
    pub fn graph(&self, name: &str) -> Result<&'a GraphProto> {
        let graph = self.attribute(name, AttributeKind::Graph)?.and_then(|a| a.g.as_ref());
        graph.ok_or_else(|| NodeError::invalid(format!("attribute `{name}` is missing")))
    }

    /// Refuses an attribute that is set to something other than a value.
    pub fn only_int(&self, name: &str, value: i64) -> Result<()> {
        match self.int(name)? {
            Some(found) if found != value => {
                Err(NodeError::unsupported(format!("`{name}` = {found} is not supported, only {value}")))
            }
            _ => Ok(()),
        }
    }

    /// An input that must be known at import, as integers: an axis, a split size, a pad.
    pub fn known_ints(&self, i: usize, what: &str) -> Result<Option<Vec<i64>>> {
        let Some(value) = self.optional(i) else { return Ok(None) };
        match value {
            Value::Constant(tensor) => constant::ints(tensor).map(Some).map_err(|e| NodeError::invalid(e.to_string())),
            other => other.symbolic().and_then(|s| s.literals()).map(Some).ok_or_else(|| depends_on_data(what)),
        }
    }

    /// An input that must be a constant of the model.
    pub fn known_tensor(&self, i: usize, what: &str) -> Result<Option<&Tensor>> {
        match self.optional(i) {
            None => Ok(None),
            Some(value) => value.constant().map(Some).ok_or_else(|| depends_on_data(what)),
        }
    }

    /// An input that must be a constant of one number.
    pub fn known_scalar(&self, i: usize, what: &str) -> Result<Option<f64>> {
        let Some(value) = self.optional(i) else { return Ok(None) };
        let numbers = match value {
            Value::Constant(tensor) => constant::floats(tensor).ok(),
            other => other.symbolic().and_then(|s| s.elements.iter().map(|e| e.as_float()).collect()),
        };
        match numbers.as_deref() {
            Some(&[number]) => Ok(Some(number)),
            Some(many) => Err(NodeError::invalid(format!("{what} must be one number, not {}", many.len()))),
            None => Err(depends_on_data(what)),
        }
    }

    /// Integers that are an attribute in older versions of the operator and input `i` in newer ones.
    pub fn ints_attr_or_input(&self, name: &str, i: usize) -> Result<Option<Vec<i64>>> {
        match self.ints(name)? {
            Some(list) => Ok(Some(list)),
            None => self.known_ints(i, &format!("`{name}`")),
        }
    }
}

/// Something that the compiler must know is computed by the model.
pub fn depends_on_data(what: &str) -> NodeError {
    NodeError::unsupported(format!(
        "{what} is computed from data, so its value is not known when the model is compiled"
    ))
    .help("simplify the model first (`onnxsim`), or export it with constant shapes")
}
