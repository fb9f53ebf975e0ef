//! Operators of language models beside attention: rotary positions, linear attention, convolutions that remember.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::{Stmt, te};

use super::attention::by_head;
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

/// `RotaryEmbedding`: pairs of elements rotated by angles that depend on the position.
pub fn embedding(scope: &mut Scope, node: &Node) -> Outputs {
    let packed = scope.value_dims(node.input(0)?)?;
    let x = by_head(scope, node, 0, node.int("num_heads")?)?;
    let (cos, sin) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let rotated = match node.int_or("rotary_embedding_dim", 0)? {
        n @ 1.. => prim::int(n),
        0 => shape[3].clone(),
        n => return Err(NodeError::invalid(format!("`rotary_embedding_dim` is {n}"))),
    };
    let half = dims::floor_div(&rotated, &prim::int(2));
    let interleaved = node.flag("interleaved", false)?;
    let table = |scope: &mut Scope, table: Expr| {
        let mut wanted = scope.dims(&table)?;
        let rank = if node.optional(3).is_some() { 2 } else { 3 };
        if wanted.len() != rank {
            return Err(NodeError::invalid(format!("a table of angles has {} axes, not {rank}", wanted.len())));
        }
        if rank == 3 {
            (wanted[0], wanted[1]) = (shape[0].clone(), shape[2].clone());
        }
        wanted[rank - 1] = half.clone();
        scope.agree(table, &wanted)
    };
    let (cos, sin) = (table(scope, cos)?, table(scope, sin)?);
    let mut args = vec![x, cos, sin];
    if let Some(positions) = node.optional(3) {
        let positions = scope.tensor(positions)?;
        let positions = scope.agree(positions, &[shape[0].clone(), shape[2].clone()])?;
        args.push(scope.cast(positions, DataType::int(64))?);
    }
    let y = scope.te("rotary_embedding", args, |inputs| {
        let (x, cos, sin) = (&inputs[0], &inputs[1], &inputs[2]);
        let row = |table: &te::Tensor, at: &[PrimExpr], i: &PrimExpr| match inputs.get(3) {
            Some(positions) => {
                let place = positions.at(&[at[0].clone(), at[2].clone()]);
                table.at(&[super::computed::clamp(place, 0, &table.shape()[0] - 1), i.clone()])
            }
            None => table.at(&[at[0].clone(), at[2].clone(), i.clone()]),
        };
        vec![te::compute("rotated", &shape, |at| {
            let i = &at[3];
            let element = |i: PrimExpr| x.at(&[at[0].clone(), at[1].clone(), at[2].clone(), i]);
            // An element of a pair and the other one, each times its part of the pair's angle.
            let parts = |pair: &PrimExpr, other: PrimExpr| {
                (element(i.clone()) * row(cos, at, pair), element(other) * row(sin, at, pair))
            };
            let value = if interleaved {
                let second = prim::eq(prim::floormod(i, 2), 1);
                let (own, across) = parts(&prim::floordiv(i, 2), prim::select(second.clone(), i - 1, i + 1));
                prim::select(second, across.clone() + own.clone(), own - across)
            } else {
                // Each half of a row lies side by side.
                let (own, across) = parts(i, i + &half);
                let first = own - across;
                let (own, across) = parts(&(i - &half), i - &half);
                prim::if_then_else(prim::lt(i, &half), first, across + own)
            };
            prim::if_then_else(prim::lt(i, &rotated), prim::cast(dtype, value), element(i.clone()))
        })]
    })?;
    if packed.len() == 4 {
        return one(y);
    }
    let y = scope.transpose(y, &[0, 2, 1, 3])?;
    one(scope.reshape(y, packed)?)
}

