//! What a reduction block combines, and how: `C[i] = C[i] + A[i, k]` is a sum of `A[i, k]`.
//!
//! Known combinations are sum, product, minimum and maximum of one value, and the place of the least or greatest value: two
//! buffers, of which one decides which element both take.
//!
//! ```text
//! v_I = Select(V[i] >= A[i, k], I[i], k)          combines (k, A[i, k]) into (I[i], V[i]);
//! v_V = Select(V[i] >= A[i, k], V[i], A[i, k])    the condition may decide ties by the lesser place
//! I[i] = v_I
//! V[i] = v_V
//! ```
//!
//! All of these are associative and commutative, and what the block's init stores must be neutral, so that parts of a
//! reduction can be combined apart.

use relaxide_ffi::Ref;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, PrimMutator, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use crate::stmt::*;

/// A reduction: what is combined into which elements.
#[derive(Clone, Debug)]
pub struct Reducer {
    /// The buffers that hold the results, in the order in which they are stored.
    pub buffers: Vec<Ref<Buffer>>,
    /// Where in them; the same for all.
    pub indices: Vec<PrimExpr>,
    /// What the results are before the first value.
    pub identities: Vec<PrimExpr>,
    /// The values that are combined, one a buffer.
    pub values: Vec<PrimExpr>,
    so_far: Vec<Ref<Var>>,
    next: Vec<Ref<Var>>,
    /// The results with one value more, over `so_far` and `next`.
    combined: Vec<PrimExpr>,
}

/// Why a block is no reduction that is known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReducer {
    /// There is no init, or it does not store one value a buffer.
    #[error("its init does not store one value in each buffer")]
    Init,
    /// The body is not one store a buffer, at the place that the init sets.
    #[error("its body does not store to each buffer once, where the init does")]
    Stores,
    /// The combination is none of those that are known.
    #[error("how it combines values is none of +, *, min, max or the place of a minimum or maximum")]
    Combination,
    /// What the init stores changes what it is combined with.
    #[error("its init stores {0}, which is not neutral for how it combines values")]
    Identity(String),
}

impl Reducer {
    /// The reduction that a block executes.
    pub fn of(block: &SBlock) -> Result<Reducer, NoReducer> {
        let init = block.init.as_ref().and_then(stores).filter(|s| !s.is_empty()).ok_or(NoReducer::Init)?;
        let body = stores(&block.body).ok_or(NoReducer::Stores)?;
        let first = body.first().ok_or(NoReducer::Stores)?;
        let (buffers, indices): (Vec<_>, _) = (body.iter().map(|s| s.buffer.clone()).collect(), first.indices.clone());
        let mut analyzer = Analyzer::new();
        let mut alike = |a: &[PrimExpr], b: &[PrimExpr]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| analyzer.can_prove_equal(a, b))
        };
        let mut identities = Vec::with_capacity(body.len());
        for store in &body {
            let start = init.iter().find(|s| s.buffer == store.buffer).ok_or(NoReducer::Init)?;
            if !alike(&store.indices, &indices) || !alike(&start.indices, &indices) || init.len() != body.len() {
                return Err(NoReducer::Stores);
            }
            identities.push(start.value.clone());
        }
        let so_far: Vec<Ref<Var>> = buffers.iter().map(|b| Var::prim(format!("{}_so_far", b.name), b.dtype)).collect();
        let mut abstracted = OwnLoads { buffers: &buffers, so_far: &so_far };
        let updates: Vec<PrimExpr> = body.iter().map(|s| abstracted.mutate_prim(&s.value)).collect();
        Reducer::combining(buffers, indices, identities, so_far, &updates)
    }

    fn combining(
        buffers: Vec<Ref<Buffer>>,
        indices: Vec<PrimExpr>,
        identities: Vec<PrimExpr>,
        so_far: Vec<Ref<Var>>,
        updates: &[PrimExpr],
    ) -> Result<Reducer, NoReducer> {
        let next: Vec<Ref<Var>> = buffers.iter().map(|b| Var::prim(format!("{}_next", b.name), b.dtype)).collect();
        let known = match (updates, so_far.as_slice()) {
            ([update], [acc]) => simple(update, acc, &next[0]),
            ([_, _], [_, _]) => place_of_extreme(updates, &so_far, &next),
            _ => None,
        };
        let (values, combined, neutral) = known.ok_or(NoReducer::Combination)?;
        for (identity, neutral) in identities.iter().zip(&neutral) {
            if let Some(allowed) = neutral
                && !allowed.iter().any(|e| same_number(e, identity))
            {
                return Err(NoReducer::Identity(identity.to_string()));
            }
        }
        Ok(Reducer { buffers, indices, identities, values, so_far, next, combined })
    }

    /// The results with one value more.
    pub fn combine(&self, so_far: &[PrimExpr], next: &[PrimExpr]) -> Vec<PrimExpr> {
        let vars = self.so_far.iter().chain(&self.next).cloned();
        let map: VarMap = vars.zip(so_far.iter().chain(next).cloned()).collect();
        self.combined.iter().map(|e| substitute(e, &map)).collect()
    }
}

