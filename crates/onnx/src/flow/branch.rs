//! `If`: a choice between two graphs.
//!
//! Where the condition is known at import, the graph that is taken is imported in the place of the node. Otherwise both are
//! imported as branches, and the results get types that both branches have: dimensions that differ are bound to symbolic
//! variables behind the choice.
//!
//! Exporters also write choices whose branches differ in rank (`squeeze` where a dimension is 1). What follows such a node
//! means different things in either case, so it is imported twice, as the end of each branch ([`split`]):
//!
//! ```text
//! y = If(d == 1, squeeze(x), x)          if d == 1:  r = f(squeeze(x))
//! r = f(y)                        ──▶    else:       r = f(x)
//! ```
//!
//! There it helps to know which branch was taken ([`Facts`]): the same comparison has one answer from then on. A branch in
//! which the model makes no sense, as when `f` takes matrices only, fails when the program gets there, with the reason.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, free_vars};
use relaxide_ir::{TensorType, Type, Var};
use relaxide_relax::{BlockBuilder, Expr, If, SeqExpr};

use super::optional::{Held, Optional};
use super::sequence::Sequence;
use crate::dims;
use crate::error::NodeError;
use crate::graph::{Graphs, Step, fail_when_reached};
use crate::names::{Known, Visibility};
use crate::node::Node;
use crate::proto::{GraphProto, NodeProto};
use crate::scope::Scope;
use crate::symbolic::{Ratio, Symbolic};
use crate::text::Texts;
use crate::value::{Maps, Value};

type Result<T> = std::result::Result<T, NodeError>;

/// How many choices may split what follows them, inside each other.
const MAX_SPLITS: usize = 6;

/// A comparison of two expressions over dimensions.
#[derive(Clone, Debug)]
struct Comparison {
    less: bool,
    a: PrimExpr,
    b: PrimExpr,
}

impl Comparison {
    fn of(node: &Node) -> Option<(Comparison, bool)> {
        let side = |i: usize| {
            let value = node.optional(i)?.symbolic().filter(|s| s.elements.len() == 1)?;
            value.elements.first()?.as_whole().cloned()
        };
        let (less, swapped, negated) = match node.op() {
            "Equal" => (false, false, false),
            "Less" => (true, false, false),
            "Greater" => (true, true, false),
            "LessOrEqual" => (true, true, true),
            "GreaterOrEqual" => (true, false, true),
            _ => return None,
        };
        let (a, b) = if swapped { (side(1)?, side(0)?) } else { (side(0)?, side(1)?) };
        Some((Comparison { less, a, b }, !negated))
    }

    fn is(&self, other: &Comparison) -> bool {
        self.less == other.less && dims::equal(&self.a, &other.a) && dims::equal(&self.b, &other.b)
    }

    fn to_expr(&self, holds: bool) -> PrimExpr {
        match (self.less, holds) {
            (false, true) => prim::eq(&self.a, &self.b),
            (false, false) => prim::ne(&self.a, &self.b),
            (true, true) => prim::lt(&self.a, &self.b),
            (true, false) => prim::ge(&self.a, &self.b),
        }
    }
}

/// What is known about comparisons of dimensions.
#[derive(Debug, Default)]
pub struct Facts {
    /// Which comparison a bool of the program is, and whether it or its opposite.
    meanings: Vec<(Expr, Comparison, bool)>,
    /// What holds in the branches that are being imported.
    held: Vec<(Comparison, bool)>,
    /// Choices that have split what follows them.
    splits: usize,
}

impl Facts {
    /// The result of a comparison that a branch has decided.
    pub fn about(&self, node: &Node) -> Option<Value> {
        if self.held.is_empty() {
            return None;
        }
        let (comparison, positive) = Comparison::of(node)?;
        let (_, holds) = self.held.iter().rev().find(|(held, _)| held.is(&comparison))?;
        let shape = node.optional(0)?.symbolic()?.shape;
        let truth = Ratio::int(i64::from(*holds == positive));
        Some(Value::Symbolic(Symbolic { dtype: DataType::bool(), shape, elements: vec![truth] }))
    }

