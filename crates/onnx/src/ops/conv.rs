//! Convolutions.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The window of a convolution or a pooling, along each spatial axis.
#[derive(Debug, Clone)]
pub struct Window {
    /// Extent.
    pub kernel: Vec<i64>,
    /// Step.
    pub strides: Vec<i64>,
    /// Distance of neighbours in the window.
    pub dilations: Vec<i64>,
    /// Elements added in front of each axis, then behind each.
    pub pads: Vec<i64>,
    /// The spatial axes as automatic padding makes them, where that depends on dimensions that are not fixed; `pads` are 0 then.
    pub same: Option<Vec<Same>>,
}

/// An axis with as much added that a window has a `stride`th of the axis' positions, rounded up.
#[derive(Debug, Clone)]
pub struct Same {
    /// How many elements stand in front of the axis.
    pub front: PrimExpr,
    /// How long the whole is. What no window reaches is left out.
    pub length: PrimExpr,
    /// How many positions there are.
    pub positions: PrimExpr,
}

impl Window {
    /// Reads the attributes of a node. `spatial` are the input's dimensions, which automatic padding depends on.
    pub fn read(node: &Node, kernel: Vec<i64>, spatial: &[PrimExpr]) -> Result<Window> {
        let mut window = Window::unpadded(node, kernel, spatial.len())?;
        window.pads = match node.str_or("auto_pad", "NOTSET")? {
            "SAME_UPPER" | "SAME_LOWER" if window.is_open(spatial) => {
                window.same = Some(window.open_same(spatial, node.str_or("auto_pad", "")? == "SAME_UPPER"));
                window.pads
            }
            "SAME_UPPER" => window.same(spatial, Odd::Behind),
            "SAME_LOWER" => window.same(spatial, Odd::InFront),
            _ => window.pads,
        };
        Ok(window)
    }

    /// How far a window reaches along an axis.
    fn reach(&self, i: usize) -> i64 {
        (self.kernel[i] - 1) * self.dilations[i] + 1
    }

    /// Whether automatic padding depends on a dimension that is not fixed.
    fn is_open(&self, spatial: &[PrimExpr]) -> bool {
        spatial.iter().zip(&self.strides).any(|(dim, stride)| dim.as_int().is_none() && *stride != 1)
    }

    /// Automatic padding as expressions over the dimensions.
    fn open_same(&self, spatial: &[PrimExpr], behind: bool) -> Vec<Same> {
        let along = |(i, dim): (usize, &PrimExpr)| {
            let (stride, reach) = (self.strides[i], self.reach(i));
            let positions = dims::simplify(&prim::floordiv(dim + (stride - 1), stride));
            let length = dims::simplify(&prim::max(&positions * stride + (reach - stride), 0));
            let total = prim::max(&length - dim, 0);
            let front = if behind { prim::floordiv(total, 2) } else { prim::floordiv(total + 1, 2) };
            Same { front: dims::simplify(&front), length, positions }
        };
        spatial.iter().enumerate().map(along).collect()
    }

    /// The same without automatic padding.
    pub fn unpadded(node: &Node, kernel: Vec<i64>, rank: usize) -> Result<Window> {
        if let Some(given) = node.ints("kernel_shape")?
            && given != kernel
        {
            return Err(NodeError::invalid(format!("`kernel_shape` is {given:?}, but the weight's is {kernel:?}")));
        }
        let positive = |name: &str, list: Vec<i64>, n: usize| {
            if list.len() == n && list.iter().all(|&v| (1..=1 << 31).contains(&v)) {
                return Ok(list);
            }
            Err(NodeError::invalid(format!("`{name}` is {list:?}, not {n} positive numbers")))
        };
        let kernel = positive("kernel_shape", kernel, rank)?;
        let strides = positive("strides", node.ints("strides")?.unwrap_or_else(|| vec![1; rank]), rank)?;
        let dilations = positive("dilations", node.ints("dilations")?.unwrap_or_else(|| vec![1; rank]), rank)?;
        let mut window = Window { kernel, strides, dilations, pads: vec![0; 2 * rank], same: None };
        window.pads = match node.str_or("auto_pad", "NOTSET")? {
            "NOTSET" | "" => node.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]),
            "VALID" | "SAME_UPPER" | "SAME_LOWER" => vec![0; 2 * rank],
            other => return Err(NodeError::invalid(format!("`auto_pad` is \"{other}\""))),
        };
        if window.pads.len() != 2 * rank || window.pads.iter().any(|p| !(0..1 << 31).contains(p)) {
            return Err(NodeError::unsupported(format!(
                "`pads` is {:?}; {} numbers from 0 on are supported",
                window.pads,
                2 * rank
            )));
        }
        Ok(window)
    }

    /// The padding with which the output has a `stride`th of the input's elements, rounded up. Dimensions are fixed where the
    /// stride is not 1.
    fn same(&self, spatial: &[PrimExpr], odd: Odd) -> Vec<i64> {
        let rank = spatial.len();
        let mut pads = vec![0; 2 * rank];
        for (i, dim) in spatial.iter().enumerate() {
            let (n, stride) = (dim.as_int().unwrap_or(0), self.strides[i]);
            let total = match stride {
                1 => self.reach(i) - 1,
                _ => ((n + stride - 1) / stride - 1) * stride + self.reach(i) - n,
            }
            .max(0);
            let small = total / 2;
            (pads[i], pads[i + rank]) =
                if odd == Odd::Behind { (small, total - small) } else { (total - small, small) };
        }
        pads
    }

    /// The input with what automatic padding adds, where that depends on dimensions that are not fixed: `fill` around it.
    pub fn filled(&self, scope: &mut Scope, x: Expr, fill: PrimExpr) -> Result<Expr> {
        let Some(same) = &self.same else { return Ok(x) };
        let own = scope.dims(&x)?;
        let dims: Vec<PrimExpr> = own[..2].iter().cloned().chain(same.iter().map(|s| s.length.clone())).collect();
        scope.te("pad_same", vec![x], |inputs| {
            vec![te::compute("pad_same", &dims, |at| {
                let mut index = at.to_vec();
                let mut inside = prim::boolean(true);
                for (i, axis) in same.iter().enumerate() {
                    let place = &at[i + 2] - &axis.front;
                    inside = prim::and(inside, prim::and(prim::ge(&place, 0), prim::lt(&place, &own[i + 2])));
                    index[i + 2] = place;
                }
                prim::if_then_else(inside, inputs[0].at(&index), fill.clone())
            })]
        })
    }
}

