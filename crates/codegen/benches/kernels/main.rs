//! How fast scheduled kernels of real networks are: `cargo bench -p relaxide-codegen --bench kernels [-- NAME]`.
//!
//! Each line is one kernel as fusion leaves it (anchor, bias, activation) with symbolic image sizes: its time, its rate and
//! its share of what the processor can do. `TVM_NUM_THREADS` picks the threads; `KEEP_KERNEL=FILE` keeps the last kernel's
//! library for a disassembler, `KERNEL_TARGET='llvm -mcpu=…'` compiles for another processor.

#[path = "../../tests/harness/mod.rs"]
mod harness;
mod roof;
mod rows;

use std::path::PathBuf;
use std::time::Instant;

use relaxide_codegen::{compile, export_library};
use relaxide_ffi::{Any, AnyView, SavedBytes, Tensor};
use relaxide_ir::prim::{self, PrimExpr, VarMap, int};
use relaxide_ir::{DataType, Ref, Target, Var};
use relaxide_tir::{PrimFunc, lower, schedule, te};
use roof::Roof;

const F32: DataType = DataType::float(32);

struct Case {
    name: String,
    args: Vec<te::Tensor>,
    dims: VarMap,
    /// Multiply-adds; for what memory bounds, bytes that must move in units of those that a copy moves.
    work: f64,
    /// Whether memory bounds it.
    of_copy: bool,
}

fn dim(dims: &mut VarMap, name: &str, value: i64) -> PrimExpr {
    let var = Var::dim(name);
    dims.insert(var.clone(), int(value));
    PrimExpr::from(&var)
}

fn relu(x: PrimExpr) -> PrimExpr {
    prim::max(x, prim::constant(F32, 0.0))
}

fn hard_swish(x: PrimExpr) -> PrimExpr {
    let clipped = prim::min(relu(x.clone() + prim::constant(F32, 3.0)), prim::constant(F32, 6.0));
    x * clipped * prim::constant(F32, 1.0 / 6.0)
}

/// A convolution with bias and hard-swish: channels in and out, kernel, stride, image; depthwise where `groups` says.
fn conv(ic: i64, oc: i64, kernel: (i64, i64), stride: (i64, i64), image: (i64, i64), depthwise: bool) -> Case {
    let mut dims = VarMap::new();
    let (n, h, w) = (dim(&mut dims, "n", 1), dim(&mut dims, "h", image.0), dim(&mut dims, "w", image.1));
    let (pad_y, pad_x) = (kernel.0 / 2, kernel.1 / 2);
    let data = te::placeholder("data", [n.clone(), int(ic), h.clone(), w.clone()], F32);
    let depth = if depthwise { 1 } else { ic };
    let weight = te::placeholder("weight", [oc, depth, kernel.0, kernel.1], F32);
    let bias = te::placeholder("bias", [1, oc, 1, 1], F32);
    let padded = te::compute("pad", [n.clone(), int(ic), &h + 2 * pad_y, &w + 2 * pad_x], |i| {
        let (y, x) = (&i[2], &i[3]);
        let inside = [prim::ge(y, pad_y), prim::lt(y, &h + pad_y), prim::ge(x, pad_x), prim::lt(x, &w + pad_x)];
        let inside = inside.into_iter().reduce(prim::and).expect("four conditions");
        let value = data.at(&[i[0].clone(), i[1].clone(), y - pad_y, x - pad_x]);
        prim::if_then_else(inside, value, prim::constant(F32, 0.0))
    });
    let size = |image: &PrimExpr, k: i64, s: i64, p: i64| prim::floordiv(image + (2 * p - k), int(s)) + 1;
    let (oh, ow) = (size(&h, kernel.0, stride.0, pad_y), size(&w, kernel.1, stride.1, pad_x));
    let shape = [n, int(oc), oh.clone(), ow.clone()];
    let (rc, ry, rx) = (te::reduce_axis(depth), te::reduce_axis(kernel.0), te::reduce_axis(kernel.1));
    let conv = te::compute("conv", shape.clone(), |i| {
        let image = if kernel == (1, 1) { &data } else { &padded };
        let channel = if depthwise { i[1].clone() } else { rc.var() };
        let at = [i[0].clone(), channel, &i[2] * stride.0 + ry.var(), &i[3] * stride.1 + rx.var()];
        te::sum(image.at(&at) * weight.at(&[i[1].clone(), rc.var(), ry.var(), rx.var()]), [&rc, &ry, &rx])
    });
    let out = te::compute("out", shape, |i| hard_swish(conv.at(i) + bias.at(&[int(0), i[1].clone(), int(0), int(0)])));
    let known = |e: &PrimExpr| prim::substitute(e, &dims).as_int().expect("a number") as f64;
    let work = known(&oh) * known(&ow) * (oc * depth * kernel.0 * kernel.1) as f64;
    let kind = if depthwise { "dw" } else { "conv" };
    let name = format!("{kind}{}x{}s{}_{ic}_{oc}_{}x{}", kernel.0, kernel.1, stride.0, image.0, image.1);
    Case { name, args: vec![data, weight, bias, out], dims, work, of_copy: false }
}

