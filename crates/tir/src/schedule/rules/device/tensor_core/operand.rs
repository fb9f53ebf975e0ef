//! An operand of a product: from memory into the registers of threads, and from there into a tile.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BufferLoad, PrimExpr, VarMap, add, and, broadcast, call, constant, floordiv, floormod, if_then_else, int, load, lt,
    mul, ramp, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::super::super::affine::{coefficient, flat_index, uses};
use super::super::super::super::inline::freshen_lets;
use super::super::super::super::{Axis, nest};
use super::super::super::contraction::step;
use super::super::ACCESS;
use super::Found;
use crate::Stmt;

/// An index, with the promise that its access begins at a multiple of some bytes.
pub fn at_multiple(index: PrimExpr, bytes: i64) -> PrimExpr {
    call(index.dtype(), "tirx.at_multiple", vec![index, int(bytes)])
}

/// Neighbours of a buffer's last axis, from an index whose address is a multiple of all of them.
pub fn neighbours(buffer: &Buffer, index: PrimExpr, count: i64) -> PrimExpr {
    ramp(at_multiple(index, count * buffer.dtype.bytes() as i64), 1, count)
}

/// One of the two factors, and the tile of it.
pub struct Operand<'f> {
    found: &'f Found,
    value: &'f PrimExpr,
    /// Its axes beside the terms: its lines.
    axes: &'f [Axis],
    extent: &'f PrimExpr,
    /// Lines of a tile.
    pub side: i64,
    /// Terms of a tile.
    depth: i64,
    /// Whether its memory runs along the terms.
    is_along_terms: bool,
    /// Whether the tile's memory does.
    pub is_tile_along_terms: bool,
    /// Elements that a thread loads at once.
    pub group: i64,
}

/// A step along the terms.
pub(super) struct Step<'a> {
    /// A thread of the block, and how many it has.
    pub thread: &'a Ref<Var>,
    pub threads: i64,
    /// The first row or column of the block's tile.
    pub first: &'a Ref<Var>,
    /// The first term.
    pub k0: &'a Ref<Var>,
    /// Whether the step may lie behind the last term.
    pub beyond: bool,
}

impl<'f> Operand<'f> {
    pub fn rows(found: &'f Found, side: i64, depth: i64) -> Operand<'f> {
        let c = &found.c;
        let along = |axis: Option<&Axis>| axis.is_some_and(|axis| step(&c.row, &axis.var) == Some(1));
        let is_along_terms = along(c.inner.last()) || !along(c.rows.last());
        Operand::of(found, &found.factors[0], &c.rows, &found.rows, side, depth, is_along_terms)
    }

    pub fn columns(found: &'f Found, side: i64, depth: i64) -> Operand<'f> {
        let c = &found.c;
        let is_along_terms = step(&c.column, &c.x.var) != Some(1) && c.has_rows_of_terms(1);
        Operand::of(found, &found.factors[1], &found.column_axes, &found.columns, side, depth, is_along_terms)
    }

    fn of(
        found: &'f Found,
        value: &'f PrimExpr,
        axes: &'f [Axis],
        extent: &'f PrimExpr,
        side: i64,
        depth: i64,
        is_along_terms: bool,
    ) -> Operand<'f> {
        let is_tile_along_terms = is_along_terms || value.dtype().bits == 8;
        let mut operand =
            Operand { found, value, axes, extent, side, depth, is_along_terms, is_tile_along_terms, group: 1 };
        let wanted = ACCESS / operand.dtype().bytes() as i64;
        if operand.has_neighbours(wanted).is_some() {
            operand.group = wanted;
        }
        operand
    }

    pub fn dtype(&self) -> DataType {
        self.value.dtype()
    }

    /// Whether so many elements, from a multiple of as many on, are neighbours in memory from a multiple of their bytes on, if the memory
    /// begins at one; nothing where they are not.
    fn has_neighbours(&self, count: i64) -> Option<()> {
        let load = self.plain_load()?;
        let axis = if self.is_along_terms { self.found.c.inner.last()? } else { self.axes.last()? };
        let (last, others) = load.indices.split_last()?;
        let is_alone = coefficient(last, &axis.var) == Some(1) && !others.iter().any(|index| uses(index, &axis.var));
        let is_long = axis.extent.as_int().is_some_and(|n| n % count == 0);
        if !is_alone || !is_long {
            return None;
        }
        let flat = flat_index(&load.buffer, &load.indices);
        let all: Vec<&Axis> = self.found.c.batch.iter().chain(self.axes).chain(&self.found.c.inner).collect();
        for other in all.iter().filter(|other| other.var != axis.var) {
            coefficient(&flat, &other.var).filter(|step| step % count == 0)?;
        }
        let none: VarMap = all.iter().map(|axis| (axis.var.clone(), int(0))).collect();
        substitute(&flat, &none).as_int().filter(|first| first % count == 0).map(|_| ())
    }

    fn plain_load(&self) -> Option<&'f Ref<BufferLoad>> {
        let PrimExpr::Load(load) = self.value else { return None };
        let buffer = &load.buffer;
        let is_plain = load.predicate.is_none() && buffer.strides.is_empty() && buffer.elem_offset.is_int(0);
        (is_plain && buffer.dtype.lanes == 1 && !buffer.dtype.is_packed()).then_some(load)
    }

