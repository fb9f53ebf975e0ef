//! Loops in kernels: `for i in range(…)`, `T.parallel(…)` and its kin, `for i, j in T.grid(…)`.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::diagnostic::Code;
use relaxide_ir::prim;
use relaxide_ir::{AttrValue, Attrs, PrimExpr, Type, Var};
use relaxide_tir::{For, ForKind, Stmt};
use ruff_python_ast::{self as ast, Expr, Stmt as Py};
use ruff_text_size::Ranged;

use super::access::difference;
use super::args::Args;
use super::tir::Domain;
use super::value::Value;
use super::{Parsed, Parser};

/// Annotations of loops that `unroll=` stands for.
pub(crate) const PRAGMA_UNROLL: &str = "pragma_unroll";
pub(crate) const DISABLE_UNROLL: &str = "disable_unroll";

impl Parser<'_> {
    pub(super) fn tir_for(&mut self, n: &ast::StmtFor) -> Parsed<()> {
        if let Expr::Call(call) = &*n.iter
            && self.path(&call.func).as_deref() == Some("T.grid")
        {
            return self.tir_grid(n, call);
        }
        let is_range = matches!(&*n.iter, Expr::Call(call)
            if matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "range"));
        if !is_range && let Some(items) = self.unrolled(&n.iter)? {
            return items.into_iter().try_for_each(|item| {
                self.define_target(&n.target, item)?;
                n.body.iter().try_for_each(|stmt| self.tir_stmt(stmt))
            });
        }
        let Expr::Call(call) = &*n.iter else { return Err(self.unsupported("this loop", n.iter.range())) };
        let path = match &*call.func {
            Expr::Name(name) if name.id.as_str() == "range" => "T.serial".to_string(),
            func => self.path(func).unwrap_or_default(),
        };
        let mut args = Args::of(self, &path, call)?;
        let kind = match path.as_str() {
            "T.serial" | "T.range" => ForKind::Serial,
            "T.parallel" => ForKind::Parallel,
            "T.vectorized" => ForKind::Vectorized,
            "T.unroll" => ForKind::Unrolled,
            "T.thread_binding" => ForKind::ThreadBinding,
            _ => {
                return Err(self
                    .error(Code::UnknownMember, "this is no loop", n.iter.range())
                    .with_help(
                        "loops are range, T.grid, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding",
                    )
                    .into());
            }
        };
        let Expr::Name(target) = &*n.target else { return Err(self.unsupported("this loop", n.target.range())) };
        let (mut min, mut extent) = self.loop_range(&mut args)?;
        let mut step = if kind == ForKind::ThreadBinding { None } else { self.loop_step(&mut args)? };
        let counter_dtype = match args.keyword("dtype") {
            Some(e) if kind != ForKind::ThreadBinding => Some(self.counter_dtype(e)?),
            Some(e) => return Err(self.unsupported("the type of a thread's number", e.range())),
            None => None,
        };
        if let Some(dtype) = counter_dtype {
            (min, extent) = (prim::cast(dtype, min), prim::cast(dtype, extent));
        }
        if let Some(by) = &mut step {
            *by = prim::cast(extent.dtype(), by.clone());
        }
        let thread_tag = match (kind, args.take("thread")) {
            (ForKind::ThreadBinding, Some(e)) => self.text(e)?,
            (ForKind::ThreadBinding, None) => {
                let error = self.error(Code::Structure, "a loop over threads says which", n.iter.range());
                return Err(error.with_help("write `T.thread_binding(8, \"threadIdx.x\")`").into());
            }
            _ => String::new(),
        };
        let mut annotations = match args.keyword("annotations") {
            Some(e) => self.attrs(e)?,
            None => Attrs::new(),
        };
        if let (ForKind::Serial, Some(e)) = (kind, args.keyword("unroll")) {
            annotations = self.unroll_request(e, annotations)?;
        }
        args.finish(self)?;
        let var = self.loop_var(target, extent.dtype());
        let body = self.loop_body(&[(target, PrimExpr::from(&var), (min.clone(), extent.clone()))], &n.body)?;
        self.push(Ref::new(For { var, min, extent, kind, thread_tag, annotations, body, step }));
        Ok(())
    }

    /// `unroll=True`, `unroll=False`, `unroll=4` as annotations.
    fn unroll_request(&mut self, e: &Expr, annotations: Attrs) -> Parsed<Attrs> {
        Ok(match self.expr(e)? {
            Value::None => annotations,
            Value::Bool(true) => annotations.with(PRAGMA_UNROLL, AttrValue::Bool(true)),
            Value::Bool(false) => annotations.with(DISABLE_UNROLL, AttrValue::Bool(true)),
            value => match value.as_int().filter(|times| *times > 0) {
                Some(times) => annotations.with(PRAGMA_UNROLL, AttrValue::Int(times)),
                None => {
                    let message = format!("unroll is True, False or a positive integer, not {}", value.describe());
                    return Err(self.error(Code::Type, message, e.range()));
                }
            },
        })
    }

    /// The type of a counter: 32 bits.
    pub(super) fn counter_dtype(&mut self, e: &Expr) -> Parsed<DataType> {
        match self.dtype(e)? {
            dtype if dtype == DataType::int(32) || dtype == DataType::uint(32) => Ok(dtype),
            other => {
                let message = format!("the dtype must be \"int32\" or \"uint32\", not {other}");
                Err(self.error(Code::Type, message, e.range()))
            }
        }
    }

    /// By how much a loop counts: the third argument of `range`, `step=` of others; nothing where that is one.
    fn loop_step(&mut self, args: &mut Args) -> Parsed<Option<PrimExpr>> {
        let Some(e) = args.take("step") else { return Ok(None) };
        let step = self.scalar_expr(e)?;
        match step.as_int() {
            Some(0) => Err(self.error(Code::Type, "a loop that counts by zero does not end", e.range())),
            Some(1) => Ok(None),
            _ => Ok(Some(self.counts(step, e.range())?)),
        }
    }

    pub(super) fn loop_var(&self, target: &ast::ExprName, dtype: DataType) -> Ref<Var> {
        Ref::new(Var { name: target.id.to_string(), ty: Type::prim(dtype), span: self.span(target.range) })
    }

    pub(super) fn loop_range(&mut self, args: &mut Args) -> Parsed<(PrimExpr, PrimExpr)> {
        let first = args.required(self, "stop")?;
        let first_value = self.expr(first)?;
        // `T.thread_binding(128, "threadIdx.x")` has the thread in the second place.
        let second = if args.next_is_text() { None } else { args.take("stop") };
        let Some(second) = second else {
            let extent = self.scalar(&first_value, first.range())?;
            let extent = self.counts(extent, first.range())?;
            return Ok((prim::int_of(extent.dtype(), 0), extent));
        };
        let second_value = self.expr(second)?;
        let (min, end) = match self.operands(&first_value, &second_value) {
            Some(pair) => pair,
            None => (self.scalar(&first_value, first.range())?, self.scalar(&second_value, second.range())?),
        };
        let (min, end) = (self.counts(min, first.range())?, self.counts(end, second.range())?);
        let extent = difference(&end, &min);
        Ok((min, extent))
    }

    /// `for i, j in T.grid(…)`. Of `*shape` each dimension is an extent.
    fn tir_grid(&mut self, n: &ast::StmtFor, call: &ast::ExprCall) -> Parsed<()> {
        let mut counter_dtype = None;
        for keyword in &call.arguments.keywords {
            if keyword.arg.as_ref().is_none_or(|name| name.as_str() != "dtype") {
                return Err(self.unsupported("this argument of T.grid", keyword.range));
            }
            counter_dtype = Some(self.counter_dtype(&keyword.value)?);
        }
        let targets: Vec<&ast::ExprName> = match &*n.target {
            Expr::Name(name) => vec![name],
            Expr::Tuple(tuple) => tuple.elts.iter().filter_map(|e| e.as_name_expr()).collect(),
            other => return Err(self.unsupported("this loop", other.range())),
        };
        let mut domains: Vec<Domain> = Vec::with_capacity(targets.len());
        for arg in &call.arguments.args {
            let values = match arg {
                Expr::Starred(star) => self.spread(&star.value)?,
                one => vec![self.expr(one)?],
            };
            for value in values {
                let (min, extent) = self.grid_domain(&value, arg)?;
                let typed = |e: PrimExpr| counter_dtype.map_or(e.clone(), |dtype| prim::cast(dtype, e));
                domains.push((typed(min), typed(extent)));
            }
        }
        if let (Expr::Name(all), false) = (&*n.target, domains.len() == 1) {
            let count = domains.len();
            return self.grid_of_groups(&[(all, Some(count))], domains, &n.body);
        }
        if let Expr::Tuple(tuple) = &*n.target
            && let Some(groups) = groups_of(&tuple.elts, domains.len())
        {
            return self.grid_of_groups(&groups, domains, &n.body);
        }
        if domains.len() != targets.len() {
            let message = format!("{} extents for {} counters", domains.len(), targets.len());
            return Err(self.error(Code::Arguments, message, call.range()));
        }
        let mut loops = Vec::with_capacity(targets.len());
        for (target, domain) in targets.into_iter().zip(domains) {
            loops.push((target, self.loop_var(target, domain.1.dtype()), domain));
        }
        let counters: Vec<_> =
            loops.iter().map(|(target, var, domain)| (*target, PrimExpr::from(var), domain.clone())).collect();
        let body = self.loop_body(&counters, &n.body)?;
        let nest = loops.into_iter().rev().fold(body, |body, (_, var, domain)| serial(var, domain, body));
        self.push(nest);
        Ok(())
    }

    /// One argument of `T.grid`: an extent, or a pair of where the loop begins and ends.
    fn grid_domain(&mut self, value: &Value, arg: &Expr) -> Parsed<Domain> {
        let range = arg.range();
        if let Value::Tuple(pair) = value
            && let [first, end] = pair.as_slice()
        {
            let (min, end) = match self.operands(first, end) {
                Some(pair) => pair,
                None => (self.scalar(first, range)?, self.scalar(end, range)?),
            };
            let (min, end) = (self.counts(min, range)?, self.counts(end, range)?);
            let extent = difference(&end, &min);
            return Ok((min, extent));
        }
        let extent = self.scalar(value, range)?;
        let extent = self.counts(extent, range)?;
        Ok(from_zero(&extent))
    }

    /// `for all in T.grid(…)`, `for *most, last in T.grid(…)`: a name for several counters, which are a tuple.
    fn grid_of_groups(&mut self, groups: &[Group<'_>], domains: Vec<Domain>, body: &[Py]) -> Parsed<()> {
        let mut names = groups.iter().flat_map(|(name, count)| match count {
            None => vec![name.id.to_string()],
            Some(count) => (0..*count).map(|place| format!("{}_{place}", name.id)).collect(),
        });
        let mut loops = Vec::with_capacity(domains.len());
        for domain in domains {
            loops.push((Var::new(names.next().unwrap_or_default(), Type::prim(domain.1.dtype())), domain));
        }
        let depth = self.kernel.loops.len();
        let inner = self.scoped(|p| {
            let mut counters = loops.iter().map(|(var, _)| Value::Prim(PrimExpr::from(var)));
            for (name, count) in groups {
                let value = match count {
                    None => counters.next(),
                    Some(count) => Some(Value::Tuple(counters.by_ref().take(*count).collect())),
                };
                value.into_iter().for_each(|value| p.define(&name.id, value));
            }
            p.kernel.loops.extend(loops.iter().cloned());
            p.tir_body(body)
        });
        self.kernel.loops.truncate(depth);
        let nest = loops.into_iter().rev().fold(inner?, |body, (var, domain)| serial(var, domain, body));
        self.push(nest);
        Ok(())
    }

    /// The body of loops: the names of their counters, what these stand for, and where they run.
    pub(super) fn loop_body(&mut self, loops: &[(&ast::ExprName, PrimExpr, Domain)], body: &[Py]) -> Parsed<Stmt> {
        let depth = self.kernel.loops.len();
        let result = self.scoped(|p| {
            for (target, counter, domain) in loops {
                p.define(&target.id, Value::Prim(counter.clone()));
                if let PrimExpr::Var(var) = counter {
                    p.kernel.loops.push((var.clone(), domain.clone()));
                }
            }
            p.tir_body(body)
        });
        self.kernel.loops.truncate(depth);
        result
    }
}

