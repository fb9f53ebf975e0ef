//! Loads and stores of elements that share bytes with their neighbours.
//!
//! Elements of less than a byte lie without gaps, as DLPack has them, the first in the upper bits of its byte, as arrays of
//! numpy become tensors. Element `i` of `w` bits begins `i * w` bits from the base. Where `w` divides eight it lies in one
//! byte; elsewhere it may reach into the next, which then is read and written as well. A vector of them is taken apart.
//!
//! A store reads the byte that it changes, so two threads must not store to neighbours at once: a parallel loop that stores
//! such elements into memory from outside of the loop is executed by one thread, see [`shares_stored_bytes`].

use std::collections::HashSet;

use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Var, prim::BufferLoad, prim::PrimVisitor};
use relaxide_tir::{BufferStore, Stmt, StmtVisitor};

use super::{
    kernel::Body,
    value::{ScalarKind, Ty, Val},
};
use crate::error::CodegenError;

/// Where an element's bits lie.
struct BitField {
    first: Val,
    /// The byte that it may reach into, where it may.
    second: Option<Val>,
    /// By how much it is shifted in the number that these bytes are.
    shift: Val,
    mask: i64,
    metadata: String,
}

impl Body<'_, '_> {
    /// The elements at an index, or at a vector of them; zero in lanes that are off.
    pub fn load_shared(&mut self, n: &BufferLoad) -> Result<Val, CodegenError> {
        let (numbers, element) = self.numbers(&n.buffer, &n.indices)?;
        let lanes = numbers.len() as u32 / element.lanes;
        let predicate = self.load_predicate(n, lanes)?;
        let predicate = predicate.map(|mask| self.matching_mask(&mask, lanes)).transpose()?;
        let mut values = Vec::with_capacity(numbers.len());
        for (at, number) in numbers.iter().enumerate() {
            let mut place = self.bits(&n.buffer, element, number)?;
            if let Some(predicate) = &predicate {
                let on = self.f.lane(predicate, at as u32 / element.lanes);
                self.harmless(&mut place, &on);
            }
            let word = self.word(&place);
            let value = self.f.op("lshr", &word, &place.shift);
            let value = self.f.op("and", &value, &Val::int(Ty::I32, place.mask));
            values.push(self.f.cast("trunc", &value, element.element()));
        }
        Ok(self.f.gather_lanes(&values))
    }

    /// Stores elements one after the other.
    pub fn store_shared(&mut self, n: &BufferStore) -> Result<(), CodegenError> {
        let value = self.eval(&n.value)?;
        let (numbers, element) = self.numbers(&n.buffer, &n.indices)?;
        let value = self.f.splat_to(&value, numbers.len() as u32);
        if value.ty != element.with_lanes(numbers.len() as u32) {
            let what = format!("a store of {} into {element} of `{}`", value.ty, n.buffer.name);
            return Err(self.kernel.malformed(what));
        }
        let lanes = numbers.len() as u32 / element.lanes;
        let predicate = n.predicate.as_ref().map(|predicate| self.predicate(predicate, lanes)).transpose()?;
        for (at, number) in numbers.iter().enumerate() {
            let part = self.f.lane(&value, at as u32);
            let done = match &predicate {
                Some(predicate) => {
                    let on = self.f.lane(predicate, at as u32 / element.lanes);
                    let (then, done) = (self.f.label(), self.f.label());
                    self.f.branch_if(&on, then, done);
                    self.f.start(then);
                    Some(done)
                }
                None => None,
            };
            let place = self.bits(&n.buffer, element, number)?;
            self.store_bits(&place, &part);
            if let Some(done) = done {
                self.f.branch(done);
                self.f.start(done);
            }
        }
        Ok(())
    }

