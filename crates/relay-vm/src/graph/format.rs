//! The JSON of a graph, both ways.
//!
//! What is read is checked once: nodes refer to nodes in front of them, every result has a type and a storage, and a storage
//! is as large as the largest result in it needs. The executor relies on that.

use relaxide_ffi::{DataType, Error, ErrorKind};
use serde_json::{Map, Value, json};

/// How many results a graph may have.
const MAX_ENTRIES: usize = 1 << 24;

/// A result of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeEntry {
    /// The node.
    pub node: usize,
    /// Which of its results.
    pub index: usize,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// It is given: an input or a weight.
    Input,
    /// It calls a kernel.
    Kernel {
        /// The function; `__nop` and `__copy` are the executor's own.
        function: String,
        /// Whether the kernel takes its tensors as vectors.
        flatten: bool,
        /// What else the file says of it.
        attrs: Vec<(String, String)>,
    },
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// What it does.
    pub kind: NodeKind,
    /// What it takes.
    pub inputs: Vec<NodeEntry>,
    /// How many results it has.
    pub outputs: usize,
}

/// The type and place of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryType {
    /// The dimensions.
    pub shape: Vec<i64>,
    /// The element type.
    pub dtype: DataType,
    /// The storage that it lies in.
    pub storage: usize,
    /// The kind of device, where the file says one.
    pub device: Option<i32>,
}

/// A graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes, in the order in which they run.
    pub nodes: Vec<Node>,
    /// Which of them are inputs.
    pub arg_nodes: Vec<usize>,
    /// The results of the whole.
    pub heads: Vec<NodeEntry>,
    /// The types of all results, nodes one after the other.
    pub entries: Vec<EntryType>,
    /// Where each node's results begin among them; the last is their number.
    pub row: Vec<usize>,
}

fn refuse<T>(message: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::new(ErrorKind::ValueError, format!("the graph's JSON: {message}")))
}

fn list<'a>(value: &'a Value, what: &str) -> Result<&'a [Value], Error> {
    value.as_array().map_or_else(|| refuse(format!("{what} must be a list")), |list| Ok(list.as_slice()))
}

fn number(value: &Value, what: &str) -> Result<usize, Error> {
    let read = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    read.and_then(|n| usize::try_from(n).ok())
        .map_or_else(|| refuse(format!("{what} must be a number, not {value}")), Ok)
}

fn integer<T: TryFrom<i64>>(value: &Value, what: &str) -> Result<T, Error> {
    value
        .as_i64()
        .and_then(|v| T::try_from(v).ok())
        .map_or_else(|| refuse(format!("{what} must be an integer in range, not {value}")), Ok)
}

fn entry(value: &Value, what: &str) -> Result<NodeEntry, Error> {
    match list(value, what)? {
        [node, index] | [node, index, _] => Ok(NodeEntry { node: number(node, what)?, index: number(index, what)? }),
        _ => refuse(format!("{what} is [node, result, version]")),
    }
}

fn node(value: &Value, at: usize) -> Result<Node, Error> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let name = text("name").map_or_else(|| refuse(format!("node {at} has no name")), Ok)?.to_string();
    let inputs = value.get("inputs").map_or(Ok(&[] as &[Value]), |v| list(v, "inputs"))?;
    let inputs = inputs.iter().map(|v| entry(v, "an input")).collect::<Result<Vec<_>, _>>()?;
    let (kind, outputs) = match text("op") {
        Some("null") => (NodeKind::Input, 1),
        Some("tvm_op") => {
            let empty = Map::new();
            let given = value.get("attrs").or_else(|| value.get("attr")).and_then(Value::as_object).unwrap_or(&empty);
            let of = |key: &str| given.get(key);
            let missing = || refuse(format!("node {at} ({name}) names no function"));
            let function = of("func_name").and_then(Value::as_str).map_or_else(missing, |f| Ok(f.to_string()))?;
            let outputs = of("num_outputs").map_or(Ok(1), |v| number(v, "num_outputs"))?;
            let wanted = of("num_inputs").map_or(Ok(inputs.len()), |v| number(v, "num_inputs"))?;
            if wanted != inputs.len() {
                return refuse(format!("node {at} ({name}) has {} inputs and says {wanted}", inputs.len()));
            }
            let flatten = of("flatten_data").map_or(Ok(0), |v| number(v, "flatten_data"))? == 1;
            let own = ["func_name", "num_outputs", "num_inputs", "flatten_data"];
            let plain = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
            let others = given.iter().filter(|(key, _)| !own.contains(&key.as_str()));
            let attrs = others.map(|(key, v)| (key.clone(), plain(v))).collect();
            (NodeKind::Kernel { function, flatten, attrs }, outputs)
        }
        other => return refuse(format!("node {at} ({name}) is of op {other:?}; there are \"null\" and \"tvm_op\"")),
    };
    if let (NodeKind::Input, false) = (&kind, inputs.is_empty()) {
        return refuse(format!("node {at} ({name}) is given and has inputs"));
    }
    Ok(Node { name, kind, inputs, outputs })
}

