//! Loads and stores.
//!
//! A vector access is classified by the shape of its index: `base + lane * stride` with a literal stride is one vector
//! access (1), a scalar and a broadcast (0), a reversed vector (-1), a few vectors and shuffles (small strides, loads only) or one scalar
//! access a lane; any other index is gathered lane by lane. A predicate turns contiguous accesses into masked ones and the others into LLVM's gather and
//! scatter, which do not touch memory in lanes that are off; on processors without an instruction that gathers, such lanes read
//! an element that is surely there. Scalable vectors have no list of lanes: what is not a vector
//! access or a broadcast is gathered and scattered.

use relaxide_ir::{BinaryOp, Buffer, PrimExpr, Ref, prim::BufferLoad};
use relaxide_tir::BufferStore;
use relaxide_tir::intrin::Intrinsic;
use relaxide_tir::lower::linear_in_lane;
use relaxide_tir::warp::warp_value;

use super::{
    kernel::Body,
    neighbours::pairs_of,
    value::{Overflow, Ty, Val, lanes_of},
};
use crate::{error::CodegenError, flat_index::flat_index};

/// Where the addresses of an access lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AddressBounds {
    /// Each in its buffer.
    InBounds,
    /// Those of lanes that a mask leaves out, before or behind the buffer too: the lanes that count are reckoned from them.
    Anywhere,
}

impl AddressBounds {
    fn under(masked: bool) -> AddressBounds {
        if masked { AddressBounds::Anywhere } else { AddressBounds::InBounds }
    }

    /// What LLVM is told of an address that is reckoned from another.
    fn flag(self) -> &'static str {
        match self {
            AddressBounds::InBounds => " inbounds",
            AddressBounds::Anywhere => "",
        }
    }
}

/// The largest stride whose elements are shuffled out of vectors; beyond, a load for each is less.
const LARGEST_STRIDE: i64 = 8;

/// Where an access goes.
pub(super) struct MemoryAccess {
    pattern: Pattern,
    pub(super) bounds: AddressBounds,
    /// The type in memory, all lanes.
    pub(super) memory: Ty,
    /// The type of the value.
    value: Ty,
    /// Whether the buffer is known to have an element.
    has_elements: bool,
    /// Of how many bytes the address of a vector is a multiple, where the program says it.
    promised: u64,
    metadata: String,
}

impl MemoryAccess {
    /// The alignment that an access of a type has for certain.
    fn alignment(&self, ty: Ty) -> u64 {
        if ty.is_vector() { self.promised.max(ty.kind.alignment()) } else { ty.kind.alignment() }
    }
}

enum Pattern {
    /// Neighbours from one address, or one element.
    Contiguous(Val),
    /// The same element in every lane.
    Same(Val),
    /// Neighbours, the last lane first; the address of the last lane.
    Reversed(Val),
    /// A pointer for every lane.
    Scattered(Vec<Val>),
    /// The same, to elements that a few others lie between.
    Strided(Vec<Val>, i64),
    /// An element for every lane, by the buffer's address and a vector of indices.
    ShuffledLane(Val, Val),
    /// A vector of pointers.
    Gathered(Val),
}

impl Body<'_, '_> {
    pub fn eval_load(&mut self, n: &BufferLoad) -> Result<Val, CodegenError> {
        if n.buffer.dtype.is_packed() {
            return self.load_shared(n);
        }
        if let Some(value) = self.load_of_pair(n)? {
            return Ok(value);
        }
        let bounds = AddressBounds::under(n.predicate.is_some() || self.mask.is_some());
        let place = self.place(&n.buffer, &n.indices, bounds)?;
        let raw = match self.load_predicate(n, place.value.lanes)? {
            Some(mask) => self.masked_load(&place, &mask)?,
            None => self.plain_load(&place),
        };
        Ok(self.as_value(&raw, place.value))
    }

