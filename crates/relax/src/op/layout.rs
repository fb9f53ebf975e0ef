//! Layout rules: how a call is carried out on tensors whose axes lie in another order than the program says.
//!
//! Most follow their first argument. Where a rule cannot, as for a tensor of unknown rank, the call stays as it is and its
//! arguments are brought back to the program's order. Convolutions and what else has a layout attribute of its own take the
//! layout that the user wants.

use relaxide_ir::{AttrValue, Attrs, Type};

use super::*;

type Plan = Result<LayoutPlan, OpError>;

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
        Layout::Plain => None,
    }
}

/// The plan in which arguments of the leader's rank lie as it does, and so does the result.
fn following(cx: &LayoutCx, order: &AxisOrder, attrs: Attrs) -> Plan {
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
type Places = (Vec<usize>, Vec<i64>);

/// Where axes lie, of an attribute that names several; `None` where it is absent.
fn places(cx: &LayoutCx, attr: &str, order: &AxisOrder) -> Result<Option<Places>, OpError> {
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
pub fn elementwise(cx: &LayoutCx) -> Plan {
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

/// How a tensor of rank `ndim` lies that is broadcast to one of an order; `None` where it cannot be.
fn broadcast_order(order: &AxisOrder, ndim: usize) -> Option<AxisOrder> {
    let missing = order.ndim().checked_sub(ndim)?;
    let in_front = order.axes().iter().take(missing).all(|a| *a < missing);
    in_front.then(|| order.without(&(0..missing).collect::<Vec<_>>()))
}

/// An operator with one attribute `axis`, which keeps the rank.
pub fn along_axis(cx: &LayoutCx) -> Plan {
    with_axis(cx, "axis")
}

fn with_axis(cx: &LayoutCx, attr: &str) -> Plan {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    match place(cx, attr, &order)? {
        Some(place) => following(cx, &order, cx.call.attrs.clone().with(attr, place)),
        None => cx.unchanged(),
    }
}

/// A reduction: the axes that stay keep their order.
pub fn reduction(cx: &LayoutCx) -> Plan {
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

/// A normalization over `axes`, of `channel_axis` perhaps: its parameters are small and stay as they are.
pub fn normalization(cx: &LayoutCx) -> Plan {
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
pub fn expand_dims(cx: &LayoutCx) -> Plan {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let count = cx.call.ints("axis")?.len();
    let new = cx.call.axes("axis", order.ndim() + count)?.unwrap_or_default();
    let mut plan = following(cx, &order, cx.call.attrs.clone())?;
    plan.result = Layout::Tensor(order.with_new(&new));
    Ok(plan)
}

/// Dimensions of size one go.
pub fn squeeze(cx: &LayoutCx) -> Plan {
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
pub fn permute_dims(cx: &LayoutCx) -> Plan {
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
pub fn stack(cx: &LayoutCx) -> Plan {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let axis = cx.call.axis("axis", order.ndim() + 1)?;
    let mut plan = following(cx, &order, cx.call.attrs.clone().with("axis", axis as i64))?;
    plan.result = Layout::Tensor(order.with_new(&[axis]));
    Ok(plan)
}

/// A slice names its axes in an argument.
pub fn strided_slice(cx: &LayoutCx) -> Plan {
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
pub fn tile(cx: &LayoutCx) -> Plan {
    let Some(order) = leader(cx) else { return cx.unchanged() };
    let repeats = cx.call.ints("repeats")?;
    let Some(missing) = order.ndim().checked_sub(repeats.len()) else { return cx.unchanged() };
    let full: Vec<i64> = std::iter::repeat_n(1, missing).chain(repeats).collect();
    following(cx, &order, cx.call.attrs.clone().with("repeats", order.apply(&full)))
}

/// The order of an argument that the user wants or that it has, given the letters of the program's layout.
fn wanted(cx: &LayoutCx, i: usize, letters: &str) -> Result<Option<AxisOrder>, OpError> {
    match cx.desired {
        Some(desired) => {
            let Some(to) = desired.get(i) else { return Ok(None) };
            match AxisOrder::between(letters, to) {
                Some(order) => Ok(Some(order)),
                None => cx.call.invalid(format!("the layout {to} is wanted, which has not the axes of {letters}")),
            }
        }
        None => Ok(cx.order(i).cloned()),
    }
}

/// A convolution: image, weight and result in the layouts that the user wants, else as they come.
pub fn convolution(cx: &LayoutCx) -> Plan {
    let (data, kernel) = (cx.call.str("data_layout")?, cx.call.str("kernel_layout")?);
    let out = cx.call.attrs.str("out_layout").filter(|l| !l.is_empty()).unwrap_or(data);
    let (Some(image), Some(weight)) = (wanted(cx, 0, data)?, wanted(cx, 1, kernel)?) else { return cx.unchanged() };
    let result = match cx.desired.and_then(|d| d.get(2)) {
        Some(_) => wanted(cx, 2, out)?.unwrap_or_else(|| image.clone()),
        None => image.clone(),
    };
    let attrs = cx.call.attrs.clone().with("data_layout", image.rename(data));
    let attrs = attrs.with("kernel_layout", weight.rename(kernel)).with("out_layout", result.rename(out));
    let args = vec![Layout::Tensor(image), Layout::Tensor(weight)];
    Ok(LayoutPlan { args, result: Layout::Tensor(result), attrs, replaced: Vec::new() })
}

/// An operator over an image with an attribute `layout`, and `out_layout` perhaps.
pub fn windowed(cx: &LayoutCx) -> Plan {
    let letters = cx.call.str("layout")?;
    let Some(order) = wanted(cx, 0, letters)? else { return cx.unchanged() };
    let mut attrs = cx.call.attrs.clone().with("layout", order.rename(letters));
    if let Some(out) = cx.call.attrs.str("out_layout").filter(|l| !l.is_empty()) {
        attrs = attrs.with("out_layout", order.rename(out));
    }
    following(cx, &order, attrs)
}
