//! Layout rules: how a call is executed on tensors whose axes lie in another order than the program says.
//!
//! Most follow their first argument. Where a rule cannot, as for a tensor of unknown rank, the call stays as it is and its
//! arguments are brought back to the program's order. Axes that are split into blocks are followed by what works element by
//! element, joins tensors, or has a layout attribute; and only where dimensions are known to be whole blocks. Convolutions and what else has a layout attribute of its own take the
//! layout that the user wants.

use relaxide_ir::{AttrValue, Attrs, Type};

use super::*;

type PlannedLayout = Result<LayoutPlan, OpError>;

/// Every tensor in one order; what has no rank stays.
fn all_in(ty: &Type, order: &AxisOrder) -> Layout {
    match ty {
        Type::Tensor(t) if t.ndim == order.ndim() as i64 => Layout::Tensor(order.clone()),
        Type::Tuple(t) => Layout::Tuple(t.fields.iter().map(|f| all_in(f, order)).collect()),
        other => Layout::initial(other),
    }
}

/// The first tensor among the arguments, and how it lies; `None` where the rule cannot follow it.
fn leader(cx: &LayoutCx) -> Option<AxisOrder> {
    match cx.args.first()? {
        Layout::Tensor(order) => Some(order.clone()),
        Layout::Tuple(fields) => fields.first().and_then(Layout::order).cloned(),
        Layout::Packed(_) | Layout::Plain => None,
    }
}

/// The plan in which arguments of the leader's rank lie as it does, and so does the result.
fn following(cx: &LayoutCx, order: &AxisOrder, attrs: Attrs) -> PlannedLayout {
    let ty = (cx.call.def.infer)(&cx.call)?;
    let args = cx.call.args.iter().map(|a| all_in(&a.ty(), order)).collect();
    Ok(LayoutPlan { args, result: all_in(&ty, order), attrs, replaced: Vec::new() })
}

/// Where an axis lies, of an attribute that names one; `None` where it is absent.
fn place(cx: &LayoutCx, attr: &str, order: &AxisOrder) -> Result<Option<i64>, OpError> {
    if cx.call.attrs.get(attr).is_none() {
        return Ok(None);
    }
    let axis = cx.call.axis(attr, order.ndim())?;
    Ok(order.place(axis).map(|p| p as i64))
}

/// Axes that an attribute names, as the program counts them, and where they lie.
type AxisPositions = (Vec<usize>, Vec<i64>);

/// Where axes lie, of an attribute that names several; `None` where it is absent.
fn places(cx: &LayoutCx, attr: &str, order: &AxisOrder) -> Result<Option<AxisPositions>, OpError> {
    let axes = match cx.call.attrs.get(attr) {
        None => return Ok(None),
        Some(AttrValue::List(_)) => cx.call.axes(attr, order.ndim())?.unwrap_or_default(),
        Some(_) => vec![cx.call.axis(attr, order.ndim())?],
    };
    let places = axes.iter().filter_map(|a| order.place(*a)).map(|p| p as i64).collect();
    Ok(Some((axes, places)))
}

/// Element by element: the result lies as the argument does. Of several arguments the one of the highest rank leads; one of
/// lower rank is broadcast, which is possible where the axes that it lacks lie in front.
pub fn elementwise(cx: &LayoutCx) -> PlannedLayout {
    if cx.args.iter().any(|layout| matches!(layout, Layout::Packed(_))) {
        return blockwise(cx);
    }
    let mut lead: Option<AxisOrder> = None;
    for (arg, layout) in cx.call.args.iter().zip(cx.args) {
        match (arg.ty(), layout) {
            (Type::Tensor(_), Layout::Tensor(order)) => {
                if lead.as_ref().is_none_or(|l| l.ndim() < order.ndim()) {
                    lead = Some(order.clone());
                }
            }
            (Type::Prim(_), _) => {}
            _ => return cx.unchanged(),
        }
    }
    let Some(order) = lead else { return cx.unchanged() };
    let mut args = Vec::with_capacity(cx.args.len());
    for layout in cx.args {
        match layout.order() {
            None => args.push(Layout::Plain),
            Some(own) => match broadcast_order(&order, own.ndim()) {
                Some(aligned) => args.push(Layout::Tensor(aligned)),
                None => return cx.unchanged(),
            },
        }
    }
    let ty = (cx.call.def.infer)(&cx.call)?;
    Ok(LayoutPlan { args, result: all_in(&ty, &order), attrs: cx.call.attrs.clone(), replaced: Vec::new() })
}

