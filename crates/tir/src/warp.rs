//! What the threads of a warp do together: products of small matrices, and the loads of their operands.
//!
//! A warp is 32 threads of a block whose numbers are neighbours. In the calls of this file each of them has a part of a matrix, its
//! *fragment*: some elements in a vector. A call stands by itself, as the value that a store writes, and all threads of a block come to it.
//!
//! **`warp_multiply_add(a, b, c)`** is `c + a · b` of matrices of 16 × K, K × 8 and 16 × 8. An element has W to a register of 32 bits
//! (1 of single precision, 2 of 16 bits, 4 of a byte), and K is 8 W. Thread `4 g + t` has these elements:
//!
//! ```text
//! a: 4 W, in registers r of 4    row g + 8 (r mod 2)      term W t + i + 4 W (r div 2)
//! b: 2 W, in registers r of 2    term W t + i + 4 W r     column g
//! c: 4                           row g + 8 (i div 2)      column 2 t + i mod 2
//! ```
//!
//! Sums of floats are in single precision, in an order that is unspecified; factors of single precision are rounded to ten bits behind
//! the point (TF32). Integers of 8 bits, signed or not, are summed in 32.
//!
//! **`warp_load_matrix(transposed, row)`** gives 8 × 8 matrices of elements of 16 bits to the threads: 1, 2 or 4 of them, half as many as the
//! result has lanes. Thread `8 m + i` says what row `i` of matrix `m` is, eight elements of memory that threads share. Thread
//! `4 g + t` gets of each matrix the elements `2 t` and `2 t + 1` of row `g`, or, transposed, of column `g`.
//!
//! **`tvm_warp_shuffle_down(mask, value, places, width, 32)`** gives thread `i` the value of thread `i + places`, where both are in the same
//! part of `width` threads, else its own. Elements have 32 bits; all threads take part.
//!
//! Source: the PTX instructions `mma.sync`, `ldmatrix` and `shfl.sync`.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::PrimExpr;
use relaxide_ir::prim::PrimCall;

use crate::Stmt;
use crate::intrin::Intrinsic;

/// Threads of a warp.
pub const WARP: i64 = 32;

/// Rows of a product.
pub const ROWS: i64 = 16;

/// Columns of a product.
pub const COLUMNS: i64 = 8;

/// Rows, and elements of a row, of a loaded matrix.
pub const SIDE: usize = 8;

/// The call that a store writes the value of, if the threads of a warp execute it together.
pub fn warp_call(stmt: &Stmt) -> Option<(&Ref<PrimCall>, Intrinsic)> {
    let Stmt::Store(store) = stmt else { return None };
    warp_value(&store.value)
}

/// The same of the value that is written.
pub fn warp_value(value: &PrimExpr) -> Option<(&Ref<PrimCall>, Intrinsic)> {
    let PrimExpr::Call(call) = value else { return None };
    let intrinsic = Intrinsic::of_call(&call.op)?;
    use Intrinsic::{WarpLoadMatrix, WarpMultiplyAdd, WarpShuffleDown};
    matches!(intrinsic, WarpMultiplyAdd | WarpLoadMatrix | WarpShuffleDown).then_some((call, intrinsic))
}

/// The product of two types of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpProduct {
    /// Elements of a register.
    pub per_register: i64,
}

impl WarpProduct {
    /// Of factors of some types, summed in a third; nothing where there is no such product.
    pub fn of(a: DataType, b: DataType, sum: DataType) -> Option<WarpProduct> {
        let (a, b, sum) = (a.element(), b.element(), sum.element());
        let byte = |dtype: DataType| dtype.bits == 8 && (dtype.is_int() || dtype.is_uint());
        let half = |dtype: DataType| dtype == DataType::float(16) || dtype == DataType::bfloat16();
        let per_register = match () {
            () if byte(a) && byte(b) && sum == DataType::int(32) => 4,
            () if a == b && half(a) && sum == DataType::float(32) => 2,
            () if a == b && a == DataType::float(32) && sum == a => 1,
            () => return None,
        };
        Some(WarpProduct { per_register })
    }

