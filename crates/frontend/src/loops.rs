//! [`Loop`]: a loop, as a function of the program that calls itself last.
//!
//! ```text
//! def loop(at: R.Shape([i, m, n]), go, s: R.Tensor((n,)), rows, x: R.Tensor((n,))):
//!     if i < m:                                           # where the number of iterations is limited
//!         if go:                                          # where there is a condition
//!             …                                           # the body: s2, row, go2
//!             rows_append(rows, row)
//!             r = loop([i + 1, m, n], go2, s2, rows, x)   # becomes a jump
//!         else: r = (s,)
//!     else: r = (s,)
//!     return r
//! ```
//!
//! State is handed from iteration to iteration in arguments. Rows that iterations give are collected by the runtime and joined once
//! behind the loop, so `n` iterations cost `n` rows. A dimension of the state that an iteration changes gets a symbolic variable of its
//! own, bound in each iteration; which these are is found by writing the body until its results fit its parameters.
//!
//! Needs a function that is written without dataflow blocks.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, GlobalVar, Type, Var};
use relaxide_relax::shape::erase_type;
use relaxide_relax::{BlockBuilder, BuildError, Call, Expr, If, SeqExpr};

use crate::{Captures, NodeError, Result, Scope, dims};

/// How often the body is written at most, until the types of the state are found.
const MAX_ROUNDS: usize = 6;

/// A loop before its first iteration.
pub struct Loop {
    /// Name of the function, for reading.
    pub name: &'static str,
    /// How many iterations there are at most.
    pub limit: Option<PrimExpr>,
    /// Whether there is a first iteration: a bool without dimensions; `None` where no iteration asks.
    pub go: Option<Expr>,
    /// State before the first iteration.
    pub state: Vec<Expr>,
    /// Lists that iterations add a row to.
    pub lists: Vec<Expr>,
    /// The function of the runtime that adds one.
    pub append: &'static str,
}

/// What an iteration is given.
pub struct Iteration {
    /// Which iteration it is, from 0 on.
    pub index: PrimExpr,
    /// The limit, if there is one.
    pub limit: Option<PrimExpr>,
    /// The condition, if there is one.
    pub go: Option<Expr>,
    /// The state.
    pub state: Vec<Expr>,
}

/// What an iteration gives.
pub struct Next {
    /// Whether there is another iteration; `None` where that only depends on the limit.
    pub go: Option<Expr>,
    /// The state for it.
    pub state: Vec<Expr>,
    /// A row for each list.
    pub rows: Vec<Row>,
    /// Whether the iteration has to be written again, since more is known of the state now.
    pub again: bool,
}

/// A value that an iteration adds to a list, as one object.
pub struct Row {
    /// The object.
    pub object: Expr,
    /// What is known of it, as a type.
    pub ty: Type,
}

impl From<Expr> for Row {
    fn from(tensor: Expr) -> Row {
        Row { ty: tensor.ty(), object: tensor }
    }
}

/// What is left of a loop behind its last iteration.
pub struct LoopResult {
    /// The state.
    pub state: Vec<Expr>,
    /// Types of rows, as far as they are described by dimensions of the outside.
    pub rows: Vec<Type>,
}

/// The body: adds the operations of an iteration.
pub trait Body {
    /// One iteration. `captures` hands values of the outside in.
    fn iterate(&mut self, builder: &mut BlockBuilder, captures: &mut Captures, iteration: &Iteration) -> Result<Next>;
}

impl<F: FnMut(&mut BlockBuilder, &mut Captures, &Iteration) -> Result<Next>> Body for F {
    fn iterate(&mut self, builder: &mut BlockBuilder, captures: &mut Captures, iteration: &Iteration) -> Result<Next> {
        self(builder, captures, iteration)
    }
}

/// Why a function was not finished.
enum Stop {
    Failed(NodeError),
    /// The state's types were too narrow; these fit the body's results.
    Widen(Vec<Wide>),
}

/// A function whose body is written.
struct Written {
    name: String,
    params: Vec<Ref<Var>>,
    signature: Type,
    /// Types of rows, as far as they are described by dimensions that the function knows.
    rows: Vec<Type>,
}

/// The variables of the function, and what of the outside is handed in.
struct Header {
    inside: Captures,
    index: Ref<Var>,
    limit: Option<Ref<Var>>,
    go: Option<Ref<Var>>,
    state: Vec<Ref<Var>>,
    lists: Vec<Ref<Var>>,
    /// Dimensions of the state that iterations change.
    fresh: Vec<Ref<Var>>,
}

