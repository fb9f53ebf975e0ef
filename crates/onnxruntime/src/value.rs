//! `OrtValue`: making values and looking into them.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use crate::border::{array, put};
use crate::content::{Content, Numbers, Texts};
use crate::element::{Element, TEXT};
use crate::handle::{Handle, HandleKind, at, put_new, release};
use crate::memory::{OrtAllocator, OrtMemoryInfo, check_host, host};
use crate::status::{Code, OrtStatus, Result, Status, guard, invalid, not_here};
use crate::type_info::{OrtTensorTypeAndShapeInfo, OrtTypeInfo, TensorInfo, TypeInfo, number_of};

/// A value for C.
pub type OrtValue = Handle<Content>;

impl HandleKind for Content {
    const NAME: &str = "OrtValue";
}

/// The numbers of `ONNXType` that values are made of.
const SEQUENCE: c_int = 2;
const MAP: c_int = 3;

pub unsafe extern "C" fn create_tensor(
    allocator: *mut OrtAllocator,
    shape: *const i64,
    rank: usize,
    element: c_int,
    out: *mut *mut OrtValue,
) -> *mut OrtStatus {
    guard(|| {
        let element = Element::numbered(element)?;
        // SAFETY: the interface's contract.
        let shape = unsafe { array(shape, rank, "shape")? };
        let content = match element.number {
            TEXT => Content::Texts(Arc::new(Texts::empty(shape)?)),
            // SAFETY: as above.
            _ => Content::Numbers(Arc::new(unsafe { Numbers::allocated(allocator, shape, element)? })),
        };
        // SAFETY: as above.
        unsafe { put_new(out, content) }
    })
}

pub unsafe extern "C" fn create_tensor_with_data(
    info: *const OrtMemoryInfo,
    data: *mut c_void,
    bytes: usize,
    shape: *const i64,
    rank: usize,
    element: c_int,
    out: *mut *mut OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        check_host(info)?;
        let numbers = Numbers::borrowed(data, bytes, array(shape, rank, "shape")?, Element::numbered(element)?)?;
        put_new(out, Content::Numbers(Arc::new(numbers)))
    })
}

pub unsafe extern "C" fn create_tensor_with_deleter(
    deleter: *mut OrtAllocator,
    data: *mut c_void,
    bytes: usize,
    shape: *const i64,
    rank: usize,
    element: c_int,
    out: *mut *mut OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        if deleter.is_null() {
            return Err(invalid("the deleter is null; an allocator whose Free frees the data is expected"));
        }
        crate::border::check_place(out)?;
        let numbers = Numbers::taken(data, bytes, array(shape, rank, "shape")?, Element::numbered(element)?, deleter)?;
        put_new(out, Content::Numbers(Arc::new(numbers)))
    })
}

pub unsafe extern "C" fn release_value(value: *mut OrtValue) {
    // SAFETY: the interface's contract.
    unsafe { release(value) }
}

pub unsafe extern "C" fn is_tensor(value: *const OrtValue, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, c_int::from(at(value, "value")?.shape().is_some())) })
}

pub unsafe extern "C" fn is_sparse(value: *const OrtValue, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        at(value, "value")?;
        put(out, 0)
    })
}

pub unsafe extern "C" fn has_value(value: *const OrtValue, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, c_int::from(!matches!(at(value, "value")?, Content::Nothing))) })
}

pub unsafe extern "C" fn value_type(value: *const OrtValue, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, number_of(at(value, "value")?)) })
}

pub unsafe extern "C" fn type_info(value: *const OrtValue, out: *mut *mut OrtTypeInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, TypeInfo::of_value(at(value, "value")?)) })
}

/// The numbers of a value that is a tensor of them.
///
/// # Safety
/// As for [`at`].
unsafe fn numbers<'a>(value: *const OrtValue) -> Result<&'a Arc<Numbers>> {
    // SAFETY: the caller's promise.
    match unsafe { at(value, "value")? } {
        Content::Numbers(numbers) => Ok(numbers),
        Content::Texts(_) => Err(invalid("the value is a tensor of texts: use GetStringTensorContent")),
        other => Err(invalid(format!("the value is a {}, and a tensor is expected", other.type_name()))),
    }
}

/// The element type and shape of a value that is a tensor.
///
/// # Safety
/// As for [`at`].
unsafe fn described<'a>(value: *const OrtValue) -> Result<(c_int, &'a [i64])> {
    // SAFETY: the caller's promise.
    let content = unsafe { at(value, "value")? };
    match (content.element(), content.shape()) {
        (Some(element), Some(shape)) => Ok((element.number, shape)),
        _ => Err(invalid(format!("the value is a {}, and a tensor is expected", content.type_name()))),
    }
}

pub unsafe extern "C" fn tensor_info(
    value: *const OrtValue,
    out: *mut *mut OrtTensorTypeAndShapeInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let (element, shape) = described(value)?;
        put_new(out, TensorInfo::new(element, shape))
    })
}