/// Element by element where an axis of an argument is split: the argument with the most splits leads. Others of its rank are
/// split as it is, if all their dimensions are whole blocks; scalars serve any layout.
fn blockwise(cx: &LayoutCx) -> PlannedLayout {
    let packings: Vec<Option<Packing>> = cx.args.iter().map(Layout::packing).collect();
    let lead = packings.iter().flatten().reduce(|lead, p| if p.rank() > lead.rank() { p } else { lead });
    let Some(lead) = lead.cloned() else { return cx.unchanged() };
    let mut args = Vec::with_capacity(cx.args.len());
    for (i, own) in packings.iter().enumerate() {
        match own {
            Some(own) if own.rank() == 0 => args.push(Layout::initial(&cx.call.ty(i)?)),
            Some(own) if *own == lead || cx.packs(i, &lead)? => args.push(lead.clone().into()),
            None if matches!(cx.call.ty(i)?, Type::Prim(_)) => args.push(Layout::Plain),
            _ => return cx.unchanged(),
        }
    }
    let result = all_packed(&(cx.call.def.infer)(&cx.call)?, &lead);
    Ok(LayoutPlan { args, result, attrs: cx.call.attrs.clone(), replaced: Vec::new() })
}

/// Every tensor of a rank as a packing says.
fn all_packed(ty: &Type, packing: &Packing) -> Layout {
    match ty {
        Type::Tensor(t) if t.ndim == packing.ndim() as i64 => packing.clone().into(),
        Type::Tuple(t) => Layout::Tuple(t.fields.iter().map(|f| all_packed(f, packing)).collect()),
        other => Layout::initial(other),
    }
}

/// How a tensor of rank `ndim` lies that is broadcast to one of an order; `None` where it cannot be.
fn broadcast_order(order: &AxisOrder, ndim: usize) -> Option<AxisOrder> {
    let missing = order.ndim().checked_sub(ndim)?;
    let in_front = order.axes().iter().take(missing).all(|a| *a < missing);
    in_front.then(|| order.without(&(0..missing).collect::<Vec<_>>()))
}

/// An operator with one attribute `axis`, which keeps the rank.
pub fn along_axis(cx: &LayoutCx) -> PlannedLayout {
    with_axis(cx, "axis")
}

fn with_axis(cx: &LayoutCx, attr: &str) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    match place(cx, attr, &order)? {
        Some(place) => following(cx, &order, cx.call.attrs.clone().with(attr, place)),
        None => cx.unchanged(),
    }
}

/// A reduction: the axes that stay keep their order.
pub fn reduction(cx: &LayoutCx) -> PlannedLayout {
    if let Some(Layout::Packed(packing)) = cx.args.first() {
        return reduction_of_blocks(cx, packing);
    }
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let keep = cx.call.bool("keepdims")?;
    let Some((axes, places)) = places(cx, "axis", &order)? else {
        let mut plan = following(cx, &order, cx.call.attrs.clone())?;
        if !keep {
            plan.result = Layout::initial(&(cx.call.def.infer)(&cx.call)?);
        }
        return Ok(plan);
    };
    let mut plan = following(cx, &order, cx.call.attrs.clone().with("axis", places))?;
    plan.result = Layout::Tensor(if keep { order } else { order.without(&axes) });
    Ok(plan)
}

/// A reduction where an axis is split: one that goes is reduced over its blocks and inside of them. A split axis that would
/// stay with length one is no whole block.
fn reduction_of_blocks(cx: &LayoutCx, packing: &Packing) -> PlannedLayout {
    let keep = cx.call.bool("keepdims")?;
    let axes = match cx.call.attrs.get("axis") {
        None => (0..packing.ndim()).collect(),
        Some(AttrValue::List(_)) => cx.call.axes("axis", packing.ndim())?.unwrap_or_default(),
        Some(_) => vec![cx.call.axis("axis", packing.ndim())?],
    };
    if keep && axes.iter().any(|a| packing.block(*a).is_some()) {
        return cx.unchanged();
    }
    let mut places: Vec<i64> = axes.iter().flat_map(|a| packing.places_of(*a)).map(|p| p as i64).collect();
    places.sort_unstable();
    let result = if keep { packing.clone() } else { packing.without(&axes) };
    let attrs = cx.call.attrs.clone().with("axis", places);
    Ok(LayoutPlan { args: vec![packing.clone().into()], result: result.into(), attrs, replaced: Vec::new() })
}