impl Header {
    fn new(of: &Loop, wide: &[Wide]) -> Header {
        let mut inside = Captures::default();
        let index = Var::dim("i");
        let limit = of.limit.as_ref().map(|_| Var::dim("m"));
        let go = of.go.as_ref().map(|_| Var::new("go", Type::tensor(Vec::<PrimExpr>::new(), DataType::bool())));
        let mut fresh = Vec::new();
        let mut param = |(i, (s, wide)): (usize, (&Expr, &Wide))| {
            let ty = inside.ty(&s.ty());
            Var::new(format!("state{i}"), wide.param(&ty, &mut fresh))
        };
        let state: Vec<Ref<Var>> = of.state.iter().zip(wide).enumerate().map(&mut param).collect();
        let lists = (0..of.lists.len()).map(|i| Var::new(format!("rows{i}"), Type::any())).collect();
        inside.define(fresh.iter().chain([&index]).chain(&limit).cloned());
        Header { inside, index, limit, go, state, lists, fresh }
    }

    fn iteration(&self) -> Iteration {
        Iteration {
            index: PrimExpr::Var(self.index.clone()),
            limit: self.limit.clone().map(PrimExpr::Var),
            go: self.go.clone().map(Expr::Var),
            state: self.state.iter().cloned().map(Expr::Var).collect(),
        }
    }

    /// What is left of a type of the state outside of an iteration.
    fn result_type(&self, ty: &Type) -> Type {
        erase_type(ty, &|v| !self.fresh.contains(v))
    }

    /// What is left of a row's type outside of an iteration.
    fn row_type(&self, ty: &Type) -> Type {
        erase_type(ty, &|v| self.inside.inner_dims().any(|inner| inner == *v))
    }

    /// The index, the limit and the dimensions of the outside, as one argument.
    fn control(&self, index: PrimExpr) -> Expr {
        let limit = self.limit.clone().map(PrimExpr::Var);
        Expr::shape([index].into_iter().chain(limit).chain(self.inside.inner_dims().map(PrimExpr::Var)))
    }

    fn params(&self) -> Vec<Ref<Var>> {
        let control = self.control(PrimExpr::Var(self.index.clone()));
        let mut params = vec![Var::new("at", control.ty())];
        params.extend(self.go.clone());
        params.extend(self.state.iter().chain(&self.lists).cloned());
        params.extend(self.inside.params().cloned());
        params
    }

    /// The arguments of the call for the next iteration.
    fn next_args(&self, next: Next) -> Vec<Expr> {
        let mut args = vec![self.control(PrimExpr::Var(self.index.clone()) + 1)];
        args.extend(next.go);
        args.extend(next.state);
        args.extend(self.lists.iter().cloned().map(Expr::Var));
        args.extend(self.inside.params().cloned().map(Expr::Var));
        args
    }

    /// An iteration where the condition holds and the limit is not reached, the state elsewhere; nothing where neither is asked.
    fn choice(&self, b: &mut BlockBuilder, iteration: Ref<SeqExpr>, ret: &Type) -> Result<Option<Expr>> {
        let (at, mut seq, mut choice) = (PrimExpr::Var(self.index.clone()), iteration, None);
        let in_limit = self.limit.clone().map(|m| Expr::prim(prim::lt(at, PrimExpr::Var(m))));
        for condition in self.go.clone().map(Expr::Var).into_iter().chain(in_limit) {
            b.begin_scope();
            let exit = b.emit(Expr::tuple(self.state.iter().cloned().map(Expr::Var).collect::<Vec<_>>()))?;
            let exit = b.end_scope(exit)?;
            let value = Ref::new(If { condition, true_branch: seq, false_branch: exit, ty: ret.clone() });
            b.begin_scope();
            let result = b.emit(Expr::from(value.clone()))?;
            seq = b.end_scope(result)?;
            choice = Some(Expr::from(value));
        }
        Ok(choice)
    }
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        Stop::Failed(error.into())
    }
}

impl From<NodeError> for Stop {
    fn from(error: NodeError) -> Self {
        Stop::Failed(error)
    }
}

