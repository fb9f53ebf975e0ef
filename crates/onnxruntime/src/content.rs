//! What is in a value: a tensor, texts, a sequence, a map, or nothing.
//!
//! A tensor lies in the memory of the runtime, of the caller, or of the caller's allocator. Kernels take memory that begins at a
//! multiple of 64 bytes as it is; of other memory they get a copy, made for each run, because the caller may write to it in between.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use relaxide::ffi::{ALIGNMENT, Any, Array, DataType, Device, Map, Tensor};
use relaxide::vm::TextTensor;

use crate::element::Element;
use crate::memory::{OrtAllocator, allocate, free};
use crate::status::{Code, Result, Status, invalid, not_here};

/// A value. Copies share it.
#[derive(Clone, Debug)]
pub enum Content {
    /// Numbers in memory.
    Numbers(Arc<Numbers>),
    /// Texts.
    Texts(Arc<Texts>),
    /// Values in order.
    Sequence(Arc<Vec<Content>>),
    /// Keys, and as many values.
    Map(Arc<[Content; 2]>),
    /// An optional value that is not there.
    Nothing,
}

/// A tensor of numbers.
pub struct Numbers {
    /// The first byte.
    pub data: *mut c_void,
    /// How many bytes there are.
    pub bytes: usize,
    /// The lengths of the axes.
    pub shape: Vec<i64>,
    /// The type of the elements.
    pub element: Element,
    dtype: DataType,
    owner: Owner,
}

/// Whose memory it is.
enum Owner {
    /// The runtime's.
    Runtime(Tensor),
    /// The caller's, who keeps it.
    Caller,
    /// A block of an allocator.
    Block(*mut OrtAllocator),
}

// SAFETY: the interface says that values may be used from any thread, and who writes to their memory sees to it that nobody else
// uses it meanwhile.
unsafe impl Send for Numbers {}
// SAFETY: as above.
unsafe impl Sync for Numbers {}

impl Drop for Numbers {
    fn drop(&mut self) {
        if let Owner::Block(allocator) = self.owner {
            // SAFETY: the block was given by that allocator or for it to free, and nobody uses it any more.
            unsafe { free(allocator, self.data) }
        }
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor({}) {:?}", self.element.name, self.shape)
    }
}

/// A tensor of texts, of any bytes until they are given to a program.
#[derive(Debug)]
pub struct Texts {
    /// The lengths of the axes.
    pub shape: Vec<i64>,
    cells: Mutex<Vec<Vec<u8>>>,
}

/// How many elements a shape has.
pub fn count(shape: &[i64]) -> Result<usize> {
    let negative = shape.iter().find(|dim| **dim < 0);
    if let Some(dim) = negative {
        return Err(invalid(format!("tried creating a tensor with a negative value in its shape: {dim} in {shape:?}")));
    }
    let product = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
    product.ok_or_else(|| invalid(format!("a tensor of shape {shape:?} has more elements than memory")))
}

impl Numbers {
    /// # Safety
    /// `data` has as many bytes as the shape and the type take, and `owner` keeps them.
    unsafe fn over(data: *mut c_void, shape: &[i64], element: Element, owner: Owner) -> Result<Numbers> {
        let (dtype, bytes) = sizes(shape, element)?;
        Ok(Numbers { data, bytes, shape: shape.to_vec(), element, dtype, owner })
    }

    /// A tensor over the caller's memory, which stays the caller's.
    ///
    /// # Safety
    /// `data` is null or has `given` bytes for as long as the value lives.
    pub unsafe fn borrowed(data: *mut c_void, given: usize, shape: &[i64], element: Element) -> Result<Numbers> {
        check_given(data, given, shape, element)?;
        // SAFETY: the caller's promise, and there are as many bytes as it takes.
        unsafe { Numbers::over(data, shape, element, Owner::Caller) }
    }

    /// A tensor over the caller's memory, which the allocator frees at the end.
    ///
    /// # Safety
    /// As for [`Numbers::borrowed`]; the allocator lives as long as the value.
    pub unsafe fn taken(
        data: *mut c_void,
        given: usize,
        shape: &[i64],
        element: Element,
        allocator: *mut OrtAllocator,
    ) -> Result<Numbers> {
        check_given(data, given, shape, element)?;
        // SAFETY: the caller's promise, and there are as many bytes as it takes.
        unsafe { Numbers::over(data, shape, element, Owner::Block(allocator)) }
    }

    /// A tensor in a block of an allocator.
    ///
    /// # Safety
    /// The allocator lives as long as the value.
    pub unsafe fn allocated(allocator: *mut OrtAllocator, shape: &[i64], element: Element) -> Result<Numbers> {
        let (_, bytes) = sizes(shape, element)?;
        // SAFETY: the caller's promise. Memory that nobody has written to is not read: it is zero.
        unsafe {
            let data = allocate(allocator, bytes.max(1))?.as_ptr();
            data.cast::<u8>().write_bytes(0, bytes);
            Numbers::over(data, shape, element, Owner::Block(allocator))
        }
    }

