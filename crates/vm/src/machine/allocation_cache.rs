//! Objects that the plans of a program keep from one time to the next.
//!
//! Each plan that makes objects has a slot in the stack that it runs on. A value that a function no longer needs goes back
//! to the slot of the plan that made it, if nobody else has it; the next time the plan is due, the object is there. A
//! loop, and every call after the first, then takes no memory from anywhere, and no count is touched. Recursion takes
//! several objects before it gives them back, so a slot is a stack.
//!
//! A storage with several tensors in it, its *aliases*, is free when only aliases refer to it that wait in their slots.
//! Therefore an alias waits only if it lies in the storage that the slot of its storage's plan noted last, and that slot counts
//! those that wait.
//!
//! What is kept is bounded: objects of up to [`MAX_OBJECT_BYTES`], and [`MAX_KEPT_BYTES`] of them for each plan, which a
//! deep recursion needs. Larger objects go back to their allocator, which other instructions and other machines share: a
//! buffer that another instruction has just used is in the cache, and a kernel that fills one of this size outweighs what
//! taking it costs.

use std::sync::atomic::{Ordering, fence};

use relaxide_ffi::{Any, Ref, Tensor};
use relaxide_runtime::memory::{self, Storage};

/// The largest object that a plan keeps.
pub(super) const MAX_OBJECT_BYTES: usize = 1 << 14;
/// How many bytes a plan keeps.
const MAX_KEPT_BYTES: usize = 1 << 18;
/// What an object costs besides its data.
const OBJECT_BYTES: usize = 64;

/// What one plan keeps. It fills one cache line: a program visits thousands of them in turn.
#[derive(Default)]
struct Slot {
    /// The object that is taken next.
    first: Any,
    /// Those below it.
    rest: Vec<Any>,
    /// Of a storage: its address, and how many aliases wait.
    place: usize,
    waiting: usize,
}

impl Slot {
    #[inline]
    fn take(&mut self) -> Option<Any> {
        if self.first.is_none() {
            return None;
        }
        let next = self.rest.pop().unwrap_or_default();
        Some(std::mem::replace(&mut self.first, next))
    }
}

/// The slots of a stack, by the number of the plan.
#[derive(Default)]
pub(super) struct AllocationCache {
    slots: Vec<Slot>,
    /// How often memory had been asked back when they were filled.
    releases: u64,
}

impl AllocationCache {
    /// Makes room for the plans of a program, and lets go of everything if memory was asked back meanwhile.
    pub(super) fn fit(&mut self, plans: usize) {
        let releases = memory::releases();
        if self.releases != releases {
            self.releases = releases;
            self.slots.clear();
        }
        if self.slots.len() < plans {
            self.slots.resize_with(plans, Slot::default);
        }
    }

    /// Takes the object that was given back last.
    #[inline]
    pub(super) fn take(&mut self, plan: u32) -> Option<Any> {
        self.slots.get_mut(plan as usize)?.take()
    }

    /// The object that would be taken.
    #[inline]
    pub(super) fn peek(&self, plan: u32) -> Option<&Any> {
        self.slots.get(plan as usize).map(|slot| &slot.first).filter(|first| !first.is_none())
    }

    /// Keeps an object of that many bytes, if there is room.
    #[inline]
    pub(super) fn give(&mut self, plan: u32, value: Any, bytes: usize) {
        let Some(slot) = self.slots.get_mut(plan as usize) else { return };
        let bytes = bytes.max(OBJECT_BYTES);
        if slot.first.is_none() {
            if bytes <= MAX_OBJECT_BYTES {
                slot.first = value;
            }
        } else if bytes <= MAX_OBJECT_BYTES && bytes * (slot.rest.len() + 2) <= MAX_KEPT_BYTES {
            slot.rest.push(std::mem::replace(&mut slot.first, value));
        }
    }

    /// Drops what a plan keeps.
    pub(super) fn clear(&mut self, plan: u32) {
        if let Some(slot) = self.slots.get_mut(plan as usize) {
            slot.first = Any::none();
            slot.rest.clear();
        }
    }

    /// Takes the storage of last time, if it is free. Otherwise its aliases must go before there is another.
    #[inline]
    pub(super) fn take_storage(&mut self, plan: u32, fits: impl FnOnce(&Storage) -> bool) -> Option<Any> {
        let slot = self.slots.get_mut(plan as usize)?;
        let kept = slot.take()?;
        let is_free = |storage: &Ref<Storage>| fits(storage) && is_held_by(storage, slot.waiting + 1);
        kept.downcast_ref::<Storage>().is_some_and(is_free).then_some(kept)
    }

    /// Notes a new storage. The aliases of the one before go.
    pub(super) fn note_storage(&mut self, plan: u32, place: usize, aliases: &[u32]) {
        aliases.iter().for_each(|alias| self.clear(*alias));
        if let Some(slot) = self.slots.get_mut(plan as usize) {
            (slot.place, slot.waiting) = (place, 0);
        }
    }

    /// Takes the alias of last time, if the storage that the program uses is the one that it lies in.
    #[inline]
    pub(super) fn take_alias(&mut self, plan: u32, storage_plan: u32, storage: &Storage) -> Option<Any> {
        let kept = self.slots.get_mut(plan as usize)?.take()?;
        let storage_plan = self.slots.get_mut(storage_plan as usize)?;
        storage_plan.waiting = storage_plan.waiting.saturating_sub(1);
        (storage.buffer().data() as usize == storage_plan.place).then_some(kept)
    }

    /// Keeps an alias, if nobody else has it and it lies in the storage of that plan.
    #[inline]
    pub(super) fn give_alias(&mut self, plan: u32, storage_plan: u32, offset: usize, value: Any) {
        let (plan, storage_plan) = (plan as usize, storage_plan as usize);
        let Ok([slot, storage_plan]) = self.slots.get_disjoint_mut([plan, storage_plan]) else { return };
        let lies_there = |tensor: &Tensor| tensor.data_ptr() as usize == storage_plan.place.wrapping_add(offset);
        // A storage's slot without a place does not keep its storage.
        let may_wait = storage_plan.place != 0 && slot.first.is_none() && value.as_tensor().is_some_and(lies_there);
        if may_wait && is_unshared(&value) {
            slot.first = value;
            storage_plan.waiting += 1;
        }
    }
}

/// Whether a value is an object that nobody else refers to. Then nobody can take another reference meanwhile.
#[inline]
pub(super) fn is_unshared(value: &Any) -> bool {
    // The check acquires: what others did to the object before they let go of it has happened.
    value.as_object().is_some_and(|object| object.header().is_unique())
}

/// Whether exactly that many references to a storage exist. With all of them in hand, nobody can take another meanwhile.
#[inline]
fn is_held_by(storage: &Ref<Storage>, references: usize) -> bool {
    let found = Ref::strong_count(storage) as usize;
    // What others did to the memory before they let go of it has happened.
    fence(Ordering::Acquire);
    found == references
}