    /// Of a call, if its fragments have the lanes that they must.
    pub fn of_call(call: &PrimCall) -> Option<WarpProduct> {
        let [a, b, c] = call.args.as_slice() else { return None };
        let (a, b, c) = (a.dtype(), b.dtype(), c.dtype());
        let product = WarpProduct::of(a, b, c)?;
        let lanes = [a, b, c].map(|dtype| i64::from(dtype.lanes));
        let fits = lanes == [4 * product.per_register, 2 * product.per_register, 4] && call.dtype == c;
        fits.then_some(product)
    }

    /// How many terms it sums.
    pub fn terms(self) -> i64 {
        8 * self.per_register
    }

    /// Row and term of an element of a thread's fragment of the first factor.
    pub fn place_in_a(self, thread: i64, element: i64) -> (i64, i64) {
        let (register, i) = (element / self.per_register, element % self.per_register);
        (thread / 4 + 8 * (register % 2), self.term(thread, i, register / 2))
    }

    /// Term and column of an element of a thread's fragment of the second factor.
    pub fn place_in_b(self, thread: i64, element: i64) -> (i64, i64) {
        let (register, i) = (element / self.per_register, element % self.per_register);
        (self.term(thread, i, register), thread / 4)
    }

    /// Row and column of an element of a thread's fragment of the sum.
    pub fn place_in_c(thread: i64, element: i64) -> (i64, i64) {
        (thread / 4 + 8 * (element / 2), 2 * (thread % 4) + element % 2)
    }

    fn term(self, thread: i64, i: i64, half: i64) -> i64 {
        self.per_register * (thread % 4) + i + 4 * self.per_register * half
    }
}

/// How many matrices a call loads, if its row and its result have the lanes that they must.
pub fn loaded_matrices(call: &PrimCall) -> Option<usize> {
    let [transposed, row] = call.args.as_slice() else { return None };
    let dtype = row.dtype();
    let fits = dtype.bits == 16 && usize::from(dtype.lanes) == SIDE && call.dtype.element() == dtype.element();
    let count = usize::from(call.dtype.lanes) / 2;
    (fits && matches!(transposed.as_int(), Some(0 | 1)) && matches!(call.dtype.lanes, 2 | 4 | 8)).then_some(count)
}

/// How many places a call moves values by, and in parts of how many threads; nothing for calls of another form.
pub fn shuffled_down(call: &PrimCall) -> Option<(i64, i64)> {
    let [mask, value, places, width, warp] = call.args.as_slice() else { return None };
    let (places, width) = (places.as_int()?, width.as_int()?);
    let is_whole = mask.as_int().is_some_and(|mask| mask as u32 == u32::MAX) && warp.is_int(WARP);
    let fits = (0..WARP).contains(&places) && (1..=WARP).contains(&width) && width.count_ones() == 1;
    let dtype = value.dtype();
    (is_whole && fits && dtype.bits == 32 && dtype.lanes == 1 && call.dtype == dtype).then_some((places, width))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn fragments_of_a_warp_are_the_matrices() {
        for per_register in [1, 2, 4] {
            let product = WarpProduct { per_register };
            let places = |count: i64, place: &dyn Fn(i64, i64) -> (i64, i64)| -> HashSet<(i64, i64)> {
                (0..WARP).flat_map(|thread| (0..count).map(move |i| (thread, i))).map(|(t, i)| place(t, i)).collect()
            };
            let all = |rows: i64, columns: i64| -> HashSet<(i64, i64)> {
                (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).collect()
            };
            let terms = product.terms();
            assert_eq!(places(4 * per_register, &|t, i| product.place_in_a(t, i)), all(ROWS, terms));
            assert_eq!(places(2 * per_register, &|t, i| product.place_in_b(t, i)), all(terms, COLUMNS));
            assert_eq!(places(4, &WarpProduct::place_in_c), all(ROWS, COLUMNS));
        }
    }
}
