//! Resizing of any axes of a tensor, one axis after the other, by scales or sizes that the program may compute.
//!
//! Along an axis element `o` of the result lies at place `x(o)` of the input, and is the sum of the elements around it, each
//! with the weight that a filter has at its distance:
//!
//! ```text
//! y[o] = sum over k of f((k - x(o)) * s) * input[k]  /  sum over k of f((k - x(o)) * s)
//! ```
//!
//! `f` is a triangle (linear) or a cubic; `s` widens it where an image is made smaller with `antialias`. Images of usual
//! shape and method go to Relax's own operator instead ([`super::resize`]).

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::computed::{Args, ShapePlan, clamp};
use crate::error::NodeError;
use crate::scope::Scope;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// How positions and values are computed.
#[derive(Clone, Debug)]
pub struct Filter {
    /// `nearest`, `linear` or `cubic`.
    pub mode: String,
    /// How positions of the result map to those of the input.
    pub coordinates: String,
    /// How `nearest` rounds.
    pub rounding: String,
    /// The cubic's parameter.
    pub cubic_a: f64,
    /// Whether elements outside have no weight, rather than being those at the edge.
    pub exclude_outside: bool,
    /// Whether the filter is widened where an axis becomes shorter.
    pub antialias: bool,
    /// What stands where a region reaches outside of the input.
    pub extrapolation: f64,
}

/// What the new extent of an axis is made of.
#[derive(Clone)]
pub enum Extent {
    /// Element `i` of a float32 tensor of scales.
    Scale(Expr, usize),
    /// Element `i` of an int64 tensor of sizes.
    Size(Expr, usize),
}

/// The part of the input that is looked at, as places `i` and `i + n` of a float32 tensor.
#[derive(Clone)]
pub struct Region {
    /// The tensor.
    pub tensor: Expr,
    /// Location of the start.
    pub start: usize,
    /// Location of the end.
    pub end: usize,
}

/// One axis to resize.
pub struct Along {
    /// The axis.
    pub axis: usize,
    /// Its new extent.
    pub extent: Extent,
    /// The scale where the size alone does not give it, as element 0 of a float32 tensor.
    pub scale: Option<Expr>,
    /// The region of `tf_crop_and_resize`.
    pub region: Option<Region>,
}

/// The numbers that a kernel computes with.
struct Geometry {
    old: PrimExpr,
    new: PrimExpr,
    scale: PrimExpr,
    region: Option<(PrimExpr, PrimExpr)>,
}

/// The type that coordinates are computed in.
const PLACE: DataType = DataType::float(32);

fn number(value: f64) -> PrimExpr {
    prim::float_of(PLACE, value)
}

fn real(value: impl Into<PrimExpr>) -> PrimExpr {
    prim::cast(PLACE, value.into())
}

fn element(tensor: &te::Tensor, i: usize) -> PrimExpr {
    tensor.at(&[prim::int(i as i64)])
}

/// What is mixed must be there, unless nothing is made of it.
fn has_elements(old: &PrimExpr, new: &PrimExpr) -> Check {
    let some = prim::or(prim::gt(old, 0), prim::eq(new, 0));
    let values = [("its length".to_owned(), old.clone()), ("its new size".to_owned(), new.clone())];
    Check::new(some, "an axis without elements has none to mix").with(values)
}

/// The new size of an axis, from an input's element: a size, or what the old one is multiplied by.
fn new_size(
    scope: &mut Scope,
    args: &Args,
    old: &PrimExpr,
    input: usize,
    at: usize,
    by_scale: bool,
) -> Result<PrimExpr> {
    let dims = ShapePlan::bind(scope, "resize", args, |inputs| {
        let given = element(&inputs[input], at);
        let size = match by_scale {
            true => prim::cast(DataType::int(64), prim::math("floor", real(old.clone()) * given)),
            false => given,
        };
        let size = prim::max(size, 0);
        let check = has_elements(old, &size);
        ShapePlan { dims: vec![size], checks: vec![check] }
    })?;
    dims.into_iter().next().ok_or_else(|| NodeError::invalid("an axis has no new size"))
}

