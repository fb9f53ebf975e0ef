//! Scalar calls behind `T.`: literals, conversions, operators by name, intrinsics.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, Binary, Broadcast, BufferLoad, Cast, Let, PrimCall, Ramp, Select};
use relaxide_ir::{BinaryOp, Buffer, GlobalVar, PrimExpr, Type, Var};
use relaxide_tir::kernel_call::kernel_call;
use relaxide_tir::tensor_argument::tensor_argument;
use relaxide_tir::{IndexMap, PrimFunc};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::expr::fits;
use super::symbols::{dtype_name, variable};
use super::value::Value;
use super::{Parsed, Parser};
use crate::device_intrinsics::DeviceIntrinsic;
use crate::intrinsics::{self, ResultType};
use relaxide_ir::diagnostic::{Code, closest};

/// Operators that can be written as calls.
const OPERATORS: &[(&str, BinaryOp)] = &[
    ("Add", BinaryOp::Add),
    ("And", BinaryOp::And),
    ("Div", BinaryOp::Div),
    ("EQ", BinaryOp::Eq),
    ("FloorDiv", BinaryOp::FloorDiv),
    ("FloorMod", BinaryOp::FloorMod),
    ("GE", BinaryOp::Ge),
    ("GT", BinaryOp::Gt),
    ("LE", BinaryOp::Le),
    ("LT", BinaryOp::Lt),
    ("Max", BinaryOp::Max),
    ("Min", BinaryOp::Min),
    ("Mod", BinaryOp::Mod),
    ("Mul", BinaryOp::Mul),
    ("NE", BinaryOp::Ne),
    ("Or", BinaryOp::Or),
    ("Sub", BinaryOp::Sub),
    ("floordiv", BinaryOp::FloorDiv),
    ("floormod", BinaryOp::FloorMod),
    ("max", BinaryOp::Max),
    ("min", BinaryOp::Min),
    ("div", BinaryOp::Div),
    ("truncdiv", BinaryOp::Div),
    ("truncmod", BinaryOp::Mod),
];

/// Intrinsics that operators stand for, by the names of calls.
const BITWISE: &[(&str, &str)] = &[
    ("BitwiseAnd", "tirx.bitwise_and"),
    ("BitwiseOr", "tirx.bitwise_or"),
    ("BitwiseXor", "tirx.bitwise_xor"),
    ("LShift", "tirx.shift_left"),
    ("RShift", "tirx.shift_right"),
    ("bitwise_and", "tirx.bitwise_and"),
    ("bitwise_or", "tirx.bitwise_or"),
    ("bitwise_xor", "tirx.bitwise_xor"),
    ("power", "tirx.pow"),
    ("shift_left", "tirx.shift_left"),
    ("shift_right", "tirx.shift_right"),
];

