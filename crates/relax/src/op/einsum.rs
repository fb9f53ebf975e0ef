//! Sums of products by index notation.

use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::te;

use super::*;

/// The rows.
pub static TABLE: &[OpDef] = &[OpDef {
    name: "einsum",
    doc: "Einstein's notation: letters name dimensions of the operands; those that the result lacks are summed over. \
          Without an arrow the result has the letters that occur once, in alphabetical order.",
    args: &[ArgDef::tensors("operands", "The factors.")],
    attrs: &[AttrDef::new("subscripts", AttrKind::Str, AttrDefault::Required, "The notation, as `ij,jk->ik`.")],
    infer,
    lower: Lowering::Compute(lower),
    pattern: OpPattern::OutFusable,
    ..OpDef::BASE
}];

/// The letters of each operand and of the result.
struct Notation {
    operands: Vec<Vec<char>>,
    result: Vec<char>,
}

fn notation(cx: &CallCx) -> Result<Notation, OpError> {
    let text: String = cx.str("subscripts")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left.to_string(), Some(right.to_string())),
        None => (text, None),
    };
    let operands: Vec<Vec<char>> = left.split(',').map(|part| part.chars().collect()).collect();
    let letters = || operands.iter().flatten().copied();
    let result: Vec<char> = match right {
        Some(right) => right.chars().collect(),
        None => {
            let mut once: Vec<char> = letters().filter(|c| letters().filter(|d| d == c).count() == 1).collect();
            once.sort_unstable();
            once
        }
    };
    if let Some(c) = letters().chain(result.iter().copied()).find(|c| !c.is_ascii_alphabetic()) {
        return cx.unsupported(format!("`{c}` in the subscripts is not implemented; dimensions are named by letters"));
    }
    if let Some(c) = result.iter().find(|c| !letters().any(|d| d == **c)) {
        return cx.invalid(format!("`{c}` in the result is no dimension of an operand"));
    }
    Ok(Notation { operands, result })
}

/// Each letter's size, from the first operand that has it.
fn sizes(cx: &CallCx, notation: &Notation, shapes: &[Vec<PrimExpr>]) -> Result<Vec<(char, PrimExpr)>, OpError> {
    if shapes.len() != notation.operands.len() {
        return cx.invalid(format!("{} operands come with subscripts for {}", shapes.len(), notation.operands.len()));
    }
    let mut sizes: Vec<(char, PrimExpr)> = Vec::new();
    for (letters, dims) in notation.operands.iter().zip(shapes) {
        if letters.len() != dims.len() {
            return cx.invalid(format!("an operand has {} dimensions, its subscripts {}", dims.len(), letters.len()));
        }
        for (letter, dim) in letters.iter().zip(dims) {
            match sizes.iter().find(|(c, _)| c == letter) {
                Some((_, known)) => {
                    if let (Some(a), Some(b)) = (known.as_int(), dim.as_int())
                        && a != b
                    {
                        return cx.invalid(format!("dimension `{letter}` has sizes {a} and {b}"));
                    }
                }
                None => sizes.push((*letter, dim.clone())),
            }
        }
    }
    Ok(sizes)
}

fn size_of(sizes: &[(char, PrimExpr)], letter: char) -> PrimExpr {
    sizes.iter().find(|(c, _)| *c == letter).map_or_else(|| PrimExpr::from(1), |(_, d)| d.clone())
}

fn infer(cx: &CallCx) -> Result<Type, OpError> {
    let notation = notation(cx)?;
    let tensors = cx.tensors(0)?;
    let dtype = tensors.first().map_or(relaxide_ffi::DataType::void(), |t| t.dtype);
    let Some(shapes) = tensors.into_iter().map(|t| t.dims).collect::<Option<Vec<_>>>() else {
        return Ok(tensor_type(None, Some(notation.result.len()), dtype));
    };
    let sizes = sizes(cx, &notation, &shapes)?;
    Ok(Type::tensor(notation.result.iter().map(|c| size_of(&sizes, *c)).collect::<Vec<_>>(), dtype))
}

fn lower(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let notation = notation(cx)?;
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
        let factor = |(t, letters): (&te::Tensor, &Vec<char>)| t.at(&letters.iter().map(index).collect::<Vec<_>>());
        inputs.iter().zip(&notation.operands).map(factor).reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::from(0))
    };
    if summed.is_empty() {
        return Ok(vec![te::compute("T_einsum", dims, product)]);
    }
    let axes: Vec<te::ReduceAxis> = summed.iter().map(|(_, k)| k.clone()).collect();
    Ok(vec![te::compute("T_einsum", dims, |out| te::sum(product(out), &axes))])
}