/// The domain of a loop that begins at zero.
fn from_zero(extent: &PrimExpr) -> Domain {
    (prim::int_of(extent.dtype(), 0), extent.clone())
}

/// A plain loop over a domain.
fn serial(var: Ref<Var>, (min, extent): Domain, body: Stmt) -> Stmt {
    let (kind, thread_tag, annotations) = (ForKind::Serial, String::new(), Attrs::new());
    Ref::new(For { var, min, extent, kind, thread_tag, annotations, body, step: None }).into()
}

/// A name of a loop's target, with the number of counters that it is a tuple of, where it is one.
type Group<'a> = (&'a ast::ExprName, Option<usize>);

/// The names of a target of which one is starred and takes all counters that the others leave; nothing for other targets.
fn groups_of(targets: &[Expr], counters: usize) -> Option<Vec<Group<'_>>> {
    if targets.iter().filter(|e| e.is_starred_expr()).count() != 1 {
        return None;
    }
    let left = counters.checked_sub(targets.len() - 1)?;
    let mut groups = Vec::with_capacity(targets.len());
    for e in targets {
        groups.push(match e {
            Expr::Starred(star) => (star.value.as_name_expr()?, Some(left)),
            other => (other.as_name_expr()?, None),
        });
    }
    Some(groups)
}
