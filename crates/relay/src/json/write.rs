//! A module to a saved graph in the form of 0.16.

use std::collections::HashMap;

use relaxide_ffi::{Handle, ObjectRef, Ref};
use relaxide_ir::{AttrValue, Attrs};
use serde_json::{Map, Value, json};

use super::to_base64;
use crate::devices::RESULT;
use crate::op;
use crate::stack::deep;
use crate::*;

/// The text that `save_json` writes of a module.
pub fn save(module: &Module) -> Result<String, relaxide_ffi::Error> {
    deep(|| {
        let mut writer = GraphWriter::default();
        let root = writer.module(module)?;
        Ok(writer.finish(root))
    })
}

/// The metadata of a text under construction.
#[derive(Default)]
pub struct MetaWriter {
    entries: Vec<(String, Vec<JsonEntry>)>,
}

enum JsonEntry {
    Object(ObjectRef),
    Attr(AttrValue),
}

impl MetaWriter {
    /// Adds a node and returns how the text refers to it.
    pub fn add(&mut self, key: &str, object: &ObjectRef) -> String {
        let list = self.list(key);
        let found = list.iter().position(|e| matches!(e, JsonEntry::Object(o) if o == object));
        let index = found.unwrap_or_else(|| {
            list.push(JsonEntry::Object(object.clone()));
            list.len() - 1
        });
        format!("meta[{key}][{index}]")
    }

    /// Adds the value of an attribute and returns how the text refers to it.
    pub fn add_attr(&mut self, key: &str, value: &AttrValue) -> String {
        let list = self.list(key);
        // Devices are mentioned often, and are few.
        let same = |entry: &JsonEntry| matches!(entry, JsonEntry::Attr(other) if other == value);
        if key == "VirtualDevice"
            && let Some(place) = list.iter().position(same)
        {
            return format!("meta[{key}][{place}]");
        }
        list.push(JsonEntry::Attr(value.clone()));
        format!("meta[{key}][{}]", list.len() - 1)
    }

    fn list(&mut self, key: &str) -> &mut Vec<JsonEntry> {
        let at = self.entries.iter().position(|(k, _)| k == key).unwrap_or_else(|| {
            self.entries.push((key.to_string(), Vec::new()));
            self.entries.len() - 1
        });
        &mut self.entries[at].1
    }

    /// The metadata as text, if there are any.
    pub fn finish(&self) -> Option<String> {
        if self.entries.is_empty() {
            return None;
        }
        let mut writer = GraphWriter::default();
        let (mut keys, mut data) = (Vec::new(), Vec::new());
        let root = writer.reserve();
        for (key, list) in &self.entries {
            let items: Vec<usize> = list.iter().map(|entry| writer.entry(entry)).collect();
            keys.push(Value::from(key.clone()));
            data.push(writer.array(items));
        }
        writer.nodes[root] = json!({"type_key": "Map", "keys": keys, "data": data});
        Some(writer.finish(root))
    }
}

struct GraphWriter {
    nodes: Vec<Value>,
    tensors: Vec<Value>,
    seen: HashMap<usize, usize>,
    texts: HashMap<String, usize>,
    headers: HashMap<String, usize>,
    device: Option<usize>,
    /// Keeps the nodes whose addresses are keys.
    keep: Vec<ObjectRef>,
    /// What could not be written; it is reported at the end.
    failed: Option<relaxide_ffi::Error>,
}

impl Default for GraphWriter {
    fn default() -> Self {
        GraphWriter {
            // The first node is the null.
            nodes: vec![json!({"type_key": ""})],
            tensors: Vec::new(),
            seen: HashMap::new(),
            texts: HashMap::new(),
            headers: HashMap::new(),
            device: None,
            keep: Vec::new(),
            failed: None,
        }
    }
}

