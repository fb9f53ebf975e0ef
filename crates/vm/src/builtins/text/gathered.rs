//! Several tensors of texts as one, and one as several.

use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Ref, Shape, Tensor};

use super::super::rows::rows_of;
use super::{Args, Builtin, Table, TextTensor, named};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("relaxide.vm.text_stack", stack),
    Builtin::plain("relaxide.vm.text_concat", concat),
    Builtin::plain("relaxide.vm.texts_each", each),
];

/// The tensors of texts among values.
fn tensors<'a>(args: &Args<'_, '_>, values: impl IntoIterator<Item = &'a Any>) -> Result<Vec<Ref<TextTensor>>, Error> {
    let one = |(i, value): (usize, &Any)| {
        let view: AnyView<'_> = value.as_view();
        let found = view.downcast_ref::<TextTensor>().cloned();
        found.ok_or_else(|| {
            args.error(ErrorKind::TypeError, format_args!("value {i} is {}, not a tensor of texts", view.type_key()))
        })
    };
    values.into_iter().enumerate().map(one).collect()
}

/// `(rows, shape, from the end)`: one tensor of rows of texts, along a new first dimension. Where there are none, they would have
/// `shape`.
fn stack(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let values = rows_of(args, 0)?.take_values()?;
    let shape: Shape = args.get(1, "shape")?;
    let mut rows = tensors(args, &values)?;
    if args.get::<bool>(2, "from the end")? {
        rows.reverse();
    }
    let row = rows.first().map_or_else(|| shape.to_vec(), |first| first.shape.to_vec());
    if let Some(i) = rows.iter().position(|other| other.shape[..] != row[..]) {
        let message = format_args!("row {i} has shape {:?}, and others have {row:?}", rows[i].shape);
        return Err(args.error(ErrorKind::ValueError, message));
    }
    let dims: Vec<i64> = std::iter::once(rows.len() as i64).chain(row).collect();
    let texts = rows.iter().flat_map(|row| row.texts.iter().cloned()).collect();
    TextTensor::new(&dims, Array::from_vec(texts)).map(Any::from)
}

/// `(sequence, axis, new)`: the tensors of texts of a sequence as one, along an axis of theirs or, if `new`, one more.
fn concat(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let sequence: Array = args.get(0, "sequence")?;
    let axis: i64 = args.get(1, "axis")?;
    let new: bool = args.get(2, "new")?;
    let parts = tensors(args, sequence.iter())?;
    let Some(first) = parts.first() else {
        return Err(args.error(ErrorKind::ValueError, format_args!("the sequence is empty")));
    };
    let rank = first.shape.len() + usize::from(new);
    let from_front = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    let axis = usize::try_from(from_front)
        .ok()
        .filter(|at| *at < rank)
        .ok_or_else(|| args.error(ErrorKind::IndexError, format_args!("axis {axis} is not one of {rank}")))?;
    let shape_of = |part: &TextTensor| {
        let mut shape = part.shape.to_vec();
        if new {
            shape.insert(axis.min(shape.len()), 1);
        }
        shape
    };
    let mut result = shape_of(first);
    result[axis] = 0;
    for (i, part) in parts.iter().enumerate() {
        let shape = shape_of(part);
        if shape.len() != rank || (0..rank).any(|a| a != axis && shape[a] != result[a]) {
            let (found, wanted) = (&part.shape, &first.shape);
            let message =
                format_args!("value {i} has shape {found:?}, which does not fit {wanted:?} along axis {axis}");
            return Err(args.error(ErrorKind::ValueError, message));
        }
        result[axis] += shape[axis];
    }
    let size = |dims: &[i64]| dims.iter().map(|d| usize::try_from(*d).unwrap_or(0)).product::<usize>();
    let (outer, inner) = (size(&result[..axis]), size(&result[axis + 1..]));
    let mut texts = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for at in 0..outer {
        for part in &parts {
            let length = usize::try_from(shape_of(part)[axis]).unwrap_or(0) * inner;
            texts.extend(part.texts.iter().skip(at * length).take(length).cloned());
        }
    }
    TextTensor::new(&result, Array::from_vec(texts)).map(Any::from)
}

/// `(indices, table)`: for each tensor of a sequence the texts of a table that its integers name.
fn each(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let indices: Array = args.get(0, "indices")?;
    let table = Table::of(args, 1)?;
    let mut made = Vec::with_capacity(indices.len());
    for index in indices.iter() {
        let index: Tensor = index.as_view().to()?;
        made.push(Any::from(named(args, &index, &table)?));
    }
    Ok(Array::from_vec(made).into())
}
