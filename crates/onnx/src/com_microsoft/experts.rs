//! `MoE` and `QMoE`: mixtures of experts. Of each row of the input, some experts that a router prefers each make two
//! products with an activation between them; the results are added up with the router's weights.
//!
//! ```text
//! e       = chosen[t, j]                                   the j-th best expert of row t
//! h[t, j] = activation(fc1[e] · x[t] + fc1_bias[e])        perhaps times (fc3[e] · x[t] + fc3_bias[e])
//! y[t]    = sum of weights[t, j] * (fc2[e] · h[t, j] + fc2_bias[e])
//! ```
//!
//! A product reads the weights of the chosen experts where they are, packed if they are: neither are they copied, nor does
//! anyone compute what no row has chosen. Sums are in float32.
//!
//! Not here: weights of floats below 16 bits and those that are packed for one device, routers that choose otherwise
//! (`use_sparse_mixer`, `num_shared_experts`).

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::attention::optional;
use super::packed::Fields;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, clip_between, with_number};
use crate::ops::{Outputs, one, order};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

const REAL: DataType = DataType::float(32);

/// `MoE`.
pub fn mixture(scope: &mut Scope, node: &Node) -> Outputs {
    let tokens = Tokens::of(scope, node)?;
    let first = Layer::plain(scope, node, 2)?;
    let second = Layer::plain(scope, node, 4)?;
    let third = node.optional(6).map(|_| Layer::plain(scope, node, 6)).transpose()?;
    let router = tokens.router(scope, node, 1, &first)?;
    let shares = softmax(scope, router)?;
    let [mut weights, chosen] = best(scope, node, shares)?;
    if node.flag("normalize_routing_weights", false)? {
        weights = normalized(scope, weights)?;
    }
    tokens.mixed(scope, node, Chosen { experts: chosen, weights }, [Some(first), Some(second), third])
}

/// `QMoE`.
pub fn quantized(scope: &mut Scope, node: &Node) -> Outputs {
    refuse_what_is_missing(node)?;
    let tokens = Tokens::of(scope, node)?;
    let first = Layer::packed(scope, node, 1)?;
    let second = Layer::packed(scope, node, 2)?;
    let third = node.optional(8).map(|_| Layer::packed(scope, node, 3)).transpose()?;
    let router = tokens.router(scope, node, 1, &first)?;
    let [logits, chosen] = best(scope, node, router)?;
    let weights = match node.optional(14) {
        None => softmax(scope, logits)?,
        Some(_) => {
            let all = tokens.router(scope, node, 14, &first)?;
            let of_chosen = at_chosen(scope, all, chosen.clone())?;
            let weights = match node.flag("normalize_routing_weights", false)? {
                true => normalized(scope, of_chosen)?,
                false => of_chosen,
            };
            positive(scope, weights)?
        }
    };
    tokens.mixed(scope, node, Chosen { experts: chosen, weights }, [Some(first), Some(second), third])
}

fn refuse_what_is_missing(node: &Node) -> Result<()> {
    match node.str_or("quant_type", "int")? {
        "int" => {}
        other => return Err(NodeError::unsupported(format!("`quant_type` = {other} is not supported, only int"))),
    }
    if node.int_or("weights_prepacked", -1)? == 1 {
        return Err(NodeError::unsupported(
            "weights that are packed for one device (`weights_prepacked` = 1) are not supported",
        )
        .help("export the model with `weights_prepacked` = 0"));
    }
    match (15..node.inputs.len()).find(|i| node.optional(*i).is_some()) {
        Some(i) => Err(NodeError::invalid(format!("input {i} is a scale of floats, but the weights are integers"))),
        None => Ok(()),
    }
}

/// The rows that experts work on.
struct Tokens {
    /// `[rows, width]`.
    x: Expr,
    rows: PrimExpr,
    dtype: DataType,
    /// Dimensions of the input, which the output has too.
    dims: Vec<PrimExpr>,
}

/// How many experts a row has.
fn count(node: &Node) -> Result<i64> {
    match node.int_or("k", 1)? {
        k @ 1.. => Ok(k),
        k => Err(NodeError::invalid(format!("`k` is {k}, but at least one expert is needed"))),
    }
}

fn softmax(scope: &mut Scope, x: Expr) -> Result<Expr> {
    scope.op("nn.softmax", [x], Attrs::new().with("axis", -1i64))
}

/// The best experts of each row, what they are rated and which they are.
fn best(scope: &mut Scope, node: &Node, rated: Expr) -> Result<[Expr; 2]> {
    order::top(scope, rated, 1, prim::int(count(node)?), true)
}