    /// Whether the memory begins where elements may be loaded together; nothing where none are.
    pub fn address_check(&self) -> Option<PrimExpr> {
        let buffer = &self.plain_load().filter(|_| self.group > 1)?.buffer;
        let first = load(buffer, vec![int(0); buffer.shape.len()]);
        let address = call(DataType::handle(), "tirx.address_of", vec![first]);
        Some(call(DataType::bool(), "tirx.is_aligned", vec![address, int(ACCESS)]))
    }

    /// Elements of a row of a tile, with those that keep its banks apart.
    fn pitch(&self) -> i64 {
        let (bytes, row) = (self.dtype().bytes() as i64, if self.is_tile_along_terms { self.depth } else { self.side });
        // Four rows of single precision are to meet different banks, where others are 16 bytes further each.
        let pad = if bytes == 4 && !self.is_tile_along_terms { 2 * ACCESS } else { ACCESS };
        row + pad / bytes
    }

    pub fn tile_bytes(&self) -> i64 {
        let rows = if self.is_tile_along_terms { self.side } else { self.depth };
        rows * self.pitch() * self.dtype().bytes() as i64
    }

    pub fn tile(&self) -> Ref<Buffer> {
        let rows = if self.is_tile_along_terms { self.side } else { self.depth };
        Buffer::scoped("tile", self.dtype(), [int(rows), int(self.pitch())], "shared")
    }

    /// How often each of some threads loads a group.
    fn iterations(&self, threads: i64) -> i64 {
        (self.side * self.depth + threads * self.group - 1) / (threads * self.group)
    }

    /// A thread's elements of a tile.
    pub fn own(&self, threads: i64) -> Ref<Buffer> {
        Buffer::scoped("own", self.dtype(), [int(self.iterations(threads) * self.group)], "local")
    }

    /// Where a tile has an element.
    pub fn place(&self, line: PrimExpr, term: PrimExpr) -> [PrimExpr; 2] {
        if self.is_tile_along_terms { [line, term] } else { [term, line] }
    }

    /// `body` for each group of a thread: its number, and line and term of its first element.
    fn each(&self, thread: &Ref<Var>, threads: i64, body: impl Fn(i64, (&Ref<Var>, &Ref<Var>)) -> Stmt) -> Stmt {
        let groups = self.side * self.depth / self.group;
        Stmt::seq((0..self.iterations(threads)).map(|iteration| {
            let [at, line, term] = ["at", "line", "term"].map(Var::dim);
            let number = PrimExpr::from(&at);
            let run = if self.is_along_terms { self.depth } else { self.side } / self.group;
            let (outer, inner) = (floordiv(&number, int(run)), mul(floormod(&number, int(run)), int(self.group)));
            let (of_line, of_term) = if self.is_along_terms { (outer, inner) } else { (inner, outer) };
            let inside = Stmt::seq([
                Stmt::bind(line.clone(), of_line),
                Stmt::bind(term.clone(), of_term),
                body(iteration, (&line, &term)),
            ]);
            let is_whole = (iteration + 1) * threads <= groups;
            let inside = if is_whole { inside } else { Stmt::when(lt(&number, int(groups)), inside) };
            Stmt::seq([Stmt::bind(at, add(int(iteration * threads), PrimExpr::from(thread))), inside])
        }))
    }