    /// Which lanes a load must read no others than; those of a choice that it stands in, too.
    pub fn load_predicate(&mut self, n: &BufferLoad, lanes: u32) -> Result<Option<Val>, CodegenError> {
        let own = n.predicate.as_ref().map(|predicate| self.predicate(predicate, lanes)).transpose()?;
        Ok(match (own, self.mask.clone()) {
            (Some(own), Some(mask)) if own.ty == mask.ty => Some(self.f.op("and", &own, &mask)),
            (own, mask) => own.or(mask),
        })
    }

    pub fn store(&mut self, n: &BufferStore) -> Result<(), CodegenError> {
        if n.buffer.dtype.is_packed() {
            return self.store_shared(n);
        }
        self.pairs = pairs_of(&n.value);
        let value = match warp_value(&n.value) {
            Some((call, intrinsic)) => self.warp_value(call, intrinsic)?,
            None => self.eval(&n.value)?,
        };
        let place = self.place(&n.buffer, &n.indices, AddressBounds::under(n.predicate.is_some()))?;
        let value = self.f.splat_to(&value, place.value.lanes);
        if value.ty.lanes != place.value.lanes || value.ty.kind.bytes() != place.value.kind.bytes() {
            let what = format!("a store of {} into {} of `{}`", value.ty, place.value, n.buffer.name);
            return Err(self.kernel.malformed(what));
        }
        let value = if value.ty == place.memory { value } else { self.f.convert(&value, place.memory) };
        match &n.predicate {
            Some(predicate) => {
                let mask = self.predicate(predicate, place.value.lanes)?;
                self.masked_store(&place, &value, &mask)
            }
            None => {
                self.plain_store(&place, &value);
                Ok(())
            }
        }
    }

