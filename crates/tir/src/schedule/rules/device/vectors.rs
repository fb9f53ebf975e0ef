//! Copies and element-wise functions: a thread has some neighbours, which come and go 16 bytes at a time.
//!
//! ```text
//! B[p] = f(A[p], s)
//!   ->  block of 128 threads, at = 4 * (128 * block + thread):
//!           if at + 4 <= n and A and B begin at multiples of 16 bytes:
//!               own[0:4] = A[at:at + 4];  made[i] = f(own[i], s) for each i;  B[at:at + 4] = made[0:4]
//!           else: each element by itself, where it lies inside
//! ```
//!
//! What moves by one element along the output's row is read so; all else is read element by element, from the cache. Axes that every access
//! walks together are one, so that a row is mostly the whole tensor, and its length may be a name; where there are several rows, they are to
//! begin at multiples of as many elements, which is proved. Loads in the sides of a choice stay where they are.
//!
//! Parameters: elements of a thread, threads of a block. Roof: memory bandwidth; functions that take longer than memory are left to the
//! fallback.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BufferLoad, PrimExpr, PrimMutator, VarMap, add, and, call, int, le, load, lt, mul, ramp, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::super::affine::{all_same, ceil_div, coefficient, cost, flat_index, loads, product, uses};
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Machine, Refusal, Stage, nest};
use super::super::merge;
use super::super::row::has_choice;
use super::super::rule::Rule;
use super::team::power_of_two;
use crate::Stmt;

/// Threads of a block.
const THREADS: i64 = 128;
/// Cost of a function from which its arithmetic takes longer than memory.
const DEAR: i64 = 24;

/// The rule.
pub struct Vectors;

/// A stage whose elements are neighbours.
pub struct Found {
    stage: Stage,
    /// What is read along the output's row.
    reads: Vec<Ref<BufferLoad>>,
    /// Elements in the largest access of a thread, of the widest type.
    most: i64,
}

/// What the rule decides.
pub struct Decided {
    /// Elements of a thread.
    elements: i64,
    /// Threads of a block.
    threads: i64,
}

impl Rule for Vectors {
    type Work = Stage;
    type Found<'w> = Found;
    type Decided = Decided;

    fn find(machine: &Machine, stage: &Stage) -> Result<Found, Refusal> {
        find(machine, merge::run(stage))
    }

    fn decide(machine: &Machine, found: &Found, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let limits = super::limits_of(machine)?;
        let elements = choices.choose(Guess {
            name: "elements",
            value: found.most,
            domain: Domain::powers_of_two(2, found.most),
            reason: "so many of the widest type are the largest access of a thread",
            limit: "more are no access, and one element is no vector",
        });
        let most = power_of_two(limits.threads);
        let threads = choices.choose(Guess {
            name: "threads",
            value: THREADS.min(most),
            domain: Domain::powers_of_two(32.min(most), most),
            reason: "many small blocks are shared out evenly",
            limit: "a block has at least a warp, and no more threads than the target allows",
        });
        Ok(Decided { elements, threads })
    }

    fn emit(_: &mut Cx, found: &Found, decided: &Decided) -> Result<Stmt, Refusal> {
        found.emit(decided)
    }
}