    /// Remembers what a bool means.
    pub fn remember(&mut self, node: &Node, values: &[Value]) {
        let [Value::Computed(expr)] = values else { return };
        if let Some((comparison, positive)) = Comparison::of(node) {
            self.meanings.push((expr.clone(), comparison, positive));
            return;
        }
        let changed = match node.op() {
            "Not" => true,
            "Cast" | "Squeeze" | "Reshape" | "Identity" => false,
            _ => return,
        };
        if let Some((comparison, positive)) = node.optional(0).and_then(|v| self.meaning(v)) {
            self.meanings.push((expr.clone(), comparison, positive != changed));
        }
    }

    fn meaning(&self, value: &Value) -> Option<(Comparison, bool)> {
        let Value::Computed(expr) = value else { return None };
        let (_, comparison, positive) = self.meanings.iter().rev().find(|(known, ..)| known == expr)?;
        Some((comparison.clone(), *positive))
    }
}

/// A choice that splits what follows it.
pub struct Split {
    condition: Expr,
    fact: Option<(Comparison, bool)>,
    branches: [GraphProto; 2],
}

/// `If`.
pub fn choose(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let branches = [node.graph("then_branch")?, node.graph("else_branch")?];
    let condition = node.input(0)?;
    if let Some(truth) = condition.symbolic().and_then(|s| s.literals()) {
        let [truth] = truth[..] else { return Err(NodeError::invalid("the condition must be one bool")) };
        let taken = if truth != 0 { branches[0] } else { branches[1] };
        return Ok(graphs.inner(builder, taken, Vec::new(), Visibility::Open).map_or(Step::Noted, Step::Values));
    }
    let fact = graphs.facts.meaning(condition);
    let condition = match &fact {
        Some((comparison, positive)) => Expr::prim(comparison.to_expr(*positive)),
        None => {
            let mut scope = Scope::new(builder);
            let tensor = scope.tensor(condition)?;
            scope.reshape(tensor, Vec::new())?
        }
    };
    let noted = graphs.noted();
    let mut arms = Vec::new();
    for (graph, taken) in branches.into_iter().zip([true, false]) {
        let import = |graphs: &mut Graphs, builder: &mut BlockBuilder| {
            graphs.inner(builder, graph, Vec::new(), Visibility::Open)
        };
        arms.push(arm(graphs, builder, &fact, taken, import)?);
    }
    let joined = match settle(graphs, builder, noted, arms)? {
        None => return Ok(Step::Noted),
        Some(arms) => join(builder, &arms, &|var| graphs.names.describe(var)).map(|joined| (arms, joined)),
    };
    match joined {
        Some((arms, joined)) if joined.iter().all(Join::is_ranked) || graphs.facts.splits >= MAX_SPLITS => {
            Ok(Step::Values(choice(builder, condition, arms, &joined)?))
        }
        _ if graphs.facts.splits >= MAX_SPLITS => {
            Err(NodeError::unsupported("its branches give values of different kinds"))
        }
        _ => Ok(Step::Split(Box::new(Split { condition, fact, branches: branches.map(GraphProto::clone) }))),
    }
}

/// Imports the branches of a choice with what follows it in either; `None` where problems are noted.
pub fn split(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    proto: &NodeProto,
    split: &Split,
    rest: &[NodeProto],
    outputs: &[&str],
) -> Result<Option<Vec<Value>>> {
    let noted = graphs.noted();
    graphs.facts.splits += 1;
    let mut arms = Vec::new();
    for (graph, taken) in split.branches.iter().zip([true, false]) {
        let import = |graphs: &mut Graphs, builder: &mut BlockBuilder| {
            let results = graphs.inner(builder, graph, Vec::new(), Visibility::Open)?;
            graphs.names.open(Visibility::Open);
            for (name, value) in proto.output.iter().zip(results) {
                graphs.names.set(name, Known::Value(value));
            }
            let values = graphs.values(builder, rest, outputs);
            graphs.names.close();
            values
        };
        arms.push(arm(graphs, builder, &split.fact, taken, import)?);
    }
    graphs.facts.splits -= 1;
    let Some(arms) = settle(graphs, builder, noted, arms)? else { return Ok(None) };
    let joined = join(builder, &arms, &|var| graphs.names.describe(var));
    let joined = joined.ok_or_else(|| NodeError::unsupported("its branches lead to values of different kinds"))?;
    choice(builder, split.condition.clone(), arms, &joined).map(Some)
}

