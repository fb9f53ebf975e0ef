//! Calls of operators with hostile indices and lengths: what comes out is right, an error, or the operator's own, never a fault.
//!
//! A [`Program`] is one operator in TVMScript, with fixed lengths or with named ones, and a way to draw its inputs. Indices are drawn
//! inside of what they index, just outside, far outside and at the ends of their type; of named lengths some do not fit. Where all
//! is inside, the values are computed here a second time, by loops over places.
//!
//! Everything follows from choices ([`Random`]): a seed's in a test, bytes in a fuzz target. The test's binary allocates by
//! [`crate::pages`], so that a read or write outside ends it.

use relaxide::{CompileOptions, compile, parse_script};
use relaxide_ffi::{AnyView, Device, Tensor};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_tir::testing::Random;
use relaxide_vm::VirtualMachine;

/// What must come out.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// These numbers.
    Values(Vec<f32>),
    /// An error.
    Error,
    /// An error, or an answer of the operator's own.
    Anything,
}

/// Inputs, and what must come out.
pub struct Drawn {
    /// The inputs.
    pub inputs: Vec<Tensor>,
    /// What must come out.
    pub wanted: Wanted,
}

/// A compiled program of one operator.
pub struct Program {
    /// Its text.
    pub text: String,
    machine: VirtualMachine,
    template: &'static Template,
    fixed: Option<Sizes>,
}

/// An operator.
struct Template {
    /// The parameters as `name: dims dtype`, where dims are letters of sizes or numbers, and the call.
    params: &'static [(&'static str, &'static [&'static str], &'static str)],
    call: &'static str,
    draw: fn(&mut Random, &Sizes) -> Drawn,
    /// Whether lengths that are named may be drawn so that they do not fit.
    loose: bool,
}

/// Lengths by letters.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    n: i64,
    m: i64,
    k: i64,
    /// Another length where `k` is written, mostly the same.
    other: i64,
}

impl Sizes {
    fn draw(random: &mut Random, loose: bool) -> Sizes {
        let (n, m, k) = (random.between(1, 6), random.between(1, 20), random.between(1, 40));
        let other = if loose && random.one_in(3) { random.between(1, 600) } else { k };
        Sizes { n, m, k, other }
    }

    fn of(&self, letter: &str) -> i64 {
        match letter {
            "n" => self.n,
            "m" => self.m,
            "k" => self.k,
            number => number.parse().unwrap_or(1),
        }
    }
}

const X: (&str, &[&str], &str) = ("x", &["n", "m"], "float32");

const TEMPLATES: &[Template] = &[
    Template { params: &[X, ("i", &["k"], "int64")], call: "R.take(x, i, axis=0)", draw: take, loose: false },
    Template {
        params: &[X, ("i", &["k", "m"], "int64")],
        call: "R.gather_elements(x, i, axis=0)",
        draw: gather_elements,
        loose: false,
    },
    Template { params: &[X, ("i", &["k", "2"], "int64")], call: "R.gather_nd(x, i)", draw: gather_nd, loose: false },
    Template {
        params: &[X, ("i", &["k", "m"], "int64"), ("u", &["k", "m"], "float32")],
        call: "R.scatter_elements(x, i, u, axis=0, reduction=\"add\")",
        draw: scatter_elements,
        loose: true,
    },
    Template {
        params: &[X, ("i", &["k", "1"], "int64"), ("u", &["k", "m"], "float32")],
        call: "R.scatter_nd(x, i, u, reduction=\"add\")",
        draw: scatter_nd,
        loose: true,
    },
    Template {
        params: &[X, ("a", &["k"], "int64"), ("b", &["k"], "int64")],
        call: "R.index_tensor(x, (a, b))",
        draw: index_tensor,
        loose: true,
    },
    Template {
        params: &[X, ("a", &["k"], "int64"), ("b", &["k"], "int64"), ("u", &["k"], "float32")],
        call: "R.index_put(x, (a, b), u, accumulate=True)",
        draw: index_put,
        loose: true,
    },
    Template {
        params: &[X, ("b", &["2"], "int64"), ("e", &["2"], "int64"), ("s", &["2"], "int64")],
        call: "R.dynamic_strided_slice(x, b, e, s)",
        draw: slice,
        loose: false,
    },
    Template {
        params: &[("x", &["k", "m"], "float32"), ("i", &["k"], "int64")],
        call: "R.nn.nll_loss(x, i, reduction=\"none\")",
        draw: loss,
        loose: true,
    },
    Template {
        params: &[("x", &["n", "k"], "float32"), ("y", &["k", "m"], "float32")],
        call: "R.matmul(x, y)",
        draw: matmul,
        loose: true,
    },
    Template {
        params: &[("x", &["k"], "float32"), ("y", &["k"], "float32")],
        call: "R.add(x, y)",
        draw: add,
        loose: true,
    },
    Template {
        params: &[X, ("i", &["k"], "int64")],
        call: "R.nn.relu(R.take(R.exp(x), i, axis=1))",
        draw: fused,
        loose: false,
    },
];