fn find(machine: &Machine, stage: Stage) -> Result<Found, Refusal> {
    let Some(access) = machine.access_bytes else { return Err(Refusal::new("the target has no such accesses")) };
    let Some((x, outer)) = stage.spatial.split_last() else { return Err(Refusal::new("it is one element")) };
    if cost(&stage.value) >= DEAR {
        return Err(Refusal::new("its arithmetic takes longer than memory"));
    }
    if has_choice(&stage.value) {
        return Err(Refusal::new("what is read depends on a condition"));
    }
    let reads = along(&stage, x);
    let buffers = || reads.iter().map(|read| &read.buffer).chain([&stage.output]);
    if buffers().any(|buffer| !is_plain(buffer)) || stage.reads().iter().any(|buffer| buffer.dtype.is_packed()) {
        return Err(Refusal::new("elements share bytes, or are no plain numbers"));
    }
    let widest = buffers().map(|buffer| buffer.dtype.bytes() as i64).max().unwrap_or(1);
    let most = access / widest;
    if most < 2 {
        return Err(Refusal::new("an element is an access"));
    }
    if x.extent.as_int().is_some_and(|n| n < most) {
        return Err(Refusal::new("rows are short"));
    }
    let accesses = reads.iter().map(|read| flat_index(&read.buffer, &read.indices));
    for flat in accesses.chain([flat_index(&stage.output, &stage.indices)]) {
        let others = outer.iter().map(|axis| coefficient(&flat, &axis.var));
        let none: VarMap = stage.spatial.iter().map(|axis| (axis.var.clone(), int(0))).collect();
        let first = substitute(&flat, &none).as_int();
        if coefficient(&flat, &x.var) != Some(1) || others.chain([first]).any(|n| n.is_none_or(|n| n % most != 0)) {
            return Err(Refusal::new("rows are not known to begin at multiples of an access"));
        }
    }
    if !outer.is_empty() && x.extent.as_int().is_none_or(|n| n % most != 0) {
        return Err(Refusal::new("rows are not known to be multiples of an access"));
    }
    Ok(Found { reads, most, stage })
}

fn is_plain(buffer: &Buffer) -> bool {
    let dtype = buffer.dtype;
    dtype.lanes == 1
        && !dtype.is_packed()
        && !dtype.is_handle()
        && buffer.strides.is_empty()
        && buffer.elem_offset.is_int(0)
}

/// What a stage reads one element further for each of its own, each once.
fn along(stage: &Stage, x: &Axis) -> Vec<Ref<BufferLoad>> {
    let mut found: Vec<Ref<BufferLoad>> = Vec::new();
    for read in loads(&stage.value) {
        let Some((last, before)) = read.indices.split_last() else { continue };
        let is_along = coefficient(last, &x.var) == Some(1) && !before.iter().any(|index| uses(index, &x.var));
        let is_plain = read.predicate.is_none() && read.indices.iter().all(|index| loads(index).is_empty());
        let is_new = !found.iter().any(|known| known.buffer == read.buffer && all_same(&known.indices, &read.indices));
        if is_along && is_plain && is_new {
            found.push(read);
        }
    }
    found
}

impl Found {
    fn emit(&self, decided: &Decided) -> Result<Stmt, Refusal> {
        let &Decided { elements, threads } = decided;
        let stage = &self.stage;
        let Some((x, outer)) = stage.spatial.split_last() else { return Err(Refusal::new("it is one element")) };
        let [block, thread, number, group] = ["block", "thread", "number", "group"].map(Var::dim);
        let groups = ceil_div(&x.extent, elements);
        let axes: Vec<Axis> = outer.iter().cloned().chain([Axis { var: group.clone(), extent: groups }]).collect();
        let count = product(axes.iter().map(|axis| &axis.extent));
        let (_, binds) = nest::fuse(&axes, &number);
        let at = Var::dim("at");
        let is_whole = x.extent.as_int().is_some_and(|n| n % elements == 0);
        let mut together = self.buffers().into_iter().map(is_aligned).reduce(and);
        if !is_whole {
            let inside = le(add(PrimExpr::from(&at), int(elements)), x.extent.clone());
            together = Some(together.map_or(inside.clone(), |aligned| and(inside, aligned)));
        }
        let each = Stmt::seq((0..elements).map(|i| self.alone(x, &at, i, is_whole)));
        let body = match together {
            Some(together) => Stmt::if_else(together, self.together(x, &at, elements), each),
            None => each,
        };
        let body = Stmt::seq(
            binds.into_iter().chain([Stmt::bind(at.clone(), mul(PrimExpr::from(&group), int(elements))), body]),
        );
        let is_full = count.as_int().is_some_and(|n| n % threads == 0);
        let body = if is_full { body } else { Stmt::when(lt(PrimExpr::from(&number), count.clone()), body) };
        let of_thread = add(mul(PrimExpr::from(&block), int(threads)), PrimExpr::from(&thread));
        let body = Stmt::seq([Stmt::bind(number, of_thread), body]);
        Ok(launch(&block, ceil_div(&count, threads), &thread, threads, body))
    }