/// A tensor with one axis resized.
pub fn along(scope: &mut Scope, x: Expr, how: &Along, filter: &Filter) -> Result<Expr> {
    let shape = scope.dims(&x)?;
    let old = shape[how.axis].clone();
    let mut args = Args::default();
    let (extent, at) = match &how.extent {
        Extent::Scale(tensor, at) | Extent::Size(tensor, at) => (args.tensor(tensor.clone()), *at),
    };
    let by_scale = matches!(how.extent, Extent::Scale(..));
    let common = how.scale.clone().map(|scale| args.tensor(scale));
    let region = how.region.clone().map(|r| (args.tensor(r.tensor), r.start, r.end));
    let new = new_size(scope, &args, &old, extent, at, by_scale)?;
    let geometry = |inputs: &[te::Tensor]| Geometry {
        old: old.clone(),
        new: new.clone(),
        scale: match common {
            Some(i) => element(&inputs[i], 0),
            None if by_scale => element(&inputs[extent], at),
            None => prim::div(real(new.clone()), real(old.clone())),
        },
        region: region.map(|(i, start, end)| (element(&inputs[i], start), element(&inputs[i], end))),
    };
    let taps = taps(scope, &args, &geometry, filter)?;
    let mut out = shape.clone();
    out[how.axis] = new.clone();
    let dtype = scope.dtype(&x);
    let work = if dtype == DataType::float(64) { dtype } else { PLACE };
    let mut inputs = args.inputs();
    inputs.push(x);
    let axis = how.axis;
    scope.te("resize", inputs, |inputs| {
        let (data, geometry) = (&inputs[inputs.len() - 1], geometry(inputs));
        let pick = |at: &[PrimExpr], k: &PrimExpr| {
            let mut index = at.to_vec();
            index[axis] = clamp(k.clone(), 0, &geometry.old - 1);
            data.at(&index)
        };
        if filter.mode == "nearest" {
            return vec![te::compute("nearest", &out, |at| {
                let x = place(&at[axis], &geometry, filter);
                let k = prim::cast(DataType::int(64), rounded(x.clone(), &filter.rounding));
                outside(pick(at, &k), &x, &geometry, filter)
            })];
        }
        let term = |at: &[PrimExpr], tap: &PrimExpr| {
            let x = place(&at[axis], &geometry, filter);
            let (k, weight) = weight(&x, tap, &geometry, filter);
            let weight = prim::cast(work, weight);
            (prim::cast(work, pick(at, &k)) * weight.clone(), weight)
        };
        let finish = |at: &[PrimExpr], sum: PrimExpr, total: PrimExpr| {
            let x = place(&at[axis], &geometry, filter);
            prim::cast(dtype, outside(prim::div(sum, total), &x, &geometry, filter))
        };
        if let Some(taps) = taps.as_int().filter(|n| *n <= 4) {
            return vec![te::compute("resized", &out, |at| {
                let terms = (0..taps).map(|k| term(at, &prim::int(k)));
                let (sums, weights): (Vec<_>, Vec<_>) = terms.unzip();
                let sum = |list: Vec<PrimExpr>| list.into_iter().fold(prim::constant(work, 0.0), |n, e| n + e);
                finish(at, sum(sums), sum(weights))
            })];
        }
        let shares = Shares::of(&geometry, filter, &taps, work);
        let sum = te::compute("weighted", &out, |at| {
            let k = te::reduce_axis(taps.clone());
            let (o, tap) = (&at[axis], k.var());
            let element = prim::cast(work, pick(at, &shares.element(o, &tap)));
            te::sum(element * shares.share(o, &tap), [&k])
        });
        vec![te::compute("resized", &out, |at| {
            let x = place(&at[axis], &geometry, filter);
            prim::cast(dtype, outside(sum.at(at), &x, &geometry, filter))
        })]
    })
}

/// Where a wide filter begins for each element of an axis, and what part each element below it has: tables, since they are the same for
/// everything that lies along the axis.
struct Shares {
    first: te::Tensor,
    share: te::Tensor,
}

impl Shares {
    fn of(geometry: &Geometry, filter: &Filter, taps: &PrimExpr, work: DataType) -> Shares {
        let new = geometry.new.clone();
        let first = te::compute("first", [new.clone()], |at| {
            // An index of 32 bits, to which the number of an element can be added.
            let far = f64::from(1 << 30);
            let first = first(&place(&at[0], geometry, filter), geometry, filter);
            prim::cast(DataType::int(32), prim::max(prim::min(first, number(far)), number(-far)))
        });
        // Neighbours along the axis are neighbours in the tables.
        let weights = te::compute("weights", [taps.clone(), new.clone()], |at| {
            let x = place(&at[1], geometry, filter);
            prim::cast(work, weight(&x, &at[0], geometry, filter).1)
        });
        let total = te::compute("total", [new.clone()], |at| {
            let k = te::reduce_axis(taps.clone());
            te::sum(weights.at(&[k.var(), at[0].clone()]), [&k])
        });
        let share = te::compute("share", [taps.clone(), new], |at| prim::div(weights.at(at), total.at(&at[1..])));
        Shares { first, share }
    }

    fn element(&self, o: &PrimExpr, tap: &PrimExpr) -> PrimExpr {
        prim::cast(DataType::int(64), self.first.at(std::slice::from_ref(o))) + tap.clone()
    }

    fn share(&self, o: &PrimExpr, tap: &PrimExpr) -> PrimExpr {
        self.share.at(&[tap.clone(), o.clone()])
    }
}

