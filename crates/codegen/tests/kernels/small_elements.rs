//! Elements of a byte and less: every code, every rounding, and neighbours in one byte.

use relaxide_ffi::SmallFloat;
use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Var, prim};
use relaxide_tir::{BufferStore, ForKind, PrimFunc, Stmt, interp};

use super::buffer;
use crate::harness::{Kernels, Tensor, elementwise, kernel};

const F32: DataType = DataType::float(32);

const FAMILIES: [&str; 11] = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
];

fn dtype(name: &str) -> DataType {
    name.parse().unwrap()
}

/// Elements without gaps, the first in the upper bits.
fn pack(dtype: DataType, elements: &[u8]) -> Vec<u8> {
    let bits = usize::from(dtype.bits);
    let mut bytes = vec![0; dtype.bytes_of(elements.len()).unwrap()];
    for (i, element) in elements.iter().enumerate() {
        for bit in 0..bits {
            let at = i * bits + bit;
            bytes[at / 8] |= (element >> (bits - 1 - bit) & 1) << (7 - at % 8);
        }
    }
    bytes
}

fn cast_kernel(name: &str, from: DataType, to: DataType, size: usize) -> PrimFunc {
    let buffers = [buffer("A", from, &[size as i64]), buffer("B", to, &[size as i64])];
    elementwise(name, &buffers, |i| prim::cast(to, prim::load(&buffers[0], [i.clone()])))
}

/// Numbers at which roundings differ: every 512th of single precision with both neighbours, subnormal ones, the special ones.
fn sweep() -> Vec<f32> {
    let every = (0..=u32::MAX >> 18).map(|high| high << 18);
    let near = every.flat_map(|bits| [bits.wrapping_sub(1), bits, bits | 1, bits | 0x1_0000]);
    let special = [f32::NAN, -f32::NAN, f32::INFINITY, -f32::INFINITY, 0.0, -0.0, f32::MAX, f32::from_bits(1)];
    near.map(f32::from_bits).chain(special).collect()
}

#[test]
fn every_small_float_is_the_number_that_it_means_and_numbers_become_the_nearest() {
    converted(&FAMILIES, Kernels::compile);
}

#[test]
fn every_float_of_a_byte_is_so_in_c_too() {
    let bytes: Vec<&str> = FAMILIES.into_iter().filter(|name| dtype(name).bits == 8).collect();
    converted(&bytes, Kernels::compile_c);
}

/// Converts every code of some families, and many numbers to each.
fn converted(families: &[&str], compile: impl Fn(&[PrimFunc]) -> Kernels) {
    let numbers = sweep();
    let codes = |name: &str| (0..=255u8).take(1 << dtype(name).bits).collect::<Vec<u8>>();
    let kernels: Vec<PrimFunc> = families
        .iter()
        .flat_map(|name| {
            let small = dtype(name);
            [
                cast_kernel(&format!("widen_{name}"), small, F32, codes(name).len()),
                cast_kernel(&format!("narrow_{name}"), F32, small, numbers.len()),
                cast_kernel(&format!("double_{name}"), DataType::float(64), small, numbers.len()),
            ]
        })
        .collect();
    let kernels = compile(&kernels);
    for name in families {
        let (small, family, codes) = (dtype(name), SmallFloat::of(dtype(name)).unwrap(), codes(name));
        let count = codes.len() as i64;
        let mut tensors = [Tensor::of(small, &pack(small, &codes), &[count]), Tensor::zeros(F32, &[count])];
        kernels.run(&format!("widen_{name}"), &mut tensors);
        for (code, got) in codes.iter().zip(tensors[1].values::<f32>()) {
            let expected = family.decode(*code) as f32;
            let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
            assert!(same, "{name}: {code:#x} is {expected}, not {got}");
        }
        let count = numbers.len() as i64;
        let expected: Vec<u8> = numbers.iter().map(|value| family.encode(f64::from(*value))).collect();
        let expected = pack(small, &expected);
        let doubles: Vec<u8> = numbers.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
        let inputs = [
            ("narrow", Tensor::f32(&numbers, &[count])),
            ("double", Tensor::of(DataType::float(64), &doubles, &[count])),
        ];
        for (way, input) in inputs {
            let mut tensors = [input, Tensor::zeros(small, &[count])];
            kernels.run(&format!("{way}_{name}"), &mut tensors);
            let got = tensors[1].bytes();
            let differs = (0..expected.len()).find(|at| got[*at] != expected[*at]);
            let values = differs.map(|at| &numbers[at * 8 / usize::from(small.bits)..]);
            assert_eq!(differs, None, "{way}_{name} at {:?}", values.map(|values| &values[..2]));
        }
    }
}

