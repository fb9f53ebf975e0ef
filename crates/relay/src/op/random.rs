//! Random numbers whose generator is a value: Threefry-4x64 with 20 rounds, made splittable.
//!
//! A generator is ten words: four of a key, two of a path, two of a counter, and two with one bit, which is where the path goes
//! on. Numbers are the Threefry hash, under the key, of path and counter, and the counter steps on; a split appends a zero to
//! the path of the one and a one to that of the other. Where counter or path have no room, a new key is made by the hash. See
//! Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), for the hash, with the constants of the
//! Skein hash function, and Claessen and Pałka, "Splittable pseudorandom number generators using cryptographic hashing" (2013),
//! for the rest. Numbers are those of TVM, bit for bit (whose mixing step adds a word twice, so they are not those of other
//! libraries), except where a generator has used up counter and path: TVM's hash reads
//! two words there that were never written; they are ones here, as the paper has them.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::{Stmt, te};

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};

const WORD: DataType = DataType::uint(64);
/// The rotations of the four-word hash, by round.
const ROTATIONS: [[u64; 2]; 8] = [[14, 16], [52, 57], [23, 40], [5, 37], [25, 33], [46, 12], [58, 22], [32, 32]];
/// Words that are too large to be written as signed numbers, and the constant of the key schedule.
const WORDS: [u64; 4] = [1 << 63, 1 << 62, u64::MAX, 0x1bd1_1bda_a9fc_1a22];

fn word(value: u64) -> PrimExpr {
    prim::constant(WORD, value as f64)
}

fn bits(name: &str, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    prim::call(WORD, format!("tirx.{name}"), vec![a, b])
}

fn at(buffer: &Ref<Buffer>, i: impl Into<PrimExpr>) -> PrimExpr {
    prim::load(buffer, [i.into()])
}

fn put(buffer: &Ref<Buffer>, i: impl Into<PrimExpr>, value: PrimExpr) -> Stmt {
    Stmt::store(buffer, [i.into()], value)
}

/// The buffers of a kernel: the generator, large words, and room for a key of five words.
struct Room {
    from: Ref<Buffer>,
    words: Ref<Buffer>,
    key: Ref<Buffer>,
}

impl Room {
    fn large(&self, i: usize) -> PrimExpr {
        at(&self.words, i as i64)
    }

    /// The five words of the key schedule, of a key at the front of a buffer.
    fn schedule(&self, of: &Ref<Buffer>) -> Stmt {
        let own = (0..4i64).map(|i| put(&self.key, i, at(of, i)));
        let parity = (0..4i64).fold(self.large(3), |all, i| bits("bitwise_xor", all, at(of, i)));
        Stmt::seq(own.chain([put(&self.key, 4i64, parity)]))
    }

    /// The hash of four words that lie in a buffer from a place on, in place.
    fn hash(&self, state: &Ref<Buffer>, from: &PrimExpr) -> Stmt {
        let mut place = [0i64, 1, 2, 3];
        let mut out = Vec::new();
        let index = |i: i64| from.clone() + i;
        for block in 0..5usize {
            for (j, own) in place.iter().enumerate() {
                let mut key = at(&self.key, ((block + j) % 5) as i64);
                if j == 3 {
                    key = key + word(block as u64);
                }
                out.push(put(state, index(*own), at(state, index(*own)) + key));
            }
            for round in 0..4 {
                for (pair, rotation) in ROTATIONS[(block * 4 + round) % 8].iter().enumerate() {
                    let (a, b) = (index(place[pair * 2]), index(place[pair * 2 + 1]));
                    out.push(put(state, a.clone(), at(state, a.clone()) + at(state, b.clone())));
                    let left = bits("shift_left", at(state, b.clone()), word(*rotation));
                    let right = bits("shift_right", at(state, b.clone()), word(64 - rotation));
                    let rotated = bits("bitwise_or", left, right);
                    // TVM adds the second word once more to the sum that stands there by now; so do its numbers.
                    let sum = at(state, a) + at(state, b.clone());
                    out.push(put(state, b.clone(), bits("bitwise_xor", sum, rotated)));
                }
                place.swap(1, 3);
            }
        }
        Stmt::seq(out)
    }

    /// Whether the path has no room: as in TVM, only the first of its words is used before a new key is made.
    fn path_is_full(&self) -> PrimExpr {
        prim::eq(at(&self.from, 8i64), word(0))
    }

    /// Words of the generator copied.
    fn copied(&self, to: &Ref<Buffer>, words: std::ops::Range<i64>) -> Stmt {
        Stmt::seq(words.map(|i| put(to, i, at(&self.from, i))))
    }