/// How many kinds of programs there are: each operator with fixed lengths of two sizes, and with named ones.
pub fn kinds() -> usize {
    TEMPLATES.len() * 3
}

impl Program {
    /// The program of a kind, compiled.
    pub fn new(kind: usize) -> Result<Program, String> {
        let template = &TEMPLATES[kind / 3 % TEMPLATES.len()];
        let fixed = (kind % 3 != 2).then(|| Sizes::draw(&mut Random::new(kind as u64), false));
        let dim = |letter: &&str| match (&fixed, letter.parse::<i64>()) {
            (Some(sizes), _) => sizes.of(letter).to_string(),
            (None, Ok(number)) => number.to_string(),
            (None, Err(_)) => format!("\"{letter}\""),
        };
        let param = |(name, dims, dtype): &(&str, &[&str], &str)| {
            let dims: Vec<String> = dims.iter().map(dim).collect();
            format!("{name}: R.Tensor(({},), \"{dtype}\")", dims.join(", "))
        };
        let params: Vec<String> = template.params.iter().map(param).collect();
        let text = format!(
            "@R.function\ndef main({}):\n    with R.dataflow():\n        y = {}\n        R.output(y)\n    return y\n",
            params.join(", "),
            template.call
        );
        let said = |e: &dyn std::fmt::Display| format!("{e}\n{text}");
        let module = parse_script(&text, "hostile.py").map_err(|e| said(&e))?;
        let library = compile(&module, &mut CompileOptions::default()).map_err(|e| said(&e))?;
        let library = library.jit().map_err(|e| said(&e))?;
        let machine = VirtualMachine::new(&library, &[(Device::cpu(0), AllocatorKind::Naive)]).map_err(|e| said(&e))?;
        Ok(Program { text, machine, template, fixed })
    }

    /// One run with inputs that are drawn; what is wrong with it.
    pub fn run(&self, random: &mut Random) -> Result<(), String> {
        let sizes = self.fixed.unwrap_or_else(|| Sizes::draw(random, self.template.loose));
        let mut drawn = (self.template.draw)(random, &sizes);
        if sizes.other != sizes.k {
            drawn.wanted = Wanted::Error;
        }
        let views: Vec<AnyView<'_>> = drawn.inputs.iter().map(AnyView::from).collect();
        let result = self.machine.invoke("main", &views);
        let said = || {
            let inputs: Vec<String> = drawn.inputs.iter().map(shown).collect();
            format!("{}{sizes:?}\n{}", self.text, inputs.join("\n"))
        };
        match (result, &drawn.wanted) {
            (_, Wanted::Anything) | (Err(_), Wanted::Error) => Ok(()),
            (Ok(_), Wanted::Error) => Err(format!("there is no error\n{}", said())),
            (Err(error), Wanted::Values(_)) => Err(format!("{error}\n{}", said())),
            (Ok(value), Wanted::Values(wanted)) => {
                let values =
                    value.to::<Tensor>().and_then(|tensor| tensor.to_vec::<f32>()).map_err(|e| e.to_string())?;
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
                if values.len() == wanted.len() && values.iter().zip(wanted).all(close) {
                    return Ok(());
                }
                Err(format!("{values:?}\ninstead of {wanted:?}\n{}", said()))
            }
        }
    }
}

