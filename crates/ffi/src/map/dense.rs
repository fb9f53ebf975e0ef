//! The hash table of a map with more than four entries, as every language lays it out.
//!
//! The table has a power of two of slots, in blocks of sixteen: sixteen bytes that say what the slots hold, then the
//! slots. A key's own slot follows from its hash by Fibonacci hashing. Keys whose slots collide form a chain that begins
//! in their own slot; the byte of each member says by which of 126 fixed distances the next one lies farther on. A chain
//! that only borrowed a slot makes way when a key comes that owns it. Entries are also linked in the order of insertion.

use super::cell::{Entry, MapCell};
use super::key;
use crate::Any;
use crate::seq::{allocate_memory, free_memory};

/// A place that is none.
pub(super) const NONE: u64 = u64::MAX;

const BLOCK: u64 = 16;
const EMPTY: u8 = 0xff;
/// Set in the byte of a slot that continues a chain, clear in that of a chain's head.
const BORROWED: u8 = 0x80;
const DISTANCE: u8 = 0x7f;

/// An entry and its neighbours in the order of insertion.
#[repr(C)]
struct Slot {
    entry: Entry,
    previous: u64,
    next: u64,
}

#[repr(C)]
struct SlotBlock {
    tags: [u8; BLOCK as usize],
    slots: [std::mem::MaybeUninit<Slot>; BLOCK as usize],
}

const _: () = assert!(size_of::<Slot>() == 48 && size_of::<SlotBlock>() == 16 * 49);

/// The distances from one member of a chain to the next: small ones, then triangle numbers, which reach every slot of a
/// table whose size is a power of two, then triangle numbers that grow by about nine quarters.
static DISTANCES: [u64; 126] = distances();

const fn distances() -> [u64; 126] {
    let mut table = [0; 126];
    let mut i = 0;
    while i < 126 {
        table[i] = match i {
            0..16 => i as u64,
            16..83 => triangle(i as u64 - 10),
            _ => FAR[i - 83],
        };
        i += 1;
    }
    table
}

const fn triangle(n: u64) -> u64 {
    n * (n + 1) / 2
}

const FAR: [u64; 43] = [
    8515,
    19110,
    42778,
    96141,
    216153,
    486591,
    1092981,
    2458653,
    5532801,
    12442566,
    27993903,
    62983476,
    141717030,
    318844378,
    717352503,
    1614057336,
    3631522476,
    8170957530,
    18384510628,
    41364789378,
    93070452520,
    209408356380,
    471168559170,
    1060128894105,
    2385289465695,
    5366898840628,
    12075518705635,
    27169915244790,
    61132312065111,
    137547689707000,
    309482283181501,
    696335127828753,
    1566753995631385,
    3525196511162271,
    7931691992677701,
    17846306936293605,
    40154190677507445,
    90346928918121501,
    203280589587557251,
    457381325854679626,
    1029107982097042876,
    2315492959180353330,
    5209859154120846435,
];

/// A hash table, by the cell that describes it.
pub(super) struct Dense<'a>(&'a MapCell);

