//! What operators do with texts.
//!
//! | operators | how |
//! | --- | --- |
//! | those that move elements ([`MOVES`], [`JOINS`]) | their own rule, over the indices |
//! | `Equal`, `Unique` | their own rule, over numbers that are the same where the texts are |
//! | `Cast` from and to texts, `RegexFullMatch` | each text of the table once |
//! | `StringConcat`, `StringNormalizer`, `StringSplit`, `Tokenizer` | a builtin that makes another tensor of texts |
//!
//! Those of `ai.onnx.ml` are in [`crate::ml`].

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Type, Var};
use relaxide_relax::Expr;

use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, Rule, one};
use crate::scope::Scope;
use crate::text::{self, STRING, Table, Texts, builtin, packed};
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// Operators of which the first input's elements are moved and nothing else.
const MOVES: &[&str] = &[
    "ArrayFeatureExtractor",
    "Compress",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Reshape",
    "ReverseSequence",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
];

/// Operators that move elements of several inputs into one tensor.
const JOINS: &[&str] = &["Concat", "Scatter", "ScatterElements", "ScatterND", "Where"];

/// What becomes of a node that only moves texts, compares them, or casts from or to them; `None` where it does none of that.
pub fn moved(scope: &mut Scope, rule: Rule, node: &Node) -> Result<Option<Vec<Value>>> {
    if node.op() == "Cast" && node.proto.domain.is_empty() {
        return cast(scope, node);
    }
    let places: Vec<usize> =
        (0..node.inputs.len()).filter(|&i| matches!(node.optional(i), Some(Value::Texts(_)))).collect();
    if places.is_empty() {
        return Ok(None);
    }
    let texts: Vec<&Texts> = node.inputs.iter().flatten().filter_map(Value::as_texts).collect();
    let with = |scope: &mut Scope, indices: Vec<Expr>| {
        let mut inputs = node.inputs.clone();
        for (place, index) in places.iter().zip(indices) {
            inputs[*place] = Some(Value::Computed(index));
        }
        rule.apply(scope, &Node { proto: node.proto, inputs, opset: node.opset })
    };
    let wrapped = |scope: &mut Scope, value: &Value, table: &Table| {
        Ok(Value::Texts(Texts { index: scope.tensor(value)?, table: table.clone() }))
    };
    match node.op() {
        op if JOINS.contains(&op) => {
            let (indices, table) = Texts::joined(scope, &texts)?;
            let values = with(scope, indices)?;
            values.iter().map(|value| wrapped(scope, value, &table)).collect::<Result<_>>().map(Some)
        }
        op if MOVES.contains(&op) && places == [0] => {
            let values = with(scope, vec![texts[0].index.clone()])?;
            values.iter().map(|value| wrapped(scope, value, &texts[0].table)).collect::<Result<_>>().map(Some)
        }
        "Equal" => {
            let (indices, table) = Texts::joined(scope, &texts)?;
            let ids = table.each(scope, "relaxide.vm.text_ids", Vec::new(), DataType::int(64))?;
            let mut numbers = Vec::new();
            for index in indices {
                numbers.push(text::look_up(scope, ids.clone(), index)?);
            }
            with(scope, numbers).map(Some)
        }
        "Unique" => {
            let (ranks, table) = ranked(scope, texts[0])?;
            let mut values = with(scope, vec![ranks])?;
            if let Some(first) = values.first_mut() {
                *first = wrapped(scope, first, &table)?;
            }
            Ok(Some(values))
        }
        _ => Ok(None),
    }
}

/// Numbers that are in the order of the texts, and the texts that they are places of.
fn ranked(scope: &mut Scope, texts: &Texts) -> Result<(Expr, Table)> {
    let int = DataType::int(64);
    let ty = Type::tuple([Type::any(), Type::tensor_ndim(1, int)]);
    let both = builtin(scope, "relaxide.vm.text_ranks", vec![texts.table.argument()?], ty)?;
    let sorted = scope.emit(Expr::field(both.clone(), 0))?;
    let ranks = scope.emit(Expr::field(both, 1))?;
    let ranks = scope.bind_type(ranks, Type::tensor([texts.table.count()], int))?;
    let shape = builtin(scope, "relaxide.vm.text_shape", vec![sorted.clone()], Type::shape_ndim(1))?;
    let count = PrimExpr::Var(Var::dim("texts"));
    scope.bind_type(shape, Type::shape([count.clone()]))?;
    Ok((texts.spread(scope, ranks)?, Table::Made(sorted, count)))
}

/// `Cast` where either side is texts.
fn cast(scope: &mut Scope, node: &Node) -> Result<Option<Vec<Value>>> {
    let to = node.int("to")?;
    let Some(Value::Texts(texts)) = node.optional(0) else {
        if to != Some(STRING) {
            return Ok(None);
        }
        let x = scope.tensor(node.input(0)?)?;
        let dims = scope.dims(&x)?;
        let made = builtin(scope, "relaxide.vm.text_of_numbers", vec![x], Type::any())?;
        let texts = Texts::unpack(scope, made, dims.into_iter().map(Some).collect())?;
        return Ok(Some(vec![Value::Texts(texts)]));
    };
    let Some(to) = to.filter(|to| *to != STRING) else {
        return Ok(Some(vec![Value::Texts(texts.clone())]));
    };
    let dtype = constant::dtype_of(to).map_err(|e| NodeError::unsupported(e.to_string()))?;
    let numbers = texts.table.each(scope, "relaxide.vm.text_numbers", vec![Expr::dtype(dtype)], dtype)?;
    Ok(Some(vec![Value::Computed(texts.spread(scope, numbers)?)]))
}

