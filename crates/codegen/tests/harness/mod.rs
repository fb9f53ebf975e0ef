//! Compiles kernels, loads them as a library and calls them the way a runtime does.
#![allow(dead_code, reason = "benchmarks use a part of the harness")]

pub mod emulated;
pub mod microkernel;

use std::{
    cell::RefCell,
    ffi::{CStr, c_char, c_void},
};

use libloading::Library;
use relaxide_codegen::{
    Architecture, CompileSettings, CompiledLib, Share, compile, compile_to_c, compile_with, export_library, in_order,
    parse_targets,
};
use relaxide_ffi::SavedBytes;
use relaxide_ir::{Attrs, Buffer, DataType, PrimExpr, Ref, Target, Var};
use relaxide_tir::{PrimFunc, Stmt};

/// A packed value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Packed {
    pub type_index: i32,
    pub padding: u32,
    pub payload: u64,
}

impl Packed {
    pub fn int(value: i64) -> Self {
        Self { type_index: 1, padding: 0, payload: value as u64 }
    }

    pub fn bool(value: bool) -> Self {
        Self { type_index: 2, padding: 0, payload: u64::from(value) }
    }

    pub fn float(value: f64) -> Self {
        Self { type_index: 3, padding: 0, payload: value.to_bits() }
    }

    pub fn none() -> Self {
        Self { type_index: 0, padding: 0, payload: 0 }
    }
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// Words behind the elements of a tensor, which no kernel may write.
const GUARD: usize = 8;

/// A tensor in host memory.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub data: Vec<u64>,
    pub shape: Vec<i64>,
    pub strides: Option<Vec<i64>>,
    pub dtype: DataType,
    pub device_type: i32,
    pub device_id: i32,
    pub byte_offset: u64,
    pub null: bool,
    /// How many bytes behind the beginning of the memory it begins.
    pub skip: usize,
}

impl Tensor {
    pub fn zeros(dtype: DataType, shape: &[i64]) -> Self {
        let bytes = dtype.bytes_of(shape.iter().product::<i64>() as usize).unwrap();
        Self {
            data: [vec![0; bytes.div_ceil(8)], vec![0x5a5a_5a5a_5a5a_5a5a; GUARD]].concat(),
            shape: shape.to_vec(),
            strides: None,
            dtype,
            device_type: 1,
            device_id: 0,
            byte_offset: 0,
            null: false,
            skip: 0,
        }
    }

    pub fn of<T: Copy>(dtype: DataType, values: &[T], shape: &[i64]) -> Self {
        let mut tensor = Self::zeros(dtype, shape);
        assert_eq!(Some(size_of_val(values)), dtype.bytes_of(shape.iter().product::<i64>() as usize));
        // SAFETY: the storage has exactly that many bytes, and `T` is a plain number.
        unsafe {
            std::ptr::copy_nonoverlapping(
                values.as_ptr().cast::<u8>(),
                tensor.data.as_mut_ptr().cast(),
                size_of_val(values),
            );
        }
        tensor
    }

    pub fn f32(values: &[f32], shape: &[i64]) -> Self {
        Self::of(DataType::float(32), values, shape)
    }

    pub fn values<T: Copy>(&self) -> Vec<T> {
        let count = self.shape.iter().product::<i64>() as usize;
        assert!(count * size_of::<T>() <= self.data.len() * 8);
        // SAFETY: the storage holds that many numbers of the type that the test asks for.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr().cast::<T>(), count) }.to_vec()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let count = self.dtype.bytes_of(self.shape.iter().product::<i64>() as usize).unwrap();
        self.data.iter().flat_map(|word| word.to_le_bytes()).take(count).collect()
    }

    /// The bytes behind the last element; none where it has strides of its own.
    fn behind(&self) -> Vec<u8> {
        let count = self.dtype.bytes_of(self.shape.iter().product::<i64>().max(0) as usize).unwrap_or(0);
        let end = count + self.skip + self.byte_offset as usize;
        let words = if self.strides.is_some() || self.null { None } else { self.data.get(end / 8..) };
        words.into_iter().flatten().flat_map(|word| word.to_le_bytes()).skip(end % 8).collect()
    }

