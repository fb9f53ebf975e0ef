//! The nodes of a saved graph.

use std::collections::HashMap;

use relaxide_ffi::Tensor;
use serde_json::Value;

use super::from_base64;

/// What is wrong with a saved graph. The file is damaged, or holds what Relay does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the saved graph cannot be read: {place}: {problem}")]
pub struct JsonError {
    /// The node or field.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

impl JsonError {
    pub(super) fn new(place: impl Into<String>, problem: impl Into<String>) -> JsonError {
        JsonError { place: place.into(), problem: problem.into() }
    }
}

/// One node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub key: String,
    pub attrs: HashMap<String, String>,
    pub keys: Vec<String>,
    pub data: Vec<usize>,
    pub text: Option<String>,
}

/// A saved graph.
#[derive(Debug)]
pub struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
    pub(super) tensors: Vec<Tensor>,
    /// Minor number of the release that wrote it: 6 for 0.6.
    pub(super) release: u32,
}

/// Type keys that had another prefix once.
const RENAMED: &[(&str, &str)] = &[
    ("relay.Op", "Op"),
    ("relay.GlobalVar", "GlobalVar"),
    ("relay.TypeVar", "TypeVar"),
    ("relay.GlobalTypeVar", "GlobalTypeVar"),
    ("relay.TupleType", "TupleType"),
    ("relay.FuncType", "FuncType"),
    ("relay.IncompleteType", "IncompleteType"),
    ("relay.TypeRelation", "TypeRelation"),
    ("relay.TypeCall", "TypeCall"),
    ("relay.SourceName", "SourceName"),
    ("relay.Span", "Span"),
    ("relay.Module", "IRModule"),
    ("StrMap", "Map"),
    ("Any", "tir.Any"),
    ("tir.StringImm", "StringImm"),
];

impl Graph {
    /// Reads the nodes of a text.
    pub fn parse(text: &str) -> Result<Graph, JsonError> {
        let json: Value = serde_json::from_str(text).map_err(|e| JsonError::new("JSON", e.to_string()))?;
        let root = json.get("root").and_then(Value::as_u64).and_then(|v| usize::try_from(v).ok());
        let root = root.ok_or_else(|| JsonError::new("root", "there is no number of the first node"))?;
        let nodes = json.get("nodes").and_then(Value::as_array);
        let nodes = nodes.ok_or_else(|| JsonError::new("nodes", "there is no list of nodes"))?;
        let nodes: Vec<Node> =
            nodes.iter().enumerate().map(|(i, node)| read_node(i, node)).collect::<Result<_, _>>()?;
        let saved = json.get("b64ndarrays").and_then(Value::as_array).cloned().unwrap_or_default();
        let tensors = saved
            .iter()
            .enumerate()
            .map(|(i, text)| {
                let place = format!("tensor {i}");
                let text = text.as_str().ok_or_else(|| JsonError::new(&place, "it is no text"))?;
                from_base64(text).map_err(|e| JsonError::new(&place, e.message()))
            })
            .collect::<Result<_, _>>()?;
        let version = json.get("attrs").and_then(|a| a.get("tvm_version")).and_then(Value::as_str).unwrap_or("0.16");
        let release = version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or(16);
        let graph = Graph { nodes, root, tensors, release };
        graph.check()?;
        Ok(graph)
    }

    /// Every place that is referred to exists.
    fn check(&self) -> Result<(), JsonError> {
        let exists = |place: usize| place < self.nodes.len();
        if !exists(self.root) {
            return Err(JsonError::new("root", format!("there is no node {}", self.root)));
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if let Some(missing) = node.data.iter().find(|place| !exists(**place)) {
                return Err(JsonError::new(format!("node {i}"), format!("there is no node {missing}")));
            }
            if !node.keys.is_empty() && node.keys.len() != node.data.len() {
                return Err(JsonError::new(format!("node {i}"), "it has not as many keys as values"));
            }
        }
        Ok(())
    }

    pub(super) fn node(&self, id: usize) -> Result<&Node, JsonError> {
        self.nodes.get(id).ok_or_else(|| JsonError::new(format!("node {id}"), "there is no such node"))
    }

    pub(super) fn place(&self, id: usize) -> String {
        format!("node {id} ({})", self.nodes.get(id).map_or("", |n| n.key.as_str()))
    }

    pub(super) fn error(&self, id: usize, problem: impl std::fmt::Display) -> JsonError {
        JsonError::new(self.place(id), problem.to_string())
    }

    /// The node that a field refers to; `None` for the null node and for a field that older releases lack.
    pub(super) fn field(&self, id: usize, name: &str) -> Result<Option<usize>, JsonError> {
        let Some(text) = self.node(id)?.attrs.get(name) else { return Ok(None) };
        match text.parse::<usize>() {
            Ok(place) if place < self.nodes.len() => {
                let null = self.node(place)?.key.is_empty();
                Ok((!null).then_some(place))
            }
            _ => Err(self.error(id, format!("its field `{name}` refers to no node: {text:?}"))),
        }
    }

    /// The node that a field refers to, which must be there.
    pub(super) fn need(&self, id: usize, name: &str) -> Result<usize, JsonError> {
        self.field(id, name)?.ok_or_else(|| self.error(id, format!("its field `{name}` is missing")))
    }

    /// A text: in the field itself, or in a node that it refers to.
    pub(super) fn text(&self, id: usize, name: &str) -> Result<String, JsonError> {
        let missing = || self.error(id, format!("its field `{name}` is missing"));
        let text = self.node(id)?.attrs.get(name).ok_or_else(missing)?;
        Ok(self.text_node(text).unwrap_or_else(|| text.clone()))
    }

    /// The text of the node that a number refers to, where it is one of text.
    pub(super) fn text_node(&self, number: &str) -> Option<String> {
        if self.release <= 6 {
            return None;
        }
        let node = self.nodes.get(number.parse::<usize>().ok()?)?;
        matches!(node.key.as_str(), "runtime.String" | "StringImm" | "tir.StringImm")
            .then(|| node.text.clone().or_else(|| node.attrs.get("value").cloned()).unwrap_or_default())
    }

    /// The elements of the list that a field refers to.
    pub(super) fn list(&self, id: usize, name: &str) -> Result<&[usize], JsonError> {
        match self.field(id, name)? {
            None => Ok(&[]),
            Some(list) => Ok(&self.node(list)?.data),
        }
    }
}

fn read_node(i: usize, node: &Value) -> Result<Node, JsonError> {
    let place = || format!("node {i}");
    let key = node.get("type_key").and_then(Value::as_str).unwrap_or_default();
    let key = RENAMED.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new).to_string();
    let text_of = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let attrs = match node.get("attrs") {
        Some(Value::Object(map)) => map.iter().map(|(name, value)| (name.clone(), text_of(value))).collect(),
        None => HashMap::new(),
        Some(_) => return Err(JsonError::new(place(), "its fields are no object")),
    };
    let list = |name: &str| node.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let keys = list("keys").iter().map(text_of).collect();
    let data = list("data")
        .iter()
        .map(|value| value.as_u64().and_then(|v| usize::try_from(v).ok()))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| JsonError::new(place(), "its elements are no places"))?;
    let text = node.get("repr_str").or_else(|| node.get("global_key")).and_then(Value::as_str).map(str::to_string);
    Ok(Node { key, attrs, keys, data, text })
}