/// A type of integers, the numbers that its codes mean, and what some others become.
#[test]
fn small_integers_wrap_saturate_and_extend() {
    let names = ["int4", "uint4", "int2", "uint2"];
    let wide = [-100i32, -9, -8, -3, -2, -1, 0, 1, 2, 3, 4, 7, 8, 15, 16, 100];
    let floats = [-100.0f32, -8.5, -8.0, -2.9, -1.9, -0.5, 0.5, 1.9, 3.5, 7.9, 8.0, 15.9, 16.0, f32::NAN, 1e30, -1e30];
    let size = wide.len();
    let i32 = DataType::int(32);
    let funcs = names.iter().flat_map(|name| {
        let small = dtype(name);
        [
            cast_kernel(&format!("narrow_{name}"), i32, small, size),
            cast_kernel(&format!("round_{name}"), F32, small, size),
            cast_kernel(&format!("widen_{name}"), small, i32, size),
        ]
    });
    let kernels = Kernels::compile(&funcs.collect::<Vec<_>>());
    for name in names {
        let small = dtype(name);
        let (low, high) = match (small.is_int(), small.bits) {
            (true, bits) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            (false, bits) => (0, (1i64 << bits) - 1),
        };
        let wrapped = wide.map(|v| (i64::from(v) - low).rem_euclid(high - low + 1) + low);
        let saturated = floats.map(|v| if v.is_nan() { 0 } else { (v as i64).clamp(low, high) });
        let code = |values: &[i64]| pack(small, &values.iter().map(|v| *v as u8).collect::<Vec<_>>());
        let input: Vec<u8> = wide.iter().flat_map(|v| v.to_le_bytes()).collect();
        let count = [size as i64];
        let mut tensors = [Tensor::of(i32, &input, &count), Tensor::zeros(small, &count)];
        kernels.run(&format!("narrow_{name}"), &mut tensors);
        assert_eq!(tensors[1].bytes(), code(&wrapped), "{name} from integers");
        let mut tensors = [tensors[1].clone(), Tensor::zeros(i32, &count)];
        kernels.run(&format!("widen_{name}"), &mut tensors);
        assert_eq!(tensors[1].values::<i32>(), wrapped.map(|v| v as i32), "{name} to integers");
        let mut tensors = [Tensor::f32(&floats, &count), Tensor::zeros(small, &count)];
        kernels.run(&format!("round_{name}"), &mut tensors);
        assert_eq!(tensors[1].bytes(), code(&saturated), "{name} from floats");
    }
}