/// Weights that add up to 1.
fn normalized(scope: &mut Scope, weights: Expr) -> Result<Expr> {
    let total = scope.op("sum", [weights.clone()], Attrs::new().with("axis", vec![1i64]).with("keepdims", true))?;
    broadcast_call(scope, "divide", [weights, total])
}

/// Weights above nothing; an expert with another takes no part, nor does any where all weights together are zero.
fn positive(scope: &mut Scope, weights: Expr) -> Result<Expr> {
    let part = with_number(scope, "greater", weights.clone(), 1e-8)?;
    let finite = scope.call("isfinite", [weights.clone()])?;
    let part = scope.call("logical_and", [part, finite])?;
    let zero = scope.scalar(0.0, REAL)?;
    scope.call("where", [part, weights, zero])
}

/// Of each row of a matrix, the elements of the chosen columns.
fn at_chosen(scope: &mut Scope, all: Expr, chosen: Expr) -> Result<Expr> {
    let shape = scope.dims(&chosen)?;
    scope.te("at_chosen", vec![all, chosen], |inputs| {
        vec![te::compute("at_chosen", shape, |at: &[PrimExpr]| inputs[0].at(&[at[0].clone(), inputs[1].at(at)]))]
    })
}

impl Tokens {
    fn of(scope: &mut Scope, node: &Node) -> Result<Tokens> {
        node.only_int("use_sparse_mixer", 0)?;
        node.only_int("num_shared_experts", 0)?;
        let x = scope.tensor(node.input(0)?)?;
        let (dims, dtype) = (scope.dims(&x)?, scope.dtype(&x));
        let [front @ .., width] = &dims[..] else { return Err(NodeError::invalid("the input has no axes")) };
        if !(1..=2).contains(&front.len()) {
            return Err(NodeError::invalid(format!("the input has {} axes, not 2 or 3", dims.len())));
        }
        let rows = dims::product(front);
        let x = scope.reshape(x, vec![rows.clone(), width.clone()])?;
        let x = scope.cast(x, REAL)?;
        Ok(Tokens { x, rows, dtype, dims })
    }

    /// A matrix with a row for each of these rows and a column for each expert.
    fn router(&self, scope: &mut Scope, node: &Node, i: usize, layer: &Layer) -> Result<Expr> {
        let router = scope.tensor(node.input(i)?)?;
        let router = scope.agree(router, &[self.rows.clone(), layer.experts.clone()])?;
        scope.cast(router, REAL)
    }

    /// What the chosen experts make of the rows, added up.
    fn mixed(self, scope: &mut Scope, node: &Node, chosen: Chosen, layers: [Option<Layer>; 3]) -> Outputs {
        let [Some(first), Some(second), third] = layers else { return Err(NodeError::invalid("a layer is missing")) };
        let Chosen { experts: chosen, weights } = chosen;
        let hidden = first.product(scope, self.x.clone(), chosen.clone())?;
        let hidden = match third {
            None => activated(scope, node, hidden)?,
            Some(third) => {
                let beside = third.product(scope, self.x, chosen.clone())?;
                gated(scope, node, hidden, beside)?
            }
        };
        let parts = second.product(scope, hidden, chosen)?;
        let k = count(node)?;
        let shape = [self.rows, second.rows.clone()];
        let mixed = scope.te("mixed", vec![parts, weights], |inputs| {
            vec![te::compute("mixed", shape, |at: &[PrimExpr]| {
                let j = te::reduce_axis(k);
                let part = inputs[0].at(&[at[0].clone(), j.var(), at[1].clone()]);
                te::sum(part * inputs[1].at(&[at[0].clone(), j.var()]), [&j])
            })]
        })?;
        let mixed = scope.cast(mixed, self.dtype)?;
        one(scope.reshape(mixed, self.dims)?)
    }
}

/// The experts of each row, and what each counts.
struct Chosen {
    experts: Expr,
    weights: Expr,
}

/// The weights of a layer of all experts: `[experts, rows, columns]`.
struct Layer {
    weight: Weight,
    bias: Option<Expr>,
    experts: PrimExpr,
    rows: PrimExpr,
    columns: PrimExpr,
}

/// Where the elements of a layer come from.
enum Weight {
    Plain(Expr),
    Packed {
        fields: Fields,
        packed: Expr,
        scales: Expr,
        /// Numbers that stand for zero, laid out as the scales are, but packed.
        zeros: Option<Expr>,
        /// How many columns share a scale; all where there is no number.
        block: Option<i64>,
    },
}

