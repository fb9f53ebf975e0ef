//! A saved graph to a module.
//!
//! What TVM did in steps, release after release, is done here while reading: fields that older releases lack count as absent,
//! a text may stand in a field or in a node of its own, and an attribute is brought to the kind that the operator's table
//! says. So whole modules of 0.6 to 0.9 load, which TVM's own steps refuse.

mod matching;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{AttrValue, Attrs, GlobalVar, Span};

use super::graph::{Graph, JsonError};
use super::{MetaTable, MetaValue};
use crate::devices::RESULT;
use crate::op::{self, AttrKind};
use crate::stack::{MAX_DEPTH, deep};
use crate::*;

/// The module of a text that `save_json` wrote. A function alone becomes `main`.
pub fn load(text: &str) -> Result<Module, JsonError> {
    let graph = Graph::parse(text)?;
    deep(|| {
        let mut reader = GraphReader::new(&graph)?;
        let root = graph.root;
        match graph.node(root)?.key.as_str() {
            "IRModule" => reader.module(root),
            _ => {
                let expr = reader.expr(root)?;
                let function = match expr {
                    Expr::Function(function) => function,
                    other => Function::new(crate::visit::free_vars(&other), other, None),
                };
                let mut module = Module::of_main(function);
                module.types = reader.types.clone();
                Ok(module)
            }
        }
    })
}

/// The expression of a text that `save_json` wrote.
pub fn load_expr(text: &str) -> Result<Expr, JsonError> {
    let graph = Graph::parse(text)?;
    deep(|| GraphReader::new(&graph)?.expr(graph.root))
}

impl Graph {
    /// What the metadata of a text hold. Constructors are those of the module.
    pub fn meta_table(&self, module: &Module) -> Result<MetaTable, JsonError> {
        let mut reader = GraphReader::new(self)?;
        for ty in module.types.values() {
            for constructor in &ty.constructors {
                let key = (ty.name.clone(), constructor.name.clone());
                reader.constructors.insert(key, constructor.clone());
            }
        }
        let mut table = MetaTable::default();
        let root = self.node(self.root)?;
        for (key, list) in root.keys.iter().zip(&root.data) {
            let values = self.node(*list)?.data.iter().map(|id| reader.meta(*id)).collect::<Result<_, _>>()?;
            table.0.insert(key.clone(), values);
        }
        Ok(table)
    }
}

struct GraphReader<'g> {
    graph: &'g Graph,
    exprs: HashMap<usize, Expr>,
    types_read: HashMap<usize, Type>,
    type_vars: HashMap<usize, Ref<TypeVar>>,
    types: IndexMap<String, Ref<TypeData>>,
    constructors: HashMap<(String, String), Ref<Constructor>>,
    depth: usize,
}