pub unsafe extern "C" fn type_and_shape_reference(
    value: *const OrtValue,
    element: *mut c_int,
    dims: *mut *const i64,
    rank: *mut usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let (number, shape) = described(value)?;
        put(element, number)?;
        put(rank, shape.len())?;
        put(dims, if shape.is_empty() { std::ptr::null() } else { shape.as_ptr() })
    })
}

/// `GetTensorMutableData`, `GetTensorData`.
pub unsafe extern "C" fn tensor_data(value: *const OrtValue, out: *mut *mut c_void) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, numbers(value)?.data) })
}

pub unsafe extern "C" fn tensor_bytes(value: *const OrtValue, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, numbers(value)?.bytes) })
}

pub unsafe extern "C" fn tensor_memory_info(value: *const OrtValue, out: *mut *const OrtMemoryInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        described(value)?;
        put(out, host())
    })
}

pub unsafe extern "C" fn tensor_at(
    value: *mut OrtValue,
    location: *const i64,
    rank: usize,
    out: *mut *mut c_void,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let (numbers, location) = (numbers(value)?, array(location, rank, "location_values")?);
        let unit = numbers.element.dtype().filter(|dtype| !dtype.is_packed()).map(|dtype| dtype.bytes());
        let unit = unit.ok_or_else(|| not_here("TensorAt: elements of less than a byte have no address"))?;
        put(out, numbers.data.byte_add(place(&numbers.shape, location)? * unit))
    })
}

/// The number of an element.
fn place(shape: &[i64], location: &[i64]) -> Result<usize> {
    if location.len() != shape.len() {
        let (given, expected) = (location.len(), shape.len());
        return Err(invalid(format!("the location has {given} indices, and the tensor {expected} dimensions")));
    }
    let mut at = 0;
    for (index, length) in location.iter().zip(shape) {
        if !(0..*length).contains(index) {
            return Err(invalid(format!("invalid location {location:?} in a tensor of shape {shape:?}")));
        }
        at = at * length + index;
    }
    usize::try_from(at).map_err(|_| invalid("the location is negative"))
}

pub unsafe extern "C" fn copy_tensors(
    _env: *mut c_void,
    from: *const *const OrtValue,
    to: *const *mut OrtValue,
    _stream: *mut c_void,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let (from, to) = (array(from, count, "src_tensors")?, array(to, count, "dst_tensors")?);
        from.iter().zip(to).try_for_each(|(from, to)| at(*to, "dst_tensors")?.fill(at(*from, "src_tensors")?))
    })
}

fn no_parts(value: &Content) -> Status {
    let message = format!("a {} has no parts: a sequence or a map is expected", value.type_name());
    Status::new(Code::Fail, message)
}

pub unsafe extern "C" fn value_count(value: *const OrtValue, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let count = match at(value, "value")? {
            Content::Sequence(parts) => parts.len(),
            Content::Map(parts) => parts.len(),
            other => return Err(no_parts(other)),
        };
        put(out, count)
    })
}

pub unsafe extern "C" fn get_value(
    value: *const OrtValue,
    index: c_int,
    _allocator: *mut OrtAllocator,
    out: *mut *mut OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. Of a map, the keys are the first part and the values the second.
    guard(|| unsafe {
        let content = at(value, "value")?;
        let parts = match content {
            Content::Sequence(parts) => &parts[..],
            Content::Map(parts) => &parts[..],
            other => return Err(no_parts(other)),
        };
        let part = usize::try_from(index).ok().and_then(|index| parts.get(index));
        let part = part.ok_or_else(|| invalid(format!("there is no part {index} of {}", parts.len())))?;
        put_new(out, part.clone())
    })
}

pub unsafe extern "C" fn create_value(
    parts: *const *const OrtValue,
    count: usize,
    kind: c_int,
    out: *mut *mut OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let parts = array(parts, count, "in")?;
        if parts.is_empty() {
            return Err(invalid("a sequence or a map is made of values, and there are none"));
        }
        let parts: Vec<Content> = parts.iter().map(|part| at(*part, "in").cloned()).collect::<Result<_>>()?;
        put_new(out, composed(parts, kind)?)
    })
}

