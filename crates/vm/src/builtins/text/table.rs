//! [`Table`]: a list of texts as an argument of a builtin.
//!
//! Texts that a program computes with come in a tensor of texts. Those that a model's file holds would be many arguments; they
//! come as a tuple of two constants, the bytes of all texts and where each begins, which nothing has to be made of first.

use relaxide_ffi::{Any, Array, DataType, Error, ErrorKind, Ref, Tensor};
use relaxide_runtime::device;

use super::{Args, TextTensor};

/// A list of texts.
pub(super) enum Table {
    /// In a tensor of texts.
    Made(Ref<TextTensor>),
    /// In bytes: text `i` is what lies between bounds `i` and `i + 1`.
    Packed { bytes: Vec<u8>, bounds: Vec<usize> },
}

impl Table {
    pub(super) fn of(args: &Args<'_, '_>, index: usize) -> Result<Table, Error> {
        let view = args.view(index, "texts")?;
        if let Some(tensor) = view.downcast_ref::<TextTensor>() {
            return Ok(Table::Made(tensor.clone()));
        }
        let wrong = || args.error(ErrorKind::TypeError, format_args!("argument {index} is no list of texts"));
        let pair: Array = view.to().map_err(|_| wrong())?;
        let [bytes, bounds] = pair.as_slice() else { return Err(wrong()) };
        let (bytes, bounds) = (bytes.to::<Tensor>()?, bounds.to::<Tensor>()?);
        if bytes.dtype() != DataType::uint(8) || bounds.dtype() != DataType::int(64) {
            return Err(wrong());
        }
        // Constants of a program for a device are there.
        let (bytes, bounds) = (device::on_host(&bytes)?, device::on_host(&bounds)?);
        let bytes = bytes.to_bytes()?;
        let bounds = bounds.to_vec::<i64>()?.into_iter().map(|bound| usize::try_from(bound).unwrap_or(usize::MAX));
        let bounds: Vec<usize> = bounds.collect();
        let texts = || bounds.windows(2).map(|pair| bytes.get(pair[0]..pair[1]));
        if bounds.is_empty() || !texts().all(|text| text.is_some_and(|text| std::str::from_utf8(text).is_ok())) {
            return Err(wrong());
        }
        Ok(Table::Packed { bytes, bounds })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Table::Made(tensor) => tensor.len(),
            Table::Packed { bounds, .. } => bounds.len().saturating_sub(1),
        }
    }

    /// A text as it is read.
    fn text(&self, place: usize) -> Option<&str> {
        match self {
            Table::Made(tensor) => tensor.texts.get(place)?.as_str(),
            Table::Packed { bytes, bounds } => {
                let text = bytes.get(*bounds.get(place)?..*bounds.get(place.checked_add(1)?)?)?;
                std::str::from_utf8(text).ok()
            }
        }
    }

    /// A text as a value.
    pub(super) fn get(&self, place: usize) -> Option<Any> {
        match self {
            Table::Made(tensor) => tensor.texts.get(place).cloned(),
            Table::Packed { .. } => self.text(place).map(Any::from),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|place| self.text(place).unwrap_or_default())
    }

    /// The place of a text in a list that is sorted.
    pub(super) fn search(&self, text: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.text(middle)?.cmp(text) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}