/// `CausalConvWithState`: each channel convolved with its own taps over this and earlier positions; what the next call needs
/// of them is the second output.
pub fn causal_conv(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, w) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let taps = match (&scope.dims(&w)?[..], shape.len()) {
        ([_, _, taps], 3) => taps.clone(),
        _ => return Err(NodeError::invalid("the input and the weight need 3 axes")),
    };
    let w = scope.agree(w, &[shape[1].clone(), prim::int(1), taps.clone()])?;
    let mut given = |i: usize, wanted: &[PrimExpr]| match node.optional(i) {
        Some(value) => {
            let tensor = scope.tensor(value)?;
            scope.agree(tensor, wanted).map(Some)
        }
        None => Ok(None),
    };
    let bias = given(2, &shape[1..2])?;
    let past = given(3, &[shape[0].clone(), shape[1].clone(), dims::simplify(&(&taps - 1))])?;
    let (has_bias, has_past) = (bias.is_some(), past.is_some());
    let args: Vec<Expr> = [x, w].into_iter().chain(past).chain(bias).collect();
    let work = if dtype.bits < 32 { DataType::float(32) } else { dtype };
    let kept = dims::simplify(&(&taps - 1));
    let position = |inputs: &[te::Tensor], at: [&PrimExpr; 2], place: PrimExpr| {
        let at = |p: PrimExpr| [at[0].clone(), at[1].clone(), p];
        let now = inputs[0].at(&at(place.clone()));
        let before = if has_past { inputs[2].at(&at(&place + &kept)) } else { prim::constant(dtype, 0.0) };
        prim::if_then_else(prim::ge(&place, 0), now, before)
    };
    let y = scope.te("causal_conv", args.clone(), |inputs| {
        let sums = te::compute("sums", &shape, |at| {
            let k = te::reduce_axis(taps.clone());
            let element = position(inputs, [&at[0], &at[1]], &at[2] + k.var() - &kept);
            let weight = inputs[1].at(&[at[1].clone(), prim::int(0), k.var()]);
            te::sum(prim::cast(work, element) * prim::cast(work, weight), [&k])
        });
        vec![te::compute("conv", &shape, |at| {
            let sum = sums.at(at);
            match inputs.last().filter(|_| has_bias) {
                Some(bias) => prim::cast(dtype, sum + prim::cast(work, bias.at(&at[1..2]))),
                None => prim::cast(dtype, sum),
            }
        })]
    })?;
    let y = match node.str_or("activation", "none")? {
        "none" => y,
        "silu" | "swish" => {
            let gate = scope.call("sigmoid", [y.clone()])?;
            scope.call("multiply", [y, gate])?
        }
        other => return Err(NodeError::invalid(format!("`activation` is \"{other}\""))),
    };
    let rest = [shape[0].clone(), shape[1].clone(), kept.clone()];
    let state = scope.te("conv_state", args, |inputs| {
        vec![te::compute("state", &rest, |at| position(inputs, [&at[0], &at[1]], &at[2] + &shape[2] - &kept))]
    })?;
    Ok(vec![Value::Computed(y), Value::Computed(state)])
}

/// How the state of linear attention follows from the one before.
#[derive(Clone, Copy)]
struct Update {
    /// Whether it decays.
    gated: bool,
    /// Whether what it already gives for a key is taken away first.
    delta: bool,
}

/// What a recurrence is over: extents, and where its inputs are among those of the kernel.
struct Recurrence {
    update: Update,
    work: DataType,
    batch: PrimExpr,
    steps: PrimExpr,
    /// Heads of keys and values.
    heads: i64,
    /// Heads of queries that share one of keys.
    group: i64,
    /// Elements of a key.
    size: PrimExpr,
    /// Elements of a value.
    value_size: PrimExpr,
    scale: f64,
    past: Option<usize>,
    decay: Option<usize>,
    /// Whether each element of a key decays on its own.
    per_key: bool,
    beta: Option<usize>,
    /// Whether all heads have one rate.
    shared_beta: bool,
}

/// `LinearAttention`: a state for each head, to which every position adds the product of its key and its value.
pub fn linear_attention(scope: &mut Scope, node: &Node) -> Outputs {
    let mut args = Vec::new();
    for i in 0..3 {
        args.push(scope.tensor(node.input(i)?)?);
    }
    let dtype = scope.dtype(&args[0]);
    let recurrence = recurrence(scope, node, &mut args)?;
    let r = &recurrence;
    let out = vec![r.batch.clone(), r.steps.clone(), dims::simplify(&(&r.value_size * (r.heads * r.group)))];
    let state = vec![r.batch.clone(), prim::int(r.heads), r.size.clone(), r.value_size.clone()];
    let outs = [
        ("output".to_string(), out, r.work),
        ("state".to_string(), state, r.work),
        ("known".to_string(), vec![r.value_size.clone()], r.work),
    ];
    let result = scope.te("linear_attention", args, |inputs| {
        te::extern_stage("linear_attention", inputs, outs, |source, target| {
            Stmt::each("b", &r.batch, |b| {
                Stmt::each("h", r.heads, |h| Head { r, source, target, b: b.clone(), h: h.clone() }.body())
            })
        })
    })?;
    let mut outputs = Vec::new();
    for i in 0..2 {
        let part = scope.emit(Expr::field(result.clone(), i))?;
        outputs.push(Value::Computed(scope.cast(part, dtype)?));
    }
    Ok(outputs)
}

