//! Types of values: [`TypeInfo`], and for tensors [`TensorInfo`].

use std::ffi::{CString, c_char, c_int};

use relaxide::onnx::proto::{Dimension, DimensionValue, TensorTypeProto, TypeKind, TypeProto};

use crate::border::{array, array_mut, c_string, put, text};
use crate::content::{Content, count, inside};
use crate::element::Element;
use crate::handle::{Handle, HandleKind, at, at_mut, put_new, release};
use crate::status::{OrtStatus, Result, guard, invalid, quietly};

/// Element type and shape of a tensor.
#[derive(Clone, Debug, Default)]
pub struct TensorInfo {
    element: c_int,
    /// Minus one where a length is not known.
    dims: Vec<i64>,
    /// Empty where a dimension has no name.
    names: Vec<CString>,
    /// Whether anything is said of the dimensions.
    has_rank: bool,
}

/// The same for C.
pub type OrtTensorTypeAndShapeInfo = Handle<TensorInfo>;

impl HandleKind for TensorInfo {
    const NAME: &str = "OrtTensorTypeAndShapeInfo";
}

/// The type of a sequence's parts.
#[derive(Clone, Debug)]
pub struct SequenceInfo(TypeInfo);

/// The same for C.
pub type OrtSequenceTypeInfo = Handle<SequenceInfo>;

impl HandleKind for SequenceInfo {
    const NAME: &str = "OrtSequenceTypeInfo";
}

/// The types of a map's keys and values.
#[derive(Clone, Debug)]
pub struct MapInfo {
    key: c_int,
    value: TypeInfo,
}

/// The same for C.
pub type OrtMapTypeInfo = Handle<MapInfo>;

impl HandleKind for MapInfo {
    const NAME: &str = "OrtMapTypeInfo";
}

/// The type of what an optional value may hold.
#[derive(Clone, Debug)]
pub struct OptionalInfo(TypeInfo);

/// The same for C.
pub type OrtOptionalTypeInfo = Handle<OptionalInfo>;

impl HandleKind for OptionalInfo {
    const NAME: &str = "OrtOptionalTypeInfo";
}

/// A type. What is inside it is lent out, so each part is a handle that stays where it is.
#[derive(Clone, Debug)]
pub enum TypeInfo {
    /// Not known.
    Unknown,
    /// A tensor.
    Tensor(Box<OrtTensorTypeAndShapeInfo>),
    /// A sequence.
    Sequence(Box<OrtSequenceTypeInfo>),
    /// A map.
    Map(Box<OrtMapTypeInfo>),
    /// A sparse tensor.
    Sparse,
    /// A value that may be missing.
    Optional(Box<OrtOptionalTypeInfo>),
}

/// The same for C.
pub type OrtTypeInfo = Handle<TypeInfo>;

impl HandleKind for TypeInfo {
    const NAME: &str = "OrtTypeInfo";
}

impl TensorInfo {
    /// That of a tensor.
    pub fn new(element: c_int, dims: &[i64]) -> TensorInfo {
        TensorInfo { element, dims: dims.to_vec(), names: vec![CString::default(); dims.len()], has_rank: true }
    }

    fn of_proto(proto: &TensorTypeProto, fixed: &dyn Fn(&str) -> Option<i64>) -> TensorInfo {
        let dim = |dim: &Dimension| match &dim.value {
            Some(DimensionValue::Value(length)) if *length >= 0 => (*length, CString::default()),
            Some(DimensionValue::Param(name)) => match fixed(name) {
                Some(length) => (length, CString::default()),
                None => (-1, c_string(name)),
            },
            _ => (-1, CString::default()),
        };
        let (dims, names) = proto.shape.iter().flat_map(|shape| &shape.dim).map(dim).unzip();
        // ONNX Runtime numbers elements as ONNX does, but for the newest.
        let element = Element::numbered(proto.elem_type).map_or(0, |element| element.number);
        TensorInfo { element, dims, names, has_rank: proto.shape.is_some() }
    }
}

