//! Operators: one definition each, in one table.
//!
//! [`lookup`] finds the definition of a name, [`call`] builds a checked, typed call. To add an operator, add its row to a
//! family's table or write a file with a table of its own, and name the table in [`registry`].

pub mod activation;
pub mod adaptive_pool;
pub mod advanced_index;
mod all_class_nms;
mod all_class_on_threads;
pub mod attention;
pub mod backward;
pub mod binary;
pub mod collapse;
pub mod composite;
pub mod conv;
pub(crate) mod convolve;
pub mod core;
pub mod create;
mod cx;
mod def;
pub mod detection;
pub mod device;
mod distant_taps;
pub mod distributed;
pub mod divide;
pub mod einsum;
mod error;
pub mod gradient;
pub mod grid;
mod heap;
mod hooks;
mod idle_taps;
pub mod index;
pub mod inspect;
mod join;
pub(crate) mod kernel_names;
pub mod layout;
pub mod layout_transform;
pub mod lengths;
mod loops;
pub mod manipulate;
pub mod matmul;
mod merge_sort;
pub mod names;
pub mod nll;
pub mod norm;
mod packing;
mod patches;
mod pixel;
mod polyphase;
pub mod pool;
pub mod quantize;
mod radix_sort;
pub mod reduce;
mod registered;
mod registry;
pub mod resize;
pub mod roi;
mod roi_samples;
pub mod scan;
pub mod scatter;
pub mod search;
mod select;
pub mod sequence;
pub mod sort;
mod spread;
mod steps;
mod surface;
pub mod unary;
pub mod window;

use relaxide_ffi::{DataType, Object, Ref};
use relaxide_ir::prim::float_of;
use relaxide_ir::{AttrValue, Attrs, Type};

pub use cx::{CallCx, KernelForm, TensorInfo, tensor_type};
pub use def::*;
pub use error::OpError;
pub use hooks::*;
pub use packing::Packing;
pub use registered::{TypeRule, note_purity, note_type_rule, register};
pub use registry::{all, lookup};
pub use surface::{Slot, Surface, surface};

use crate::{Call, Expr, ShapeExpr};

/// An operator as a callee. Two of one name are equal.
#[derive(Object, Debug)]
#[object(key = "ir.Op")]
pub struct Op {
    /// The name without the `relax.` prefix: `"add"`, `"nn.conv2d"` …
    pub name: String,
}

impl Op {
    /// The operator of a name.
    pub fn get(name: impl Into<String>) -> Ref<Op> {
        Ref::new(Op { name: name.into() })
    }

    /// Its definition.
    pub fn def(&self) -> Option<&'static OpDef> {
        lookup(&self.name)
    }
}

