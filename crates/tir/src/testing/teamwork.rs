//! Random kernels that the threads of a block of a device execute together: reductions, rows, products, transposes, scans, sorts, iterations that follow
//! from each other.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, BinaryOp, Buffer, Ref, Var};

use super::{Dim, Random, Sample, random_tensor};
use crate::schedule::SORTS_RANKS;
use crate::te::{self, ReduceAxis, TeError, Tensor};
use crate::{For, ForKind, Stmt};

/// A kernel, and which rule it is meant for.
#[derive(Debug)]
pub struct Teamwork {
    /// The kernel, with inputs.
    pub sample: Sample,
    /// The rule.
    pub rule: &'static str,
}

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);

/// How many kinds of kernels there are.
pub const KINDS: u64 = 14;

/// A kernel of a seed; neighbouring seeds are for different rules.
pub fn teamwork(seed: u64) -> Result<Teamwork, TeError> {
    let mut random = Random::new(seed);
    let random = &mut random;
    match seed % KINDS {
        0 | 1 => product(random),
        2 => convolution(random),
        3 => along_rows(random),
        4 => along_columns(random),
        5 => softmax(random),
        6 => norm(random),
        7 => one_row(random),
        8 => scan(random),
        9 => sort(random),
        10 => whole(random),
        11 => short_rows(random),
        12 => transpose(random),
        _ => iterations(random),
    }
}

/// A dimension that is a number or a name.
fn dim(random: &mut Random, name: &str, low: i64, high: i64) -> Dim {
    let size = random.between(low, high);
    let expr = if random.one_in(3) { PrimExpr::from(&Var::dim(name)) } else { prim::int(size) };
    Dim { size, expr }
}

fn sizes(dims: &[&Dim]) -> Vec<i64> {
    dims.iter().map(|dim| dim.size).collect()
}

fn exprs(dims: &[&Dim]) -> Vec<PrimExpr> {
    dims.iter().map(|dim| dim.expr.clone()).collect()
}

/// What a kernel of some inputs computes, with random elements.
struct Maker<'r> {
    random: &'r mut Random,
    inputs: Vec<(Tensor, Vec<i64>)>,
}

impl Maker<'_> {
    fn input(&mut self, name: &str, dims: &[&Dim], dtype: DataType) -> Tensor {
        let tensor = te::placeholder(name, exprs(dims), dtype);
        self.inputs.push((tensor.clone(), sizes(dims)));
        tensor
    }

    fn sample(self, rule: &'static str, output: Tensor, shape: Vec<i64>) -> Result<Teamwork, TeError> {
        let args: Vec<Tensor> = self.inputs.iter().map(|(tensor, _)| tensor.clone()).chain([output.clone()]).collect();
        let func = te::create_prim_func(&args)?;
        let mut inputs = Vec::new();
        for (tensor, shape) in &self.inputs {
            let drawn = random_tensor(self.random, shape, tensor.dtype());
            inputs.extend(drawn.ok());
        }
        let outputs = vec![(shape, output.dtype())];
        Ok(Teamwork { sample: Sample { func, inputs, outputs, scalars: Vec::new() }, rule })
    }
}

fn over(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    prim::binary(BinaryOp::Div, a, b)
}

fn axis(dim: &Dim) -> ReduceAxis {
    te::reduce_axis(dim.expr.clone())
}

/// Products of matrices, several perhaps, either of them transposed, with something done to the result.
fn product(random: &mut Random) -> Result<Teamwork, TeError> {
    let dtype = if random.one_in(4) { I32 } else { F32 };
    let sizes = [dim(random, "m", 8, 36), dim(random, "n", 8, 36), dim(random, "k", 8, 40)];
    product_of(random, [dtype; 3], sizes, "tiled product")
}

