//! Convolution, pooling and resizing agree with loops written down from their definitions, for fixed and symbolic shapes.

use relaxide_ffi::Tensor;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::op::{self, CallCx, KernelForm, Lowering};
use relaxide_relax::{Call, Expr};
use relaxide_tir::interp::{self, Arg};
use relaxide_tir::te;

/// An image or a weight, with its dimensions.
#[derive(Clone, Debug)]
struct Image {
    dims: [usize; 4],
    data: Vec<f32>,
}

impl Image {
    /// Small different numbers.
    fn new(dims: [usize; 4]) -> Image {
        let count = dims.iter().product::<usize>();
        Image { dims, data: (0..count).map(|i| ((i * 37 + 11) % 23) as f32 / 4.0 - 2.0).collect() }
    }

    fn from_fn(dims: [usize; 4], f: impl Fn([usize; 4]) -> f64) -> Image {
        let mut data = Vec::new();
        for n in 0..dims[0] {
            for c in 0..dims[1] {
                for y in 0..dims[2] {
                    data.extend((0..dims[3]).map(|x| f([n, c, y, x]) as f32));
                }
            }
        }
        Image { dims, data }
    }

    /// The element, or `None` outside.
    fn get(&self, n: usize, c: usize, y: i64, x: i64) -> Option<f64> {
        let [_, channels, h, w] = self.dims;
        let (y, x) = (usize::try_from(y).ok().filter(|y| *y < h)?, usize::try_from(x).ok().filter(|x| *x < w)?);
        Some(f64::from(self.data[((n * channels + c) * h + y) * w + x]))
    }

    fn shape(&self) -> Vec<i64> {
        self.dims.iter().map(|&d| d as i64).collect()
    }
}

/// Whether the compiler knows the image's dimensions.
#[derive(Clone, Copy, Debug)]
enum Shapes {
    Fixed,
    Symbolic,
}

/// The result of an operator's compute in the interpreter; the first image is the one with symbolic dimensions.
fn run(name: &str, images: &[&Image], rest: impl Fn(&[PrimExpr]) -> Vec<Expr>, attrs: &Attrs, shapes: Shapes) -> Image {
    let mut args = Vec::new();
    let mut tensors = Vec::new();
    for (i, image) in images.iter().enumerate() {
        let dims: Vec<PrimExpr> = match shapes {
            Shapes::Symbolic if i == 0 => ["n", "c", "h", "w"]
                .iter()
                .zip(image.shape())
                .map(|(name, d)| if *name == "c" { d.into() } else { PrimExpr::Var(Var::dim(*name)) })
                .collect(),
            _ => image.shape().into_iter().map(PrimExpr::from).collect(),
        };
        let dtype = "float32".parse().unwrap();
        args.push(Expr::Var(Var::new("x", Type::tensor(dims.iter().cloned(), dtype))));
        tensors.push(te::placeholder(format!("x{i}"), dims, dtype));
    }
    args.extend(rest(tensors[0].shape()));
    let Expr::Call(call) = op::call(name, args, attrs.clone()).unwrap() else { panic!("not a call") };
    let call: &Call = &call;
    let def = op::lookup(name).unwrap();
    let Lowering::Compute(lower) = def.lower else { panic!("{name} has no compute") };
    let cx =
        CallCx { def, args: &call.args, attrs: &call.attrs, ty_args: &[], over_threads: false, form: KernelForm::Fast };
    let outputs = lower(&cx, &tensors).unwrap();
    let kernel = te::create_prim_func(&tensors.iter().cloned().chain(outputs).collect::<Vec<_>>()).unwrap();

    let dims = result_dims(&call.ty, images[0], &args_dims(&tensors[0]));
    let output =
        Tensor::zeros(&dims.iter().map(|&d| d as i64).collect::<Vec<_>>(), "float32".parse().unwrap()).unwrap();
    let mut values: Vec<Arg> =
        images.iter().map(|i| Arg::Tensor(Tensor::from_slice(&i.data, &i.shape()).unwrap())).collect();
    values.push(Arg::Tensor(output.clone()));
    interp::run(&kernel, &values).unwrap();
    Image { dims, data: output.to_vec().unwrap() }
}

