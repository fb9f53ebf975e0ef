//! The surroundings of a text: what its names stand for where the text itself does not bind them.
//!
//! A program that is written in Python may use what Python knows: numbers, shapes, constants, kernels, lists to loop over,
//! helper functions. The parser reads what it can itself and asks a [`Host`] for the rest: for expressions all of whose
//! names belong to the surroundings, for calls of their functions and members of their values, and for Python's own forms
//! (comprehensions, conditional expressions, formatted text). Names of the text that such an expression uses are handed
//! over as values, so a helper gets the variables of the program and gives back expressions over them.
//!
//! What comes back takes its place in the program: numbers and lists as if they were written there, expressions with their
//! operands bound, kernels as functions of the module. What has no place in a program can be handed on, looped over, or
//! asked for members.

use relaxide_ffi::{Any, AnyView, Array, Map, ObjectRef, Ref, Shape, Tensor};
use relaxide_ir::{Buffer, GlobalVar, PrimExpr, Type};
use relaxide_relax::{Call, Expr as Relax, Function, TupleGetItem};
use relaxide_tir::{IndexMap, PrimFunc};
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{self as ast, CmpOp, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::value::Value;
use super::{Language, Parsed, Parser};
use crate::intrinsics;
use relaxide_ir::diagnostic::Code;

/// Which surroundings: 0 are those of the module, the others those of macros, in order.
pub type ScopeIndex = usize;

/// A value by the name that the text has for it.
pub type Local = (String, Any);

/// What went wrong in the surroundings, in their words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct HostError(pub String);

/// What a text may ask of what it stands in.
pub trait Host: Sync {
    /// Whether the surroundings have a name.
    fn knows(&self, place: ScopeIndex, name: &str) -> bool;
    /// The value of an expression, with names of the text that it may use.
    fn evaluate(&self, place: ScopeIndex, source: &str, locals: &[Local]) -> Result<Any, HostError>;
    /// The items of a value, in order.
    fn items(&self, value: &Any) -> Result<Vec<Any>, HostError>;
    /// Whether a value counts as true.
    fn truth(&self, value: &Any) -> Result<bool, HostError>;
    /// Tells the program's author something that does not keep it from being read.
    fn warn(&self, message: &str) -> Result<(), HostError>;
    /// The macros of the surroundings.
    fn macros(&self) -> Vec<Macro>;
    /// The names that stand for TVMScript's own namespaces: `("R", "R")`, `("tvm", "tvm")` …
    fn namespaces(&self) -> Vec<(String, String)>;
}

/// Statements under a name, which take the place of a call.
#[derive(Clone, Debug)]
pub struct Macro {
    /// The name in the surroundings.
    pub name: String,
    /// The function's text; lines before it are empty, so that lines count as in the file.
    pub text: String,
    /// The file.
    pub file: String,
    /// Whether names are those of where the macro was written, rather than of where it is called.
    pub hygienic: bool,
}

/// The names that an expression uses and does not bind.
#[derive(Default)]
struct FreeNames {
    used: Vec<String>,
    bound: Vec<String>,
}

impl<'a> Visitor<'a> for FreeNames {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx.is_store() => self.bound.push(name.id.to_string()),
            Expr::Name(name) => self.used.push(name.id.to_string()),
            Expr::Lambda(lambda) => {
                let parameters = lambda.parameters.iter().flat_map(|list| list.iter());
                self.bound.extend(parameters.map(|p| p.name().to_string()));
                walk_expr(self, expr);
            }
            other => walk_expr(self, other),
        }
    }
}

fn free_names(e: &Expr) -> Vec<String> {
    let mut names = FreeNames::default();
    names.visit_expr(e);
    let FreeNames { used, bound } = names;
    let mut free: Vec<String> = used.into_iter().filter(|name| !bound.contains(name)).collect();
    free.sort();
    free.dedup();
    free
}

/// The name that a chain of members, subscripts and calls begins with.
fn root(e: &Expr) -> Option<&str> {
    match e {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attr) => root(&attr.value),
        Expr::Subscript(subscript) => root(&subscript.value),
        Expr::Call(call) => root(&call.func),
        _ => None,
    }
}

/// Members of buffers that Python knows, and whose own members and items are Python's.
pub(super) const OF_PYTHON: [&str; 2] = ["layout", "sub"];

/// The member that a chain of members, subscripts and calls asks its first name for.
fn member_of_root(e: &Expr) -> Option<&str> {
    match e {
        Expr::Attribute(attr) if attr.value.is_name_expr() => Some(attr.attr.as_str()),
        Expr::Attribute(attr) => member_of_root(&attr.value),
        Expr::Subscript(subscript) => member_of_root(&subscript.value),
        Expr::Call(call) => member_of_root(&call.func),
        _ => None,
    }
}