impl Graph {
    /// The graph of a text.
    pub fn parse(text: &str) -> Result<Graph, Error> {
        let value: Value = serde_json::from_str(text).or_else(refuse)?;
        let part = |key: &str| value.get(key).map_or_else(|| refuse(format!("there is no `{key}`")), Ok);
        let nodes = list(part("nodes")?, "nodes")?;
        let nodes = nodes.iter().enumerate().map(|(at, v)| node(v, at)).collect::<Result<Vec<_>, _>>()?;
        let args = list(part("arg_nodes")?, "arg_nodes")?;
        let arg_nodes = args.iter().map(|v| number(v, "an argument")).collect::<Result<Vec<_>, _>>()?;
        let heads = list(part("heads")?, "heads")?;
        let heads = heads.iter().map(|v| entry(v, "a head")).collect::<Result<Vec<_>, _>>()?;
        let mut row = vec![0usize];
        for node in &nodes {
            let end = row.last().copied().unwrap_or(0).checked_add(node.outputs);
            match end.filter(|end| *end <= MAX_ENTRIES) {
                Some(end) => row.push(end),
                None => return refuse(format!("there are more than {MAX_ENTRIES} results")),
            }
        }
        let total = row.last().copied().unwrap_or(0);
        let entries = entries(part("attrs")?, total)?;
        let graph = Graph { nodes, arg_nodes, heads, entries, row };
        graph.check()?;
        if let Some(given) = value.get("node_row_ptr") {
            let given = list(given, "node_row_ptr")?.iter().map(|v| number(v, "node_row_ptr"));
            if given.collect::<Result<Vec<_>, _>>()? != graph.row {
                return refuse("node_row_ptr does not fit the nodes' numbers of results");
            }
        }
        Ok(graph)
    }

    fn check(&self) -> Result<(), Error> {
        for (at, node) in self.nodes.iter().enumerate() {
            for input in &node.inputs {
                if input.node >= at || input.index >= self.nodes[input.node].outputs {
                    let (name, from) = (&node.name, input.node);
                    return refuse(format!(
                        "node {at} ({name}) takes result {} of node {from}, which is not in front of it",
                        input.index
                    ));
                }
            }
        }
        if let Some(head) = self.heads.iter().find(|h| self.nodes.get(h.node).is_none_or(|n| h.index >= n.outputs)) {
            return refuse(format!("a head is result {} of node {}, which does not exist", head.index, head.node));
        }
        let is_input = |at: &usize| self.nodes.get(*at).is_some_and(|n| n.kind == NodeKind::Input);
        match self.arg_nodes.iter().find(|at| !is_input(at)) {
            Some(at) => refuse(format!("node {at} is no input, and arg_nodes names it")),
            None => Ok(()),
        }
    }

    /// The place of a result among all.
    pub fn place(&self, entry: NodeEntry) -> usize {
        self.row[entry.node] + entry.index
    }

    /// The text of the graph.
    pub fn to_json(&self) -> String {
        let entry = |e: &NodeEntry| json!([e.node, e.index, 0]);
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .map(|node| {
                let inputs: Vec<Value> = node.inputs.iter().map(entry).collect();
                match &node.kind {
                    NodeKind::Input => json!({"op": "null", "name": node.name, "inputs": inputs}),
                    NodeKind::Kernel { function, flatten, attrs } => {
                        let mut given = Map::new();
                        given.insert("num_outputs".into(), node.outputs.to_string().into());
                        given.insert("num_inputs".into(), node.inputs.len().to_string().into());
                        given.insert("flatten_data".into(), u8::from(*flatten).to_string().into());
                        given.insert("func_name".into(), function.clone().into());
                        given.extend(attrs.iter().map(|(key, value)| (key.clone(), value.clone().into())));
                        json!({"op": "tvm_op", "name": node.name, "attrs": given, "inputs": inputs})
                    }
                }
            })
            .collect();
        let types: Vec<String> = self.entries.iter().map(|e| e.dtype.to_string()).collect();
        let mut attrs = json!({
            "dltype": ["list_str", types],
            "storage_id": ["list_int", self.entries.iter().map(|e| e.storage).collect::<Vec<_>>()],
            "shape": ["list_shape", self.entries.iter().map(|e| e.shape.clone()).collect::<Vec<_>>()],
        });
        if self.entries.iter().any(|e| e.device.is_some()) {
            let devices: Vec<i32> = self.entries.iter().map(|e| e.device.unwrap_or(1)).collect();
            attrs["device_index"] = json!(["list_int", devices]);
        }
        let heads: Vec<Value> = self.heads.iter().map(entry).collect();
        let whole = json!({
            "nodes": nodes, "arg_nodes": self.arg_nodes, "heads": heads, "attrs": attrs, "node_row_ptr": self.row,
        });
        serde_json::to_string_pretty(&whole).unwrap_or_default()
    }
}

/// The types of results: lists of one length behind a word that names their kind.
fn entries(attrs: &Value, total: usize) -> Result<Vec<EntryType>, Error> {
    let column = |key: &str| -> Result<Option<&[Value]>, Error> {
        let Some(value) = attrs.get(key) else { return Ok(None) };
        let values = list(list(value, key)?.get(1).unwrap_or(&Value::Null), key)?;
        match values.len() == total {
            true => Ok(Some(values)),
            false => refuse(format!("`{key}` says {} results, and the nodes have {total}", values.len())),
        }
    };
    let need = |key: &'static str| column(key)?.map_or_else(|| refuse(format!("attrs has no `{key}`")), Ok);
    let (shapes, types, storages) = (need("shape")?, need("dltype")?, need("storage_id")?);
    let devices = column("device_index")?;
    let mut out = Vec::with_capacity(total);
    for at in 0..total {
        let dims = list(&shapes[at], "a shape")?;
        let shape = dims.iter().map(|d| number(d, "a dimension").map(|d| d as i64)).collect::<Result<Vec<_>, _>>()?;
        let text = types[at].as_str().unwrap_or_default();
        let dtype: DataType = text.parse().or_else(|_| refuse(format!("{text:?} is no element type")))?;
        let storage = number(&storages[at], "a storage")?;
        if storage >= MAX_ENTRIES {
            return refuse(format!("there is no storage {storage}"));
        }
        let device = devices.map(|d| integer(&d[at], "a device")).transpose()?;
        out.push(EntryType { shape, dtype, storage, device });
    }
    Ok(out)
}
