//! Where storages lie that become one.
//!
//! Each is needed for a stretch of the program. The largest is placed first, at the lowest offset where no other lies that is
//! needed at the same time: "greedy by size" of Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
//! 2020. MemoryPlan does so with the storages of a scope, the compiler with those of a stretch of code without jumps.

/// How storages are aligned.
pub(crate) const ALIGNMENT: i64 = 64;

/// A storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// What it needs, whole alignments.
    pub bytes: i64,
    /// Where it is taken.
    pub from: usize,
    /// Where it is used last.
    pub until: usize,
    /// Where it lies.
    pub offset: i64,
}

impl Room {
    /// A storage of so many bytes that is taken at a place.
    pub fn new(bytes: i64, from: usize) -> Room {
        let units = (bytes.clamp(0, i64::MAX - ALIGNMENT) + ALIGNMENT - 1) / ALIGNMENT;
        Room { bytes: units.max(1).saturating_mul(ALIGNMENT), from, until: from, offset: 0 }
    }
}

/// Gives each an offset; the bytes of all together.
pub(crate) fn place(rooms: &mut [&mut Room]) -> i64 {
    rooms.sort_by_key(|room| (std::cmp::Reverse(room.bytes), room.from));
    let mut total = 0;
    for i in 0..rooms.len() {
        let Room { bytes, from, until, .. } = *rooms[i];
        let mut taken: Vec<(i64, i64)> = rooms[..i]
            .iter()
            .filter(|other| other.from <= until && from <= other.until)
            .map(|other| (other.offset, other.offset.saturating_add(other.bytes)))
            .collect();
        taken.sort_unstable();
        let mut offset = 0i64;
        for (start, end) in taken {
            if offset.saturating_add(bytes) <= start {
                break;
            }
            offset = offset.max(end);
        }
        rooms[i].offset = offset;
        total = total.max(offset.saturating_add(bytes));
    }
    total
}
