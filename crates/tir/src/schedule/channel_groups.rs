//! Channels of convolutions in groups as two axes: which group, and which channel of it.
//!
//! ```text
//! C[n, m, y, x] = sum over c, … of W[m, c, …] * D[n, m // 64 * 32 + c, …]
//!     ->  C[n, 64 g + i, y, x] = sum over c, … of W[64 g + i, c, …] * D[n, 32 g + c, …]
//! ```
//!
//! The image belongs to a group, the weights alone to a channel in it: so each group is a convolution whose channels share what they read of
//! the image, where a channel for itself reads all of it. Groups of few channels stay as they are: a tile of registers has more rows than those.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{BinaryOp, PrimExpr, PrimMutator, VarMap, add, int, mul, substitute};

use super::affine::uses;
use super::group::{Reduce, Work};
use super::rules::Contraction;
use super::stage::Axis;

/// Channels of a group from which they are worth an axis.
const LEAST: i64 = 6;

/// Gives groups of channels an axis, in every sum of products that has them.
pub fn run(work: Vec<Work>) -> Vec<Work> {
    let grouped = |piece| match piece {
        Work::Reduce(reduce) => Work::Reduce(grouped(&reduce).unwrap_or(reduce)),
        other => other,
    };
    work.into_iter().map(grouped).collect()
}

fn grouped(reduce: &Reduce) -> Option<Reduce> {
    let c = Contraction::of_numbers_or_words(reduce).ok()?;
    if !c.rows.is_empty() {
        return None;
    }
    let shared = c.batch.iter().filter(|axis| uses(&c.row, &axis.var));
    let (channel, quotients) = shared.filter_map(|axis| Some((axis, Quotients::of(&c.column, &axis.var)?))).next()?;
    let (count, size) = (channel.extent.as_int()?, quotients.by?);
    if size < LEAST || count % size != 0 {
        return None;
    }
    let group = Axis { var: quotients.group.clone(), extent: int(count / size) };
    let inner = Axis { var: Var::dim(channel.var.name.clone()), extent: int(size) };
    let place = add(mul(PrimExpr::from(&group.var), int(size)), PrimExpr::from(&inner.var));
    let map: VarMap = [(channel.var.clone(), place)].into();
    let mut new = reduce.clone();
    let mut quotients = Quotients { is_elsewhere: false, ..quotients };
    let mut rewritten = |e: &PrimExpr| substitute(&quotients.mutate_prim(e), &map);
    new.stage.value = rewritten(&reduce.stage.value);
    new.epilogue = rewritten(&reduce.epilogue);
    new.stage.indices = reduce.stage.indices.iter().map(&mut rewritten).collect();
    new.indices = reduce.indices.iter().map(&mut rewritten).collect();
    if let Some(reduction) = &mut new.stage.reduction {
        reduction.init = rewritten(&reduction.init);
    }
    let at = new.stage.spatial.iter().position(|axis| axis.var == channel.var)?;
    new.stage.spatial.splice(at..=at, [group, inner]);
    Some(new)
}

/// Puts the number of the group in the place of a channel's quotient.
struct Quotients {
    channel: Ref<Var>,
    group: Ref<Var>,
    /// Channels of a group, once a quotient was met.
    by: Option<i64>,
    /// Whether the channel stands elsewhere, or in another quotient.
    is_elsewhere: bool,
}

impl Quotients {
    /// Those of an expression that has the channel nowhere else.
    fn of(e: &PrimExpr, channel: &Ref<Var>) -> Option<Quotients> {
        let (channel, group) = (channel.clone(), Var::dim("group"));
        let mut quotients = Quotients { channel, group, by: None, is_elsewhere: false };
        quotients.mutate_prim(e);
        (quotients.by.is_some() && !quotients.is_elsewhere).then_some(quotients)
    }
}

impl PrimMutator for Quotients {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Binary(n)
                if n.op == BinaryOp::FloorDiv
                    && matches!(&n.a, PrimExpr::Var(var) if *var == self.channel)
                    && n.b.as_int().is_some_and(|by| by > 1 && self.by.is_none_or(|known| known == by)) =>
            {
                self.by = n.b.as_int();
                PrimExpr::from(&self.group)
            }
            PrimExpr::Var(var) => {
                self.is_elsewhere |= *var == self.channel;
                e.clone()
            }
            _ => self.remake_prim(e),
        }
    }
}
