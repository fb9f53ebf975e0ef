//! Weights by name: a cache for the process, filled from a folder or by hand, from which programs take their parameters.
//!
//! A folder has `tensor-cache.json`, which lists files of raw data and the tensors in them: name, shape, dtype, position. A
//! tensor of `float32` may be stored as `bfloat16` (`"f32-to-bf16"`). What the list says is checked against the files, and
//! files are looked for below the folder only.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{LazyLock, PoisonError, RwLock};

use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{
    Any, AnyView, Array, DataType, Device, Error, ErrorKind, FromAny, Function, Map, Module, ModuleImpl, Tensor, json,
};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.tensor_cache.get", get),
    Builtin::plain("vm.builtin.tensor_cache.update", update),
    Builtin::plain("vm.builtin.tensor_cache.remove", remove),
    Builtin::plain("vm.builtin.tensor_cache.clear", clear),
    Builtin::plain("vm.builtin.tensor_cache.load", load),
    Builtin::plain("vm.builtin.param_array_from_cache", param_array),
    Builtin::plain("vm.builtin.param_array_from_cache_by_name", param_array_by_name),
    Builtin::plain("vm.builtin.param_array_from_cache_by_name_unpacked", param_array_by_name_unpacked),
    Builtin::plain("vm.builtin.param_module_from_cache", |args| param_array(args).map(module)),
    Builtin::plain("vm.builtin.param_module_from_cache_by_name", |args| param_array_by_name(args).map(module)),
];

/// The list in a folder.
const LIST: &str = "tensor-cache.json";
/// How data of `float32` that is stored in half the space is marked.
const HALVED: &str = "f32-to-bf16";

static CACHE: LazyLock<RwLock<HashMap<String, Tensor>>> = LazyLock::new(RwLock::default);

/// Holds the table across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&CACHE)
}

fn find(name: &str) -> Option<Tensor> {
    CACHE.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// `(name)`: the tensor, or nothing.
fn get(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(find(&args.get::<String>(0, "name")?).map_or(Any::none(), Any::from))
}

/// `(name, tensor[, override])`.
fn update(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 3)?;
    let (name, tensor): (String, Tensor) = (args.get(0, "name")?, args.get(1, "tensor")?);
    let replaces = args.len() == 3 && args.get(2, "override")?;
    let mut cache = CACHE.write().unwrap_or_else(PoisonError::into_inner);
    if !replaces && cache.contains_key(&name) {
        return Err(args.error(ErrorKind::ValueError, format_args!("Name {name} already exists in the cache")));
    }
    let old = cache.insert(name, tensor);
    drop(cache);
    // Dropped without the lock: a tensor may be somebody else's, and its end foreign code.
    drop(old);
    Ok(Any::none())
}

/// `(name)`.
fn remove(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let name: String = args.get(0, "name")?;
    let old = CACHE.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
    drop(old);
    Ok(Any::none())
}

/// `()`.
fn clear(_args: &Args<'_, '_>) -> Result<Any, Error> {
    let old = std::mem::take(&mut *CACHE.write().unwrap_or_else(PoisonError::into_inner));
    drop(old);
    Ok(Any::none())
}

fn cached(args: &Args<'_, '_>, name: &str) -> Result<Tensor, Error> {
    let missing = || args.error(ErrorKind::ValueError, format_args!("Cannot find parameter in cache: {name}"));
    find(name).ok_or_else(missing)
}

/// `(prefix, count)`: the tensors `prefix_0`, `prefix_1` …; as many as there are if the count is -1.
fn param_array(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let (prefix, count): (String, i64) = (args.get(0, "prefix")?, args.get(1, "count")?);
    let mut params: Vec<Any> = Vec::new();
    loop {
        let index = params.len() as i64;
        if index == count {
            break;
        }
        let name = format!("{prefix}_{index}");
        match find(&name) {
            Some(tensor) => params.push(tensor.into()),
            None if count == -1 => break,
            None => return Err(args.error(ErrorKind::ValueError, format_args!("Cannot find {name} in cache"))),
        }
    }
    Ok(Array::from_vec(params).into())
}

/// `((name…))`.
fn param_array_by_name(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let names: Vec<String> = args.get(0, "names")?;
    let params = names.iter().map(|name| cached(args, name).map(Any::from)).collect::<Result<_, Error>>()?;
    Ok(Array::from_vec(params).into())
}