/// A normalization over `axes`, of `channel_axis` perhaps: its parameters are small and stay as they are.
pub fn normalization(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let mut attrs = cx.call.attrs.clone();
    if let Some((_, places)) = places(cx, "axes", &order)? {
        attrs = attrs.with("axes", places);
    }
    for attr in ["axis", "channel_axis"] {
        if let Some(place) = place(cx, attr, &order)? {
            attrs = attrs.with(attr, place);
        }
    }
    let mut plan = following(cx, &order, attrs)?;
    for (layout, arg) in plan.args.iter_mut().zip(cx.call.args).skip(1) {
        *layout = Layout::initial(&arg.ty());
    }
    Ok(plan)
}

/// Dimensions of size one come.
pub fn expand_dims(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let count = cx.call.ints("axis")?.len();
    let new = cx.call.axes("axis", order.ndim() + count)?.unwrap_or_default();
    let mut plan = following(cx, &order, cx.call.attrs.clone())?;
    plan.result = Layout::Tensor(order.with_new(&new));
    Ok(plan)
}

/// Dimensions of size one go.
pub fn squeeze(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let gone = match places(cx, "axis", &order)? {
        Some((axes, _)) => axes,
        None => match cx.dims(0)? {
            Some(dims) => (0..dims.len()).filter(|i| dims[*i].is_int(1)).collect(),
            None => return cx.unchanged(),
        },
    };
    let places: Vec<i64> = gone.iter().filter_map(|a| order.place(*a)).map(|p| p as i64).collect();
    let mut plan = following(cx, &order, cx.call.attrs.clone().with("axis", places))?;
    plan.result = Layout::Tensor(order.without(&gone));
    Ok(plan)
}

/// A transpose takes the order in, and gives the program's.
pub fn permute_dims(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let axes = match cx.call.axes("axes", order.ndim())? {
        Some(axes) => axes,
        None => (0..order.ndim()).rev().collect(),
    };
    let places: Vec<i64> = axes.iter().filter_map(|a| order.place(*a)).map(|p| p as i64).collect();
    let mut plan = following(cx, &order, cx.call.attrs.clone().with("axes", places))?;
    plan.result = Layout::Tensor(AxisOrder::identity(order.ndim()));
    Ok(plan)
}

/// Tensors joined along a new dimension, which lies where the program has it.
pub fn stack(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let axis = cx.call.axis("axis", order.ndim() + 1)?;
    let mut plan = following(cx, &order, cx.call.attrs.clone().with("axis", axis as i64))?;
    plan.result = Layout::Tensor(order.with_new(&[axis]));
    Ok(plan)
}

/// A slice names its axes in an argument.
pub fn strided_slice(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let mut places = Vec::new();
    for axis in cx.call.scalars(1)? {
        let Some(axis) = axis.as_int() else { return cx.unchanged() };
        let axis = cx.call.axis_of(axis, order.ndim())?;
        places.extend(order.place(axis).map(|p| Expr::prim(p as i64)));
    }
    let mut plan = following(cx, &order, cx.call.attrs.clone())?;
    plan.replaced.push((1, Expr::tuple(places)));
    Ok(plan)
}

/// A tensor repeated along each dimension.
pub fn tile(cx: &LayoutCx) -> PlannedLayout {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let repeats = cx.call.ints("repeats")?;
    let Some(missing) = order.ndim().checked_sub(repeats.len()) else { return cx.unchanged() };
    let full: Vec<i64> = std::iter::repeat_n(1, missing).chain(repeats).collect();
    following(cx, &order, cx.call.attrs.clone().with("repeats", order.apply(&full)))
}

/// How an argument lies that the user wants or that it has, given the letters of the program's layout.
fn wanted(cx: &LayoutCx, i: usize, letters: &str) -> Result<Option<Packing>, OpError> {
    match cx.desired {
        Some(desired) => {
            let Some(to) = desired.get(i) else { return Ok(None) };
            match Packing::between(letters, to) {
                Some(packing) => Ok(Some(packing)),
                None => cx.call.invalid(format!("the layout {to} is wanted, which is none of the axes of {letters}")),
            }
        }
        None => Ok(cx.args.get(i).and_then(Layout::packing)),
    }
}

/// Whether a name is that of a layout whose axes are whole. What the program itself has split stays as it is.
fn whole(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_uppercase())
}

