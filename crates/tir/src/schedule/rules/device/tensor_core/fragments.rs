//! From tiles to fragments, and the products of those.
//!
//! Elements of 16 bits are loaded by the warp together, four matrices at a time: one fragment of the rows, or two of the columns. Others a
//! thread loads by itself: their registers are one element, or four neighbours along the terms.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, add, call, floordiv, floormod, int, load, mul, ramp};
use relaxide_ir::{Buffer, Var};

use super::operand::{Operand, neighbours};
use super::{Emission, Names};
use crate::stmt::For;
use crate::warp::{COLUMNS, ROWS};
use crate::{ForKind, Stmt};

/// Lines that one load of four matrices has.
const LOADED: i64 = 16;

/// All products of a pair of tiles, added to the thread's sums.
pub(super) fn multiply(emission: &Emission<'_>, names: &Names, tiles: &[Ref<Buffer>; 2], sum: &Ref<Buffer>) -> Stmt {
    let (decided, product) = (emission.decided, emission.found.product);
    let lanes = [4 * product.per_register, 2 * product.per_register];
    let counts = [decided.rows / ROWS, decided.columns / COLUMNS];
    let fragments = [0, 1].map(|i| {
        let dtype = emission.operands[i].dtype();
        Buffer::scoped(["fa", "fb"][i], dtype, [int(lanes[i] * counts[i])], "local")
    });
    let k = Var::dim("k");
    let term = mul(PrimExpr::from(&k), int(product.terms()));
    let mut body: Vec<Stmt> = fragments.iter().map(Stmt::alloc).collect();
    for i in 0..2 {
        let side = Side { operand: &emission.operands[i], tile: &tiles[i], fragment: &fragments[i], is_rows: i == 0 };
        body.extend(side.load(names, i, &term, counts[i], product.per_register));
    }
    for row in 0..counts[0] {
        for column in 0..counts[1] {
            let part = |buffer: &Ref<Buffer>, at: i64, lanes: i64| load(buffer, [ramp(int(at * lanes), 1, lanes)]);
            let at = row * counts[1] + column;
            let args =
                vec![part(&fragments[0], row, lanes[0]), part(&fragments[1], column, lanes[1]), part(sum, at, 4)];
            let made = call(sum.dtype.with_lanes(4), "tirx.warp_multiply_add", args);
            body.push(Stmt::store(sum, [ramp(int(at * 4), 1, 4)], made));
        }
    }
    let (min, extent, kind) = (int(0), int(decided.depth / product.terms()), ForKind::Unrolled);
    Ref::new(For::new(kind, k, min, extent, Stmt::seq(body))).into()
}

/// One of the operands with its tile and a thread's fragments of it.
struct Side<'a> {
    operand: &'a Operand<'a>,
    tile: &'a Ref<Buffer>,
    fragment: &'a Ref<Buffer>,
    is_rows: bool,
}

impl Side<'_> {
    fn load(&self, names: &Names, side: usize, term: &PrimExpr, count: i64, per_register: i64) -> Vec<Stmt> {
        let (lane, first) = (PrimExpr::from(&names.lane), PrimExpr::from(&names.of_warp[side]));
        if per_register == 2 {
            let lines = if self.is_rows { ROWS } else { COLUMNS };
            return (0..count * lines / LOADED).map(|i| self.load_together(&lane, &first, term, i)).collect();
        }
        (0..count).flat_map(|i| self.load_alone(&lane, &first, term, i, per_register)).collect()
    }

    /// Four matrices of elements of 16 bits: lines `16 i` to `16 i + 15`, 16 terms.
    fn load_together(&self, lane: &PrimExpr, first: &PrimExpr, term: &PrimExpr, i: i64) -> Stmt {
        let matrix = floordiv(lane, int(8));
        // The registers of rows are the other eight lines first, those of columns the other eight terms.
        let (low, high) = (floormod(&matrix, int(2)), floordiv(&matrix, int(2)));
        let (of_line, of_term) = if self.is_rows { (low, high) } else { (high, low) };
        let within = floormod(lane, int(8));
        let is_transposed = !self.operand.is_tile_along_terms;
        let (line, terms) = (mul(of_line, int(8)), mul(of_term, int(8)));
        let (line, terms) = if is_transposed { (line, add(terms, within)) } else { (add(line, within), terms) };
        let [row, at] = self.operand.place(add(first, add(line, int(i * LOADED))), add(term, terms));
        let value = load(self.tile, [row, neighbours(self.tile, at, 8)]);
        let args = vec![int(i64::from(is_transposed)), value];
        let made = call(self.fragment.dtype.with_lanes(8), "tirx.warp_load_matrix", args);
        Stmt::store(self.fragment, [ramp(int(i * 8), 1, 8)], made)
    }

    /// A fragment's registers, each by itself.
    fn load_alone(&self, lane: &PrimExpr, first: &PrimExpr, term: &PrimExpr, i: i64, per_register: i64) -> Vec<Stmt> {
        let (g, t) = (floordiv(lane, int(4)), floormod(lane, int(4)));
        let (lines, registers) = if self.is_rows { (ROWS, 4) } else { (COLUMNS, 2) };
        let register = |r: i64| {
            let (of_line, of_term) = if self.is_rows { (8 * (r % 2), r / 2) } else { (0, r) };
            let line = add(first, add(&g, int(i * lines + of_line)));
            let term = add(term, add(mul(&t, int(per_register)), int(4 * per_register * of_term)));
            let [row, at] = self.operand.place(line, term);
            let to = int((i * registers + r) * per_register);
            let at = if per_register == 1 { at } else { neighbours(self.tile, at, per_register) };
            Stmt::store(self.fragment, [ramp(to, 1, per_register)], load(self.tile, [row, at]))
        };
        (0..registers).map(register).collect()
    }
}
