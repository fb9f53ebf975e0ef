//! Pieces of work that share their rows: what one row of each needs is made from the same row of those before it.
//!
//! ```text
//! M[i]    = max over k of A[i, k]                    Rows { axes: [i],
//! E[i, k] = exp(A[i, k] - M[i])               ->            pieces: M[0] = max …, E[k] = …, S[0] = …, B[i, k] = …,
//! S[i]    = sum over k of E[i, k]                           scratch: [M: 1, E: n, S: 1] }
//! B[i, k] = E[i, k] / S[i]
//! ```
//!
//! Softmax and the norms are such. Piece after piece over the whole tensor, each would read it from memory again; row after
//! row, a row stays in the first-level cache, and what lies between the pieces is as small as a row. Where the last reader of such
//! a row writes one of the same shape, the two share their memory: above, `E[k]` is kept in `B[i, k]`. Short rows are taken
//! several together, keep theirs apart and ask for what is written later. Where the length is known only when the work
//! runs, it is laid out in both ways.
//!
//! An axis is a row axis where every piece has it, each reads of the pieces before it only what they made at the same place
//! of it, and no piece runs along it through memory (a vector wants that axis inside). A run starts with any piece, but not with one that has
//! fewer row axes than the others would have without it. It grows while a piece reads what the run has made, and loses row axes only until
//! its first reduction. Contractions stay outside, and sums whose terms have a part that all rows share: their tiles want many rows at
//! once, and threads their columns.

mod decide;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, VarMap, int, load, mul, substitute};
use relaxide_ir::{Buffer, Var};

use super::affine::{ceil_div, coefficient, flat_index, loads, product, same, uses_any};
use super::below_maximum;
use super::group::{Reduce, Work};
use super::machine::elements_in_line;
use super::nest::Tail;
use super::parameters::Choices;
use super::prefetch::{Prefetch, WrittenRow, first_of_sums};
use super::record::Record;
use super::rules::{Contraction, fits_threads, has_choice, has_column_terms};
use super::shown_by_sum;
use super::stage::{Axis, Program, Reduction, Stage};
use super::sum_of_exponentials;
use super::{Machine, ScheduleError};
use crate::lower::{DeviceLimits, SHARED, bytes_of};

pub use decide::{Decided, RowBatch};

/// Elements of a row below which there is nothing to share.
const SHORT: i64 = 2;
/// Elements of a row from which a few rows would leave threads without work.
const LONG: i64 = 32 << 10;
/// What "a few" is.
const FEW: i64 = 8;

/// Pieces of work, row by row.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The axes over which rows are told apart.
    pub axes: Vec<Axis>,
    /// The pieces, over the rest of their axes.
    pub pieces: Vec<Work>,
    /// What lies between the pieces and nobody else reads, as large as a row, or as the rows that are taken together.
    pub scratch: Vec<Ref<Buffer>>,
    /// How rows are taken together, where they are short.
    pub together: Option<RowBatch>,
    /// The same work for rows of at most so many elements, where nobody knows yet how long they are.
    pub short: Option<(i64, Box<Rows>)>,
    /// What has been decided of them; nothing on devices, whose rule decides itself.
    pub decided: Option<Decided>,
}

/// Elements of a row from which the threads of a block of a device share it.
const LONG_FOR_THREADS: i64 = 32;

/// Joins neighbours that share rows. On a device the threads of a block share a row, one piece after the other, and what lies between the
/// pieces is memory that they share.
pub fn join(
    program: &Program,
    work: Vec<Work>,
    machine: &Machine,
    record: &mut Record<'_>,
) -> Result<Vec<Work>, ScheduleError> {
    let device = machine.device;
    let mut joined = Vec::new();
    let mut position = 0;
    while position < work.len() {
        let least = if device.is_some() { LONG_FOR_THREADS } else { SHORT };
        let run = Run::longest(&work[position..], machine)
            .filter(|run| run.pays(least) && !run.is_held_up_by_its_first(&work[position..], machine));
        let mut laid_out = |run: Run<'_>| {
            let end = position + run.pieces.len();
            let others = work[..position].iter().chain(&work[end..]).flat_map(Work::buffers).collect();
            let rows = match device {
                Some(limits) => run.on_device(program, &others, limits),
                None => Some(run.into_rows(program, &others, machine, record)?),
            };
            Ok::<_, ScheduleError>(rows.map(|rows| (rows, end)))
        };
        match run.map(&mut laid_out).transpose()?.flatten() {
            Some((rows, end)) => {
                joined.push(Work::Rows(rows));
                position = end;
            }
            None => {
                joined.push(work[position].clone());
                position += 1;
            }
        }
    }
    Ok(joined)
}

