//! Products with rows between them ([`back_to_back`](super::super::back_to_back)): all pieces over a block of rows, then the next block.
//!
//! ```text
//! parallel p over (batch, blocks of rows):
//!     allocate S[block, l], …
//!     S = the first product over the block          by the rule that takes it
//!     the rows between, row by row
//!     O = the second product over the block
//! ```
//!
//! Each block packs the column operands anew, which costs a load and a store for as many products as a block has rows. Parameter: rows of a
//! block, by what lies between the products. Roof: two multiply-adds a cycle, and what the rows between take out of the second-level cache.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, int, min, mul, sub, substitute};

use super::super::affine::product;
use super::super::back_to_back::{BackToBack, NAME, tasks};
use super::super::record::Record;
use super::super::{Cx, Machine, ScheduleError, Work, nest};
use crate::Stmt;

/// Makes the nest.
pub fn apply(cx: &mut Cx, chain: &BackToBack, name: String, record: &mut Record<'_>) -> Result<Stmt, ScheduleError> {
    record.note_reserved(chain.key.clone(), name, NAME, chain.parameters.clone());
    let axes = tasks(chain);
    let counter = Var::dim("p");
    let (count, mut binds) = nest::fuse(&axes, &counter);
    let block = axes.last().map_or_else(|| int(0), |axis| PrimExpr::from(&axis.var));
    let first = mul(block, int(chain.block));
    binds.push(Stmt::bind(chain.first.clone(), first));
    if let Some(count) = chain.count.as_var() {
        let left = sub(&chain.rows.extent, PrimExpr::from(&chain.first));
        binds.push(Stmt::bind(count.clone(), min(int(chain.block), left)));
    }
    let machine = cx.machine.clone();
    cx.machine = machine.one_thread();
    let nests = chain.pieces.iter().map(|piece| super::schedule(cx, piece, record));
    let nests = nests.collect::<Result<Vec<Stmt>, ScheduleError>>();
    cx.machine = machine;
    let body = Stmt::seq(binds.into_iter().chain(chain.scratch.iter().map(Stmt::alloc)).chain(nests?));
    let machine = Machine { parallel_threshold: chain.threads_from, ..cx.machine.clone() };
    Ok(nest::parallel(&machine, counter, count.clone(), mul(&count, terms_of_block(chain)), body))
}

/// How many terms the products of a block have.
fn terms_of_block(chain: &BackToBack) -> PrimExpr {
    let mut whole = VarMap::new();
    whole.extend(chain.count.as_var().map(|count| (count.clone(), int(chain.block))));
    let terms = |piece: &Work| match piece {
        Work::Reduce(reduce) => {
            let axes = reduce.stage.spatial.iter().chain(&reduce.stage.reduce).map(|a| &a.extent);
            substitute(&product(axes), &whole)
        }
        _ => int(0),
    };
    chain.pieces.iter().map(terms).fold(int(0), add)
}