    /// The path with a one more.
    fn one_more(&self, to: &Ref<Buffer>) -> Stmt {
        let longer = |i: i64| put(to, i + 4, bits("bitwise_or", at(&self.from, i + 4), at(&self.from, i + 8)));
        Stmt::seq([longer(0), longer(1)])
    }

    /// The place in the path one on.
    fn step(&self, to: &Ref<Buffer>) -> Stmt {
        let (a, b) = (at(&self.from, 8i64), at(&self.from, 9i64));
        let half = |e: PrimExpr| bits("shift_right", e, word(1));
        let crosses = prim::eq(a.clone(), word(1));
        let low = prim::select(prim::eq(a.clone(), word(0)), half(b), word(0));
        Stmt::seq([put(to, 8i64, half(a)), put(to, 9i64, prim::select(crosses, self.large(0), low))])
    }

    /// A new key of the generator's words and path and counter that are given, with nothing behind it.
    fn rekeyed(&self, to: &Ref<Buffer>, counter: [PrimExpr; 4]) -> Stmt {
        let counter = Stmt::seq((0..4i64).zip(counter).map(|(i, value)| put(to, i, value)));
        let rest = Stmt::seq((4..8i64).chain([9]).map(|i| put(to, i, word(0))));
        Stmt::seq([self.schedule(&self.from), counter, self.hash(to, &PrimExpr::from(0i64)), rest])
    }
}

fn large_words() -> Lowered {
    Ok(rx::Expr::constant(Tensor::from_slice(&WORDS, &[4])?))
}

fn generator(cx: &LowerCx<'_>) -> Lowered {
    let key = cx.arg(0)?;
    let is_key = rx::shape::const_dims(&cx.shape(&key)?).is_some_and(|dims| dims == [10]);
    if !is_key || cx.dtype(&key)? != WORD {
        return fail(format!("{} takes a generator: ten words of uint64", cx.def.name));
    }
    Ok(key)
}

/// The number of elements of a result.
fn count(cx: &LowerCx<'_>, shape: &[i64]) -> Result<i64, LowerError> {
    let count = shape.iter().try_fold(1i64, |n, dim| n.checked_mul(*dim).filter(|_| *dim >= 0));
    count.map_or_else(|| fail(format!("{}: no tensor has the shape {shape:?}", cx.def.name)), Ok)
}

/// The generator behind so many words, and the words; more than were asked for, to make up blocks of four.
fn words(key: &te::Tensor, large: &te::Tensor, count: i64) -> Vec<te::Tensor> {
    let (whole, rest) = (count / 4, count % 4);
    let blocks = whole + i64::from(rest > 0);
    let outs = [("generator", 10i64), ("words", blocks * 4), ("key", 5)];
    let outs = outs.map(|(name, n)| (name.to_string(), vec![prim::int(n)], WORD));
    let mut outs = te::extern_stage("threefry", &[key.clone(), large.clone()], outs, |source, target| {
        let room = Room { from: source[0].clone(), words: source[1].clone(), key: target[2].clone() };
        let (next, words) = (&target[0], &target[1]);
        let ones = || room.large(2);
        let full = [at(&room.from, 4i64), at(&room.from, 5i64), ones(), ones()];
        let longer = Stmt::seq([
            room.copied(next, 0..4),
            room.one_more(next),
            Stmt::seq([put(next, 6i64, word(0)), put(next, 7i64, word(0))]),
            room.step(next),
        ]);
        let new_key = Stmt::seq([room.rekeyed(next, full), put(next, 8i64, room.large(0))]);
        let fits = prim::lt(at(&room.from, 7i64), ones() - word(count as u64));
        let refilled = Stmt::if_else(room.path_is_full(), new_key, longer);
        let begin = Stmt::if_else(fits, room.copied(next, 0..10), refilled);
        let all = Stmt::each("block", whole, |block| {
            let first = block.clone() * 4i64;
            let counted =
                (0..4i64).map(|j| put(words, first.clone() + j, at(next, j + 4) + prim::cast(WORD, block.clone())));
            Stmt::seq(counted.chain([room.hash(words, &first)]))
        });
        let mut steps = vec![begin, room.schedule(next), all];
        if rest > 0 {
            let first = prim::int(whole * 4);
            steps.push(put(next, 7i64, at(next, 7i64) + word((whole * 4) as u64)));
            steps.extend((0..4i64).map(|j| put(words, first.clone() + j, at(next, j + 4))));
            steps.push(room.hash(words, &first));
        }
        let step = if rest > 0 { 4 } else { count };
        steps.push(put(next, 6i64, word(0)));
        steps.push(put(next, 7i64, at(next, 7i64) + word(step as u64)));
        Stmt::seq(steps)
    });
    outs.truncate(2);
    outs
}