/// A piece of work with one output whose elements are the points of its axes.
struct Piece<'a> {
    work: &'a Work,
    stage: &'a Stage,
    output: &'a Ref<Buffer>,
    indices: &'a [PrimExpr],
    loads: Vec<Ref<BufferLoad>>,
    /// Which row axis each of its axes is.
    rows: HashMap<Ref<Var>, usize>,
}

impl<'a> Piece<'a> {
    fn of(work: &'a Work, machine: &Machine) -> Option<Piece<'a>> {
        let wants_rows = |r: &Reduce| Contraction::of_numbers_or_words(r).is_ok() || has_column_terms(machine, r);
        let (stage, output, indices, epilogue) = match work {
            Work::Map(stage) => (stage, &stage.output, &stage.indices, None),
            Work::Reduce(r) if !wants_rows(r) => (&r.stage, &r.output, &r.indices, Some(&r.epilogue)),
            _ => return None,
        };
        let known = stage.spatial.iter().chain(&stage.reduce).all(|a| !a.extent.is_int(0));
        if !known || !stage.is_identity() || indices.iter().any(|i| i.as_var().is_none() && !i.is_int(0)) {
            return None;
        }
        let init = stage.reduction.as_ref().map(|r| &r.init);
        let loads = std::iter::once(&stage.value).chain(init).chain(epilogue).flat_map(loads).collect();
        Some(Piece { work, stage, output, indices, loads, rows: HashMap::new() })
    }

    /// The row axis of each dimension of the output.
    fn dims(&self) -> Vec<Option<usize>> {
        self.indices.iter().map(|i| i.as_var().and_then(|v| self.rows.get(v).copied())).collect()
    }

    /// The row axes along which it runs through memory.
    fn contiguous(&self) -> Vec<usize> {
        let axes = || self.stage.spatial.iter().chain(&self.stage.reduce).map(|a| &a.var);
        let inner: Vec<&Ref<Var>> = axes().filter(|v| !self.rows.contains_key(*v)).collect();
        let places = self.loads.iter().map(|l| (&l.buffer, l.indices.as_slice()));
        places
            .chain([(self.output, self.indices)])
            .map(|(buffer, indices)| flat_index(buffer, indices))
            .filter(|flat| uses_any(flat, inner.iter().copied()))
            .flat_map(|flat| self.rows.iter().filter(move |(v, _)| coefficient(&flat, v) == Some(1)))
            .map(|(_, row)| *row)
            .collect()
    }

    /// Elements of a row, where that is known.
    fn row_elements(&self) -> Option<i64> {
        let axes = self.stage.spatial.iter().chain(&self.stage.reduce);
        product(axes.filter(|a| !self.rows.contains_key(&a.var)).map(|a| &a.extent)).as_int()
    }
}

/// Pieces that share rows, as far as has been read.
struct Run<'a> {
    pieces: Vec<Piece<'a>>,
    /// Extents of the row axes, some of which have been given up.
    extents: Vec<PrimExpr>,
}