#[test]
fn vectors_of_floats_saturate_to_integers() {
    const EDGES: [f32; 20] = [
        9223371487098961920.0,
        9223372036854775808.0,
        18446742974197923840.0,
        18446744073709551616.0,
        -0.9,
        4294967040.0,
        127.9,
        128.0,
        -128.9,
        -129.0,
        256.0,
        2147483520.0,
        32767.9,
        32768.0,
        -32768.9,
        65536.0,
        2147483648.0,
        f32::NAN,
        1e30,
        -f32::INFINITY,
    ];
    let integers = ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int32", "uint32", "int64", "uint64"];
    let wide = [F32, DataType::float(64)];
    let size = EDGES.len() as i64;
    let cases: Vec<(String, DataType, DataType)> =
        integers.iter().flat_map(|to| wide.map(|from| (format!("{to}_of_{from}"), from, dtype(to)))).collect();
    let funcs: Vec<PrimFunc> = cases
        .iter()
        .map(|(name, from, to)| {
            let buffers = [buffer("A", *from, &[size]), buffer("B", *to, &[size])];
            let lanes = prim::ramp(0, 1, size);
            let value = prim::cast(to.with_lanes(size as u16), prim::load(&buffers[0], [lanes.clone()]));
            kernel(name, &buffers, &[], Stmt::store(&buffers[1], [lanes], value))
        })
        .collect();
    let kernels = Kernels::compile(&funcs);
    for (name, from, to) in cases {
        let (low, high) = match to.is_int() {
            true => (-(1i128 << (to.bits - 1)), (1i128 << (to.bits - 1)) - 1),
            false => (0, (1i128 << to.bits) - 1),
        };
        let expected = EDGES.map(|v| (v as i128).clamp(low, high));
        let bytes: Vec<u8> = match to.bits {
            64 => expected.iter().flat_map(|v| (*v as u64).to_le_bytes()).collect(),
            32 => expected.iter().flat_map(|v| (*v as u32).to_le_bytes()).collect(),
            16 => expected.iter().flat_map(|v| (*v as u16).to_le_bytes()).collect(),
            _ => pack(to, &expected.map(|v| v as u8)),
        };
        let input = match from.bits {
            32 => Tensor::f32(&EDGES, &[size]),
            _ => Tensor::of(from, &EDGES.map(|v| f64::from(v).to_le_bytes()).concat(), &[size]),
        };
        let mut tensors = [input, Tensor::zeros(to, &[size])];
        kernels.run(&name, &mut tensors);
        assert_eq!(tensors[1].bytes(), bytes, "{name}");
    }
}

/// `B[i] = A[7 - i]` in one of several forms, with the neighbours of what is written kept.
#[test]
fn stores_keep_their_neighbours_whatever_the_loop() {
    let names = ["int4", "uint2", "float6_e3m2fn", "float4_e2m1fn"];
    let forms = ["serial", "parallel", "vector", "odd", "choice", "scratch"];
    let mut funcs = Vec::new();
    for name in names {
        for form in forms {
            funcs.push(turn(&format!("{form}_{name}"), dtype(name), form));
        }
    }
    let kernels = Kernels::compile(&funcs);
    for (at, func) in funcs.iter().enumerate() {
        let (name, form) = (names[at / forms.len()], forms[at % forms.len()]);
        let small = dtype(name);
        let mask = (1u8 << small.bits) - 1;
        let input: Vec<u8> = (0..9u8).map(|i| (i * 7 + 3) & mask).collect();
        let before: Vec<u8> = (0..9u8).map(|i| (i * 5 + 1) & mask).collect();
        let written: Vec<u8> = (0..9usize)
            .map(|i| match form {
                "odd" if i % 2 == 0 || i == 8 => before[i],
                "choice" if i % 3 == 0 && i < 8 => input[i],
                _ if i == 8 => before[i],
                _ => input[7 - i],
            })
            .collect();
        let (input, before) = (pack(small, &input), pack(small, &before));
        let mut tensors = [Tensor::of(small, &input, &[9]), Tensor::of(small, &before, &[9])];
        kernels.run(&format!("{form}_{name}"), &mut tensors);
        assert_eq!(tensors[1].bytes(), pack(small, &written), "{form} of {name}");
        let tensors = [&input, &before].map(|bytes| relaxide_ffi::Tensor::from_bytes(bytes, &[9], small).unwrap());
        interp::run(func, &[interp::Arg::from(&tensors[0]), interp::Arg::from(&tensors[1])]).unwrap();
        assert_eq!(tensors[1].to_bytes().unwrap(), pack(small, &written), "{form} of {name}, interpreted");
    }
}