    fn of_tensor(tensor: Tensor) -> Result<Numbers> {
        // Who reads the value sees elements in a row.
        let tensor = if tensor.is_contiguous() { tensor } else { copied(&tensor)? };
        let (data, shape, element) =
            (tensor.data_ptr().cast(), tensor.shape().to_vec(), Element::of_dtype(tensor.dtype())?);
        // SAFETY: the memory is the tensor's, which is kept.
        unsafe { Numbers::over(data, &shape, element, Owner::Runtime(tensor)) }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self.bytes {
            0 => &[],
            // SAFETY: the memory has that many bytes for as long as the value lives.
            bytes => unsafe { std::slice::from_raw_parts(self.data.cast(), bytes) },
        }
    }

    /// Whether its memory and that of a tensor of the host are the same in part.
    fn shares(&self, tensor: &Tensor) -> bool {
        let (mine, theirs) = (self.data as usize, tensor.data_ptr() as usize);
        self.bytes > 0 && tensor.byte_size() > 0 && mine < theirs + tensor.byte_size() && theirs < mine + self.bytes
    }

    /// Takes the elements of another tensor of the same shape and type.
    pub fn fill(&self, from: &Numbers) -> Result<()> {
        if from.element != self.element {
            let (there, here) = (from.element.name, self.element.name);
            return Err(invalid(format!(
                "the output's elements are {there}, and those of the value given for it {here}"
            )));
        }
        if from.shape != self.shape {
            let (there, here) = (&from.shape, &self.shape);
            return Err(invalid(format!("the output has the shape {there:?}, and the value given for it {here:?}")));
        }
        // SAFETY: both have that many bytes, and may overlap.
        unsafe { self.data.cast::<u8>().copy_from(from.data.cast::<u8>(), self.bytes) };
        Ok(())
    }
}

fn sizes(shape: &[i64], element: Element) -> Result<(DataType, usize)> {
    let dtype = element.dtype().ok_or_else(|| invalid("a tensor of texts has no memory of its own"))?;
    let bytes = dtype.bytes_of(count(shape)?).filter(|bytes| isize::try_from(*bytes).is_ok());
    let bytes = bytes.ok_or_else(|| invalid(format!("a tensor of shape {shape:?} is larger than memory")))?;
    Ok((dtype, bytes))
}

fn check_given(data: *mut c_void, given: usize, shape: &[i64], element: Element) -> Result<()> {
    if element.is_text() {
        return Err(invalid(
            "texts do not lie in the caller's memory: use CreateTensorAsOrtValue and FillStringTensor",
        ));
    }
    let (_, bytes) = sizes(shape, element)?;
    if given < bytes {
        return Err(invalid(format!(
            "not enough space: expected {bytes}, got {given} (a tensor({}) of shape {shape:?})",
            element.name
        )));
    }
    if data.is_null() && bytes > 0 {
        return Err(invalid(format!("the data is null; {bytes} bytes are expected")));
    }
    Ok(())
}

fn copied(tensor: &Tensor) -> Result<Tensor> {
    Ok(Tensor::from_bytes(&tensor.to_bytes()?, tensor.shape(), tensor.dtype())?)
}

impl Texts {
    /// Empty texts.
    pub fn empty(shape: &[i64]) -> Result<Texts> {
        let count = count(shape)?;
        let mut cells = Vec::new();
        let failed = |_| Status::new(Code::Fail, format!("there is no memory for {count} texts"));
        cells.try_reserve_exact(count).map_err(failed)?;
        cells.resize(count, Vec::new());
        Ok(Texts { shape: shape.to_vec(), cells: Mutex::new(cells) })
    }

    fn of_tensor(tensor: &TextTensor) -> Texts {
        let cells = tensor.iter().map(|text| text.as_bytes().to_vec()).collect();
        Texts { shape: tensor.shape.to_vec(), cells: Mutex::new(cells) }
    }

    /// The texts, row by row.
    pub fn cells(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn argument(&self) -> Result<Any> {
        let text = |cell: &Vec<u8>| match std::str::from_utf8(cell) {
            Ok(text) => Ok(Any::from(text)),
            Err(_) => Err(invalid(format!("the text {:?} is not UTF-8", String::from_utf8_lossy(cell)))),
        };
        let texts = self.cells().iter().map(text).collect::<Result<Vec<_>>>()?;
        Ok(TextTensor::new(&self.shape, Array::from_vec(texts))?.into())
    }
}

impl Content {
    /// As a program takes it.
    pub fn argument(&self) -> Result<Any> {
        match self {
            Content::Numbers(numbers) => numbers_argument(numbers),
            Content::Texts(texts) => texts.argument(),
            Content::Sequence(parts) => {
                Ok(Array::from_vec(parts.iter().map(Content::argument).collect::<Result<_>>()?).into())
            }
            Content::Map(parts) => map_argument(&parts[0], &parts[1]),
            Content::Nothing => Ok(Any::default()),
        }
    }

