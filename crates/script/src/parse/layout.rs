//! Layouts: `T.TileLayout(T.S[(8, 4):(4 @ Axis.laneid, 1)] + T.R[2:1 @ Axis.warpid] + 16)`, `T.ComposeLayout(3, 3, 3, tile)`.

use relaxide_ffi::{Any, Ref};
use relaxide_ir::diagnostic::Code;
use relaxide_ir::layout::{Axis, ComposeLayout, Iter, Layout, Offsets, Placement, TileLayout};
use relaxide_ir::prim::{self, PrimExpr};
use ruff_python_ast::{self as ast, Expr, Operator};
use ruff_text_size::Ranged;

use super::args::Args;
use super::value::Value;
use super::{Parsed, Parser};

/// What a layout is made of, while it is being read.
#[derive(Default)]
struct Spec {
    shard: Vec<Ref<Iter>>,
    replica: Vec<Ref<Iter>>,
    offsets: Offsets,
}

impl Parser<'_> {
    /// What a buffer of a shape says of its layout: `None`, `"default"` or a layout.
    pub(super) fn placement(&mut self, e: Option<&Expr>, shape: &[PrimExpr]) -> Parsed<Placement> {
        let Some(e) = e else { return Ok(Placement::Strided) };
        match self.expr(e)? {
            Value::None => Ok(Placement::Unsaid),
            Value::Str(text) if text == "default" => Ok(Placement::Strided),
            Value::Str(text) if !text.is_empty() && text.chars().all(|letter| matches!(letter, 'P' | 'F')) => {
                let layout = over_partitions(&text, shape).ok_or_else(|| {
                    let message = format!(
                        "\"{text}\" does not fit the {} dimensions: there is a letter for each, P over partitions and F within \
                         one, and P is over {PARTITIONS} partitions at most, or one dimension of whole rounds over them",
                        shape.len()
                    );
                    self.error(Code::Type, message, e.range())
                })?;
                Ok(Placement::by(Layout::from(layout), shape))
            }
            value => Ok(Placement::by(self.layout(&value, e)?, shape)),
        }
    }

    /// A value as a layout.
    fn layout(&self, value: &Value, e: &Expr) -> Parsed<Layout> {
        let layout = match value {
            Value::Host(value) => value.to::<Layout>().ok(),
            Value::Object(object) => Layout::try_from(object.clone()).ok(),
            _ => None,
        };
        layout.ok_or_else(|| {
            let message = format!("a layout is expected, not {}", value.describe());
            let help = "write T.TileLayout(T.S[extents:strides]), T.ComposeLayout(...), None or \"default\"";
            self.error(Code::Type, message, e.range()).with_help(help).into()
        })
    }

    /// `T.TileLayout(…)`, `T.ComposeLayout(…)`; nothing where the call is of something else.
    pub(super) fn layout_call(&mut self, name: &str, call: &ast::ExprCall) -> Parsed<Option<Value>> {
        let mut args = Args::of(self, &format!("T.{name}"), call)?;
        let layout: Layout = match name {
            "TileLayout" => {
                let e = args.required(self, "spec")?;
                if self.host.is_some() && !self.is_spec(e) {
                    // A specification that Python has under a name.
                    return Ok(Some(Value::Host(self.ask(&Expr::Call(call.clone()))?)));
                }
                let mut spec = Spec::default();
                self.spec(e, &mut spec)?;
                TileLayout::new(spec.shard, spec.replica, spec.offsets).into()
            }
            "ComposeLayout" => {
                let mut number = |p: &mut Self, name: &str| {
                    let e = args.required(p, name)?;
                    p.int(e)
                };
                let (per_element, swizzle_len) = (number(self, "per_element")?, number(self, "swizzle_len")?);
                let atom_len = number(self, "atom_len")?;
                let e = args.required(self, "tile_layout")?;
                let value = self.expr(e)?;
                let Layout::Tile(tile) = self.layout(&value, e)? else {
                    return Err(self.error(Code::Type, "a tile layout is expected", e.range()));
                };
                let inner = args.take("swizzle_inner").map_or(Ok(true), |e| self.bool(e))?;
                let made = ComposeLayout::new(per_element, swizzle_len, atom_len, tile, inner);
                made.map_err(|why| self.error(Code::Type, why.to_string(), call.range()))?.into()
            }
            _ => return Ok(None),
        };
        args.finish(self)?;
        Ok(Some(Value::Host(layout.into())))
    }

    /// Whether an expression begins with `T.S[…]` or `T.R[…]`.
    fn is_spec(&self, e: &Expr) -> bool {
        match e {
            Expr::BinOp(sum) if sum.op == Operator::Add => self.is_spec(&sum.left) || self.is_spec(&sum.right),
            Expr::Subscript(subscript) => self.part(&subscript.value).is_some(),
            _ => false,
        }
    }

    /// `"S"` or `"R"`.
    fn part(&self, e: &Expr) -> Option<&'static str> {
        let path = self.path(e);
        match (path.as_deref(), e) {
            (Some("T.S"), _) => Some("S"),
            (Some("T.R"), _) => Some("R"),
            (_, Expr::Name(name)) if self.lookup(&name.id).is_none() => {
                ["S", "R"].into_iter().find(|part| *part == name.id.as_str())
            }
            _ => None,
        }
    }

    fn spec(&mut self, e: &Expr, spec: &mut Spec) -> Parsed<()> {
        match e {
            Expr::BinOp(sum) if sum.op == Operator::Add && (self.is_spec(e) || is_on_axis(e)) => {
                self.spec(&sum.left, spec)?;
                self.spec(&sum.right, spec)
            }
            Expr::Subscript(subscript) => match self.part(&subscript.value) {
                Some(part) => {
                    let iters = self.iterators(&subscript.slice)?;
                    if part == "S" {
                        spec.shard = iters
                    } else {
                        spec.replica = iters
                    }
                    Ok(())
                }
                None => self.offset_term(e, spec),
            },
            _ => self.offset_term(e, spec),
        }
    }

    fn offset_term(&mut self, e: &Expr, spec: &mut Spec) -> Parsed<()> {
        let (value, axis) = self.on_axis(e)?;
        spec.offsets.push((axis, value));
        Ok(())
    }

    /// `extents:strides`, or extents alone.
    fn iterators(&mut self, e: &Expr) -> Parsed<Vec<Ref<Iter>>> {
        let Expr::Slice(slice) = e else {
            let extents = self.layout_dims(e)?;
            return Ok(TileLayout::compact(&extents).shard);
        };
        let (Some(extents), Some(strides), None) = (&slice.lower, &slice.upper, &slice.step) else {
            return Err(self.error(
                Code::Arguments,
                "extents and strides are expected, as in T.S[(8, 4):(4, 1)]",
                e.range(),
            ));
        };
        let extents = self.layout_dims(extents)?;
        let steps = match &**strides {
            Expr::Tuple(tuple) => tuple.elts.iter().map(|e| self.on_axis(e)).collect::<Parsed<Vec<_>>>()?,
            Expr::List(list) => list.elts.iter().map(|e| self.on_axis(e)).collect::<Parsed<Vec<_>>>()?,
            one => vec![self.on_axis(one)?],
        };
        if extents.len() != steps.len() {
            let message =
                format!("{} extents and {} strides: there is a stride for each extent", extents.len(), steps.len());
            return Err(self.error(Code::Arguments, message, e.range()));
        }
        Ok(extents.into_iter().zip(steps).map(|(extent, (stride, axis))| Iter::new(extent, stride, &axis)).collect())
    }

    fn layout_dims(&mut self, e: &Expr) -> Parsed<Vec<PrimExpr>> {
        let parts: &[Expr] = match e {
            Expr::Tuple(tuple) => &tuple.elts,
            Expr::List(list) => &list.elts,
            one => std::slice::from_ref(one),
        };
        parts.iter().map(|part| self.scalar_expr(part)).collect()
    }

    /// `value @ axis`; a value alone is along `m`, the name of an axis alone is one step along it.
    fn on_axis(&mut self, e: &Expr) -> Parsed<(PrimExpr, Ref<Axis>)> {
        match e {
            Expr::BinOp(term) if term.op == Operator::MatMult => {
                Ok((self.scalar_expr(&term.left)?, self.axis_of_layout(&term.right)?))
            }
            Expr::StringLiteral(_) => Ok((prim::int_of(relaxide_ffi::DataType::int(32), 1), self.axis_of_layout(e)?)),
            Expr::Tuple(pair) if pair.elts.len() == 2 => {
                Ok((self.scalar_expr(&pair.elts[0])?, self.axis_of_layout(&pair.elts[1])?))
            }
            _ => Ok((self.scalar_expr(e)?, Axis::memory())),
        }
    }

    fn axis_of_layout(&mut self, e: &Expr) -> Parsed<Ref<Axis>> {
        if let Expr::Attribute(attr) = e
            && matches!(&*attr.value, Expr::Name(name) if name.id.as_str() == "Axis")
        {
            return Ok(Axis::get(attr.attr.as_str()));
        }
        let value = self.expr(e)?;
        let axis = match &value {
            Value::Str(name) => Some(Axis::get(name)),
            Value::Host(value) => value.to::<Ref<Axis>>().ok(),
            Value::Object(object) => Any::from(object.clone()).to::<Ref<Axis>>().ok(),
            _ => None,
        };
        axis.ok_or_else(|| {
            self.error(Code::Type, format!("an axis is expected, not {}", value.describe()), e.range())
                .with_help("write Axis.laneid, or the axis's name in quotes")
                .into()
        })
    }
}