/// How a step changes the state.
fn update(node: &Node) -> Result<Update, NodeError> {
    match node.str_or("update_rule", "gated_delta")? {
        "linear" => Ok(Update { gated: false, delta: false }),
        "gated" => Ok(Update { gated: true, delta: false }),
        "delta" => Ok(Update { gated: false, delta: true }),
        "gated_delta" => Ok(Update { gated: true, delta: true }),
        other => Err(NodeError::invalid(format!("`update_rule` is \"{other}\""))),
    }
}

/// Reads a node; optional inputs are added to the kernel's.
fn recurrence(scope: &mut Scope, node: &Node, args: &mut Vec<Expr>) -> Result<Recurrence, NodeError> {
    let update = update(node)?;
    let heads = |name: &str| match node.int(name)? {
        Some(n @ 1..) => Ok(n),
        _ => Err(NodeError::invalid(format!("`{name}` must be a positive number"))),
    };
    let (q_heads, heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    if q_heads % heads != 0 {
        return Err(NodeError::invalid(format!("{q_heads} heads of queries are no multiple of {heads}")));
    }
    let dtype = scope.dtype(&args[0]);
    let key = scope.dims(&args[1])?;
    let [batch, steps, width] = key.try_into().map_err(|_| NodeError::invalid("the key needs 3 axes"))?;
    let size = dims::floor_div(&width, &prim::int(heads));
    let value_size = match &scope.dims(&args[2])?[..] {
        [_, _, width] => dims::floor_div(width, &prim::int(heads)),
        _ => return Err(NodeError::invalid("the value needs 3 axes")),
    };
    let scale = match node.float_or("scale", 0.0)? {
        0.0 => 1.0 / size.as_int().map(|n| n as f64).ok_or_else(|| not_fixed("the size of a head"))?.sqrt(),
        scale => scale,
    };
    let rows = |width: PrimExpr| vec![batch.clone(), steps.clone(), width];
    let q_width = dims::simplify(&(&size * q_heads));
    args[0] = scope.agree(args[0].clone(), &rows(q_width))?;
    args[2] = scope.agree(args[2].clone(), &rows(dims::simplify(&(&value_size * heads))))?;
    let mut place = [None; 3];
    for (slot, i) in place.iter_mut().zip([3, 4, 5]) {
        if let Some(value) = node.optional(i) {
            let tensor = scope.tensor(value)?;
            let own = scope.dims(&tensor)?;
            let wanted = match (i, own.last()) {
                (3, _) => vec![batch.clone(), prim::int(heads), size.clone(), value_size.clone()],
                (4, Some(last)) if !dims::equal(last, &prim::int(heads)) => rows(width.clone()),
                (5, Some(last)) if last.is_int(1) => rows(prim::int(1)),
                _ => rows(prim::int(heads)),
            };
            *slot = Some(args.len());
            args.push(scope.agree(tensor, &wanted)?);
        }
    }
    let [past, decay, beta] = place;
    let missing = |name: &str| NodeError::invalid(format!("`{name}` is missing"));
    let last = |scope: &Scope, i: usize| match &scope.dims(&args[i])?[..] {
        [_, _, last] => Ok(last.clone()),
        _ => Err(NodeError::invalid("decay and beta need 3 axes")),
    };
    let per_key = match decay {
        Some(i) => !dims::equal(&last(scope, i)?, &prim::int(heads)),
        None if update.gated => return Err(missing("decay")),
        None => false,
    };
    let shared_beta = match beta {
        Some(i) => last(scope, i)?.is_int(1) && heads > 1,
        None if update.delta => return Err(missing("beta")),
        None => false,
    };
    let work = if dtype.bits < 32 { DataType::float(32) } else { dtype };
    let group = q_heads / heads;
    let (decay, beta) = (decay.filter(|_| update.gated), beta.filter(|_| update.delta));
    Ok(Recurrence {
        update,
        work,
        batch,
        steps,
        heads,
        group,
        size,
        value_size,
        scale,
        past,
        decay,
        per_key,
        beta,
        shared_beta,
    })
}

/// The statements for one head of one example.
struct Head<'a> {
    r: &'a Recurrence,
    source: &'a [Ref<Buffer>],
    target: &'a [Ref<Buffer>],
    b: PrimExpr,
    h: PrimExpr,
}