/// Products of the types that tensor cores multiply, which of them are more than 32 rows and which are not; see [`product`].
pub fn tensor_product(seed: u64) -> Result<Teamwork, TeError> {
    let (half, brain) = (DataType::float(16), DataType::bfloat16());
    let (signed, unsigned) = (DataType::int(8), DataType::uint(8));
    let types = [
        [half, half, F32],
        [half, half, half],
        [brain, brain, F32],
        [signed, signed, I32],
        [unsigned, signed, I32],
        [F32, F32, F32],
    ];
    let random = &mut Random::new(seed);
    let types = types[(seed % types.len() as u64) as usize];
    // Multiples of what is loaded at once, or any numbers.
    let step = if random.one_in(2) { 16 } else { 1 };
    let mut size = |name, low: i64, high: i64| {
        let size = (random.between(low, high) + step - 1) / step * step;
        let is_named = name == "m" && random.one_in(3);
        Dim { size, expr: if is_named { PrimExpr::from(&Var::dim(name)) } else { prim::int(size) } }
    };
    let sizes = [size("m", 16, 80), size("n", 16, 80), size("k", 16, 90)];
    product_of(random, types, sizes, "tensor-core product")
}

/// A product of factors of two types in a third.
fn product_of(
    random: &mut Random,
    [left_type, right_type, dtype]: [DataType; 3],
    [m, n, k]: [Dim; 3],
    rule: &'static str,
) -> Result<Teamwork, TeError> {
    let b = Dim { size: 2, expr: prim::int(2) };
    let (of_a, of_b, finished) = (random.one_in(2), random.one_in(2), random.one_in(2));
    let batch = random.one_in(3);
    let mut maker = Maker { random, inputs: Vec::new() };
    let mut operand = |(name, of): (&str, DataType), rows: &Dim, columns: &Dim, transposed: bool| {
        let (first, second) = if transposed { (columns, rows) } else { (rows, columns) };
        let dims: Vec<&Dim> = if batch { vec![&b, first, second] } else { vec![first, second] };
        let tensor = maker.input(name, &dims, of);
        move |at: &[PrimExpr], row: PrimExpr, column: PrimExpr| {
            let place = if transposed { [column, row] } else { [row, column] };
            prim::cast(dtype, tensor.at(&[at, &place].concat()))
        }
    };
    let left = operand(("A", left_type), &m, &k, of_a);
    let right = operand(("B", right_type), &k, &n, of_b);
    let bias = maker.input("bias", &[&n], dtype);
    let dims: Vec<&Dim> = if batch { vec![&b, &m, &n] } else { vec![&m, &n] };
    let along = axis(&k);
    let made = te::compute("product", exprs(&dims), |i| {
        let (outer, inner) = i.split_at(i.len() - 2);
        let (row, column) = (inner[0].clone(), inner[1].clone());
        te::sum(left(outer, row, along.var()) * right(outer, along.var(), column), [&along])
    });
    let output = match finished {
        true => te::compute("finished", exprs(&dims), |i| {
            prim::max(made.at(i) + bias.at(&i[i.len() - 1..]), prim::constant(dtype, 0.0))
        }),
        false => made,
    };
    let shape = sizes(&dims);
    maker.sample(rule, output, shape)
}

