//! Lists that a program fills iteration by iteration, and the tensor that their rows make.
//!
//! A loop that gives a row in each iteration appends it to a list, which costs the same in every iteration, and joins the rows once.

use relaxide_ffi::{Any, Array, DataType, Device, Error, ErrorKind, List, Shape, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.list_new", list_new),
    Builtin::plain("vm.builtin.list_append", list_append),
    Builtin::plain("vm.builtin.list_array", list_array),
    Builtin::plain("vm.builtin.list_stack", list_stack),
];

/// `()`: a list without values.
fn list_new(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(0, 0)?;
    Ok(List::from_vec(Vec::new()).into())
}

/// `(list, value)`: adds a value at the end.
fn list_append(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let list: List = args.get(0, "list")?;
    list.push(args.view(1, "value")?.to_owned());
    Ok(Any::none())
}

/// `(list)`: its values as a sequence, which later values are no part of.
fn list_array(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let list: List = args.get(0, "list")?;
    Ok(Array::from_vec(list.to_vec()).into())
}

/// `(list, dtype, shape, from the end)`: one tensor of the rows in a list, along a new first dimension. All rows have the shape
/// of the first; where there are none, they would have `shape`.
fn list_stack(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let list: List = args.get(0, "list")?;
    let dtype: DataType = args.get(1, "dtype")?;
    let shape: Shape = args.get(2, "shape")?;
    let mut rows = list.to_vec();
    if args.get::<bool>(3, "from the end")? {
        rows.reverse();
    }
    let rows = rows.iter().map(|row| row.as_view().to::<Tensor>()).collect::<Result<Vec<_>, _>>()?;
    let dims = rows.first().map_or_else(|| shape.to_vec(), |row| row.shape().to_vec());
    let device = rows.first().map_or(Device::cpu(0), Tensor::device);
    if dtype.is_packed() {
        return Err(args.error(ErrorKind::TypeError, format_args!("rows of {dtype} share bytes and cannot be joined")));
    }
    let mut bytes = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        if row.shape() != dims || row.dtype() != dtype {
            let message = format_args!("row {i} is {row:?}, and those before it are {dtype} of shape {dims:?}");
            return Err(args.error(ErrorKind::ValueError, message));
        }
        bytes.extend(device::on_host(row)?.to_bytes()?);
    }
    let dims: Vec<i64> = std::iter::once(rows.len() as i64).chain(dims).collect();
    let stacked = Tensor::from_bytes(&bytes, &dims, dtype)?;
    if device.device_type == Device::CPU { Ok(stacked.into()) } else { Ok(device::to_device(&stacked, device)?.into()) }
}