    /// The address of an element.
    pub fn address_of(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Result<Val, CodegenError> {
        let flat = self.flat_index(buffer, indices)?;
        let index = self.index(&flat)?;
        let base = self.var(&buffer.data)?;
        let element = self.kernel.ty(buffer.dtype)?;
        if buffer.dtype.is_packed() && index.as_int_literal() != Some(0) {
            return Err(self.kernel.unsupported("the address of an element that shares its byte"));
        }
        Ok(self.element_pointer(&base, element, &index, AddressBounds::InBounds))
    }

    pub fn predicate(&mut self, predicate: &PrimExpr, lanes: u32) -> Result<Val, CodegenError> {
        let value = self.eval(predicate)?;
        let value = self.f.not_zero(&value);
        let value = self.f.splat_to(&value, lanes);
        if value.ty.lanes == lanes {
            return Ok(value);
        }
        Err(self.kernel.malformed(format!("a predicate of {} lanes for an access of {lanes}", value.ty.lanes)))
    }

    /// The index into the buffer's memory as one expression.
    pub fn flat_index(&self, buffer: &Buffer, indices: &[PrimExpr]) -> Result<PrimExpr, CodegenError> {
        flat_index(buffer, indices).map_err(|what| self.kernel.malformed(what.to_string()))
    }

    fn place(
        &mut self,
        buffer: &Ref<Buffer>,
        indices: &[PrimExpr],
        bounds: AddressBounds,
    ) -> Result<MemoryAccess, CodegenError> {
        let flat = self.flat_index(buffer, indices)?;
        let base = self.var(&buffer.data)?;
        let element = self.kernel.ty(buffer.dtype)?;
        let lanes = lanes_of(flat.dtype());
        let value = match element.lanes {
            1 => element.with_lanes(lanes),
            _ if element.is_scalable() || element.with_lanes(lanes).is_scalable() => {
                return Err(self.kernel.unsupported("scalable vectors of vectors, or a buffer of them"));
            }
            several => element.with_lanes(several * lanes),
        };
        let pattern = self.pattern(&base, element, &flat, lanes, bounds)?;
        let metadata = self.kernel.access_metadata(&buffer.data);
        let has_elements = buffer.shape.iter().all(|dim| dim.as_int().is_some_and(|n| n > 0));
        let promised = promised_alignment(&flat).unwrap_or(1);
        Ok(MemoryAccess { pattern, bounds, memory: value.in_memory(), value, has_elements, promised, metadata })
    }

    fn pattern(
        &mut self,
        base: &Val,
        element: Ty,
        flat: &PrimExpr,
        lanes: u32,
        bounds: AddressBounds,
    ) -> Result<Pattern, CodegenError> {
        if lanes == 1 {
            return Ok(Pattern::Contiguous(self.element_address(base, element, flat, bounds)?));
        }
        if element.with_lanes(lanes).is_scalable() {
            return self.scalable_pattern(base, element, flat, bounds);
        }
        let last = i64::from(lanes) - 1;
        if let Some((start, stride)) = linear(flat) {
            let literal = stride.as_int();
            if literal == Some(1) || (element.lanes == 1 && matches!(literal, Some(0 | -1))) {
                let first = self.element_address(base, element, &start, bounds)?;
                return Ok(match literal {
                    Some(1) => Pattern::Contiguous(first),
                    Some(0) => Pattern::Same(first),
                    _ => Pattern::Reversed(self.element_pointer(&first, element, &Val::int(Ty::I64, -last), bounds)),
                });
            }
            if element.lanes == 1 {
                let (index, stride) = (self.index(&start)?, self.index(&stride)?);
                let first = self.element_pointer(base, element, &index, bounds);
                let mut pointers = vec![first.clone()];
                for lane in 1..=last {
                    let offset = self.f.binary(BinaryOp::Mul, &stride, &Val::int(Ty::I64, lane), Overflow::Never);
                    pointers.push(self.element_pointer(&first, element, &offset, bounds));
                }
                return Ok(match literal {
                    Some(stride @ 2..=LARGEST_STRIDE) if stride <= i64::from(lanes) => {
                        Pattern::Strided(pointers, stride)
                    }
                    _ => Pattern::Scattered(pointers),
                });
            }
        }
        if element.lanes > 1 {
            return Err(self.kernel.unsupported("a scattered access of vector elements"));
        }
        Ok(Pattern::ShuffledLane(base.clone(), self.index(flat)?))
    }

    /// The addresses of all lanes' elements, as one vector.
    fn pointer_vector(&mut self, base: &Val, element: Ty, indices: &Val, bounds: AddressBounds) -> Val {
        let (pointers, flag, memory) = (indices.ty.with_kind(Ty::PTR), bounds.flag(), element.element().in_memory());
        self.f.emit(pointers, format_args!("getelementptr{flag} {memory}, {base}, {indices}"))
    }

    /// The address of each lane's element.
    fn pointers(&mut self, base: &Val, element: Ty, indices: &Val, bounds: AddressBounds) -> Vec<Val> {
        let pointer = |lane| {
            let index = self.f.lane(indices, lane);
            self.element_pointer(base, element.element(), &index, bounds)
        };
        (0..indices.ty.lanes).map(pointer).collect()
    }

    fn scalable_pattern(
        &mut self,
        base: &Val,
        element: Ty,
        flat: &PrimExpr,
        bounds: AddressBounds,
    ) -> Result<Pattern, CodegenError> {
        if let Some((start, stride)) = linear(flat)
            && let Some(step @ (0 | 1)) = stride.as_int()
        {
            let first = self.element_address(base, element, &start, bounds)?;
            return Ok(if step == 1 { Pattern::Contiguous(first) } else { Pattern::Same(first) });
        }
        let indices = self.index(flat)?;
        Ok(Pattern::Gathered(self.pointer_vector(base, element, &indices, bounds)))
    }

    pub fn element_pointer(&mut self, base: &Val, element: Ty, index: &Val, bounds: AddressBounds) -> Val {
        let memory = element.element().in_memory();
        let mut index = index.clone();
        if element.lanes > 1 {
            let lanes = Val::int(Ty::I64, i64::from(element.lanes));
            index = self.f.binary(BinaryOp::Mul, &index, &lanes, Overflow::Never);
        }
        if index.as_int_literal() == Some(0) {
            return base.clone();
        }
        self.f.emit(Ty::PTR, format_args!("getelementptr{} {memory}, {base}, {index}", bounds.flag()))
    }

    fn plain_load(&mut self, place: &MemoryAccess) -> Val {
        match &place.pattern {
            Pattern::Contiguous(pointer) => self.load_at(pointer, place.memory, place),
            Pattern::Same(pointer) => {
                let value = self.load_at(pointer, place.memory.element(), place);
                self.f.splat(&value, place.memory.lanes)
            }
            Pattern::Reversed(pointer) => {
                let value = self.load_at(pointer, place.memory, place);
                self.reverse(&value)
            }
            Pattern::Strided(pointers, stride) => self.load_strided(&pointers[0], *stride, place),
            Pattern::Gathered(pointers) => self.gather(pointers, place, &Val::int(place.memory.with_kind(Ty::BOOL), 1)),
            Pattern::Scattered(pointers) => self.load_each(pointers, place),
            Pattern::ShuffledLane(base, indices) if self.kernel.gathers && place.memory.kind.bits() >= 32 => {
                let pointers = self.pointer_vector(base, place.memory, indices, place.bounds);
                self.gather(&pointers, place, &Val::int(place.memory.with_kind(Ty::BOOL), 1))
            }
            Pattern::ShuffledLane(base, indices) => {
                let pointers = self.pointers(base, place.memory, indices, place.bounds);
                self.load_each(&pointers, place)
            }
        }
    }

    fn load_each(&mut self, pointers: &[Val], place: &MemoryAccess) -> Val {
        let element = place.memory.element();
        let lanes: Vec<Val> = pointers.iter().map(|pointer| self.load_at(pointer, element, place)).collect();
        self.f.gather_lanes(&lanes)
    }

    pub(super) fn load_at(&mut self, pointer: &Val, ty: Ty, place: &MemoryAccess) -> Val {
        let align = place.alignment(ty);
        self.f.emit(ty, format_args!("load {ty}, {pointer}, align {align}{}", place.metadata))
    }

    /// The elements that a vector of pointers points to, in the lanes of a mask.
    fn gather(&mut self, pointers: &Val, place: &MemoryAccess, mask: &Val) -> Val {
        let memory = place.memory;
        let align = Val::int(Ty::I32, memory.kind.alignment() as i64);
        let name = format!("llvm.masked.gather.{}.{}", memory.mangled(), pointers.ty.mangled());
        let loaded = self.f.call_with_immediates(&name, memory, &[pointers, &align, mask, &Val::zero(memory)], &[1]);
        self.kept_apart(loaded)
    }

    fn plain_store(&mut self, place: &MemoryAccess, value: &Val) {
        match &place.pattern {
            Pattern::Contiguous(pointer) => self.store_at(pointer, value, place),
            Pattern::Gathered(pointers) => {
                self.scatter(pointers, place, value, &Val::int(place.memory.with_kind(Ty::BOOL), 1));
            }
            // Every lane writes the same element; the last one wins.
            Pattern::Same(pointer) => {
                let last = self.last_lane(value);
                self.store_at(pointer, &last, place);
            }
            Pattern::Reversed(pointer) => {
                let reversed = self.reverse(value);
                self.store_at(pointer, &reversed, place);
            }
            Pattern::Scattered(pointers) | Pattern::Strided(pointers, _) => self.store_each(pointers, value, place),
            Pattern::ShuffledLane(base, indices) => {
                let pointers = self.pointers(base, place.memory, indices, place.bounds);
                self.store_each(&pointers, value, place);
            }
        }
    }

    fn store_each(&mut self, pointers: &[Val], value: &Val, place: &MemoryAccess) {
        for (lane, pointer) in pointers.iter().enumerate() {
            let part = self.f.lane(value, lane as u32);
            self.store_at(pointer, &part, place);
        }
    }

    fn last_lane(&mut self, vector: &Val) -> Val {
        if !vector.ty.is_scalable() {
            return self.f.lane(vector, vector.ty.lanes - 1);
        }
        let reversed = self.reverse(vector);
        self.f.lane(&reversed, 0)
    }

    /// Stores to where a vector of pointers points to, in the lanes of a mask.
    fn scatter(&mut self, pointers: &Val, place: &MemoryAccess, value: &Val, mask: &Val) {
        let align = Val::int(Ty::I32, place.memory.kind.alignment() as i64);
        let name = format!("llvm.masked.scatter.{}.{}", place.memory.mangled(), pointers.ty.mangled());
        self.f.effect_call(&name, &[value, pointers, &align, mask], &[2]);
    }

    fn store_at(&mut self, pointer: &Val, value: &Val, place: &MemoryAccess) {
        let align = place.alignment(value.ty);
        self.f.effect(format_args!("store {value}, {pointer}, align {align}{}", place.metadata));
    }

    fn masked_load(&mut self, place: &MemoryAccess, mask: &Val) -> Result<Val, CodegenError> {
        let memory = place.memory;
        // One element, wanted by some lanes: read something harmless instead if no lane wants it.
        if let (Pattern::Contiguous(pointer), 1) | (Pattern::Same(pointer), _) = (&place.pattern, memory.lanes) {
            let wanted = match mask.ty.is_vector() {
                true => self.f.intrinsic("vector.reduce.or", mask.ty, Ty::BOOL, &[mask]),
                false => mask.clone(),
            };
            let element = memory.element();
            let harmless = self.f.stack_slot(element, 1, element.kind.bytes());
            self.f.effect(format_args!("store {}, {harmless}", Val::zero(element)));
            let pointer = self.f.select(&wanted, pointer, &harmless);
            let value =
                self.f.emit(element, format_args!("load {element}, {pointer}, align {}", element.kind.alignment()));
            return Ok(self.f.splat_to(&value, memory.lanes));
        }
        let mask = self.matching_mask(mask, memory.lanes)?;
        match &place.pattern {
            Pattern::Contiguous(pointer) => Ok(self.masked_load_at(pointer, place.memory, &mask)),
            Pattern::Reversed(pointer) => {
                let mask = self.reverse(&mask);
                let value = self.masked_load_at(pointer, place.memory, &mask);
                Ok(self.reverse(&value))
            }
            Pattern::Same(_) => Err(self.kernel.malformed("a masked broadcast of several elements")),
            Pattern::Strided(pointers, stride @ 2) => Ok(self.masked_load_strided(&pointers[0], *stride, place, &mask)),
            Pattern::Scattered(pointers) | Pattern::Strided(pointers, _) => {
                let pointers = self.f.gather_lanes(pointers);
                Ok(self.gather(&pointers, place, &mask))
            }
            Pattern::ShuffledLane(base, indices) if self.kernel.gathers && memory.kind.bits() >= 32 => {
                let pointers = self.pointer_vector(base, memory, indices, place.bounds);
                Ok(self.gather(&pointers, place, &mask))
            }
            Pattern::ShuffledLane(base, indices) => Ok(self.pick_where(base, indices, place, &mask)),
            Pattern::Gathered(pointers) => Ok(self.gather(pointers, place, &mask)),
        }
    }

    /// One element a lane, zero in the lanes that a mask leaves out. Where the processor has no instruction for it, LLVM would ask of every
    /// lane whether it counts, and branch. So the others read the buffer's first element: where any lane counts there is one, else
    /// they read a zero of the function's own.
    fn pick_where(&mut self, base: &Val, indices: &Val, place: &MemoryAccess, mask: &Val) -> Val {
        let base = match place.has_elements {
            true => base.clone(),
            false => {
                let any = self.f.intrinsic("vector.reduce.or", mask.ty, Ty::BOOL, &[mask]);
                let nothing = self.f.shared_slot("nothing", "i64", 1, 8);
                self.f.effect(format_args!("store {}, {nothing}, align 8", Val::zero(Ty::I64)));
                self.f.select(&any, base, &nothing)
            }
        };
        let indices = self.f.select(mask, indices, &Val::zero(indices.ty));
        let pointers = self.pointers(&base, place.memory, &indices, AddressBounds::InBounds);
        let loaded = self.load_each(&pointers, place);
        self.f.select(mask, &loaded, &Val::zero(place.memory))
    }

    fn masked_store(&mut self, place: &MemoryAccess, value: &Val, mask: &Val) -> Result<(), CodegenError> {
        let memory = place.memory;
        if memory.lanes == 1 {
            let (then, done) = (self.f.label(), self.f.label());
            self.f.branch_if(mask, then, done);
            self.f.start(then);
            self.plain_store(place, value);
            self.f.branch(done);
            self.f.start(done);
            return Ok(());
        }
        let mask = self.matching_mask(mask, memory.lanes)?;
        match &place.pattern {
            Pattern::Contiguous(pointer) => self.masked_store_at(pointer, value, &mask),
            Pattern::Reversed(pointer) => {
                let (value, mask) = (self.reverse(value), self.reverse(&mask));
                self.masked_store_at(pointer, &value, &mask);
            }
            Pattern::Same(pointer) => {
                let pointers = self.f.splat(pointer, memory.lanes);
                self.scatter(&pointers, place, value, &mask);
            }
            Pattern::Scattered(pointers) | Pattern::Strided(pointers, _) => {
                let pointers = self.f.gather_lanes(pointers);
                self.scatter(&pointers, place, value, &mask);
            }
            Pattern::ShuffledLane(base, indices) => {
                let pointers = self.pointer_vector(base, memory, indices, place.bounds);
                self.scatter(&pointers, place, value, &mask);
            }
            Pattern::Gathered(pointers) => self.scatter(pointers, place, value, &mask),
        }
        Ok(())
    }

    pub fn matching_mask(&mut self, mask: &Val, lanes: u32) -> Result<Val, CodegenError> {
        let mask = self.f.splat_to(mask, lanes);
        if mask.ty.lanes == lanes {
            return Ok(mask);
        }
        Err(self.kernel.unsupported(format!("an access of {lanes} lanes under a choice of {} lanes", mask.ty.lanes)))
    }

    fn reverse(&mut self, value: &Val) -> Val {
        self.f.intrinsic("vector.reverse", value.ty, value.ty, &[value])
    }

    /// Memory holds bools as bytes.
    pub(super) fn as_value(&mut self, raw: &Val, value: Ty) -> Val {
        if raw.ty == value { raw.clone() } else { self.f.convert(raw, value) }
    }
}

/// Of how many bytes a program says that the address of a vector with some index is a multiple.
fn promised_alignment(index: &PrimExpr) -> Option<u64> {
    match index {
        PrimExpr::Ramp(n) => promised_alignment(&n.base),
        PrimExpr::Broadcast(n) => promised_alignment(&n.value),
        PrimExpr::Cast(n) => promised_alignment(&n.value),
        PrimExpr::Binary(n) if matches!(n.op, BinaryOp::Add) => {
            promised_alignment(&n.a).or_else(|| promised_alignment(&n.b))
        }
        PrimExpr::Call(n) if Intrinsic::of_call(&n.op) == Some(Intrinsic::AtMultiple) => {
            n.args.get(1)?.as_int().and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| bytes.is_power_of_two())
        }
        _ => None,
    }
}

/// A vector index as first element and stride, where it has that form.
pub(super) fn linear(e: &PrimExpr) -> Option<(PrimExpr, PrimExpr)> {
    linear_in_lane(e, |n| n.dtype.is_int() && n.value.dtype().is_int() && n.dtype.bits >= n.value.dtype().bits)
}