/// Whether a sum has a term along an axis.
fn is_on_axis(e: &Expr) -> bool {
    match e {
        Expr::BinOp(sum) if sum.op == Operator::Add => is_on_axis(&sum.left) || is_on_axis(&sum.right),
        Expr::BinOp(term) => term.op == Operator::MatMult,
        _ => false,
    }
}

/// How many partitions a memory has whose layout is said by letters.
const PARTITIONS: i64 = 128;

/// The layout that a letter for each dimension says: P runs over the partitions of a memory, F within each. A dimension of several
/// rounds over the partitions has the largest step within them.
fn over_partitions(letters: &str, shape: &[PrimExpr]) -> Option<TileLayout> {
    let dims: Vec<(char, i64)> =
        letters.chars().zip(shape).map(|(letter, dim)| Some((letter, dim.as_int()?))).collect::<Option<_>>()?;
    if dims.len() != shape.len() || letters.len() != shape.len() {
        return None;
    }
    let of = |wanted: char| dims.iter().filter(move |(letter, _)| *letter == wanted).map(|(_, dim)| *dim);
    let mut over: Vec<i64> = of('P').collect();
    let rounds = match over.as_slice() {
        [dim] if *dim > PARTITIONS && dim % PARTITIONS == 0 => Some(dim / PARTITIONS),
        dims if dims.iter().product::<i64>() <= PARTITIONS => None,
        _ => return None,
    };
    let within: Vec<i64> = rounds.into_iter().chain(of('F')).collect();
    if rounds.is_some() {
        over = vec![PARTITIONS];
    }
    let (mut over_steps, mut within_steps) = (row_major(&over).into_iter(), row_major(&within).into_iter());
    let round_step = rounds.and_then(|_| within_steps.next());
    let mut shard = Vec::with_capacity(dims.len() + 1);
    for ((letter, dim), extent) in dims.iter().zip(shape) {
        let number = |value: i64| prim::int_of(extent.dtype(), value);
        let step = if *letter == 'P' { over_steps.next()? } else { within_steps.next()? };
        let mut dim = *dim;
        if let (Some(rounds), Some(round_step), 'P') = (rounds, round_step, *letter) {
            shard.push(Iter::new(number(rounds), number(round_step), &Axis::get("F")));
            dim = PARTITIONS;
        }
        shard.push(Iter::new(number(dim), number(step), &Axis::get(&letter.to_string())));
    }
    Some(TileLayout::new(shard, Vec::new(), Offsets::default()))
}

/// The steps of dimensions row by row.
fn row_major(dims: &[i64]) -> Vec<i64> {
    let mut steps = vec![1; dims.len()];
    for at in (1..dims.len()).rev() {
        steps[at - 1] = steps[at] * dims[at];
    }
    steps
}