fn three(dims: &[PrimExpr], i: usize) -> Result<[PrimExpr; 3]> {
    let dims = <[PrimExpr; 3]>::try_from(dims.to_vec());
    dims.map_err(|dims| NodeError::invalid(format!("the weights in input {i} have {} axes, not 3", dims.len())))
}

impl Layer {
    /// Numbers in input `i`, their bias behind them.
    fn plain(scope: &mut Scope, node: &Node, i: usize) -> Result<Layer> {
        let weight = scope.tensor(node.input(i)?)?;
        let [experts, rows, columns] = three(&scope.dims(&weight)?, i)?;
        let bias = Layer::bias(scope, node, i + 1, &[experts.clone(), rows.clone()])?;
        Ok(Layer { weight: Weight::Plain(weight), bias, experts, rows, columns })
    }

    /// Layer `which` of `QMoE`, counted from 1: packed numbers, their scales and bias, and far behind their zeros.
    fn packed(scope: &mut Scope, node: &Node, which: usize) -> Result<Layer> {
        let i = 3 * which - 1;
        let bits = match node.int(&format!("fc{which}_expert_weight_bits"))? {
            Some(bits) => bits,
            None => node.int_or("expert_weight_bits", 4)?,
        };
        let fields = Fields::of(bits)?;
        let packed = scope.tensor(node.input(i)?)?;
        if scope.dtype(&packed) != DataType::uint(8) {
            let dtype = scope.dtype(&packed);
            return Err(NodeError::unsupported(format!("weights of {dtype} are not supported, only packed bytes")));
        }
        let [experts, rows, bytes] = three(&scope.dims(&packed)?, i)?;
        let columns = dims::simplify(&(bytes * fields.per_byte()));
        let block = node.int("block_size")?.filter(|size| *size > 0);
        let up = |n: &PrimExpr, size: i64| dims::floor_div(&(n + (size - 1)), &prim::int(size));
        let mut shape = vec![experts.clone(), rows.clone()];
        shape.extend(block.map(|size| up(&columns, size)));
        let scales = scope.tensor(node.input(i + 1)?)?;
        let scales = scope.agree(scales, &shape)?;
        let zeros = match optional(scope, node, 10 + which)? {
            Some(zeros) => {
                if let Some(last) = shape.last_mut() {
                    *last = up(last, fields.per_byte());
                }
                Some(scope.agree(zeros, &shape)?)
            }
            None => None,
        };
        let bias = Layer::bias(scope, node, i + 2, &[experts.clone(), rows.clone()])?;
        Ok(Layer { weight: Weight::Packed { fields, packed, scales, zeros, block }, bias, experts, rows, columns })
    }

    fn bias(scope: &mut Scope, node: &Node, i: usize, shape: &[PrimExpr]) -> Result<Option<Expr>> {
        optional(scope, node, i)?.map(|bias| scope.agree(bias, shape)).transpose()
    }

    /// `[rows, k, columns]` from the chosen experts, of rows of an input or of what another layer made of them.
    fn product(&self, scope: &mut Scope, x: Expr, chosen: Expr) -> Result<Expr> {
        let mut dims = scope.dims(&x)?;
        let apart = dims.len() == 3;
        if let Some(last) = dims.last_mut() {
            *last = self.columns.clone();
        }
        let x = scope.agree(x, &dims)?;
        let [rows, k] = <[PrimExpr; 2]>::try_from(scope.dims(&chosen)?)
            .map_err(|_| NodeError::invalid("the chosen experts are not a matrix"))?;
        let shape = [rows, k, self.rows.clone()];
        let mut args = vec![x, chosen.clone()];
        args.extend(self.weight.args());
        let sums = scope.te("experts", args, |inputs| {
            let (x, chosen, weight) = (&inputs[0], &inputs[1], &inputs[2..]);
            vec![te::compute("experts", shape.clone(), |at: &[PrimExpr]| {
                let column = te::reduce_axis(self.columns.clone());
                let place = [chosen.at(&at[..2]), at[2].clone(), column.var()];
                let x = match apart {
                    true => x.at(&[at[0].clone(), at[1].clone(), column.var()]),
                    false => x.at(&[at[0].clone(), column.var()]),
                };
                te::sum(x * self.weight.read(weight, &place), [&column])
            })]
        })?;
        let Some(bias) = self.bias.clone() else { return Ok(sums) };
        scope.te("biased", vec![sums, chosen, bias], |inputs| {
            vec![te::compute("biased", shape, |at: &[PrimExpr]| {
                let bias = inputs[2].at(&[inputs[1].at(&at[..2]), at[2].clone()]);
                inputs[0].at(at) + prim::cast(REAL, bias)
            })]
        })
    }
}

