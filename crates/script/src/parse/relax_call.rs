//! Calls in Relax functions: operators behind `R.`, functions of the module, external functions, closures.
//!
//! Operators are read by their definitions: names and kinds of arguments and attributes come from the registry, and so do
//! checks and types. Only operators with a form of their own (`call_tir` …) are named here.

use relaxide_ffi::{Any, Array, DataType, Error, ObjectRef, Ref};
use relaxide_ir::{AttrValue, Attrs, PrimExpr, Type, prim};
use relaxide_relax::op::{self, ArgDef, ArgKind, Arity, OpDef};
use relaxide_relax::shape::call_type;
use relaxide_relax::{Call, Expr as Relax};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::relax::tensor_dtype;
use super::value::Value;
use super::{Language, Parsed, Parser};
use relaxide_ir::diagnostic::{Code, closest};

/// Another name that texts have for an argument.
fn other_name(name: &str) -> Option<&'static str> {
    match name {
        "runtime_device_index" => Some("virtual_device_index"),
        "storage_scope" => Some("scope"),
        _ => None,
    }
}

/// What an argument of a builtin is where a text does not say it: memory is the device's plain one.
fn unsaid(name: &str) -> Option<Relax> {
    (name == "storage_scope").then(|| Relax::string("global"))
}

impl Parser<'_> {
    /// A call of whatever.
    pub(super) fn call(&mut self, call: &ast::ExprCall) -> Parsed<Value> {
        if let Some(path) = self.path(&call.func) {
            return self.path_call(&path, call);
        }
        match &*call.func {
            Expr::Name(name) if name.id.as_str() == "float" && self.lookup("float").is_none() => self.float_call(call),
            Expr::Attribute(attr) if self.is_buffer(&attr.value) => self.buffer_method(attr, call),
            callee => {
                match self.expr(callee)? {
                    // An argument of a macro that is an operator.
                    Value::Path(path) => self.path_call(&path, call),
                    callee => self.function_call(callee, call),
                }
            }
        }
    }

    /// A call of what a namespace offers.
    fn path_call(&mut self, path: &str, call: &ast::ExprCall) -> Parsed<Value> {
        if let Some(device) = self.device_call(path, call)? {
            return Ok(device);
        }
        match path.split_once('.') {
            Some(("R", name)) => self.relax_call(name, call),
            Some(("T", name)) => self.tir_call(name, call),
            _ if path == "I.StringType" => Ok(Value::Type(Type::string())),
            _ if path == "I.meta_var" => {
                let mut args = Args::of(self, path, call)?;
                let value = args.required(self, "value")?;
                args.finish(self)?;
                self.expr(value)
            }
            _ => Err(self.unsupported(&format!("a call of {path}"), call.range())),
        }
    }

    /// `float("inf")`, as attributes write it.
    fn float_call(&mut self, call: &ast::ExprCall) -> Parsed<Value> {
        let mut args = Args::of(self, "float", call)?;
        let e = args.required(self, "x")?;
        let text = self.text(e)?;
        args.finish(self)?;
        let value = text.parse().map_err(|_| self.error(Code::Type, format!("{text:?} is no number"), e.range()))?;
        Ok(Value::Float(value))
    }

    /// A call of a function of the module, of a local function or of a closure.
    fn function_call(&mut self, callee: Value, call: &ast::ExprCall) -> Parsed<Value> {
        let range = call.range();
        let op = match callee {
            Value::Relax(Relax::Global(kernel)) if self.language == Language::Tir => {
                return self.kernel_call(&kernel, call);
            }
            Value::Relax(e) => self.leaf(e)?,
            other => return Err(self.error(Code::Type, format!("{} cannot be called", other.describe()), range)),
        };
        let mut args = Args::of(self, "this function", call)?;
        let list = args.rest();
        let values = self.leaves(&list)?;
        args.finish(self)?;
        let types: Vec<Type> = values.iter().map(Relax::ty).collect();
        let ty = match op.ty() {
            // What the rule sees is the call.
            Type::Func(f) if f.derive.is_some() => {
                let (attrs, span) = (Attrs::new(), self.span(range));
                let untyped = Call {
                    op: op.clone(),
                    args: values.clone(),
                    attrs,
                    ty_args: Vec::new(),
                    ty: Type::missing(),
                    span,
                };
                let ty = relaxide_relax::builder::infer(&untyped);
                ty.map_err(|problem| self.error(Code::Operator, problem.to_string(), range))?
            }
            Type::Func(f) => {
                if let Some(params) = &f.params
                    && params.len() != values.len()
                {
                    let message = format!("the function takes {} arguments, not {}", params.len(), values.len());
                    return Err(self.error(Code::Arguments, message, range));
                }
                call_type(&f, &types)
            }
            // A kernel that is called as it is writes to its arguments and gives nothing.
            Type::Any(_) | Type::Missing(_) if matches!(&op, Relax::Global(g) if self.kernels.get(&g.name).is_some_and(|result| result.is_void())) => {
                Type::void()
            }
            Type::Any(_) | Type::Missing(_) => Type::any(),
            _ => return Err(self.error(Code::Type, "this is no function", call.func.range())),
        };
        Ok(self.call_node(op, values, Attrs::new(), Vec::new(), ty, range))
    }

    fn call_node(
        &self,
        op: Relax,
        args: Vec<Relax>,
        attrs: Attrs,
        ty_args: Vec<Type>,
        ty: Type,
        range: TextRange,
    ) -> Value {
        Value::Relax(Ref::new(Call { op, args, attrs, ty_args, ty, span: self.span(range) }).into())
    }

    fn leaves(&mut self, list: &[&Expr]) -> Parsed<Vec<Relax>> {
        list.iter()
            .map(|e| {
                let value = self.expr(e)?;
                self.leaf_value(value, e.range())
            })
            .collect()
    }

    fn relax_call(&mut self, name: &str, call: &ast::ExprCall) -> Parsed<Value> {
        let mut args = Args::of(self, &format!("R.{name}"), call)?;
        let value = match name {
            "const" => self.const_call(&mut args)?,
            "prim_value" => {
                let e = args.required(self, "value")?;
                // A plain number has the width that Python gives it.
                Value::Relax(match self.expr(e)? {
                    Value::Float(value) => Relax::prim(prim::float_of(DataType::float(64), value)),
                    value => Relax::prim(self.scalar(&value, e.range())?),
                })
            }
            "shape" | "ShapeExpr" => {
                let e = args.required(self, "values")?;
                Value::Relax(Relax::shape(self.dims(e)?))
            }
            "tuple" => Value::Relax(Relax::tuple(self.leaves(&args.rest())?)),
            "dtype" => {
                let e = args.required(self, "value")?;
                Value::Relax(Relax::dtype(self.dtype(e)?))
            }
            "str" => {
                let e = args.required(self, "value")?;
                Value::Relax(Relax::string(self.text(e)?))
            }
            "ExternFunc" => {
                let e = args.required(self, "name")?;
                let name = self.text(e)?;
                Value::Relax(match args.take("ty") {
                    Some(ty) => Relax::external_typed(name, self.ty(ty)?),
                    None => Relax::external(name),
                })
            }
            "emit" => {
                let e = args.required(self, "value")?;
                self.expr(e)?
            }
            "emit_te" if self.host.is_some() => return self.emit_te(call),
            "TupleGetItem" => {
                let (tuple, index) = (args.required(self, "tuple")?, args.required(self, "index")?);
                let value = self.expr(tuple)?;
                let tuple = self.leaf_value(value, tuple.range())?;
                Value::Relax(Relax::field(tuple, usize::try_from(self.int(index)?).unwrap_or(usize::MAX)))
            }
            "hint_on_device" => self.hint_on_device(&mut args)?,
            "call_packed" => self.call_packed(&mut args)?,
            "call_tir" | "call_tir_inplace" | "call_tir_with_grad" | "call_dps_packed" | "call_py_func" => {
                self.destination_call(name, &mut args)?
            }
            "emit_with_type" | "emit_with_ty" => self.call_by_name(&mut args)?,
            "call_pure_packed" | "call_inplace_packed" => self.packed_op(name, &mut args)?,
            "call_builtin_with_ctx" | "invoke_closure" | "invoke_pure_closure" | "make_closure" => {
                self.tuple_call(name, &mut args)?
            }
            _ if self.bare_type(&format!("R.{name}")).is_some() => {
                return self.ty(&Expr::Call(call.clone())).map(Value::Type);
            }
            _ => self.op_call(name, call, &mut args)?,
        };
        args.finish(self)?;
        Ok(value)
    }

    /// `R.emit_te(function, arguments…)`: the call of a kernel that a function of Python describes, which joins the module.
    fn emit_te(&mut self, call: &ast::ExprCall) -> Parsed<Value> {
        let range = call.range();
        let told = self.ask(&Expr::Call(call.clone()))?;
        let parts: Vec<Any> = told.to::<Array>().map(|list| list.iter().cloned().collect()).unwrap_or_default();
        let [kernel, name, tensors, types, scalars] = parts.as_slice() else {
            return Err(self.error(Code::Type, "a kernel and its arguments are expected", range));
        };
        let wrong = |problem: Error| self.error(Code::Type, problem.message().to_string(), range);
        let kernel: ObjectRef = kernel.to().map_err(wrong)?;
        let name: String = name.to().map_err(wrong)?;
        let (tensors, scalars): (Vec<ObjectRef>, Vec<PrimExpr>) =
            (tensors.to().map_err(wrong)?, scalars.to().map_err(wrong)?);
        let types: Vec<Type> = types.to().map_err(wrong)?;
        let tensors = tensors.into_iter().map(Relax::try_from).collect::<Result<Vec<_>, _>>();
        let Ok(tensors) = tensors else { return Err(self.error(Code::Type, "a tensor is expected", range)) };
        let func = self.outer_function(kernel, Some(&name), range)?;
        let mut values = vec![self.leaf_value(func, range)?, Relax::tuple(tensors)];
        if !scalars.is_empty() {
            values.push(Relax::shape(scalars));
        }
        let out = match types.as_slice() {
            [one] => one.clone(),
            many => Type::tuple(many.to_vec()),
        };
        self.typed_call("call_tir", values, Attrs::new(), vec![out], range)
    }

    /// `R.call_packed("name", args…, ty_args=…, attr=…)`.
    fn call_packed(&mut self, args: &mut Args) -> Parsed<Value> {
        let range = args.range;
        let func = self.callee(args)?;
        let ty_args = self.type_args(args)?;
        let values = self.leaves(&args.rest())?;
        let mut attrs = Attrs::new();
        for (name, e) in args.rest_keywords() {
            attrs = attrs.with(name, self.attr_value(e)?);
        }
        let ty = match ty_args.as_slice() {
            [] => Type::any(),
            [one] => one.clone(),
            many => Type::tuple(many.to_vec()),
        };
        Ok(self.call_node(func, values, attrs, ty_args, ty, range))
    }

    /// The external function that a text names, or another callee.
    fn callee(&mut self, args: &mut Args) -> Parsed<Relax> {
        let e = args.required(self, "func")?;
        match self.expr(e)? {
            Value::Str(name) => Ok(Relax::external(name)),
            value => self.leaf_value(value, e.range()),
        }
    }

    fn type_args(&mut self, args: &mut Args) -> Parsed<Vec<Type>> {
        let e = ["ty_args", "sinfo_args"].into_iter().find_map(|name| args.keyword(name));
        e.map_or(Ok(Vec::new()), |e| self.types_of(e))
    }

    /// One type, or several in a tuple or a list.
    fn types_of(&mut self, e: &Expr) -> Parsed<Vec<Type>> {
        match e {
            Expr::Tuple(tuple) => self.types(&tuple.elts),
            Expr::List(list) => self.types(&list.elts),
            one => Ok(vec![self.ty(one)?]),
        }
    }

    /// `R.emit_with_type("relax.memory.alloc_storage", (args…), ty_args)`: an operator by its full name, without attributes.
    fn call_by_name(&mut self, args: &mut Args) -> Parsed<Value> {
        let (range, e, list) = (args.range, args.required(self, "op")?, args.required(self, "args")?);
        let op = self.text(e)?;
        let Some(def) = op::lookup(&op) else {
            return Err(self.error(Code::UnknownMember, format!("no operator is called {op:?}"), e.range()));
        };
        let value = self.expr(list)?;
        let values = match self.leaf_value(value, list.range())? {
            Relax::Tuple(tuple) => tuple.fields.clone(),
            one => vec![one],
        };
        let ty_args = args.take("ty_args").map_or(Ok(Vec::new()), |e| self.types_of(e))?;
        self.typed_call(def.name, values, Attrs::new(), ty_args, range)
    }

    /// Calls that say what they return: `(func, args, out_ty=…)`.
    fn destination_call(&mut self, name: &str, args: &mut Args) -> Parsed<Value> {
        let range = args.range;
        let func = match name {
            "call_py_func" => {
                let e = args.required(self, "func_name")?;
                Relax::string(self.text(e)?)
            }
            _ => self.callee(args)?,
        };
        let list = args.required(self, "args")?;
        let value = self.expr(list)?;
        let given = match self.leaf_value(value, list.range())? {
            Relax::Tuple(tuple) => tuple.fields.clone(),
            one => vec![one],
        };
        // The call in place has its indices in front of the type, unless they are named.
        let named_out = args.names("out_ty") || args.names("out_sinfo");
        let leading = name == "call_tir_inplace" && args.positions() > usize::from(!named_out);
        let indices = if leading { args.take("inplace_indices") } else { None };
        let out = ["out_ty", "out_sinfo"].into_iter().find_map(|name| args.take(name));
        let out = match out {
            Some(Expr::List(list)) => match list.elts.as_slice() {
                [one] => self.ty(one)?,
                many => Type::tuple(many.iter().map(|e| self.ty(e)).collect::<Parsed<Vec<_>>>()?),
            },
            Some(e) => self.ty(e)?,
            None => match self.type_args(args)?.as_slice() {
                [] => return Err(self.error(Code::Arguments, format!("`R.{name}` needs out_ty"), range)),
                [one] => one.clone(),
                many => Type::tuple(many.to_vec()),
            },
        };
        let scalars = match args.keyword("tir_vars") {
            Some(e) => {
                let value = self.expr(e)?;
                match self.relax_value(value, e.range())? {
                    Relax::Shape(s) => s.values.clone(),
                    Relax::Tuple(t) => t.fields.iter().filter_map(scalar_of).collect(),
                    _ => return Err(self.error(Code::Type, "tir_vars is a shape", e.range())),
                }
            }
            None => Vec::new(),
        };
        let mut values = vec![func, Relax::tuple(given)];
        if !scalars.is_empty() {
            values.push(Relax::shape(scalars));
        }
        let mut attrs = self.keyword_attrs(args)?;
        if let Some(e) = indices {
            attrs = attrs.with("inplace_indices", self.attr_value(e)?);
        }
        self.typed_call(name, values, attrs, vec![out], range)
    }

    /// `R.call_pure_packed("name", args…, ty_args=…)`.
    fn packed_op(&mut self, name: &str, args: &mut Args) -> Parsed<Value> {
        let range = args.range;
        let mut values = vec![self.callee(args)?];
        let ty_args = self.type_args(args)?;
        values.extend(self.leaves(&args.rest())?);
        let attrs = self.keyword_attrs(args)?;
        self.typed_call(name, values, attrs, ty_args, range)
    }

    /// Calls with their arguments in a tuple: closures and builtins.
    fn tuple_call(&mut self, name: &str, args: &mut Args) -> Parsed<Value> {
        let range = args.range;
        let func = self.callee(args)?;
        let list = args.required(self, "args")?;
        let value = self.expr(list)?;
        let given = match self.leaf_value(value, list.range())? {
            tuple @ Relax::Tuple(_) => tuple,
            one => Relax::tuple([one]),
        };
        let ty_args = self.type_args(args)?;
        self.typed_call(name, vec![func, given], Attrs::new(), ty_args, range)
    }

    fn keyword_attrs(&mut self, args: &mut Args) -> Parsed<Attrs> {
        let mut attrs = Attrs::new();
        for (name, e) in args.rest_keywords() {
            attrs = attrs.with(name, self.attr_value(e)?);
        }
        Ok(attrs)
    }

    /// An attribute's value.
    pub(super) fn attr_value(&mut self, e: &Expr) -> Parsed<AttrValue> {
        let value = self.expr(e)?;
        value
            .into_attr()
            .map_err(|value| self.error(Code::Type, format!("{} cannot be an attribute", value.describe()), e.range()))
    }

    pub(super) fn typed_call(
        &mut self,
        name: &str,
        args: Vec<Relax>,
        attrs: Attrs,
        ty_args: Vec<Type>,
        range: TextRange,
    ) -> Parsed<Value> {
        let call = op::call_typed(name, args, attrs, ty_args);
        let call = call.map_err(|problem| self.error(Code::Operator, problem.to_string(), range))?;
        Ok(Value::Relax(match call {
            Relax::Call(c) => Ref::new(Call {
                op: c.op.clone(),
                args: c.args.clone(),
                attrs: c.attrs.clone(),
                ty_args: c.ty_args.clone(),
                ty: c.ty.clone(),
                span: self.span(range),
            })
            .into(),
            other => other,
        }))
    }

    /// A call of an operator by its definition.
    fn op_call(&mut self, name: &str, call: &ast::ExprCall, args: &mut Args) -> Parsed<Value> {
        let Some(def) = op::lookup(name) else {
            if let Some(value) = self.composed(name, args)? {
                return Ok(value);
            }
            let error = self.error(Code::UnknownMember, format!("no operator is called `R.{name}`"), call.func.range());
            return Err(match closest(name, op::all().map(|d| d.name)) {
                Some(near) => error.with_help(format!("did you mean `R.{near}`?")).into(),
                None => error,
            });
        };
        let ty_args = self.type_args(args)?;
        if let Some(surface) = op::surface(def.name) {
            let (def, values) = self.arranged(surface, args)?;
            let attrs = self.op_attrs(def, args)?;
            return self.typed_call(def.name, values, attrs, ty_args, call.range());
        }
        let mut values = Vec::new();
        for arg in def.args {
            if arg.arity == Arity::Variadic {
                for e in args.rest() {
                    values.push(self.op_arg(arg, e, &values)?);
                }
                break;
            }
            let e = match (arg.arity, arg.default) {
                (Arity::Optional, _) | (_, Some(_)) => args.take(arg.name),
                _ => match other_name(arg.name).and_then(|name| args.keyword(name)).or_else(|| args.take(arg.name)) {
                    Some(e) => Some(e),
                    None => match unsaid(arg.name) {
                        Some(value) => {
                            values.push(value);
                            continue;
                        }
                        None => Some(args.required(self, arg.name)?),
                    },
                },
            };
            if let (None, Some(default)) = (e, arg.default) {
                values.push(default.value());
                continue;
            }
            match e {
                None | Some(Expr::NoneLiteral(_)) if arg.arity == Arity::Optional => break,
                Some(e) => values.push(self.op_arg(arg, e, &values)?),
                None => break,
            }
        }
        let attrs = self.op_attrs(def, args)?;
        self.typed_call(def.name, values, attrs, ty_args, call.range())
    }

    /// Names of `R` that are no operators but a few calls of them.
    fn composed(&mut self, name: &str, args: &mut Args) -> Parsed<Option<Value>> {
        let range = args.range;
        let value = match name {
            "linear" => {
                let (data, weight) = (self.leaf_arg(args, "data")?, self.leaf_arg(args, "weight")?);
                let bias = args.take("bias").filter(|e| !e.is_none_literal_expr());
                let bias = bias.map(|e| self.leaf_expr(e)).transpose()?;
                let attrs = match args.take("out_dtype").filter(|e| !e.is_none_literal_expr()) {
                    Some(e) => Attrs::new().with("out_dtype", self.attr_value(e)?),
                    None => Attrs::new(),
                };
                let weight = self.call_leaf("permute_dims", vec![weight], range)?;
                let product = self.typed_call("matmul", vec![data, weight], attrs, Vec::new(), range)?;
                match bias {
                    None => product,
                    Some(bias) => {
                        let product = self.leaf_value(product, range)?;
                        self.typed_call("add", vec![product, bias], Attrs::new(), Vec::new(), range)?
                    }
                }
            }
            "nn.relu6" => {
                let data = self.leaf_arg(args, "data")?;
                let args = vec![data, Relax::prim(0), Relax::prim(6)];
                self.typed_call("clip", args, Attrs::new(), Vec::new(), range)?
            }
            "masked_fill" => {
                let (x, mask) = (self.leaf_arg(args, "x")?, self.leaf_arg(args, "mask")?);
                let e = args.required(self, "value")?;
                let value = self.expr(e)?;
                let dtype = tensor_dtype(&x.ty()).unwrap_or(DataType::float(32));
                let value = self.number_constant(&value, dtype, e.range())?;
                let filled = self.call_leaf("full_like", vec![x.clone(), value], range)?;
                self.typed_call("where", vec![mask, filled, x], Attrs::new(), Vec::new(), range)?
            }
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    fn leaf_arg(&mut self, args: &mut Args, name: &str) -> Parsed<Relax> {
        let e = args.required(self, name)?;
        self.leaf_expr(e)
    }

    fn leaf_expr(&mut self, e: &Expr) -> Parsed<Relax> {
        let value = self.expr(e)?;
        self.leaf_value(value, e.range())
    }

    fn call_leaf(&mut self, name: &str, args: Vec<Relax>, range: TextRange) -> Parsed<Relax> {
        let value = self.typed_call(name, args, Attrs::new(), Vec::new(), range)?;
        self.leaf_value(value, range)
    }

    /// The operator and the arguments of a call whose text has others than its node.
    fn arranged(&mut self, surface: &op::Surface, args: &mut Args) -> Parsed<(&'static OpDef, Vec<Relax>)> {
        let mut given = Vec::with_capacity(surface.params.len());
        for (name, default) in surface.params {
            let e = if default.is_some() { args.take(name) } else { Some(args.required(self, name)?) };
            given.push(e.filter(|e| !e.is_none_literal_expr()));
        }
        let (name, slots) = surface.arrange(&given);
        let def = op::lookup(name)
            .ok_or_else(|| self.error(Code::UnknownMember, format!("no operator is called `R.{name}`"), args.range))?;
        let mut values = Vec::with_capacity(slots.len());
        for (slot, arg) in slots.iter().zip(def.args) {
            values.push(match slot {
                op::Slot::Given(e) => self.op_arg(arg, e, &values)?,
                op::Slot::Int(number) => Relax::prim(*number),
                op::Slot::Nothing => Relax::tuple([]),
            });
        }
        Ok((def, values))
    }

    /// Attributes by position behind the arguments, and by name.
    fn op_attrs(&mut self, def: &OpDef, args: &mut Args) -> Parsed<Attrs> {
        let mut attrs = Attrs::new();
        for attr in def.attrs {
            let Some(e) = args.take(attr.name) else { continue };
            let value = match attr.name {
                "dst_vdevice" => AttrValue::Object(self.vdevice(e)?.into()),
                _ => self.attr_value(e)?,
            };
            attrs = attrs.with(attr.name, value);
        }
        Ok(attrs)
    }

    fn op_arg(&mut self, def: &ArgDef, e: &Expr, before: &[Relax]) -> Parsed<Relax> {
        let value = self.expr(e)?;
        let is_number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        match (def.kind, &value) {
            (ArgKind::Tensor | ArgKind::TensorOrScalar, _) if is_number => {
                let dtype = before.iter().find_map(|v| tensor_dtype(&v.ty())).unwrap_or(DataType::float(32));
                self.number_constant(&value, dtype, e.range())
            }
            (ArgKind::Shape | ArgKind::ShapeOrNone, Value::List(items) | Value::Tuple(items)) => {
                let dims = items.iter().map(|v| self.scalar(v, e.range())).collect::<Parsed<Vec<_>>>()?;
                Ok(Relax::shape(dims))
            }
            _ => self.leaf_value(value, e.range()),
        }
    }
}

/// The scalar that an argument is, if it is one.
fn scalar_of(arg: &Relax) -> Option<PrimExpr> {
    match arg {
        Relax::Prim(p) => Some(p.value.clone()),
        Relax::Var(v) if matches!(v.ty, Type::Prim(_)) => Some(PrimExpr::Var(v.clone())),
        _ => None,
    }
}