impl TypeInfo {
    /// The type that a file writes. `fixed` gives lengths of named dimensions.
    pub fn of_proto(proto: &TypeProto, fixed: &dyn Fn(&str) -> Option<i64>) -> TypeInfo {
        let part = |proto: &Option<Box<TypeProto>>| match proto {
            Some(proto) => TypeInfo::of_proto(proto, fixed),
            None => TypeInfo::Unknown,
        };
        match &proto.value {
            Some(TypeKind::Tensor(tensor)) => {
                TypeInfo::Tensor(Box::new(Handle::new(TensorInfo::of_proto(tensor, fixed))))
            }
            Some(TypeKind::Sequence(of)) => {
                TypeInfo::Sequence(Box::new(Handle::new(SequenceInfo(part(&of.elem_type)))))
            }
            Some(TypeKind::Optional(of)) => {
                TypeInfo::Optional(Box::new(Handle::new(OptionalInfo(part(&of.elem_type)))))
            }
            Some(TypeKind::Map(map)) => {
                TypeInfo::Map(Box::new(Handle::new(MapInfo { key: map.key_type, value: part(&map.value_type) })))
            }
            Some(TypeKind::SparseTensor(_)) => TypeInfo::Sparse,
            None => TypeInfo::Unknown,
        }
    }

    /// The type of a name of operator definitions, without shapes.
    pub fn named(name: &str) -> TypeInfo {
        if let Some(element) = inside(name, "tensor(") {
            let element = Element::named(element).map_or(0, |element| element.number);
            let info = TensorInfo { element, ..TensorInfo::default() };
            return TypeInfo::Tensor(Box::new(Handle::new(info)));
        }
        if let Some(part) = inside(name, "seq(") {
            return TypeInfo::Sequence(Box::new(Handle::new(SequenceInfo(TypeInfo::named(part)))));
        }
        if let Some((key, value)) = inside(name, "map(").and_then(|types| types.split_once(',')) {
            let key = Element::named(key).map_or(0, |element| element.number);
            return TypeInfo::Map(Box::new(Handle::new(MapInfo { key, value: TypeInfo::named(value) })));
        }
        TypeInfo::Unknown
    }

    /// The type of a value.
    pub fn of_value(value: &Content) -> TypeInfo {
        match (value.element(), value.shape()) {
            (Some(element), Some(shape)) => {
                TypeInfo::Tensor(Box::new(Handle::new(TensorInfo::new(element.number, shape))))
            }
            _ => TypeInfo::named(&value.type_name()),
        }
    }

    /// Its number in ONNX Runtime.
    fn number(&self) -> c_int {
        match self {
            TypeInfo::Unknown => 0,
            TypeInfo::Tensor(_) => 1,
            TypeInfo::Sequence(_) => 2,
            TypeInfo::Map(_) => 3,
            TypeInfo::Sparse => 5,
            TypeInfo::Optional(_) => 6,
        }
    }
}

/// The number of a value's type in ONNX Runtime.
pub fn number_of(value: &Content) -> c_int {
    match value {
        Content::Numbers(_) | Content::Texts(_) => 1,
        Content::Sequence(_) => 2,
        Content::Map(_) => 3,
        Content::Nothing => 6,
    }
}

pub unsafe extern "C" fn onnx_type(info: *const OrtTypeInfo, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "type info")?.number()) })
}

pub unsafe extern "C" fn denotation(
    info: *const OrtTypeInfo,
    out: *mut *const c_char,
    length: *mut usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. Denotations are not read from models.
    guard(|| unsafe {
        at(info, "type info")?;
        put(length, 0)?;
        put(out, c"".as_ptr())
    })
}

pub unsafe extern "C" fn as_tensor(
    info: *const OrtTypeInfo,
    out: *mut *const OrtTensorTypeAndShapeInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let found = match at(info, "type info")? {
            TypeInfo::Tensor(info) => &raw const **info,
            _ => std::ptr::null(),
        };
        put(out, found)
    })
}

pub unsafe extern "C" fn as_sequence(info: *const OrtTypeInfo, out: *mut *const OrtSequenceTypeInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let found = match at(info, "type info")? {
            TypeInfo::Sequence(info) => &raw const **info,
            _ => std::ptr::null(),
        };
        put(out, found)
    })
}

pub unsafe extern "C" fn as_map(info: *const OrtTypeInfo, out: *mut *const OrtMapTypeInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let found = match at(info, "type info")? {
            TypeInfo::Map(info) => &raw const **info,
            _ => std::ptr::null(),
        };
        put(out, found)
    })
}