    fn describe(&mut self) -> DlTensor {
        DlTensor {
            data: if self.null {
                std::ptr::null_mut()
            } else {
                self.data.as_mut_ptr().cast::<u8>().wrapping_add(self.skip).cast()
            },
            device_type: self.device_type,
            device_id: self.device_id,
            ndim: self.shape.len() as i32,
            code: self.dtype.code,
            bits: self.dtype.bits,
            lanes: self.dtype.lanes,
            shape: self.shape.as_ptr(),
            strides: self.strides.as_ref().map_or(std::ptr::null(), |strides| strides.as_ptr()),
            byte_offset: self.byte_offset,
        }
    }
}

thread_local! {
    static RAISED: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
    static WORKSPACES: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

/// How many tasks the test's thread pool starts.
pub const TASKS: i32 = 3;

unsafe extern "C" fn set_raised(kind: *const c_char, message: *const c_char) {
    // SAFETY: both are NUL-terminated.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
    RAISED.with(|raised| *raised.borrow_mut() = Some((text(kind), text(message))));
}

#[repr(C)]
struct Group {
    sync: *mut c_void,
    tasks: i32,
}

type Task = unsafe extern "C" fn(i32, *const Group, *mut c_void) -> i32;

unsafe extern "C" fn launch(task: Task, environment: *mut c_void, tasks: i32) -> i32 {
    let count = if tasks == 0 { TASKS } else { tasks };
    let environment = environment as usize;
    std::thread::scope(|scope| {
        let run = move |index| {
            let group = Group { sync: std::ptr::null_mut(), tasks: count };
            // SAFETY: the environment lives until all tasks have ended.
            let code = unsafe { task(index, &group, environment as *mut c_void) };
            (code, RAISED.with(|raised| raised.borrow_mut().take()))
        };
        let handles: Vec<_> = (0..count).map(|index| scope.spawn(move || run(index))).collect();
        let ends: Vec<(i32, Option<(String, String)>)> =
            handles.into_iter().map(|handle| handle.join().unwrap()).collect();
        let Some((code, error)) = ends.into_iter().find(|(code, _)| *code != 0) else { return 0 };
        RAISED.with(|raised| *raised.borrow_mut() = error);
        code
    })
}

/// Divides the iterations among more tasks than [`launch`] makes.
unsafe extern "C" fn parallel_for(task: Task, environment: *mut c_void, extent: i64) -> i32 {
    let tasks = extent.clamp(1, 2 * i64::from(TASKS)) as i32;
    // SAFETY: passed on to the caller.
    unsafe { launch(task, environment, tasks) }
}

unsafe extern "C" fn allocate(_device: i32, _id: i32, bytes: u64, _code: i32, _bits: i32) -> *mut c_void {
    if bytes > 1 << 40 {
        return std::ptr::null_mut();
    }
    let mut memory = vec![u64::MAX; (bytes as usize).div_ceil(8).max(1)];
    let pointer = memory.as_mut_ptr();
    WORKSPACES.with(|all| all.borrow_mut().push(memory));
    pointer.cast()
}

unsafe extern "C" fn free(_device: i32, _id: i32, pointer: *mut c_void) -> i32 {
    WORKSPACES.with(|all| {
        let last = all.borrow_mut().pop().expect("more workspaces are freed than allocated");
        assert_eq!(last.as_ptr().cast(), pointer.cast_const(), "workspaces are freed in reverse order");
    });
    0
}

/// How many workspaces this thread still holds.
pub fn open_workspaces() -> usize {
    WORKSPACES.with(|all| all.borrow().len())
}

/// Where kernels are loaded.
enum LoadedIn {
    /// In this process.
    Here(Library),
    /// In a process on an emulated machine.
    Emulated(emulated::Process),
}

/// Kernels, loaded.
pub struct Kernels {
    place: LoadedIn,
    _directory: tempfile::TempDir,
}

type Entry = unsafe extern "C" fn(*mut c_void, *const Packed, i32, *mut Packed) -> i32;

impl Kernels {
    pub fn compile(funcs: &[PrimFunc]) -> Self {
        Self::compile_for(funcs, &Target::default())
    }

    pub fn compile_for(funcs: &[PrimFunc], target: &Target) -> Self {
        let funcs: Vec<Ref<PrimFunc>> = funcs.iter().cloned().map(Ref::new).collect();
        Self::load(&compile(&funcs, target).unwrap_or_else(|error| panic!("{error}")))
    }

    /// The same for several processors: the kernels of others than the least are called by their names and that processor's.
    pub fn compile_for_all(funcs: &[PrimFunc], targets: &str) -> Self {
        let funcs: Vec<Ref<PrimFunc>> = funcs.iter().cloned().map(Ref::new).collect();
        Self::load(&compile_all(&funcs, targets))
    }

    fn load(compiled: &CompiledLib) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kernels.so");
        if compiled.target.architecture == Architecture::Wasm32 {
            // What a program would link fills the slots.
            let registration = compiled.registration(None, "").unwrap_or_else(|error| panic!("{error}"));
            let objects: Vec<&[u8]> = compiled.objects.iter().chain([&registration]).map(Vec::as_slice).collect();
            let process = emulated::Process::start_wasm(&objects, directory.path());
            return Self { place: LoadedIn::Emulated(process), _directory: directory };
        }
        export_library(&SavedBytes::default(), compiled, &path).unwrap_or_else(|error| panic!("{error}"));
        if Some(compiled.target.architecture) != Architecture::host() {
            return Self { place: LoadedIn::Emulated(emulated::Process::start(&path)), _directory: directory };
        }
        // SAFETY: the library has no initialisers.
        let library = unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{error}"));
        Self::fill_slots(&library);
        Self { place: LoadedIn::Here(library), _directory: directory }
    }

    /// The same kernels by way of C and its compiler, which must have nothing to say.
    pub fn compile_c(funcs: &[PrimFunc]) -> Self {
        let funcs: Vec<Ref<PrimFunc>> = funcs.iter().cloned().map(Ref::new).collect();
        let source = compile_to_c(&funcs, &Target::c()).unwrap_or_else(|error| panic!("{error}"));
        let directory = tempfile::tempdir().unwrap();
        let (file, path) = (directory.path().join("kernels.c"), directory.path().join("kernels.so"));
        std::fs::write(&file, source.text(&[], "")).unwrap();
        let mut cc = std::process::Command::new("cc");
        cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
        cc.args(["-shared", "-fPIC", "-DRELAXIDE_SHARED_LIBRARY", "-o"]).arg(&path).arg(&file).arg("-lm");
        let output = cc.output().unwrap();
        if !output.status.success() {
            let kept = directory.keep().join("kernels.c");
            panic!("{}: {}", kept.display(), String::from_utf8_lossy(&output.stderr));
        }
        // SAFETY: the library has no initialisers.
        let library = unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{error}"));
        Self::fill_slots(&library);
        Self { place: LoadedIn::Here(library), _directory: directory }
    }

    /// Fills the slots as a loader does.
    fn fill_slots(library: &Library) {
        let slots: [(&str, usize); 5] = [
            ("__RelaxideParallelFor", parallel_for as *const () as usize),
            ("__TVMFFIErrorSetRaisedFromCStr", set_raised as *const () as usize),
            ("__TVMBackendParallelLaunch", launch as *const () as usize),
            ("__TVMBackendAllocWorkspace", allocate as *const () as usize),
            ("__TVMBackendFreeWorkspace", free as *const () as usize),
        ];
        for (name, function) in slots {
            // SAFETY: slots are pointer-sized variables.
            if let Ok(slot) = unsafe { library.get::<*mut usize>(name) } {
                // SAFETY: nobody calls into the library yet.
                unsafe { **slot = function };
            }
        }
    }

    /// Calls a kernel with packed values; `Err` holds the kind and text of the raised error.
    pub fn call_packed(&self, name: &str, args: &[Packed]) -> Result<Packed, (String, String)> {
        let library = match &self.place {
            LoadedIn::Here(library) => library,
            LoadedIn::Emulated(process) => return process.call(&format!("__tvm_ffi_{name}"), &mut [], args).result,
        };
        // SAFETY: every entry has this type.
        let entry = unsafe { library.get::<Entry>(format!("__tvm_ffi_{name}")) }.unwrap();
        let mut result = Packed::none();
        // SAFETY: the arguments live until the call returns.
        let code = unsafe { entry(std::ptr::null_mut(), args.as_ptr(), args.len() as i32, &mut result) };
        match code {
            0 => Ok(result),
            _ => Err(RAISED.with(|raised| raised.borrow_mut().take()).expect("a failure raises an error")),
        }
    }

    /// Calls a kernel with tensors and then scalars.
    pub fn call(&self, name: &str, tensors: &mut [Tensor], scalars: &[Packed]) -> Result<Packed, (String, String)> {
        let behind: Vec<Vec<u8>> = tensors.iter().map(Tensor::behind).collect();
        let result = self.call_unguarded(name, tensors, scalars);
        for (i, (tensor, before)) in tensors.iter().zip(behind).enumerate() {
            assert_eq!(tensor.behind(), before, "`{name}` writes behind its tensor {i}");
        }
        result
    }

    fn call_unguarded(
        &self,
        name: &str,
        tensors: &mut [Tensor],
        scalars: &[Packed],
    ) -> Result<Packed, (String, String)> {
        if let LoadedIn::Emulated(process) = &self.place {
            let answer = process.call(&format!("__tvm_ffi_{name}"), tensors, scalars);
            assert_eq!(answer.open_workspaces, 0, "a kernel gives its workspaces back");
            return answer.result;
        }
        let descriptions: Vec<DlTensor> = tensors.iter_mut().map(Tensor::describe).collect();
        let mut args: Vec<Packed> = descriptions
            .iter()
            .map(|tensor| Packed { type_index: 7, padding: 0, payload: std::ptr::from_ref(tensor) as u64 })
            .collect();
        args.extend(scalars);
        let result = self.call_packed(name, &args);
        assert_eq!(open_workspaces(), 0, "a kernel gives its workspaces back");
        result
    }

    /// Calls a kernel that must succeed.
    pub fn run(&self, name: &str, tensors: &mut [Tensor]) {
        self.call(name, tensors, &[]).unwrap_or_else(|(kind, message)| panic!("{kind}: {message}"));
    }
}