impl Head<'_> {
    fn number(&self, value: f64) -> PrimExpr {
        prim::constant(self.r.work, value)
    }

    fn read(&self, i: usize, at: &[&PrimExpr]) -> PrimExpr {
        let at: Vec<PrimExpr> = at.iter().map(|e| (*e).clone()).collect();
        prim::cast(self.r.work, prim::load(&self.source[i], at))
    }

    /// Element `j` of this head's part of an input.
    fn part(&self, i: usize, t: &PrimExpr, width: &PrimExpr, j: &PrimExpr) -> PrimExpr {
        self.read(i, &[&self.b, t, &(&self.h * width + j)])
    }

    fn cell(&self, i: &PrimExpr, j: &PrimExpr) -> [PrimExpr; 4] {
        [self.b.clone(), self.h.clone(), i.clone(), j.clone()]
    }

    fn state(&self, i: &PrimExpr, j: &PrimExpr) -> PrimExpr {
        prim::load(&self.target[1], self.cell(i, j))
    }

    fn set_state(&self, i: &PrimExpr, j: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[1], self.cell(i, j), value)
    }

    /// Over all elements of the state.
    fn over(&self, f: impl Fn(&PrimExpr, &PrimExpr) -> Stmt) -> Stmt {
        Stmt::each("i", &self.r.size, |i| Stmt::each("j", &self.r.value_size, |j| f(i, j)))
    }

    fn body(&self) -> Stmt {
        let first = self.over(|i, j| {
            let start = self.r.past.map_or(self.number(0.0), |p| self.read(p, &[&self.b, &self.h, i, j]));
            self.set_state(i, j, start)
        });
        let step = Stmt::each("t", &self.r.steps, |t| Stmt::seq([self.decayed(t), self.updated(t), self.answered(t)]));
        Stmt::seq([first, step])
    }

    fn decayed(&self, t: &PrimExpr) -> Stmt {
        let Some(decay) = self.r.decay else { return Stmt::nop() };
        self.over(|i, j| {
            let own = if self.r.per_key {
                self.part(decay, t, &self.r.size, i)
            } else {
                self.read(decay, &[&self.b, t, &self.h])
            };
            self.set_state(i, j, self.state(i, j) * prim::math("exp", own))
        })
    }

    /// The state with the product of this position's key and value.
    fn updated(&self, t: &PrimExpr) -> Stmt {
        let (r, known) = (self.r, &self.target[2]);
        let key = |i: &PrimExpr| self.part(1, t, &r.size, i);
        let own = |j: &PrimExpr| prim::load(known, [j.clone()]);
        let mut body = Vec::new();
        if r.update.delta {
            body.push(Stmt::each("j", &r.value_size, |j| Stmt::store(known, [j.clone()], self.number(0.0))));
            body.push(self.over(|i, j| Stmt::store(known, [j.clone()], own(j) + self.state(i, j) * key(i))));
        }
        body.push(self.over(|i, j| {
            let mut new = self.part(2, t, &r.value_size, j);
            if let Some(beta) = r.beta {
                let head = if r.shared_beta { prim::int(0) } else { self.h.clone() };
                new = (new - own(j)) * self.read(beta, &[&self.b, t, &head]);
            }
            self.set_state(i, j, self.state(i, j) + key(i) * new)
        }));
        Stmt::seq(body)
    }

    /// What the state gives for this position's queries.
    fn answered(&self, t: &PrimExpr) -> Stmt {
        let (r, output) = (self.r, &self.target[0]);
        Stmt::each("g", r.group, |g| {
            let head = &self.h * r.group + g;
            Stmt::each("j", &r.value_size, |j| {
                let place = [self.b.clone(), t.clone(), &head * &r.value_size + j];
                let sum = Stmt::each("i", &r.size, |i| {
                    let part = self.read(0, &[&self.b, t, &(&head * &r.size + i)]) * self.state(i, j);
                    Stmt::store(output, place.clone(), prim::load(output, place.clone()) + part)
                });
                let scaled = prim::load(output, place.clone()) * self.number(r.scale);
                let clear = Stmt::store(output, place.clone(), self.number(0.0));
                Stmt::seq([clear, sum, Stmt::store(output, place.clone(), scaled)])
            })
        })
    }
}

fn not_fixed(what: &str) -> NodeError {
    NodeError::unsupported(format!("{what} is not fixed")).help("give the input a fixed shape (`shape_dict`)")
}