pub unsafe extern "C" fn as_optional(info: *const OrtTypeInfo, out: *mut *const OrtOptionalTypeInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let found = match at(info, "type info")? {
            TypeInfo::Optional(info) => &raw const **info,
            _ => std::ptr::null(),
        };
        put(out, found)
    })
}

pub unsafe extern "C" fn map_key_type(info: *const OrtMapTypeInfo, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "map type info")?.key) })
}

pub unsafe extern "C" fn map_value_type(info: *const OrtMapTypeInfo, out: *mut *mut OrtTypeInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, at(info, "map type info")?.value.clone()) })
}

pub unsafe extern "C" fn sequence_element_type(
    info: *const OrtSequenceTypeInfo,
    out: *mut *mut OrtTypeInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, at(info, "sequence type info")?.0.clone()) })
}

pub unsafe extern "C" fn optional_contained_type(
    info: *const OrtOptionalTypeInfo,
    out: *mut *mut OrtTypeInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, at(info, "optional type info")?.0.clone()) })
}

pub unsafe extern "C" fn release_type(info: *mut OrtTypeInfo) {
    // SAFETY: the interface's contract.
    unsafe { release(info) }
}

pub unsafe extern "C" fn release_map(info: *mut OrtMapTypeInfo) {
    // SAFETY: the interface's contract.
    unsafe { release(info) }
}

pub unsafe extern "C" fn release_sequence(info: *mut OrtSequenceTypeInfo) {
    // SAFETY: the interface's contract.
    unsafe { release(info) }
}

pub unsafe extern "C" fn create_tensor_info(out: *mut *mut OrtTensorTypeAndShapeInfo) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, TensorInfo::default()) })
}

pub unsafe extern "C" fn set_element_type(info: *mut OrtTensorTypeAndShapeInfo, element: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        at_mut(info, "tensor info")?.element = element;
        Ok(())
    })
}

pub unsafe extern "C" fn set_dimensions(
    info: *mut OrtTensorTypeAndShapeInfo,
    dims: *const i64,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let info = at_mut(info, "tensor info")?;
        *info = TensorInfo::new(info.element, array(dims, count, "dim_values")?);
        Ok(())
    })
}

pub unsafe extern "C" fn set_symbolic_dimensions(
    info: *mut OrtTensorTypeAndShapeInfo,
    names: *const *const c_char,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let info = at_mut(info, "tensor info")?;
        let given = array(names, count, "dim_params")?;
        if given.len() != info.dims.len() {
            return Err(invalid(format!("there are {} dimensions and {count} names of them", info.dims.len())));
        }
        let name = |name: &*const c_char| if name.is_null() { Ok("") } else { text(*name, "dim_params") };
        info.names = given.iter().map(name).map(|name| name.map(c_string)).collect::<Result<_>>()?;
        Ok(())
    })
}

pub unsafe extern "C" fn element_type(info: *const OrtTensorTypeAndShapeInfo, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "tensor info")?.element) })
}

pub unsafe extern "C" fn dimension_count(info: *const OrtTensorTypeAndShapeInfo, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "tensor info")?.dims.len()) })
}

pub unsafe extern "C" fn dimensions(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut i64,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. As many are given as there is room for.
    guard(|| unsafe {
        let dims = &at(info, "tensor info")?.dims;
        let place = array_mut(out, count.min(dims.len()), "dim_values")?;
        place.copy_from_slice(&dims[..place.len()]);
        Ok(())
    })
}

pub unsafe extern "C" fn symbolic_dimensions(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut *const c_char,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. As many are given as there is room for.
    guard(|| unsafe {
        let names = &at(info, "tensor info")?.names;
        let place = array_mut(out, count.min(names.len()), "dim_params")?;
        place.iter_mut().zip(names).for_each(|(place, name)| *place = name.as_ptr());
        Ok(())
    })
}

pub unsafe extern "C" fn element_count(info: *const OrtTensorTypeAndShapeInfo, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, count(&at(info, "tensor info")?.dims)?) })
}

pub unsafe extern "C" fn has_shape(info: *const OrtTensorTypeAndShapeInfo) -> bool {
    // SAFETY: the interface's contract.
    quietly(false, || unsafe { at(info, "tensor info").is_ok_and(|info| info.has_rank) })
}

pub unsafe extern "C" fn release_tensor_info(info: *mut OrtTensorTypeAndShapeInfo) {
    // SAFETY: the interface's contract.
    unsafe { release(info) }
}