fn turn(name: &str, small: DataType, form: &str) -> PrimFunc {
    let (a, b) = (buffer("A", small, &[9]), buffer("B", small, &[9]));
    let i = Var::dim("i");
    let scalar = |i: &PrimExpr| prim::load(&a, [PrimExpr::from(7) - i.clone()]);
    let index = PrimExpr::from(&i);
    let all = prim::ramp(0, 1, 8);
    let reversed = prim::load(&a, [prim::ramp(7, -1, 8)]);
    let body = match form {
        "serial" => Stmt::serial(i, 8, Stmt::store(&b, [index.clone()], scalar(&index))),
        "parallel" => Stmt::for_loop(ForKind::Parallel, i, 8, Stmt::store(&b, [index.clone()], scalar(&index))),
        "vector" => Stmt::store(&b, [all], reversed),
        "odd" => {
            let odd = prim::eq(prim::floormod(all.clone(), prim::broadcast(2, 8)), prim::broadcast(1, 8));
            let store = BufferStore { buffer: b.clone(), value: reversed, indices: vec![all], predicate: Some(odd) };
            Ref::new(store).into()
        }
        // The side that is not taken lies outside of the buffer.
        "choice" => {
            let third = prim::eq(prim::floormod(all.clone(), prim::broadcast(3, 8)), prim::broadcast(0, 8));
            let far = prim::select(third.clone(), all.clone(), prim::broadcast(1i64 << 40, 8));
            let near = prim::select(third.clone(), prim::broadcast(-(1i64 << 40), 8), prim::ramp(7, -1, 8));
            Stmt::store(&b, [all], prim::if_then_else(third, prim::load(&a, [far]), prim::load(&a, [near])))
        }
        _ => {
            let own = Buffer::scoped("own", small, [8i64], "local");
            let (j, k) = (Var::dim("j"), Var::dim("k"));
            let fill = Stmt::store(&own, [&j], scalar(&PrimExpr::from(&j)));
            let fill = Stmt::seq([Stmt::alloc(&own), Stmt::serial(j, 8, fill)]);
            let copy = Stmt::serial(k.clone(), 8, Stmt::store(&b, [&k], prim::load(&own, [&k])));
            let Stmt::Seq(fill) = fill else { unreachable!("several statements are a sequence") };
            Stmt::seq(fill.seq.iter().cloned().chain([copy]))
        }
    };
    kernel(name, &[a, b], &[], body)
}

/// Arithmetic happens in single precision and rounds back.
#[test]
fn arithmetic_rounds_to_the_type() {
    let small = dtype("float8_e4m3fn");
    let size = 1 << 16;
    let buffers = [buffer("A", small, &[size]), buffer("B", small, &[size]), buffer("C", small, &[size])];
    let add =
        elementwise("add", &buffers, |i| prim::load(&buffers[0], [i.clone()]) + prim::load(&buffers[1], [i.clone()]));
    let kernels = Kernels::compile(&[add]);
    let (a, b): (Vec<u8>, Vec<u8>) = (0..=u16::MAX).map(|pair| (pair as u8, (pair >> 8) as u8)).unzip();
    let mut tensors = [Tensor::of(small, &a, &[size]), Tensor::of(small, &b, &[size]), Tensor::zeros(small, &[size])];
    kernels.run("add", &mut tensors);
    let family = SmallFloat::of(small).unwrap();
    for ((a, b), got) in a.iter().zip(&b).zip(tensors[2].bytes()) {
        let expected = family.encode(family.decode(*a) + family.decode(*b));
        let both_nan = family.decode(got).is_nan() && family.decode(expected).is_nan();
        assert!(got == expected || both_nan, "{a:#x} + {b:#x} is {expected:#x}, not {got:#x}");
    }
}