/// A convolution with borders, as a product.
fn convolution(random: &mut Random) -> Result<Teamwork, TeError> {
    let fixed = |size: i64| Dim { size, expr: prim::int(size) };
    let batch = dim(random, "batch", 1, 2);
    let (c, o, h, w) = (fixed(2), fixed(random.between(8, 20)), dim(random, "h", 4, 7), dim(random, "w", 4, 7));
    let r = fixed(3);
    let mut maker = Maker { random, inputs: Vec::new() };
    let data = maker.input("data", &[&batch, &c, &h, &w], F32);
    let weight = maker.input("weight", &[&o, &c, &r, &r], F32);
    let (rc, ry, rx) = (axis(&c), axis(&r), axis(&r));
    let (height, width) = (h.expr.clone(), w.expr.clone());
    let padded =
        te::compute("padded", [batch.expr.clone(), c.expr.clone(), h.expr.clone() + 2, w.expr.clone() + 2], |i| {
            let (y, x) = (i[2].clone() - 1, i[3].clone() - 1);
            let inside = [
                prim::ge(y.clone(), 0),
                prim::lt(y.clone(), height),
                prim::ge(x.clone(), 0),
                prim::lt(x.clone(), width),
            ];
            let inside = inside.into_iter().reduce(prim::and).unwrap_or_else(|| prim::int(1));
            prim::if_then_else(inside, data.at(&[i[0].clone(), i[1].clone(), y, x]), prim::constant(F32, 0.0))
        });
    let dims = [&batch, &o, &h, &w];
    let output = te::compute("conv", exprs(&dims), |i| {
        let (y, x) = (i[2].clone() + ry.var(), i[3].clone() + rx.var());
        let read = padded.at(&[i[0].clone(), rc.var(), y, x]);
        te::sum(read * weight.at(&[i[1].clone(), rc.var(), ry.var(), rx.var()]), [&rc, &ry, &rx])
    });
    let shape = sizes(&dims);
    maker.sample("tiled product", output, shape)
}

/// Terms side by side.
fn along_rows(random: &mut Random) -> Result<Teamwork, TeError> {
    let dtype = if random.one_in(3) { I32 } else { F32 };
    let (rows, n) = (dim(random, "rows", 1, 9), dim(random, "n", 32, 300));
    let which = random.below(3);
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&rows, &n], dtype);
    let k = axis(&n);
    let output = te::compute("reduced", [rows.expr.clone()], |i| {
        let value = a.at(&[i[0].clone(), k.var()]);
        match which {
            0 => te::sum(value, [&k]),
            1 => te::max(value, [&k]),
            _ => te::min(value, [&k]),
        }
    });
    maker.sample("shared reduction", output, vec![rows.size])
}

/// Results side by side.
fn along_columns(random: &mut Random) -> Result<Teamwork, TeError> {
    let (n, columns) = (dim(random, "n", 32, 90), dim(random, "columns", 2, 50));
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&n, &columns], F32);
    let k = axis(&n);
    let output = te::compute("reduced", [columns.expr.clone()], |i| te::sum(a.at(&[k.var(), i[0].clone()]), [&k]));
    maker.sample("shared reduction", output, vec![columns.size])
}

fn softmax(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 2, 4), dim(random, "n", 32, 150));
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&rows, &n], F32);
    let (k, l) = (axis(&n), axis(&n));
    let dims = exprs(&[&rows, &n]);
    let most = te::compute("most", [rows.expr.clone()], |i| te::max(a.at(&[i[0].clone(), k.var()]), [&k]));
    let power = te::compute("power", dims.clone(), |i| prim::call(F32, "tirx.exp", vec![a.at(i) - most.at(&i[..1])]));
    let total = te::compute("total", [rows.expr.clone()], |i| te::sum(power.at(&[i[0].clone(), l.var()]), [&l]));
    let output = te::compute("softmax", dims, |i| over(power.at(i), total.at(&i[..1])));
    maker.sample("shared rows", output, sizes(&[&rows, &n]))
}

fn norm(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 2, 4), dim(random, "n", 32, 150));
    let mut maker = Maker { random, inputs: Vec::new() };
    let (a, scale) = (maker.input("A", &[&rows, &n], F32), maker.input("scale", &[&n], F32));
    let (k, l) = (axis(&n), axis(&n));
    let count = prim::cast(F32, n.expr.clone());
    let sum = te::compute("sum", [rows.expr.clone()], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
    let squares = te::compute("squares", [rows.expr.clone()], |i| {
        let off = || a.at(&[i[0].clone(), l.var()]) - over(sum.at(&i[..1]), count.clone());
        te::sum(off() * off(), [&l])
    });
    let output = te::compute("norm", exprs(&[&rows, &n]), |i| {
        let spread =
            prim::call(F32, "tirx.sqrt", vec![over(squares.at(&i[..1]), count.clone()) + prim::constant(F32, 1.0)]);
        over(a.at(i) - over(sum.at(&i[..1]), count.clone()), spread) * scale.at(&i[1..])
    });
    maker.sample("shared rows", output, sizes(&[&rows, &n]))
}

