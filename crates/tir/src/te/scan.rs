//! Scans: tensors whose elements follow from those before them.
//!
//! The first dimension is time. `init` gives the first elements; every later one is what `update` says over a stand-in for the
//! result so far:
//!
//! ```text
//! for t in range(init.shape[0]):                  # out = init
//!     out[t, i] = init[t, i]
//! for t in range(init.shape[0], update.shape[0]): # state -> out
//!     out[t, i] = out[t - 1, i] + X[t, i]
//! ```
//!
//! **Needs.** `update` is a compute or a reduction that reads the stand-in itself: a stage between the two would have to be
//! computed at every step, and is refused.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, VarMap};
use relaxide_ir::{Buffer, Var};

use super::compute::{axis_over, filled};
use super::prim_func::TeError;
use super::reduce::Reduction;
use super::tensor::{Output, StageForm, StageKind, Tensor, output_link};
use crate::Stmt;

/// The results of a scan, one for each state.
pub fn scan(name: &str, init: &[Tensor], update: &[Tensor], state: &[Tensor]) -> Result<Vec<Tensor>, TeError> {
    let uneven = |why: &str| TeError::Scan { name: name.to_string(), why: why.to_string() };
    if init.len() != update.len() || init.len() != state.len() || init.is_empty() {
        return Err(uneven("init, update and state are lists of one length"));
    }
    for ((first, next), stand_in) in init.iter().zip(update).zip(state) {
        let ndim = next.ndim();
        if ndim == 0 || first.ndim() != ndim || stand_in.ndim() != ndim {
            return Err(uneven("init, update and state have the same dimensions, of which the first is time"));
        }
        if first.dtype() != next.dtype() || stand_in.dtype() != next.dtype() {
            return Err(uneven("init, update and state have the same element type"));
        }
        if matches!(link_of(next)?.stage.kind, StageKind::Placeholder | StageKind::Extern { .. }) {
            return Err(uneven("update is a compute"));
        }
    }
    let outputs = update.iter().enumerate().map(|(i, next)| {
        let name = if update.len() == 1 { name.to_string() } else { format!("{name}_v{i}") };
        (name, next.shape().to_vec(), next.dtype())
    });
    // The builder takes no errors from the statements' maker: one waits here.
    let mut failed = None;
    let tensors = filled(StageForm::Scan, name, init, outputs, [None, None], |_, results| {
        body(init, update, state, results).unwrap_or_else(|error| {
            failed = Some(error);
            Stmt::nop()
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(tensors),
    }
}

fn link_of(tensor: &Tensor) -> Result<&Ref<Output>, TeError> {
    output_link(tensor.buffer()).ok_or_else(|| TeError::UnknownTensor(tensor.name().to_string()))
}

fn body(init: &[Tensor], update: &[Tensor], state: &[Tensor], results: &[Ref<Buffer>]) -> Result<Stmt, TeError> {
    let copies = init.iter().zip(results).map(|(first, out)| {
        let dims = first.shape().iter().enumerate();
        let axes: Vec<Ref<Var>> = dims.map(|(i, dim)| axis_over(format!("i{i}"), dim)).collect();
        let store = Stmt::store(out, &axes, prim::load(first.buffer(), &axes));
        nest(axes.into_iter().zip(first.shape().iter().cloned()), store)
    });
    let end = update[0].shape()[0].clone();
    let start = prim::cast(end.dtype(), init[0].shape()[0].clone());
    let step = axis_over("t", &end);
    let time = PrimExpr::from(&step) + start.clone();
    let stands = state.iter().map(|s| s.buffer().clone()).zip(results.iter().cloned()).collect();
    let mut place = ScanSubstitution { vars: VarMap::default(), stands };
    let updates = update.iter().zip(results).map(|(next, out)| place.update(next, out, &time));
    let updates = updates.collect::<Result<Vec<_>, _>>()?;
    let steps = Stmt::serial(step, end - start, Stmt::seq(updates));
    Ok(Stmt::seq(copies.chain([steps])))
}

fn nest(axes: impl DoubleEndedIterator<Item = (Ref<Var>, PrimExpr)>, body: Stmt) -> Stmt {
    axes.rev().fold(body, |body, (axis, extent)| Stmt::serial(axis, extent, body))
}

/// Puts loops' variables and the results in the place of axes and stand-ins.
struct ScanSubstitution {
    vars: VarMap,
    stands: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl ScanSubstitution {
    /// All elements of one result at one time.
    fn update(&mut self, next: &Tensor, out: &Ref<Buffer>, time: &PrimExpr) -> Result<Stmt, TeError> {
        let link = link_of(next)?;
        let stage = &link.stage;
        let mut indices = vec![time.clone()];
        let mut loops = Vec::new();
        for (at, axis) in stage.axes.iter().enumerate() {
            if at == 0 {
                self.vars.insert(axis.clone(), time.clone());
                continue;
            }
            let own = Var::new(axis.name.clone(), axis.ty.clone());
            self.vars.insert(axis.clone(), PrimExpr::from(&own));
            indices.push(PrimExpr::from(&own));
            loops.push((own, next.shape()[at].clone()));
        }
        let element = match &stage.kind {
            StageKind::Elements(values) => Stmt::store(out, &indices, self.mutate_prim(&values[link.index])),
            StageKind::Reduction(reduction) => self.reduction(reduction, out, &indices, stage.name.as_str())?,
            _ => Stmt::nop(),
        };
        Ok(nest(loops.into_iter(), element))
    }

    fn reduction(&mut self, of: &Reduction, out: &Ref<Buffer>, at: &[PrimExpr], name: &str) -> Result<Stmt, TeError> {
        let ([accumulator], [identity], [combined]) = (&of.accumulators[..], &of.identity[..], &of.combined[..]) else {
            let why = "update combines one value".to_string();
            return Err(TeError::Scan { name: name.to_string(), why });
        };
        let mut loops = Vec::new();
        for axis in &of.axes {
            let own = Var::new(axis.var.name.clone(), axis.var.ty.clone());
            self.vars.insert(axis.var.clone(), PrimExpr::from(&own));
            loops.push((own, axis.extent.clone()));
        }
        let first = Stmt::store(out, at, identity.clone());
        self.vars.insert(accumulator.clone(), prim::load(out, at));
        let more = Stmt::store(out, at, self.mutate_prim(combined));
        Ok(Stmt::seq([first, nest(loops.into_iter(), more)]))
    }
}

impl PrimMutator for ScanSubstitution {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.stands.get(buffer).unwrap_or(buffer).clone()
    }
}
