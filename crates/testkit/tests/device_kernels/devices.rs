//! Kernels over the threads of a device: the interpreter and a device compute what the blocks say.

use relaxide_codegen::{CompileSettings, DeviceCode, Emitted, backend, emit, export_library};
use relaxide_ffi::{Any, AnyView, DataType, Device, Error, Module, Ref, SavedBytes, Tensor, get_global};
use relaxide_ir::{Buffer, PrimExpr, Target, Var, prim};
use relaxide_runtime::device::{copy_tensor, empty_tensor, on_host};
use relaxide_tir::interp::Scalar;
use relaxide_tir::testing::{
    KINDS, Options, Random, Sample, Teamwork, elements, random_tensor, sample_from, teamwork, tensor_product,
};
use relaxide_tir::{For, ForKind, PrimFunc, Stmt, lower, schedule, te};

pub const F32: DataType = DataType::float(32);

/// Changes the code of a device before it is loaded; the kernels are those that it was made of.
pub type Change = fn(&[(Ref<PrimFunc>, Target)], DeviceCode) -> DeviceCode;

/// A kind of device.
pub struct DeviceKind {
    pub device: Device,
    pub target: &'static str,
    pub changed: Change,
}

/// A kernel under its name, lowered for a device, with arguments and what the interpreter computes of them.
pub struct Trial {
    pub name: String,
    pub sample: Sample,
    pub expected: Vec<Vec<Scalar>>,
    pub lowered: PrimFunc,
}

/// A loop over an axis of threads.
pub fn bound(var: &Ref<Var>, extent: i64, thread_tag: &str, body: Stmt) -> Stmt {
    let Stmt::For(loop_) = Stmt::serial(var.clone(), extent, body) else { panic!("a loop") };
    Ref::new(For { kind: ForKind::ThreadBinding, thread_tag: thread_tag.into(), ..For::clone(&loop_) }).into()
}

pub fn named(func: &PrimFunc, name: &str) -> PrimFunc {
    PrimFunc { attrs: func.attrs.clone().with("global_symbol", name), ..func.clone() }
}

impl DeviceKind {
    pub fn target(&self) -> Target {
        self.target.parse().unwrap()
    }

    /// A kernel over threads, and the same lowered.
    pub fn lowered(&self, func: &PrimFunc) -> (PrimFunc, PrimFunc) {
        let scheduled = schedule::apply(func, &self.target()).unwrap().func;
        let options = lower::LowerOptions { keep_loops: true, ..Default::default() };
        let lowered = lower::lower_with(&scheduled, options).unwrap();
        (scheduled, lowered)
    }

    /// Lowered kernels as functions of the host and of the device.
    pub fn parts(&self, kernels: &[PrimFunc]) -> Vec<Ref<PrimFunc>> {
        let parts = kernels.iter().flat_map(|kernel| lower::split_for(kernel, &self.target()).unwrap());
        parts.map(Ref::new).collect()
    }

    /// A library of kernels for devices, with the module of their functions below it, as a program has it.
    pub fn library(&self, kernels: &[PrimFunc]) -> Module {
        let kernels: Vec<_> = self.parts(kernels).into_iter().map(|kernel| (kernel, self.target())).collect();
        let Emitted { host, devices } =
            emit(&kernels, &Target::default(), CompileSettings::default(), &mut |_, _| {}).unwrap();
        let relaxide_codegen::Artifact::Library(host) = host else { panic!("a library") };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kernels.so");
        export_library(&SavedBytes::default(), &host, &path).unwrap();
        let library = relaxide_runtime::load_module(&path).unwrap();
        for device in devices {
            let device = (self.changed)(&kernels, device);
            library.import(loaded(&device).unwrap()).unwrap();
        }
        library
    }

    pub fn run(&self, library: &Module, name: &str, sample: &Sample) -> Result<Vec<Vec<Scalar>>, Error> {
        let inputs = sample.inputs.iter().map(|tensor| copy_tensor(tensor, self.device));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let outputs = sample.outputs.iter().map(|(shape, dtype)| empty_tensor(shape, *dtype, self.device));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let scalars = sample.scalars.iter().map(|value| Any::from(*value));
        let args: Vec<Any> = inputs.iter().chain(&outputs).map(Any::from).chain(scalars).collect();
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        library.get_function(name, true).unwrap().call(&views)?;
        elements(&outputs.iter().map(on_host).collect::<Result<Vec<_>, _>>()?)
    }