/// One row times a matrix, which lies either way.
fn one_row(random: &mut Random) -> Result<Teamwork, TeError> {
    let (n, k) = (dim(random, "n", 2, 40), dim(random, "k", 32, 200));
    let transposed = random.one_in(2);
    let mut maker = Maker { random, inputs: Vec::new() };
    let x = maker.input("x", &[&k], F32);
    let w = if transposed { maker.input("W", &[&n, &k], F32) } else { maker.input("W", &[&k, &n], F32) };
    let along = axis(&k);
    let output = te::compute("row", [n.expr.clone()], |i| {
        let place = if transposed { [i[0].clone(), along.var()] } else { [along.var(), i[0].clone()] };
        te::sum(x.at(&[along.var()]) * w.at(&place), [&along])
    });
    maker.sample("shared reduction", output, vec![n.size])
}

/// A tensor transposed, with something done to its elements.
fn transpose(random: &mut Random) -> Result<Teamwork, TeError> {
    let dtype = if random.one_in(3) { I32 } else { F32 };
    let b = dim(random, "b", 2, 3);
    let (rows, columns) = (dim(random, "rows", 16, 70), dim(random, "columns", 16, 70));
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&b, &rows, &columns], dtype);
    let scale = maker.input("scale", &[&rows], dtype);
    let dims = [&b, &columns, &rows];
    let output =
        te::compute("turned", exprs(&dims), |i| a.at(&[i[0].clone(), i[2].clone(), i[1].clone()]) * scale.at(&i[2..]));
    let shape = sizes(&dims);
    maker.sample("shared transpose", output, shape)
}

/// Two reductions of rows that are too short to be shared, over two axes that become one.
fn short_rows(random: &mut Random) -> Result<Teamwork, TeError> {
    let (a, b, n) = (dim(random, "a", 2, 5), dim(random, "b", 2, 6), Dim { size: 7, expr: prim::int(7) });
    let mut maker = Maker { random, inputs: Vec::new() };
    let x = maker.input("A", &[&a, &b, &n], F32);
    let (k, l) = (axis(&n), axis(&n));
    let of = |i: &[PrimExpr], k: &ReduceAxis| x.at(&[i[0].clone(), i[1].clone(), k.var()]);
    let most = te::compute("most", exprs(&[&a, &b]), |i| te::max(of(i, &k), [&k]));
    let below = te::compute("below", exprs(&[&a, &b]), |i| te::sum(most.at(i) - of(i, &l), [&l]));
    maker.sample("fallback", below, sizes(&[&a, &b]))
}

/// A sum of so many terms that several blocks share them.
fn whole(random: &mut Random) -> Result<Teamwork, TeError> {
    let (n, k) = (dim(random, "n", 1, 3), dim(random, "k", 33000, 34000));
    let columns = random.one_in(2);
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &if columns { [&k, &n] } else { [&n, &k] }, I32);
    let along = axis(&k);
    let output = te::compute("whole", [n.expr.clone()], |i| {
        let place = if columns { [along.var(), i[0].clone()] } else { [i[0].clone(), along.var()] };
        te::sum(a.at(&place), [&along])
    });
    maker.sample("shared reduction", output, vec![n.size])
}

