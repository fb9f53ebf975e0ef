//! Maps of indices in the JSON of a trace, as TVM keeps them: a graph of nodes in a text.
//!
//! ```text
//! {"root_index": 8, "nodes": [{"type": "None"}, {"type": "ir.PrimType", "data": {"span": 0, "dtype": "int32"}},
//!     {"type": "ffi.String", "data": "i"}, {"type": "ir.Var", "data": {"span": 0, "ty": 1, "name": 2}}, …]}
//! ```
//!
//! A node names others by their numbers, and comes behind them. What is read may be anybody's: a node may name earlier nodes
//! only, so there are no cycles, and expressions are no deeper than a limit. Nodes of other kinds (spans, for instance) are
//! passed over.

use std::collections::HashMap;

use relaxide_ffi::{Any, Array, Map, Ref, json};
use relaxide_ir::prim::{self, BinaryOp, PrimExpr};
use relaxide_ir::{DataType, Var};

use crate::IndexMap;

/// Expressions may be this deep.
const DEEPEST: usize = 200;

/// Binary operators by the names of their nodes.
const BINARY: [(&str, BinaryOp); 17] = [
    ("prim.Add", BinaryOp::Add),
    ("prim.Sub", BinaryOp::Sub),
    ("prim.Mul", BinaryOp::Mul),
    ("prim.Div", BinaryOp::Div),
    ("prim.Mod", BinaryOp::Mod),
    ("prim.FloorDiv", BinaryOp::FloorDiv),
    ("prim.FloorMod", BinaryOp::FloorMod),
    ("prim.Min", BinaryOp::Min),
    ("prim.Max", BinaryOp::Max),
    ("prim.EQ", BinaryOp::Eq),
    ("prim.NE", BinaryOp::Ne),
    ("prim.LT", BinaryOp::Lt),
    ("prim.LE", BinaryOp::Le),
    ("prim.GT", BinaryOp::Gt),
    ("prim.GE", BinaryOp::Ge),
    ("prim.And", BinaryOp::And),
    ("prim.Or", BinaryOp::Or),
];

