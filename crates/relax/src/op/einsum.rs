//! Sums of products by index notation.

use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::te;

use super::*;

/// The rows.
pub static TABLE: &[OpDef] = &[OpDef {
    name: "einsum",
    doc: "Einstein's notation: letters name dimensions of the operands; those that the result lacks are summed over. \
          Without an arrow the result has the letters that occur once, in alphabetical order. `...` stands for any \
          further dimensions, which are broadcast.",
    args: &[ArgDef::tensors("operands", "The factors.")],
    attrs: &[AttrDef::new("subscripts", AttrKind::Str, AttrDefault::Required, "The notation, as `ij,jk->ik`.")],
    infer,
    lengths: letters_agree,
    lower: Lowering::Compute(lower),
    pattern: OpPattern::OutFusable,
    ..OpDef::BASE
}];

/// The letters of each operand and of the result.
struct Notation {
    operands: Vec<Vec<char>>,
    result: Vec<char>,
}

/// The first of the names that stand for the dimensions behind `...`, counted from the last one.
const ELLIPSIS: u32 = 0xE000;

/// Reads the notation, given how many dimensions each operand has.
fn notation(cx: &CallCx, ranks: &[usize]) -> Result<Notation, OpError> {
    let text: String = cx.str("subscripts")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left.to_string(), Some(right.to_string())),
        None => (text, None),
    };
    let parts: Vec<&str> = left.split(',').collect();
    if parts.len() != ranks.len() {
        return cx.invalid(format!("{} operands come with subscripts for {}", ranks.len(), parts.len()));
    }
    let mut most = 0;
    let mut operands = Vec::with_capacity(parts.len());
    for (part, rank) in parts.iter().zip(ranks) {
        let letters = part.chars().filter(|c| *c != '.').count();
        let Some(further) = rank.checked_sub(letters).filter(|n| *n == 0 || part.contains("...")) else {
            return cx.invalid(format!("an operand has {rank} dimensions, its subscripts {letters}"));
        };
        most = most.max(further);
        operands.push(expanded(cx, part, further)?);
    }
    let letters = || operands.iter().flatten().copied();
    let result: Vec<char> = match right {
        Some(right) => expanded(cx, &right, most)?,
        None => {
            let mut once: Vec<char> = letters().filter(|c| letters().filter(|d| d == c).count() == 1).collect();
            once.retain(char::is_ascii_alphabetic);
            once.sort_unstable();
            expanded(cx, "...", most)?.into_iter().chain(once).collect()
        }
    };
    if let Some(c) = result.iter().find(|c| !letters().any(|d| d == **c)) {
        return cx.invalid(format!("`{c}` in the result is no dimension of an operand"));
    }
    Ok(Notation { operands, result })
}

/// The letters of subscripts, with names for the `further` dimensions in the place of the dots.
fn expanded(cx: &CallCx, part: &str, further: usize) -> Result<Vec<char>, OpError> {
    let dots: String = (0..further as u32).rev().filter_map(|i| char::from_u32(ELLIPSIS + i)).collect();
    let text = part.replacen("...", &dots, 1);
    match text.chars().find(|c| !c.is_ascii_alphabetic() && u32::from(*c) < ELLIPSIS) {
        Some(c) => cx.invalid(format!("`{c}` stands in the subscripts; dimensions are named by letters")),
        None => Ok(text.chars().collect()),
    }
}

/// Each letter's size: that of the operands that have it, of which some may be 1.
fn sizes(cx: &CallCx, notation: &Notation, shapes: &[Vec<PrimExpr>]) -> Result<Vec<(char, PrimExpr)>, OpError> {
    let mut sizes: Vec<(char, PrimExpr)> = Vec::new();
    for (letter, dim) in notation.operands.iter().zip(shapes).flat_map(|(letters, dims)| letters.iter().zip(dims)) {
        match sizes.iter_mut().find(|(c, _)| c == letter) {
            Some((_, known)) if known.is_int(1) => *known = dim.clone(),
            Some((_, known)) => {
                if let (Some(a), Some(b)) = (known.as_int(), dim.as_int())
                    && a != b
                    && b != 1
                {
                    return cx.invalid(format!("dimension `{letter}` has sizes {a} and {b}"));
                }
            }
            None => sizes.push((*letter, dim.clone())),
        }
    }
    Ok(sizes)
}