impl<'s> Parser<'s> {
    /// Reads the text as part of a Python program.
    pub(super) fn enter_host(&mut self, host: &'s dyn Host, macros: &'s [Macro]) {
        self.host = Some(host);
        self.macros = macros;
        // A namespace that Python calls by another name, or not at all, is no namespace here.
        self.namespaces.retain(|name, _| !host.knows(0, name));
        self.namespaces.extend(host.namespaces());
    }
}

impl Parser<'_> {
    /// Whether a name belongs to the surroundings: the text gives it no meaning.
    pub(super) fn is_outer(&self, name: &str) -> bool {
        let Some(host) = self.host else { return false };
        self.lookup(name).is_none()
            && !self.is_symbol(name)
            && !self.namespaces.contains_key(name)
            && name != self.module_name
            && name != "metadata"
            && !self.globals.contains_key(name)
            && host.knows(self.place, name)
    }

    fn is_symbol(&self, name: &str) -> bool {
        self.declared.contains_key(name) || self.type_vars.contains_key(name)
    }

    /// Whether an expression is for the surroundings to evaluate.
    pub(super) fn is_hosted(&self, e: &Expr) -> bool {
        if self.host.is_none() || self.inside.is_some() || self.path(e).is_some() {
            return false;
        }
        match e {
            // Functions of the package itself, such as `tvm.tirx.div`: the text has none under such names.
            Expr::Call(call) if self.path(&call.func).is_some_and(|path| is_of_package(&path)) => true,
            // Arguments that only Python can count; those of intrinsics are counted here.
            Expr::Call(call)
                if call.arguments.args.iter().any(Expr::is_starred_expr) && !self.is_intrinsic(&call.func)
                    || call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none()) =>
            {
                true
            }
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) => self.is_outer(&name.id) && self.macro_of(&name.id).is_none(),
                func => self.path(func).is_none() && self.begins_outside(func, true),
            },
            Expr::Attribute(attr) => self.begins_outside(&attr.value, attr.attr.as_str() != "dtype"),
            Expr::Subscript(subscript) => self.begins_outside(&subscript.value, false),
            Expr::BinOp(_) | Expr::UnaryOp(_) | Expr::BoolOp(_) => self.is_wholly_outer(e),
            Expr::Compare(compare) => {
                let python = |op: &CmpOp| matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn);
                compare.ops.iter().any(python) || self.is_wholly_outer(e)
            }
            Expr::ListComp(_) | Expr::Generator(_) | Expr::DictComp(_) | Expr::SetComp(_) | Expr::Set(_) => true,
            Expr::If(_) => self.language != Language::Tir,
            Expr::Lambda(_) | Expr::FString(_) | Expr::Named(_) | Expr::BytesLiteral(_) => true,
            Expr::List(list) => list.elts.iter().any(Expr::is_starred_expr),
            Expr::Tuple(tuple) => tuple.elts.iter().any(Expr::is_starred_expr),
            _ => false,
        }
    }

    /// Whether a callee is an intrinsic behind `T.`.
    fn is_intrinsic(&self, callee: &Expr) -> bool {
        self.path(callee)
            .is_some_and(|path| path.strip_prefix("T.").is_some_and(|name| intrinsics::rule(name).is_some()))
    }

    /// Whether every name of an expression belongs to the surroundings, and there are names.
    fn is_wholly_outer(&self, e: &Expr) -> bool {
        let names = free_names(e);
        let host_value = |name: &str| matches!(self.lookup(name), Some(Value::Host(_)));
        let constant = |name: &str| {
            matches!(self.lookup(name), Some(Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_)))
        };
        !names.is_empty() && names.iter().all(|name| self.is_outer(name) || host_value(name) || constant(name))
    }

    /// Whether a chain of members begins at a name of the surroundings, or at a value whose members Python knows:
    /// `of_values` says whether an expression of the program counts as such.
    fn begins_outside(&self, e: &Expr, of_values: bool) -> bool {
        let Some(name) = root(e) else { return false };
        if self.is_outer(name) && self.macro_of(name).is_none() {
            return true;
        }
        match self.lookup(name) {
            Some(Value::Host(_)) => true,
            Some(Value::Buffer(_)) => member_of_root(e).is_some_and(|member| OF_PYTHON.contains(&member)),
            Some(Value::Relax(_) | Value::Type(_)) => of_values || !matches!(e, Expr::Name(_)),
            _ => false,
        }
    }

    /// The path that `getattr(T, name)` stands for, whose name is a text, or one that the surroundings have.
    pub(super) fn member_by_name(&self, call: &ast::ExprCall) -> Option<String> {
        let Expr::Name(callee) = &*call.func else { return None };
        let ("getattr", [base, name]) = (callee.id.as_str(), &*call.arguments.args) else { return None };
        let base = self.path(base).filter(|_| self.lookup("getattr").is_none())?;
        let name = match name {
            Expr::StringLiteral(name) => name.value.to_str().to_string(),
            Expr::Name(name) if self.is_outer(&name.id) => {
                self.host?.evaluate(self.place, name.id.as_str(), &[]).ok()?.to::<String>().ok()?
            }
            _ => return None,
        };
        Some(format!("{base}.{name}"))
    }

    /// The value of an expression that the surroundings evaluate, as they give it.
    pub(super) fn ask(&mut self, e: &Expr) -> Parsed<Any> {
        let range = e.range();
        let source = self.source.get(range.start().into()..range.end().into()).unwrap_or_default();
        let mut locals = Vec::new();
        for name in free_names(e) {
            let value = match self.lookup(&name) {
                Some(value) => value.clone(),
                None if self.is_symbol(&name) => match self.symbol(&name) {
                    Some(symbol) => Value::Prim(symbol),
                    None => continue,
                },
                None => match self.globals.get(&name) {
                    Some(global) => Value::Relax(global.clone().into()),
                    None => continue,
                },
            };
            if let Some(value) = to_host(&value) {
                locals.push((name, value));
            }
        }
        let Some(host) = self.host else { return Err(self.unsupported("this expression", range)) };
        host.evaluate(self.place, source, &locals)
            .map_err(|message| self.error(Code::Outside, message.to_string(), range))
    }

    /// The value of an expression that the surroundings evaluate.
    pub(super) fn hosted(&mut self, e: &Expr) -> Parsed<Value> {
        let value = self.ask(e)?;
        if let Some(function) = value.as_object()
            && (function.is::<PrimFunc>() || function.is::<Function>())
        {
            let name = if let Expr::Name(name) = e { Some(name.id.as_str()) } else { None };
            return self.outer_function(function.clone(), name, e.range());
        }
        self.value_from_host(&value, e.range())
    }

    /// A value of the surroundings in the program.
    pub(super) fn value_from_host(&mut self, value: &Any, range: TextRange) -> Parsed<Value> {
        if let Some(function) = value.as_object()
            && (function.is::<PrimFunc>() || function.is::<Function>())
        {
            return self.outer_function(function.clone(), None, range);
        }
        match from_host(value.as_view()) {
            Value::Relax(e) => Ok(Value::Relax(self.flat(e)?)),
            Value::List(items) => self.flat_items(items).map(Value::List),
            value => Ok(value),
        }
    }

    fn flat_items(&mut self, items: Vec<Value>) -> Parsed<Vec<Value>> {
        let one = |item: Value| match item {
            Value::Relax(e) => Ok(Value::Relax(self.flat(e)?)),
            other => Ok(other),
        };
        items.into_iter().map(one).collect()
    }

    /// An expression whose operands are bound.
    fn flat(&mut self, e: Relax) -> Parsed<Relax> {
        Ok(match e {
            Relax::Call(call) => {
                let args = call.args.iter().map(|arg| self.flat_operand(arg)).collect::<Parsed<Vec<_>>>()?;
                if args == call.args { call.into() } else { Call::with_args(&call, args, call.ty.clone()).into() }
            }
            Relax::Tuple(tuple) => {
                let fields = tuple.fields.iter().map(|field| self.flat_operand(field)).collect::<Parsed<Vec<_>>>()?;
                if fields == tuple.fields { tuple.into() } else { Relax::tuple(fields) }
            }
            Relax::TupleGetItem(item) => {
                let tuple = self.flat_operand(&item.tuple)?;
                if tuple == item.tuple {
                    return Ok(item.into());
                }
                Ref::new(TupleGetItem { tuple, index: item.index }).into()
            }
            leaf => leaf,
        })
    }

    fn flat_operand(&mut self, e: &Relax) -> Parsed<Relax> {
        let flat = self.flat(e.clone())?;
        self.leaf(flat)
    }

    /// A function of the surroundings becomes one of the module, once.
    pub(super) fn outer_function(
        &mut self,
        function: ObjectRef,
        name: Option<&str>,
        range: TextRange,
    ) -> Parsed<Value> {
        if let Some((_, var)) = self.outer_functions.iter().find(|(known, _)| *known == function) {
            return Ok(Value::Relax(var.clone().into()));
        }
        let (hint, ty) = if let Some(kernel) = function.downcast_ref::<PrimFunc>() {
            (kernel.global_symbol().or(name).unwrap_or("kernel").to_string(), Type::missing())
        } else if let Some(func) = function.downcast_ref::<Function>() {
            (func.attrs.str("global_symbol").or(name).unwrap_or("func").to_string(), func.ty())
        } else {
            return Err(self.error(Code::Type, "a function is expected", range));
        };
        let taken = |name: &String| self.globals.contains_key(name);
        let name = match taken(&hint) {
            true => (1..).map(|i| format!("{hint}_{i}")).find(|name| !taken(name)).unwrap_or_default(),
            false => hint,
        };
        let var = GlobalVar::typed(name.clone(), ty);
        self.globals.insert(name, var.clone());
        self.outer_functions.push((function, var.clone()));
        Ok(Value::Relax(var.into()))
    }

    /// What a loop that the text writes out runs over; nothing where the loop is one of the program.
    pub(super) fn unrolled(&mut self, iter: &Expr) -> Parsed<Option<Vec<Value>>> {
        let Some(host) = self.host else { return Ok(None) };
        let range = iter.range();
        if !self.is_hosted(iter) && !matches!(iter, Expr::Name(_) | Expr::List(_) | Expr::Tuple(_)) {
            return Ok(None);
        }
        let items = match iter {
            Expr::Name(name) if !self.is_outer(&name.id) => match self.lookup(&name.id).cloned() {
                Some(Value::Host(value)) => host.items(&value),
                Some(Value::List(items) | Value::Tuple(items)) => return Ok(Some(items)),
                _ => return Ok(None),
            },
            Expr::List(list) if !self.is_hosted(iter) => return self.each(&list.elts).map(Some),
            Expr::Tuple(tuple) if !self.is_hosted(iter) => return self.each(&tuple.elts).map(Some),
            _ => {
                let value = self.ask(iter)?;
                host.items(&value)
            }
        };
        let items = items.map_err(|message| self.error(Code::Outside, message.to_string(), range))?;
        items.iter().map(|item| self.value_from_host(item, range)).collect::<Parsed<Vec<_>>>().map(Some)
    }

    /// The values that `*e` stands for.
    pub(super) fn spread(&mut self, e: &Expr) -> Parsed<Vec<Value>> {
        let value = self.expr(e)?;
        let items = match (&value, self.host) {
            (Value::List(items) | Value::Tuple(items), _) => return Ok(items.clone()),
            (Value::Host(value), Some(host)) => host.items(value),
            _ => return Err(self.error(Code::Type, "`*` stands before something without items", e.range())),
        };
        let items = items.map_err(|message| self.error(Code::Outside, message.to_string(), e.range()))?;
        items.iter().map(|item| self.value_from_host(item, e.range())).collect()
    }

    fn each(&mut self, list: &[Expr]) -> Parsed<Vec<Value>> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    /// Gives the target of a written-out loop, or of an assignment of such a value, its value.
    pub(super) fn define_target(&mut self, target: &Expr, value: Value) -> Parsed<()> {
        match target {
            Expr::Name(name) => {
                self.define(&name.id, value);
                Ok(())
            }
            Expr::Tuple(ast::ExprTuple { elts, range, .. }) | Expr::List(ast::ExprList { elts, range, .. }) => {
                let items = match (&value, self.host) {
                    (Value::List(items) | Value::Tuple(items), _) => items.clone(),
                    (Value::Host(value), Some(host)) => {
                        let items = host
                            .items(value)
                            .map_err(|message| self.error(Code::Outside, message.to_string(), *range))?;
                        items.iter().map(|item| self.value_from_host(item, *range)).collect::<Parsed<_>>()?
                    }
                    (other, _) => {
                        let message = format!("{} cannot be taken apart", other.describe());
                        return Err(self.error(Code::Type, message, *range));
                    }
                };
                if items.len() != elts.len() {
                    let message = format!("{} names do not go with {} values", elts.len(), items.len());
                    return Err(self.error(Code::Type, message, *range));
                }
                elts.iter().zip(items).try_for_each(|(target, item)| self.define_target(target, item))
            }
            other => Err(self.unsupported("this target", other.range())),
        }
    }

    /// Whether a condition is decided while the text is read, and how.
    pub(super) fn decided(&mut self, test: &Expr) -> Parsed<Option<bool>> {
        if let Expr::BooleanLiteral(literal) = test {
            return Ok(Some(literal.value));
        }
        let Some(host) = self.host else { return Ok(None) };
        let is_outer_name = matches!(test, Expr::Name(name) if self.is_outer(&name.id));
        if !is_outer_name && !self.is_hosted(test) {
            return Ok(None);
        }
        let value = self.ask(test)?;
        if matches!(from_host(value.as_view()), Value::Relax(_) | Value::Prim(_)) {
            return Ok(None);
        }
        let truth =
            host.truth(&value).map_err(|message| self.error(Code::Outside, message.to_string(), test.range()))?;
        Ok(Some(truth))
    }
}