/// A convolution: image, weight and result in the layouts that the user wants, else as they come. It stays as the program
/// says where what would be split is not known to be whole blocks.
pub fn convolution(cx: &LayoutCx) -> PlannedLayout {
    let (data, kernel) = (cx.call.str("data_layout")?, cx.call.str("kernel_layout")?);
    let out = cx.call.attrs.str("out_layout").filter(|l| !l.is_empty()).unwrap_or(data);
    if ![data, kernel, out].into_iter().all(whole) {
        return cx.unchanged();
    }
    let (Some(image), Some(weight)) = (wanted(cx, 0, data)?, wanted(cx, 1, kernel)?) else { return cx.unchanged() };
    let result = match cx.desired.and_then(|d| d.get(2)) {
        Some(_) => wanted(cx, 2, out)?.unwrap_or_else(|| image.clone()),
        None => image.clone(),
    };
    if !cx.packs(0, &image)? || !cx.packs(1, &weight)? || !cx.result_packs(&result)? {
        return cx.unchanged();
    }
    let attrs = cx.call.attrs.clone().with("data_layout", image.rename(data));
    let attrs = attrs.with("kernel_layout", weight.rename(kernel)).with("out_layout", result.rename(out));
    let args = vec![image.into(), weight.into()];
    Ok(LayoutPlan { args, result: result.into(), attrs, replaced: Vec::new() })
}

/// An operator over an image with an attribute `layout`, and `out_layout` perhaps.
pub fn windowed(cx: &LayoutCx) -> PlannedLayout {
    let letters = cx.call.str("layout")?;
    let out = cx.call.attrs.str("out_layout").filter(|l| !l.is_empty());
    if ![Some(letters), out].into_iter().flatten().all(whole) {
        return cx.unchanged();
    }
    let Some(packing) = wanted(cx, 0, letters)? else { return cx.unchanged() };
    let mut attrs = cx.call.attrs.clone().with("layout", packing.rename(letters));
    if let Some(out) = out {
        attrs = attrs.with("out_layout", packing.rename(out));
    }
    if let Some(order) = packing.order() {
        return following(cx, order, attrs);
    }
    if !cx.packs(0, &packing)? || !cx.result_packs(&packing)? {
        return cx.unchanged();
    }
    let mut plan = cx.unchanged()?;
    if let Some(image) = plan.args.first_mut() {
        *image = packing.clone().into();
    }
    Ok(LayoutPlan { result: packing.into(), attrs, ..plan })
}

/// Tensors joined along an axis: all lie as the first that is split, if all are whole blocks, else as the first.
pub fn concat(cx: &LayoutCx) -> PlannedLayout {
    let Some(Layout::Tuple(fields)) = cx.args.first() else { return along_axis(cx) };
    let Some(packing) = fields.iter().find_map(|f| match f {
        Layout::Packed(packing) => Some(packing.clone()),
        _ => None,
    }) else {
        return along_axis(cx);
    };
    let axis = cx.call.axis("axis", packing.ndim())?;
    let whole = cx.call.tensors(0)?.iter().all(|t| t.dims.as_ref().is_some_and(|dims| packing.pack(dims).is_some()));
    let (true, Some(place)) = (whole, packing.place_of(axis)) else { return concat_whole(cx, fields) };
    let args = vec![Layout::Tuple(vec![packing.clone().into(); fields.len()])];
    let attrs = cx.call.attrs.clone().with("axis", place as i64);
    Ok(LayoutPlan { args, result: packing.into(), attrs, replaced: Vec::new() })
}

/// As [`concat`], where not all are whole blocks: they lie as the first that is not split.
fn concat_whole(cx: &LayoutCx, fields: &[Layout]) -> PlannedLayout {
    let Some(order) = fields.iter().find_map(Layout::order) else { return cx.unchanged() };
    let as_first = [Layout::Tuple(vec![Layout::Tensor(order.clone()); fields.len()])];
    along_axis(&LayoutCx { call: cx.call, desired: cx.desired, args: &as_first })
}

impl LayoutCx<'_> {
    /// Whether argument `i` can lie in some way: what is split is known to be whole blocks.
    fn packs(&self, i: usize, packing: &Packing) -> Result<bool, OpError> {
        Ok(packing.order().is_some() || self.dims(i)?.is_some_and(|dims| packing.pack(&dims).is_some()))
    }

    /// As [`packs`](Self::packs), of the result.
    fn result_packs(&self, packing: &Packing) -> Result<bool, OpError> {
        let ty = (self.call.def.infer)(&self.call)?;
        let dims = ty.as_tensor().and_then(|t| t.shape.as_ref());
        Ok(packing.order().is_some() || dims.is_some_and(|dims| packing.pack(dims).is_some()))
    }
}
