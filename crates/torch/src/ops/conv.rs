//! Convolutions.

use relaxide_ir::Attrs;
use relaxide_ir::prim;
use relaxide_relax::Expr;

use super::Table;
use crate::error::NodeError;
use crate::program::Argument;
use crate::rule::{Cx, Outputs, Result, one};

pub const TABLE: Table = &[
    ("aten.convolution", |cx| {
        let transposed = cx.flag("transposed", false)?;
        convolution(cx, transposed)
    }),
    ("aten._convolution", |cx| {
        let transposed = cx.flag("transposed", false)?;
        convolution(cx, transposed)
    }),
    ("aten.conv1d", |cx| convolution(cx, false)),
    ("aten.conv2d", |cx| convolution(cx, false)),
    ("aten.conv3d", |cx| convolution(cx, false)),
    ("aten.conv_transpose1d", |cx| convolution(cx, true)),
    ("aten.conv_transpose2d", |cx| convolution(cx, true)),
    ("aten.conv_transpose3d", |cx| convolution(cx, true)),
];

/// What stands on both sides of each spatial axis: numbers, or `same` and `valid`.
fn padding(cx: &Cx<'_>, kernel: &[i64], dilation: &[i64]) -> Result<Vec<i64>> {
    let count = kernel.len();
    if let Some(Argument::AsString(mode)) = cx.get("padding") {
        return match mode.as_str() {
            "valid" => Ok(vec![0; 2 * count]),
            "same" => {
                let total: Vec<i64> = kernel.iter().zip(dilation).map(|(k, d)| d * (k - 1)).collect();
                let front = total.iter().map(|t| t / 2);
                let back = total.iter().map(|t| t - t / 2);
                Ok(front.chain(back).collect())
            }
            other => Err(NodeError::invalid(format!("`padding` is \"{other}\""))),
        };
    }
    let one_side = cx.window("padding", count, &[0])?;
    Ok([one_side.clone(), one_side].concat())
}

fn convolution(cx: &mut Cx<'_>, transposed: bool) -> Outputs {
    let (x, weight, bias) = (cx.tensor("input")?, cx.tensor("weight")?, cx.optional("bias")?);
    let rank = cx.rank(&weight)?;
    let Some(count) = rank.checked_sub(2).filter(|n| (1..=3).contains(n)) else {
        return Err(NodeError::unsupported(format!("a weight of {rank} axes")));
    };
    // An image without a batch gets one.
    let bare = cx.rank(&x)? + 1 == rank;
    let x = if bare { cx.op("expand_dims", [x], Attrs::new().with("axis", vec![0i64]))? } else { x };
    let kernel: Option<Vec<i64>> = cx.shape(&weight)?[2..].iter().map(|d| d.as_int()).collect();
    let kernel = kernel.ok_or_else(|| NodeError::unsupported("a window whose extent is not known at export"))?;
    let strides = cx.window("stride", count, &[1])?;
    let dilation = cx.window("dilation", count, &[1])?;
    let pads = padding(cx, &kernel, &dilation)?;
    let dtype = cx.dtype(&x);
    let groups = cx.int_or("groups", 1)?;
    let mut attrs = Attrs::new()
        .with("strides", strides)
        .with("padding", pads)
        .with("dilation", dilation)
        .with("groups", groups)
        .with("out_dtype", dtype);
    let mut name = format!("nn.conv{count}d");
    if transposed {
        name.push_str("_transpose");
        attrs = attrs.with("output_padding", cx.window("output_padding", count, &[0])?);
    }
    let mut y = cx.op(&name, [x, weight], attrs)?;
    if let Some(bias) = bias {
        let mut column = vec![prim::int(1); rank];
        column[1] = cx.shape(&bias)?.first().cloned().unwrap_or_else(|| prim::int(1));
        let bias = cx.reshape(bias, &column)?;
        y = cx.call("add", [y, bias])?;
    }
    if bare {
        y = squeezed(cx, y)?;
    }
    one(y)
}

fn squeezed(cx: &mut Cx<'_>, y: Expr) -> Result<Expr> {
    cx.op("squeeze", [y], Attrs::new().with("axis", vec![0i64]))
}
