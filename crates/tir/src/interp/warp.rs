//! What the threads of a warp do together: every one gives its part, then every one gets its part of the result.

use relaxide_ir::DataType;
use relaxide_ir::prim::PrimCall;

use super::scalar::{Scalar, ScalarOrLanes};
use super::threads::Thread;
use super::{Interp, InterpError, Result};
use crate::intrin::Intrinsic;
use crate::stmt::*;
use crate::warp::{self, COLUMNS, ROWS, SIDE, WARP, WarpProduct};

impl Interp {
    /// A store of what the threads of a warp make together, by all threads of a block.
    pub(super) fn team_warp(
        &mut self,
        stmt: &Stmt,
        call: &PrimCall,
        intrinsic: Intrinsic,
        threads: &mut [Thread],
        phase: u64,
    ) -> Result<()> {
        let Stmt::Store(store) = stmt else { return Ok(()) };
        if !threads.len().is_multiple_of(WARP as usize) {
            let message = format!("`{}` by {} threads, which are no warps of {WARP}", call.op, threads.len());
            return Err(InterpError::Malformed(message));
        }
        for warp in threads.chunks_mut(WARP as usize) {
            let mut given = Vec::with_capacity(warp.len());
            for thread in warp.iter_mut() {
                let args = |this: &mut Interp| call.args.iter().map(|arg| this.eval(arg)).collect::<Result<Vec<_>>>();
                given.push(self.with_thread(thread, phase, args)?);
            }
            let malformed = || InterpError::Malformed(format!("`{}` with fragments of other types", call.op));
            let made = match intrinsic {
                Intrinsic::WarpLoadMatrix => loaded(call, &given)?.ok_or_else(malformed)?,
                Intrinsic::WarpShuffleDown => shuffled(call, &given)?.ok_or_else(malformed)?,
                _ => multiplied(call, &given)?.ok_or_else(malformed)?,
            };
            for (thread, value) in warp.iter_mut().zip(made) {
                self.with_thread(thread, phase, |this| this.store_value(store, ScalarOrLanes::from_lanes(value)))?;
            }
        }
        Ok(())
    }
}

fn shuffled(call: &PrimCall, given: &[Vec<ScalarOrLanes>]) -> Result<Option<Vec<Vec<Scalar>>>> {
    let Some((places, width)) = warp::shuffled_down(call) else { return Ok(None) };
    let (places, width) = (places as usize, width as usize);
    let of_thread = |thread: usize| {
        let from = if thread % width + places < width { thread + places } else { thread };
        Ok(vec![given[from][1].lane(0)?])
    };
    (0..given.len()).map(of_thread).collect::<Result<Vec<_>>>().map(Some)
}

fn loaded(call: &PrimCall, given: &[Vec<ScalarOrLanes>]) -> Result<Option<Vec<Vec<Scalar>>>> {
    let (Some(count), Some(transposed)) = (warp::loaded_matrices(call), call.args[0].as_int()) else { return Ok(None) };
    let element = |matrix: usize, row: usize, column: usize| given[matrix * SIDE + row][1].lane(column);
    let of_thread = |thread: usize| -> Result<Vec<Scalar>> {
        let (g, t) = (thread / 4, thread % 4);
        let places = (0..count).flat_map(|matrix| [2 * t, 2 * t + 1].map(|i| (matrix, i)));
        places.map(|(matrix, i)| if transposed == 1 { element(matrix, i, g) } else { element(matrix, g, i) }).collect()
    };
    (0..given.len()).map(of_thread).collect::<Result<Vec<_>>>().map(Some)
}

fn multiplied(call: &PrimCall, given: &[Vec<ScalarOrLanes>]) -> Result<Option<Vec<Vec<Scalar>>>> {
    let Some(product) = WarpProduct::of_call(call) else { return Ok(None) };
    let terms = product.terms();
    let mut a = vec![Scalar::Int(0); (ROWS * terms) as usize];
    let mut b = vec![Scalar::Int(0); (terms * COLUMNS) as usize];
    for (thread, args) in given.iter().enumerate() {
        for i in 0..4 * product.per_register {
            let (row, term) = product.place_in_a(thread as i64, i);
            a[(row * terms + term) as usize] = args[0].lane(i as usize)?;
        }
        for i in 0..2 * product.per_register {
            let (term, column) = product.place_in_b(thread as i64, i);
            b[(term * COLUMNS + column) as usize] = args[1].lane(i as usize)?;
        }
    }
    let dtype = call.dtype.element();
    let of_thread = |(thread, args): (usize, &Vec<ScalarOrLanes>)| -> Result<Vec<Scalar>> {
        let one = |i: i64| -> Result<Scalar> {
            let (row, column) = WarpProduct::place_in_c(thread as i64, i);
            let pairs = (0..terms).map(|k| (a[(row * terms + k) as usize], b[(k * COLUMNS + column) as usize]));
            Ok(sum(args[2].lane(i as usize)?, pairs, product.per_register == 1).wrapped(dtype))
        };
        (0..4).map(one).collect()
    };
    given.iter().enumerate().map(of_thread).collect::<Result<Vec<_>>>().map(Some)
}

/// A number and products of others; a float is rounded by who asks.
fn sum(first: Scalar, pairs: impl Iterator<Item = (Scalar, Scalar)>, is_rounded: bool) -> Scalar {
    let float = |x: Scalar| {
        let x = x.to_f64(DataType::float(64));
        if is_rounded { rounded(x) } else { x }
    };
    match first {
        Scalar::Int(first) => {
            let product = |(a, b): (Scalar, Scalar)| a.as_int().zip(b.as_int()).map_or(0, |(a, b)| a * b);
            Scalar::Int(first.wrapping_add(pairs.map(product).fold(0, i64::wrapping_add)))
        }
        Scalar::Float(first) => Scalar::Float(pairs.fold(first, |sum, (a, b)| sum + float(a) * float(b))),
    }
}

/// A number of single precision, rounded to ten bits behind the point; ties away from zero.
fn rounded(x: f64) -> f64 {
    let x = x as f32;
    if !x.is_finite() {
        return f64::from(x);
    }
    f64::from(f32::from_bits(x.to_bits().wrapping_add(1 << 12) & !((1 << 13) - 1)))
}