/// Where an element of a tensor of known shape lies among all.
fn place(at: &[PrimExpr], shape: &[i64]) -> PrimExpr {
    at.iter().zip(shape).fold(prim::int(0), |place, (i, dim)| place * *dim + i.clone())
}

/// A generator and what is made of the words that it gives: a kernel of its own for what each element is.
fn drawn(
    cx: &mut LowerCx<'_>,
    shape: &[i64],
    drawn: i64,
    more: Vec<rx::Expr>,
    numbers: impl FnOnce(&te::Tensor, &[te::Tensor], Vec<PrimExpr>) -> te::Tensor,
) -> Lowered {
    let (key, large, name) = (generator(cx)?, large_words()?, cx.def.name.replace('.', "_"));
    let made = cx.builder.emit_te(&name, vec![key, large], |inputs| words(&inputs[0], &inputs[1], drawn))?;
    let next = cx.builder.emit(rx::Expr::field(made.clone(), 0))?;
    let mut args = vec![cx.builder.emit(rx::Expr::field(made, 1))?];
    args.extend(more);
    let shape: Vec<PrimExpr> = shape.iter().copied().map(prim::int).collect();
    let numbers = cx
        .builder
        .emit_te(&format!("{name}_numbers"), args, |inputs| vec![numbers(&inputs[0], &inputs[1..], shape)])?;
    Ok(rx::Expr::tuple([next, numbers]))
}

pub(super) fn generate(cx: &mut LowerCx<'_>) -> Lowered {
    let shape = cx.ints("out_shape")?;
    let count = count(cx, &shape)?;
    let dims = shape.clone();
    drawn(cx, &shape, count, Vec::new(), |words, _, shape| {
        te::compute("T_words", shape, |at: &[PrimExpr]| words.at(&[place(at, &dims)]))
    })
}

pub(super) fn split(cx: &mut LowerCx<'_>) -> Lowered {
    let (key, large) = (generator(cx)?, large_words()?);
    let made = cx.builder.emit_te("threefry_split", vec![key, large], |inputs| {
        let outs = [("left", 10i64), ("right", 10), ("key", 5)];
        let outs = outs.map(|(name, n)| (name.to_string(), vec![prim::int(n)], WORD));
        let mut outs = te::extern_stage("threefry_split", inputs, outs, |source, target| {
            let room = Room { from: source[0].clone(), words: source[1].clone(), key: target[2].clone() };
            let (left, right) = (&target[0], &target[1]);
            let counter = [4i64, 5, 6, 7].map(|i| at(&room.from, i));
            let full = Stmt::seq([
                room.rekeyed(left, counter),
                put(left, 8i64, room.large(1)),
                Stmt::seq((0..10i64).map(|i| put(right, i, if i == 4 { room.large(0) } else { at(left, i) }))),
            ]);
            let longer = Stmt::seq([
                room.copied(left, 0..8),
                room.step(left),
                room.copied(right, 0..8),
                room.one_more(right),
                room.step(right),
            ]);
            Stmt::if_else(room.path_is_full(), full, longer)
        });
        outs.truncate(2);
        outs
    })?;
    Ok(made)
}

/// A number from zero to one of a word: its low bits are the fraction of a float between one and two.
fn unit(word: PrimExpr, dtype: DataType) -> PrimExpr {
    let (total, fraction) = if dtype.bits == 32 { (32u64, 23u64) } else { (64, 52) };
    let bits_type = DataType::uint(total as u8);
    let bits = |name: &str, a: PrimExpr, b: PrimExpr| prim::call(bits_type, format!("tirx.{name}"), vec![a, b]);
    let number = |value: u64| prim::constant(bits_type, value as f64);
    let low = bits("shift_right", prim::cast(bits_type, word), number(total - fraction));
    let one = bits("shift_left", number((1 << (total - fraction - 2)) - 1), number(fraction));
    prim::call(dtype, "tirx.reinterpret", vec![bits("bitwise_or", low, one)]) - prim::constant(dtype, 1.0)
}

fn float_type(cx: &LowerCx<'_>) -> Result<DataType, LowerError> {
    match cx.dtype_attr("out_dtype", DataType::float(32)) {
        dtype if dtype == DataType::float(32) || dtype == DataType::float(64) => Ok(dtype),
        other => fail(format!("{} gives float32 or float64, not {other}", cx.def.name)),
    }
}