/// A map as the text of a graph; `None` where it holds an expression that has no node here.
pub(super) fn write(map: &IndexMap) -> Option<String> {
    let mut nodes = Nodes { rows: vec![r#"{"type":"None"}"#.into()], types: HashMap::new(), vars: HashMap::new() };
    let from: Option<Vec<usize>> = map.initial_indices.iter().map(|v| nodes.var(v)).collect();
    let from = nodes.list(&from?);
    let to: Option<Vec<usize>> = map.final_indices.iter().map(|e| nodes.expression(e)).collect();
    let to = nodes.list(&to?);
    let data = format!(r#"{{"initial_indices":{from},"final_indices":{to},"inverse_index_map":0}}"#);
    let root = nodes.node("tirx.IndexMap", &data);
    Some(format!(r#"{{"root_index":{root},"nodes":[{}]}}"#, nodes.rows.join(",")))
}

struct Nodes {
    rows: Vec<String>,
    types: HashMap<DataType, usize>,
    vars: HashMap<Ref<Var>, usize>,
}

impl Nodes {
    fn node(&mut self, kind: &str, data: &str) -> usize {
        self.rows.push(format!(r#"{{"type":"{kind}","data":{data}}}"#));
        self.rows.len() - 1
    }

    fn list(&mut self, items: &[usize]) -> usize {
        let items: Vec<String> = items.iter().map(usize::to_string).collect();
        self.node("ffi.Array", &format!("[{}]", items.join(",")))
    }

    fn ty(&mut self, dtype: DataType) -> usize {
        if let Some(known) = self.types.get(&dtype) {
            return *known;
        }
        let made = self.node("ir.PrimType", &format!(r#"{{"span":0,"dtype":"{dtype}"}}"#));
        self.types.insert(dtype, made);
        made
    }

    fn var(&mut self, var: &Ref<Var>) -> Option<usize> {
        if let Some(known) = self.vars.get(var) {
            return Some(*known);
        }
        let ty = self.ty(var.dtype());
        let name = json::stringify(&Any::from(var.name.as_str()), 0).ok()?;
        let name = self.node("ffi.String", &name);
        let made = self.node("ir.Var", &format!(r#"{{"span":0,"ty":{ty},"name":{name}}}"#));
        self.vars.insert(var.clone(), made);
        Some(made)
    }

    fn expression(&mut self, e: &PrimExpr) -> Option<usize> {
        if let PrimExpr::Var(var) = e {
            return self.var(var);
        }
        let ty = self.ty(e.dtype());
        Some(match e {
            PrimExpr::Int(n) => {
                let value = self.node("int", &n.value.to_string());
                self.node("ir.IntImm", &format!(r#"{{"span":0,"ty":{ty},"value":{value}}}"#))
            }
            PrimExpr::Float(n) => self.node("ir.FloatImm", &format!(r#"{{"span":0,"ty":{ty},"value":{:?}}}"#, n.value)),
            PrimExpr::Cast(n) => {
                let value = self.expression(&n.value)?;
                self.node("prim.Cast", &format!(r#"{{"span":0,"ty":{ty},"value":{value}}}"#))
            }
            PrimExpr::Not(n) => {
                let a = self.expression(&n.a)?;
                self.node("prim.Not", &format!(r#"{{"span":0,"ty":{ty},"a":{a}}}"#))
            }
            PrimExpr::Binary(n) => {
                let (a, b) = (self.expression(&n.a)?, self.expression(&n.b)?);
                let (kind, _) = BINARY.iter().find(|(_, op)| *op == n.op)?;
                self.node(kind, &format!(r#"{{"span":0,"ty":{ty},"a":{a},"b":{b}}}"#))
            }
            PrimExpr::Select(n) => {
                let (condition, yes) = (self.expression(&n.condition)?, self.expression(&n.true_value)?);
                let no = self.expression(&n.false_value)?;
                let data =
                    format!(r#"{{"span":0,"ty":{ty},"condition":{condition},"true_value":{yes},"false_value":{no}}}"#);
                self.node("prim.Select", &data)
            }
            _ => return None,
        })
    }
}

/// The map of a graph's text.
pub(super) fn read(text: &str) -> Option<IndexMap> {
    let graph: Map = json::parse(text).ok()?.to().ok()?;
    let nodes: Array = graph.get("nodes")?.to().ok()?;
    let root = usize::try_from(graph.get("root_index")?.as_int()?).ok()?;
    let mut reader = MapReader { nodes, vars: HashMap::new() };
    let (kind, data) = reader.node(root)?;
    if kind != "tirx.IndexMap" {
        return None;
    }
    let from = reader.list(root, number(&data, "initial_indices")?)?;
    let initial_indices = from.into_iter().map(|at| reader.var(at)).collect::<Option<Vec<_>>>()?;
    let to = reader.list(root, number(&data, "final_indices")?)?;
    let final_indices = to.into_iter().map(|at| reader.expression(at, 0)).collect::<Option<Vec<_>>>()?;
    Some(IndexMap { initial_indices, final_indices, inverse_index_map: None })
}

fn number(data: &Map, field: &str) -> Option<usize> {
    usize::try_from(data.get(field)?.as_int()?).ok()
}

struct MapReader {
    nodes: Array,
    vars: HashMap<usize, Ref<Var>>,
}

impl MapReader {
    /// The kind of a node, and its fields.
    fn node(&self, at: usize) -> Option<(String, Map)> {
        let node: Map = self.any(at)?;
        Some((node.get("type")?.as_str()?.to_string(), node.get("data")?.to().ok()?))
    }

    fn any(&self, at: usize) -> Option<Map> {
        self.nodes.iter().nth(at)?.to().ok()
    }

    /// The literal of a node of one of the plain kinds.
    fn literal(&self, at: usize) -> Option<Any> {
        self.any(at)?.get("data").map(|data| data.to_owned())
    }

    fn list(&self, parent: usize, at: usize) -> Option<Vec<usize>> {
        let items: Array = self.literal(at).filter(|_| at < parent)?.to().ok()?;
        items.iter().map(|item| usize::try_from(item.as_int()?).ok().filter(|child| *child < at)).collect()
    }

    fn dtype(&self, data: &Map) -> Option<DataType> {
        let (kind, ty) = self.node(number(data, "ty")?)?;
        let text = ty.get("dtype").filter(|_| kind == "ir.PrimType")?.as_str()?.to_string();
        text.parse().ok()
    }

    fn var(&mut self, at: usize) -> Option<Ref<Var>> {
        if let Some(known) = self.vars.get(&at) {
            return Some(known.clone());
        }
        let (kind, data) = self.node(at)?;
        let name = self.literal(number(&data, "name")?).filter(|_| kind == "ir.Var")?;
        let var = Var::prim(name.as_str()?.to_string(), self.dtype(&data)?);
        self.vars.insert(at, var.clone());
        Some(var)
    }

    fn expression(&mut self, at: usize, depth: usize) -> Option<PrimExpr> {
        let (kind, data) = self.node(at).filter(|_| depth < DEEPEST)?;
        if kind == "ir.Var" {
            return self.var(at).map(|var| PrimExpr::from(&var));
        }
        let dtype = self.dtype(&data)?;
        let operand = |reader: &mut MapReader, field: &str| {
            let child = number(&data, field).filter(|child| *child < at)?;
            reader.expression(child, depth + 1)
        };
        Some(match kind.as_str() {
            "ir.IntImm" => prim::int_of(dtype, self.literal(number(&data, "value")?)?.as_int()?),
            "ir.FloatImm" => {
                let value = data.get("value")?;
                prim::float_of(dtype, value.as_float().or_else(|| value.as_int().map(|v| v as f64))?)
            }
            "prim.Cast" => prim::cast(dtype, operand(self, "value")?),
            "prim.Not" => prim::not(operand(self, "a")?),
            "prim.Select" => {
                let (condition, yes) = (operand(self, "condition")?, operand(self, "true_value")?);
                prim::select(condition, yes, operand(self, "false_value")?)
            }
            _ => {
                let (_, op) = BINARY.iter().find(|(name, _)| *name == kind)?;
                let (a, b) = (operand(self, "a")?, operand(self, "b")?);
                prim::binary(*op, a, b)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_comes_back() {
        let vars = [Var::prim("i", DataType::int(32)), Var::dim("j")];
        let (i, j) = (PrimExpr::from(&vars[0]), PrimExpr::from(&vars[1]));
        let to =
            vec![prim::floordiv(&i, 4) + 1, prim::floormod(&j, 3), prim::cast(DataType::float(32), prim::max(j, 2))];
        let map = IndexMap { initial_indices: vars.to_vec(), final_indices: to, inverse_index_map: None };
        let text = write(&map).unwrap();
        let back = read(&text).unwrap();
        assert_eq!(write(&back), Some(text));
        assert_eq!(back.final_indices[1].to_string(), "j % 3");
    }

    #[test]
    fn nodes_that_name_later_ones_or_nothing_are_refused() {
        let good = r#"{"root_index":3,"nodes":[{"type":"None"},{"type":"ffi.Array","data":[]},{"type":"ffi.Array","data":[]},
            {"type":"tirx.IndexMap","data":{"initial_indices":1,"final_indices":2,"inverse_index_map":0}}]}"#;
        assert!(read(good).is_some());
        for (from, to) in [
            ("\"root_index\":3", "\"root_index\":9"),
            ("indices\":2", "indices\":3"),
            ("data\":[]", "data\":[1]"),
            ("tirx", "x"),
        ] {
            assert!(read(&good.replace(from, to)).is_none(), "{to}");
        }
        assert!(read("{").is_none());
    }
}
