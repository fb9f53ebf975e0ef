//! A matrix-multiplication microkernel as a schedule would leave it.

use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Var, prim};
use relaxide_tir::{PrimFunc, Stmt};

pub const ROWS: i64 = 6;
pub const COLUMNS: i64 = 16;
pub const LANES: i64 = 8;
/// Chains of [`peak`]: two units that take four cycles are busy with eight, and sixteen registers hold twelve.
pub const CHAINS: i64 = 12;

/// `C[6, 16] += A[k, 6]^T B[k, 16]` over packed panels, accumulated in twelve vectors of a local buffer.
pub fn microkernel(depth: i64) -> PrimFunc {
    let f32 = DataType::float(32);
    let a = Buffer::new("A", f32, [depth * ROWS]);
    let b = Buffer::new("B", f32, [depth * COLUMNS]);
    let c = Buffer::new("C", f32, [ROWS * COLUMNS]);
    let sums = Buffer::scoped("sums", f32, [ROWS * COLUMNS], "local");
    let k = Var::dim("k");
    let vector = |base: PrimExpr| prim::ramp(base, 1, LANES);
    let tiles = || (0..ROWS).flat_map(|row| (0..COLUMNS / LANES).map(move |part| (row, part)));
    let place = |row: i64, part: i64| vector(PrimExpr::from(row * COLUMNS + part * LANES));
    let clear = tiles()
        .map(|(row, part)| Stmt::store(&sums, [place(row, part)], prim::broadcast(prim::float_of(f32, 0.0), LANES)));
    let update = tiles().map(|(row, part)| {
        let left = prim::broadcast(prim::load(&a, [prim::mul(&k, ROWS) + row]), LANES);
        let right = prim::load(&b, [vector(prim::mul(&k, COLUMNS) + part * LANES)]);
        Stmt::store(&sums, [place(row, part)], prim::load(&sums, [place(row, part)]) + left * right)
    });
    let write = tiles().map(|(row, part)| {
        Stmt::store(&c, [place(row, part)], prim::load(&c, [place(row, part)]) + prim::load(&sums, [place(row, part)]))
    });
    let body = Stmt::seq(
        [Stmt::alloc(&sums)]
            .into_iter()
            .chain(clear)
            .chain([Stmt::serial(k.clone(), depth, Stmt::seq(update.collect::<Vec<_>>()))])
            .chain(write),
    );
    super::kernel("microkernel", &[a, b, c], &[], body)
}

/// Independent chains of fused multiply-adds in registers of so many lanes: what the processor can do at best.
pub fn peak(depth: i64, lanes: i64) -> PrimFunc {
    let f32 = DataType::float(32);
    let c = Buffer::new("C", f32, [CHAINS * lanes]);
    let x = Buffer::new("X", f32, [1]);
    let sums: Ref<Buffer> = Buffer::scoped("sums", f32, [CHAINS * lanes], "local");
    let place = |index: i64| prim::ramp(PrimExpr::from(index * lanes), 1, lanes);
    let factor = || prim::broadcast(prim::load(&x, [PrimExpr::from(0)]), lanes);
    let start = (0..CHAINS).map(|i| Stmt::store(&sums, [place(i)], prim::load(&c, [place(i)])));
    let update = (0..CHAINS)
        .map(|i| Stmt::store(&sums, [place(i)], prim::load(&sums, [place(i)]) * factor() + factor()))
        .collect::<Vec<_>>();
    let end = (0..CHAINS).map(|i| Stmt::store(&c, [place(i)], prim::load(&sums, [place(i)])));
    let body = Stmt::seq(
        [Stmt::alloc(&sums)]
            .into_iter()
            .chain(start)
            .chain([Stmt::serial(Var::dim("k"), depth, Stmt::seq(update))])
            .chain(end),
    );
    super::kernel("peak", &[x, c.clone()], &[], body)
}