/// Whether a path is one of the whole package, outside of what the language calls by it.
fn is_of_package(path: &str) -> bool {
    path.strip_prefix("tvm.").is_some_and(|rest| rest.contains('.') && !rest.starts_with("script"))
}

/// A value of the text for the surroundings; nothing where it has no form there.
fn to_host(value: &Value) -> Option<Any> {
    Some(match value {
        Value::None => Any::none(),
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => i64::try_from(*value).ok()?.into(),
        Value::Float(value) => (*value).into(),
        Value::Str(text) => text.as_str().into(),
        Value::DType(dtype) => (*dtype).into(),
        Value::List(items) | Value::Tuple(items) => {
            Array::from_vec(items.iter().map(to_host).collect::<Option<Vec<_>>>()?).into()
        }
        Value::Map(items) => {
            let pairs = items.iter().map(|(key, item)| Some((Any::from(key.as_str()), to_host(item)?)));
            Map::from_iter(pairs.collect::<Option<Vec<_>>>()?).into()
        }
        Value::Prim(e) => e.into(),
        Value::Buffer(buffer) => buffer.into(),
        Value::Relax(Relax::Prim(scalar)) => (&scalar.value).into(),
        Value::Relax(e) => e.into(),
        Value::Type(ty) => ty.into(),
        Value::Object(object) => object.into(),
        Value::Host(value) => value.clone(),
        Value::Region(..) | Value::Macro(_) | Value::Inline(_) | Value::Module | Value::Path(_) => return None,
    })
}