/// What an iteration may change of a part of the state.
#[derive(Clone, Debug, PartialEq)]
enum Wide {
    /// Which dimensions of a tensor.
    Dims(Vec<bool>),
    /// The rank.
    Rank,
    /// It is no tensor.
    Other,
}

impl Wide {
    fn of(ty: &Type) -> Wide {
        match ty {
            Type::Tensor(t) => match &t.shape {
                Some(dims) => Wide::Dims(vec![false; dims.len()]),
                None => usize::try_from(t.ndim).map_or(Wide::Rank, |n| Wide::Dims(vec![true; n])),
            },
            _ => Wide::Other,
        }
    }

    /// The type of the parameter for a value of a type.
    fn param(&self, ty: &Type, fresh: &mut Vec<Ref<Var>>) -> Type {
        let Type::Tensor(tensor) = ty else { return ty.clone() };
        match self {
            Wide::Dims(open) => {
                let own = tensor.shape.as_ref();
                let dim = |(i, open): (usize, &bool)| match own.and_then(|dims| dims.get(i)) {
                    Some(dim) if !open => dim.clone(),
                    _ => {
                        let var = Var::dim(format!("s{}", fresh.len()));
                        fresh.push(var.clone());
                        PrimExpr::Var(var)
                    }
                };
                Type::tensor(open.iter().enumerate().map(dim).collect::<Vec<_>>(), tensor.dtype)
            }
            Wide::Rank | Wide::Other => Type::tensor_ndim(-1, tensor.dtype),
        }
    }

    /// What takes in a result of another type too.
    fn widened(&self, param: &Type, result: &Type) -> Result<Wide> {
        let (Type::Tensor(p), Type::Tensor(r)) = (param, result) else { return Ok(Wide::Other) };
        if p.dtype != r.dtype {
            let (a, b) = (p.dtype, r.dtype);
            return Err(NodeError::invalid(format!(
                "a part of the state is {a} before an iteration and {b} behind it"
            )));
        }
        let Wide::Dims(open) = self else { return Ok(self.clone()) };
        if p.ndim != r.ndim {
            return Ok(Wide::Rank);
        }
        let Some(dims) = &p.shape else { return Ok(self.clone()) };
        let differs = |i: usize| r.shape.as_ref().is_none_or(|r| !dims::equal(&dims[i], &r[i]));
        Ok(Wide::Dims(open.iter().enumerate().map(|(i, open)| *open || differs(i)).collect()))
    }
}

