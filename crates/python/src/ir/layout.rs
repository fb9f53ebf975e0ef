//! Layouts over threads and memory to Python.

use relaxide::ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, Function, Map, Object, Ref, type_attr};
use relaxide::ir::layout::apply::Places;
use relaxide::ir::layout::group::{group, group_by_many};
use relaxide::ir::layout::slice::DimSlice;
use relaxide::ir::layout::{
    Axis, ComposeLayout, Counting, ExecScope, Iter, Layout, LayoutError, Offsets, ScopeBinding, ScopeIdDef, ScopeKind,
    TileLayout,
};
use relaxide::ir::prim::{self, PrimExpr};

use relaxide::tir::tile::{LambdaExpr, ScopeIdDefStmt, TilePrimitiveCall};

use super::args::prim_expr;
use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("tirx.AxisGet", |args| Ok(Axis::get(&args.get::<String>(0)?).into())),
    ("tirx.AxisIsThreadAxis", |args| Ok(axis(args)?.is_thread().into())),
    ("tirx.AxisIsMemoryAxis", |args| Ok(axis(args)?.is_memory().into())),
    ("tirx.AxisGetScope", |args| Ok(scope(axis(args)?.scope()))),
    ("tirx.AxisGetSubscope", |args| Ok(scope(axis(args)?.subscope()))),
    ("tirx.ExecScope", |args| {
        let kind = told(ScopeKind::from_name(&args.get::<String>(0)?))?;
        Ok(Ref::new(ExecScope { kind }).into())
    }),
    ("tirx.ScopeIdDef", |args| {
        let binding = told(ScopeBinding::between(&args.get::<String>(2)?, &args.get::<String>(3)?))?;
        let preferred = if args.absent(4) { None } else { Some(indices(args, 4)?) };
        let extents = if args.absent(1) { None } else { Some(indices(args, 1)?) };
        Ok(Ref::new(told(ScopeIdDef::new(args.get(0)?, extents, binding, preferred))?).into())
    }),
    ("tirx.ScopeBinding", |args| {
        Ok((told(ScopeBinding::between(&args.get::<String>(0)?, &args.get::<String>(1)?))? as i64).into())
    }),
    ("tirx.ScopeIdDefStmt", |args| Ok(Ref::new(ScopeIdDefStmt { def: args.get(0)? }).into())),
    ("tirx.LambdaExpr", |args| Ok(Ref::new(LambdaExpr { vars: args.get(0)?, pred: args.prim(1)? }).into())),
    ("tirx.LambdaExprApply", |args| {
        let lambda: Ref<LambdaExpr> = args.get(0)?;
        lambda
            .apply(&indices(args, 1)?)
            .map(Any::from)
            .ok_or_else(|| Error::new(ErrorKind::ValueError, format!("{} indices are expected", lambda.vars.len())))
    }),
    ("tirx.TilePrimitiveCall", |args| {
        let given: Array = args.get(1)?;
        Ok(Ref::new(TilePrimitiveCall {
            op: args.get(0)?,
            args: given.iter().cloned().collect(),
            workspace: args.optional(2)?.unwrap_or_default(),
            config: args.attrs(3)?,
            dispatch: args.optional(4)?,
            scope: args.get(5)?,
        })
        .into())
    }),
    ("tirx.Iter", |args| {
        let (extent, stride) = (index(args.values[0])?, index(args.values[1])?);
        Ok(Iter::new(extent, stride, &args.get(2)?).into())
    }),
    ("tirx.TileLayout", |args| {
        let offsets = match args.optional::<Map>(2)? {
            Some(map) => map
                .iter()
                .map(|(axis, value)| Ok((axis.to()?, index(value.as_view())?)))
                .collect::<Result<Offsets, Error>>()?,
            None => Offsets::new(),
        };
        Ok(Ref::new(TileLayout::new(args.get(0)?, args.get(1)?, offsets)).into())
    }),
    ("tirx.TileLayoutCompact", |args| Ok(Ref::new(TileLayout::compact(&indices(args, 0)?)).into())),
    ("tirx.ComposeLayout", |args| {
        let made = ComposeLayout::new(args.get(0)?, args.get(1)?, args.get(2)?, args.get(3)?, args.get(4)?);
        Ok(Ref::new(told(made)?).into())
    }),
    ("tirx.LayoutText", |args| Ok(layout(args, 0)?.to_string().into())),
    ("tirx.LayoutVerifyWellFormed", |args| told(layout(args, 0)?.check_scopes()).map(|()| true.into())),
    ("tirx.LayoutGetSize", |args| Ok(told(layout(args, 0)?.size(args.optional::<String>(1)?.as_deref()))?.into())),
    ("tirx.LayoutGetSpan", |args| Ok(told(layout(args, 0)?.span(args.optional::<String>(1)?.as_deref()))?.into())),
    ("tirx.LayoutApplyLinear", |args| Ok(places(told(layout(args, 0)?.apply_flat(&index(args.values[1])?))?))),
    ("tirx.LayoutApply", |args| Ok(places(told(layout(args, 0)?.apply(&indices(args, 1)?))?))),
    ("tirx.LayoutApplyWithShape", |args| {
        Ok(places(told(layout(args, 0)?.apply_over(&indices(args, 1)?, &indices(args, 2)?))?))
    }),
    ("tirx.LayoutCanonicalize", |args| Ok(told(layout(args, 0)?.canonical(counting(args, 1)?))?.into())),
    ("tirx.LayoutTile", |args| {
        let (outer, shapes, counting) = (args.get::<Ref<TileLayout>>(1)?, shapes(args)?, counting(args, 4)?);
        Ok(told(layout(args, 0)?.tiled(&outer, &shapes.first, &shapes.second, counting))?.into())
    }),
    ("tirx.LayoutDirectSum", |args| {
        let (left, shapes, counting) = (args.get::<Ref<TileLayout>>(1)?, shapes(args)?, counting(args, 4)?);
        Ok(told(layout(args, 0)?.direct_sum(&left, &shapes.first, &shapes.second, counting))?.into())
    }),
    ("tirx.LayoutIsTileInner", |args| {
        let (whole, shapes, counting) = (layout(args, 1)?, shapes(args)?, counting(args, 4)?);
        Ok(told(layout(args, 0)?.outer_of(&whole, &shapes.first, &shapes.second, counting))?.map(Ref::new).into())
    }),
    ("tirx.LayoutIsTileOuter", |args| {
        let (whole, shapes, counting) = (layout(args, 1)?, shapes(args)?, counting(args, 4)?);
        Ok(told(layout(args, 0)?.inner_of(&whole, &shapes.first, &shapes.second, counting))?.into())
    }),
    ("tirx.LayoutIsDirectSumRight", |args| {
        let (whole, shapes, counting) = (layout(args, 1)?, shapes(args)?, counting(args, 4)?);
        Ok(told(layout(args, 0)?.left_of_sum(&whole, &shapes.first, &shapes.second, counting))?.map(Ref::new).into())
    }),
    ("tirx.LayoutIsDirectSumLeft", |args| {
        let (whole, shapes, counting) = (layout(args, 1)?, shapes(args)?, counting(args, 4)?);
        Ok(told(layout(args, 0)?.right_of_sum(&whole, &shapes.first, &shapes.second, counting))?.map(Ref::new).into())
    }),
    ("tirx.LayoutSlice", |args| {
        let shapes = shapes(args)?;
        let region: Vec<DimSlice> = shapes
            .first
            .iter()
            .zip(&shapes.second)
            .map(|(begin, extent)| DimSlice { begin: begin.clone(), extent: extent.clone() })
            .collect();
        Ok(told(layout(args, 0)?.slice(&indices(args, 1)?, &region, counting(args, 4)?))?.into())
    }),
    ("tirx.TileLayoutIsTrivial", |args| {
        Ok(told(args.get::<Ref<TileLayout>>(0)?.canonical(Counting::Unknown))?.is_trivial().into())
    }),
    ("tirx.TileLayoutIsTrainium", |args| Ok(args.get::<Ref<TileLayout>>(0)?.is_trainium().into())),
    ("tirx.TileLayoutGetScope", |args| {
        let Some(scopes) = told(args.get::<Ref<TileLayout>>(0)?.scopes())? else { return Ok(Any::none()) };
        let pair: Array = [scope(Some(scopes.inner)), scope(Some(scopes.outer))].into_iter().collect();
        Ok(pair.into())
    }),
    ("tirx.TileLayoutGroup", |args| {
        let grouped = told(group(&*args.get::<Ref<TileLayout>>(0)?, &indices(args, 1)?))?;
        Ok(pair(Ref::new(grouped.layout).into(), numbers(&grouped.separators)))
    }),
    ("tirx.TileLayoutGroupMany", |args| {
        let shapes: Array = args.get(1)?;
        let shapes = shapes.iter().map(|shape| list(shape.as_view())).collect::<Result<Vec<_>, _>>()?;
        let grouped = told(group_by_many(&*args.get::<Ref<TileLayout>>(0)?, &shapes))?;
        let separators: Array = grouped.separators.iter().map(|one| numbers(one)).collect();
        Ok(pair(Ref::new(grouped.layout).into(), separators.into()))
    }),
];