fn args_dims(tensor: &te::Tensor) -> Vec<PrimExpr> {
    tensor.shape().to_vec()
}

/// The dimensions of the inferred type at the image's own.
fn result_dims(ty: &Type, image: &Image, names: &[PrimExpr]) -> [usize; 4] {
    let values = names.iter().zip(image.shape()).filter_map(|(n, d)| Some((n.as_var()?.clone(), d))).collect();
    let dims = ty.as_tensor().and_then(|t| t.shape.clone()).expect("a known shape");
    let number = |d: &PrimExpr| match interp::eval(d, &values).unwrap() {
        interp::Scalar::Int(v) => v as usize,
        other => panic!("{other:?}"),
    };
    dims.iter().map(number).collect::<Vec<_>>().try_into().unwrap()
}

#[track_caller]
fn agree(what: String, got: &Image, expected: &Image) {
    assert_eq!(got.dims, expected.dims, "{what}");
    for (i, (a, b)) in got.data.iter().zip(&expected.data).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{what}: element {i} is {a}, not {b}");
    }
}

/// The geometry of a window in tests.
#[derive(Clone, Debug)]
struct Geometry {
    stride: [i64; 2],
    /// Top, left, bottom, right.
    pad: [i64; 4],
    dilation: [i64; 2],
    groups: usize,
    extra: [i64; 2],
}

const PLAIN: Geometry = Geometry { stride: [1, 1], pad: [0; 4], dilation: [1, 1], groups: 1, extra: [0, 0] };

impl Geometry {
    fn attrs(&self) -> Attrs {
        Attrs::new()
            .with("strides", self.stride.to_vec())
            .with("padding", self.pad.to_vec())
            .with("dilation", self.dilation.to_vec())
    }

    fn positions(&self, axis: usize, size: usize, kernel: usize, up: bool) -> usize {
        let dilated_extent = self.dilation[axis] * (kernel as i64 - 1) + 1;
        let spare = size as i64 + self.pad[axis] + self.pad[axis + 2] - dilated_extent;
        ((spare + if up { self.stride[axis] - 1 } else { 0 }) / self.stride[axis] + 1) as usize
    }

    fn element(&self, axis: usize, position: usize, tap: usize) -> i64 {
        position as i64 * self.stride[axis] + tap as i64 * self.dilation[axis] - self.pad[axis]
    }
}

fn conv(data: &Image, weight: &Image, g: &Geometry) -> Image {
    let [n, _, h, w] = data.dims;
    let [out, per_group, kh, kw] = weight.dims;
    let dims = [n, out, g.positions(0, h, kh, false), g.positions(1, w, kw, false)];
    Image::from_fn(dims, |[n, f, y, x]| {
        let first = f / (out / g.groups) * per_group;
        let mut total = 0.0;
        for c in 0..per_group {
            for (ry, rx) in (0..kh).flat_map(|ry| (0..kw).map(move |rx| (ry, rx))) {
                let image = data.get(n, first + c, g.element(0, y, ry), g.element(1, x, rx)).unwrap_or(0.0);
                total += image * weight.get(f, c, ry as i64, rx as i64).unwrap();
            }
        }
        total
    })
}

