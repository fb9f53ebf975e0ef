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
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// The window of a pooling (`i64`) or a convolution, whose extents a weight may bring when the program runs (`PrimExpr`), along each
/// spatial axis.
#[derive(Debug, Clone)]
pub struct Window<Extent = i64> {
    /// Extent.
    pub kernel: Vec<Extent>,
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

impl<Extent: Clone + Into<PrimExpr>> Window<Extent> {
    /// Reads the attributes of a node. `spatial` are the input's dimensions, which automatic padding depends on.
    pub fn read(node: &Node, kernel: Vec<Extent>, spatial: &[PrimExpr]) -> Result<Self> {
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

    /// How long a window is along an axis, dilated.
    pub(super) fn dilated_extent(&self, i: usize) -> PrimExpr {
        let kernel: PrimExpr = self.kernel[i].clone().into();
        dims::simplify(&((kernel - 1) * self.dilations[i] + 1))
    }

    /// Whether automatic padding depends on a dimension that is not fixed.
    fn is_open(&self, spatial: &[PrimExpr]) -> bool {
        let open = |(i, dim): (usize, &PrimExpr)| dim.as_int().is_none() && self.strides[i] != 1;
        spatial.iter().enumerate().any(open) || (0..spatial.len()).any(|i| self.dilated_extent(i).as_int().is_none())
    }

    /// Automatic padding as expressions over the dimensions.
    fn open_same(&self, spatial: &[PrimExpr], behind: bool) -> Vec<Same> {
        let along = |(i, dim): (usize, &PrimExpr)| {
            let (stride, dilated_extent) = (self.strides[i], self.dilated_extent(i));
            let positions = dims::simplify(&prim::floordiv(dim + (stride - 1), stride));
            let length = dims::simplify(&prim::max(&positions * stride + (dilated_extent - stride), 0));
            let total = prim::max(&length - dim, 0);
            let front = if behind { prim::floordiv(total, 2) } else { prim::floordiv(total + 1, 2) };
            Same { front: dims::simplify(&front), length, positions }
        };
        spatial.iter().enumerate().map(along).collect()
    }

    /// The same without automatic padding.
    pub fn unpadded(node: &Node, kernel: Vec<Extent>, rank: usize) -> Result<Self> {
        let extents: Vec<PrimExpr> = kernel.iter().cloned().map(Into::into).collect();
        let fits = |(own, given): (&PrimExpr, &i64)| own.as_int().is_none_or(|own| own == *given);
        if let Some(given) = node.ints("kernel_shape")?
            && (given.len() != extents.len() || !extents.iter().zip(&given).all(fits))
        {
            let own = relaxide_relax::display::tuple_text(&extents);
            return Err(NodeError::invalid(format!("`kernel_shape` is {given:?}, but the weight's is {own}")));
        }
        let known: Vec<i64> = extents.iter().filter_map(PrimExpr::as_int).collect();
        let positive = |name: &str, list: Vec<i64>, n: usize| {
            if list.len() == n && list.iter().all(|&v| (1..=1 << 31).contains(&v)) {
                return Ok(list);
            }
            Err(NodeError::invalid(format!("`{name}` is {list:?}, not {n} positive numbers")))
        };
        positive("kernel_shape", known, rank - extents.iter().filter(|e| e.as_int().is_none()).count())?;
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

    /// The padding with which the output has a `stride`th of the input's elements, rounded up. Windows are fixed, and dimensions where
    /// the stride is not 1.
    fn same(&self, spatial: &[PrimExpr], odd: Odd) -> Vec<i64> {
        let rank = spatial.len();
        let mut pads = vec![0; 2 * rank];
        for (i, dim) in spatial.iter().enumerate() {
            let (n, stride, dilated_extent) =
                (dim.as_int().unwrap_or(0), self.strides[i], self.dilated_extent(i).as_int().unwrap_or(1));
            let total = match stride {
                1 => dilated_extent - 1,
                _ => ((n + stride - 1) / stride - 1) * stride + dilated_extent - n,
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

/// The weight, whose window is that of `kernel_shape` where its own dimensions are not fixed.
pub(super) fn weight(scope: &mut Scope, node: &Node) -> Result<Expr> {
    let w = scope.tensor(node.input(1)?)?;
    let mut wanted = scope.dims(&w)?;
    match node.ints("kernel_shape")? {
        Some(kernel) if kernel.len() + 2 == wanted.len() => {
            for (own, given) in wanted[2..].iter_mut().zip(kernel).filter(|(own, _)| own.as_int().is_none()) {
                *own = given.into();
            }
            scope.agree(w, &wanted)
        }
        _ => Ok(w),
    }
}

/// Input and rank of the spatial axes, which must be one to three.
pub(super) fn input(scope: &mut Scope, node: &Node, weight: &Expr) -> Result<(Expr, usize)> {
    let x = scope.tensor(node.input(0)?)?;
    let (rank, own) = (scope.dims(&x)?.len(), scope.dims(weight)?.len());
    match rank.checked_sub(2) {
        Some(spatial @ (1..=3)) if own == rank => Ok((x, spatial)),
        Some(1..=3) => Err(NodeError::invalid(format!("the weight has {own} axes, the input {rank}"))),
        _ => Err(NodeError::unsupported(format!("inputs of {rank} axes are not supported; of 3 to 5 they are"))),
    }
}

/// Adds one number for each channel.
pub(crate) fn add_bias(scope: &mut Scope, y: Expr, bias: Option<&Value>) -> Result<Expr> {
    let Some(bias) = bias else { return Ok(y) };
    let own = scope.dims(&y)?;
    let mut dims = vec![prim::int(1); own.len()];
    dims[1] = own[1].clone();
    let bias = match (bias, dims.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>()) {
        (Value::Constant(tensor), Some(dims)) => Expr::constant(scope.reshaped_constant(tensor, &dims)?),
        (other, known) => {
            let mut bias = scope.tensor(other)?;
            if known.is_none() {
                bias = scope.agree(bias, &own[1..2])?;
            }
            scope.reshape(bias, dims)?
        }
    };
    scope.call("add", [y, bias])
}

/// Image and weight, where axis `axis` of the weight has the input's channels, or those of one of `groups`: proved, or checked when
/// the program runs.
pub(super) fn agree_on_channels(scope: &mut Scope, x: Expr, w: Expr, axis: usize, groups: i64) -> Result<(Expr, Expr)> {
    let (mut image, mut weight) = (scope.dims(&x)?, scope.dims(&w)?);
    match (image[1].as_int(), weight[axis].as_int()) {
        (Some(channels), None) if channels % groups == 0 => {
            weight[axis] = prim::int(channels / groups);
            Ok((x, scope.agree(w, &weight)?))
        }
        _ => {
            image[1] = match weight[axis].as_int() {
                Some(known) => known.saturating_mul(groups).into(),
                None => dims::simplify(&(&weight[axis] * groups)),
            };
            Ok((scope.agree(x, &image)?, w))
        }
    }
}

/// The weight's first axis is divided into groups of one size.
pub(super) fn is_divided(scope: &mut Scope, w: &Expr, groups: i64) -> Result<()> {
    let first = scope.dims(w)?[0].clone();
    if groups == 1 || first.as_int().is_some() {
        return Ok(());
    }
    let text = "the first dimension of the weight must be a multiple of `group`, and not 0";
    let whole = Check::new(prim::and(prim::eq(prim::floormod(&first, groups), 0), prim::ge(&first, groups)), text);
    let values = [(scope.named_dim(w, 0), first), ("`group`".to_owned(), prim::int(groups))];
    scope.require(&[whole.with(values)])
}

pub fn group(node: &Node) -> Result<i64> {
    match node.int_or("group", 1)? {
        group @ 1.. => Ok(group),
        group => Err(NodeError::invalid(format!("`group` is {group}"))),
    }
}

/// `Conv` over one to three spatial axes.
pub fn conv(scope: &mut Scope, node: &Node) -> Outputs {
    let w = weight(scope, node)?;
    let (x, rank) = input(scope, node, &w)?;
    let group = group(node)?;
    is_divided(scope, &w, group)?;
    let (x, w) = agree_on_channels(scope, x, w, 1, group)?;
    let window = Window::read(node, scope.dims(&w)?[2..].to_vec(), &scope.dims(&x)?[2..])?;
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
    let y = add_bias(scope, y, node.optional(2))?;
    one(from_2d(scope, y, rank)?)
}