/// A branch: its bindings and results, or why the model makes no sense there.
enum Arm {
    Good { seq: Ref<SeqExpr>, values: Vec<Value>, exprs: Vec<Expr> },
    Bad { reason: Option<String> },
}

/// Imports one branch.
fn arm(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    fact: &Option<(Comparison, bool)>,
    taken: bool,
    import: impl FnOnce(&mut Graphs, &mut BlockBuilder) -> Option<Vec<Value>>,
) -> Result<Arm> {
    let noted = graphs.noted();
    let held = graphs.facts.held.len();
    if let Some((comparison, positive)) = fact {
        graphs.facts.held.push((comparison.clone(), *positive == taken));
    }
    builder.begin_scope();
    let values = import(graphs, builder);
    graphs.facts.held.truncate(held);
    let exprs = values.as_ref().map(|values| {
        let mut scope = Scope::new(builder);
        values.iter().map(|v| scope.object(v)).collect::<Result<Vec<_>>>()
    });
    let body = match &exprs {
        Some(Ok(exprs)) if exprs.len() == 1 => exprs[0].clone(),
        Some(Ok(exprs)) => Expr::tuple(exprs.clone()),
        _ => Expr::tuple([]),
    };
    let seq = builder.end_scope(body).map_err(|e| NodeError::Relax(e.to_string()))?;
    match (values, exprs) {
        (Some(values), Some(exprs)) => Ok(Arm::Good { seq, values, exprs: exprs? }),
        _ => Ok(Arm::Bad { reason: (graphs.noted() > noted).then(|| graphs.take_back(noted)).flatten() }),
    }
}

/// A branch that is imported: its bindings and its results.
struct Done {
    seq: Ref<SeqExpr>,
    values: Vec<Value>,
    types: Vec<Type>,
}

/// Both branches, of which one may fail when it is reached; `None` where problems are noted.
fn settle(graphs: &mut Graphs, builder: &mut BlockBuilder, noted: usize, arms: Vec<Arm>) -> Result<Option<[Done; 2]>> {
    let done = |seq, values, exprs: Vec<Expr>| Done { seq, values, types: exprs.iter().map(Expr::ty).collect() };
    let mut arms = arms.into_iter();
    let (Some(first), Some(second)) = (arms.next(), arms.next()) else { return Ok(None) };
    match (first, second) {
        (Arm::Good { seq: a, values: v, exprs: x }, Arm::Good { seq: b, values: w, exprs: y }) => {
            Ok(Some([done(a, v, x), done(b, w, y)]))
        }
        (Arm::Good { seq, values, exprs }, Arm::Bad { reason: Some(reason) }) => {
            let good = done(seq, values, exprs);
            let bad = failing(graphs, builder, &reason, &good)?;
            Ok(Some([good, bad]))
        }
        (Arm::Bad { reason: Some(reason) }, Arm::Good { seq, values, exprs }) => {
            let good = done(seq, values, exprs);
            let bad = failing(graphs, builder, &reason, &good)?;
            Ok(Some([bad, good]))
        }
        (a, b) => {
            for reason in [a, b].into_iter().filter_map(|arm| match arm {
                Arm::Bad { reason } => reason,
                Arm::Good { .. } => None,
            }) {
                graphs.problem(crate::error::Location::Model, reason, None);
            }
            if graphs.noted() == noted {
                graphs.problem(crate::error::Location::Model, "a branch depends on what could not be imported", None);
            }
            Ok(None)
        }
    }
}

/// A branch that fails, with results of the types that the other branch has.
fn failing(graphs: &Graphs, builder: &mut BlockBuilder, reason: &str, good: &Done) -> Result<Done> {
    builder.begin_scope();
    let body = fail_when_reached(builder, reason).and_then(|()| {
        let mut scope = Scope::new(builder);
        good.types
            .iter()
            .map(|ty| placeholder(&mut scope, ty, &|var| graphs.names.describe(var)))
            .collect::<Result<Vec<_>>>()
    });
    let tuple = match body.as_deref() {
        Ok([one]) => one.clone(),
        Ok(many) => Expr::tuple(many.to_vec()),
        Err(_) => Expr::tuple([]),
    };
    let seq = builder.end_scope(tuple).map_err(|e| NodeError::Relax(e.to_string()))?;
    let exprs = body?;
    let values = exprs.iter().cloned().map(Value::Computed).collect();
    Ok(Done { seq, values, types: exprs.iter().map(Expr::ty).collect() })
}

