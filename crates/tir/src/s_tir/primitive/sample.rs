//! `sample_categorical`, `sample_perfect_tile`, `sample_partitioned_tile`: numbers that are drawn, or given as decided.
//!
//! What was decided stays in the trace, so that a trace repeats it. A decision that no longer fits its loop, because other
//! decisions changed, is replaced by the plainest one that does.
//!
//! An extent that is not known has no divisors: its tile is one open factor, which `split` fills in, and ones. The decision
//! says -1 for it.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::attrs::AttrValue;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::random::Random;
use crate::s_tir::step::{Call, ints_of, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static CATEGORICAL: InstructionKind = InstructionKind {
    name: "SampleCategorical",
    method: "sample_categorical",
    is_pure: true,
    params: &[Param::Attr("candidates"), Param::Attr("probs"), Param::Decision],
    results: Results::One,
    apply: categorical,
};

pub(in crate::s_tir) static PERFECT_TILE: InstructionKind = InstructionKind {
    name: "SamplePerfectTile",
    method: "sample_perfect_tile",
    is_pure: true,
    params: &[Param::Input("loop"), Param::Attr("n"), Param::Attr("max_innermost_factor"), Param::Decision],
    results: Results::List,
    apply: perfect_tile,
};

pub(in crate::s_tir) static PARTITIONED_TILE: InstructionKind = InstructionKind {
    name: "SamplePartitionedTile",
    method: "sample_partitioned_tile",
    is_pure: true,
    params: &[
        Param::Input("loop"),
        Param::Attr("n"),
        Param::Attr("partition_pos"),
        Param::Attr("innerpart_factor"),
        Param::Decision,
    ],
    results: Results::List,
    apply: partitioned_tile,
};

fn operand(text: impl Into<String>) -> ScheduleError {
    ScheduleError::Operand(text.into())
}

fn categorical(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let candidates = call.ints(0)?;
    let Some(AttrValue::List(given)) = call.attrs.get(1) else { return Err(operand("probabilities are missing")) };
    let probs: Vec<f64> = given
        .iter()
        .filter_map(|p| match p {
            AttrValue::Float(v) => Some(*v),
            AttrValue::Int(v) => Some(*v as f64),
            AttrValue::Prim(relaxide_ir::PrimExpr::Float(v)) => Some(v.value),
            _ => None,
        })
        .collect();
    if probs.len() != candidates.len() || candidates.is_empty() {
        return Err(operand(format!("{} candidates with {} probabilities", candidates.len(), probs.len())));
    }
    let decided = match &call.decision {
        Some(AttrValue::Int(i)) => usize::try_from(*i).ok().filter(|i| *i < candidates.len()).ok_or_else(|| {
            operand(format!("the decision {i} is no place in a list of {} candidates", candidates.len()))
        })?,
        Some(AttrValue::Prim(e)) => e.as_int().and_then(|i| usize::try_from(i).ok()).unwrap_or(0),
        _ => draw(&mut sch.random, &probs),
    };
    let chosen = candidates.get(decided).copied().ok_or_else(|| operand("the decision is no candidate"))?;
    call.decision = Some(AttrValue::Int(decided as i64));
    Ok(vec![Value::Number(chosen)])
}

/// A place in a list, by weights.
fn draw(random: &mut Random, weights: &[f64]) -> usize {
    let (drawn, all) = (random.unit(), weights.iter().sum::<f64>());
    let mut reached = 0.0;
    for (i, weight) in weights.iter().enumerate() {
        reached += weight / all;
        if drawn <= reached {
            return i;
        }
    }
    weights.len().saturating_sub(1)
}

/// How many factors are wanted, and the extent of the loop where it is known.
fn wanted(sch: &Schedule, call: &Call<'_>) -> Result<(Option<i64>, usize), ScheduleError> {
    let loop_ = sch.loop_(&call.loop_(0)?)?;
    let n = usize::try_from(call.int(0)?).ok().filter(|n| *n >= 1).ok_or_else(|| operand("at least one factor"))?;
    match loop_.extent.as_int() {
        Some(extent) if extent <= 0 => {
            Err(ScheduleError::at_loop(&loop_, format!("a loop of {extent} iterations has no tiles")))
        }
        extent => Ok((extent, n)),
    }
}

/// An open factor and ones.
fn open_tile(call: &mut Call<'_>, n: usize) -> Vec<Value> {
    let decided = |i: usize| if i == 0 { -1 } else { 1 };
    call.decision = Some((0..n).map(decided).collect::<Vec<i64>>().into());
    (0..n).map(|i| if i == 0 { Value::Open } else { Value::Number(1) }).collect()
}

fn numbers(call: &mut Call<'_>, tile: Vec<i64>) -> Vec<Value> {
    call.decision = Some(tile.clone().into());
    tile.into_iter().map(Value::Number).collect()
}

fn perfect_tile(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let (extent, n) = wanted(sch, call)?;
    let most = call.int(1)?;
    let Some(extent) = extent else { return Ok(open_tile(call, n)) };
    let tile = match call.decision.as_ref().and_then(ints_of) {
        Some(given) if given.len() == n => fitting(extent, given),
        Some(given) => return Err(operand(format!("the decision has {} factors, not {n}", given.len()))),
        None => draw_tile(&mut sch.random, extent, n, most),
    };
    Ok(numbers(call, tile))
}

/// Factors whose product is the extent: the given ones from the innermost on. One that does not divide what is left takes all
/// of it, and the outermost takes the rest in any case.
fn fitting(extent: i64, mut given: Vec<i64>) -> Vec<i64> {
    let mut rest = extent;
    for factor in given.iter_mut().skip(1).rev() {
        if *factor <= 0 || rest % *factor != 0 {
            *factor = rest;
        }
        rest /= *factor;
    }
    if let Some(first) = given.first_mut() {
        *first = rest;
    }
    given
}

/// Factors whose product is the extent, the innermost at most `most` where that is positive.
fn draw_tile(random: &mut Random, extent: i64, n: usize, most: i64) -> Vec<i64> {
    loop {
        let tile = random.tile(extent, n);
        if n == 1 || most <= 0 || tile.last().is_none_or(|inner| *inner <= most) {
            return tile;
        }
    }
}

fn partitioned_tile(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let (extent, n) = wanted(sch, call)?;
    let (position, factor) = (call.int(1)?, call.int(2)?);
    let position = usize::try_from(position)
        .ok()
        .filter(|p| *p <= n)
        .ok_or_else(|| operand(format!("the inner part begins at {position}, but there are {n} factors")))?;
    let Some(extent) = extent else { return Ok(open_tile(call, n)) };
    let fits = |tile: &[i64]| {
        let product = |part: &[i64]| part.iter().product::<i64>();
        product(tile) == extent && tile.get(position..).is_some_and(|inner| factor > 0 && product(inner) % factor == 0)
    };
    let tile = match call.decision.as_ref().and_then(ints_of) {
        Some(given) if given.len() == n => {
            let mended = fitting(extent, given);
            let inner: Vec<i64> = (0..n).map(|i| if i + 1 == n { extent } else { 1 }).collect();
            let found = [mended, inner].into_iter().find(|tile| fits(tile));
            found.ok_or_else(|| operand(format!("no tile of {extent} has an inner part that {factor} divides")))?
        }
        Some(given) => return Err(operand(format!("the decision has {} factors, not {n}", given.len()))),
        None => {
            if factor <= 0 || extent % factor != 0 || (position == n && factor != 1) {
                return Err(operand(format!("no tile of {extent} has an inner part that {factor} divides")));
            }
            loop {
                let tile = sch.random.tile(extent, n);
                if fits(&tile) {
                    break tile;
                }
            }
        }
    };
    Ok(numbers(call, tile))
}

impl Schedule {
    /// One of several numbers, with probabilities; `decision` says which, by its place.
    pub fn sample_categorical(
        &mut self,
        candidates: &[i64],
        probs: &[f64],
        decision: Option<i64>,
    ) -> Result<Vec<Ref<Var>>, StepError> {
        let attrs = vec![candidates.to_vec().into(), probs.to_vec().into()];
        self.step_numbers(&CATEGORICAL, vec![], attrs, decision.map(AttrValue::Int))
    }

    /// Factors whose product is a loop's extent, which is known: those of one that is not are an open factor, which is
    /// left out here, and ones.
    pub fn sample_perfect_tile(
        &mut self,
        loop_: &Ref<LoopRV>,
        n: usize,
        max_innermost_factor: i64,
        decision: Option<Vec<i64>>,
    ) -> Result<Vec<Ref<Var>>, StepError> {
        let attrs = vec![AttrValue::Int(n as i64), AttrValue::Int(max_innermost_factor)];
        self.step_numbers(&PERFECT_TILE, vec![loop_operand(loop_)], attrs, decision.map(AttrValue::from))
    }

    /// Factors whose product is a loop's extent, those from `partition_pos` on having a product that a number divides.
    pub fn sample_partitioned_tile(
        &mut self,
        loop_: &Ref<LoopRV>,
        n: usize,
        partition_pos: usize,
        innerpart_factor: i64,
        decision: Option<Vec<i64>>,
    ) -> Result<Vec<Ref<Var>>, StepError> {
        let attrs = [n as i64, partition_pos as i64, innerpart_factor].map(AttrValue::Int).to_vec();
        self.step_numbers(&PARTITIONED_TILE, vec![loop_operand(loop_)], attrs, decision.map(AttrValue::from))
    }
}