impl<'a> Run<'a> {
    fn longest(work: &'a [Work], machine: &Machine) -> Option<Run<'a>> {
        let mut first = Piece::of(work.first()?, machine)?;
        let axes = &first.stage.spatial;
        let extents = axes.iter().map(|a| a.extent.clone()).collect();
        first.rows = axes.iter().enumerate().map(|(row, a)| (a.var.clone(), row)).collect();
        let mut run = Run { pieces: vec![first], extents };
        run.settle();
        let more = work[1..].iter().map_while(|work| Piece::of(work, machine));
        for piece in more {
            if !run.take(piece) {
                break;
            }
        }
        Some(run)
    }

    /// The row axes that are left.
    fn alive(&self) -> HashSet<usize> {
        self.pieces.last().map(|p| p.rows.values().copied().collect()).unwrap_or_default()
    }

    /// How many row axes have more than one row.
    fn several(&self) -> usize {
        self.alive().iter().filter(|row| self.extents.get(**row).is_some_and(|extent| !extent.is_int(1))).count()
    }

    /// Gives up row axes that lie along memory in some piece, until none does.
    fn settle(&mut self) {
        loop {
            let along: HashSet<usize> = self.pieces.iter().flat_map(Piece::contiguous).collect();
            if along.is_empty() {
                return;
            }
            self.keep(|row| !along.contains(&row));
        }
    }

    fn keep(&mut self, wanted: impl Fn(usize) -> bool) {
        self.pieces.iter_mut().for_each(|p| p.rows.retain(|_, row| wanted(*row)));
    }

    /// Adds a piece, if it shares rows with the others.
    fn take(&mut self, mut piece: Piece<'a>) -> bool {
        let Some(rows) = self.rows_of(&piece) else { return false };
        // What a piece writes must not be what one before it still has to read of another row.
        if self.pieces.iter().chain([&piece]).any(|p| p.loads.iter().any(|l| l.buffer == *piece.output)) {
            return false;
        }
        piece.rows = rows;
        let before: Vec<HashMap<Ref<Var>, usize>> = self.pieces.iter().map(|p| p.rows.clone()).collect();
        let wanted = self.alive().len();
        let shared: HashSet<usize> = piece.rows.values().copied().collect();
        self.keep(|row| shared.contains(&row));
        let reduces = self.pieces.iter().any(|p| p.stage.reduction.is_some());
        self.pieces.push(piece);
        self.settle();
        let left = self.alive().len();
        if left == 0 || left < wanted && reduces {
            self.pieces.pop();
            self.pieces.iter_mut().zip(before).for_each(|(p, rows)| p.rows = rows);
            return false;
        }
        true
    }

    /// Which row axes the axes of a piece are, from where it reads what the run has made; `None` where it reads none of it.
    fn rows_of(&self, piece: &Piece<'a>) -> Option<HashMap<Ref<Var>, usize>> {
        let mut axes: HashMap<usize, Ref<Var>> = HashMap::new();
        let mut lost = HashSet::new();
        let mut connected = false;
        for read in &piece.loads {
            let Some(maker) = self.pieces.iter().find(|p| *p.output == read.buffer) else { continue };
            connected = true;
            for (row, index) in maker.dims().into_iter().zip(&read.indices) {
                let Some(row) = row else { continue };
                let own = index.as_var().and_then(|v| piece.stage.spatial.iter().find(|a| a.var == *v));
                match own.filter(|a| same(&a.extent, &self.extents[row])) {
                    Some(axis) if axes.get(&row).is_none_or(|v| *v == axis.var) => {
                        axes.insert(row, axis.var.clone());
                    }
                    _ => {
                        lost.insert(row);
                    }
                }
            }
        }
        axes.retain(|row, _| !lost.contains(row));
        let rows: HashMap<Ref<Var>, usize> = axes.iter().map(|(row, var)| (var.clone(), *row)).collect();
        // One axis cannot be two rows.
        (connected && rows.len() == axes.len()).then_some(rows)
    }

    /// Whether all but the first piece, which is made for several of their rows at once as a mask is, would have shorter rows without it.
    fn is_held_up_by_its_first(&self, work: &[Work], machine: &Machine) -> bool {
        let rest = || work.get(1..).and_then(|rest| Run::longest(rest, machine));
        matches!(work.first(), Some(Work::Map(_)))
            && self.pieces.len() > 2
            && rest().is_some_and(|rest| rest.pieces.len() + 1 >= self.pieces.len() && rest.several() > self.several())
    }

    /// Whether row after row is better than piece after piece.
    fn pays(&self, least: i64) -> bool {
        let reduces = self.pieces.iter().any(|p| p.stage.reduction.is_some());
        let longest = self.pieces.iter().map(|p| p.row_elements().unwrap_or(i64::MAX)).max().unwrap_or(0);
        let alive = self.alive();
        let known = |row: &usize| self.extents.get(*row).and_then(PrimExpr::as_int);
        let rows = alive.iter().map(known).try_fold(1i64, |all, n| all.checked_mul(n?));
        let idle = rows.is_some_and(|n| n < FEW) && longest != i64::MAX && longest > LONG;
        self.pieces.len() > 1 && reduces && !alive.is_empty() && longest >= least && !idle
    }

    /// The piece that may lend the row that it writes to an earlier one: the only one that reads it late, element by
    /// element, and no other piece touches that row before.
    fn host(&self, of: usize) -> Option<&Piece<'a>> {
        let output = self.pieces[of].output;
        let last = self.pieces.iter().rposition(|p| p.loads.iter().any(|l| l.buffer == *output))?;
        let host = &self.pieces[last];
        let touched = |p: &Piece<'_>| p.output == host.output || p.loads.iter().any(|l| l.buffer == *host.output);
        let others = self.pieces.iter().enumerate().filter(|(at, _)| *at != last);
        let is_map = matches!(host.work, Work::Map(_));
        let twice = self.pieces.iter().filter(|p| p.output == output).count() > 1;
        (last > of && is_map && !twice && !others.into_iter().any(|(_, p)| touched(p))).then_some(host)
    }