    /// What a program gave. `declared` is the type that the model declares for it, and `given` what the program was given: memory that
    /// is part of that, or of the program itself, is the caller's only as a copy.
    pub fn of_result(value: &Any, declared: &str, given: &[Content]) -> Result<Content> {
        if let Some(tensor) = value.as_tensor() {
            let is_shared = tensor_is_shared(value) || given.iter().any(|content| content.shares(tensor));
            let own = if is_shared { copied(tensor)? } else { tensor.clone() };
            return Ok(Content::Numbers(Arc::new(Numbers::of_tensor(own)?)));
        }
        if let Some(texts) = value.downcast_ref::<TextTensor>() {
            return Ok(Content::Texts(Arc::new(Texts::of_tensor(texts))));
        }
        if value.is_none() {
            return Ok(Content::Nothing);
        }
        if let Ok(map) = value.to::<Map>() {
            return map_result(&map, declared);
        }
        if let Ok(parts) = value.to::<Array>() {
            let inner = inside(declared, "seq(").unwrap_or_default();
            let parts = parts.iter().map(|part| Content::of_result(part, inner, given)).collect::<Result<_>>()?;
            return Ok(Content::Sequence(Arc::new(parts)));
        }
        let element = inside(declared, "tensor(").and_then(Element::named);
        match element {
            Some(element) => scalars(std::slice::from_ref(value), element, &[]),
            None => {
                Err(not_here(format!("a program gave a value of kind {}, which ONNX does not have", value.type_key())))
            }
        }
    }

    fn shares(&self, tensor: &Tensor) -> bool {
        match self {
            Content::Numbers(numbers) => numbers.shares(tensor),
            Content::Sequence(parts) => parts.iter().any(|part| part.shares(tensor)),
            Content::Map(parts) => parts.iter().any(|part| part.shares(tensor)),
            Content::Texts(_) | Content::Nothing => false,
        }
    }

    /// The shape, of a tensor.
    pub fn shape(&self) -> Option<&[i64]> {
        match self {
            Content::Numbers(numbers) => Some(&numbers.shape),
            Content::Texts(texts) => Some(&texts.shape),
            _ => None,
        }
    }

    /// The type of the elements, of a tensor.
    pub fn element(&self) -> Option<Element> {
        match self {
            Content::Numbers(numbers) => Some(numbers.element),
            Content::Texts(_) => Element::named("string"),
            _ => None,
        }
    }

    /// What it is, in words of operator definitions.
    pub fn type_name(&self) -> String {
        match self {
            Content::Numbers(_) | Content::Texts(_) => format!("tensor({})", self.element().map_or("", |e| e.name)),
            Content::Sequence(parts) => {
                format!("seq({})", parts.first().map_or_else(|| "tensor(float)".into(), Content::type_name))
            }
            Content::Map(parts) => {
                format!("map({},{})", parts[0].element().map_or("", |e| e.name), parts[1].type_name())
            }
            Content::Nothing => "optional".into(),
        }
    }

    /// Takes what another value holds, in its own memory.
    pub fn fill(&self, from: &Content) -> Result<()> {
        match (self, from) {
            (Content::Numbers(here), Content::Numbers(there)) => here.fill(there),
            (Content::Texts(here), Content::Texts(there)) if here.shape == there.shape => {
                if !Arc::ptr_eq(here, there) {
                    let texts = there.cells().clone();
                    *here.cells() = texts;
                }
                Ok(())
            }
            (Content::Texts(here), Content::Texts(there)) => {
                let (there, here) = (&there.shape, &here.shape);
                Err(invalid(format!("the output has the shape {there:?}, and the value given for it {here:?}")))
            }
            _ => {
                let (there, here) = (from.type_name(), self.type_name());
                Err(invalid(format!(
                    "the output is a {there}, and the value given for it a {here}; give none, and it is made"
                )))
            }
        }
    }
}

/// What stands in a type's parentheses.
pub fn inside<'a>(type_name: &'a str, head: &str) -> Option<&'a str> {
    type_name.strip_prefix(head)?.strip_suffix(')')
}

/// Whether somebody else holds the tensor: a program its constants, a caller what it gave.
fn tensor_is_shared(value: &Any) -> bool {
    value.as_object().is_some_and(|object| object.header().strong_count() > 1)
}