/// A value of the surroundings as the text would write it; what no text can write stays what it is.
fn from_host(value: AnyView<'_>) -> Value {
    use relaxide_ffi::abi::type_index as index;
    if let Some(text) = value.as_str() {
        return Value::Str(text.to_string());
    }
    let plain = match value.type_index() {
        index::NONE => Some(Value::None),
        index::BOOL => value.to::<bool>().ok().map(Value::Bool),
        index::INT => value.as_int().map(|value| Value::Int(i128::from(value))),
        index::FLOAT => value.to::<f64>().ok().map(Value::Float),
        index::DATA_TYPE => value.to().ok().map(Value::DType),
        _ => None,
    };
    if let Some(plain) = plain {
        return plain;
    }
    if let Ok(shape) = value.to::<Shape>() {
        return Value::Tuple(shape.iter().map(|dim| Value::Int(i128::from(*dim))).collect());
    }
    if let Ok(list) = value.to::<Array>() {
        return Value::List(list.iter().map(|item| from_host(item.as_view())).collect());
    }
    if let Ok(tensor) = value.to::<Tensor>() {
        return super::module::constant_value(tensor);
    }
    if let Ok(map) = value.to::<Map>() {
        let pair = |(key, item): (&Any, &Any)| Some((key.as_str()?.to_string(), from_host(item.as_view())));
        return map.iter().map(pair).collect::<Option<Vec<_>>>().map_or(Value::Host(value.to_owned()), Value::Map);
    }
    let Some(object) = value.as_object() else { return Value::Host(value.to_owned()) };
    if let Ok(ty) = Type::try_from(object.clone()) {
        return Value::Type(ty);
    }
    if let Some(buffer) = object.downcast_ref::<Buffer>() {
        return Value::Buffer(buffer.clone());
    }
    if let Some(device) = object.downcast_ref::<relaxide_ir::VDevice>() {
        return Value::Object(device.clone().into());
    }
    if let Some(map) = object.downcast_ref::<IndexMap>() {
        return Value::Object(map.clone().into());
    }
    match (PrimExpr::try_from(object.clone()), Relax::try_from(object.clone())) {
        // A variable of the program is a value; one of a scalar type stands in dimensions.
        (Ok(PrimExpr::Var(var)), Ok(e)) => match &var.ty {
            Type::Prim(_) | Type::Pointer(_) => Value::Prim(PrimExpr::Var(var)),
            _ => Value::Relax(e),
        },
        (Ok(scalar), _) => Value::Prim(scalar),
        (_, Ok(e)) => Value::Relax(e),
        _ => Value::Host(value.to_owned()),
    }
}