    /// The row that the last piece writes, where the first of several sums runs along it and nothing is kept there before.
    fn written_last(
        &self,
        kept: impl Fn(&Piece<'_>) -> bool,
        rows: &[(usize, PrimExpr)],
    ) -> Option<(usize, WrittenRow)> {
        let first = first_of_sums(self.pieces.iter().map(|p| p.work))?;
        let (sum, last) = (self.pieces.get(first)?, self.pieces.last()?);
        let [along] = sum.stage.reduce.as_slice() else { return None };
        let mut axes = last.stage.spatial.iter().filter(|a| !last.rows.contains_key(&a.var));
        let (own, None) = (axes.next()?, axes.next()) else { return None };
        if !matches!(last.work, Work::Map(_)) || kept(last) || !same(&own.extent, &along.extent) {
            return None;
        }
        let place = |(index, row): (&PrimExpr, Option<usize>)| match row {
            Some(row) => rows.iter().find(|(r, _)| *r == row).map(|(_, var)| Some(var.clone())),
            None if index.is_int(0) => Some(Some(int(0))),
            None => Some(None),
        };
        let indices = last.indices.iter().zip(last.dims()).map(place).collect::<Option<Vec<_>>>()?;
        Some((first, WrittenRow { buffer: last.output.clone(), indices }))
    }

    /// The pieces over one row, in two ways if nobody knows how long it is.
    fn into_rows(
        self,
        program: &Program,
        read_elsewhere: &HashSet<Ref<Buffer>>,
        machine: &Machine,
        record: &mut Record<'_>,
    ) -> Result<Rows, ScheduleError> {
        let longest = self.pieces.iter().map(Piece::row_elements).try_fold(0, |longest, n| Some(longest.max(n?)));
        let name = self.pieces.iter().map(|p| p.work.name()).collect::<Vec<_>>().join(", ");
        let key = record.reserve(&name);
        let mut choices = Choices::of(record.asked(&key));
        let is_norm = first_of_sums(self.pieces.iter().map(|p| p.work)).is_some();
        let most = decide::short(&mut choices, is_norm);
        let together = match longest {
            Some(longest) => longest <= most,
            None => most > 0,
        };
        let together = together.then(|| decide::row_batch(&mut choices, most));
        let decided = decide::rest(machine, &mut choices);
        record.check_only(&key, "rowwise", &choices)?;
        let decided = Some(Decided { key, parameters: choices.into_parameters(), ..decided });
        let laid_out = |together: Option<&RowBatch>| self.laid_out(program, read_elsewhere, together, None);
        let rows = match longest {
            Some(_) => laid_out(together.as_ref()),
            None => {
                let short = together.as_ref().map(|together| (most, Box::new(laid_out(Some(together)))));
                Rows { short, ..laid_out(None) }
            }
        };
        Ok(Rows { decided, ..rows })
    }

    /// The pieces over one row, with what lies between them in memory that threads share; `None` where that does not fit.
    fn on_device(
        &self,
        program: &Program,
        read_elsewhere: &HashSet<Ref<Buffer>>,
        limits: DeviceLimits,
    ) -> Option<Rows> {
        let rows = self.laid_out(program, read_elsewhere, None, Some(SHARED));
        let bytes =
            rows.scratch.iter().map(|buffer| bytes_of(buffer)).try_fold(0i64, |all, bytes| all.checked_add(bytes?))?;
        let fits = rows.pieces.iter().all(|piece| fits_threads(piece).is_ok());
        (fits && bytes <= limits.shared_bytes / 2).then_some(rows)
    }

    fn laid_out(
        &self,
        program: &Program,
        read_elsewhere: &HashSet<Ref<Buffer>>,
        together: Option<&RowBatch>,
        scope: Option<&str>,
    ) -> Rows {
        let is_short = together.is_some();
        let mut order: Vec<usize> = self.alive().into_iter().collect();
        order.sort_unstable();
        let names = &self.pieces[0].rows;
        let axes: Vec<Axis> = order
            .iter()
            .map(|row| {
                let name = names.iter().find(|(_, r)| *r == row).map_or("row", |(v, _)| v.name.as_str());
                Axis { var: Var::dim(name), extent: self.extents[*row].clone() }
            })
            .collect();
        let private = |p: &Piece<'_>| program.intermediates.contains(p.output) && !read_elsewhere.contains(p.output);
        let names: Vec<(usize, PrimExpr)> =
            order.iter().zip(&axes).map(|(row, axis)| (*row, PrimExpr::from(&axis.var))).collect();
        let mut scratch: HashMap<Ref<Buffer>, Scratch> = HashMap::new();
        let (mut hosts, mut asked) = (HashSet::new(), HashMap::new());
        for (at, piece) in self.pieces.iter().enumerate().filter(|(_, p)| private(p)) {
            let host = self.host(at).filter(|host| !private(host) && !hosts.contains(host.output));
            let guest =
                host.and_then(|host| Scratch::inside(piece, host, &names).inspect(|_| _ = hosts.insert(host.output)));
            let own = || Scratch::of(piece, together, scope);
            let row = guest.as_ref().filter(|_| is_short && matches!(piece.work, Work::Map(_)));
            if let Some(row) = row.and_then(Scratch::written_row) {
                asked.insert(at, row);
                scratch.insert(piece.output.clone(), own());
            } else {
                scratch.insert(piece.output.clone(), guest.unwrap_or_else(own));
            }
        }
        let pieces = self.pieces.iter().map(|p| {
            let place = |row: usize| order.iter().position(|r| *r == row).and_then(|i| axes.get(i));
            let map =
                p.rows.iter().filter_map(|(v, row)| Some((v.clone(), PrimExpr::from(&place(*row)?.var)))).collect();
            InRow { scratch: &scratch, map }.of(p, is_short)
        });
        let mut pieces: Vec<Work> = pieces.collect();
        let last = (!is_short).then(|| self.written_last(|p| private(p) || hosts.contains(p.output), &names));
        asked.extend(last.flatten());
        for (at, row) in asked {
            if let Some(stage) = pieces.get_mut(at).and_then(Work::stage_mut) {
                stage.ahead = Some(Box::new(Prefetch::of_written(row)));
            }
        }
        below_maximum::mark(&mut pieces);
        shown_by_sum::mark(&mut pieces, &self.pieces.iter().map(&private).collect::<Vec<_>>());
        sum_of_exponentials::multiply_instead(&mut pieces);
        let own = |p: &Piece<'_>| scratch.get(p.output).filter(|s| s.is_own).map(|s| s.buffer.clone());
        let scratch = self.pieces.iter().filter_map(own).collect();
        Rows { axes, pieces, scratch, together: together.cloned(), short: None, decided: None }
    }
}

/// Where what lies between the pieces is kept, a row of it.
struct Scratch {
    buffer: Ref<Buffer>,
    /// Its own buffer, as large as a row, and no other's.
    is_own: bool,
    /// What the indices into the buffer are.
    places: Vec<ScratchIndex>,
    /// Whether each row has room for whole vectors.
    is_padded: bool,
}

/// An index into scratch.
enum ScratchIndex {
    /// The index of a dimension of what it is scratch for.
    Dim(usize),
    /// Always the same.
    Fixed(PrimExpr),
}

impl Scratch {
    /// A buffer of its own.
    fn of(piece: &Piece<'_>, together: Option<&RowBatch>, scope: Option<&str>) -> Scratch {
        let dims = piece.dims();
        let kept: Vec<usize> = (0..dims.len()).filter(|d| dims[*d].is_none()).collect();
        let shape: Vec<PrimExpr> = kept.iter().filter_map(|d| piece.output.shape.get(*d).cloned()).collect();
        let one = product(&shape).is_int(1);
        let (mut shape, mut places) = match kept.is_empty() {
            true => (vec![int(1)], vec![ScratchIndex::Fixed(int(0))]),
            false => (shape, kept.into_iter().map(ScratchIndex::Dim).collect()),
        };
        let is_padded = together.is_some() && shape.len() == 1 && !one;
        if is_padded {
            let line = elements_in_line(piece.output.dtype);
            shape = shape.iter().map(|n| mul(ceil_div(n, line), int(line))).collect();
        }
        if let Some(together) = together {
            let count = if one { int(together.most) } else { PrimExpr::from(&together.count) };
            shape.insert(0, count);
            places.insert(0, ScratchIndex::Fixed(PrimExpr::from(&together.slot)));
        }
        let scope = scope.unwrap_or(if one { "local" } else { "global" });
        let name = piece.output.name.clone();
        Scratch { buffer: Buffer::scoped(name, piece.output.dtype, shape, scope), is_own: true, places, is_padded }
    }

