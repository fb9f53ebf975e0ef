//! Pieces that share their rows: the threads of a block share a row.
//!
//! ```text
//! block i:  M = max over k of A[i, k]        all threads, then a tree; one of them stores it in shared memory
//!           sync
//!           B[i, k] = exp(A[i, k] - M)       every 256th k a thread
//!           sync
//!           S = sum over k of B[i, k]; sync
//!           B[i, k] = B[i, k] / S
//! ```
//!
//! Softmax and the norms are such. What lies between the pieces is in memory that the block shares, or in the row that the last piece writes
//! ([`rows`](super::super::super::rows)). Parameters: 256 threads for rows that are as long, fewer for shorter ones, 128 where nobody knows.
//! Roof: memory bandwidth, each row read once from it and then from the cache.

use relaxide_ir::prim::{PrimExpr, int, lt};
use relaxide_ir::{Buffer, Var};

use super::super::super::affine::product;
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::Choices;
use super::super::super::rows::Rows;
use super::super::super::threads::launch;
use super::super::super::{Machine, Refusal, Work, nest};
use super::super::merge;
use super::team::{Team, ends_threads, power_of_two, refuse_checks};
use super::threads;
use crate::Stmt;
use crate::lower::DeviceLimits;

/// Threads of a block.
const THREADS: i64 = 256;
/// The same where nobody knows how long rows are.
const UNKNOWN: i64 = 128;
/// Threads of a block at least: those that a device runs in step.
const FEWEST: i64 = 32;

/// Whether rows of some pieces can be shared.
pub fn fits(work: &Work) -> Result<(), Refusal> {
    match work {
        Work::Map(stage) if stage.output.dtype.is_packed() => Err(Refusal::new("elements share bytes")),
        Work::Map(stage) if ends_threads(&stage.value) => {
            Err(Refusal::new("an index that is data may end a thread that others wait for"))
        }
        Work::Map(_) => Ok(()),
        Work::Reduce(reduce) if reduce.output.dtype.is_packed() => Err(Refusal::new("elements share bytes")),
        Work::Reduce(reduce) => refuse_checks(reduce),
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => Err(Refusal::new("it is no piece of a row")),
    }
}

/// Makes the nest of pieces that share rows.
pub fn apply(machine: &Machine, limits: DeviceLimits, rows: &Rows, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    rows.pieces.iter().try_for_each(fits)?;
    let threads =
        threads(choices, limits, threads_for(rows), "a row has as many elements or more, or nobody knows how many");
    let [block, thread, row] = ["block", "thread", "row"].map(Var::dim);
    let (count, binds) = nest::fuse(&rows.axes, &row);
    let number = PrimExpr::from(&thread);
    let team = Team { terms: threads, term: number.clone(), thread: number, stride: 1, shuffles: machine.shuffles };
    let mut body: Vec<Stmt> = rows.scratch.iter().map(Stmt::alloc).collect();
    body.push(Stmt::bind(row, PrimExpr::from(&block)));
    body.extend(binds);
    for (at, piece) in rows.pieces.iter().enumerate() {
        if at > 0 {
            body.push(Stmt::barrier());
        }
        body.push(piece_of(&team, piece)?);
    }
    Ok(launch(&block, count, &thread, threads, Stmt::seq(body)))
}

fn piece_of(team: &Team, piece: &Work) -> Result<Stmt, Refusal> {
    match piece {
        Work::Map(stage) => {
            let stage = merge::run(stage);
            let store = || Stmt::store(&stage.output, stage.indices.clone(), freshen_lets(&stage.value));
            Ok(match stage.spatial.is_empty() {
                true => Stmt::when(lt(&team.thread, int(1)), store()),
                false => team.each(&stage.spatial, store),
            })
        }
        Work::Reduce(reduce) => {
            let reduce = merge::reduce(reduce);
            if reduce.stage.spatial.is_empty() {
                let red = Buffer::scoped("red", reduce.stage.output.dtype, [int(team.terms)], "shared");
                let epilogue = Stmt::when(lt(&team.thread, int(1)), team.emit_epilogue(&reduce, &red)?);
                return Ok(Stmt::seq([Stmt::alloc(&red), team.reduce(&reduce, &red, None)?, epilogue]));
            }
            // Several results for each row: a thread makes each.
            let Some(reduction) = &reduce.stage.reduction else { return Err(Refusal::new("it does not reduce")) };
            let acc = Buffer::scoped("acc", reduce.stage.output.dtype, [int(1)], "local");
            let own = || relaxide_ir::prim::load(&acc, [int(0)]);
            let each = || {
                let value = relaxide_ir::prim::binary(reduction.op, own(), freshen_lets(&reduce.stage.value));
                let epilogue = relaxide_ir::prim::VarMap::from([(reduce.acc.clone(), own())]);
                let epilogue = relaxide_ir::prim::substitute(&reduce.epilogue, &epilogue);
                Stmt::seq([
                    Stmt::store(&acc, [int(0)], reduction.init.clone()),
                    nest::serial(&reduce.stage.reduce, Stmt::store(&acc, [int(0)], value)),
                    Stmt::store(&reduce.output, reduce.indices.clone(), freshen_lets(&epilogue)),
                ])
            };
            Ok(Stmt::seq([Stmt::alloc(&acc), team.each(&reduce.stage.spatial, each)]))
        }
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => Err(Refusal::new("it is no piece of a row")),
    }
}

/// Threads for the longest row.
fn threads_for(rows: &Rows) -> i64 {
    let length = |work: &Work| match work {
        Work::Map(stage) => product(stage.spatial.iter().map(|a| &a.extent)).as_int(),
        Work::Reduce(r) => product(r.stage.spatial.iter().chain(&r.stage.reduce).map(|a| &a.extent)).as_int(),
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => None,
    };
    let longest = rows.pieces.iter().map(length).try_fold(1, |longest, n| Some(n?.max(longest)));
    longest.map_or(UNKNOWN, |n| power_of_two(n).clamp(FEWEST, THREADS))
}
