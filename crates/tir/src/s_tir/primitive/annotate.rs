//! `annotate` and `unannotate`: hints on a block or a loop, for later passes.
//!
//! A hint that is there already stays as it is.

use relaxide_ffi::Ref;
use relaxide_ir::Attrs;
use relaxide_ir::attrs::AttrValue;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{StmtRef, copy_block, copy_loop, replace, with_block};
use crate::s_tir::step::Call;
use crate::s_tir::{Rv, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static ANNOTATE: InstructionKind = InstructionKind {
    name: "Annotate",
    method: "annotate",
    is_pure: false,
    params: &[Param::Input("block_or_loop"), Param::Attr("ann_key"), Param::Input("ann_val")],
    results: Results::None,
    apply: annotate,
};

pub(in crate::s_tir) static UNANNOTATE: InstructionKind = InstructionKind {
    name: "Unannotate",
    method: "unannotate",
    is_pure: false,
    params: &[Param::Input("block_or_loop"), Param::Attr("ann_key")],
    results: Results::None,
    apply: unannotate,
};

fn annotate(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = place(sch, call)?;
    let key = call.str(0)?.to_string();
    let value = call.inputs.get(1).cloned().ok_or_else(|| ScheduleError::Operand("annotate needs a value".into()))?;
    let mut hints = hints(&place)?;
    if hints.0.contains_key(&key) {
        return Ok(Vec::new());
    }
    hints.0.insert(key, plain(sch, &value)?);
    set(sch, &place, hints)
}

fn unannotate(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = place(sch, call)?;
    let key = call.str(0)?;
    let mut hints = hints(&place)?;
    if hints.0.shift_remove(key).is_none() {
        let reason = format!("there is no annotation `{key}`");
        let there: Vec<&str> = hints.0.keys().map(String::as_str).collect();
        let error = match place.stmt() {
            Stmt::For(n) => ScheduleError::at_loop(n, reason),
            _ => ScheduleError::at_block(&place.realize()?.block, reason),
        };
        return Err(error.with_help(format!("there are [{}]", there.join(", "))));
    }
    set(sch, &place, hints)
}

fn place(sch: &Schedule, call: &Call<'_>) -> Result<StmtRef, ScheduleError> {
    match call.block(0) {
        Ok(block) => sch.block_ref(&block),
        Err(_) => sch.loop_ref(&call.loop_(0)?),
    }
}

fn hints(place: &StmtRef) -> Result<Attrs, ScheduleError> {
    Ok(match place.stmt() {
        Stmt::For(n) => n.annotations.clone(),
        _ => place.realize()?.block.annotations.clone(),
    })
}

/// A value with sampled numbers in the place of their variables.
fn plain(sch: &Schedule, value: &AttrValue) -> Result<AttrValue, ScheduleError> {
    Ok(match value {
        AttrValue::Prim(e) => match sch.number(e) {
            Some(number) if e.dtype().is_integer() => AttrValue::Int(number),
            _ => AttrValue::Prim(e.clone()),
        },
        AttrValue::List(list) => AttrValue::List(list.iter().map(|v| plain(sch, v)).collect::<Result<_, _>>()?),
        AttrValue::Map(map) => {
            let rows = map.iter().map(|(k, v)| Ok((k.clone(), plain(sch, v)?)));
            AttrValue::Map(rows.collect::<Result<_, ScheduleError>>()?)
        }
        other => other.clone(),
    })
}

fn set(sch: &mut Schedule, place: &StmtRef, annotations: Attrs) -> Result<Vec<Value>, ScheduleError> {
    let (changed, reuse): (Stmt, Vec<_>) = match place.stmt() {
        Stmt::For(n) => (Ref::new(For { annotations, ..copy_loop(n) }).into(), Vec::new()),
        _ => {
            let n = place.realize()?;
            let block = Ref::new(SBlock { annotations, ..copy_block(&n.block) });
            (with_block(&n, block.clone()).into(), vec![(n.block.clone(), block)])
        }
    };
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), changed)]);
    sch.commit(&place.func, body, &reuse)?;
    Ok(Vec::new())
}

impl Schedule {
    /// Gives a block or a loop a hint; random variables in the value become their numbers.
    pub fn annotate(&mut self, what: &Rv, key: &str, value: impl Into<AttrValue>) -> Result<(), StepError> {
        self.step_only(&ANNOTATE, vec![what.into(), value.into()], vec![AttrValue::from(key)])
    }

    /// Takes a hint away.
    pub fn unannotate(&mut self, what: &Rv, key: &str) -> Result<(), StepError> {
        self.step_only(&UNANNOTATE, vec![what.into()], vec![AttrValue::from(key)])
    }
}