impl Loop {
    /// Adds the loop.
    pub fn run(self, builder: &mut BlockBuilder, body: &mut dyn Body) -> Result<LoopResult> {
        let mut wide: Vec<Wide> = self.state.iter().map(|s| Wide::of(&s.ty())).collect();
        for _ in 0..MAX_ROUNDS {
            match self.attempt(builder, &wide, body) {
                Ok(done) => return Ok(done),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Widen(wider)) => wide = wider,
            }
        }
        Err(NodeError::unsupported("the shapes of its state do not settle"))
    }

    /// One attempt at the function, with types of the state.
    fn attempt(
        &self,
        builder: &mut BlockBuilder,
        wide: &[Wide],
        body: &mut dyn Body,
    ) -> std::result::Result<LoopResult, Stop> {
        let mut header = Header::new(self, wide);
        // The type of the result is what is left of the state's types outside of an iteration.
        let result: Vec<Type> = header.state.iter().map(|s| header.result_type(&s.ty)).collect();
        let ret = Type::tuple(result.clone());
        let mut written: Option<Written> = None;
        let function = builder.function(Vec::new(), Attrs::new(), |b| -> std::result::Result<Expr, Stop> {
            b.begin_scope();
            let next = match self.iteration(b, &mut header, wide, body) {
                Ok(next) => next,
                Err(stop) => {
                    b.end_scope(Expr::tuple([]))?;
                    return Err(stop);
                }
            };
            for (list, row) in header.lists.iter().zip(&next.rows) {
                effect(b, self.append, vec![Expr::Var(list.clone()), row.object.clone()])?;
            }
            let rows = next.rows.iter().map(|row| header.row_type(&row.ty)).collect();
            let params = header.params();
            let signature = Type::func(params.iter().map(|p| p.ty.clone()).collect::<Vec<_>>(), ret.clone(), false);
            let args = header.next_args(next);
            // Loops inside of this one have their names by now.
            let name = b.module().fresh_name(self.name);
            let callee = GlobalVar::typed(name.clone(), signature.clone());
            let again = b.emit(call(Expr::Global(callee), args, ret.clone()))?;
            let seq = b.end_scope(again)?;
            let choice = header.choice(b, seq, &ret)?;
            written = Some(Written { name, params, signature, rows });
            match choice {
                Some(choice) => Ok(b.emit(choice)?),
                None => Err(NodeError::invalid("it has neither a limit nor a condition, so it never ends").into()),
            }
        })?;
        let Some(Written { name, params, signature, rows }) = written else {
            return Err(NodeError::invalid("the body was not written").into());
        };
        let mut function = (*function).clone();
        function.params = params;
        function.ret_ty = ret;
        function.pure = false;
        builder.module_mut().insert(name.clone(), Ref::new(function));

        let inside = header.inside;
        let outer: Vec<PrimExpr> = inside.outer_dims().collect();
        let control = [prim::int(0)].into_iter().chain(self.limit.clone()).chain(outer);
        let mut args = vec![Expr::shape(control)];
        args.extend(self.go.clone());
        args.extend(self.state.iter().chain(&self.lists).cloned());
        args.extend(inside.args());
        let done = self.behind(builder, GlobalVar::typed(name, signature), args, &result, &inside)?;
        let rows = rows.iter().map(|ty| inside.outer_type(ty)).collect();
        Ok(LoopResult { state: done, rows })
    }

    /// Writes the body once; it stops where the state that comes out does not fit the parameters.
    fn iteration(
        &self,
        b: &mut BlockBuilder,
        header: &mut Header,
        wide: &[Wide],
        body: &mut dyn Body,
    ) -> std::result::Result<Next, Stop> {
        let iteration = header.iteration();
        let next = self.checked(body.iterate(b, &mut header.inside, &iteration)?)?;
        let wider = header.state.iter().zip(&next.state).zip(wide).map(|((p, s), w)| w.widened(&p.ty, &s.ty()));
        let wider = wider.collect::<Result<Vec<_>>>()?;
        if wider == wide && !next.again { Ok(next) } else { Err(Stop::Widen(wider)) }
    }

    fn checked(&self, next: Next) -> Result<Next> {
        let (state, rows) = (self.state.len(), self.lists.len());
        if next.state.len() != state || next.rows.len() != rows {
            let (s, r) = (next.state.len(), next.rows.len());
            return Err(NodeError::invalid(format!(
                "an iteration gives {s} values and {r} rows where {state} and {rows} are needed"
            )));
        }
        Ok(next)
    }

    /// Adds the first call, and binds what is left of the state.
    fn behind(
        &self,
        builder: &mut BlockBuilder,
        callee: Ref<GlobalVar>,
        args: Vec<Expr>,
        result: &[Type],
        inside: &Captures,
    ) -> Result<Vec<Expr>> {
        let types: Vec<Type> = result.iter().map(|ty| inside.outer_type(ty)).collect();
        let mut scope = Scope::new(builder);
        let done = scope.emit(call(Expr::Global(callee), args, Type::tuple(types.clone())))?;
        let mut state = Vec::with_capacity(types.len());
        for (i, ty) in types.iter().enumerate() {
            let field = scope.emit(Expr::field(done.clone(), i))?;
            state.push(match ty {
                Type::Tensor(t) if t.shape.is_none() && t.ndim >= 0 => {
                    let open = vec![None; usize::try_from(t.ndim).unwrap_or(0)];
                    scope.bind_dims(field, open, t.dtype)?
                }
                _ => field,
            });
        }
        Ok(state)
    }
}

/// A call of a function of the program or of the runtime.
fn call(op: Expr, args: Vec<Expr>, ty: Type) -> Expr {
    let ty_args = if matches!(op, Expr::Extern(_)) { vec![ty.clone()] } else { Vec::new() };
    Ref::new(Call { op, args, attrs: Attrs::new(), ty_args, ty, span: None }).into()
}

/// Adds a call of a function of the runtime.
pub fn runtime_call(builder: &mut BlockBuilder, name: &str, args: Vec<Expr>, ty: Type) -> Result<Expr> {
    Ok(builder.emit(call(Expr::external(name), args, ty))?)
}

/// Adds a call of a function of the runtime that gives nothing.
fn effect(builder: &mut BlockBuilder, name: &str, args: Vec<Expr>) -> Result<()> {
    runtime_call(builder, name, args, Type::void()).map(|_| ())
}