pub(super) fn enter() {
    Axis::type_index();
    Iter::type_index();
    TileLayout::type_index();
    ComposeLayout::type_index();
    ExecScope::type_index();
    ScopeIdDef::type_index();
    ScopeIdDefStmt::type_index();
    LambdaExpr::type_index();
    TilePrimitiveCall::type_index();
}

/// Axes are their names in JSON graphs, as TVM writes them: maps find those of the table by their address.
pub(super) fn enter_json() -> Result<(), Error> {
    let write = |axis: Ref<Axis>| Ok::<_, Error>(axis.name.clone());
    let read = |name: String| Ok::<_, Error>(Axis::get(&name));
    let index = Axis::type_index();
    type_attr::set(type_attr::Attr::DataToJson.name(), index, Function::typed(write).into())?;
    type_attr::set(type_attr::Attr::DataFromJson.name(), index, Function::typed(read).into())
}

fn told<T>(result: Result<T, LayoutError>) -> Result<T, Error> {
    result.map_err(|why| Error::new("LayoutError", why.to_string()))
}

fn axis(args: &Args<'_>) -> Result<Ref<Axis>, Error> {
    args.get(0)
}

fn layout(args: &Args<'_>, at: usize) -> Result<Layout, Error> {
    args.get(at)
}

fn scope(kind: Option<ScopeKind>) -> Any {
    kind.map(|kind| Ref::new(ExecScope { kind })).into()
}

