//! ConvertLayout: convolutions and pooling in another layout, with changes of layout around them.
//!
//! ```text
//! nn.conv2d(%x, %w)    becomes    layout_transform(nn.conv2d(layout_transform(%x, NCHW, NHWC),
//!                                                           layout_transform(%w, OIHW, HWIO), …), NHWC, NCHW)
//! ```
//!
//! A change of layout that meets its opposite is taken away, also through operators that work element by element, so that a
//! network changes its layout where it begins and where it ends.

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, Attrs};

use super::arithmetic::{call, with_types};
use super::table::TransformError;
use crate::*;

/// The layouts that are wished for an operator: of data, and of kernels where it has some.
struct Wish {
    op: String,
    data: String,
    kernel: Option<String>,
}

fn wishes(value: &AttrValue) -> Result<Vec<Wish>, TransformError> {
    let refuse =
        || TransformError::Refused("desired_layouts is a dictionary: {\"nn.conv2d\": [\"NHWC\", \"HWIO\"]}".into());
    let AttrValue::Map(map) = value else { return Err(refuse()) };
    let wish = |(op, list): (&String, &AttrValue)| {
        let AttrValue::List(list) = list else { return Err(refuse()) };
        let text = |i: usize| match list.get(i) {
            Some(AttrValue::Str(text)) => Some(text.clone()),
            _ => None,
        };
        let data = text(0).ok_or_else(refuse)?;
        let kernel = text(1).filter(|text| text != "default");
        Ok(Wish { op: op.clone(), data, kernel })
    };
    map.iter().map(wish).collect()
}

fn changed(x: Expr, from: &str, to: &str) -> Option<Expr> {
    if from == to {
        return Some(x);
    }
    // What was changed the other way is what it was.
    if let Some((inner, "layout_transform")) = x.as_op_call()
        && inner.attrs.str("src_layout") == Some(to)
        && inner.attrs.str("dst_layout") == Some(from)
    {
        return Some(inner.args[0].clone());
    }
    call("layout_transform", [x], Attrs::new().with("src_layout", from).with("dst_layout", to))
}

/// The kernel's layout that goes with one of data.
fn usual_kernel(data: &str, own: &str) -> String {
    match data {
        "NHWC" => "HWIO".into(),
        "NWC" => "WIO".into(),
        "NDHWC" => "DHWIO".into(),
        "NCHW" => "OIHW".into(),
        "NCW" => "OIW".into(),
        "NCDHW" => "OIDHW".into(),
        _ => own.into(),
    }
}

/// The program with operators in the layouts that are wished for.
pub fn convert_layout(module: &Module, desired: &AttrValue) -> Result<Module, TransformError> {
    let wishes = wishes(desired)?;
    let converted = with_types(module, |new, _, types| {
        let (call_, name) = new.as_op_call()?;
        match wishes.iter().find(|wish| wish.op == name) {
            Some(wish) => converted(call_, name, wish),
            None => moved_behind(call_, name, types),
        }
    })?;
    Ok(converted)
}

/// How many channels a block has.
const BLOCK: i64 = 8;

/// The program with convolutions in blocks of channels: images as NCHW8c, kernels as OIHW8i8o. A convolution whose channels do not
/// divide, in groups, in another layout or of an unknown number of channels stays what it is.
pub fn alter_op_layout(module: &Module) -> Result<Module, TransformError> {
    with_types(module, |new, old, types| {
        let (call_, name) = new.as_op_call()?;
        if name != "nn.conv2d" {
            return moved_behind(call_, name, types);
        }
        let (old_call, _) = old.as_op_call()?;
        let weight = types.of(old_call.args.get(1)?)?;
        let weight = weight.as_tensor().filter(|t| t.shape.len() == 4)?;
        let [outputs, inputs, height, width] = [0, 1, 2, 3].map(|i| weight.shape[i]);
        let text = |name: &str| call_.attrs.str(name).unwrap_or_default();
        let plain = text("data_layout") == "NCHW" && text("kernel_layout") == "OIHW" && text("out_layout").is_empty();
        if !plain || call_.attrs.int("groups") != Some(1) || outputs % BLOCK != 0 || inputs % BLOCK != 0 || inputs <= 0
        {
            return None;
        }
        let (data, kernel) = (format!("NCHW{BLOCK}c"), format!("OIHW{BLOCK}i{BLOCK}o"));
        let attrs = call_
            .attrs
            .clone()
            .with("channels", outputs)
            .with("kernel_size", vec![height, width])
            .with("data_layout", data.clone())
            .with("kernel_layout", kernel.clone())
            .with("out_layout", data.clone());
        let args = [changed(call_.args[0].clone(), "NCHW", &data)?, changed(call_.args[1].clone(), "OIHW", &kernel)?];
        changed(call("nn.contrib_conv2d_NCHWc", args, attrs)?, &data, "NCHW")
    })
}