/// An input that must be texts.
pub fn input<'n>(node: &'n Node, i: usize) -> Result<&'n Texts> {
    match node.input(i)? {
        Value::Texts(texts) => Ok(texts),
        _ => Err(NodeError::invalid(format!("input {i} is not a tensor of texts"))),
    }
}

/// The first input as integers: numbers as they are, texts as their places among words.
pub fn items(scope: &mut Scope, node: &Node, words: Option<&[String]>) -> Result<Expr> {
    match words {
        Some(words) => {
            let texts = input(node, 0)?;
            let places = texts.table.places(scope, words)?;
            texts.spread(scope, places)
        }
        None => {
            let x = scope.tensor(node.input(0)?)?;
            scope.cast(x, DataType::int(64))
        }
    }
}

fn made(texts: Texts) -> Outputs {
    Ok(vec![Value::Texts(texts)])
}

fn known(dims: Vec<PrimExpr>) -> Vec<Option<PrimExpr>> {
    dims.into_iter().map(Some).collect()
}

/// `StringConcat`: texts behind texts, broadcast.
pub fn concat(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (input(node, 0)?, input(node, 1)?);
    // Places of both in the shape of both.
    let mut both = Vec::new();
    for (own, other) in [(a, b), (b, a)] {
        let nothing = with_number(scope, "multiply", other.index.clone(), 0.0)?;
        let index = broadcast_call(scope, "add", [own.index.clone(), nothing])?;
        both.push(Texts { index, table: own.table.clone() });
    }
    let dims = both[0].dims(scope)?;
    let args = both.iter().map(|texts| texts.object(scope)).collect::<Result<Vec<_>>>()?;
    let texts = builtin(scope, "relaxide.vm.text_appended", args, Type::any())?;
    made(Texts::unpack(scope, texts, known(dims))?)
}

/// `RegexFullMatch`: whether the whole of each text matches.
pub fn full_match(scope: &mut Scope, node: &Node) -> Outputs {
    let texts = input(node, 0)?;
    let pattern = pattern(node.str_or("pattern", "")?)?;
    let truths = texts.table.each(scope, "relaxide.vm.text_matches", vec![pattern], DataType::bool())?;
    one(texts.spread(scope, truths)?)
}

/// A pattern, which must be one that the virtual machine reads.
fn pattern(text: &str) -> Result<Expr> {
    let read = regex_lite::Regex::new(text);
    let why = |e| NodeError::unsupported(format!("the pattern {text:?} is not supported: {e}"));
    read.map_err(why).map(|_| Expr::string(text))
}

/// `StringNormalizer`: another case, and without stop words.
pub fn normalize(scope: &mut Scope, node: &Node) -> Outputs {
    let texts = input(node, 0)?;
    let case = node.str_or("case_change_action", "NONE")?;
    if !matches!(case, "NONE" | "LOWER" | "UPPER") {
        return Err(NodeError::invalid(format!("`case_change_action` is \"{case}\"")));
    }
    let stops = text::attribute(node, "stopwords")?.unwrap_or_default();
    let mut dims = known(texts.dims(scope)?);
    if !matches!(dims.len(), 1 | 2) {
        return Err(NodeError::invalid(format!("the input has {} axes, not 1 or 2", dims.len())));
    }
    if !stops.is_empty()
        && let Some(last) = dims.last_mut()
    {
        *last = None;
    }
    let sensitive = Expr::prim(prim::boolean(node.flag("is_case_sensitive", false)?));
    let args = vec![texts.object(scope)?, Expr::string(case), sensitive, packed(&stops)?];
    let texts = builtin(scope, "relaxide.vm.text_normalized", args, Type::any())?;
    made(Texts::unpack(scope, texts, dims)?)
}

/// `StringSplit`: the parts of each text, and how many there are.
pub fn split(scope: &mut Scope, node: &Node) -> Outputs {
    let texts = input(node, 0)?;
    let most = node.int("maxsplit")?.unwrap_or(i64::from(i32::MAX)).max(0);
    let dims = texts.dims(scope)?;
    let int = DataType::int(64);
    let args = vec![texts.object(scope)?, Expr::string(node.str_or("delimiter", "")?), Expr::prim(prim::int(most))];
    let ty = Type::tuple([Type::any(), Type::tensor_ndim(dims.len() as i64, int)]);
    let both = builtin(scope, "relaxide.vm.text_split", args, ty)?;
    let parts = scope.emit(Expr::field(both.clone(), 0))?;
    let counts = scope.emit(Expr::field(both, 1))?;
    let counts = scope.bind_type(counts, Type::tensor(dims.iter().cloned(), int))?;
    let mut open = known(dims);
    open.push(None);
    Ok(vec![Value::Texts(Texts::unpack(scope, parts, open)?), Value::Computed(counts)])
}

/// `Tokenizer` of ONNX Runtime.
pub fn tokenize(scope: &mut Scope, node: &Node) -> Outputs {
    let texts = input(node, 0)?;
    let mark = Expr::prim(prim::boolean(node.flag("mark", false)?));
    let least = Expr::prim(prim::int(node.int_or("mincharnum", 1)?.max(1)));
    let token = node.str_or("tokenexp", "")?;
    let separators = text::attribute(node, "separators")?.unwrap_or_default();
    if token.is_empty() && separators.is_empty() {
        return Err(NodeError::invalid("it has neither `separators` nor `tokenexp`"));
    }
    let mut args =
        vec![texts.object(scope)?, mark, least, Expr::string(node.str_or("pad_value", "")?), pattern(token)?];
    args.extend(separators.iter().map(|text| pattern(text)).collect::<Result<Vec<_>>>()?);
    let mut open = known(texts.dims(scope)?);
    open.push(None);
    let tokens = builtin(scope, "relaxide.vm.text_tokens", args, Type::any())?;
    made(Texts::unpack(scope, tokens, open)?)
}
