//! Programs of tiles: scope ids, and operations of several threads on tiles.

use relaxide_ffi::{Any, Array, DataType, Ref};
use relaxide_ir::diagnostic::Code;
use relaxide_ir::layout::{ExecScope, ScopeBinding, ScopeIdDef, ScopeKind, check_scope_ids};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, Var};
use relaxide_tir::Range;
use relaxide_tir::tile::{
    Default as Given, Kind, LambdaExpr, Parameter, SCOPE_NAMES, ScopeIdDefStmt, TILE_PREFIX, TilePrimitiveCall,
    primitive,
};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use super::args::Args;
use super::value::Value;
use super::{Parsed, Parser};

/// What defines scope ids, and between which scopes.
const SCOPE_IDS: [(&str, ScopeBinding); 10] = [
    ("cluster_id", ScopeBinding::KernelCluster),
    ("cta_id", ScopeBinding::KernelCta),
    ("cta_id_in_cluster", ScopeBinding::ClusterCta),
    ("cta_id_in_pair", ScopeBinding::ClusterCtaPair),
    ("warpgroup_id", ScopeBinding::CtaWarpgroup),
    ("warp_id", ScopeBinding::CtaWarp),
    ("warp_id_in_wg", ScopeBinding::WarpgroupWarp),
    ("lane_id", ScopeBinding::WarpThread),
    ("thread_id", ScopeBinding::CtaThread),
    ("thread_id_in_wg", ScopeBinding::WarpgroupThread),
];

/// The name of the function that defines scope ids.
pub(crate) fn scope_id_function(binding: ScopeBinding) -> &'static str {
    SCOPE_IDS.iter().find(|(_, known)| *known == binding).map_or("scope_id", |(name, _)| name)
}

/// Numbers for the names that stand to the left of an assignment, or for none.
const UNNAMED: &str = "v";