    /// A kernel and its arguments, as they are tried.
    pub fn trial(&self, name: &str, sample: Sample) -> Trial {
        let (lowered, expected) = (self.lowered(&named(&sample.func, name)).1, sample.interpret(&sample.func).unwrap());
        Trial { name: name.into(), sample, expected, lowered }
    }

    /// The device computes of all what the interpreter does.
    pub fn agrees(&self, trials: &[Trial]) {
        self.agrees_in(&self.library(&trials.iter().map(|trial| trial.lowered.clone()).collect::<Vec<_>>()), trials);
    }

    /// The same with kernels of a library.
    pub fn agrees_in(&self, library: &Module, trials: &[Trial]) {
        for Trial { name, sample, expected, lowered } in trials {
            let found = self.run(library, name, sample).unwrap_or_else(|error| panic!("{name}: {error}\n{lowered}"));
            if let Some((output, at)) = sample.difference(&found, expected) {
                panic!("{name}: {:?} for {:?} at {at}\n{lowered}", found[output][at], expected[output][at]);
            }
        }
    }

    /// Random kernels: over threads the interpreter computes the same, and so does the device if there is one.
    pub fn random_kernels(&self, has_device: bool) {
        let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 1000 } else { 24 };
        let kernel = |seed| {
            let sample = sample_from(&mut Random::new(seed), Options::default()).unwrap();
            let name = format!("kernel{seed}");
            let (scheduled, lowered) = self.lowered(&named(&sample.func, &name));
            let expected = sample.interpret(&sample.func).unwrap();
            for func in [&scheduled, &lowered] {
                let found = sample.interpret(func).unwrap_or_else(|error| panic!("{error}\n{func}"));
                assert!(sample.difference(&found, &expected).is_none(), "{}\n{func}", sample.func);
            }
            Trial { name, sample, expected, lowered }
        };
        let trials: Vec<Trial> = (0..count).map(kernel).collect();
        if has_device {
            self.agrees(&trials);
        }
    }

    /// Kernels that the threads of a block execute together.
    fn teamwork(&self) -> Vec<Trial> {
        let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 900 } else { KINDS };
        let kernel = |seed| {
            let Teamwork { sample, rule } = teamwork(seed).unwrap();
            let notes = schedule::apply(&sample.func, &self.target()).unwrap().notes;
            assert!(notes.iter().any(|note| note.rule == rule), "{notes:?} for {rule}");
            let trial = self.trial(&format!("team{seed}"), sample);
            let split = lower::split_device(&trial.lowered, self.device.device_type).unwrap();
            let shares = split.launches.iter().any(|launch| launch.shared_bytes > 0);
            assert_eq!(shares, rule != "fallback", "{}", trial.lowered);
            trial
        };
        (0..count).map(kernel).collect()
    }

    /// The device computes together what the interpreter computes alone; a large product, too.
    pub fn threads_together(&self, has_device: bool) {
        let trials = self.teamwork();
        let (large, shape) = (large_product(), [(1024, 40), (40, 1024)]);
        let all = trials.iter().map(|trial| trial.lowered.clone()).chain([self.lowered(&large).1]);
        let all: Vec<PrimFunc> = all.collect();
        if !has_device {
            return;
        }
        let library = self.library(&all);
        self.agrees_in(&library, &trials);
        let mut random = Random::new(7);
        let inputs = shape.map(|(rows, columns)| random_tensor(&mut random, &[rows, columns], F32).unwrap());
        let [a, b] = inputs.each_ref().map(|tensor| tensor.to_vec::<f32>().unwrap());
        let outputs = vec![(vec![1024, 1024], F32)];
        let sample = Sample { func: large.clone(), inputs: inputs.to_vec(), outputs, scalars: vec![] };
        let found = self.run(&library, "large", &sample).unwrap();
        for (at, found) in found[0].iter().enumerate().step_by(97) {
            let (m, n) = (at / 1024, at % 1024);
            let expected: f32 = (0..40).map(|k| a[m * 40 + k] * b[k * 1024 + n]).sum();
            assert_eq!(*found, Scalar::Float(f64::from(expected)), "at {m}, {n}");
        }
    }

    /// A product by tensor cores, lowered; of single precision if it is asked for.
    fn tensor_product(&self, func: &PrimFunc, tf32: bool) -> PrimFunc {
        let rule = "tensor-core product".to_string();
        let stage = schedule::apply(func, &self.target()).unwrap().notes[0].key.clone();
        let asked = schedule::Override { stage, rule, values: vec![("tf32".into(), 1)] };
        let asked = if tf32 { vec![asked] } else { vec![] };
        let scheduled = schedule::apply_with(func, &self.target(), &asked).unwrap();
        assert_eq!(scheduled.notes[0].rule, "tensor-core product");
        lower::lower_with(&scheduled.func, lower::LowerOptions { keep_loops: true, ..Default::default() }).unwrap()
    }

    /// What warps multiply is what the interpreter computes.
    pub fn warps_together(&self) {
        let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 200 } else { 6 };
        let kernel = |seed| {
            let (name, sample) = (format!("warps{seed}"), tensor_product(seed).unwrap().sample);
            let lowered = self.tensor_product(&named(&sample.func, &name), seed % 6 == 5);
            let expected = sample.interpret(&sample.func).unwrap();
            Trial { name, sample, expected, lowered }
        };
        self.agrees(&(0..count).map(kernel).collect::<Vec<_>>());
    }

    /// Vectors that a program writes, also such as read what they write.
    pub fn vectors_of_a_program(&self, has_device: bool) {
        let (a, b) = (Buffer::new("A", F32, [64]), Buffer::new("B", F32, [64]));
        let [block, thread] = ["block", "thread"].map(Var::dim);
        let four = |first: PrimExpr, stride: i64| prim::ramp(first, prim::int(stride), 4);
        let first = || (PrimExpr::from(&block) * 8 + PrimExpr::from(&thread)) * 4;
        let doubled = prim::load(&a, [four(first(), 1)]) * prim::broadcast(prim::constant(F32, 2.0), 4);
        let swapped = prim::load(&b, [four(first() + 3, -1)]) + prim::load(&b, [four(first(), 1)]);
        let body =
            Stmt::seq([Stmt::store(&b, [four(first(), 1)], doubled), Stmt::store(&b, [four(first(), 1)], swapped)]);
        let body = bound(&block, 2, "blockIdx.x", bound(&thread, 8, "threadIdx.x", body));
        let func = PrimFunc::over_buffers(&[a, b], &[], body);
        let floats: Vec<f32> = (0..64).map(|x| x as f32 * 0.5).collect();
        let inputs = vec![Tensor::from_slice(&floats, &[64]).unwrap()];
        let sample = Sample { func, inputs, outputs: vec![(vec![64], F32)], scalars: vec![] };
        let trial = self.trial("vectors", sample);
        if has_device {
            self.agrees(&[trial]);
        }
    }

    /// The same kernels as code of the device, for an assembler.
    pub fn text_of_teamwork(&self, target: &str) -> String {
        let target: Target = target.parse().unwrap();
        let kernels = self.teamwork().into_iter().map(|trial| trial.lowered);
        let large = large_tensor_products().into_iter().map(|(func, tf32)| self.tensor_product(&func, tf32));
        let kernels = kernels.chain([self.lowered(&large_product()).1]).chain(large);
        let kernels = self.parts(&kernels.collect::<Vec<_>>());
        backend(&target).unwrap().text(&kernels, &target, "").unwrap().unwrap()
    }

    /// An index that is data: outside of its extent it is an error, and the device goes on.
    pub fn index_outside(&self, has_device: bool) {
        let (_, lowered) = self.lowered(&rows());
        let split = lower::split_device(&lowered, self.device.device_type).unwrap();
        assert_eq!(split.launches.len(), 1);
        assert_eq!(split.launches[0].tags, ["blockIdx.x", "threadIdx.x"]);
        assert!(split.launches[0].fault.is_some(), "{}", split.launches[0].func);
        if !has_device {
            return;
        }
        let library = self.library(&[lowered]);
        let floats: Vec<f32> = (0..12).map(|x| x as f32).collect();
        let sample = |at: [i64; 5]| Sample {
            func: rows(),
            inputs: vec![Tensor::from_slice(&floats, &[4, 3]).unwrap(), Tensor::from_slice(&at, &[5]).unwrap()],
            outputs: vec![(vec![5, 3], F32)],
            scalars: vec![],
        };
        for (at, wrong) in [([0, 3, 7, 1, 2], Some(7)), ([3, 2, 1, 0, 3], None), ([0, 0, -1, 0, 0], Some(-1))] {
            let sample = sample(at);
            match (self.run(&library, "rows", &sample), wrong) {
                (Ok(found), None) => {
                    let expected = sample.interpret(&sample.func).unwrap();
                    assert!(sample.difference(&found, &expected).is_none());
                }
                (Err(error), Some(index)) => {
                    assert_eq!(error.kind(), "IndexError");
                    let message = error.message();
                    let words = format!("rows: index {index} of ");
                    assert!(message.contains(&words) && message.contains("extent 4"), "{message}");
                }
                (found, _) => panic!("{found:?} for {at:?}"),
            }
        }
        // Tensors of the host are on the wrong device.
        let here = Tensor::from_slice(&floats, &[4, 3]).unwrap();
        let at = Tensor::from_slice(&[0_i64; 5], &[5]).unwrap();
        let out = Tensor::from_slice(&[0.0_f32; 15], &[5, 3]).unwrap();
        let error = library.get_function("rows", true).unwrap().call(&[(&here).into(), (&at).into(), (&out).into()]);
        let (error, kind) = (error.unwrap_err(), self.device.type_name().unwrap());
        assert!(
            error.message().contains("device_type") && error.message().contains(&format!("expected {kind}")),
            "{error}"
        );
    }
}