/// The values, the combination over stand-ins, and for each buffer what may be its identity where that is prescribed.
type Known = (Vec<PrimExpr>, Vec<PrimExpr>, Vec<Option<Vec<PrimExpr>>>);

/// Loads of what the block itself writes become stand-ins.
struct OwnLoads<'a> {
    buffers: &'a [Ref<Buffer>],
    so_far: &'a [Ref<Var>],
}

impl PrimMutator for OwnLoads<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(load) => match self.buffers.iter().position(|b| *b == load.buffer) {
                Some(at) => PrimExpr::from(&self.so_far[at]),
                None => self.remake_prim(e),
            },
            _ => self.remake_prim(e),
        }
    }
}

/// The stores of a sequence of bindings and stores, bound names replaced by what they stand for.
fn stores(stmt: &Stmt) -> Option<Vec<BufferStore>> {
    let list = match stmt {
        Stmt::Seq(n) => n.seq.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut bound, mut found) = (VarMap::new(), Vec::new());
    for stmt in list {
        match stmt {
            Stmt::Bind(n) => drop(bound.insert(n.var.clone(), substitute(&n.value, &bound))),
            Stmt::Store(n) if n.predicate.is_none() => found.push(BufferStore {
                buffer: n.buffer.clone(),
                value: substitute(&n.value, &bound),
                indices: n.indices.clone(),
                predicate: None,
            }),
            _ => return None,
        }
    }
    Some(found)
}

/// One value, by one operator.
fn simple(update: &PrimExpr, acc: &Ref<Var>, next: &Ref<Var>) -> Option<Known> {
    let PrimExpr::Binary(n) = update else { return None };
    let value = match (n.a.as_var() == Some(acc), n.b.as_var() == Some(acc)) {
        (true, false) => n.b.clone(),
        (false, true) => n.a.clone(),
        _ => return None,
    };
    let dtype = acc.dtype();
    let neutral = match n.op {
        BinaryOp::Add => vec![prim::constant(dtype, 0.0)],
        BinaryOp::Mul => vec![prim::constant(dtype, 1.0)],
        BinaryOp::Max => vec![prim::lowest(dtype), least_finite(dtype)],
        BinaryOp::Min => vec![prim::highest(dtype), prim::float_of(dtype, -float_value(&least_finite(dtype))?)],
        _ => return None,
    };
    let uses_acc = free_vars(&value).contains(acc);
    let combined = vec![prim::binary(n.op, acc, next)];
    (!uses_acc).then(|| (vec![value], combined, vec![Some(neutral)]))
}