impl GraphWriter {
    fn finish(self, root: usize) -> String {
        let graph = json!({
            "root": root, "nodes": self.nodes, "b64ndarrays": self.tensors, "attrs": {"tvm_version": "0.16.0"},
        });
        serde_json::to_string_pretty(&graph).unwrap_or_default()
    }

    fn reserve(&mut self) -> usize {
        self.nodes.push(Value::Null);
        self.nodes.len() - 1
    }

    fn node(&mut self, key: &str, attrs: Vec<(&str, String)>) -> usize {
        let attrs: Map<String, Value> = attrs.into_iter().map(|(k, v)| (k.to_string(), v.into())).collect();
        self.nodes.push(json!({"type_key": key, "attrs": attrs}));
        self.nodes.len() - 1
    }

    fn array(&mut self, data: Vec<usize>) -> usize {
        let node =
            if data.is_empty() { json!({"type_key": "Array"}) } else { json!({"type_key": "Array", "data": data}) };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn string(&mut self, text: &str) -> usize {
        if let Some(id) = self.texts.get(text) {
            return *id;
        }
        let node = if text.is_empty() {
            json!({"type_key": "runtime.String"})
        } else {
            json!({"type_key": "runtime.String", "repr_str": text})
        };
        self.nodes.push(node);
        let id = self.nodes.len() - 1;
        self.texts.insert(text.to_string(), id);
        id
    }

    fn int(&mut self, value: i64) -> usize {
        let dtype = if i32::try_from(value).is_ok() { "int32" } else { "int64" };
        self.node("IntImm", vec![("dtype", dtype.into()), ("span", "0".into()), ("value", value.to_string())])
    }

    fn device(&mut self) -> String {
        if let Some(id) = self.device {
            return id.to_string();
        }
        let scope = self.string("");
        let id = self.node(
            "VirtualDevice",
            vec![
                ("device_type_int", "-1".into()),
                ("memory_scope", scope.to_string()),
                ("target", "0".into()),
                ("virtual_device_id", "-1".into()),
            ],
        );
        self.device = Some(id);
        id.to_string()
    }

    fn entry(&mut self, entry: &JsonEntry) -> usize {
        match entry {
            JsonEntry::Attr(value) => self.attr_node(value),
            JsonEntry::Object(object) => self.object(object),
        }
    }

    fn object(&mut self, object: &ObjectRef) -> usize {
        if let Ok(expr) = Expr::try_from_object(object.clone()) {
            return self.expr(&expr);
        }
        if let Ok(ty) = Type::try_from_object(object.clone()) {
            return self.ty(&ty);
        }
        let message = format!("an attribute of type {} cannot be saved", object.type_key());
        self.failed.get_or_insert_with(|| relaxide_ffi::Error::new(relaxide_ffi::ErrorKind::TypeError, message));
        0
    }

    fn module(&mut self, module: &Module) -> Result<usize, relaxide_ffi::Error> {
        let root = self.reserve();
        let (mut functions, mut names) = (Vec::new(), Vec::new());
        for (name, function) in &module.functions {
            let global = self.expr(&Expr::global(name.clone()));
            functions.push(global);
            functions.push(self.expr(&function.into()));
            names.push((name.clone(), global));
        }
        let (mut types, mut type_names) = (Vec::new(), Vec::new());
        for (name, data) in &module.types {
            let header = self.header(name);
            types.push(header);
            types.push(self.type_data(data));
            type_names.push((name.clone(), header));
        }
        let map = |writer: &mut Self, data: Vec<usize>| {
            writer.nodes.push(json!({"type_key": "Map", "data": data}));
            (writer.nodes.len() - 1).to_string()
        };
        let by_name = |writer: &mut Self, pairs: Vec<(String, usize)>| {
            let (keys, data): (Vec<String>, Vec<usize>) = pairs.into_iter().unzip();
            writer.nodes.push(json!({"type_key": "Map", "keys": keys, "data": data}));
            (writer.nodes.len() - 1).to_string()
        };
        let (functions, types) = (map(self, functions), map(self, types));
        let (names, type_names) = (by_name(self, names), by_name(self, type_names));
        let infos = map(self, Vec::new());
        let sources = map(self, Vec::new());
        let source_map = self.node("SourceMap", vec![("source_map", sources)]);
        let module_node = json!({"type_key": "IRModule", "attrs": {
            "attrs": "0", "functions": functions, "global_infos": infos, "global_type_var_map_": type_names,
            "global_var_map_": names, "source_map": source_map.to_string(), "type_definitions": types,
        }});
        self.nodes[root] = module_node;
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(root),
        }
    }