/// Loads the functions of a device.
pub fn loaded(device: &DeviceCode) -> Result<Module, Error> {
    let loader = get_global(&format!("ffi.Module.load_from_bytes.{}", device.kind)).unwrap();
    AnyView::with_bytes(&device.bytes, |bytes| loader.call(&[bytes]))?.to()
}

/// Rows of a table by numbers that are data.
fn rows() -> PrimFunc {
    let (table, at) = (te::placeholder("table", [4, 3], F32), te::placeholder("at", [5], DataType::int(64)));
    let out = te::compute("out", [5, 3], |i| table.at(&[at.at(&i[..1]), i[1].clone()]));
    named(&te::create_prim_func(&[table, at, out]).unwrap(), "rows")
}

/// Products of 4096³ by tensor cores, of each type and with either factor transposed, and whether it is single precision that is rounded.
fn large_tensor_products() -> Vec<(PrimFunc, bool)> {
    let (half, brain, byte) = (DataType::float(16), DataType::bfloat16(), DataType::int(8));
    let types = [(half, F32), (half, half), (brain, F32), (byte, DataType::int(32)), (F32, F32)];
    let mut made = Vec::new();
    for (number, (of, dtype)) in types.into_iter().enumerate() {
        for (a_transposed, b_transposed) in [(false, false), (false, true), (true, false)] {
            let (a, b) = (te::placeholder("A", [4096, 4096], of), te::placeholder("B", [4096, 4096], of));
            let k = te::reduce_axis(4096);
            let at = |transposed: bool, row: PrimExpr, column: PrimExpr| {
                if transposed { [column, row] } else { [row, column] }
            };
            let product = te::compute("product", [4096, 4096], |i| {
                let left = prim::cast(dtype, a.at(&at(a_transposed, i[0].clone(), k.var())));
                te::sum(left * prim::cast(dtype, b.at(&at(b_transposed, k.var(), i[1].clone()))), [&k])
            });
            let name = format!("large_{number}_{a_transposed}_{b_transposed}");
            made.push((named(&te::create_prim_func(&[a, b, product]).unwrap(), &name), of == F32));
        }
    }
    made
}

/// A product that is large enough for the largest tiles.
fn large_product() -> PrimFunc {
    let (a, b) = (te::placeholder("A", [1024, 40], F32), te::placeholder("B", [40, 1024], F32));
    let k = te::reduce_axis(40);
    let product = te::compute("product", [1024, 1024], |i| {
        te::sum(a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]), [&k])
    });
    named(&te::create_prim_func(&[a, b, product]).unwrap(), "large")
}
