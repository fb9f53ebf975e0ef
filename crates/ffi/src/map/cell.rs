//! The cell of a map, as every language lays it out, and the entries behind it.
//!
//! A small map is an array of at most four entries in the order of insertion. A larger one is a hash table
//! ([`dense`](super::dense)). A mutable map that grows becomes another kind in its place, so that an object's kind is
//! what the cell says at the moment, and every object has room for the larger cell.

use std::ffi::c_void;

use super::dense::{Dense, NONE};
use super::key;
use crate::Any;
use crate::seq::{FreeMemory, allocate_memory, free_memory};

/// A key and its value.
#[repr(C)]
pub(super) struct Entry {
    pub(super) key: Any,
    pub(super) value: Any,
}

/// The cell.
#[repr(C)]
pub(crate) struct MapCell {
    pub(super) data: *mut c_void,
    pub(super) size: u64,
    /// How many entries there is room for; the highest bit says that the map is small.
    pub(super) slots: u64,
    /// Frees `data`; absent while the entries lie in the object itself.
    pub(super) data_deleter: Option<FreeMemory>,
    /// Only of a hash table: how far a product is shifted to make a slot, and the ends of the list of entries.
    pub(super) shift: u32,
    pub(super) head: u64,
    pub(super) tail: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Entry>() == 32 && size_of::<MapCell>() == 56);

const SMALL: u64 = 1 << 63;
/// More entries than these make a hash table.
pub(super) const SMALL_MAX: usize = 4;

impl MapCell {
    /// A map without entries and with room for so many.
    pub(super) fn with_capacity(capacity: usize) -> MapCell {
        if capacity > SMALL_MAX {
            return Dense::allocate(capacity);
        }
        let data = allocate_memory::<Entry>(capacity).as_ptr().cast();
        MapCell {
            data,
            size: 0,
            slots: capacity as u64 | SMALL,
            data_deleter: Some(free_memory),
            shift: 0,
            head: NONE,
            tail: NONE,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.size as usize
    }

    fn is_small(&self) -> bool {
        self.slots & SMALL != 0
    }

    fn small(&self) -> &[Entry] {
        if self.size == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: the data of a small map are that many entries.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size as usize) }
    }

    fn small_mut(&mut self) -> &mut [Entry] {
        if self.size == 0 || self.data.is_null() {
            return &mut [];
        }
        // SAFETY: as above; the cell is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data.cast(), self.size as usize) }
    }

    /// Where iteration begins.
    pub(super) fn first(&self) -> u64 {
        if self.is_small() { 0 } else { self.head }
    }

    /// The entry at a place of the iteration, and the next place; `None` at the end.
    pub(super) fn at(&self, place: u64) -> Option<(&Entry, u64)> {
        if self.is_small() {
            return self.small().get(usize::try_from(place).ok()?).map(|entry| (entry, place + 1));
        }
        Dense::at(self, place)
    }

    /// The value of a key. The hash is that of the key.
    pub(super) fn find(&self, key: &Any, hash: u64) -> Option<&Entry> {
        match self.is_small() {
            true => self.small().iter().find(|entry| key::equal(&entry.key, key)),
            false => Dense::find(self, key, hash),
        }
    }

    /// The keys that could be the same as a key if a hook said so.
    pub(super) fn candidates(&self, key: &Any, hash: u64) -> Vec<Any> {
        let same_type = |other: &&Any| other.type_index() == key.type_index();
        match self.is_small() {
            true => self.small().iter().map(|entry| &entry.key).filter(same_type).cloned().collect(),
            false => Dense::chain(self, hash).into_iter().filter(same_type).cloned().collect(),
        }
    }

    /// Sets the value of a key. An entry that was there keeps its place and its key; its value is returned.
    pub(super) fn insert(&mut self, key: Any, hash: u64, value: Any) -> Option<Any> {
        if !self.is_small() {
            return Dense::insert(self, key, hash, value);
        }
        if let Some(entry) = self.small_mut().iter_mut().find(|entry| key::equal(&entry.key, &key)) {
            return Some(std::mem::replace(&mut entry.value, value));
        }
        let capacity = (self.slots & !SMALL) as usize;
        if self.len() == capacity {
            let wanted = if capacity < SMALL_MAX { (capacity * 2).clamp(2, SMALL_MAX) } else { capacity * 2 };
            self.move_to(MapCell::with_capacity(wanted));
            return self.insert(key, hash, value);
        }
        // SAFETY: there is room for one more entry.
        unsafe { self.data.cast::<Entry>().add(self.len()).write(Entry { key, value }) };
        self.size += 1;
        None
    }

    /// Moves all entries to an empty map, which takes the place of this one.
    pub(super) fn move_to(&mut self, mut larger: MapCell) {
        for Entry { key, value } in self.take() {
            let hash = if larger.is_small() { 0 } else { key::hash(&key) };
            larger.insert(key, hash, value);
        }
        *self = larger;
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, key: &Any, hash: u64) -> Option<Entry> {
        if !self.is_small() {
            return Dense::remove(self, key, hash);
        }
        let position = self.small().iter().position(|entry| key::equal(&entry.key, key))?;
        let entry = self.data.cast::<Entry>().wrapping_add(position);
        // SAFETY: the entry moves out and those behind it move up, so that each is where one was.
        let removed = unsafe {
            let removed = entry.read();
            entry.copy_from(entry.add(1), self.len() - position - 1);
            removed
        };
        self.size -= 1;
        Some(removed)
    }

    /// Takes all entries out, in order, and leaves the memory.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        if !self.is_small() {
            return Dense::take(self);
        }
        let size = std::mem::take(&mut self.size) as usize;
        // SAFETY: the entries move out, and the cell says that it has none.
        (0..size).map(|i| unsafe { self.data.cast::<Entry>().add(i).read() }).collect()
    }
}

impl Drop for MapCell {
    fn drop(&mut self) {
        drop(self.take());
        if let Some(free) = self.data_deleter.take() {
            // SAFETY: whoever set the deleter allocated `data` for it, and no entry is left there.
            unsafe { free(self.data) };
        }
    }
}