/// A letter is one length wherever it stands; only of literal ones it is known that they are repeated.
fn letters_agree(cx: &CallCx) -> Result<Vec<lengths::Lengths>, OpError> {
    let tensors = cx.tensors(0)?;
    let Some(ranks) = tensors.iter().map(|t| t.ndim).collect::<Option<Vec<_>>>() else { return Ok(Vec::new()) };
    let notation = notation(cx, &ranks)?;
    let Some(shapes) = tensors.into_iter().map(|t| t.dims).collect::<Option<Vec<_>>>() else { return Ok(Vec::new()) };
    let sizes = sizes(cx, &notation, &shapes)?;
    let all = notation.operands.iter().zip(&shapes).enumerate().flat_map(|(i, (letters, dims))| {
        letters.iter().zip(dims).enumerate().map(move |(axis, (letter, dim))| (i, axis, *letter, dim))
    });
    let other = all.filter(|(_, _, _, dim)| !dim.is_int(1)).map(|(i, axis, letter, dim)| lengths::Lengths {
        left: (format!("dimension {axis} of operand {i}"), dim.clone()),
        relation: lengths::Relation::Equal,
        right: ("the others of its letter".to_string(), size_of(&sizes, letter)),
    });
    Ok(other.collect())
}

fn size_of(sizes: &[(char, PrimExpr)], letter: char) -> PrimExpr {
    sizes.iter().find(|(c, _)| *c == letter).map_or_else(|| PrimExpr::from(1), |(_, d)| d.clone())
}

fn infer(cx: &CallCx) -> Result<Type, OpError> {
    let tensors = cx.tensors(0)?;
    let dtype = tensors.first().map_or(relaxide_ffi::DataType::void(), |t| t.dtype);
    let Some(ranks) = tensors.iter().map(|t| t.ndim).collect::<Option<Vec<_>>>() else {
        return Ok(tensor_type(None, None, dtype));
    };
    let notation = notation(cx, &ranks)?;
    let Some(shapes) = tensors.into_iter().map(|t| t.dims).collect::<Option<Vec<_>>>() else {
        return Ok(tensor_type(None, Some(notation.result.len()), dtype));
    };
    let sizes = sizes(cx, &notation, &shapes)?;
    Ok(Type::tensor(notation.result.iter().map(|c| size_of(&sizes, *c)).collect::<Vec<_>>(), dtype))
}

fn lower(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let notation = notation(cx, &inputs.iter().map(te::Tensor::ndim).collect::<Vec<_>>())?;
    let shapes: Vec<Vec<PrimExpr>> = inputs.iter().map(|t| t.shape().to_vec()).collect();
    let sizes = sizes(cx, &notation, &shapes)?;
    let summed: Vec<(char, te::ReduceAxis)> = sizes
        .iter()
        .filter(|(c, _)| !notation.result.contains(c))
        .map(|(c, size)| (*c, te::reduce_axis_named(c.to_string(), size.clone())))
        .collect();
    let dims: Vec<PrimExpr> = notation.result.iter().map(|c| size_of(&sizes, *c)).collect();
    let product = |out: &[PrimExpr]| {
        let index = |c: &char| {
            let own = notation.result.iter().position(|r| r == c).and_then(|i| out.get(i).cloned());
            let inner = || summed.iter().find(|(s, _)| s == c).map(|(_, k)| k.var());
            own.or_else(inner).unwrap_or_else(|| PrimExpr::from(0))
        };
        let factor = |(t, letters): (&te::Tensor, &Vec<char>)| {
            let at = |(c, dim): (&char, &PrimExpr)| {
                let repeated = dim.is_int(1) && !size_of(&sizes, *c).is_int(1);
                if repeated { PrimExpr::from(0) } else { index(c) }
            };
            t.at(&letters.iter().zip(t.shape()).map(at).collect::<Vec<_>>())
        };
        inputs.iter().zip(&notation.operands).map(factor).reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::from(0))
    };
    if summed.is_empty() {
        return Ok(vec![te::compute("T_einsum", dims, product)]);
    }
    let axes: Vec<te::ReduceAxis> = summed.iter().map(|(_, k)| k.clone()).collect();
    Ok(vec![te::compute("T_einsum", dims, |out| te::sum(product(out), &axes))])
}