fn converted(call_: &Ref<Call>, name: &str, wish: &Wish) -> Option<Expr> {
    let layout = if call_.attrs.get("data_layout").is_some() { "data_layout" } else { "layout" };
    let own = call_.attrs.str(layout)?.to_string();
    if own == wish.data {
        return None;
    }
    let out = match call_.attrs.str("out_layout") {
        Some(text) if !text.is_empty() => text.to_string(),
        _ => own.clone(),
    };
    let mut attrs = call_.attrs.clone().with(layout, wish.data.clone());
    if attrs.get("out_layout").is_some() {
        attrs = attrs.with("out_layout", "");
    }
    let mut args = vec![changed(call_.args[0].clone(), &own, &wish.data)?];
    if let Some(kernel) = call_.attrs.str("kernel_layout") {
        let wanted = wish.kernel.clone().unwrap_or_else(|| usual_kernel(&wish.data, kernel));
        args.push(changed(call_.args[1].clone(), kernel, &wanted)?);
        attrs = attrs.with("kernel_layout", wanted);
    }
    args.extend(call_.args.iter().skip(args.len()).cloned());
    changed(call(name, args, attrs)?, &wish.data, &out)
}

/// An operator that works element by element, on what has been changed: the change comes behind it.
fn moved_behind(call_: &Ref<Call>, name: &str, types: &Types) -> Option<Expr> {
    const UNARY: &[&str] =
        &["nn.relu", "nn.leaky_relu", "clip", "sigmoid", "tanh", "exp", "negative", "abs", "cast", "copy"];
    let back = |e: &Expr| {
        let (inner, "layout_transform") = e.as_op_call()? else { return None };
        let layout = |name: &str| inner.attrs.str(name).map(str::to_string);
        Some((inner.args[0].clone(), layout("src_layout")?, layout("dst_layout")?))
    };
    if UNARY.contains(&name) {
        let (x, from, to) = back(&call_.args[0])?;
        return changed(call(name, [x], call_.attrs.clone())?, &from, &to);
    }
    if matches!(name, "add" | "subtract" | "multiply" | "maximum" | "minimum") {
        if let (Some((a, from, to)), Some((b, other_from, other_to))) = (back(&call_.args[0]), back(&call_.args[1])) {
            return ((&from, &to) == (&other_from, &other_to))
                .then(|| changed(call(name, [a, b], call_.attrs.clone())?, &from, &to))
                .flatten();
        }
        // A scalar fits every layout.
        let scalar = |e: &Expr| types.of(e).and_then(|ty| ty.as_tensor().map(|t| t.shape.is_empty())).unwrap_or(false);
        if let (Some((a, from, to)), true) = (back(&call_.args[0]), scalar(&call_.args[1])) {
            return changed(call(name, [a, call_.args[1].clone()], call_.attrs.clone())?, &from, &to);
        }
    }
    if name == "nn.bias_add" {
        let (x, from, to) = back(&call_.args[0])?;
        let axis = usize::try_from(call_.attrs.int("axis")?).ok()?;
        let letter = to.chars().nth(axis)?;
        let place = from.find(letter)? as i64;
        let made = call(name, [x, call_.args[1].clone()], call_.attrs.clone().with("axis", place))?;
        return changed(made, &from, &to);
    }
    None
}