/// `(name…)`.
fn param_array_by_name_unpacked(args: &Args<'_, '_>) -> Result<Any, Error> {
    let param = |index: usize| cached(args, &args.get::<String>(index, "name")?).map(Any::from);
    Ok(Array::from_vec((0..args.len()).map(param).collect::<Result<_, Error>>()?).into())
}

/// Parameters as a module, for callers that know only modules.
struct ParamModule(Any);

impl ModuleImpl for ParamModule {
    fn kind(&self) -> &str {
        "param_module"
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let params = self.0.clone();
        (name == "get_params").then(|| Function::new(move |_args: &[AnyView<'_>]| Ok(params.clone())))
    }
}

fn module(params: Any) -> Any {
    Module::new(ParamModule(params)).into()
}

/// `(folder, device type, device id)`.
fn load(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let folder = PathBuf::from(args.get::<String>(0, "folder")?);
    let device = Device { device_type: args.get(1, "device type")?, device_id: args.get(2, "device id")? };
    if !device::device_exists(device) {
        return Err(args.error(ErrorKind::ValueError, format_args!("device {device} is not available")));
    }
    let list = folder.join(LIST);
    let wrong = |error: Error| error.context(format_args!("vm.builtin.tensor_cache.load: {}", list.display()));
    let text = std::fs::read_to_string(&list)
        .map_err(|error| args.error(ErrorKind::OSError, format_args!("Cannot open {}: {error}", list.display())))?;
    let content: Map = json::parse(&text).and_then(|content| content.to()).map_err(wrong)?;
    let shards: Vec<Map> = field(&content, "records").map_err(wrong)?;
    let mut loaded = Vec::new();
    for shard in &shards {
        load_shard(&folder, shard, device, &mut loaded).map_err(wrong)?;
    }
    // All or nothing.
    CACHE.write().unwrap_or_else(PoisonError::into_inner).extend(loaded);
    Ok(Any::none())
}

fn field<T: FromAny>(map: &Map, name: &str) -> Result<T, Error> {
    let missing = || Error::new(ErrorKind::ValueError, format!("an entry has no field \"{name}\""));
    map.get(name).ok_or_else(missing)?.to().map_err(|error| error.context(format_args!("field \"{name}\"")))
}

fn load_shard(folder: &Path, shard: &Map, device: Device, loaded: &mut Vec<(String, Tensor)>) -> Result<(), Error> {
    let path = below(folder, &field::<String>(shard, "dataPath")?)?;
    let data = std::fs::read(&path)
        .map_err(|error| Error::new(ErrorKind::OSError, format!("cannot read {}: {error}", path.display())))?;
    for record in field::<Vec<Map>>(shard, "records")? {
        let name: String = field(&record, "name")?;
        let tensor = read_tensor(&record, &data).map_err(|error| error.context(format_args!("tensor \"{name}\"")))?;
        loaded.push((name, device::to_device(&tensor, device)?));
    }
    Ok(())
}

/// A file of the folder. Its name comes from the list, which need not be trusted.
fn below(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let path = Path::new(name);
    if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(folder.join(path));
    }
    Err(Error::new(ErrorKind::ValueError, format!("the file {name} is not below the folder")))
}

fn read_tensor(record: &Map, data: &[u8]) -> Result<Tensor, Error> {
    let shape: Vec<i64> = field(record, "shape")?;
    let dtype: DataType =
        field::<String>(record, "dtype")?.parse().map_err(|error: Error| error.context("field \"dtype\""))?;
    let (start, bytes): (usize, usize) = (field(record, "byteOffset")?, field(record, "nbytes")?);
    let format: String = field(record, "format")?;
    let stored = start.checked_add(bytes).and_then(|end| data.get(start..end)).ok_or_else(|| {
        let message = format!("it has {bytes} bytes at {start} of a file of {} bytes", data.len());
        Error::new(ErrorKind::ValueError, message)
    })?;
    match format.as_str() {
        HALVED if dtype == DataType::float(32) => {
            // A bfloat16 is the upper half of a float32.
            let widen = |half: &[u8; 2]| [0, 0, half[0], half[1]];
            let (halves, rest) = stored.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(Error::new(ErrorKind::ValueError, format!("{bytes} bytes are not whole elements")));
            }
            let wide: Vec<u8> = halves.iter().flat_map(widen).collect();
            Tensor::from_bytes(&wide, &shape, dtype)
        }
        HALVED | "raw" => Tensor::from_bytes(stored, &shape, dtype),
        other => Err(Error::new(ErrorKind::ValueError, format!("the format \"{other}\" does not exist"))),
    }
}
