//! [`TextTensor`]: a tensor whose elements are texts.
//!
//! A tensor of numbers is memory that kernels read; texts are objects of any length, so a tensor of them is a shape and a list.
//! Programs compute with places in such lists, which are tensors of integers; the texts themselves are looked at by the
//! builtins `relaxide.vm.text_*` only. Callers may hand a program arrays of texts (in arrays, one level for each axis) instead.

use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Object, Ref, Shape};

/// A tensor of texts.
#[derive(Object)]
#[object(key = "relaxide.TextTensor")]
pub struct TextTensor {
    /// The lengths of its axes.
    pub shape: Shape,
    /// The texts, row by row.
    pub texts: Array,
}

impl TextTensor {
    /// A tensor of a shape; there must be as many texts as it has elements.
    pub fn new(shape: &[i64], texts: Array) -> Result<Ref<TextTensor>, Error> {
        let count = shape.iter().try_fold(1i64, |n, dim| n.checked_mul(*dim).filter(|_| *dim >= 0));
        if count != i64::try_from(texts.len()).ok() {
            let message = format!("{} texts do not fill a tensor of shape {shape:?}", texts.len());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        if let Some(other) = texts.iter().find(|text| text.as_view().as_str().is_none()) {
            let kind = other.type_key();
            return Err(Error::new(ErrorKind::TypeError, format!("a tensor of texts has an element of kind {kind}")));
        }
        Ok(Ref::new(TextTensor { shape: Shape::new(shape), texts }))
    }

    /// The tensor that a caller's value stands for: such a tensor, a text, or arrays of texts.
    pub fn of_value(value: AnyView<'_>, rank: usize) -> Result<Ref<TextTensor>, Error> {
        if let Some(tensor) = value.downcast_ref::<TextTensor>() {
            let found = tensor.shape.len();
            if found != rank {
                let message = format!("a tensor of texts has {found} axes, where {rank} are expected");
                return Err(Error::new(ErrorKind::ValueError, message));
            }
            return Ok(tensor.clone());
        }
        let (mut shape, mut level) = (Vec::new(), vec![value.to_owned()]);
        for _ in 0..rank {
            let mut next = Vec::new();
            let mut size = None;
            for item in &level {
                let Ok(items) = item.to::<Array>() else { return Err(no_texts(item.as_view(), rank)) };
                if *size.get_or_insert(items.len()) != items.len() {
                    let message = "the arrays of a tensor of texts have different lengths";
                    return Err(Error::new(ErrorKind::ValueError, message));
                }
                next.extend(items.iter().cloned());
            }
            shape.push(i64::try_from(size.unwrap_or(0)).unwrap_or(i64::MAX));
            level = next;
        }
        match level.iter().find(|item| item.as_view().as_str().is_none()) {
            Some(other) => Err(no_texts(other.as_view(), rank)),
            None => TextTensor::new(&shape, Array::from_vec(level)),
        }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The texts, row by row.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        // Made by `new`, which looks at each; by reflection, whatever else is no text counts as an empty one.
        self.texts.iter().map(|text| text.as_str().unwrap_or_default())
    }
}

#[cold]
fn no_texts(value: AnyView<'_>, rank: usize) -> Error {
    let found = value.as_tensor().map_or_else(|| value.type_key().to_owned(), |tensor| format!("{tensor:?}"));
    let message = format!("a tensor of texts with {rank} axes is expected (or arrays of texts), not {found}");
    Error::new(ErrorKind::TypeError, message)
}

impl std::fmt::Debug for TextTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 8;
        let more = if self.len() > SHOWN { ", …" } else { "" };
        let shown: Vec<String> = self.iter().take(SHOWN).map(|text| format!("{text:?}")).collect();
        write!(f, "texts {:?} [{}{more}]", self.shape.as_slice(), shown.join(", "))
    }
}

/// Texts of a list, as a tensor with one axis.
pub(crate) fn listed<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Ref<TextTensor>, Error> {
    let texts = Array::from_vec(texts.into_iter().map(Any::from).collect());
    TextTensor::new(&[i64::try_from(texts.len()).unwrap_or(i64::MAX)], texts)
}