    fn header(&mut self, name: &str) -> usize {
        if let Some(id) = self.headers.get(name) {
            return *id;
        }
        let text = self.string(name);
        let id = self.node("GlobalTypeVar", vec![("kind", "5".into()), ("name_hint", text.to_string())]);
        self.headers.insert(name.to_string(), id);
        id
    }

    fn type_data(&mut self, data: &TypeData) -> usize {
        let vars: Vec<usize> = data.type_vars.iter().map(|v| self.ty(&v.into())).collect();
        let constructors: Vec<usize> = data.constructors.iter().map(|c| self.expr(&c.into())).collect();
        let (vars, constructors) = (self.array(vars), self.array(constructors));
        let header = self.header(&data.name);
        self.node(
            "relay.TypeData",
            vec![
                ("constructors", constructors.to_string()),
                ("header", header.to_string()),
                ("span", "0".into()),
                ("type_vars", vars.to_string()),
            ],
        )
    }

    fn types(&mut self, types: &[Type]) -> String {
        let ids = types.iter().map(|ty| self.ty(ty)).collect();
        self.array(ids).to_string()
    }

    fn ty(&mut self, ty: &Type) -> usize {
        let address = ty.as_object().as_ptr().addr();
        if let Some(id) = self.seen.get(&address) {
            return *id;
        }
        let span = ("span", "0".to_string());
        let id = match ty {
            Type::Tensor(t) => {
                let dims = t.shape.iter().map(|dim| self.dim(*dim)).collect();
                let shape = self.array(dims).to_string();
                let dtype = if t.dtype.is_void() { String::new() } else { t.dtype.to_string() };
                self.node("relay.TensorType", vec![("dtype", dtype), ("shape", shape), span])
            }
            Type::Tuple(t) => {
                let fields = self.types(&t.fields);
                self.node("TupleType", vec![("fields", fields), span])
            }
            Type::Func(f) => {
                let params: Vec<Type> = f.type_params.iter().map(Type::from).collect();
                let (params, args) = (self.types(&params), self.types(&f.args));
                let ret = self.ty(&f.ret).to_string();
                let none = self.array(Vec::new()).to_string();
                let fields = vec![
                    ("arg_types", args),
                    ("ret_type", ret),
                    span,
                    ("type_constraints", none),
                    ("type_params", params),
                ];
                self.node("FuncType", fields)
            }
            Type::Var(v) => {
                let name = self.string(&v.name).to_string();
                self.node("TypeVar", vec![("kind", "0".into()), ("name_hint", name), span])
            }
            Type::Call(c) => {
                let (args, func) = (self.types(&c.args), self.header(&c.name).to_string());
                self.node("TypeCall", vec![("args", args), ("func", func), span])
            }
            Type::Ref(r) => {
                let value = self.ty(&r.value).to_string();
                self.node("relay.RefType", vec![span, ("value", value)])
            }
            Type::Incomplete(_) => self.node("IncompleteType", vec![("kind", "0".into()), span]),
        };
        self.seen.insert(address, id);
        self.keep.push(ty.as_object().clone());
        id
    }

    fn dim(&mut self, dim: i64) -> usize {
        if dim == ANY {
            return self.node("tir.Any", vec![("dtype", "int32".into()), ("span", "0".into())]);
        }
        self.int(dim)
    }