    /// Each buffer that is accessed by neighbours.
    fn buffers(&self) -> Vec<&Ref<Buffer>> {
        let mut list: Vec<&Ref<Buffer>> = Vec::new();
        for buffer in self.reads.iter().map(|read| &read.buffer).chain([&self.stage.output]) {
            if !list.iter().any(|known| known.data == buffer.data) {
                list.push(buffer);
            }
        }
        list
    }

    /// One element, where it lies inside.
    fn alone(&self, x: &Axis, at: &Ref<Var>, i: i64, is_whole: bool) -> Stmt {
        let stage = &self.stage;
        let place = add(PrimExpr::from(at), int(i));
        let here = VarMap::from([(x.var.clone(), place.clone())]);
        let indices: Vec<PrimExpr> = stage.indices.iter().map(|index| substitute(index, &here)).collect();
        let store = Stmt::store(&stage.output, indices, freshen_lets(&substitute(&stage.value, &here)));
        if is_whole { store } else { Stmt::when(lt(place, x.extent.clone()), store) }
    }

    fn together(&self, x: &Axis, at: &Ref<Var>, elements: i64) -> Stmt {
        let stage = &self.stage;
        let own = |name: &str, dtype: DataType| Buffer::scoped(name, dtype, [int(elements)], "local");
        let all = || [ramp(int(0), 1, elements)];
        let made = own("made", stage.output.dtype);
        let here = |index: &PrimExpr| substitute(index, &VarMap::from([(x.var.clone(), PrimExpr::from(at))]));
        let places = |buffer: &Buffer, indices: &[PrimExpr]| -> Vec<PrimExpr> {
            let mut indices: Vec<PrimExpr> = indices.iter().map(here).collect();
            if let Some(last) = indices.last_mut() {
                let bytes = elements * buffer.dtype.bytes() as i64;
                let promised = call(last.dtype(), "tirx.at_multiple", vec![last.clone(), int(bytes)]);
                *last = ramp(promised, 1, elements);
            }
            indices
        };
        let owned: Vec<(&Ref<BufferLoad>, Ref<Buffer>)> =
            self.reads.iter().map(|read| (read, own("own", read.buffer.dtype))).collect();
        let mut list = vec![Stmt::alloc(&made)];
        for (read, own) in &owned {
            list.push(Stmt::alloc(own));
            list.push(Stmt::store(own, all(), load(&read.buffer, places(&read.buffer, &read.indices))));
        }
        for i in 0..elements {
            let value = Owned { owned: &owned, element: i }.mutate_prim(&stage.value);
            let there = VarMap::from([(x.var.clone(), add(PrimExpr::from(at), int(i)))]);
            list.push(Stmt::store(&made, [int(i)], freshen_lets(&substitute(&value, &there))));
        }
        list.push(Stmt::store(&stage.output, places(&stage.output, &stage.indices), load(&made, all())));
        Stmt::seq(list)
    }
}

/// Whether a buffer begins at a multiple of 16 bytes.
fn is_aligned(buffer: &Ref<Buffer>) -> PrimExpr {
    let first = load(buffer, vec![int(0); buffer.shape.len()]);
    let address = call(DataType::handle(), "tirx.address_of", vec![first]);
    call(DataType::bool(), "tirx.is_aligned", vec![address, int(super::ACCESS)])
}

/// Puts elements that a thread has in the place of their loads.
struct Owned<'a> {
    owned: &'a [(&'a Ref<BufferLoad>, Ref<Buffer>)],
    element: i64,
}

impl PrimMutator for Owned<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        if let PrimExpr::Load(read) = e {
            let is_same = |known: &BufferLoad| known.buffer == read.buffer && all_same(&known.indices, &read.indices);
            if let Some((_, own)) = self.owned.iter().find(|(known, _)| is_same(known)) {
                return load(own, [int(self.element)]);
            }
        }
        self.remake_prim(e)
    }
}
