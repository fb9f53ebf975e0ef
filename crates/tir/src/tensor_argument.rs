//! Buffers as arguments of packed calls.
//!
//! A packed function takes tensors, not addresses. What a kernel passes on is a description of its buffer, which lives as
//! long as the call and is written
//!
//! ```text
//! T.call_packed("f", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(8, n), 0, 2, T.float32(0), A.elem_offset))
//! ```
//!
//! with the buffer's pointer, its dimensions, its strides (0 for a compact one), their number, a number of its element type,
//! and where it begins behind the pointer, in elements. The form is TVM's.

use relaxide_ffi::DataType;
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimExpr};

const ARRAY: &str = "tirx.tvm_stack_make_array";
const SHAPE: &str = "tirx.tvm_stack_make_shape";

/// A buffer as an argument of a packed call.
pub fn tensor_argument(buffer: &Buffer) -> PrimExpr {
    let numbers = |list: &[PrimExpr]| prim::call(DataType::handle(), SHAPE, list.to_vec());
    let int = |value: usize| prim::int_of(DataType::int(32), value as i64);
    let strides = if buffer.strides.is_empty() { int(0) } else { numbers(&buffer.strides) };
    let like = prim::constant(buffer.dtype, 0.0);
    let (data, offset) = (PrimExpr::from(&buffer.data), buffer.elem_offset.clone());
    let args = vec![data, numbers(&buffer.shape), strides, int(buffer.ndim()), like, offset];
    prim::call(DataType::handle(), ARRAY, args)
}

/// What an argument of a packed call says of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct TensorArgument<'a> {
    /// The buffer's pointer.
    pub data: &'a PrimExpr,
    /// Its dimensions.
    pub shape: &'a [PrimExpr],
    /// Its strides in elements; none for a compact buffer.
    pub strides: &'a [PrimExpr],
    /// Its element type.
    pub dtype: DataType,
    /// How many elements behind the pointer it begins.
    pub offset: &'a PrimExpr,
}

impl<'a> TensorArgument<'a> {
    /// Reads an argument; `None` where it is no tensor.
    pub fn of(argument: &'a PrimExpr) -> Option<TensorArgument<'a>> {
        let PrimExpr::Call(call) = argument else { return None };
        let [data, PrimExpr::Call(shape), strides, _, like, offset] = call.args.as_slice() else { return None };
        if call.op != ARRAY || shape.op != SHAPE {
            return None;
        }
        let strides: &[PrimExpr] = match strides {
            PrimExpr::Call(strides) if strides.op == SHAPE => &strides.args,
            _ => &[],
        };
        let fits = strides.is_empty() || strides.len() == shape.args.len();
        fits.then_some(TensorArgument { data, shape: &shape.args, strides, dtype: like.dtype(), offset })
    }
}