/// Whether the target in whose scope Python calls counts threads by warps.
fn counting(args: &Args<'_>, at: usize) -> Result<Counting, Error> {
    Ok(if args.get(at)? { Counting::Warps } else { Counting::Unknown })
}

/// Shapes, or the ends of a region, as the third and the fourth argument.
struct Shapes {
    first: Vec<PrimExpr>,
    second: Vec<PrimExpr>,
}

fn shapes(args: &Args<'_>) -> Result<Shapes, Error> {
    Ok(Shapes { first: indices(args, 2)?, second: indices(args, 3)? })
}

/// A scalar; plain numbers are 32-bit integers, as in kernels.
fn index(value: AnyView<'_>) -> Result<PrimExpr, Error> {
    match value.to::<i64>() {
        Ok(number) if !value.type_key().contains("bool") => {
            let narrow = prim::holds(DataType::int(32), number);
            Ok(prim::int_of(DataType::int(if narrow { 32 } else { 64 }), number))
        }
        _ => prim_expr(value),
    }
}

fn list(value: AnyView<'_>) -> Result<Vec<PrimExpr>, Error> {
    let items: Array = value.to()?;
    items.iter().map(|item| index(item.as_view())).collect()
}

fn indices(args: &Args<'_>, at: usize) -> Result<Vec<PrimExpr>, Error> {
    list(args.values.get(at).copied().unwrap_or_default())
}

fn places(places: Places) -> Any {
    places.into_iter().map(|(axis, value)| (axis.name.clone(), value)).collect::<Map>().into()
}

fn numbers(numbers: &[usize]) -> Any {
    numbers.iter().map(|number| Any::from(*number as i64)).collect::<Array>().into()
}

fn pair(a: Any, b: Any) -> Any {
    [a, b].into_iter().collect::<Array>().into()
}