    fn exprs(&mut self, exprs: &[Expr]) -> String {
        let ids = exprs.iter().map(|e| self.expr(e)).collect();
        self.array(ids).to_string()
    }

    fn expr(&mut self, expr: &Expr) -> usize {
        // Equal names of functions and operators are one node.
        let named = match expr {
            Expr::Global(g) => Some(format!("@{}", g.name)),
            Expr::Op(op) => Some(format!("op {}", op.name)),
            _ => None,
        };
        if let Some(id) = named.as_ref().and_then(|key| self.headers.get(key)) {
            return *id;
        }
        if let Some(id) = self.seen.get(&expr.address()) {
            return *id;
        }
        let id = self.expr_node(expr);
        if let Some(key) = named {
            self.headers.insert(key, id);
        }
        self.seen.insert(expr.address(), id);
        self.keep.push(expr.as_object().clone());
        id
    }

    fn expr_node(&mut self, expr: &Expr) -> usize {
        let (key, mut fields): (&str, Vec<(&str, String)>) = match expr {
            Expr::Constant(c) => {
                match to_base64(&c.data) {
                    Ok(text) => self.tensors.push(text.into()),
                    Err(error) => self.failed = Some(error),
                }
                ("relay.Constant", vec![("data", (self.tensors.len().saturating_sub(1)).to_string())])
            }
            Expr::Tuple(t) => ("relay.Tuple", vec![("fields", self.exprs(&t.fields))]),
            Expr::Var(v) => {
                let name = self.string(&v.name).to_string();
                let vid = self.node("relay.Id", vec![("name_hint", name)]).to_string();
                let annotation = v.annotation.as_ref().map_or(0, |ty| self.ty(ty)).to_string();
                ("relay.Var", vec![("type_annotation", annotation), ("vid", vid)])
            }
            Expr::Global(g) => {
                let name = self.string(&g.name).to_string();
                ("GlobalVar", vec![("name_hint", name), ("struct_info_", "0".into())])
            }
            Expr::Op(op) => {
                self.nodes.push(json!({"type_key": "Op", "repr_str": op.name}));
                return self.nodes.len() - 1;
            }
            Expr::Constructor(c) => return self.constructor(c),
            Expr::Function(f) => ("relay.Function", self.function(f)),
            Expr::Call(c) => {
                let (op, args) = (self.expr(&c.op).to_string(), self.exprs(&c.args));
                let attrs = self.call_attrs(c).to_string();
                let types = self.types(&c.type_args);
                ("relay.Call", vec![("args", args), ("attrs", attrs), ("op", op), ("type_args", types)])
            }
            Expr::Let(l) => return self.lets(l),
            Expr::If(i) => {
                let cond = self.expr(&i.cond).to_string();
                let (then, other) = (self.expr(&i.then).to_string(), self.expr(&i.other).to_string());
                ("relay.If", vec![("cond", cond), ("false_branch", other), ("true_branch", then)])
            }
            Expr::TupleGetItem(t) => {
                let tuple = self.expr(&t.tuple).to_string();
                ("relay.TupleGetItem", vec![("index", t.index.to_string()), ("tuple_value", tuple)])
            }
            Expr::RefCreate(r) => ("relay.RefCreate", vec![("value", self.expr(&r.value).to_string())]),
            Expr::RefRead(r) => ("relay.RefRead", vec![("ref", self.expr(&r.reference).to_string())]),
            Expr::RefWrite(r) => {
                let (reference, value) = (self.expr(&r.reference).to_string(), self.expr(&r.value).to_string());
                ("relay.RefWrite", vec![("ref", reference), ("value", value)])
            }
            Expr::Match(m) => {
                let data = self.expr(&m.data).to_string();
                let clauses = m.clauses.iter().map(|c| self.clause(c)).collect();
                let clauses = self.array(clauses).to_string();
                let complete = if m.complete { "1" } else { "0" };
                ("relay.Match", vec![("clauses", clauses), ("complete", complete.into()), ("data", data)])
            }
        };
        let device = match expr {
            Expr::Var(v) => v.device.as_ref().map(|device| device.to_attr()),
            Expr::Function(f) => f.attrs.get(RESULT).cloned(),
            _ => None,
        };
        let device = match device {
            Some(device) => self.attr_node(&device).to_string(),
            None => self.device(),
        };
        fields.extend([("_checked_type_", "0".to_string()), ("span", "0".into()), ("virtual_device_", device)]);
        self.node(key, fields)
    }