fn numbers_argument(numbers: &Arc<Numbers>) -> Result<Any> {
    if let Owner::Runtime(tensor) = &numbers.owner {
        return Ok(tensor.clone().into());
    }
    if numbers.bytes > 0 && !(numbers.data as usize).is_multiple_of(ALIGNMENT) {
        return Ok(Tensor::from_bytes(numbers.as_bytes(), &numbers.shape, numbers.dtype)?.into());
    }
    let owner = Arc::clone(numbers);
    // SAFETY: the memory has the elements for as long as its owner lives, which the tensor keeps.
    let tensor = unsafe { Tensor::from_parts(numbers.data, &numbers.shape, numbers.dtype, Device::cpu(0), 0, owner)? };
    Ok(tensor.into())
}

/// Keys and values of a map, one by one.
fn entries_of(content: &Content) -> Result<Vec<Any>> {
    match content {
        Content::Texts(texts) => {
            let argument = texts.argument()?;
            let texts = argument.downcast_ref::<TextTensor>().map(|texts| texts.texts.to_vec());
            Ok(texts.unwrap_or_default())
        }
        Content::Numbers(numbers) => {
            let bytes = numbers.as_bytes();
            let each = |size: usize, read: fn(&[u8]) -> Any| bytes.chunks_exact(size).map(read).collect();
            match numbers.element.name {
                "int64" => Ok(each(8, |b| i64::from_ne_bytes(b.try_into().unwrap_or_default()).into())),
                "float" => Ok(each(4, |b| f64::from(f32::from_ne_bytes(b.try_into().unwrap_or_default())).into())),
                "double" => Ok(each(8, |b| f64::from_ne_bytes(b.try_into().unwrap_or_default()).into())),
                other => {
                    Err(not_here(format!("maps of {other} are not supported; int64, float, double and texts are")))
                }
            }
        }
        _ => Err(invalid("the keys and the values of a map are tensors with one axis")),
    }
}

fn map_argument(keys: &Content, values: &Content) -> Result<Any> {
    Ok(Map::from_iter(entries_of(keys)?.into_iter().zip(entries_of(values)?)).into())
}

fn map_result(map: &Map, declared: &str) -> Result<Content> {
    let (keys, values): (Vec<Any>, Vec<Any>) = map.iter().map(|(key, value)| (key.clone(), value.clone())).unzip();
    let inner = inside(declared, "map(").and_then(|types| types.split_once(','));
    let (key, value) = inner.unwrap_or(("", ""));
    let key = Element::named(key).or_else(|| guessed(&keys));
    let value = inside(value, "tensor(").and_then(Element::named).or_else(|| guessed(&values));
    let (Some(key), Some(value)) = (key, value) else {
        return Err(not_here(format!("a map of the type {declared} is not supported")));
    };
    let shape = [i64::try_from(keys.len()).unwrap_or(i64::MAX)];
    Ok(Content::Map(Arc::new([scalars(&keys, key, &shape)?, scalars(&values, value, &shape)?])))
}

/// The type of the elements of a map whose type is not declared.
fn guessed(values: &[Any]) -> Option<Element> {
    let first = values.first()?;
    Element::named(match (first.as_str(), first.as_int()) {
        (Some(_), _) => "string",
        (None, Some(_)) => "int64",
        (None, None) => "float",
    })
}

/// A tensor of values that stand by themselves.
fn scalars(values: &[Any], element: Element, shape: &[i64]) -> Result<Content> {
    let unfit = || {
        Status::new(Code::RuntimeException, format!("a program gave what is no {} where one is declared", element.name))
    };
    if element.is_text() {
        let texts = values.iter().map(|value| Some(value.as_str()?.as_bytes().to_vec())).collect::<Option<Vec<_>>>();
        let cells = Mutex::new(texts.ok_or_else(unfit)?);
        return Ok(Content::Texts(Arc::new(Texts { shape: shape.to_vec(), cells })));
    }
    let float = |value: &Any| value.as_float().or_else(|| value.as_int().map(|int| int as f64));
    let bytes = |value: &Any| -> Option<Vec<u8>> {
        Some(match element.name {
            "float" => (float(value)? as f32).to_ne_bytes().to_vec(),
            "double" => float(value)?.to_ne_bytes().to_vec(),
            "int64" => value.as_int()?.to_ne_bytes().to_vec(),
            "int32" => i32::try_from(value.as_int()?).ok()?.to_ne_bytes().to_vec(),
            "bool" => vec![u8::from(value.as_int()? != 0)],
            _ => return None,
        })
    };
    let data = values.iter().map(bytes).collect::<Option<Vec<_>>>().ok_or_else(unfit)?.concat();
    let dtype = element.dtype().ok_or_else(unfit)?;
    Ok(Content::Numbers(Arc::new(Numbers::of_tensor(Tensor::from_bytes(&data, shape, dtype)?)?)))
}
