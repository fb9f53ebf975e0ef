//! Objects that the plans of a program keep from one time to the next.
//!
//! Each plan that makes objects has a slot in the stack that it runs on. A value that a function no longer needs goes back
//! to the slot of the plan that made it, if nobody else has it; the next time the plan is due, the object is there. A
//! loop, and every call after the first, then takes no memory from anywhere, and no count is touched. Recursion takes
//! several objects before it gives them back, so a slot is a stack.
//!
//! What is kept is bounded by [`MAX_KEPT_BYTES`] for each plan; larger objects go back to their allocator, which other
//! instructions and other machines share.

use relaxide_ffi::Any;

/// How many bytes a plan keeps.
pub(super) const MAX_KEPT_BYTES: usize = 1 << 18;
/// What an object costs besides its data.
const OBJECT_BYTES: usize = 64;

/// What one plan keeps.
#[derive(Default)]
struct Slot {
    objects: Vec<Any>,
    /// The size of the storage that the plan's last object lies in, where the object does not tell.
    storage: usize,
}

/// The slots of a stack, by the number of the plan.
#[derive(Default)]
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    /// Makes room for the plans of a program.
    pub(super) fn fit(&mut self, plans: usize) {
        if self.0.len() < plans {
            self.0.resize_with(plans, Slot::default);
        }
    }

    /// Takes the object that was given back last.
    #[inline]
    pub(super) fn take(&mut self, plan: usize) -> Option<Any> {
        self.0.get_mut(plan)?.objects.pop()
    }

    /// The object that would be taken.
    #[inline]
    pub(super) fn peek(&self, plan: usize) -> Option<&Any> {
        self.0.get(plan)?.objects.last()
    }

    /// Keeps an object of that many bytes, if there is room.
    #[inline]
    pub(super) fn give(&mut self, plan: usize, value: Any, bytes: usize) {
        if let Some(slot) = self.0.get_mut(plan)
            && bytes.max(OBJECT_BYTES).saturating_mul(slot.objects.len() + 1) <= MAX_KEPT_BYTES
        {
            slot.objects.push(value);
        }
    }

    /// Keeps an object that lies in the storage whose size was noted, if it is not too large and nothing else is there.
    #[inline]
    pub(super) fn give_only(&mut self, plan: usize, value: Any) {
        if let Some(slot) = self.0.get_mut(plan)
            && slot.objects.is_empty()
            && slot.storage <= MAX_KEPT_BYTES
        {
            slot.objects.push(value);
        }
    }

    /// Notes how large the storage is that the plan's last object lies in.
    #[inline]
    pub(super) fn note_storage(&mut self, plan: usize, bytes: usize) {
        if let Some(slot) = self.0.get_mut(plan) {
            slot.storage = bytes;
        }
    }

    /// Drops what a plan keeps.
    pub(super) fn clear(&mut self, plan: usize) {
        if let Some(slot) = self.0.get_mut(plan) {
            slot.objects.clear();
        }
    }
}

/// Whether a value is an object that nobody else refers to. Then nobody can take another reference meanwhile.
#[inline]
pub(super) fn is_unshared(value: &Any) -> bool {
    // The check acquires: what others did to the object before they let go of it has happened.
    value.as_object().is_some_and(|object| object.header().is_unique())
}