impl Parser<'_> {
    pub(super) fn tir_call(&mut self, name: &str, call: &ast::ExprCall) -> Parsed<Value> {
        if let Some(layout) = self.layout_call(name, call)? {
            return Ok(layout);
        }
        let mut args = Args::of(self, &format!("T.{name}"), call)?;
        let range = call.range();
        // A target is text here, as the passes that set it write it; Python knows what a dictionary says.
        if name == "target" && self.host.is_some() {
            let told = self.ask(&Expr::Call(call.clone()))?;
            return self.value_from_host(&told, range);
        }
        if name == "index_map" {
            let map = self.index_map(&mut args)?;
            args.finish(self)?;
            return Ok(map);
        }
        let value = if let Some(dtype) = dtype_name(name) {
            self.conversion(dtype, &mut args)?
        } else if let Some((_, op)) = OPERATORS.iter().find(|(known, _)| *known == name) {
            let (a, b) = self.two(&mut args)?;
            Ref::new(Binary { op: *op, a, b }).into()
        } else if let Some((_, op)) = BITWISE.iter().find(|(known, _)| *known == name) {
            let (a, b) = self.two(&mut args)?;
            prim::call(a.dtype(), *op, vec![a, b])
        } else {
            match (self.node(name, &mut args)?, DeviceIntrinsic::of_path(name)) {
                (Some(value), _) => value,
                (None, Some(known)) => self.device_intrinsic(known, &mut args, range)?,
                (None, None) => self.intrinsic(name, &mut args, range)?,
            }
        };
        // Older texts say the type of the result, which the operands decide.
        if let Some(e) = args.keyword("dtype") {
            self.dtype(e)?;
        }
        args.finish(self)?;
        Ok(Value::Prim(value))
    }

    /// `T.index_map(lambda i, j: (i, j // 4, j % 4))`.
    fn index_map(&mut self, args: &mut Args) -> Parsed<Value> {
        let e = args.required(self, "mapping")?;
        if let Some(inverse) = args.keyword("inverse_index_map").filter(|e| !e.is_none_literal_expr()) {
            return Err(self.unsupported("a map with an inverse of its own", inverse.range()));
        }
        // Indices of maps have 64 bits here, whatever the text says.
        if let Some(e) = args.keyword("index_dtype") {
            self.dtype(e)?;
        }
        let Expr::Lambda(lambda) = e else {
            return Err(self.error(Code::Type, "a map of indices is written as a lambda", e.range()));
        };
        let names: Vec<String> =
            lambda.parameters.iter().flat_map(|list| list.iter()).map(|p| p.name().to_string()).collect();
        let vars: Vec<Ref<Var>> = names.iter().map(|name| Var::dim(name.clone())).collect();
        let final_indices = self.scoped(|p| {
            for (name, var) in names.iter().zip(&vars) {
                p.define(name, Value::Prim(PrimExpr::Var(var.clone())));
            }
            match &*lambda.body {
                Expr::Tuple(tuple) => tuple.elts.iter().map(|e| p.scalar_expr(e)).collect::<Parsed<Vec<_>>>(),
                Expr::List(list) => list.elts.iter().map(|e| p.scalar_expr(e)).collect(),
                one => Ok(vec![p.scalar_expr(one)?]),
            }
        })?;
        let map = IndexMap { initial_indices: vars, final_indices, inverse_index_map: None };
        Ok(Value::Object(Ref::new(map).into()))
    }

    /// Two operands of one type.
    fn two(&mut self, args: &mut Args) -> Parsed<(PrimExpr, PrimExpr)> {
        let (x, y) = (args.required(self, "a")?, args.required(self, "b")?);
        let (a, b) = (self.expr(x)?, self.expr(y)?);
        match self.operands(&a, &b) {
            Some(pair) => Ok(pair),
            None => Ok(prim::promote(self.scalar(&a, x.range())?, self.scalar(&b, y.range())?)),
        }
    }

    /// `T.float32(x)`: a literal, or a conversion.
    fn conversion(&mut self, dtype: DataType, args: &mut Args) -> Parsed<PrimExpr> {
        let e = args.required(self, "value")?;
        let value = self.expr(e)?;
        let splat = |literal: PrimExpr| prim::broadcast(literal, i64::from(dtype.lanes));
        let element = dtype.element();
        match value {
            Value::Int(v) if dtype.is_float() => Ok(splat(prim::float_of(element, v as f64))),
            Value::Int(v) if dtype.is_bool() => Ok(splat(prim::int_of(element, i64::from(v != 0)))),
            Value::Int(v) if dtype.is_integer() => {
                if !fits(v, dtype) {
                    return Err(self.error(Code::Type, format!("{v} does not fit in {dtype}"), e.range()));
                }
                Ok(splat(prim::int_of(element, v as i64)))
            }
            Value::Bool(v) => Ok(splat(prim::constant(element, f64::from(u8::from(v))))),
            Value::Float(v) if dtype.is_float() => Ok(splat(prim::float_of(element, v))),
            Value::Str(text) if dtype.is_float() => match text.parse() {
                Ok(v) => Ok(splat(prim::float_of(element, v))),
                Err(_) => Err(self.error(Code::Type, format!("{text:?} is no number"), e.range())),
            },
            other => match self.scalar_operand(&other) {
                Some(value) => Ok(prim::cast(dtype.with_lanes(value.dtype().lanes.max(dtype.lanes)), value)),
                None => {
                    let message = format!("{} cannot be converted to {dtype}", other.describe());
                    Err(self.error(Code::Type, message, e.range()))
                }
            },
        }
    }

    /// Expressions that are nodes of their own.
    fn node(&mut self, name: &str, args: &mut Args) -> Parsed<Option<PrimExpr>> {
        Ok(Some(match name {
            "masked_load" => self.masked_load(args)?,
            "Cast" => {
                let (dtype, value) = (args.required(self, "dtype")?, args.required(self, "value")?);
                let dtype = self.dtype(dtype)?;
                Ref::new(Cast { dtype, value: self.scalar_expr(value)? }).into()
            }
            "cast" => {
                let (value, dtype) = (args.required(self, "value")?, args.required(self, "dtype")?);
                let value = self.scalar_expr(value)?;
                prim::cast(self.dtype(dtype)?, value)
            }
            "Not" => {
                let e = args.required(self, "a")?;
                Ref::new(prim::Not { a: self.scalar_expr(e)? }).into()
            }
            "bitwise_not" | "BitwiseNot" => {
                let e = args.required(self, "a")?;
                let a = self.scalar_expr(e)?;
                prim::call(a.dtype(), "tirx.bitwise_not", vec![a])
            }
            "Select" => {
                let condition = args.required(self, "condition")?;
                let condition = self.scalar_expr(condition)?;
                let (true_value, false_value) = self.two(args)?;
                Ref::new(Select { condition, true_value, false_value }).into()
            }
            "if_then_else" => {
                let condition = args.required(self, "condition")?;
                let condition = self.scalar_expr(condition)?;
                let (a, b) = self.two(args)?;
                prim::call(a.dtype(), "tirx.if_then_else", vec![condition, a, b])
            }
            "Let" => self.let_expr(args)?,
            "ceildiv" => self.ceil_div(args)?,
            "abs" => self.absolute(args)?,
            "infinity" => {
                let e = args.required(self, "dtype")?;
                prim::float_of(self.dtype(e)?, f64::INFINITY)
            }
            "max_value" | "min_value" => self.limit(name == "max_value", args)?,
            "IntImm" | "FloatImm" => {
                let e = args.required(self, "dtype")?;
                let dtype = self.dtype(e)?;
                self.conversion(dtype, args)?
            }
            "Shuffle" => self.shuffle(args)?,
            "Ramp" | "ramp" => {
                let (base, stride) = self.two(args)?;
                let lanes = self.lanes(args)?;
                Ref::new(Ramp { base, stride, lanes }).into()
            }
            "Broadcast" | "broadcast" => {
                let e = args.required(self, "value")?;
                let value = self.scalar_expr(e)?;
                let lanes = self.lanes(args)?;
                Ref::new(Broadcast { value, lanes }).into()
            }
            // Lanes of a vector that begins at a base and ends at a limit: a comparison like others.
            "get_active_lane_mask" => {
                let e = args.required(self, "dtype")?;
                let lanes = self.dtype(e)?.lane_count();
                let (base, limit) = self.two(args)?;
                let places = prim::ramp(base, 1, lanes);
                prim::binary(BinaryOp::Lt, places, prim::broadcast(limit, lanes))
            }
            "StringImm" => {
                let e = args.required(self, "value")?;
                prim::string(self.text(e)?)
            }
            "Call" => self.written_call(args)?,
            _ => return Ok(None),
        }))
    }

    /// `T.ceildiv(a, b)`: as an operator on two integers, rounded up.
    fn ceil_div(&mut self, args: &mut Args) -> Parsed<PrimExpr> {
        let (a, b) = self.two(args)?;
        if !a.dtype().is_integer() {
            let message = format!("T.ceildiv divides integers, not {}", a.dtype());
            return Err(self.error(Code::Type, message, args.range));
        }
        let one = prim::int_of(a.dtype(), 1);
        Ok(prim::floordiv(a + &b - one, b))
    }

    /// `T.abs(x)`.
    fn absolute(&mut self, args: &mut Args) -> Parsed<PrimExpr> {
        let e = args.required(self, "x")?;
        let x = self.scalar_expr(e)?;
        Ok(match x.dtype() {
            dtype if dtype.is_float() => prim::call(dtype, "tirx.fabs", vec![x]),
            dtype if dtype.is_int() => {
                let zero = prim::int_of(dtype, 0);
                let (condition, false_value) = (prim::ge(x.clone(), zero.clone()), zero - &x);
                Ref::new(Select { condition, true_value: x, false_value }).into()
            }
            _ => x,
        })
    }

    /// `T.max_value(dtype)`, `T.min_value(dtype)`: literals, as TVM reads them; the calls of these names mean infinities for floats.
    fn limit(&mut self, is_greatest: bool, args: &mut Args) -> Parsed<PrimExpr> {
        let e = args.required(self, "dtype")?;
        let dtype = self.dtype(e)?;
        match greatest_float(dtype) {
            Some(greatest) => Ok(prim::float_of(dtype, if is_greatest { greatest } else { -greatest })),
            None if dtype.is_float() => Err(self.unsupported(&format!("a limit of {dtype}"), args.range)),
            None if is_greatest => Ok(prim::highest(dtype)),
            None => Ok(prim::lowest(dtype)),
        }
    }

    /// `T.Shuffle([vectors…], [numbers of lanes…])`.
    fn shuffle(&mut self, args: &mut Args) -> Parsed<PrimExpr> {
        let mut list = |name: &str| -> Parsed<Vec<PrimExpr>> {
            match args.required(self, name)? {
                Expr::List(list) => list.elts.iter().map(|e| self.scalar_expr(e)).collect(),
                Expr::Tuple(tuple) => tuple.elts.iter().map(|e| self.scalar_expr(e)).collect(),
                other => Err(self.error(Code::Type, "T.Shuffle takes lists", other.range())),
            }
        };
        let (vectors, numbers) = (list("vectors")?, list("indices")?);
        let Some(first) = vectors.first() else {
            return Err(self.error(Code::Arguments, "T.Shuffle takes lanes of some vector", args.range));
        };
        let lanes = u16::try_from(numbers.len().max(1)).unwrap_or(u16::MAX);
        let (dtype, count) = (first.dtype().element().with_lanes(lanes), vectors.len() as i64);
        let count = prim::int_of(DataType::int(32), count);
        let args = [count].into_iter().chain(vectors).chain(numbers).collect();
        Ok(prim::call(dtype, "tirx.shuffle", args))
    }

    fn lanes(&mut self, args: &mut Args) -> Parsed<i64> {
        let e = args.required(self, "lanes")?;
        let lanes = self.scalar_expr(e)?;
        prim::lanes_of(&lanes).ok_or_else(|| {
            let hint = "write a number, or a multiple of `T.vscale()` from two on";
            self.error(Code::Type, format!("a vector cannot have {lanes} lanes: {hint}"), e.range())
        })
    }

    /// `T.Let(body, where={x: value})`.
    fn let_expr(&mut self, args: &mut Args) -> Parsed<PrimExpr> {
        let body = args.required(self, "body")?;
        let Some(Expr::Dict(dict)) = args.keyword("where") else {
            return Err(self.error(Code::Arguments, "T.Let needs where={name: value}", args.range));
        };
        let [item] = dict.items.as_slice() else {
            return Err(self.error(Code::Arguments, "T.Let binds one name", dict.range));
        };
        let Some(Expr::Name(name)) = &item.key else {
            return Err(self.error(Code::Arguments, "T.Let binds a name", dict.range));
        };
        let value = self.scalar_expr(&item.value)?;
        let declared = self.lookup(&name.id).and_then(|v| variable(v).cloned());
        let var = declared
            .filter(|v| v.dtype() == value.dtype())
            .unwrap_or_else(|| Var::new(name.id.to_string(), Type::prim(value.dtype())));
        let body = self.scoped(|p| {
            p.define(&name.id, Value::Prim(PrimExpr::Var(var.clone())));
            p.scalar_expr(body)
        })?;
        Ok(Ref::new(Let { var, value, body }).into())
    }

    /// `T.Call(op, [arguments…], ret_ty=…)`, the operator given as itself or by its name.
    fn written_call(&mut self, args: &mut Args) -> Parsed<PrimExpr> {
        let (op, list) = (args.required(self, "op")?, args.required(self, "args")?);
        let op = match self.expr(op)? {
            Value::Str(name) => name,
            Value::Relax(relaxide_relax::Expr::Op(op)) => op.name.clone(),
            other => {
                let message = format!("an operator is expected, but this is {}", other.describe());
                return Err(self.error(Code::Type, message, op.range()));
            }
        };
        let dtype = args.required(self, "ret_ty")?;
        let dtype = self.dtype(dtype)?;
        let given: &[Expr] = match list {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            other => return Err(self.error(Code::Type, "T.Call takes a list of arguments", other.range())),
        };
        let args = given.iter().map(|e| self.scalar_expr(e)).collect::<Parsed<Vec<_>>>()?;
        let op = match op.as_str() {
            "tirx.tvm_call_packed" => "tirx.call_packed".to_owned(),
            "tirx.tvm_call_cpacked" => "tirx.call_cpacked".to_owned(),
            _ => op,
        };
        Ok(Ref::new(PrimCall { op, args, dtype }).into())
    }

    fn intrinsic(&mut self, name: &str, args: &mut Args, range: TextRange) -> Parsed<PrimExpr> {
        let name = match name {
            "tvm_call_packed" => "call_packed",
            "tvm_call_cpacked" => "call_cpacked",
            "call_packed_lowered" => "tvm_call_packed_lowered",
            "call_cpacked_lowered" => "tvm_call_cpacked_lowered",
            name => name,
        };
        // LLVM's functions have names here, and no numbers.
        if name == "llvm_lookup_intrinsic_id" {
            let function = args.required(self, "name")?;
            return self.scalar_expr(function);
        }
        if name == "call_intrin" {
            let (dtype, op) = (args.required(self, "dtype")?, args.required(self, "op")?);
            let (dtype, op) = (self.dtype(dtype)?, self.text(op)?);
            let args = self.scalars(args)?;
            return Ok(Ref::new(PrimCall { op, args, dtype }).into());
        }
        let Some(rule) = intrinsics::rule(name) else {
            let error = self.error(Code::UnknownMember, format!("there is no `T.{name}`"), range);
            let known = intrinsics::names().chain(OPERATORS.iter().map(|(name, _)| *name));
            return Err(match closest(name, known) {
                Some(near) => error.with_help(format!("did you mean `T.{near}`?")).into(),
                None => error,
            });
        };
        let written = match rule {
            // Which threads of a warp are active is a number of 32 bits where a text says nothing.
            ResultType::Written if name == "tvm_warp_activemask" && args.positions() == 0 && !args.names("dtype") => {
                Some(DataType::uint(32))
            }
            // A sum of products of bytes is a number of 32 bits where a text says nothing.
            ResultType::Written if name == "dp4a" && !args.next_is_text() && !args.names("dtype") => {
                Some(DataType::int(32))
            }
            ResultType::Written => {
                let e = match args.keyword("dtype") {
                    Some(e) => e,
                    None => args.required(self, "dtype")?,
                };
                Some(self.dtype(e)?)
            }
            ResultType::WrittenLast => None,
            ResultType::Void => {
                // What gives nothing does so whatever a text says.
                if let Some(e) = args.keyword("dtype") {
                    self.dtype(e)?;
                }
                None
            }
            // Older texts say what follows anyway.
            _ => match args.keyword("dtype") {
                Some(e) => Some(self.dtype(e)?),
                None => None,
            },
        };
        let mut written = written;
        let args = match name {
            "call_packed" | "call_cpacked" => self.packed_arguments(args)?,
            _ if rule == ResultType::WrittenLast => {
                let given = ["arr", "index", "field"].map(|name| args.required(self, name).cloned());
                let dtype = args.required(self, "dtype")?;
                written = Some(self.dtype(dtype)?);
                given.into_iter().map(|e| self.scalar_expr(&e?)).collect::<Parsed<Vec<_>>>()?
            }
            "address_of" => self.addressed(args)?,
            _ => self.scalars(args)?,
        };
        let dtype = written.or_else(|| intrinsics::infer(rule, &args));
        let dtype =
            dtype.ok_or_else(|| self.error(Code::Arguments, format!("`T.{name}` has too few arguments"), range))?;
        Ok(Ref::new(PrimCall { op: format!("tirx.{name}"), args, dtype }).into())
    }

    /// `Module.name(…)` in a kernel: a call of another kernel.
    pub(super) fn kernel_call(&mut self, kernel: &GlobalVar, call: &ast::ExprCall) -> Parsed<Value> {
        // A kernel of this text, or one of the surroundings.
        let outer = self.outer_functions.iter().find(|(_, var)| var.name == kernel.name);
        let outer = outer.and_then(|(function, _)| function.downcast_ref::<PrimFunc>());
        let result = match (self.kernels.get(&kernel.name), outer.map(|function| &function.ret_type)) {
            (Some(result), _) => *result,
            (None, Some(Type::Prim(ty))) => ty.dtype,
            (None, Some(_)) => DataType::void(),
            (None, None) => {
                let message = format!("`{}` is no kernel, and kernels call kernels only", kernel.name);
                return Err(self.error(Code::Type, message, call.func.range()));
            }
        };
        let mut args = Args::of(self, &kernel.name, call)?;
        let mut values = Vec::new();
        for e in args.rest() {
            values.push(match self.expr(e)? {
                // A buffer that the kernel was handed is handed on; a scalar of its own is its value.
                Value::Buffer(buffer) if !self.is_scalar_buffer(&buffer) || self.is_parameter(&buffer) => {
                    tensor_argument(&buffer)
                }
                value => self.scalar(&value, e.range())?,
            });
        }
        args.finish(self)?;
        Ok(Value::Prim(kernel_call(&kernel.name, values, result)))
    }

    fn is_parameter(&self, buffer: &Ref<Buffer>) -> bool {
        self.kernel.params.iter().any(|(_, own)| own.as_ref() == Some(buffer))
    }

    /// What an address is asked of: an element, of a whole buffer the first.
    fn addressed(&mut self, args: &mut Args) -> Parsed<Vec<PrimExpr>> {
        let mut elements = Vec::new();
        for e in args.rest() {
            elements.push(match self.expr(e)? {
                Value::Buffer(buffer) => {
                    let indices = buffer.shape.iter().map(|dim| prim::int_of(dim.dtype(), 0)).collect();
                    Ref::new(BufferLoad { buffer, indices, predicate: None }).into()
                }
                other => self.scalar(&other, e.range())?,
            });
        }
        Ok(elements)
    }

    /// Arguments of a packed function: a buffer is described to it.
    fn packed_arguments(&mut self, args: &mut Args) -> Parsed<Vec<PrimExpr>> {
        let argument = |this: &mut Self, e: &Expr| match this.expr(e)? {
            Value::Buffer(buffer) if !this.is_scalar_buffer(&buffer) => Ok(tensor_argument(&buffer)),
            value => this.scalar(&value, e.range()),
        };
        args.rest().into_iter().map(|e| argument(self, e)).collect()
    }

    /// The arguments that are left, those of a list that stands behind `*` each.
    fn scalars(&mut self, args: &mut Args) -> Parsed<Vec<PrimExpr>> {
        let mut all = Vec::new();
        for e in args.rest() {
            match e {
                Expr::Starred(star) => {
                    for value in self.spread(&star.value)? {
                        all.push(self.scalar(&value, star.range)?);
                    }
                }
                e => all.push(self.scalar_expr(e)?),
            }
        }
        Ok(all)
    }
}

/// The greatest finite number of a type.
fn greatest_float(dtype: DataType) -> Option<f64> {
    match (dtype.code, dtype.bits) {
        (DataType::BFLOAT, 16) => Some(f64::from(f32::from_bits(0x7f7f_0000))),
        (DataType::FLOAT, 16) => Some(65504.0),
        (DataType::FLOAT, 32) => Some(f64::from(f32::MAX)),
        (DataType::FLOAT, 64) => Some(f64::MAX),
        _ => None,
    }
}