/// Where the odd element of an automatic padding goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Odd {
    Behind,
    InFront,
}

/// Gives a tensor of one spatial axis a second, of extent 1, in front of it; two-dimensional operators serve both.
pub fn as_2d(scope: &mut Scope, x: Expr) -> Result<Expr> {
    let mut dims = scope.dims(&x)?;
    if dims.len() == 3 {
        dims.insert(2, 1.into());
    }
    scope.reshape(x, dims)
}

/// Takes the added axis away again.
pub fn from_2d(scope: &mut Scope, x: Expr, rank: usize) -> Result<Expr> {
    let mut dims = scope.dims(&x)?;
    if rank == 1 && dims.len() == 4 {
        dims.remove(2);
    }
    scope.reshape(x, dims)
}

/// Puts the neutral value for the added axis in front of a list of one.
pub fn lift(list: &[i64], neutral: i64) -> Vec<i64> {
    if let [value] = list { vec![neutral, *value] } else { list.to_vec() }
}

/// `pads` of one or two axes in the order top, left, bottom, right.
pub fn lift_pads(pads: &[i64]) -> Vec<i64> {
    if let [before, after] = pads { vec![0, *before, 0, *after] } else { pads.to_vec() }
}

/// The weight, with fixed dimensions.
fn weight(scope: &mut Scope, node: &Node) -> Result<(Expr, Vec<i64>)> {
    let value = node.input(1)?;
    let dims = scope.value_dims(value)?;
    let fixed = dims.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let fixed = fixed.ok_or_else(|| NodeError::unsupported("the weight's dimensions are not fixed"))?;
    Ok((scope.tensor(value)?, fixed))
}

/// Input and rank of the spatial axes, which must be one to three.
fn input(scope: &mut Scope, node: &Node, weight: &[i64]) -> Result<(Expr, usize)> {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    match rank.checked_sub(2) {
        Some(spatial @ (1..=3)) if weight.len() == rank => Ok((x, spatial)),
        Some(1..=3) => Err(NodeError::invalid(format!("the weight has {} axes, the input {rank}", weight.len()))),
        _ => Err(NodeError::unsupported(format!("inputs of {rank} axes are not supported; of 3 to 5 they are"))),
    }
}

/// Adds one number for each channel.
fn add_bias(scope: &mut Scope, y: Expr, bias: Option<&Value>, channels: i64) -> Result<Expr> {
    let Some(bias) = bias else { return Ok(y) };
    let rank = scope.dims(&y)?.len();
    let mut dims = vec![1; rank];
    dims[1] = channels;
    let bias = match bias {
        Value::Constant(tensor) => Expr::constant(scope.reshaped_constant(tensor, &dims)?),
        other => {
            let bias = scope.tensor(other)?;
            scope.reshape(bias, dims.into_iter().map(PrimExpr::from).collect())?
        }
    };
    scope.call("add", [y, bias])
}

/// The weight's number of input channels must be the input's, which is checked if need be.
fn agree_on_channels(scope: &mut Scope, x: Expr, channels: i64) -> Result<Expr> {
    let mut wanted = scope.dims(&x)?;
    wanted[1] = channels.into();
    scope.agree(x, &wanted)
}

fn group(node: &Node) -> Result<i64> {
    match node.int_or("group", 1)? {
        group @ 1.. => Ok(group),
        group => Err(NodeError::invalid(format!("`group` is {group}"))),
    }
}