    /// Bindings that follow each other, in a loop.
    fn lets(&mut self, first: &Ref<Let>) -> usize {
        let mut chain = Vec::new();
        let mut body = Expr::Let(first.clone());
        while let Expr::Let(l) = &body {
            let (var, value) = (self.expr(&l.var.clone().into()), self.expr(&l.value));
            let next = l.body.clone();
            chain.push((var, value));
            body = next;
        }
        let mut id = self.expr(&body);
        let device = self.device();
        for (var, value) in chain.into_iter().rev() {
            let fields = vec![
                ("_checked_type_", "0".to_string()),
                ("body", id.to_string()),
                ("span", "0".into()),
                ("value", value.to_string()),
                ("var", var.to_string()),
                ("virtual_device_", device.clone()),
            ];
            id = self.node("relay.Let", fields);
        }
        id
    }

    fn function(&mut self, f: &Function) -> Vec<(&'static str, String)> {
        let params: Vec<Expr> = f.params.iter().map(Expr::from).collect();
        let params = self.exprs(&params);
        let body = self.expr(&f.body).to_string();
        let ret = f.ret_type.as_ref().map_or(0, |ty| self.ty(ty)).to_string();
        let vars: Vec<Type> = f.type_params.iter().map(Type::from).collect();
        let vars = self.types(&vars);
        let mut attrs = f.attrs.clone();
        // It has a field of its own.
        attrs.0.shift_remove(RESULT);
        let attrs = if attrs.is_empty() { 0 } else { self.dict_attrs(&attrs) };
        vec![("attrs", attrs.to_string()), ("body", body), ("params", params), ("ret_type", ret), ("type_params", vars)]
    }

    fn dict_attrs(&mut self, attrs: &Attrs) -> usize {
        let map = self.attr_node(&AttrValue::Map(attrs.0.clone()));
        self.node("DictAttrs", vec![("__dict__", map.to_string())])
    }

    fn constructor(&mut self, c: &Ref<Constructor>) -> usize {
        let inputs = self.types(&c.inputs);
        let (header, name) = (self.header(&c.belong_to).to_string(), self.string(&c.name).to_string());
        let fields = vec![
            ("_checked_type_", "0".to_string()),
            ("belong_to", header),
            ("inputs", inputs),
            ("name_hint", name),
            ("span", "0".into()),
            ("tag", c.tag.to_string()),
        ];
        self.node("relay.Constructor", fields)
    }

    fn clause(&mut self, clause: &Clause) -> usize {
        let lhs = self.pattern(&clause.pattern).to_string();
        let rhs = self.expr(&clause.body).to_string();
        self.node("relay.Clause", vec![("lhs", lhs), ("rhs", rhs)])
    }

    fn pattern(&mut self, pattern: &Pattern) -> usize {
        let span = ("span", "0".to_string());
        match pattern {
            Pattern::Wildcard(_) => self.node("relay.PatternWildcard", vec![span]),
            Pattern::Var(p) => {
                let var = self.expr(&p.var.clone().into()).to_string();
                self.node("relay.PatternVar", vec![span, ("var", var)])
            }
            Pattern::Constructor(p) => {
                let constructor = self.expr(&p.constructor.clone().into()).to_string();
                let patterns = p.patterns.iter().map(|p| self.pattern(p)).collect();
                let patterns = self.array(patterns).to_string();
                self.node("relay.PatternConstructor", vec![("constructor", constructor), ("patterns", patterns), span])
            }
            Pattern::Tuple(p) => {
                let patterns = p.patterns.iter().map(|p| self.pattern(p)).collect();
                let patterns = self.array(patterns).to_string();
                self.node("relay.PatternTuple", vec![("patterns", patterns), span])
            }
        }
    }