/// Running sums of rows that lie either way, of one row in several pieces, or without a place's own element.
fn scan(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 1, 3), dim(random, "n", 32, 3000));
    let long = random.one_in(3);
    let n = if long { dim(random, "n", 16384, 20000) } else { n };
    let (transposed, exclusive) = (!long && random.one_in(2), random.one_in(2));
    let mut maker = Maker { random, inputs: Vec::new() };
    let dims = if transposed { [&n, &rows] } else { [&rows, &n] };
    let a = maker.input("A", &dims, I32);
    let outs = [("running".to_string(), exprs(&dims), I32)];
    let axis = usize::from(!transposed);
    let outs = te::extern_stage("scan", std::slice::from_ref(&a), outs, |source, target| {
        let vars = [Var::dim("i"), Var::dim("j")];
        let at = vars.each_ref().map(PrimExpr::from);
        let mut before = at.clone();
        before[axis] = prim::sub(at[axis].clone(), 1);
        let own = prim::load(&source[0], if exclusive { before.clone() } else { at.clone() });
        let first = if exclusive { prim::constant(I32, 0.0) } else { own.clone() };
        let next = prim::load(&target[0], before) + own;
        let value = prim::if_then_else(prim::eq(at[axis].clone(), 0), first, next);
        let body = Stmt::store(&target[0], at, value);
        vars.iter().zip(exprs(&dims)).rev().fold(body, |body, (var, n)| Stmt::serial(var.clone(), n, body))
    });
    let shape = sizes(&dims);
    maker.sample("shared scan", outs[0].clone(), shape)
}

/// The order of rows by ranks, perhaps of their first elements only.
fn sort(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 1, 3), dim(random, "n", 16, 300));
    let n = if random.one_in(3) { dim(random, "n", 1025, 1400) } else { n };
    let part = random.one_in(2);
    let mut maker = Maker { random, inputs: Vec::new() };
    let a = maker.input("A", &[&rows, &n], I32);
    let row = |name: &str, dtype| (name.to_string(), vec![n.expr.clone()], dtype);
    let wide = DataType::int(64);
    let outs = [
        ("order".to_string(), exprs(&[&rows, &n]), wide),
        row("ranks", I32),
        row("at", wide),
        row("spare_ranks", I32),
        row("spare_at", wide),
        ("place".to_string(), vec![prim::int(1)], wide),
    ];
    let outs = te::extern_stage("sort", std::slice::from_ref(&a), outs, |source, target| {
        let [order, ranks, at, spare_ranks, spare_at, place] = target else { return Stmt::nop() };
        let size = n.expr.clone();
        let length = if part { prim::floordiv(size.clone(), 2) } else { size.clone() };
        let to = |ranks: &Ref<Buffer>, places: &Ref<Buffer>, k: &PrimExpr, rank: PrimExpr, place: PrimExpr| {
            Stmt::seq([Stmt::store(ranks, [k.clone()], rank), Stmt::store(places, [k.clone()], place)])
        };
        Stmt::each("i", rows.expr.clone(), |i| {
            // Few ranks, so that many are equal.
            let rank =
                |k: &PrimExpr| prim::floordiv(prim::load(&source[0], [i.clone(), k.clone()]), prim::int_of(I32, 2));
            let start = Stmt::each("k", size.clone(), |k| to(ranks, at, k, rank(k), k.clone()));
            let end =
                Stmt::each("k", size, |k| Stmt::store(order, [i.clone(), k.clone()], prim::load(at, [k.clone()])));
            Stmt::seq([start, by_counting([ranks, at, spare_ranks, spare_at, place], &length), end])
        })
    });
    let shape = sizes(&[&rows, &n]);
    maker.sample("shared sort", outs[0].clone(), shape)
}

