//! Constants and attributes as text.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::{AttrValue, Attrs, GlobalVar};

use super::names;
use super::print::Printer;
use crate::op;
use crate::scalar::{Number, numbers};
use crate::{Call, Constant, Expr, Function};

/// A number with the digits that a stream of C++ prints, which is six, where these say it exactly; else as many as it takes.
pub fn float_text(value: f64, exact: impl Fn(f64) -> bool) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    for digits in 6..=17usize {
        let text = general(value, digits);
        if text.parse::<f64>().is_ok_and(&exact) {
            return text;
        }
    }
    format!("{value:e}")
}

/// `%g` of C: so many significant digits, without zeros at the end, with an exponent where the number is large or small.
fn general(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

/// A tensor as a plain number, where text has one for it.
fn literal(tensor: &Tensor) -> Option<String> {
    if tensor.ndim() != 0 {
        return None;
    }
    let dtype = tensor.dtype();
    let [number] = numbers(tensor)?[..] else { return None };
    match (number, dtype.code, dtype.bits) {
        (Number::Bool(true), ..) => Some("True".into()),
        (Number::Bool(false), ..) => Some("False".into()),
        (Number::Int(v), DataType::INT, 32) => Some(v.to_string()),
        (Number::Int(v), DataType::INT, bits @ (16 | 64)) => Some(format!("{v}i{bits}")),
        (Number::Float(v), DataType::FLOAT, _) if v.is_nan() => None,
        (Number::Float(v), DataType::FLOAT, 32) => Some(format!("{}f", float_text(v, |t| t as f32 == v as f32))),
        (Number::Float(v), DataType::FLOAT, 16) => {
            let same = |t: f64| half::f16::from_f64(t).to_f64() == v;
            Some(format!("{}f16", float_text(v, same)))
        }
        (Number::Float(v), DataType::FLOAT, 64) => Some(format!("{}f64", float_text(v, |t| t == v))),
        _ => None,
    }
}

impl Printer<'_> {
    pub fn constant(&mut self, constant: &Ref<Constant>) -> String {
        literal(&constant.data).unwrap_or_else(|| self.meta.add("relay.Constant", Expr::from(constant).as_object()))
    }

    /// The attributes of a call, those that say something.
    pub fn call_attrs(&mut self, call: &Call) -> Vec<String> {
        let def = match &call.op {
            Expr::Op(op) => op::lookup(&op.name).and_then(|def| def.attrs_def()),
            _ => None,
        };
        let Some(def) = def else { return self.attr_list(&call.attrs) };
        let mut texts = Vec::new();
        for field in def.fields {
            let Some(value) = call.attrs.0.get(field.name) else { continue };
            if !field.is_default(value) {
                texts.push(format!("{}={}", field.name, self.attr(value)));
            }
        }
        texts
    }

    pub fn function_attrs(&mut self, function: &Function) -> Vec<String> {
        self.attr_list(&function.attrs)
    }

    fn attr_list(&mut self, attrs: &Attrs) -> Vec<String> {
        attrs.0.iter().map(|(name, value)| format!("{}={}", names::attribute(name), self.attr(value))).collect()
    }

    fn attr(&mut self, value: &AttrValue) -> String {
        match value {
            AttrValue::None => "None".into(),
            AttrValue::Bool(true) => "True".into(),
            AttrValue::Bool(false) => "False".into(),
            AttrValue::Int(v) => v.to_string(),
            AttrValue::Float(v) => format!("{}f", float_text(*v, |t| t == *v)),
            // Text has no way to write a quote inside of a text, and its lines are indented.
            AttrValue::Str(text) if text.contains(['"', '\n']) => self.meta.add_attr("runtime.String", value),
            AttrValue::Str(text) => format!("\"{text}\""),
            AttrValue::DType(dtype) if dtype.is_void() => "None".into(),
            AttrValue::DType(dtype) => format!("\"{dtype}\""),
            AttrValue::List(list) => {
                let items: Vec<String> = list.iter().map(|item| self.attr(item)).collect();
                format!("[{}]", items.join(", "))
            }
            AttrValue::Map(map) => match map.get("type_key") {
                Some(AttrValue::Str(key)) => self.meta.add_attr(key, value),
                _ => format!("{{{}}}", self.attr_list(&Attrs(map.clone())).join(", ")),
            },
            AttrValue::Prim(e) => e.as_int().map_or_else(|| format!("\"{e}\""), |v| v.to_string()),
            AttrValue::Object(object) => match object.downcast_ref::<GlobalVar>() {
                Some(global) => names::global(&global.name),
                None => self.meta.add(object.type_key(), object),
            },
        }
    }
}