    fn call_attrs(&mut self, call: &Call) -> usize {
        let def = match &call.op {
            Expr::Op(op) => op::lookup(&op.name).and_then(|def| def.attrs_def()),
            _ => None,
        };
        let Some(def) = def else {
            return if call.attrs.is_empty() { 0 } else { self.dict_attrs(&call.attrs) };
        };
        let mut fields = Vec::new();
        for field in def.fields {
            let value = call.attrs.0.get(field.name).cloned().unwrap_or(AttrValue::None);
            let text = match (&value, field.boxed) {
                (AttrValue::DType(d), _) => {
                    if d.is_void() {
                        String::new()
                    } else {
                        d.to_string()
                    }
                }
                (AttrValue::None, _) => "0".into(),
                (AttrValue::Int(v), false) => v.to_string(),
                (AttrValue::Bool(v), false) => i64::from(*v).to_string(),
                (AttrValue::Float(v), false) => v.to_string(),
                (AttrValue::Str(v), false) => v.clone(),
                (other, _) => self.attr_node(other).to_string(),
            };
            fields.push((field.name, text));
        }
        self.node(&format!("relay.attrs.{}Attrs", def.name), fields)
    }

    /// The value of an attribute as a node.
    fn attr_node(&mut self, value: &AttrValue) -> usize {
        match value {
            AttrValue::None => 0,
            AttrValue::Bool(v) => {
                let value = i64::from(*v).to_string();
                self.node("IntImm", vec![("dtype", "bool".into()), ("span", "0".into()), ("value", value)])
            }
            AttrValue::Int(v) => self.int(*v),
            AttrValue::Float(v) => {
                self.node("FloatImm", vec![("dtype", "float32".into()), ("span", "0".into()), ("value", v.to_string())])
            }
            AttrValue::Str(text) => self.string(text),
            AttrValue::DType(d) => self.string(&d.to_string()),
            AttrValue::List(list) => {
                let ids = list.iter().map(|item| self.attr_node(item)).collect();
                self.array(ids)
            }
            AttrValue::Map(map) => match map.get("type_key") {
                Some(AttrValue::Str(key)) => self.plain_object(key, map),
                _ => {
                    let keys: Vec<String> = map.keys().cloned().collect();
                    let data: Vec<usize> = map.values().map(|v| self.attr_node(v)).collect();
                    self.nodes.push(json!({"type_key": "Map", "keys": keys, "data": data}));
                    self.nodes.len() - 1
                }
            },
            AttrValue::Prim(e) => match e.as_int() {
                Some(v) => self.int(v),
                None => {
                    let message = format!("the scalar {e} cannot be saved");
                    self.failed = Some(relaxide_ffi::Error::new(relaxide_ffi::ErrorKind::TypeError, message));
                    0
                }
            },
            AttrValue::Object(object) => self.object(object),
        }
    }

    /// A node that was read as names and texts.
    fn plain_object(&mut self, key: &str, map: &indexmap::IndexMap<String, AttrValue>) -> usize {
        let mut fields = Vec::new();
        for (name, value) in map {
            let text = match value {
                AttrValue::Str(text) if name == "memory_scope" => self.string(text).to_string(),
                AttrValue::Str(text) => text.clone(),
                other => self.attr_node(other).to_string(),
            };
            if name != "type_key" {
                fields.push((name.as_str(), text));
            }
        }
        self.node(key, fields)
    }
}
