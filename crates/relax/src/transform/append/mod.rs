//! Results that are a parameter with something behind it: a decoder's caches of keys and values, which the caller hands in again.
//!
//! ```text
//! def main(past: [n, 8, p, 64], …):                       memory = append_in_place(past, new, axis=2)   # [n, 8, capacity, 64]
//!     keys = R.concat((past, new), axis=2)           →    y = cls.attention(q, memory, capacity)
//!     y = attention(q, keys)                              keys = appended(memory, [n, 8, p + 1, 64])
//!     return (y, keys)                                    return (y, keys)
//! ```
//!
//! A concatenation copies all that was there at each call. The builtin writes what is new behind it, in memory with room for more, and what is
//! given back is a view of that memory: one with gaps, since a cache grows between its heads. Kernels read the memory as a tensor that is as long
//! as there is room. It takes two passes:
//!
//! * [`keep`], in front of fusion, keeps such a concatenation from becoming part of a kernel: it becomes a call of a builtin that gives a compact
//!   tensor, which is right whatever follows.
//! * [`in_place`], behind fusion, makes the kernels that read it ready for memory with room.

pub(super) mod in_place;
pub(super) mod keep;

/// One tensor behind another along an axis, compact: `(past, new, axis)`.
const APPEND: &str = "vm.builtin.append";
/// The same in memory with room for more, if the machine gives results with strides: `(past, new, axis)`.
const APPEND_IN_PLACE: &str = "vm.builtin.append_in_place";
/// The part of that memory that has elements: `(memory, shape)`.
const APPENDED: &str = "vm.builtin.appended";