    /// A thread's elements of a step into registers; zero beyond the ends.
    pub fn fetch(&self, own: &Ref<Buffer>, step: &Step<'_>, aligned: &Ref<Var>) -> Stmt {
        let Step { thread, threads, first, k0, beyond } = *step;
        self.each(thread, threads, |iteration, (line, term)| {
            let [of_line, of_term] = ["of_line", "of_term"].map(Var::dim);
            let mut list = vec![
                Stmt::bind(of_line.clone(), add(PrimExpr::from(first), PrimExpr::from(line))),
                Stmt::bind(of_term.clone(), add(PrimExpr::from(k0), PrimExpr::from(term))),
            ];
            list.extend(nest::fuse(self.axes, &of_line).1);
            list.extend(nest::fuse(&self.found.c.inner, &of_term).1);
            let inside = self.inside(&of_line, &of_term, beyond);
            list.push(match self.plain_load().filter(|_| self.group > 1) {
                Some(load) => self.fetch_group(own, iteration, load, inside, aligned),
                None => {
                    let value = freshen_lets(self.value);
                    let zero = constant(self.dtype(), 0.0);
                    let value = inside.map_or(value.clone(), |inside| if_then_else(inside, value, zero));
                    Stmt::store(own, [int(iteration)], value)
                }
            });
            Stmt::seq(list)
        })
    }

    /// Whether an element lies inside, where that is a question.
    fn inside(&self, line: &Ref<Var>, term: &Ref<Var>, beyond: bool) -> Option<PrimExpr> {
        let whole = |extent: &PrimExpr, by: i64| extent.as_int().is_some_and(|n| n % by == 0);
        let is_whole = [whole(self.extent, self.side), whole(&self.found.terms, self.depth) && !beyond];
        let asks = [(line, self.extent), (term, &self.found.terms)];
        let asks = asks.into_iter().zip(is_whole).filter(|(_, is_whole)| !is_whole);
        asks.map(|((var, extent), _)| lt(PrimExpr::from(var), extent.clone())).reduce(and)
    }

    fn fetch_group(
        &self,
        own: &Ref<Buffer>,
        iteration: i64,
        from: &Ref<BufferLoad>,
        inside: Option<PrimExpr>,
        aligned: &Ref<Var>,
    ) -> Stmt {
        let group = self.group;
        let to = |i: i64| int(iteration * group + i);
        let (buffer, indices) = (&from.buffer, &from.indices);
        let at = |i: i64| {
            let mut indices = indices.clone();
            if let Some(last) = indices.last_mut() {
                *last = if i < 0 { neighbours(buffer, last.clone(), group) } else { add(last.clone(), int(i)) };
            }
            load(buffer, indices)
        };
        let together = Stmt::store(own, [ramp(to(0), 1, group)], at(-1));
        let each = Stmt::seq((0..group).map(|i| Stmt::store(own, [to(i)], at(i))));
        let loaded = Stmt::if_else(PrimExpr::from(aligned), together, each);
        let zeros = Stmt::store(own, [ramp(to(0), 1, group)], broadcast(constant(self.dtype(), 0.0), group));
        match inside {
            Some(inside) => Stmt::if_else(inside, loaded, zeros),
            None => loaded,
        }
    }

    /// The same elements into the tile.
    pub fn put(&self, own: &Ref<Buffer>, tile: &Ref<Buffer>, thread: &Ref<Var>, threads: i64) -> Stmt {
        self.each(thread, threads, |iteration, (line, term)| {
            let (line, term) = (PrimExpr::from(line), PrimExpr::from(term));
            let from = |i: i64| int(iteration * self.group + i);
            if self.group > 1 && self.is_along_terms == self.is_tile_along_terms {
                let [row, at] = self.place(line, term);
                let value = load(own, [ramp(from(0), 1, self.group)]);
                return Stmt::store(tile, [row, neighbours(tile, at, self.group)], value);
            }
            let one = |i: i64| {
                let (line, term) = match self.is_along_terms {
                    true => (line.clone(), add(&term, int(i))),
                    false => (add(&line, int(i)), term.clone()),
                };
                Stmt::store(tile, self.place(line, term), load(own, [from(i)]))
            };
            Stmt::seq((0..self.group).map(one))
        })
    }
}