/// Puts ranks in order: each goes where as many come before it.
fn by_counting([ranks, at, spare_ranks, spare_at, place]: [&Ref<Buffer>; 5], length: &PrimExpr) -> Stmt {
    let to = || prim::load(place, [prim::int(0)]);
    let (rank, of) = (|k: &PrimExpr| prim::load(ranks, [k.clone()]), |k: &PrimExpr| prim::load(at, [k.clone()]));
    let find = Stmt::each("k", length.clone(), |k| {
        let count = Stmt::each("l", length.clone(), |l| {
            let equal = prim::and(prim::eq(rank(l), rank(k)), prim::lt(l.clone(), k.clone()));
            let next = Stmt::store(place, [prim::int(0)], to() + prim::int(1));
            Stmt::when(prim::or(prim::gt(rank(l), rank(k)), equal), next)
        });
        let moved = [Stmt::store(spare_ranks, [to()], rank(k)), Stmt::store(spare_at, [to()], of(k))];
        Stmt::seq([Stmt::store(place, [prim::int(0)], prim::int(0)), count].into_iter().chain(moved))
    });
    let back = Stmt::each("k", length.clone(), |k| {
        let spare = |buffer: &Ref<Buffer>| prim::load(buffer, [k.clone()]);
        let moved = [(ranks, spare(spare_ranks)), (at, spare(spare_at))];
        Stmt::seq(moved.map(|(buffer, value)| Stmt::store(buffer, [k.clone()], value)))
    });
    let level = Var::dim("level");
    let body = Stmt::when(prim::lt(PrimExpr::from(&level), length.clone()), Stmt::seq([find, back]));
    let (min, extent, annotations) = (prim::int(0), prim::int(1), Attrs::new().with(SORTS_RANKS, true));
    Ref::new(For { annotations, ..For::new(ForKind::Serial, level, min, extent, body) }).into()
}

/// Elements that drop others behind them, one after the other: all of a row or as many as another input says, and so many at most.
fn iterations(random: &mut Random) -> Result<Teamwork, TeError> {
    let (rows, n) = (dim(random, "rows", 1, 3), dim(random, "n", 16, 90));
    let (told, limited, across) = (random.one_in(2), random.one_in(2), random.one_in(3));
    let mut maker = Maker { random, inputs: Vec::new() };
    let dims = if across { [&n, &rows] } else { [&rows, &n] };
    let (a, counts) = (maker.input("A", &dims, I32), maker.input("counts", &[&rows], I32));
    let wide = DataType::int(64);
    let outs = [("left".to_string(), exprs(&dims), I32), ("kept".to_string(), vec![prim::int(2)], wide)];
    let outs = te::extern_stage("iterations", &[a, counts], outs, |source, target| {
        let [left, kept] = target else { return Stmt::nop() };
        let size = || n.expr.clone();
        Stmt::each("i", rows.expr.clone(), |i| {
            let at = |k: &PrimExpr| if across { [k.clone(), i.clone()] } else { [i.clone(), k.clone()] };
            let (own, many) = (|k: &PrimExpr| prim::load(left, at(k)), || prim::load(kept, [prim::int(1)]));
            let count = prim::floormod(prim::cast(wide, prim::load(&source[1], [i.clone()])), size() + 1);
            let count = if told { prim::min(count, size()) } else { size() };
            let copy = Stmt::each("k", size(), |k| Stmt::store(left, at(k), prim::load(&source[0], at(k))));
            let none = Stmt::store(kept, [prim::int(1)], prim::int(0));
            let sweep = Stmt::each("j", count.clone(), |j| {
                let next = Stmt::store(kept, [prim::int(1)], many() + prim::int(1));
                let drop = Stmt::each("k", count.clone(), |k| {
                    let meets = prim::eq(prim::floormod(own(j) + own(k), prim::int_of(I32, 3)), prim::int_of(I32, 0));
                    let behind = prim::and(prim::gt(k.clone(), j.clone()), meets);
                    Stmt::when(behind, Stmt::store(left, at(k), prim::int_of(I32, -1)))
                });
                let stays = prim::gt(own(j), prim::int_of(I32, 0));
                let stays = if limited { prim::and(stays, prim::lt(many(), prim::int(4))) } else { stays };
                Stmt::if_else(stays, Stmt::seq([next, drop]), Stmt::store(left, at(j), prim::int_of(I32, -2)))
            });
            let rest = Stmt::each("k", size(), |k| {
                Stmt::when(prim::ge(k.clone(), many()), Stmt::store(left, at(k), own(k) + prim::int_of(I32, 7)))
            });
            Stmt::seq([copy, none, sweep, rest])
        })
    });
    let shape = sizes(&dims);
    maker.sample("shared loops", outs[0].clone(), shape)
}