impl Parser<'_> {
    /// `bx, by = T.cta_id([4, 2])`: whether the function defines scope ids.
    pub(super) fn scope_ids(&mut self, names: &[&ast::ExprName], function: &str, call: &ast::ExprCall) -> Parsed<bool> {
        let known = SCOPE_IDS.iter().find(|(name, _)| *name == function).map(|(_, binding)| *binding);
        if known.is_none() && function != "scope_id" {
            return Ok(false);
        }
        let mut args = Args::of(self, &format!("T.{function}"), call)?;
        let is_pair = known == Some(ScopeBinding::ClusterCtaPair);
        let extents = if is_pair { None } else { self.extents(args.take("extents"))? };
        let binding = match known {
            Some(binding) => binding,
            None => {
                let mut scope = |p: &mut Self, name: &str| {
                    let e = args.required(p, name)?;
                    p.text(e)
                };
                let (parent, cur) = (scope(self, "parent")?, scope(self, "cur")?);
                self.told(ScopeBinding::between(&parent, &cur), call)?
            }
        };
        let preferred = self.extents(args.keyword("preferred"))?;
        let dtype = args.take("dtype").map_or(Ok(DataType::int(32)), |e| self.counter_dtype(e))?;
        args.finish(self)?;
        let count = extents.as_ref().map_or(1, Vec::len);
        if !names.is_empty() && names.len() != count {
            let message = format!("{count} scope ids are defined, and there are {} names", names.len());
            return Err(self.error(Code::Arguments, message, call.range()));
        }
        let name = |at: usize| names.get(at).map_or(UNNAMED, |name| name.id.as_str());
        let vars: Vec<Ref<Var>> = (0..count).map(|at| Var::prim(name(at), dtype)).collect();
        let extents = if is_pair { Some(vec![prim::int_of(dtype, 2)]) } else { extents };
        let def = Ref::new(self.told(ScopeIdDef::new(vars.clone(), extents, binding, preferred), call)?);
        self.kernel.scope_ids.push(def.clone());
        if !self.kernel.is_unchecked {
            self.told(check_scope_ids(&self.kernel.scope_ids), call)?;
        }
        self.push(Ref::new(ScopeIdDefStmt { def }));
        for (name, var) in names.iter().zip(vars) {
            self.define(name.id.as_str(), Value::Prim(PrimExpr::Var(var)));
        }
        Ok(true)
    }

    fn told<T>(&self, result: Result<T, relaxide_ir::layout::LayoutError>, call: &ast::ExprCall) -> Parsed<T> {
        result.map_err(|why| self.error(Code::Arguments, why.to_string(), call.range()))
    }

    fn extents(&mut self, e: Option<&Expr>) -> Parsed<Option<Vec<PrimExpr>>> {
        match e {
            None | Some(Expr::NoneLiteral(_)) => Ok(None),
            Some(e) => self.dims(e).map(Some),
        }
    }

    /// `T.cta.copy(dst, src)`, `T.tile.copy(dst, src)`: whether the function is a tile primitive.
    pub(super) fn tile_call(&mut self, function: &str, call: &ast::ExprCall) -> Parsed<bool> {
        let Some((kind, name)) = scope_and_name(function) else { return Ok(false) };
        let Some(of) = primitive(name) else {
            let message = format!("`{name}` is no tile primitive");
            return Err(self.error(Code::Unsupported, message, call.range()));
        };
        let mut args = Args::of(self, &format!("T.{function}"), call)?;
        let mut values: Vec<Any> = Vec::with_capacity(of.parameters.len());
        for parameter in of.parameters {
            let value = match args.take(parameter.name) {
                Some(e) => self.tile_argument(parameter, e)?,
                None => self.absent_argument(parameter, &values, call)?,
            };
            values.push(value);
        }
        let dispatch = match args.keyword("dispatch") {
            None | Some(Expr::NoneLiteral(_)) => None,
            Some(e) => Some(self.text(e)?),
        };
        let mut workspace = indexmap::IndexMap::new();
        if let Some(e) = args.keyword("workspace") {
            let Value::Map(items) = self.expr(e)? else {
                return Err(self.error(Code::Type, "a dictionary of buffers is expected", e.range()));
            };
            for (what, item) in items {
                let Value::Buffer(buffer) = item else {
                    return Err(self.error(Code::Type, format!("`{what}` is no buffer"), e.range()));
                };
                workspace.insert(what, buffer);
            }
        }
        let mut config = Attrs::new();
        for (name, e) in args.rest_keywords() {
            config = config.with(name, self.config_value(e)?);
        }
        args.finish(self)?;
        let (op, scope) = (format!("{TILE_PREFIX}{name}"), Ref::new(ExecScope { kind }));
        self.push(Ref::new(TilePrimitiveCall { op, args: values, workspace, config, dispatch, scope }));
        Ok(true)
    }

    pub(super) fn config_value(&mut self, e: &Expr) -> Parsed<AttrValue> {
        match self.expr(e)? {
            Value::Buffer(buffer) => Ok(AttrValue::Object(buffer.into())),
            value => value
                .into_attr()
                .map_err(|value| self.error(Code::Type, format!("{} is no option", value.describe()), e.range())),
        }
    }

    fn absent_argument(&self, parameter: &Parameter, before: &[Any], call: &ast::ExprCall) -> Parsed<Any> {
        Ok(match parameter.default {
            Given::Required => {
                return Err(self.error(Code::Arguments, format!("`{}` is missing", parameter.name), call.range()));
            }
            Given::Absent => Any::none(),
            Given::First => before.first().cloned().unwrap_or_default(),
            Given::No => prim::boolean(false).into(),
            Given::LastAxis => std::iter::once(Any::from(-1i64)).collect::<Array>().into(),
            Given::Number(value) => prim::float_of(DataType::float(32), value).into(),
        })
    }

    fn tile_argument(&mut self, parameter: &Parameter, e: &Expr) -> Parsed<Any> {
        let range = e.range();
        if parameter.kind == Kind::Lambda {
            return self.lambda(e);
        }
        if let (Expr::NoneLiteral(_), Given::Absent | Given::First) = (e, parameter.default) {
            return Ok(Any::none());
        }
        let value = match (parameter.kind, e) {
            (Kind::Region | Kind::Operand, Expr::Subscript(subscript)) => self.leading_subscript(subscript)?,
            _ => self.expr(e)?,
        };
        match (parameter.kind, value) {
            (Kind::Region, value) => self.as_region(value, range).map(Any::from),
            (Kind::Operand, value @ (Value::Buffer(_) | Value::Region(..))) => {
                self.as_region(value, range).map(Any::from)
            }
            (Kind::Axes, Value::List(items) | Value::Tuple(items)) => {
                let axes = items.iter().map(|item| self.axis_number(item, e)).collect::<Parsed<Vec<_>>>()?;
                Ok(axes.into_iter().map(Any::from).collect::<Array>().into())
            }
            (Kind::Axes, value) => {
                let axis = self.axis_number(&value, e)?;
                Ok(std::iter::once(Any::from(axis)).collect::<Array>().into())
            }
            (Kind::Primitive, Value::Str(name)) => match primitive(&name) {
                Some(of) => Ok(format!("{TILE_PREFIX}{}", of.name).into()),
                None => Err(self.error(Code::Type, format!("`{name}` is no tile primitive"), range)),
            },
            (Kind::Flag, Value::Bool(flag)) => Ok(prim::boolean(flag).into()),
            (Kind::Scalar | Kind::Operand, Value::Float(number)) => {
                Ok(prim::float_of(DataType::float(32), number).into())
            }
            (_, value) => self.scalar(&value, range).map(Any::from),
        }
    }

    /// A subscript that may leave out the last dimensions of a buffer, which are meant whole then.
    fn leading_subscript(&mut self, subscript: &ast::ExprSubscript) -> Parsed<Value> {
        let said = match &*subscript.slice {
            Expr::Tuple(tuple) => tuple.elts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let lists = said.iter().any(|e| e.is_starred_expr() || e.is_name_expr());
        let buffer = match self.is_buffer(&subscript.value) && !lists {
            true => self.expr(&subscript.value)?,
            false => Value::None,
        };
        let Value::Buffer(buffer) = buffer else { return self.subscript(subscript) };
        if said.len() >= buffer.shape.len() {
            return self.subscript(subscript);
        }
        let mut region = Vec::with_capacity(buffer.shape.len());
        for (dim, part) in said.iter().enumerate() {
            region.push(self.range_of_part(&buffer, dim, part)?);
        }
        for extent in buffer.shape.iter().skip(said.len()) {
            region.push(Ref::new(Range { min: prim::int_of(extent.dtype(), 0), extent: extent.clone() }));
        }
        Ok(Value::Region(buffer, region))
    }

    fn axis_number(&self, value: &Value, e: &Expr) -> Parsed<i64> {
        value.as_int().ok_or_else(|| self.error(Code::Type, "the number of a dimension is expected", e.range()))
    }

    /// `lambda i, j: i < j`.
    fn lambda(&mut self, e: &Expr) -> Parsed<Any> {
        let Expr::Lambda(lambda) = e else {
            return Err(self.error(Code::Type, "a lambda over the indices of an element is expected", e.range()));
        };
        let names: Vec<String> =
            lambda.parameters.iter().flat_map(|list| list.iter()).map(|p| p.name().to_string()).collect();
        let vars: Vec<Ref<Var>> = names.iter().map(|name| Var::prim(name.as_str(), DataType::int(32))).collect();
        let pred = self.scoped(|p| {
            for (name, var) in names.iter().zip(&vars) {
                p.define(name, Value::Prim(PrimExpr::Var(var.clone())));
            }
            p.scalar_expr(&lambda.body)
        })?;
        Ok(Ref::new(LambdaExpr { vars, pred }).into())
    }
}

/// `cta.copy`, `tile.copy`, `tile.cta.copy`: the scope and the name; nothing of another function.
fn scope_and_name(function: &str) -> Option<(ScopeKind, &str)> {
    let of_tiles = function.strip_prefix("tile.");
    let rest = of_tiles.unwrap_or(function);
    let scoped = rest.split_once('.').and_then(|(scope, name)| {
        let (_, kind) = SCOPE_NAMES.iter().find(|(known, _)| *known == scope)?;
        Some((*kind, name))
    });
    scoped.or_else(|| of_tiles.map(|name| (ScopeKind::Thread, name)))
}