/// A product of matrices whose number of rows is a dimension of its own, or known.
fn matmul(b: i64, m: i64, n: i64, k: i64, transposed: bool) -> Case {
    product(b, (m, true), n, k, transposed)
}

fn product(b: i64, (m, dynamic): (i64, bool), n: i64, k: i64, transposed: bool) -> Case {
    let mut dims = VarMap::new();
    let (batch, rows) = (int(b), if dynamic { dim(&mut dims, "m", m) } else { int(m) });
    let a = te::placeholder("A", [batch.clone(), rows.clone(), int(k)], F32);
    let w = te::placeholder("W", if transposed { [b, n, k] } else { [b, k, n] }, F32);
    let r = te::reduce_axis(k);
    let out = te::compute("mm", [batch, rows, int(n)], |i| {
        let (x, k) = (i[2].clone(), r.var());
        let right = if transposed { [i[0].clone(), x, k] } else { [i[0].clone(), k, x] };
        te::sum(a.at(&[i[0].clone(), i[1].clone(), r.var()]) * w.at(&right), [&r])
    });
    let (kind, order) = (if dynamic { "" } else { "static_" }, if transposed { "_t" } else { "" });
    let name = format!("{kind}matmul_{b}x{m}x{n}x{k}{order}");
    Case { name, args: vec![a, w, out], dims, work: (b * m * n * k) as f64, of_copy: false }
}

fn cases() -> Vec<Case> {
    let square = |ic, oc, k, s, size| conv(ic, oc, (k, k), (s, s), (size, size), false);
    let dw = |c, k, s, size| conv(c, c, (k, k), (s, s), (size, size), true);
    vec![
        square(3, 16, 3, 2, 640),
        square(16, 32, 1, 1, 320),
        square(48, 96, 1, 1, 80),
        square(192, 192, 1, 1, 40),
        square(384, 384, 1, 1, 20),
        square(480, 480, 1, 1, 15),
        square(96, 24, 3, 1, 160),
        square(96, 24, 3, 1, 20),
        square(64, 64, 3, 1, 56),
        square(256, 256, 3, 1, 14),
        square(512, 512, 3, 1, 7),
        square(64, 128, 3, 2, 56),
        square(1024, 2048, 1, 2, 14),
        square(256, 512, 1, 2, 56),
        square(192, 48, 1, 1, 1),
        dw(16, 3, 1, 320),
        dw(48, 3, 2, 160),
        dw(96, 3, 1, 80),
        dw(192, 5, 1, 40),
        dw(384, 5, 1, 20),
        conv(480, 480, (5, 5), (1, 1), (3, 80), true),
        matmul(1, 40, 6625, 120, false),
        matmul(1, 40, 360, 120, false),
        matmul(8, 40, 40, 15, true),
        matmul(8, 40, 15, 40, false),
        matmul(1, 1, 1000, 512, false),
        matmul(1, 512, 512, 512, false),
        matmul(1, 512, 512, 512, true),
        product(1, (512, false), 512, 512, false),
        matmul(1, 1024, 1024, 1024, false),
        product(1, (1024, false), 1024, 1024, false),
        matmul(1, 2048, 2048, 2048, false),
        product(1, (2048, false), 2048, 2048, false),
        matmul(1, 128, 768, 768, false),
        product(1, (128, false), 768, 768, false),
        matmul(1, 128, 3072, 768, false),
        product(1, (128, false), 3072, 768, false),
        matmul(12, 128, 128, 64, true),
        matmul(1, 1, 768, 768, false),
        matmul(1, 5, 768, 768, false),
    ]
}