    /// The row that a later piece writes: what it keeps until then is scratch for free, and the memory is asked for early,
    /// while there is still something to compute.
    fn inside(piece: &Piece<'_>, host: &Piece<'_>, rows: &[(usize, PrimExpr)]) -> Option<Scratch> {
        if piece.output.dtype != host.output.dtype || product(&Scratch::of(piece, None, None).buffer.shape).is_int(1) {
            return None;
        }
        let reads: Vec<_> = host.loads.iter().filter(|l| l.buffer == *piece.output).collect();
        let read = *reads.first()?;
        if reads.iter().any(|other| other.indices != read.indices) || read.indices.len() != piece.indices.len() {
            return None;
        }
        let kept = piece.dims().iter().filter(|row| row.is_none()).count();
        let place = |(index, row): (&PrimExpr, Option<usize>)| match row {
            Some(row) => rows.iter().find(|(r, _)| *r == row).map(|(_, var)| ScratchIndex::Fixed(var.clone())),
            None if index.is_int(0) => Some(ScratchIndex::Fixed(int(0))),
            None => read.indices.iter().position(|i| i.as_var() == index.as_var()).map(ScratchIndex::Dim),
        };
        let places = host.indices.iter().zip(host.dims()).map(place).collect::<Option<Vec<_>>>()?;
        let used = places.iter().filter(|place| matches!(place, ScratchIndex::Dim(_))).count();
        // Every element of the row has a place, and the host's row is not longer.
        let shapes_agree = places.iter().zip(&host.output.shape).all(|(place, host)| match place {
            ScratchIndex::Dim(d) => piece.output.shape.get(*d).is_some_and(|own| same(own, host)),
            ScratchIndex::Fixed(_) => true,
        });
        (used == kept && shapes_agree).then(|| Scratch {
            buffer: host.output.clone(),
            is_own: false,
            places,
            is_padded: false,
        })
    }

