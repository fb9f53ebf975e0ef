//! Kernels of random sizes, whatever rule takes them: what is unrolled, masked or cut off depends on every number.

use super::*;

/// How many of so many random cases are tried: all under `RELAXIDE_DEEP=1`, else a third.
fn some_of(cases: usize) -> usize {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { cases } else { cases.div_ceil(3) }
}

/// Random numbers of a seed.
struct Random(fastrand::Rng);

impl Random {
    fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    fn from(&mut self, low: i64, high: i64) -> i64 {
        self.0.i64(low..=high)
    }
}

/// The problems on both machines, each case on each.
fn check_all(cases: &[Case]) {
    let targets = ["x86-64-v3", "x86-64-v4"].map(Target::llvm);
    let mut problems = Vec::new();
    for case in cases {
        let prepared = Prepared::of(case);
        problems.extend(targets.iter().filter_map(|target| {
            let scheduled = schedule::apply(&prepared.func, target).expect("a schedule");
            let rules: Vec<_> = scheduled.notes.iter().map(|n| n.rule).collect();
            prepared.difference(&scheduled.func).map(|problem| format!("{rules:?}: {problem}"))
        }));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A convolution whose output is not empty.
fn convolution(random: &mut Random, depthwise: bool) -> Conv {
    loop {
        let kernel = (random.from(1, 5), random.from(1, 5));
        let (dilation, pad) = (random.from(1, 2), (random.from(0, 3), random.from(0, 3)));
        let image = (random.from(1, 17), random.from(1, 40));
        let channels = if depthwise { (2, 2) } else { (random.from(1, 6), random.from(1, 36)) };
        let stride = (random.from(1, 3), random.from(1, 2));
        let fits = |image: i64, kernel: i64, pad: i64| image + 2 * pad > (kernel - 1) * dilation;
        if kernel != (1, 1) && fits(image.0, kernel.0, pad.0) && fits(image.1, kernel.1, pad.1) {
            return Conv { n: random.from(1, 2), channels, image, kernel, stride, dilation, pad, depthwise, ..PLAIN };
        }
    }
}

#[test]
fn depthwise_convolutions_of_random_sizes() {
    let mut random = Random::new(1);
    check_all(&(0..some_of(90)).map(|_| convolution(&mut random, true).case("")).collect::<Vec<_>>());
}

#[test]
fn depthwise_convolutions_with_vectors_along_channels() {
    let mut random = Random::new(7);
    let mut case = || loop {
        let channels = random.from(1, 20);
        let kernel = (random.from(4, 6), random.from(4, 5));
        let (dilation, pad) = (random.from(1, 2), (random.from(0, 3), random.from(0, 3)));
        let (image, stride) = ((random.from(1, 12), random.from(1, 14)), (random.from(1, 3), random.from(1, 2)));
        let fits = |image: i64, kernel: i64, pad: i64| image + 2 * pad > (kernel - 1) * dilation;
        let plain = Conv { depthwise: true, channels: (channels, channels), ..PLAIN };
        if fits(image.0, kernel.0, pad.0) && fits(image.1, kernel.1, pad.1) {
            let (n, symbolic) = (random.from(1, 2), random.from(0, 1) == 1);
            return Conv { n, symbolic, image, kernel, stride, dilation, pad, ..plain }.case("");
        }
    };
    check_all(&(0..some_of(60)).map(|_| case()).collect::<Vec<_>>());
}

#[test]
fn images_that_threads_share_by_channels_of_random_sizes() {
    let mut random = Random::new(2);
    check_all(&(0..some_of(40)).map(|_| convolution(&mut random, false).case("")).collect::<Vec<_>>());
}

#[test]
fn strided_images_larger_than_what_is_unrolled() {
    let plain = Conv { depthwise: true, channels: (2, 2), stride: (2, 2), ..PLAIN };
    check_all(&[
        Conv { image: (60, 41), ..plain }.case(""),
        Conv { image: (33, 90), pad: (2, 0), ..plain }.case(""),
        Conv { image: (64, 64), kernel: (2, 3), pad: (0, 1), ..plain }.case(""),
    ]);
}

#[test]
fn products_with_a_few_columns_behind_the_last_vector() {
    let mut random = Random::new(3);
    let mut cases = Vec::new();
    for columns in [9, 17, 18, 33, 49, 50, 65, 113] {
        let (rows, depth) = (random.from(1, 40), random.from(30, 90));
        cases.push(matmul(false, (random.from(1, 2), rows, columns, depth), random.from(0, 1) == 1));
    }
    check_all(&cases);
}

/// `f` of concatenated tensors, and of tensors that are chosen within each other.
#[test]
fn choices_within_a_value() {
    let mut random = Random::new(4);
    let cases = (0..some_of(24)).map(|_| {
        let (parts, axis, width) = (random.from(2, 5), random.from(0, 1) as usize, random.from(3, 70));
        let sizes: Vec<i64> = (0..parts).map(|_| random.from(1, 40)).collect();
        let total: i64 = sizes.iter().sum();
        let of = |size: i64| if axis == 0 { [size, width] } else { [width, size] };
        let tensors: Vec<te::Tensor> =
            sizes.iter().enumerate().map(|(n, size)| te::placeholder(format!("A{n}"), of(*size), F32)).collect();
        let scale = te::placeholder("scale", [of(total)[0]], F32);
        let joined = te::compute("joined", of(total), |i| {
            let mut end = total - sizes[sizes.len() - 1];
            let at = |tensor: &te::Tensor, start: i64| {
                let mut index = i.to_vec();
                index[axis] = &i[axis] - start;
                tensor.at(&index)
            };
            let mut value = at(&tensors[tensors.len() - 1], end);
            for (tensor, size) in tensors.iter().zip(&sizes).rev().skip(1) {
                value = prim::if_then_else(prim::lt(&i[axis], int(end)), at(tensor, end - size), value);
                end -= size;
            }
            value
        });
        let out = te::compute("out", of(total), |i| {
            relu(joined.at(i) * scale.at(&[i[0].clone()])) + joined.at(i) * prim::constant(F32, 0.5)
        });
        let args = tensors.into_iter().chain([scale, out]).collect();
        Dims::new(false).case(format!("{sizes:?} along {axis}, {width} wide"), "elementwise", args)
    });
    check_all(&cases.collect::<Vec<_>>());
}

#[test]
fn products_with_matrices_whose_rows_are_summed() {
    let mut random = Random::new(8);
    let mut case = || {
        let size = (random.from(1, 2), random.from(1, 20), random.from(8, 70), random.from(3, 50));
        matmul(random.from(0, 2) > 0, size, true)
    };
    check_all(&(0..some_of(60)).map(|_| case()).collect::<Vec<_>>());
}

#[test]
fn choices_that_are_the_same_for_all_elements() {
    let mut random = Random::new(9);
    let mut case = || {
        let mut d = Dims::new(true);
        let (height, width) = (random.from(1, 12), random.from(1, 70));
        let (n, m) = (d.dim("n", height), d.dim("m", width));
        let [a, b] = ["A", "B"].map(|name| te::placeholder(name, [n.clone(), m.clone()], F32));
        let least = random.from(0, 12);
        let out = te::compute("out", [n.clone(), m], |i| {
            let inner = prim::if_then_else(prim::lt(&i[0], int(3)), a.at(i), b.at(i));
            prim::if_then_else(prim::ge(&n, int(least)), relu(inner), a.at(i) * b.at(i)) + b.at(i)
        });
        d.case(format!("{height}x{width} from {least}"), "elementwise", vec![a, b, out])
    };
    check_all(&(0..some_of(36)).map(|_| case()).collect::<Vec<_>>());
}

#[test]
fn products_with_matrices_in_panels() {
    let mut random = Random::new(5);
    let cases = (0..14).map(|i| {
        let (width, panels, depth) = ([64, 48, 32, 16, 8][i % 5], random.from(1, 3), random.from(1, 90));
        // Of narrow ones several are taken at once.
        let panels = if width <= 16 { panels * 3 } else { panels };
        let depth = if i == 12 { 1100 } else { depth };
        let mut d = Dims::new(i % 3 == 0);
        let rows = d.dim("m", random.from(1, 30));
        let a = te::placeholder("A", [rows.clone(), int(depth)], F32);
        // Of the last panel some columns are not there, in every other case.
        let columns = panels * width - if i % 2 == 0 { 0 } else { random.from(0, width - 1) };
        let b = te::placeholder("B", [panels, depth, width], F32);
        let bias = te::placeholder("bias", [columns], F32);
        let k = te::reduce_axis(depth);
        let product = te::compute("product", [rows.clone(), int(columns)], |at| {
            let (panel, column) = (prim::floordiv(&at[1], int(width)), prim::floormod(&at[1], int(width)));
            te::sum(a.at(&[at[0].clone(), k.var()]) * b.at(&[panel, k.var(), column]), [&k])
        });
        let out = te::compute("out", [rows, int(columns)], |at| relu(product.at(at) + bias.at(&at[1..])));
        d.case(
            format!("{columns} columns in panels of {width}, depth {depth}, case {i}"),
            "matmul",
            vec![a, b, bias, out],
        )
    });
    check_all(&cases.collect::<Vec<_>>());
}