/// A value of a type that no one will see, since the program has failed before.
fn placeholder(scope: &mut Scope, ty: &Type, known: &dyn Fn(&Ref<Var>) -> bool) -> Result<Expr> {
    let Type::Tensor(tensor) = ty else {
        return scope.call("null_value", []);
    };
    let keep = |d: &PrimExpr| if free_vars(d).iter().all(known) { d.clone() } else { prim::int(1) };
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let dims: Vec<PrimExpr> =
        tensor.shape.as_ref().map_or_else(|| vec![prim::int(1); rank], |dims| dims.iter().map(keep).collect());
    let zero = scope.scalar(0.0, tensor.dtype)?;
    let attrs = relaxide_ir::Attrs::new().with("dtype", tensor.dtype);
    scope.op("full", [Expr::shape(dims), zero], attrs)
}

/// What two results have in common.
enum Join {
    /// The same value, known at import.
    Same(Value),
    /// Tensors of one rank; dimensions that are not the same in both branches are left open.
    Ranked(Vec<Option<PrimExpr>>, DataType),
    /// Tensors of different ranks, or of one that is not known.
    Unranked(DataType),
    /// Sequences, and what is known of their values.
    Sequence(Option<Type>),
    /// Values that may be there or not.
    Optional(Held),
    /// Tensors of texts of one rank.
    Texts(Vec<Option<PrimExpr>>),
    /// Maps to numbers of a type.
    Maps(DataType),
    /// Something else.
    Object(Type),
}

impl Join {
    fn is_ranked(&self) -> bool {
        !matches!(self, Join::Unranked(_))
    }

    fn ty(&self) -> Type {
        match self {
            Join::Same(_) | Join::Sequence(_) | Join::Optional(_) | Join::Texts(_) | Join::Maps(_) => Type::any(),
            Join::Ranked(dims, dtype) => match dims.iter().cloned().collect::<Option<Vec<_>>>() {
                Some(dims) => Type::tensor(dims, *dtype),
                None => Type::tensor_ndim(dims.len() as i64, *dtype),
            },
            Join::Unranked(dtype) => Type::tensor_ndim(-1, *dtype),
            Join::Object(ty) => ty.clone(),
        }
    }
}

fn join(builder: &mut BlockBuilder, [a, b]: &[Done; 2], known: &dyn Fn(&Ref<Var>) -> bool) -> Option<Vec<Join>> {
    if a.types.len() != b.types.len() {
        return None;
    }
    let same = |x: &Value, y: &Value| -> Option<Value> {
        let (s, t) = (x.symbolic()?, y.symbolic()?);
        let equal = s.dtype == t.dtype
            && s.shape == t.shape
            && s.elements.iter().zip(&t.elements).all(|(a, b)| a.equals(b) == Some(true));
        (equal && s.dim_vars().iter().all(known)).then(|| x.clone())
    };
    let one = |((x, y), (s, t)): ((&Type, &Type), (&Value, &Value))| -> Option<Join> {
        if let Some(value) = same(s, t) {
            return Some(Join::Same(value));
        }
        if matches!(s, Value::Optional(_)) || matches!(t, Value::Optional(_)) {
            return join_optionals(builder, s, t, known);
        }
        if let (Value::Sequence(s), Value::Sequence(t)) = (s, t) {
            let element = match (&s.element, &t.element) {
                (Some(a), Some(b)) => Some(relaxide_relax::shape::unify(a, b)),
                (a, b) => a.clone().or(b.clone()),
            };
            return Some(Join::Sequence(element.map(|ty| relaxide_relax::shape::erase_type(&ty, known))));
        }
        if let (Value::Texts(s), Value::Texts(t)) = (s, t) {
            let (Type::Tensor(x), Type::Tensor(y)) = (s.index.ty(), t.index.ty()) else { return None };
            return match join_tensors(&x, &y, known) {
                Join::Ranked(dims, _) => Some(Join::Texts(dims)),
                _ => None,
            };
        }
        if let (Value::Maps(s), Value::Maps(t)) = (s, t) {
            return (s.dtype == t.dtype).then_some(Join::Maps(s.dtype));
        }
        match (x, y) {
            (Type::Tensor(x), Type::Tensor(y)) if x.dtype == y.dtype => Some(join_tensors(x, y, known)),
            (Type::Tensor(_), Type::Tensor(_)) => None,
            _ => Some(Join::Object(relaxide_relax::shape::erase_type(&relaxide_relax::shape::unify(x, y), known))),
        }
    };
    a.types.iter().zip(&b.types).zip(a.values.iter().zip(&b.values)).map(one).collect()
}

