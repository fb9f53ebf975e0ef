//! Operators of language models beside attention: rotary positions, linear attention, convolutions that remember.

use relaxide_ffi::DataType;
use relaxide_ir::Var;
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

/// `RotaryEmbedding`: pairs of elements turned by angles that depend on the position.
pub fn embedding(scope: &mut Scope, node: &Node) -> Outputs {
    let packed = scope.value_dims(node.input(0)?)?;
    let x = by_head(scope, node, 0, node.int("num_heads")?)?;
    let (cos, sin) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let turned = match node.int_or("rotary_embedding_dim", 0)? {
        n @ 1.. => prim::int(n),
        0 => shape[3].clone(),
        n => return Err(NodeError::invalid(format!("`rotary_embedding_dim` is {n}"))),
    };
    let half = dims::floor_div(&turned, &prim::int(2));
    let interleaved = node.flag("interleaved", false)?;
    let mut args = vec![x, cos, sin];
    if let Some(positions) = node.optional(3) {
        let positions = scope.tensor(positions)?;
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
            // Which pair an element belongs to, whether it is the second of it, and where the other one is.
            let (pair, second, other) = if interleaved {
                let second = prim::eq(prim::floormod(i, 2), 1);
                (prim::floordiv(i, 2), second.clone(), prim::select(second, i - 1, i + 1))
            } else {
                let second = prim::ge(i, &half);
                let pair = prim::select(second.clone(), i - &half, i.clone());
                (pair, second.clone(), prim::select(second, i - &half, i + &half))
            };
            let inside = prim::lt(i, &turned);
            let (c, s) = (row(cos, at, &pair), row(sin, at, &pair));
            let own = element(i.clone()) * c;
            let across = element(other) * s;
            let turned = prim::select(second, across.clone() + own.clone(), own - across);
            prim::if_then_else(inside, prim::cast(dtype, turned), element(i.clone()))
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
    let bias = node.optional(2).map(|v| scope.tensor(v)).transpose()?;
    let past = node.optional(3).map(|v| scope.tensor(v)).transpose()?;
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

/// `LinearAttention`: a state for each head, to which every position adds the product of its key and its value.
pub fn linear_attention(scope: &mut Scope, node: &Node) -> Outputs {
    let update = match node.str_or("update_rule", "gated_delta")? {
        "linear" => Update { gated: false, delta: false },
        "gated" => Update { gated: true, delta: false },
        "delta" => Update { gated: false, delta: true },
        "gated_delta" => Update { gated: true, delta: true },
        other => return Err(NodeError::invalid(format!("`update_rule` is \"{other}\""))),
    };
    let heads = |name: &str| match node.int(name)? {
        Some(n @ 1..) => Ok(n),
        _ => Err(NodeError::invalid(format!("`{name}` must be a positive number"))),
    };
    let (q_heads, heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    if q_heads % heads != 0 {
        return Err(NodeError::invalid(format!("{q_heads} heads of queries are no multiple of {heads}")));
    }
    let mut args = Vec::new();
    for i in 0..3 {
        args.push(scope.tensor(node.input(i)?)?);
    }
    let dtype = scope.dtype(&args[0]);
    let work = if dtype.bits < 32 { DataType::float(32) } else { dtype };
    let key = scope.dims(&args[1])?;
    let [batch, steps, width] = key.try_into().map_err(|_| NodeError::invalid("the key needs 3 axes"))?;
    let size = dims::floor_div(&width, &prim::int(heads));
    let value_size = dims::floor_div(&scope.dims(&args[2])?[2], &prim::int(heads));
    let scale = match node.float_or("scale", 0.0)? {
        0.0 => 1.0 / size.as_int().map(|n| n as f64).ok_or_else(|| not_fixed("the size of a head"))?.sqrt(),
        scale => scale,
    };
    let mut place = [None; 3];
    for (slot, i) in place.iter_mut().zip([3, 4, 5]) {
        if let Some(value) = node.optional(i) {
            *slot = Some(args.len());
            args.push(scope.tensor(value)?);
        }
    }
    let [past, decay, beta] = place;
    let missing = |name: &str| NodeError::invalid(format!("`{name}` is missing"));
    let per_key = match decay {
        Some(i) => !dims::equal(&scope.dims(&args[i])?[2], &prim::int(heads)),
        None if update.gated => return Err(missing("decay")),
        None => false,
    };
    let shared_beta = match beta {
        Some(i) => scope.dims(&args[i])?[2].is_int(1) && heads > 1,
        None if update.delta => return Err(missing("beta")),
        None => false,
    };
    let group = q_heads / heads;
    let out = vec![batch.clone(), steps.clone(), dims::simplify(&(&value_size * q_heads))];
    let state = vec![batch.clone(), prim::int(heads), size.clone(), value_size.clone()];
    let outs = [
        ("output".to_string(), out.clone(), work),
        ("state".to_string(), state, work),
        ("known".to_string(), vec![value_size.clone()], work),
    ];
    let result = scope.te("linear_attention", args, |inputs| {
        te::extern_stage("linear_attention", inputs, outs, |source, target| {
            let (output, state, known) = (&target[0], &target[1], &target[2]);
            let read = |i: usize, at: &[&PrimExpr]| {
                prim::cast(work, prim::load(&source[i], at.iter().map(|e| (*e).clone()).collect::<Vec<_>>()))
            };
            each("b", &batch, |b| {
                each("h", &prim::int(heads), |h| {
                    let cell = |i: &PrimExpr, j: &PrimExpr| [b.clone(), h.clone(), i.clone(), j.clone()];
                    let over = |f: &dyn Fn(&PrimExpr, &PrimExpr) -> Stmt| {
                        each("i", &size, |i| each("j", &value_size, |j| f(i, j)))
                    };
                    let first = over(&|i, j| {
                        let start = past.map_or(prim::constant(work, 0.0), |p| read(p, &[b, h, i, j]));
                        Stmt::store(state, cell(i, j), start)
                    });
                    let step = each("t", &steps, |t| {
                        let at = |i: usize, width: &PrimExpr, j: &PrimExpr| read(i, &[b, t, &(h * width + j)]);
                        let mut body = Vec::new();
                        if let Some(decay) = decay.filter(|_| update.gated) {
                            body.push(over(&|i, j| {
                                let own = if per_key { at(decay, &size, i) } else { read(decay, &[b, t, h]) };
                                let kept = prim::load(state, cell(i, j)) * prim::math("exp", own);
                                Stmt::store(state, cell(i, j), kept)
                            }));
                        }
                        if update.delta {
                            body.push(each("j", &value_size, |j| {
                                Stmt::store(known, [j.clone()], prim::constant(work, 0.0))
                            }));
                            body.push(over(&|i, j| {
                                let part = prim::load(state, cell(i, j)) * at(1, &size, i);
                                Stmt::store(known, [j.clone()], prim::load(known, [j.clone()]) + part)
                            }));
                        }
                        body.push(over(&|i, j| {
                            let mut new = at(2, &value_size, j);
                            if let Some(beta) = beta.filter(|_| update.delta) {
                                let head = if shared_beta { prim::int(0) } else { h.clone() };
                                new = (new - prim::load(known, [j.clone()])) * read(beta, &[b, t, &head]);
                            }
                            Stmt::store(state, cell(i, j), prim::load(state, cell(i, j)) + at(1, &size, i) * new)
                        }));
                        body.push(each("g", &prim::int(group), |g| {
                            let head = h * group + g;
                            let place = |j: &PrimExpr| [b.clone(), t.clone(), &head * &value_size + j];
                            each("j", &value_size, |j| {
                                let clear = Stmt::store(output, place(j), prim::constant(work, 0.0));
                                let sum = each("i", &size, |i| {
                                    let part = read(0, &[b, t, &(&head * &size + i)]) * prim::load(state, cell(i, j));
                                    Stmt::store(output, place(j), prim::load(output, place(j)) + part)
                                });
                                let scaled = prim::load(output, place(j)) * prim::constant(work, scale);
                                Stmt::seq([clear, sum, Stmt::store(output, place(j), scaled)])
                            })
                        }));
                        Stmt::seq(body)
                    });
                    Stmt::seq([first, step])
                })
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

fn not_fixed(what: &str) -> NodeError {
    NodeError::unsupported(format!("{what} is not fixed")).help("give the input a fixed shape (`shape_dict`)")
}

/// A loop over `0 .. extent`.
fn each(name: &str, extent: &PrimExpr, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
    let var = Var::dim(name);
    let at = PrimExpr::from(&var);
    Stmt::serial(var, extent.clone(), body(&at))
}