/// How many elements have weight.
fn taps(
    scope: &mut Scope,
    args: &Args,
    geometry: &impl Fn(&[te::Tensor]) -> Geometry,
    filter: &Filter,
) -> Result<PrimExpr> {
    let width = if filter.mode == "cubic" { 2 } else { 1 };
    if !filter.antialias {
        return Ok(prim::int(2 * width));
    }
    let dims = ShapePlan::bind(scope, "resize_taps", args, |inputs| {
        let narrow = prim::min(geometry(inputs).scale, number(1.0));
        let support = prim::math("ceil", prim::div(number(2.0 * width as f64), narrow));
        ShapePlan { dims: vec![prim::max(prim::cast(DataType::int(64), support) + 1, 1)], ..ShapePlan::default() }
    })?;
    dims.into_iter().next().ok_or_else(|| NodeError::invalid("a filter has no width"))
}

/// The place in the input of an element of the result.
fn place(o: &PrimExpr, g: &Geometry, filter: &Filter) -> PrimExpr {
    let (o, old, new) = (real(o.clone()), real(g.old.clone()), real(g.new.clone()));
    let scale = g.scale.clone();
    let half = || prim::div(o.clone() + number(0.5), scale.clone()) - number(0.5);
    let several = prim::gt(&g.new, 1);
    let span = prim::max(new.clone() - number(1.0), number(1.0));
    match filter.coordinates.as_str() {
        "asymmetric" => prim::div(o, scale),
        "align_corners" => prim::select(several, prim::div(o * (old - number(1.0)), span), number(0.0)),
        "pytorch_half_pixel" => prim::select(several, half(), number(0.0)),
        "tf_half_pixel_for_nn" => prim::div(o + number(0.5), scale),
        "half_pixel_symmetric" => {
            let adjustment = prim::div(new, scale.clone() * old.clone());
            old * number(0.5) * (number(1.0) - adjustment) + half()
        }
        "tf_crop_and_resize" => {
            let (start, end) = g.region.clone().unwrap_or_else(|| (number(0.0), number(1.0)));
            let last = old - number(1.0);
            let first = start.clone() * last.clone();
            prim::select(
                several,
                first + prim::div(o * (end.clone() - start.clone()) * last.clone(), span),
                number(0.5) * (start + end) * last,
            )
        }
        _ => half(),
    }
}

fn rounded(x: PrimExpr, rounding: &str) -> PrimExpr {
    match rounding {
        "floor" => prim::math("floor", x),
        "ceil" => prim::math("ceil", x),
        "round_prefer_ceil" => prim::math("floor", x + number(0.5)),
        _ => prim::math("ceil", x - number(0.5)),
    }
}

/// What distances are multiplied by: less than one where the filter is widened.
fn narrowing(g: &Geometry, filter: &Filter) -> PrimExpr {
    if filter.antialias { prim::min(g.scale.clone(), number(1.0)) } else { number(1.0) }
}

/// The first element around a place that may have weight.
fn first(x: &PrimExpr, g: &Geometry, filter: &Filter) -> PrimExpr {
    let width = if filter.mode == "cubic" { 2.0 } else { 1.0 };
    prim::math("floor", x.clone() - prim::div(number(width), narrowing(g, filter))) + number(1.0)
}

/// The `tap`th element around a place, and its weight.
fn weight(x: &PrimExpr, tap: &PrimExpr, g: &Geometry, filter: &Filter) -> (PrimExpr, PrimExpr) {
    let narrow = narrowing(g, filter);
    let k = prim::cast(DataType::int(64), first(x, g, filter)) + tap.clone();
    let distance = prim::math("fabs", (real(k.clone()) - x.clone()) * narrow);
    let weight = if filter.mode == "cubic" {
        cubic(distance, filter.cubic_a)
    } else {
        prim::max(number(1.0) - distance, number(0.0))
    };
    if !filter.exclude_outside {
        return (k, weight);
    }
    let within = prim::and(prim::ge(&k, 0), prim::lt(&k, &g.old));
    (k, prim::select(within, weight, number(0.0)))
}

/// Keys' cubic of a distance.
fn cubic(d: PrimExpr, a: f64) -> PrimExpr {
    let n = number;
    let near = ((n(a + 2.0) * d.clone() - n(a + 3.0)) * d.clone() * d.clone()) + n(1.0);
    let far = ((n(a) * d.clone() - n(5.0 * a)) * d.clone() + n(8.0 * a)) * d.clone() - n(4.0 * a);
    prim::select(prim::le(d.clone(), n(1.0)), near, prim::select(prim::lt(d, n(2.0)), far, n(0.0)))
}

/// A value, or what stands outside of the input where a region reaches there.
fn outside(value: PrimExpr, x: &PrimExpr, g: &Geometry, filter: &Filter) -> PrimExpr {
    if filter.coordinates != "tf_crop_and_resize" {
        return value;
    }
    let last = real(g.old.clone()) - number(1.0);
    let out = prim::or(prim::lt(x.clone(), number(0.0)), prim::gt(x.clone(), last));
    let filler = prim::constant(value.dtype(), filter.extrapolation);
    prim::select(out, filler, value)
}