fn composed(parts: Vec<Content>, kind: c_int) -> Result<Content> {
    match kind {
        SEQUENCE => {
            let first = parts[0].type_name();
            if let Some(other) = parts.iter().find(|part| part.type_name() != first) {
                let other = other.type_name();
                return Err(invalid(format!("the parts of a sequence are of one type, not {first} and {other}")));
            }
            if matches!(parts[0], Content::Sequence(_) | Content::Nothing) {
                return Err(invalid(format!("a sequence is made of tensors or of maps, not of {first}")));
            }
            Ok(Content::Sequence(Arc::new(parts)))
        }
        MAP => {
            let pair: [Content; 2] = parts.try_into().map_err(|parts: Vec<Content>| {
                invalid(format!("a map is made of two tensors, keys and values, not of {} values", parts.len()))
            })?;
            let shapes = (pair[0].shape(), pair[1].shape());
            if shapes.0.is_none() || shapes.0 != shapes.1 || shapes.0.is_some_and(|shape| shape.len() != 1) {
                return Err(invalid(format!(
                    "keys and values of a map are tensors with one axis of one length, not {shapes:?}"
                )));
            }
            Ok(Content::Map(Arc::new(pair)))
        }
        _ => Err(not_here(format!("CreateValue makes sequences (2) and maps (3), not what is numbered {kind}"))),
    }
}

/// The texts of a value that is a tensor of them.
///
/// # Safety
/// As for [`at`].
unsafe fn texts<'a>(value: *const OrtValue) -> Result<&'a Arc<Texts>> {
    // SAFETY: the caller's promise.
    match unsafe { at(value, "value")? } {
        Content::Texts(texts) => Ok(texts),
        other => Err(invalid(format!("the value is a {}, and a tensor(string) is expected", other.type_name()))),
    }
}

fn no_text(index: usize, count: usize) -> Status {
    invalid(format!("element index is out of bounds: there is no text {index} of {count}"))
}

/// # Safety
/// `text` is null or ends with a NUL.
unsafe fn bytes_of(text: *const c_char) -> Result<Vec<u8>> {
    if text.is_null() {
        return Err(invalid("a text is null"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes().to_vec())
}

pub unsafe extern "C" fn fill_texts(value: *mut OrtValue, from: *const *const c_char, count: usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let texts = texts(value)?;
        let mut cells = texts.cells();
        if count != cells.len() {
            return Err(invalid(format!("{count} texts do not fill a tensor of shape {:?}", texts.shape)));
        }
        let given = array(from, count, "s")?.iter().map(|text| bytes_of(*text));
        *cells = given.collect::<Result<_>>()?;
        Ok(())
    })
}

pub unsafe extern "C" fn fill_text(value: *mut OrtValue, text: *const c_char, index: usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let mut cells = texts(value)?.cells();
        let count = cells.len();
        *cells.get_mut(index).ok_or_else(|| no_text(index, count))? = bytes_of(text)?;
        Ok(())
    })
}

pub unsafe extern "C" fn resized_text(
    value: *mut OrtValue,
    index: usize,
    length: usize,
    out: *mut *mut c_char,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. The caller writes to the buffer before anything else is done with the value.
    guard(|| unsafe {
        let mut cells = texts(value)?.cells();
        let count = cells.len();
        let cell = cells.get_mut(index).ok_or_else(|| no_text(index, count))?;
        let failed = |_| invalid(format!("there is no memory for a text of {length} bytes"));
        cell.try_reserve_exact(length.saturating_sub(cell.len())).map_err(failed)?;
        cell.resize(length, 0);
        put(out, cell.as_mut_ptr().cast())
    })
}

pub unsafe extern "C" fn texts_length(value: *const OrtValue, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, texts(value)?.cells().iter().map(Vec::len).sum()) })
}

pub unsafe extern "C" fn text_length(value: *const OrtValue, index: usize, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let cells = texts(value)?.cells();
        put(out, cells.get(index).ok_or_else(|| no_text(index, cells.len()))?.len())
    })
}

pub unsafe extern "C" fn get_text(
    value: *const OrtValue,
    size: usize,
    index: usize,
    out: *mut c_void,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let cells = texts(value)?.cells();
        let cell = cells.get(index).ok_or_else(|| no_text(index, cells.len()))?;
        if size < cell.len() {
            return Err(invalid(format!("the buffer has {size} bytes, and the text {}", cell.len())));
        }
        crate::border::array_mut(out.cast(), cell.len(), "s")?.copy_from_slice(cell);
        Ok(())
    })
}

pub unsafe extern "C" fn get_texts(
    value: *const OrtValue,
    out: *mut c_void,
    size: usize,
    offsets: *mut usize,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let cells = texts(value)?.cells();
        let total: usize = cells.iter().map(Vec::len).sum();
        if count != cells.len() {
            return Err(invalid(format!("there is room for {count} offsets, and there are {} texts", cells.len())));
        }
        if size < total {
            return Err(invalid(format!("the buffer has {size} bytes, and the texts {total}")));
        }
        let offsets = crate::border::array_mut(offsets, count, "offsets")?;
        let bytes = crate::border::array_mut(out.cast::<u8>(), total, "s")?;
        let mut end = 0;
        for (cell, offset) in cells.iter().zip(offsets) {
            *offset = end;
            bytes[end..end + cell.len()].copy_from_slice(cell);
            end += cell.len();
        }
        Ok(())
    })
}
