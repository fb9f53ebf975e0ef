//! A kernel that repeats what several nests do: a recurrence.
//!
//! ```text
//! state[…] = first[…]                          each of these is laid out as a kernel of its own:
//! for t in range(n):    # relaxide.recurrence       what stands before the loop, an iteration of it, and what stands behind
//!     next[…] = …state[…]…
//!     rows[t, …] = next[…]
//!     state[…] = next[…]
//! last[…] = state[…]
//! ```
//!
//! Such is a recurrence over the rows of a tensor. Within an iteration all rules hold: what is cheap is inlined, a reduction has its epilogue,
//! rows are kept. Memory that only an iteration uses is allocated once, in front of the loop.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::{Buffer, Target};

use super::record::Record;
use super::stage::Item;
use super::{ScheduleError, nests};
use crate::{For, ForKind, PrimFunc, Stmt};

/// The hint of a loop whose iterations are scheduled as a kernel of its own.
pub const RECURRENCE: &str = "relaxide.recurrence";

/// Memory of the kernel, and the statements that use it.
pub(super) struct Laid {
    pub(super) memory: Vec<Ref<Buffer>>,
    pub(super) body: Stmt,
}

/// Whether a kernel has such loops.
pub(super) fn any(func: &PrimFunc) -> bool {
    let Stmt::Block(root) = &func.body else { return false };
    let of = |stmt: &Stmt| repeated(stmt).is_some();
    root.block.iter_vars.is_empty()
        && match &root.block.body {
            Stmt::Seq(seq) => seq.seq.iter().any(of),
            one => of(one),
        }
}

/// Lays out a kernel that has such loops; `None` where it has none.
pub(super) fn apply(func: &PrimFunc, target: &Target, record: &mut Record<'_>) -> Result<Option<Laid>, ScheduleError> {
    let Stmt::Block(root) = &func.body else { return Ok(None) };
    if !any(func) {
        return Ok(None);
    }
    let list = match &root.block.body {
        Stmt::Seq(seq) => seq.seq.clone(),
        one => vec![one.clone()],
    };
    let of_iteration = |stmt: &Stmt| repeated(stmt).map_or_else(HashSet::new, |of| buffers(&of.body));
    let elsewhere = |at: usize| -> HashSet<Ref<Buffer>> {
        list.iter().enumerate().filter(|(i, _)| *i != at).flat_map(|(_, stmt)| buffers(stmt)).collect()
    };
    let mut memory: Vec<Ref<Buffer>> = Vec::new();
    let mut body = Vec::new();
    let mut own: HashSet<Ref<Buffer>> = HashSet::new();
    for (at, stmt) in list.iter().enumerate() {
        let Some(of) = repeated(stmt) else {
            let laid = nests(func, &[], stmt, target, record)?;
            memory.extend(laid.memory);
            body.push(laid.body);
            continue;
        };
        let others = elsewhere(at);
        let here = of_iteration(stmt);
        let scratch: Vec<Ref<Buffer>> =
            root.block.alloc_buffers.iter().filter(|b| here.contains(*b) && !others.contains(*b)).cloned().collect();
        let laid = nests(func, &scratch, &of.body, target, record)?;
        own.extend(scratch);
        memory.extend(laid.memory);
        body.push(Ref::new(For { annotations: Default::default(), body: laid.body, ..of.clone() }).into());
    }
    let kept = root.block.alloc_buffers.iter().filter(|b| !own.contains(*b)).cloned();
    memory.splice(0..0, kept);
    Ok(Some(Laid { memory, body: Stmt::seq(body) }))
}

/// The loop, if a statement is one of those.
fn repeated(stmt: &Stmt) -> Option<&For> {
    match stmt {
        Stmt::For(of) if of.kind == ForKind::Serial && of.annotations.get(RECURRENCE).is_some() => Some(of),
        _ => None,
    }
}

fn buffers(stmt: &Stmt) -> HashSet<Ref<Buffer>> {
    let item = Item::Opaque(stmt.clone());
    item.reads().into_iter().chain(item.writes()).collect()
}