    /// The row itself, if its elements lie along one dimension.
    fn written_row(&self) -> Option<WrittenRow> {
        let index = |place: &ScratchIndex| match place {
            ScratchIndex::Dim(_) => None,
            ScratchIndex::Fixed(index) => Some(index.clone()),
        };
        let indices: Vec<_> = self.places.iter().map(index).collect();
        let one = indices.iter().filter(|i| i.is_none()).count() == 1;
        one.then(|| WrittenRow { buffer: self.buffer.clone(), indices })
    }

    fn indices(&self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        let index = |place: &ScratchIndex| match place {
            ScratchIndex::Dim(d) => indices.get(*d).cloned().unwrap_or_else(|| int(0)),
            ScratchIndex::Fixed(index) => index.clone(),
        };
        self.places.iter().map(index).collect()
    }
}

/// Takes a piece into one row.
struct InRow<'a> {
    scratch: &'a HashMap<Ref<Buffer>, Scratch>,
    /// The axes of the piece that tell rows apart.
    map: VarMap,
}

impl InRow<'_> {
    fn of(mut self, piece: &Piece<'_>, is_short: bool) -> Work {
        match piece.work {
            Work::Reduce(reduce) => {
                let tail = if is_short { Tail::Overlapped } else { Tail::Masked };
                let stage = Stage { tail, ..self.stage(&reduce.stage) };
                let epilogue = self.value(&reduce.epilogue);
                let (output, indices) = self.target(&reduce.output, &reduce.indices);
                Work::Reduce(Reduce { stage, acc: reduce.acc.clone(), epilogue, output, indices })
            }
            _ => {
                let tail = if is_short { self.tail(piece) } else { Tail::Masked };
                Work::Map(Stage { tail, ..self.stage(piece.stage) })
            }
        }
    }

    /// How a short row may end.
    fn tail(&self, piece: &Piece<'_>) -> Tail {
        let own = |b: &Ref<Buffer>| self.scratch.get(b).filter(|s| s.is_own);
        match own(piece.output) {
            _ if has_choice(&piece.stage.value) => Tail::Masked,
            Some(scratch) if scratch.is_padded => Tail::Padded,
            None if piece.loads.iter().all(|l| own(&l.buffer).is_some()) => Tail::Overlapped,
            _ => Tail::Masked,
        }
    }

    fn stage(&mut self, stage: &Stage) -> Stage {
        let (output, indices) = self.target(&stage.output, &stage.indices);
        let spatial = stage.spatial.iter().filter(|a| !self.map.contains_key(&a.var)).cloned().collect();
        let reduction = stage.reduction.as_ref().map(|r| Reduction { op: r.op, init: self.value(&r.init) });
        Stage { spatial, output, indices, reduction, value: self.value(&stage.value), ..stage.clone() }
    }

    fn value(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = substitute(e, &self.map);
        self.mutate_prim(&e)
    }

    fn target(&self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> (Ref<Buffer>, Vec<PrimExpr>) {
        let indices: Vec<PrimExpr> = indices.iter().map(|i| substitute(i, &self.map)).collect();
        match self.scratch.get(buffer) {
            Some(own) => (own.buffer.clone(), own.indices(&indices)),
            None => (buffer.clone(), indices),
        }
    }
}

impl PrimMutator for InRow<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l) if self.scratch.contains_key(&l.buffer) => {
                let indices: Vec<PrimExpr> = self.mutate_prims(&l.indices);
                let own = &self.scratch[&l.buffer];
                load(&own.buffer, own.indices(&indices))
            }
            _ => self.remake_prim(e),
        }
    }
}