/// The two numbers that scale a distribution, as scalars of its type.
fn two_numbers(cx: &mut LowerCx<'_>, dtype: DataType) -> Result<Vec<rx::Expr>, LowerError> {
    let (a, b) = (cx.arg(1)?, cx.arg(2)?);
    let mut out = Vec::new();
    for number in [a, b] {
        let number = cx.cast(number, dtype)?;
        out.push(cx.reshape(number, Vec::new())?);
    }
    Ok(out)
}

pub(super) fn uniform(cx: &mut LowerCx<'_>) -> Lowered {
    let (shape, dtype) = (cx.ints("out_shape")?, float_type(cx)?);
    let (count, numbers, dims) = (count(cx, &shape)?, two_numbers(cx, dtype)?, shape.clone());
    drawn(cx, &shape, count, numbers, |words, bounds, shape| {
        te::compute("T_uniform", shape, |at: &[PrimExpr]| {
            let (low, high) = (bounds[0].at(&[]), bounds[1].at(&[]));
            unit(words.at(&[place(at, &dims)]), dtype) * (high - low.clone()) + low
        })
    })
}

/// By Box and Muller's transform: each number is of two words.
pub(super) fn normal(cx: &mut LowerCx<'_>) -> Lowered {
    let (shape, dtype) = (cx.ints("out_shape")?, float_type(cx)?);
    let (count, numbers, dims) = (count(cx, &shape)?, two_numbers(cx, dtype)?, shape.clone());
    let Some(twice) = count.checked_mul(2) else { return fail("random.normal: too many numbers") };
    drawn(cx, &shape, twice, numbers, |words, scale, shape| {
        te::compute("T_normal", shape, |at: &[PrimExpr]| {
            let first = place(at, &dims);
            let call = |name: &str, e: PrimExpr| prim::call(dtype, format!("tirx.{name}"), vec![e]);
            let number = |value: f64| prim::constant(dtype, value);
            let (u, v) = (unit(words.at(std::slice::from_ref(&first)), dtype), unit(words.at(&[first + count]), dtype));
            let radius = call("sqrt", number(-2.0) * call("log", number(1.0) - u));
            let angle = call("sin", number(2.0 * std::f64::consts::PI) * v);
            radius * angle * scale[1].at(&[]) + scale[0].at(&[])
        })
    })
}

/// For each draw the first index at which the probabilities up to it are more than a uniform number.
pub(super) fn multinomial(cx: &mut LowerCx<'_>) -> Lowered {
    let (probabilities, samples) = (cx.arg(1)?, cx.int("num_samples")?);
    let single = DataType::float(32);
    let probabilities = cx.cast(probabilities, single)?;
    let zero = cx.constant(0.0, single)?;
    let probabilities = cx.op("maximum", [probabilities, zero])?;
    let last = |keep: bool| attrs([("axis", vec![-1i64].into()), ("keepdims", keep.into())]);
    let total = cx.emit("sum", [probabilities.clone()], last(true))?;
    let probabilities = cx.op("divide", [probabilities, total])?;
    let sums = cx.emit("cumsum", [probabilities], attrs([("axis", (-1i64).into())]))?;
    let Some(mut shape) = rx::shape::const_dims(&cx.shape(&sums)?) else {
        return fail("random.multinomial takes probabilities of known shape");
    };
    let Some(outcomes) = shape.pop() else { return fail("random.multinomial takes a row of probabilities") };
    shape.push(samples);
    let count = count(cx, &shape)?;
    let dims = shape.clone();
    drawn(cx, &shape, count, vec![sums], |words, sums, shape| {
        let (outcome, index) = (te::reduce_axis(prim::int(outcomes)), DataType::int(32));
        // Sums grow, so how many of them are no more than the number is the index of the first that is. Where rounding leaves
        // none, it is the first of all, as in TVM.
        let below = te::compute("below", shape.clone(), |at: &[PrimExpr]| {
            let number = unit(words.at(&[place(at, &dims)]), single);
            let row: Vec<PrimExpr> = at[..at.len() - 1].iter().cloned().chain([outcome.var()]).collect();
            te::sum(prim::cast(index, prim::le(sums[0].at(&row), number)), [outcome.clone()])
        });
        te::compute("T_multinomial", shape, |at: &[PrimExpr]| {
            let all = prim::constant(index, outcomes as f64);
            prim::select(prim::lt(below.at(at), all), below.at(at), prim::constant(index, 0.0))
        })
    })
}