fn shown(tensor: &Tensor) -> String {
    match (tensor.to_vec::<f32>(), tensor.to_vec::<i64>()) {
        (Ok(floats), _) => format!("{tensor:?} {floats:?}"),
        (_, Ok(integers)) => format!("{tensor:?} {integers:?}"),
        _ => format!("{tensor:?}"),
    }
}

/// Numbers of a tensor, small multiples of 1/4.
fn data(random: &mut Random, count: i64) -> Vec<f32> {
    (0..count).map(|_| random.between(-9, 9) as f32 / 4.0).collect()
}

fn floats(values: &[f32], shape: &[i64]) -> Tensor {
    Tensor::from_slice(values, shape).expect("as many numbers as the shape has")
}

fn integers(values: &[i64], shape: &[i64]) -> Tensor {
    Tensor::from_slice(values, shape).expect("as many numbers as the shape has")
}

/// So many indices into `n` elements, and whether all are inside.
fn indices(random: &mut Random, n: i64, count: i64) -> (Vec<i64>, bool) {
    let mut all: Vec<i64> = (0..count).map(|_| random.between(0, n - 1)).collect();
    if random.mostly(3) {
        return (all, true);
    }
    let outside = [
        -1,
        -n,
        n,
        n + 1,
        -n - 1,
        2 * n,
        1000,
        -1000,
        1 << 31,
        -(1 << 31),
        1 << 62,
        i64::MAX,
        i64::MIN,
        i64::MAX - n,
        i64::MIN + n,
        (1 << 32) + 1,
    ];
    for _ in 0..random.between(1, 3) {
        let place = random.below(all.len());
        all[place] = *random.pick(&outside).unwrap_or(&-1);
    }
    let inside = all.iter().all(|i| (0..n).contains(i));
    (all, inside)
}

fn values_if(inside: bool, values: impl FnOnce() -> Vec<f32>) -> Wanted {
    if inside { Wanted::Values(values()) } else { Wanted::Anything }
}

fn at(x: &[f32], columns: i64, row: i64, column: i64) -> f32 {
    x[(row * columns + column) as usize]
}

fn take(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.n * s.m);
    let (i, inside) = indices(random, s.n, s.k);
    let wanted = values_if(inside, || {
        i.iter().flat_map(|row| (0..s.m).map(|column| at(&x, s.m, *row, column)).collect::<Vec<_>>()).collect()
    });
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&i, &[s.k])], wanted }
}

fn fused(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.n * s.m);
    let (i, inside) = indices(random, s.m, s.k);
    let wanted = values_if(inside, || {
        (0..s.n).flat_map(|row| i.iter().map(|c| at(&x, s.m, row, *c).exp()).collect::<Vec<_>>()).collect()
    });
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&i, &[s.k])], wanted }
}

fn gather_elements(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.n * s.m);
    let (i, inside) = indices(random, s.n, s.k * s.m);
    let wanted = values_if(inside, || (0..s.k * s.m).map(|p| at(&x, s.m, i[p as usize], p % s.m)).collect());
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&i, &[s.k, s.m])], wanted }
}

fn gather_nd(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.n * s.m);
    let ((a, first), (b, second)) = (indices(random, s.n, s.k), indices(random, s.m, s.k));
    let wanted = values_if(first && second, || a.iter().zip(&b).map(|(a, b)| at(&x, s.m, *a, *b)).collect());
    let pairs: Vec<i64> = a.iter().zip(&b).flat_map(|(a, b)| [*a, *b]).collect();
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&pairs, &[s.k, 2])], wanted }
}

fn scatter_elements(random: &mut Random, s: &Sizes) -> Drawn {
    let (x, u) = (data(random, s.n * s.m), data(random, s.other * s.m));
    let (i, inside) = indices(random, s.n, s.k * s.m);
    let wanted = values_if(inside && s.other == s.k, || {
        let mut y = x.clone();
        for (place, row) in i.iter().enumerate() {
            y[(row * s.m) as usize + place % s.m as usize] += u[place];
        }
        y
    });
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&i, &[s.k, s.m]), floats(&u, &[s.other, s.m])], wanted }
}