/// A call of an operator: arguments and attributes are checked, defaults filled in, and the type is inferred.
pub fn call(name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr, OpError> {
    call_typed(name, args, attrs, Vec::new())
}

/// As [`call`], with types given at the call, as `call_tir` and `call_pure_packed` need.
pub fn call_typed(name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs, ty_args: Vec<Type>) -> Result<Expr, OpError> {
    let def = lookup(name).ok_or_else(|| OpError::Unknown(name.to_string()))?;
    let args = check_args(def, args.into())?;
    let attrs = check_attrs(def, attrs)?;
    let ty = infer(&CallCx {
        def,
        args: &args,
        attrs: &attrs,
        ty_args: &ty_args,
        over_threads: false,
        form: KernelForm::Fast,
    })?;
    let args = with_lengths(def, args, &ty);
    Ok(Ref::new(Call { op: Op::get(def.name).into(), args, attrs, ty_args, ty, span: None }).into())
}

/// The arguments with the lengths that inference found where a shape leaves one open (-1).
fn with_lengths(def: &OpDef, mut args: Vec<Expr>, ty: &Type) -> Vec<Expr> {
    let Type::Tensor(tensor) = ty else { return args };
    let Some(dims) = &tensor.shape else { return args };
    for (arg, given) in def.args.iter().zip(args.iter_mut()) {
        if arg.kind == ArgKind::Shape
            && let Expr::Shape(shape) = given
            && shape.values.len() == dims.len()
            && shape.values.iter().any(|dim| dim.is_int(-1))
        {
            *given = Expr::shape(dims.clone());
        }
    }
    args
}

/// Infers the type of a call of an operator anew, as after its arguments changed.
pub fn infer_call(call: &Call) -> Result<Type, OpError> {
    let Expr::Op(op) = &call.op else { return Ok(call.ty.clone()) };
    let def = op.def().ok_or_else(|| OpError::Unknown(op.name.clone()))?;
    infer(&CallCx::of(def, call))
}

/// The type of a call, with the device that its result lies on.
fn infer(cx: &CallCx) -> Result<Type, OpError> {
    let ty = (cx.def.infer)(cx).and_then(|ty| lengths::check(cx).map(|()| ty)).map_err(|error| error.of_call(cx))?;
    match cx.def.lower {
        Lowering::Special | Lowering::Builtin(_) => Ok(ty),
        _ => device::placed(cx, ty),
    }
}

/// Checks the number of arguments and brings each to the form that the definition asks for.
fn check_args(def: &OpDef, args: Vec<Expr>) -> Result<Vec<Expr>, OpError> {
    let required = def.args.iter().filter(|a| a.arity == Arity::Required).count();
    let variadic = def.args.last().is_some_and(|a| a.arity == Arity::Variadic);
    if args.len() < required || (!variadic && args.len() > def.args.len()) {
        let expected = match (variadic, required == def.args.len()) {
            (true, _) => format!("at least {required}"),
            (false, true) => required.to_string(),
            (false, false) => format!("{required} to {}", def.args.len()),
        };
        return Err(OpError::Arity { op: def.name.into(), expected, got: args.len() });
    }
    Ok(args
        .into_iter()
        .enumerate()
        .map(|(i, arg)| match def.args.get(i).map(|a| a.kind) {
            Some(ArgKind::Shape) => shape_from_tuple(arg),
            Some(ArgKind::ShapeOrNone) if !matches!(&arg, Expr::Tuple(t) if t.fields.is_empty()) => {
                shape_from_tuple(arg)
            }
            Some(ArgKind::DType) => dtype_from_text(arg),
            _ => arg,
        })
        .collect())
}

/// The dtype that a text names; anything else as it is.
fn dtype_from_text(arg: Expr) -> Expr {
    let Expr::Str(text) = &arg else { return arg };
    text.value.parse().map_or(arg, Expr::dtype)
}

/// A tuple of scalars as a shape; anything else as it is.
fn shape_from_tuple(arg: Expr) -> Expr {
    let Expr::Tuple(tuple) = &arg else { return arg };
    match tuple.fields.iter().map(Expr::as_scalar).collect::<Option<Vec<_>>>() {
        Some(values) => Ref::new(ShapeExpr { values }).into(),
        None => arg,
    }
}

/// Checks attributes and fills in defaults; the order is the definition's.
fn check_attrs(def: &OpDef, attrs: Attrs) -> Result<Attrs, OpError> {
    if registered::lookup(def.name).is_some() {
        return Ok(attrs);
    }
    let refuse = |attr: &str, problem: String| OpError::Attribute { op: def.name.into(), attr: attr.into(), problem };
    if let Some(unknown) = attrs.0.keys().find(|name| def.attrs.iter().all(|a| a.name != name.as_str())) {
        let known: Vec<_> = def.attrs.iter().map(|a| a.name).collect();
        return Err(refuse(unknown, format!("does not exist; there are: {}", known.join(", "))));
    }
    let mut out = Attrs::new();
    for attr in def.attrs {
        let value = match attrs.0.get(attr.name) {
            None | Some(AttrValue::None) => {
                default_value(attr, &out).ok_or_else(|| refuse(attr.name, "must be given".into()))?
            }
            Some(value) => convert(attr.kind, value).map_err(|want| refuse(attr.name, format!("must be {want}")))?,
        };
        let value = match (attr.kind, value) {
            (AttrKind::IntsOf(n), AttrValue::List(list)) => repeat_to(n, list).ok_or_else(|| {
                refuse(attr.name, format!("must hold {n} integers, or a number of them that divides {n}"))
            })?,
            (_, value) => value,
        };
        out = out.with(attr.name, value);
    }
    Ok(out)
}

fn default_value(attr: &AttrDef, others: &Attrs) -> Option<AttrValue> {
    Some(match attr.default {
        AttrDefault::Required => return None,
        AttrDefault::None => AttrValue::None,
        AttrDefault::Same(other) => others.0.get(other).cloned().unwrap_or(AttrValue::None),
        AttrDefault::Bool(v) => v.into(),
        AttrDefault::Int(v) => v.into(),
        AttrDefault::Float(v) => v.into(),
        AttrDefault::Str(v) => v.into(),
        AttrDefault::Ints(v) => v.to_vec().into(),
        AttrDefault::Zeros(n) => AttrValue::List(vec![AttrValue::Prim(float_of(DataType::float(32), 0.0)); n]),
        AttrDefault::Void => DataType::void().into(),
    })
}

/// Brings a value to the kind of an attribute; the error says what it must be.
fn convert(kind: AttrKind, value: &AttrValue) -> Result<AttrValue, &'static str> {
    let as_int = |value: &AttrValue| match value {
        AttrValue::Int(v) => Some(*v),
        AttrValue::Bool(v) => Some(i64::from(*v)),
        AttrValue::Prim(e) => e.as_int(),
        _ => None,
    };
    match kind {
        AttrKind::Any => Ok(value.clone()),
        AttrKind::Bool => as_int(value).map(|v| AttrValue::Bool(v != 0)).ok_or("True or False"),
        AttrKind::Int => as_int(value).map(AttrValue::Int).ok_or("an integer"),
        AttrKind::Float => match value {
            AttrValue::Float(v) => Ok(AttrValue::Float(*v)),
            AttrValue::Prim(relaxide_ir::prim::PrimExpr::Float(v)) => Ok(AttrValue::Float(v.value)),
            other => as_int(other).map(|v| AttrValue::Float(v as f64)).ok_or("a number"),
        },
        AttrKind::Str => match value {
            AttrValue::Str(_) => Ok(value.clone()),
            _ => Err("text"),
        },
        AttrKind::DType => match value {
            AttrValue::DType(_) => Ok(value.clone()),
            AttrValue::Str(text) => {
                text.parse().map(AttrValue::DType).map_err(|_| "an element type such as \"float32\"")
            }
            _ => Err("an element type such as \"float32\""),
        },
        AttrKind::Ints | AttrKind::IntsOf(_) => match value {
            AttrValue::List(list) => {
                let ints: Option<Vec<i64>> = list.iter().map(as_int).collect();
                ints.map(AttrValue::from).ok_or("a list of integers")
            }
            other => as_int(other).map(|v| AttrValue::from(vec![v])).ok_or("an integer or a list of integers"),
        },
    }
}

/// A list repeated to `n` entries, as one stride serves both dimensions.
fn repeat_to(n: usize, list: Vec<AttrValue>) -> Option<AttrValue> {
    if list.is_empty() || !n.is_multiple_of(list.len()) {
        return None;
    }
    let len = list.len();
    Some(AttrValue::List(list.into_iter().cycle().take(n / len * len).collect()))
}