#[test]
fn convolutions() {
    let cases = [
        ([1, 3, 7, 9], [4, 3, 3, 3], Geometry { pad: [1; 4], ..PLAIN }),
        ([2, 3, 7, 9], [4, 3, 3, 2], Geometry { stride: [2, 3], pad: [0, 1, 2, 3], ..PLAIN }),
        ([1, 2, 9, 9], [2, 2, 3, 3], Geometry { dilation: [2, 3], pad: [2; 4], ..PLAIN }),
        ([1, 6, 6, 5], [4, 3, 3, 3], Geometry { groups: 2, pad: [1; 4], ..PLAIN }),
        ([1, 4, 6, 5], [4, 1, 3, 3], Geometry { groups: 4, stride: [2, 1], pad: [1; 4], ..PLAIN }),
        ([1, 3, 4, 4], [5, 3, 1, 1], PLAIN),
    ];
    for (image, weight, g) in cases {
        let (data, weight) = (Image::new(image), Image::new(weight));
        let attrs = g.attrs().with("groups", g.groups as i64);
        for shapes in [Shapes::Fixed, Shapes::Symbolic] {
            let got = run("nn.conv2d", &[&data, &weight], |_| vec![], &attrs, shapes);
            agree(format!("{g:?} {image:?} {shapes:?}"), &got, &conv(&data, &weight, &g));
        }
    }
}

fn conv_transpose(data: &Image, weight: &Image, g: &Geometry) -> Image {
    let [n, channels, h, w] = data.dims;
    let [_, per_group, kh, kw] = weight.dims;
    let size = |axis: usize, size: usize, kernel: usize| {
        (size as i64 - 1) * g.stride[axis] - g.pad[axis] - g.pad[axis + 2]
            + g.dilation[axis] * (kernel as i64 - 1)
            + g.extra[axis]
            + 1
    };
    let dims = [n, per_group * g.groups, size(0, h, kh) as usize, size(1, w, kw) as usize];
    let mut out = vec![0.0f64; dims.iter().product()];
    for (n, c) in (0..n).flat_map(|n| (0..channels).map(move |c| (n, c))) {
        let first = c / (channels / g.groups) * per_group;
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            for (f, ry, rx) in (0..per_group).flat_map(|f| (0..kh).flat_map(move |a| (0..kw).map(move |b| (f, a, b)))) {
                let (oy, ox) = (g.element(0, y, ry), g.element(1, x, rx));
                if oy >= 0 && ox >= 0 && oy < dims[2] as i64 && ox < dims[3] as i64 {
                    let at = ((n * dims[1] + first + f) * dims[2] + oy as usize) * dims[3] + ox as usize;
                    out[at] +=
                        data.get(n, c, y as i64, x as i64).unwrap() * weight.get(c, f, ry as i64, rx as i64).unwrap();
                }
            }
        }
    }
    Image { dims, data: out.into_iter().map(|v| v as f32).collect() }
}

#[test]
fn transposed_convolutions() {
    let cases = [
        ([1, 3, 4, 5], [3, 2, 2, 2], Geometry { stride: [2, 2], ..PLAIN }),
        ([2, 2, 4, 5], [2, 3, 3, 3], Geometry { stride: [3, 3], ..PLAIN }),
        ([1, 3, 4, 5], [3, 2, 3, 3], Geometry { stride: [2, 2], pad: [1; 4], extra: [1, 1], ..PLAIN }),
        ([1, 2, 4, 5], [2, 2, 4, 3], Geometry { stride: [1, 2], pad: [1, 0, 2, 1], ..PLAIN }),
        ([1, 2, 4, 5], [2, 2, 3, 3], Geometry { dilation: [2, 2], stride: [2, 1], pad: [1; 4], ..PLAIN }),
        ([1, 4, 3, 3], [4, 2, 2, 3], Geometry { groups: 2, stride: [2, 2], ..PLAIN }),
    ];
    for (image, weight, g) in cases {
        let (data, weight) = (Image::new(image), Image::new(weight));
        let attrs = g.attrs().with("groups", g.groups as i64).with("output_padding", g.extra.to_vec());
        for shapes in [Shapes::Fixed, Shapes::Symbolic] {
            let got = run("nn.conv2d_transpose", &[&data, &weight], |_| vec![], &attrs, shapes);
            agree(format!("{g:?} {image:?} {shapes:?}"), &got, &conv_transpose(&data, &weight, &g));
        }
    }
}