    /// How many lanes lie before each lane of an access, and the type of elements.
    fn numbers(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Result<(Vec<Val>, Ty), CodegenError> {
        let flat = self.flat_index(buffer, indices)?;
        let element = self.kernel.ty(buffer.dtype)?;
        let index = self.index(&flat)?;
        let mut numbers = Vec::new();
        if index.ty.is_scalable() {
            return Err(self.kernel.unsupported("scalable vectors of elements that share bytes"));
        }
        for lane in 0..index.ty.lanes {
            let first = self.f.lane(&index, lane);
            let first = self.f.op("mul", &first, &Val::int(Ty::I64, i64::from(element.lanes)));
            for part in 0..element.lanes {
                numbers.push(self.f.op("add", &first, &Val::int(Ty::I64, i64::from(part))));
            }
        }
        Ok((numbers, element))
    }

    fn bits(&mut self, buffer: &Ref<Buffer>, element: Ty, number: &Val) -> Result<BitField, CodegenError> {
        let base = self.var(&buffer.data)?;
        let width = i64::from(element.kind.bits());
        let bit = self.f.op("mul", number, &Val::int(Ty::I64, width));
        let within = self.f.op("and", &bit, &Val::int(Ty::I64, 7));
        let within = self.f.cast("trunc", &within, Ty::I32);
        let first = self.byte_at(&base, &bit);
        let mut second = None;
        if 8 % width != 0 {
            let last = self.f.op("add", &bit, &Val::int(Ty::I64, width - 1));
            second = Some(self.byte_at(&base, &last));
        }
        let window = if second.is_some() { 16 } else { 8 };
        let shift = self.f.op("sub", &Val::int(Ty::I32, window - width), &within);
        let metadata = self.kernel.access_metadata(&buffer.data);
        Ok(BitField { first, second, shift, mask: (1 << width) - 1, metadata })
    }

    fn byte_at(&mut self, base: &Val, bit: &Val) -> Val {
        let index = self.f.op("lshr", bit, &Val::int(Ty::I64, 3));
        self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i8, {base}, {index}"))
    }

    /// Lets a place that is off be read where nothing is lost.
    fn harmless(&mut self, place: &mut BitField, on: &Val) {
        let zero = self.f.shared_slot("zero byte", "i8", 1, 1);
        self.f.effect(format_args!("store i8 0, {zero}, align 1"));
        place.first = self.f.select(on, &place.first, &zero);
        place.second = place.second.take().map(|second| self.f.select(on, &second, &zero));
        // The slot is no part of the buffer.
        place.metadata.clear();
    }

    /// The bytes of a place as one number, the first being the upper part.
    fn word(&mut self, place: &BitField) -> Val {
        let mut byte = |pointer: &Val| {
            let raw = self.f.emit(Ty::I8, format_args!("load i8, {pointer}, align 1{}", place.metadata));
            self.f.cast("zext", &raw, Ty::I32)
        };
        let first = byte(&place.first);
        let Some(second) = &place.second else { return first };
        let second = byte(second);
        let upper = self.f.op("shl", &first, &Val::int(Ty::I32, 8));
        self.f.op("or", &upper, &second)
    }

    fn store_bits(&mut self, place: &BitField, value: &Val) {
        let word = self.word(place);
        let mask = self.f.op("shl", &Val::int(Ty::I32, place.mask), &place.shift);
        let others = self.f.not(&mask);
        let kept = self.f.op("and", &word, &others);
        let wide = self.f.cast("zext", value, Ty::I32);
        let moved = self.f.op("shl", &wide, &place.shift);
        let word = self.f.op("or", &kept, &moved);
        // An element that lies in its first byte alone has that as its second too: the first is the one that counts.
        if let Some(second) = &place.second {
            let lower = self.f.cast("trunc", &word, Ty::I8);
            self.f.effect(format_args!("store {lower}, {second}, align 1{}", place.metadata));
        }
        let upper = match place.second {
            Some(_) => self.f.op("lshr", &word, &Val::int(Ty::I32, 8)),
            None => word,
        };
        let upper = self.f.cast("trunc", &upper, Ty::I8);
        self.f.effect(format_args!("store {upper}, {}, align 1{}", place.first, place.metadata));
    }

    /// How many bytes so many elements take.
    pub fn bytes_of(&mut self, dtype: DataType, count: &Val) -> Val {
        let bits = i64::from(dtype.bits) * i64::from(dtype.lanes);
        let bits = self.f.op("mul", count, &Val::int(Ty::I64, bits));
        let padded = self.f.op("add", &bits, &Val::int(Ty::I64, 7));
        self.f.op("lshr", &padded, &Val::int(Ty::I64, 3))
    }
}

impl ScalarKind {
    /// Whether elements in memory share bytes with their neighbours.
    pub fn shares_bytes(self) -> bool {
        matches!(self, ScalarKind::Int { .. } | ScalarKind::Small(_)) && self.bits() < 8
    }
}

/// Whether a loop's body stores elements that share bytes into memory from outside of it.
pub(super) fn shares_stored_bytes(body: &Stmt) -> bool {
    let mut stores = Stores::default();
    stores.visit_stmt(body);
    stores.stored.iter().any(|data| !stores.own.contains(data))
}

#[derive(Default)]
struct Stores {
    stored: HashSet<Ref<Var>>,
    own: HashSet<Ref<Var>>,
}

impl PrimVisitor for Stores {}

impl StmtVisitor for Stores {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::Alloc(alloc) = stmt {
            self.own.insert(alloc.buffer.data.clone());
        }
        self.walk_stmt(stmt);
    }

    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        if buffer.dtype.is_packed() {
            self.stored.insert(buffer.data.clone());
        }
    }
}