impl Dense<'_> {
    /// A table with room for so many entries.
    pub(super) fn allocate(capacity: usize) -> MapCell {
        let bits = usize::BITS - capacity.leading_zeros();
        let (bits, slots) = match 1u64 << bits {
            slots if slots < capacity as u64 * 2 => (bits + 1, slots * 2),
            slots => (bits, slots),
        };
        Self::with_slots(64 - bits, slots)
    }

    fn with_slots(shift: u32, slots: u64) -> MapCell {
        let count = slots.div_ceil(BLOCK) as usize;
        let blocks = allocate_memory::<SlotBlock>(count).as_ptr();
        for i in 0..count {
            // SAFETY: there are that many blocks; only their tags have a value yet.
            unsafe { (&raw mut (*blocks.add(i)).tags).write([EMPTY; BLOCK as usize]) };
        }
        let data_deleter = Some(free_memory as crate::seq::FreeMemory);
        MapCell { data: blocks.cast(), size: 0, slots, data_deleter, shift, head: NONE, tail: NONE }
    }

    fn tag(&self, place: u64) -> *mut u8 {
        let block = self.0.data.cast::<SlotBlock>().wrapping_add((place / BLOCK) as usize);
        block.cast::<u8>().wrapping_add((place % BLOCK) as usize)
    }

    fn slot(&self, place: u64) -> *mut Slot {
        let block = self.0.data.cast::<SlotBlock>().wrapping_add((place / BLOCK) as usize);
        block.wrapping_byte_add(BLOCK as usize).cast::<Slot>().wrapping_add((place % BLOCK) as usize)
    }

    fn read_tag(&self, place: u64) -> u8 {
        // SAFETY: places are less than the number of slots, and every block's tags have a value.
        unsafe { *self.tag(place) }
    }

    fn write_tag(&self, place: u64, tag: u8) {
        // SAFETY: as above; whoever writes has the table to itself.
        unsafe { *self.tag(place) = tag };
    }

    fn home(&self, hash: u64) -> u64 {
        hash.wrapping_mul(11_400_714_819_323_198_485) >> self.0.shift
    }

    /// The next member of a chain.
    fn follow(&self, place: u64, tag: u8) -> Option<u64> {
        match DISTANCES.get((tag & DISTANCE) as usize) {
            Some(0) | None => None,
            Some(distance) => Some(self.after(place, *distance)),
        }
    }

    fn after(&self, place: u64, distance: u64) -> u64 {
        place.wrapping_add(distance) & (self.0.slots - 1)
    }

    /// An empty slot that a chain's member can reach, and the distance's number.
    fn reachable_empty(&self, place: u64) -> Option<(u8, u64)> {
        (1..DISTANCES.len() as u8).find_map(|number| {
            let candidate = self.after(place, DISTANCES[number as usize]);
            (self.read_tag(candidate) == EMPTY).then_some((number, candidate))
        })
    }

    fn set_distance(&self, place: u64, number: u8) {
        self.write_tag(place, self.read_tag(place) & BORROWED | number);
    }

    /// The slots of the chain of a hash.
    fn chain_of(&self, hash: u64) -> impl Iterator<Item = u64> {
        let home = (self.0.size != 0 && self.0.slots != 0).then(|| self.home(hash));
        let head = home.filter(|home| self.read_tag(*home) & BORROWED == 0);
        std::iter::successors(head, |place| self.follow(*place, self.read_tag(*place)))
    }

    fn place_of(&self, key: &Any, hash: u64) -> Option<u64> {
        // SAFETY: a chain's members hold entries.
        self.chain_of(hash).find(|place| key::equal(unsafe { &(*self.slot(*place)).entry.key }, key))
    }

    /// The keys in the chain of a hash.
    pub(super) fn chain(cell: &MapCell, hash: u64) -> Vec<&Any> {
        let table = Dense(cell);
        // SAFETY: a chain's members hold entries, which live as long as the cell is borrowed.
        table.chain_of(hash).map(|place| unsafe { &(*table.slot(place)).entry.key }).collect()
    }

    /// The member of a chain that comes before another; the chain begins in the slot of `hash`.
    fn before(&self, place: u64, hash: u64) -> Option<u64> {
        let mut previous = self.home(hash);
        while let Some(next) = self.follow(previous, self.read_tag(previous)) {
            if next == place {
                return Some(previous);
            }
            previous = next;
        }
        None
    }

    pub(super) fn at(cell: &MapCell, place: u64) -> Option<(&Entry, u64)> {
        if place == NONE || place >= cell.slots {
            return None;
        }
        // SAFETY: the list of entries leads from entry to entry.
        let slot = unsafe { &*Dense(cell).slot(place) };
        Some((&slot.entry, slot.next))
    }

    pub(super) fn find<'a>(cell: &'a MapCell, key: &Any, hash: u64) -> Option<&'a Entry> {
        let table = Dense(cell);
        // SAFETY: the place holds an entry, which lives as long as the cell is borrowed.
        table.place_of(key, hash).map(|place| unsafe { &(*table.slot(place)).entry })
    }

    pub(super) fn insert(cell: &mut MapCell, key: Any, hash: u64, value: Any) -> Option<Any> {
        if let Some(place) = Dense(cell).place_of(&key, hash) {
            // SAFETY: the place holds an entry, and the cell is borrowed mutably.
            let entry = unsafe { &mut (*Dense(cell).slot(place)).entry };
            return Some(std::mem::replace(&mut entry.value, value));
        }
        let Some(place) = Self::claim(cell, hash) else {
            let larger = match cell.slots {
                0 => Dense::allocate(super::cell::SMALL_MAX + 1),
                slots => Dense::with_slots(cell.shift - 1, slots * 2),
            };
            cell.move_to(larger);
            return cell.insert(key, hash, value);
        };
        // SAFETY: the slot was claimed and holds nothing.
        unsafe { Dense(cell).slot(place).write(Slot { entry: Entry { key, value }, previous: cell.tail, next: NONE }) };
        match cell.tail {
            NONE => cell.head = place,
            // SAFETY: the last entry of the list.
            tail => unsafe { (*Dense(cell).slot(tail)).next = place },
        }
        cell.tail = place;
        cell.size += 1;
        None
    }

    /// Finds a slot for a new key of that hash and tags it; `None` if the table must grow.
    fn claim(cell: &mut MapCell, hash: u64) -> Option<u64> {
        if cell.slots == 0 {
            return None;
        }
        let home = Dense(cell).home(hash);
        let tag = Dense(cell).read_tag(home);
        if tag == EMPTY {
            Dense(cell).write_tag(home, 0);
            return Some(home);
        }
        if (cell.size + 1) as f64 > cell.slots as f64 * 0.99 {
            return None;
        }
        if tag & BORROWED != 0 {
            Self::evict(cell, home)?;
            Dense(cell).write_tag(home, 0);
            return Some(home);
        }
        let table = Dense(cell);
        let mut last = home;
        while let Some(next) = table.follow(last, table.read_tag(last)) {
            last = next;
        }
        let (number, place) = table.reachable_empty(last)?;
        table.write_tag(place, BORROWED);
        table.set_distance(last, number);
        Some(place)
    }

    /// Moves the rest of a chain, from a slot that it borrowed on, to other slots.
    fn evict(cell: &mut MapCell, place: u64) -> Option<()> {
        // SAFETY: the place is in a chain, so it holds an entry.
        let hash = key::hash(unsafe { &(*Dense(cell).slot(place)).entry.key });
        let mut last = Dense(cell).before(place, hash)?;
        let mut from = place;
        loop {
            let rest = Dense(cell).follow(from, Dense(cell).read_tag(from));
            // The slot that is freed first stays out of reach: its tag is not that of an empty one.
            let (number, to) = Dense(cell).reachable_empty(last)?;
            Self::relocate(cell, from, to);
            Dense(cell).write_tag(to, BORROWED);
            Dense(cell).set_distance(last, number);
            if from != place {
                Dense(cell).write_tag(from, EMPTY);
            }
            last = to;
            match rest {
                Some(next) => from = next,
                None => return Some(()),
            }
        }
    }

    /// Moves an entry to an empty slot, in the list too.
    fn relocate(cell: &mut MapCell, from: u64, to: u64) {
        let table = Dense(cell);
        // SAFETY: `from` holds an entry and `to` does not; neighbours in the list hold entries.
        let (previous, next) = unsafe {
            table.slot(to).copy_from_nonoverlapping(table.slot(from), 1);
            let slot = &*table.slot(to);
            if slot.previous != NONE {
                (*table.slot(slot.previous)).next = to;
            }
            if slot.next != NONE {
                (*table.slot(slot.next)).previous = to;
            }
            (slot.previous, slot.next)
        };
        if previous == NONE {
            cell.head = to;
        }
        if next == NONE {
            cell.tail = to;
        }
    }

    pub(super) fn remove(cell: &mut MapCell, key: &Any, hash: u64) -> Option<Entry> {
        let place = Dense(cell).place_of(key, hash)?;
        // SAFETY: the place holds an entry, which moves out of the table and of the list.
        let Slot { entry, previous, next } = unsafe { Dense(cell).slot(place).read() };
        Self::unlink(cell, previous, next);
        let table = Dense(cell);
        let (mut last, mut before) = (place, None);
        while let Some(further) = table.follow(last, table.read_tag(last)) {
            before = Some(last);
            last = further;
        }
        // The chain loses its last slot; the entry that was there moves to the one that became free.
        if last != place {
            Self::relocate(cell, last, place);
        } else if Dense(cell).read_tag(place) & BORROWED != 0 {
            before = Dense(cell).before(place, hash);
        }
        if let Some(before) = before {
            Dense(cell).set_distance(before, 0);
        }
        Dense(cell).write_tag(last, EMPTY);
        cell.size -= 1;
        Some(entry)
    }

    fn unlink(cell: &mut MapCell, previous: u64, next: u64) {
        match previous {
            NONE => cell.head = next,
            // SAFETY: neighbours in the list hold entries.
            _ => unsafe { (*Dense(cell).slot(previous)).next = next },
        }
        match next {
            NONE => cell.tail = previous,
            // SAFETY: as above.
            _ => unsafe { (*Dense(cell).slot(next)).previous = previous },
        }
    }

    pub(super) fn take(cell: &mut MapCell) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(cell.size as usize);
        let mut place = cell.head;
        while place != NONE {
            // SAFETY: the list leads from entry to entry; each moves out and its slot is marked so.
            let Slot { entry, next, .. } = unsafe { Dense(cell).slot(place).read() };
            Dense(cell).write_tag(place, EMPTY);
            entries.push(entry);
            place = next;
        }
        (cell.size, cell.head, cell.tail) = (0, NONE, NONE);
        entries
    }
}