/// Kernels for several processors, as text with commas between.
pub fn compile_all(funcs: &[Ref<PrimFunc>], targets: &str) -> CompiledLib {
    let order = in_order(&parse_targets(targets).unwrap()).unwrap();
    let parts = order.iter().enumerate().map(|(at, own)| {
        let share = if at == 0 { Share::First } else { Share::Other(&own.name) };
        let settings = CompileSettings { share, ..CompileSettings::default() };
        let part = compile_with(funcs, &own.target, settings, &mut |_, _| {});
        (own.name.clone(), part.unwrap_or_else(|error| panic!("{error}")))
    });
    CompiledLib::join(parts.collect()).unwrap()
}

/// Whether there is a compiler of C; a test that needs one says that it is skipped.
pub fn has_c_compiler() -> bool {
    let there = std::process::Command::new("cc").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no C compiler (`cc`)");
    }
    there
}

/// A kernel over buffers and scalars.
pub fn kernel(name: &str, buffers: &[Ref<Buffer>], scalars: &[Ref<Var>], body: Stmt) -> PrimFunc {
    let mut func = PrimFunc::over_buffers(buffers, scalars, body);
    func.attrs = Attrs::new().with("tirx.noalias", true).with("global_symbol", name);
    func
}

/// `output[i] = value(input[i], …)` over all elements.
pub fn elementwise(name: &str, buffers: &[Ref<Buffer>], value: impl FnOnce(&PrimExpr) -> PrimExpr) -> PrimFunc {
    let i = Var::dim("i");
    let index = PrimExpr::from(&i);
    let output = buffers.last().expect("there is an output");
    let body = Stmt::store(output, [index.clone()], value(&index));
    let extent = output.shape[0].clone();
    kernel(name, buffers, &[], Stmt::serial(i, extent, body))
}