impl Weight {
    fn args(&self) -> Vec<Expr> {
        match self {
            Weight::Plain(weight) => vec![weight.clone()],
            Weight::Packed { packed, scales, zeros, .. } => {
                [packed, scales].into_iter().chain(zeros.as_ref()).cloned().collect()
            }
        }
    }

    /// The element for an expert, row and column.
    fn read(&self, inputs: &[te::Tensor], place: &[PrimExpr; 3]) -> PrimExpr {
        let Weight::Packed { fields, block, .. } = self else { return prim::cast(REAL, inputs[0].at(place)) };
        let mut scale = place[..2].to_vec();
        scale.extend(block.map(|size| prim::floordiv(&place[2], prim::int(size))));
        let zero = match inputs.get(2) {
            Some(zeros) => prim::cast(REAL, fields.read(zeros, &scale)),
            None => prim::constant(REAL, fields.middle()),
        };
        (prim::cast(REAL, fields.read(&inputs[0], place)) - zero) * prim::cast(REAL, inputs[1].at(&scale))
    }
}

/// The activation of a layer, which may take two halves of it.
fn activated(scope: &mut Scope, node: &Node, x: Expr) -> Result<Expr> {
    let name = node.str_or("activation_type", "relu")?;
    if !matches!(name, "swiglu" | "geglu") {
        return simple(scope, name, x);
    }
    match node.int_or("swiglu_fusion", 0)? {
        fusion @ (1 | 2) => {
            let (gate, up) = (half(scope, x.clone(), 0, fusion == 1)?, half(scope, x, 1, fusion == 1)?);
            gated(scope, node, gate, up)
        }
        0 => Err(NodeError::invalid(format!("`{name}` without `swiglu_fusion` needs a third layer, which is missing"))),
        other => Err(NodeError::invalid(format!("`swiglu_fusion` is {other}, not 0, 1 or 2"))),
    }
}

fn simple(scope: &mut Scope, name: &str, x: Expr) -> Result<Expr> {
    match name {
        "identity" => Ok(x),
        "relu" => scope.call("nn.relu", [x]),
        "gelu" => scope.call("nn.gelu_tanh", [x]),
        "silu" => scope.call("nn.silu", [x]),
        other => Err(NodeError::unsupported(format!("the activation `{other}` is not supported"))),
    }
}

/// Every second column, or the columns of one half.
fn half(scope: &mut Scope, x: Expr, which: i64, interleaved: bool) -> Result<Expr> {
    let mut shape = scope.dims(&x)?;
    let Some(last) = shape.last_mut() else { return Err(NodeError::invalid("a layer has no axes")) };
    *last = dims::floor_div(last, &prim::int(2));
    let width = last.clone();
    scope.te("half", vec![x], |inputs| {
        vec![te::compute("half", shape, |at: &[PrimExpr]| {
            let column = if interleaved { &at[2] * 2 + which } else { &at[2] + &width * which };
            inputs[0].at(&[at[0].clone(), at[1].clone(), column])
        })]
    })
}

/// One half through the activation, times the other. `swiglu` is `gate * sigmoid(alpha * gate) * (up + beta)`, both kept
/// within a limit.
fn gated(scope: &mut Scope, node: &Node, gate: Expr, up: Expr) -> Result<Expr> {
    let gate = match node.str_or("activation_type", "relu")? {
        "swiglu" => return swiglu(scope, node, gate, up),
        "geglu" => simple(scope, "gelu", gate)?,
        name => simple(scope, name, gate)?,
    };
    scope.call("multiply", [gate, up])
}

fn swiglu(scope: &mut Scope, node: &Node, mut gate: Expr, mut up: Expr) -> Result<Expr> {
    let limit = node.float("swiglu_limit")?;
    let behind = node.flag("swiglu_limit_after_activation", false)?;
    if let Some(limit) = limit {
        up = clip_between(scope, up, Some(-limit), Some(limit))?;
        if !behind {
            gate = with_number(scope, "minimum", gate, limit)?;
        }
    }
    let inner = with_number(scope, "multiply", gate.clone(), node.float_or("activation_alpha", 1.0)?)?;
    let share = scope.call("sigmoid", [inner])?;
    let mut swish = scope.call("multiply", [gate, share])?;
    if let (Some(limit), true) = (limit, behind) {
        swish = with_number(scope, "minimum", swish, limit)?;
    }
    let up = with_number(scope, "add", up, node.float_or("activation_beta", 0.0)?)?;
    scope.call("multiply", [swish, up])
}