fn scatter_nd(random: &mut Random, s: &Sizes) -> Drawn {
    let (x, u) = (data(random, s.n * s.m), data(random, s.other * s.m));
    let (i, inside) = indices(random, s.n, s.k);
    let wanted = values_if(inside && s.other == s.k, || {
        let mut y = x.clone();
        for (step, row) in i.iter().enumerate() {
            for column in 0..s.m as usize {
                y[(row * s.m) as usize + column] += u[step * s.m as usize + column];
            }
        }
        y
    });
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&i, &[s.k, 1]), floats(&u, &[s.other, s.m])], wanted }
}

/// Rows and columns of a matrix, of which the columns may be of another number, and whether all are inside.
fn places(random: &mut Random, s: &Sizes) -> (Vec<i64>, Vec<i64>, bool) {
    let (a, first) = indices(random, s.n, s.k);
    let (b, second) = indices(random, s.m, s.other);
    (a, b, first && second)
}

fn index_tensor(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.n * s.m);
    let (a, b, inside) = places(random, s);
    let wanted = values_if(inside, || a.iter().zip(&b).map(|(a, b)| at(&x, s.m, *a, *b)).collect());
    Drawn { inputs: vec![floats(&x, &[s.n, s.m]), integers(&a, &[s.k]), integers(&b, &[s.other])], wanted }
}

fn index_put(random: &mut Random, s: &Sizes) -> Drawn {
    let (x, u) = (data(random, s.n * s.m), data(random, s.k));
    let (a, b, inside) = places(random, s);
    let wanted = values_if(inside, || {
        let mut y = x.clone();
        for ((a, b), u) in a.iter().zip(&b).zip(&u) {
            y[(a * s.m + b) as usize] += u;
        }
        y
    });
    let inputs = vec![floats(&x, &[s.n, s.m]), integers(&a, &[s.k]), integers(&b, &[s.other]), floats(&u, &[s.k])];
    Drawn { inputs, wanted }
}

fn slice(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.n * s.m);
    let ((b, _), (e, _)) = (indices(random, s.n.min(s.m), 2), indices(random, s.n.min(s.m), 2));
    let steps: Vec<i64> =
        (0..2).map(|_| *random.pick(&[1, 2, 3, -1, -2, i64::MAX, i64::MIN + 1]).unwrap_or(&1)).collect();
    let inputs = vec![floats(&x, &[s.n, s.m]), integers(&b, &[2]), integers(&e, &[2]), integers(&steps, &[2])];
    Drawn { inputs, wanted: Wanted::Anything }
}

fn loss(random: &mut Random, s: &Sizes) -> Drawn {
    let x = data(random, s.k * s.m);
    let (i, inside) = indices(random, s.m, s.other);
    let wanted = values_if(inside && s.other == s.k, || {
        i.iter().enumerate().map(|(row, class)| -at(&x, s.m, row as i64, *class)).collect()
    });
    Drawn { inputs: vec![floats(&x, &[s.k, s.m]), integers(&i, &[s.other])], wanted }
}

fn matmul(random: &mut Random, s: &Sizes) -> Drawn {
    let (x, y) = (data(random, s.n * s.k), data(random, s.other * s.m));
    let wanted = values_if(s.other == s.k, || {
        let sum = |row: i64, column: i64| (0..s.k).map(|t| at(&x, s.k, row, t) * at(&y, s.m, t, column)).sum();
        (0..s.n).flat_map(|row| (0..s.m).map(|column| sum(row, column)).collect::<Vec<f32>>()).collect()
    });
    Drawn { inputs: vec![floats(&x, &[s.n, s.k]), floats(&y, &[s.other, s.m])], wanted }
}

fn add(random: &mut Random, s: &Sizes) -> Drawn {
    let (x, y) = (data(random, s.k), data(random, s.other));
    let wanted = values_if(s.other == s.k, || x.iter().zip(&y).map(|(a, b)| a + b).collect());
    Drawn { inputs: vec![floats(&x, &[s.k]), floats(&y, &[s.other])], wanted }
}