#[test]
fn pooling() {
    let cases = [
        ([3, 3], Geometry { pad: [1; 4], stride: [2, 2], ..PLAIN }, false, false),
        ([2, 2], Geometry { stride: [2, 2], ..PLAIN }, false, false),
        ([3, 2], Geometry { stride: [3, 2], ..PLAIN }, true, false),
        ([3, 3], Geometry { pad: [1; 4], stride: [2, 2], ..PLAIN }, true, true),
        ([2, 3], Geometry { pad: [0, 1, 1, 2], dilation: [2, 1], ..PLAIN }, false, true),
        ([2, 3], Geometry { pad: [0, 1, 1, 2], dilation: [3, 2], ..PLAIN }, false, false),
    ];
    let data = Image::new([2, 3, 8, 11]);
    for (kernel, g, up, with_padding) in cases {
        let [n, c, h, w] = data.dims;
        let dims = [n, c, g.positions(0, h, kernel[0], up), g.positions(1, w, kernel[1], up)];
        let window = |n: usize, c: usize, y: usize, x: usize| -> Vec<Option<f64>> {
            let at = |ry: usize, rx: usize| (g.element(0, y, ry), g.element(1, x, rx));
            (0..kernel[0])
                .flat_map(|ry| (0..kernel[1]).map(move |rx| (ry, rx)))
                .map(|(ry, rx)| at(ry, rx))
                // Beyond the padding there is nothing, not even padding.
                .filter(|(ey, ex)| *ey < h as i64 + g.pad[2] && *ex < w as i64 + g.pad[3])
                .map(|(ey, ex)| data.get(n, c, ey, ex))
                .collect()
        };
        let attrs = g
            .attrs()
            .with("pool_size", kernel.iter().map(|&k| k as i64).collect::<Vec<_>>())
            .with("ceil_mode", up)
            .with("count_include_pad", with_padding);
        let largest = Image::from_fn(dims, |[n, c, y, x]| {
            window(n, c, y, x).into_iter().flatten().fold(f64::from(f32::MIN), f64::max)
        });
        let mean = Image::from_fn(dims, |[n, c, y, x]| {
            let all = window(n, c, y, x);
            let count = if with_padding { all.len() } else { all.iter().flatten().count() };
            all.iter().flatten().sum::<f64>() / count.max(1) as f64
        });
        for shapes in [Shapes::Fixed, Shapes::Symbolic] {
            let what = format!("{kernel:?} {g:?} ceil {up} {shapes:?}");
            agree(what.clone(), &run("nn.max_pool2d", &[&data], |_| vec![], &attrs, shapes), &largest);
            agree(what, &run("nn.avg_pool2d", &[&data], |_| vec![], &attrs, shapes), &mean);
        }
    }
}

/// The position in the image, from the definitions of the modes.
fn position(mode: &str, at: usize, from: usize, to: usize) -> f64 {
    let (x, scale) = (at as f64, from as f64 / to as f64);
    match mode {
        "half_pixel" => (x + 0.5) * scale - 0.5,
        "pytorch_half_pixel" if to > 1 => (x + 0.5) * scale - 0.5,
        "pytorch_half_pixel" => 0.0,
        "align_corners" if to > 1 => x * (from as f64 - 1.0) / (to as f64 - 1.0),
        "align_corners" => 0.0,
        _ => x * scale,
    }
}

fn cubic_weight(alpha: f64, d: f64) -> f64 {
    let d = d.abs();
    match d {
        d if d <= 1.0 => (alpha + 2.0) * d.powi(3) - (alpha + 3.0) * d.powi(2) + 1.0,
        d if d < 2.0 => alpha * d.powi(3) - 5.0 * alpha * d.powi(2) + 8.0 * alpha * d - 4.0 * alpha,
        _ => 0.0,
    }
}

/// The neighbours of a position along an axis and their weights.
fn neighbours(method: &str, rounding: &str, p: f64) -> Vec<(i64, f64)> {
    let floor = p.floor();
    let whole = floor as i64;
    match method {
        "nearest_neighbor" => {
            let index = match rounding {
                "floor" => floor,
                "ceil" => p.ceil(),
                "round_prefer_floor" => (p - 0.5).ceil(),
                "round_prefer_ceil" => (p + 0.5).floor(),
                _ => p.round_ties_even(),
            };
            vec![(index as i64, 1.0)]
        }
        "linear" => vec![(whole, 1.0 - (p - floor)), (whole + 1, p - floor)],
        _ => (-1..=2).map(|i| (whole + i, cubic_weight(-0.75, p - (whole + i) as f64))).collect(),
    }
}