/// `Conv` over one to three spatial axes.
pub fn conv(scope: &mut Scope, node: &Node) -> Outputs {
    let (w, w_dims) = weight(scope, node)?;
    let (x, rank) = input(scope, node, &w_dims)?;
    let group = group(node)?;
    let x = agree_on_channels(scope, x, w_dims[1].saturating_mul(group))?;
    let window = Window::read(node, w_dims[2..].to_vec(), &scope.dims(&x)?[2..])?;
    let zero = prim::constant(scope.dtype(&x), 0.0);
    let x = window.filled(scope, x, zero)?;
    let (x, w) = (as_2d(scope, x)?, as_2d(scope, w)?);
    let attrs = Attrs::new()
        .with("strides", lift(&window.strides, 1))
        .with("padding", lift_pads(&window.pads))
        .with("dilation", lift(&window.dilations, 1))
        .with("groups", group);
    // Products of narrow floats are summed in float32.
    let dtype = scope.dtype(&x);
    let narrow = dtype.is_float() && dtype.bits < 32;
    let attrs = if narrow { attrs.with("out_dtype", DataType::float(32)) } else { attrs };
    let y = scope.op(if rank == 3 { "nn.conv3d" } else { "nn.conv2d" }, [x, w], attrs)?;
    let y = scope.cast(y, dtype)?;
    let y = add_bias(scope, y, node.optional(2), w_dims[0])?;
    one(from_2d(scope, y, rank)?)
}

/// What is added to and taken away from the natural extent of a transposed convolution.
struct Margins {
    pads: Vec<i64>,
    extra: Vec<i64>,
}

/// The margins that a node asks for, by `pads`, by the shape that its output is to have, or by `auto_pad`.
fn margins(node: &Node, window: &Window, spatial: &[PrimExpr]) -> Result<Margins> {
    let rank = spatial.len();
    let mut extra = node.ints("output_padding")?.unwrap_or_else(|| vec![0; rank]);
    if extra.len() != rank || extra.iter().any(|e| !(0..1 << 31).contains(e)) {
        return Err(NodeError::invalid(format!("`output_padding` is {extra:?}, not {rank} numbers")));
    }
    let auto = node.str_or("auto_pad", "NOTSET")?;
    let reach = |i: usize| (window.kernel[i] - 1) * window.dilations[i] + 1;
    let shape = node.ints("output_shape")?.filter(|s| !s.is_empty());
    let totals: Vec<i64> = match shape {
        Some(shape) => {
            let shape = &shape[shape.len().saturating_sub(rank)..];
            let fixed = spatial.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
            if shape.iter().any(|n| !(1..1 << 31).contains(n)) {
                return Err(NodeError::invalid(format!("`output_shape` is {shape:?}")));
            }
            let fixed = fixed.filter(|_| shape.len() == rank).ok_or_else(|| {
                NodeError::unsupported("`output_shape` needs an image of fixed size")
                    .help("give the input a fixed shape, or export the model with explicit `pads`")
            })?;
            let total = |i: usize| window.strides[i].saturating_mul(fixed[i] - 1) + extra[i] + reach(i) - shape[i];
            (0..rank).map(total).collect()
        }
        None if auto.starts_with("SAME") => (0..rank).map(|i| extra[i] + reach(i) - window.strides[i]).collect(),
        None => return Ok(Margins { pads: window.pads.clone(), extra }),
    };
    let mut pads = vec![0; 2 * rank];
    for (i, total) in totals.into_iter().enumerate() {
        if total < 0 {
            extra[i] = extra[i].saturating_sub(total);
            continue;
        }
        let half = total / 2;
        (pads[i], pads[i + rank]) = if auto == "SAME_UPPER" { (half, total - half) } else { (total - half, half) };
    }
    Ok(Margins { pads, extra })
}

/// `ConvTranspose` over one to three spatial axes.
pub fn conv_transpose(scope: &mut Scope, node: &Node) -> Outputs {
    let (w, w_dims) = weight(scope, node)?;
    let (x, rank) = input(scope, node, &w_dims)?;
    let group = group(node)?;
    let x = agree_on_channels(scope, x, w_dims[0])?;
    let spatial = scope.dims(&x)?[2..].to_vec();
    let window = Window::unpadded(node, w_dims[2..].to_vec(), rank)?;
    let Margins { pads, extra } = margins(node, &window, &spatial)?;
    let (x, w) = (as_2d(scope, x)?, as_2d(scope, w)?);
    let attrs = Attrs::new()
        .with("strides", lift(&window.strides, 1))
        .with("padding", lift_pads(&pads))
        .with("output_padding", lift(&extra, 0))
        .with("dilation", lift(&window.dilations, 1))
        .with("groups", group);
    let y = scope.op(if rank == 3 { "nn.conv3d_transpose" } else { "nn.conv2d_transpose" }, [x, w], attrs)?;
    let y = add_bias(scope, y, node.optional(2), w_dims[1].saturating_mul(group))?;
    one(from_2d(scope, y, rank)?)
}