fn float_value(e: &PrimExpr) -> Option<f64> {
    match e {
        PrimExpr::Float(n) => Some(n.value),
        PrimExpr::Int(n) => Some(n.value as f64),
        PrimExpr::Call(n) if n.op == "tirx.min_value" => float_value(&prim::lowest(n.dtype)),
        PrimExpr::Call(n) if n.op == "tirx.max_value" => float_value(&prim::highest(n.dtype)),
        _ => None,
    }
}

/// The least finite value of a type, where it is a float; TVM's programs begin maxima with it.
fn least_finite(dtype: relaxide_ffi::DataType) -> PrimExpr {
    match (dtype.is_float(), dtype.bits) {
        (true, 64) => prim::float_of(dtype, f64::MIN),
        (true, 32) => prim::float_of(dtype, f64::from(f32::MIN)),
        (true, 16) => prim::float_of(dtype, -65504.0),
        _ => prim::lowest(dtype),
    }
}

fn same_number(a: &PrimExpr, b: &PrimExpr) -> bool {
    same(a, b) || matches!((float_value(a), float_value(b)), (Some(a), Some(b)) if a == b)
}

/// Two values, one of which decides which pair is kept.
fn place_of_extreme(updates: &[PrimExpr], so_far: &[Ref<Var>], next: &[Ref<Var>]) -> Option<Known> {
    let mut values = Vec::with_capacity(2);
    let mut conditions = Vec::with_capacity(2);
    for (update, acc) in updates.iter().zip(so_far) {
        let (condition, value) = chosen(update, acc)?;
        values.push(value);
        conditions.push(condition);
    }
    let mut replaced = Values { values: &values, next };
    let mut combined = Vec::with_capacity(2);
    for ((condition, acc), next) in conditions.iter().zip(so_far).zip(next) {
        combined.push(match condition {
            Choice::Select(condition) => prim::select(replaced.mutate_prim(condition), acc, next),
            Choice::Extreme(op) => prim::binary(*op, acc, next),
        });
    }
    let decided = combined.iter().find_map(|e| match e {
        PrimExpr::Select(n) => decides(&n.condition, so_far, next),
        _ => None,
    })?;
    for e in &combined {
        let fits = match e {
            PrimExpr::Select(n) => decides(&n.condition, so_far, next) == Some(decided),
            PrimExpr::Binary(n) => (n.op == BinaryOp::Max) == decided.1 && n.a.as_var() == so_far.get(decided.0),
            _ => false,
        };
        if !fits {
            return None;
        }
    }
    let dtype = so_far[decided.0].dtype();
    let ends = match decided.1 {
        true => vec![prim::lowest(dtype), least_finite(dtype)],
        false => vec![prim::highest(dtype), prim::constant(dtype, -float_value(&least_finite(dtype))?)],
    };
    let mut neutral = vec![None, None];
    neutral[decided.0] = Some(ends);
    Some((values, combined, neutral))
}

enum Choice {
    Select(PrimExpr),
    Extreme(BinaryOp),
}

/// How an update chooses between the result so far and a value, and the value.
fn chosen(update: &PrimExpr, acc: &Ref<Var>) -> Option<(Choice, PrimExpr)> {
    match update {
        PrimExpr::Select(n) if n.true_value.as_var() == Some(acc) => {
            Some((Choice::Select(n.condition.clone()), n.false_value.clone()))
        }
        PrimExpr::Binary(n) if matches!(n.op, BinaryOp::Max | BinaryOp::Min) => {
            if n.a.as_var() == Some(acc) {
                Some((Choice::Extreme(n.op), n.b.clone()))
            } else {
                (n.b.as_var() == Some(acc)).then(|| (Choice::Extreme(n.op), n.a.clone()))
            }
        }
        _ => None,
    }
}

/// The values in a condition become stand-ins.
struct Values<'a> {
    values: &'a [PrimExpr],
    next: &'a [Ref<Var>],
}

impl PrimMutator for Values<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match self.values.iter().position(|v| same(v, e)) {
            Some(at) => PrimExpr::from(&self.next[at]),
            None => self.remake_prim(e),
        }
    }
}