#[test]
fn resizing() {
    let data = Image::new([1, 2, 4, 6]);
    let [n, c, h, w] = data.dims;
    let roundings = ["round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"];
    let methods: Vec<(&str, &str)> =
        roundings.iter().map(|r| ("nearest_neighbor", *r)).chain([("linear", ""), ("cubic", "")]).collect();
    for mode in ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] {
        for &(method, rounding) in &methods {
            for (height, width) in [(8, 12), (1, 9), (5, 3)] {
                let expected = Image::from_fn([n, c, height, width], |[n, c, y, x]| {
                    let rows = neighbours(method, rounding, position(mode, y, h, height));
                    let columns = neighbours(method, rounding, position(mode, x, w, width));
                    let mut total = 0.0;
                    for &(row, a) in &rows {
                        for &(column, b) in &columns {
                            let (row, column) = (row.clamp(0, h as i64 - 1), column.clamp(0, w as i64 - 1));
                            total += a * b * data.get(n, c, row, column).unwrap();
                        }
                    }
                    total
                });
                let attrs = Attrs::new()
                    .with("method", method)
                    .with("rounding_method", rounding)
                    .with("coordinate_transformation_mode", mode);
                let size = |_: &[PrimExpr]| vec![Expr::shape([height as i64, width as i64])];
                let what = format!("{mode} {method} {rounding} to {height}x{width}");
                agree(what, &run("image.resize2d", &[&data], size, &attrs, Shapes::Fixed), &expected);
            }
        }
    }
}

#[test]
fn growing_by_a_whole_factor_divides_by_a_literal() {
    let data = Image::new([1, 2, 4, 6]);
    let attrs = Attrs::new()
        .with("method", "nearest_neighbor")
        .with("rounding_method", "floor")
        .with("coordinate_transformation_mode", "asymmetric");
    let twice = |dims: &[PrimExpr]| vec![Expr::shape([&dims[2] * 2, &dims[3] * 2])];
    let expected = Image::from_fn([1, 2, 8, 12], |[n, c, y, x]| data.get(n, c, y as i64 / 2, x as i64 / 2).unwrap());
    agree("twice".into(), &run("image.resize2d", &[&data], twice, &attrs, Shapes::Symbolic), &expected);
}

#[test]
fn arguments_that_do_not_fit_are_refused_in_words() {
    let image = |dims: &[i64]| Expr::Var(Var::new("x", Type::tensor(dims.iter().copied(), "float32".parse().unwrap())));
    let refused = |name: &str, args: Vec<Expr>, attrs: Attrs| op::call(name, args, attrs).unwrap_err().to_string();
    let conv = |a: &[i64], b: &[i64]| refused("nn.conv2d", vec![image(a), image(b)], Attrs::new());
    assert_eq!(
        conv(&[1, 3, 8, 8], &[4, 2, 3, 3]),
        "nn.conv2d: the image has 3 channels, the weight is for 2 (data: R.Tensor((1, 3, 8, 8), dtype=\"float32\"), \
         weight: R.Tensor((4, 2, 3, 3), dtype=\"float32\"))"
    );
    assert!(conv(&[1, 3, 8], &[4, 3, 3, 3]).starts_with("nn.conv2d: `data` has 3 dimensions, not 4"));
    let layout = Attrs::new().with("layout", "NHWX");
    assert!(refused("nn.max_pool2d", vec![image(&[1, 3, 8, 8])], layout).contains("`layout` is NHWX"));
    let size = Expr::shape([4i64]);
    assert!(refused("image.resize2d", vec![image(&[1, 3, 8, 8]), size], Attrs::new()).contains("not 2"));
}