/// Values of which at least one may be there or not.
fn join_optionals(builder: &mut BlockBuilder, a: &Value, b: &Value, known: &dyn Fn(&Ref<Var>) -> bool) -> Option<Join> {
    if let (Value::Optional(Optional { object: None, .. }), Value::Optional(Optional { object: None, .. })) = (a, b) {
        return Some(Join::Same(a.clone()));
    }
    let scope = Scope::new(builder);
    let (a, b) = (Held::of(&scope, a), Held::of(&scope, b));
    let held = a.common(&b, &|dim| free_vars(dim).iter().all(known))?;
    Some(Join::Optional(match held {
        Held::Sequence(Some(ty)) => Held::Sequence(Some(relaxide_relax::shape::erase_type(&ty, known))),
        held => held,
    }))
}

fn join_tensors(a: &TensorType, b: &TensorType, known: &dyn Fn(&Ref<Var>) -> bool) -> Join {
    if a.ndim != b.ndim || a.ndim < 0 {
        return Join::Unranked(a.dtype);
    }
    let rank = usize::try_from(a.ndim).unwrap_or(0);
    let (Some(x), Some(y)) = (&a.shape, &b.shape) else { return Join::Ranked(vec![None; rank], a.dtype) };
    let common =
        |(x, y): (&PrimExpr, &PrimExpr)| (dims::equal(x, y) && free_vars(x).iter().all(known)).then(|| x.clone());
    Join::Ranked(x.iter().zip(y).map(common).collect(), a.dtype)
}

/// Adds the choice, and binds what its results are behind it.
fn choice(builder: &mut BlockBuilder, condition: Expr, arms: [Done; 2], joined: &[Join]) -> Result<Vec<Value>> {
    let [a, b] = arms;
    let types: Vec<Type> = joined
        .iter()
        .zip(&a.types)
        .map(|(j, own)| if matches!(j, Join::Same(_)) { own.clone() } else { j.ty() })
        .collect();
    let single = types.len() == 1;
    let ty = match &types[..] {
        [one] => one.clone(),
        many => Type::tuple(many.to_vec()),
    };
    let mut scope = Scope::new(builder);
    let result = Ref::new(If { condition, true_branch: a.seq, false_branch: b.seq, ty });
    let result = scope.emit(result.into())?;
    let mut values = Vec::with_capacity(joined.len());
    for (i, join) in joined.iter().enumerate() {
        if let Join::Same(value) = join {
            values.push(value.clone());
            continue;
        }
        let field = if single { result.clone() } else { scope.emit(Expr::field(result.clone(), i))? };
        values.push(match join {
            Join::Sequence(element) => Value::Sequence(Sequence::listed(field, element.clone())),
            Join::Texts(dims) => Value::Texts(Texts::unpack(&mut scope, field, dims.clone())?),
            Join::Maps(dtype) => Value::Maps(Maps { object: field, dtype: *dtype }),
            Join::Optional(held) => Value::Optional(Optional { object: Some(field), held: held.clone() }),
            Join::Ranked(dims, dtype) if dims.iter().any(Option::is_none) => {
                Value::Computed(scope.bind_dims(field, dims.clone(), *dtype)?)
            }
            _ => Value::Computed(field),
        });
    }
    Ok(values)
}