/// Which value decides, and whether the greater one is kept; `None` where the condition is no such choice.
fn decides(condition: &PrimExpr, so_far: &[Ref<Var>], next: &[Ref<Var>]) -> Option<(usize, bool)> {
    let PrimExpr::Binary(n) = condition else { return None };
    let sides = |n: &prim::Binary| {
        let at = so_far.iter().position(|v| n.a.as_var() == Some(v))?;
        (n.b.as_var() == next.get(at)).then_some(at)
    };
    match n.op {
        BinaryOp::Gt | BinaryOp::Ge => Some((sides(n)?, true)),
        BinaryOp::Lt | BinaryOp::Le => Some((sides(n)?, false)),
        // Ties are decided by the other value: `a > x or (a == x and i < j)`.
        BinaryOp::Or => {
            let decided = decides(&n.a, so_far, next)?;
            let PrimExpr::Binary(tie) = &n.b else { return None };
            let (PrimExpr::Binary(equal), PrimExpr::Binary(order)) = (&tie.a, &tie.b) else { return None };
            let other = sides(order)?;
            let is_tie = tie.op == BinaryOp::And && equal.op == BinaryOp::Eq && sides(equal) == Some(decided.0);
            (is_tie && other != decided.0 && order.op.is_comparison()).then_some(decided)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;

    use super::super::samples;
    use super::*;
    use crate::{PrimFunc, te};

    const F32: DataType = DataType::float(32);

    #[test]
    fn sums_are_taken_apart() {
        let block = samples::block(&samples::matmul(4), "C");
        let reducer = Reducer::of(&block).unwrap();
        assert_eq!(reducer.values[0].to_string(), "A[v_ax0, v_k] * B[v_k, v_ax1]");
        assert!(same_number(&reducer.identities[0], &prim::float_of(F32, 0.0)));
        let again = reducer.combine(&[prim::float_of(F32, 3.0)], &[prim::float_of(F32, 5.0)]);
        assert_eq!(again.len(), 1);
    }

    fn argmax(start: f64) -> PrimFunc {
        let a = te::placeholder("A", [4, 8], F32);
        let k = te::reduce_axis(8);
        let outputs = te::compute_multi("am", [4], |i| {
            let x = a.at(&[i[0].clone(), k.var()]);
            te::combine([prim::int(-1), prim::float_of(F32, start)], [k.var(), x], [&k], |acc, x| {
                let keep = prim::ge(&acc[1], &x[1]);
                vec![prim::select(keep.clone(), &acc[0], &x[0]), prim::select(keep, &acc[1], &x[1])]
            })
        });
        let mut args = vec![a.clone()];
        args.extend(outputs);
        te::create_prim_func(&args).unwrap()
    }

    #[test]
    fn places_of_maxima_are_taken_apart() {
        let block = samples::block(&argmax(f64::NEG_INFINITY), "am");
        let reducer = Reducer::of(&block).unwrap();
        assert_eq!(reducer.values.len(), 2);
        assert_ne!(reducer.buffers[0], reducer.buffers[1]);
        let wrong = samples::block(&argmax(0.0), "am");
        assert!(matches!(Reducer::of(&wrong), Err(NoReducer::Identity(_))));
    }

    #[test]
    fn other_blocks_are_refused() {
        let block = samples::block(&samples::chain(4), "B");
        assert_eq!(Reducer::of(&block).unwrap_err(), NoReducer::Init);
        let block = samples::block(&samples::matmul(4), "C");
        let Stmt::Store(store) = &block.body else { panic!("a store") };
        let twice = BufferStore {
            buffer: store.buffer.clone(),
            value: prim::sub(store.value.clone(), prim::float_of(F32, 1.0)),
            indices: store.indices.clone(),
            predicate: None,
        };
        let other = SBlock { body: Ref::new(twice).into(), ..samples::copy(&block) };
        assert_eq!(Reducer::of(&other).unwrap_err(), NoReducer::Combination);
    }
}