fn kernel(case: &Case, target: &Target) -> PrimFunc {
    let mut func = te::create_prim_func(&case.args).expect("a kernel");
    func.attrs = func.attrs.with("global_symbol", case.name.as_str());
    let scheduled = schedule::apply(&func, target).expect("a schedule");
    lower::lower(&scheduled.func).expect("a lowered kernel")
}

fn tensors(case: &Case) -> Vec<Any> {
    let known = |d: &PrimExpr| prim::substitute(d, &case.dims).as_int().expect("a number");
    let make = |(seed, t): (usize, &te::Tensor)| {
        let shape: Vec<i64> = t.shape().iter().map(known).collect();
        let count = shape.iter().product::<i64>() as usize;
        let values: Vec<f32> = (0..count).map(|i| ((i * 7 + seed) % 13) as f32 / 13.0 - 0.5).collect();
        Any::from(Tensor::from_slice(&values, &shape).expect("a tensor"))
    };
    case.args.iter().enumerate().map(make).collect()
}

/// How often a kernel and the roof take turns: for a second, but not fewer times than this.
const TURNS: usize = 7;

/// Seconds of the kernel's fastest call, and the median of what it reaches of the roof, which `share` tells from a call's time.
fn in_turns(mut call: impl FnMut(), mut share: impl FnMut(f64) -> f64) -> (f64, f64) {
    let mut time = |calls: usize| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64() / calls as f64
    };
    let calls = ((50e-6 / time(2)) as usize).clamp(1, 1000);
    let (begin, mut best, mut shares) = (Instant::now(), f64::INFINITY, Vec::new());
    while begin.elapsed().as_secs_f64() < 2.0 || shares.len() < TURNS {
        let taken = time(calls);
        best = best.min(taken);
        shares.push(share(taken));
    }
    shares.sort_by(f64::total_cmp);
    (best, shares[shares.len() / 2])
}

fn main() {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let target = std::env::var("KERNEL_TARGET").map_or_else(|_| Target::default(), |t| t.parse().expect("a target"));
    let threads = std::env::var("TVM_NUM_THREADS").ok().and_then(|n| n.parse().ok());
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut roof = Roof::new(threads, &target);
    let moved = 2.0 * (rows::ELEMENTS * 4) as f64;
    println!(
        "{threads} threads; shares are medians over turns of a kernel and the roof, times those of the fastest call"
    );
    for case in cases().into_iter().chain(rows::cases()).filter(|c| c.name.contains(&wanted)) {
        let start = Instant::now();
        let func = Ref::new(kernel(&case, &target));
        let compiled = compile(&[func], &target).expect("compiled");
        let took = start.elapsed().as_secs_f64();
        let directory = tempfile::tempdir().expect("a directory");
        let path = std::env::var("KEEP_KERNEL").map_or_else(|_| directory.path().join("kernels.so"), PathBuf::from);
        export_library(&SavedBytes::default(), &compiled, &path).expect("exported");
        let module = relaxide_runtime::load_module(&path).expect("loaded");
        let args = tensors(&case);
        let function = module.get_function(&case.name, false).expect("the kernel is exported");
        let views: Vec<AnyView<'_>> = args.iter().map(AnyView::from).collect();
        let (time, share) = in_turns(
            || drop(function.call(&views).expect("the kernel runs")),
            |time| match case.of_copy {
                true => case.work * roof.copy() / time,
                false => case.work / time / roof.multiply_adds(time.max(50e-6)),
            },
        );
        let (rate, unit) =
            if case.of_copy { (case.work * moved / time / 1e9, "GB/s") } else { (case.work / time / 1e9, "G/s") };
        println!(
            "{:28} {:9.1} us  {rate:6.1} {unit:4}  {:4.0} %   compiled in {:.0} ms",
            case.name,
            time * 1e6,
            100.0 * share,
            took * 1e3
        );
    }
}