impl<'g> GraphReader<'g> {
    /// A reader that knows the data types of the graph.
    fn new(graph: &'g Graph) -> Result<GraphReader<'g>, JsonError> {
        let mut reader = GraphReader {
            graph,
            exprs: HashMap::new(),
            types_read: HashMap::new(),
            type_vars: HashMap::new(),
            types: IndexMap::new(),
            constructors: HashMap::new(),
            depth: 0,
        };
        for id in 0..graph.nodes.len() {
            if graph.node(id)?.key == "relay.TypeData" {
                reader.type_data(id)?;
            }
        }
        reader.told_apart()?;
        Ok(reader)
    }

    /// Constructors are told apart by their names in a program and by their tags when it runs.
    fn told_apart(&self) -> Result<(), JsonError> {
        let (mut names, mut tags) = (HashSet::new(), HashSet::new());
        for constructor in self.types.values().flat_map(|ty| &ty.constructors) {
            let Constructor { name, belong_to, tag, .. } = &**constructor;
            if !names.insert(name) {
                let message = format!("the constructor `{name}` of the type `{belong_to}` is defined twice");
                return Err(self.graph.error(self.graph.root, message));
            }
            if !tags.insert(*tag) {
                let message = format!("the type `{belong_to}` has the tags of another; choose another name for it");
                return Err(self.graph.error(self.graph.root, message));
            }
        }
        Ok(())
    }

    fn nested<T>(&mut self, id: usize, read: impl FnOnce(&mut Self) -> Result<T, JsonError>) -> Result<T, JsonError> {
        if self.depth >= MAX_DEPTH {
            return Err(self
                .graph
                .error(id, format!("the graph is deeper than {MAX_DEPTH} levels, or refers to itself")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn module(&mut self, id: usize) -> Result<Module, JsonError> {
        let mut module = Module { types: self.types.clone(), ..Module::new() };
        let map = self.graph.need(id, "functions")?;
        for pair in self.graph.node(map)?.data.chunks(2) {
            let [key, value] = pair else { return Err(self.graph.error(map, "a function without a name")) };
            let name = self.graph.text(*key, "name_hint")?;
            if name.is_empty() {
                return Err(self.graph.error(*key, "a function without a name"));
            }
            match self.expr(*value)? {
                Expr::Function(function) => module.functions.insert(name, function),
                _ => return Err(self.graph.error(*value, "a module holds functions of Relay only here")),
            };
        }
        module.functions.sort_keys();
        Ok(module)
    }

    fn type_data(&mut self, id: usize) -> Result<(), JsonError> {
        let name = self.type_name(self.graph.need(id, "header")?)?;
        let vars = self.graph.list(id, "type_vars")?.to_vec();
        let type_vars = vars.iter().map(|v| self.type_var(*v)).collect::<Result<Vec<_>, _>>()?;
        let nodes = self.graph.list(id, "constructors")?.to_vec();
        let mut defs = Vec::new();
        for node in &nodes {
            let inputs = self.graph.list(*node, "inputs")?.to_vec();
            let inputs = inputs.iter().map(|ty| self.ty(*ty)).collect::<Result<_, _>>()?;
            defs.push(crate::module::ConstructorDef { name: self.name(*node, "name_hint")?, inputs });
        }
        let data = TypeData::new(&name, type_vars, defs);
        for constructor in &data.constructors {
            self.constructors.insert((name.clone(), constructor.name.clone()), constructor.clone());
        }
        self.types.insert(name, data);
        Ok(())
    }

    /// The name of a type or a constructor.
    fn name(&self, id: usize, field: &str) -> Result<String, JsonError> {
        let name = self.graph.text(id, field)?;
        if name.is_empty() { Err(self.graph.error(id, "its name is empty")) } else { Ok(name) }
    }

    /// The name of a type or a type parameter, which 0.6 kept in a variable.
    fn type_name(&self, id: usize) -> Result<String, JsonError> {
        match self.graph.node(id)?.attrs.contains_key("name_hint") {
            true => self.name(id, "name_hint"),
            false => self.name(self.graph.need(id, "var")?, "name"),
        }
    }

    fn type_var(&mut self, id: usize) -> Result<Ref<TypeVar>, JsonError> {
        if let Some(var) = self.type_vars.get(&id) {
            return Ok(var.clone());
        }
        let var = Ref::new(TypeVar { name: self.type_name(id)? });
        self.type_vars.insert(id, var.clone());
        Ok(var)
    }

    fn ty(&mut self, id: usize) -> Result<Type, JsonError> {
        if let Some(ty) = self.types_read.get(&id) {
            return Ok(ty.clone());
        }
        let ty = self.nested(id, |r| r.type_inside(id))?;
        self.types_read.insert(id, ty.clone());
        Ok(ty)
    }

    fn types_of(&mut self, id: usize, name: &str) -> Result<Vec<Type>, JsonError> {
        self.graph.list(id, name)?.to_vec().into_iter().map(|ty| self.ty(ty)).collect()
    }

    fn type_inside(&mut self, id: usize) -> Result<Type, JsonError> {
        let node = self.graph.node(id)?;
        Ok(match node.key.as_str() {
            "relay.TensorType" => {
                let shape =
                    self.graph.list(id, "shape")?.iter().map(|dim| self.dim(*dim)).collect::<Result<Vec<_>, _>>()?;
                Type::tensor(shape, self.dtype(id, node.attrs.get("dtype"))?)
            }
            "TupleType" => Type::tuple(self.types_of(id, "fields")?),
            "FuncType" => {
                let params = self.graph.list(id, "type_params")?.to_vec();
                let type_params = params.into_iter().map(|v| self.type_var(v)).collect::<Result<_, _>>()?;
                let args = self.types_of(id, "arg_types")?;
                let ret = self.ty(self.graph.need(id, "ret_type")?)?;
                Ref::new(FuncType { type_params, args, ret }).into()
            }
            "TypeVar" => self.type_var(id)?.into(),
            "GlobalTypeVar" => Type::data(self.type_name(id)?, []),
            "TypeCall" => {
                let name = self.type_name(self.graph.need(id, "func")?)?;
                Type::data(name, self.types_of(id, "args")?)
            }
            "relay.RefType" => Type::reference(self.ty(self.graph.need(id, "value")?)?),
            "IncompleteType" => Type::fresh(),
            _ => return Err(self.graph.error(id, "this is no type of Relay")),
        })
    }

    fn dim(&self, id: usize) -> Result<i64, JsonError> {
        let node = self.graph.node(id)?;
        match node.key.as_str() {
            "tir.Any" => Ok(ANY),
            _ => self
                .int_node(id)
                .filter(|dim| *dim >= 0)
                .ok_or_else(|| self.graph.error(id, "a dimension must be a number that is not negative, or unknown")),
        }
    }

    fn int_node(&self, id: usize) -> Option<i64> {
        let node = self.graph.node(id).ok()?;
        matches!(node.key.as_str(), "IntImm" | "tir.IntImm").then(|| node.attrs.get("value")?.parse().ok())?
    }

    fn dtype(&self, id: usize, text: Option<&String>) -> Result<DataType, JsonError> {
        match text.map(String::as_str) {
            None | Some("") => Ok(DataType::void()),
            Some("uint1") => Ok(DataType::bool()),
            Some(text) => text.parse().map_err(|_| self.graph.error(id, format!("{text:?} is no element type"))),
        }
    }

    fn span(&self, id: usize) -> Option<Ref<Span>> {
        let span = self.graph.field(id, "span").ok()??;
        let node = self.graph.node(span).ok()?;
        let number = |name: &str| node.attrs.get(name).and_then(|v| v.parse::<i64>().ok());
        let source = self.graph.field(span, "source_name").ok().flatten();
        let source = source.and_then(|s| self.graph.node(s).ok()?.text.clone()).unwrap_or_default();
        let line = number("line")?;
        let column = number("column")?;
        Some(Ref::new(Span {
            source,
            line,
            end_line: number("end_line").unwrap_or(line),
            column,
            end_column: number("end_column").unwrap_or(column),
            notes: Vec::new(),
        }))
    }

    fn expr(&mut self, id: usize) -> Result<Expr, JsonError> {
        if let Some(expr) = self.exprs.get(&id) {
            return Ok(expr.clone());
        }
        let expr = self.nested(id, |r| r.expr_inside(id))?;
        self.exprs.insert(id, expr.clone());
        Ok(expr)
    }

    fn field_expr(&mut self, id: usize, name: &str) -> Result<Expr, JsonError> {
        self.expr(self.graph.need(id, name)?)
    }

    fn exprs_of(&mut self, id: usize, name: &str) -> Result<Vec<Expr>, JsonError> {
        self.graph.list(id, name)?.to_vec().into_iter().map(|e| self.expr(e)).collect()
    }

    fn var(&mut self, id: usize) -> Result<Ref<Var>, JsonError> {
        match self.expr(id)? {
            Expr::Var(var) => Ok(var),
            _ => Err(self.graph.error(id, "a variable is expected")),
        }
    }

    fn expr_inside(&mut self, id: usize) -> Result<Expr, JsonError> {
        let (node, span) = (self.graph.node(id)?, self.span(id));
        Ok(match node.key.as_str() {
            "relay.Constant" => {
                let place = node.attrs.get("data").and_then(|v| v.parse::<usize>().ok());
                let data = place.and_then(|i| self.graph.tensors.get(i)).cloned();
                let data = data.ok_or_else(|| self.graph.error(id, "its tensor is missing"))?;
                Ref::new(Constant { data, span }).into()
            }
            "relay.Tuple" => Ref::new(Tuple { fields: self.exprs_of(id, "fields")?, span }).into(),
            "relay.Var" => {
                let vid = self.graph.need(id, "vid")?;
                let name = self.graph.text(vid, "name_hint")?;
                let annotation = self.graph.field(id, "type_annotation")?.map(|ty| self.ty(ty)).transpose()?;
                let device = self.device(id)?.map(Ref::new);
                Ref::new(Var { name, annotation, device, span }).into()
            }
            "GlobalVar" => GlobalVar::new(self.graph.text(id, "name_hint")?).into(),
            "relay.Function" => self.function(id, span)?.into(),
            "relay.Call" => self.call(id, span)?,
            "relay.Let" => self.lets(id)?,
            "relay.If" => {
                let cond = self.field_expr(id, "cond")?;
                let then = self.field_expr(id, "true_branch")?;
                let other = self.field_expr(id, "false_branch")?;
                Ref::new(If { cond, then, other, span }).into()
            }
            "relay.TupleGetItem" => {
                let field = if node.attrs.contains_key("tuple_value") { "tuple_value" } else { "tuple" };
                let index = node.attrs.get("index").and_then(|v| v.parse().ok());
                let index = index.ok_or_else(|| self.graph.error(id, "its index is missing"))?;
                Ref::new(TupleGetItem { tuple: self.field_expr(id, field)?, index, span }).into()
            }
            "relay.RefCreate" => Ref::new(RefCreate { value: self.field_expr(id, "value")?, span }).into(),
            "relay.RefRead" => Ref::new(RefRead { reference: self.field_expr(id, "ref")?, span }).into(),
            "relay.RefWrite" => {
                let (reference, value) = (self.field_expr(id, "ref")?, self.field_expr(id, "value")?);
                Ref::new(RefWrite { reference, value, span }).into()
            }
            "relay.Match" => self.matching(id, span)?,
            "relay.Constructor" => self.constructor(id)?.into(),
            "Op" => {
                let name = node.text.clone().or_else(|| node.attrs.get("name").cloned());
                Expr::op(name.ok_or_else(|| self.graph.error(id, "its name is missing"))?)
            }
            _ => return Err(self.graph.error(id, "this is no expression of Relay")),
        })
    }

    /// Bindings that follow each other, in a loop.
    fn lets(&mut self, first: usize) -> Result<Expr, JsonError> {
        let (mut chain, mut id) = (Vec::new(), first);
        while self.graph.node(id)?.key == "relay.Let" && !self.exprs.contains_key(&id) {
            if chain.len() > self.graph.nodes.len() {
                return Err(self.graph.error(first, "its body is itself"));
            }
            let var = self.var(self.graph.need(id, "var")?)?;
            let value = self.field_expr(id, "value")?;
            chain.push((id, var, value));
            id = self.graph.need(id, "body")?;
        }
        let mut body = self.expr(id)?;
        for (id, var, value) in chain.into_iter().rev() {
            body = Ref::new(Let { var, value, body, span: self.span(id) }).into();
            self.exprs.insert(id, body.clone());
        }
        Ok(body)
    }

    fn function(&mut self, id: usize, span: Option<Ref<Span>>) -> Result<Ref<Function>, JsonError> {
        let params = self.graph.list(id, "params")?.to_vec();
        let params = params.into_iter().map(|p| self.var(p)).collect::<Result<_, _>>()?;
        let type_params = self.graph.list(id, "type_params")?.to_vec();
        let type_params = type_params.into_iter().map(|v| self.type_var(v)).collect::<Result<_, _>>()?;
        let ret_type = self.graph.field(id, "ret_type")?.map(|ty| self.ty(ty)).transpose()?;
        let ret_type = ret_type.filter(|ty| !matches!(ty, Type::Incomplete(_)));
        let attrs = match self.graph.field(id, "attrs")? {
            Some(attrs) => self.dict(attrs)?,
            None => Attrs::new(),
        };
        let attrs = match self.device(id)? {
            Some(device) => attrs.with(RESULT, device.to_attr()),
            None => attrs,
        };
        let body = self.field_expr(id, "body")?;
        Ok(Ref::new(Function { type_params, params, body, ret_type, attrs, span }))
    }

    /// The device of a node, if it names one.
    fn device(&mut self, id: usize) -> Result<Option<VirtualDevice>, JsonError> {
        let Some(device) = self.graph.field(id, "virtual_device_")? else { return Ok(None) };
        let value = self.attr_node(device)?;
        VirtualDevice::of_attr(&value).map_err(|why| self.graph.error(device, why))
    }

    fn dict(&mut self, id: usize) -> Result<Attrs, JsonError> {
        let map = if self.graph.node(id)?.key == "Map" { Some(id) } else { self.graph.field(id, "__dict__")? };
        let Some(map) = map else { return Ok(Attrs::new()) };
        match self.attr_node(map)? {
            AttrValue::Map(map) => Ok(Attrs(map)),
            _ => Err(self.graph.error(map, "attributes by name are expected")),
        }
    }

    fn call(&mut self, id: usize, span: Option<Ref<Span>>) -> Result<Expr, JsonError> {
        let op = self.field_expr(id, "op")?;
        let mut args = self.exprs_of(id, "args")?;
        let mut attrs = Attrs::new();
        if let Some(node) = self.graph.field(id, "attrs")? {
            attrs = self.attrs(node)?;
            if let (Expr::Op(op), true) = (&op, self.graph.release <= 6) {
                self.older_operands(node, &op.name, &mut args)?;
            }
        }
        let attrs = match &op {
            Expr::Op(node) => match op::lookup(&node.name) {
                Some(def) => def.complete_attrs(&attrs).map_err(|why| self.graph.error(id, why))?,
                None => return Err(self.graph.error(id, format!("there is no operator `{}`", node.name))),
            },
            _ => attrs,
        };
        Ok(Ref::new(Call { op, args, attrs, type_args: Vec::new(), span }).into())
    }

    /// The attributes of a call.
    fn attrs(&mut self, id: usize) -> Result<Attrs, JsonError> {
        let node = self.graph.node(id)?;
        let name = node.key.strip_prefix("relay.attrs.").and_then(|key| key.strip_suffix("Attrs"));
        // Quantized operators had nodes of their own.
        let name = name.map(|name| match name {
            "QnnConv2D" => "Conv2D",
            "QnnDense" => "Dense",
            "QnnBinaryOp" => "Broadcast",
            "QnnConcatenate" => "Concatenate",
            other => other,
        });
        let Some(def) = name.and_then(op::attrs_def) else {
            return if node.key == "DictAttrs" {
                self.dict(id)
            } else {
                Err(self.graph.error(id, "these attributes belong to no operator of Relay"))
            };
        };
        let mut attrs = Attrs::new();
        for field in def.fields {
            if let Some(text) = node.attrs.get(field.name) {
                attrs = attrs.with(field.name, self.attr_field(id, field, text)?);
            }
        }
        Ok(attrs)
    }

    /// What release 0.6 kept in the attributes of a quantized operator.
    fn older_operands(&mut self, id: usize, op: &str, args: &mut Vec<Expr>) -> Result<(), JsonError> {
        let mut found = Attrs::new();
        for name in op::older::operands(op) {
            let Some(text) = self.graph.node(id)?.attrs.get(name) else { continue };
            let value = match (text.parse::<i64>(), text.parse::<f64>()) {
                // Lists are nodes.
                _ if name.ends_with('s') => self.attr_node(self.graph.need(id, name)?)?,
                (Ok(v), _) => AttrValue::Int(v),
                (_, Ok(v)) => AttrValue::Float(v),
                _ => return Err(self.graph.error(id, format!("its field `{name}` is {text:?}"))),
            };
            found = found.with(name, value);
        }
        op::older::quantized(op, args, &mut found).map_err(|why| self.graph.error(id, why))
    }

    fn attr_field(&mut self, id: usize, field: &op::Field, text: &str) -> Result<AttrValue, JsonError> {
        let unfit = || self.graph.error(id, format!("its field `{}` is {text:?}", field.name));
        if let Some(text) = self.graph.text_node(text)
            && (matches!(field.kind, AttrKind::Str | AttrKind::Any) || field.boxed)
        {
            return Ok(AttrValue::Str(text));
        }
        match field.kind {
            AttrKind::Str => Ok(if field.boxed && text == "0" { AttrValue::None } else { text.into() }),
            AttrKind::DType => self.dtype(id, Some(&text.to_string())).map(AttrValue::DType),
            AttrKind::Bool if !field.boxed => match text {
                "1" | "true" | "True" => Ok(true.into()),
                "0" | "false" | "False" => Ok(false.into()),
                _ => Err(unfit()),
            },
            AttrKind::Int if !field.boxed => text.parse::<i64>().map(AttrValue::Int).map_err(|_| unfit()),
            AttrKind::Float if !field.boxed => text.parse::<f64>().map(AttrValue::Float).map_err(|_| unfit()),
            _ => match self.graph.field(id, field.name)? {
                Some(node) => self.attr_node(node),
                None => Ok(AttrValue::None),
            },
        }
    }

    /// A node as the value of an attribute.
    fn attr_node(&mut self, id: usize) -> Result<AttrValue, JsonError> {
        self.nested(id, |r| r.attr_node_inside(id))
    }

    fn attr_node_inside(&mut self, id: usize) -> Result<AttrValue, JsonError> {
        let node = self.graph.node(id)?;
        let number = |name: &str| node.attrs.get(name).ok_or_else(|| self.graph.error(id, "its value is missing"));
        Ok(match node.key.as_str() {
            "" => AttrValue::None,
            "IntImm" | "tir.IntImm" => {
                let value: i64 =
                    number("value")?.parse().map_err(|_| self.graph.error(id, "its value is no integer"))?;
                match node.attrs.get("dtype").map(String::as_str) {
                    Some("bool" | "uint1") => AttrValue::Bool(value != 0),
                    _ => AttrValue::Int(value),
                }
            }
            "FloatImm" | "tir.FloatImm" => {
                AttrValue::Float(number("value")?.parse().map_err(|_| self.graph.error(id, "its value is no number"))?)
            }
            "runtime.String" | "StringImm" => {
                AttrValue::Str(node.text.clone().or_else(|| node.attrs.get("value").cloned()).unwrap_or_default())
            }
            "tir.Any" => AttrValue::Int(ANY),
            "Array" => {
                let items = node.data.iter().map(|item| self.attr_node(*item)).collect::<Result<_, _>>()?;
                AttrValue::List(items)
            }
            "Map" if node.keys.is_empty() => {
                let mut map = IndexMap::new();
                for pair in node.data.chunks(2) {
                    let [key, value] = pair else { return Err(self.graph.error(id, "a key without a value")) };
                    let key = match self.attr_node(*key)? {
                        AttrValue::Str(key) => key,
                        _ => return Err(self.graph.error(*key, "a name is expected")),
                    };
                    map.insert(key, self.attr_node(*value)?);
                }
                AttrValue::Map(map)
            }
            "Map" => {
                let mut map = IndexMap::new();
                for (key, value) in node.keys.iter().zip(&node.data) {
                    map.insert(key.clone(), self.attr_node(*value)?);
                }
                AttrValue::Map(map)
            }
            "VirtualDevice" | "Target" => {
                let mut map = IndexMap::from([("type_key".to_string(), AttrValue::Str(node.key.clone()))]);
                for (name, text) in &node.attrs {
                    let value = match self.graph.text_node(text) {
                        Some(text) if name == "memory_scope" => AttrValue::Str(text),
                        // Targets are not kept: a device is its kind, its number and its memory.
                        _ if name == "target" => AttrValue::Str("0".into()),
                        _ => AttrValue::Str(text.clone()),
                    };
                    map.insert(name.clone(), value);
                }
                map.sort_keys();
                AttrValue::Map(map)
            }
            _ => match self.meta(id)? {
                MetaValue::Attr(value) => value,
                other => other.as_attr(),
            },
        })
    }

    /// An entry of the metadata.
    fn meta(&mut self, id: usize) -> Result<MetaValue, JsonError> {
        let key = self.graph.node(id)?.key.clone();
        Ok(match key.as_str() {
            "tir.Any" => MetaValue::AnyDim,
            "relay.TensorType" | "TupleType" | "FuncType" | "TypeVar" | "GlobalTypeVar" | "TypeCall"
            | "relay.RefType" | "IncompleteType" => MetaValue::Type(self.ty(id)?),
            "" | "IntImm" | "tir.IntImm" | "FloatImm" | "tir.FloatImm" | "runtime.String" | "StringImm" | "Array"
            | "Map" | "VirtualDevice" | "Target" => MetaValue::Attr(self.attr_node(id)?),
            "DictAttrs" => MetaValue::Attrs(self.dict(id)?),
            key if key.starts_with("relay.attrs.") => MetaValue::Attrs(self.attrs(id)?),
            _ => MetaValue::Expr(self.expr(id)?),
        })
    }
}
