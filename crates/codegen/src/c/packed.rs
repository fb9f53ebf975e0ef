//! Calls in the packed convention, from inside a kernel: of registered functions by name, and of kernels beside it.
//!
//! Arguments are scalars, strings, pointers, buffers, which are described on the stack, and values of lists
//! (`anylist_getitem`), which are lent as they are; what comes back is a scalar or nothing, or goes into a list.

use relaxide_ir::{DataType, PrimExpr};
use relaxide_tir::tensor_argument::TensorArgument;

use super::{
    body::Body,
    code::{Code, string},
    runtime,
};
use crate::{
    error::CodegenError,
    packed_call::{Callee, PackedCall, is_null, list_item},
    shared::{ScalarKind, Ty},
};

impl Body<'_, '_> {
    /// Executes an intrinsic; the result of a call is a number of that type, or nobody asks.
    pub fn packed_call(&mut self, call: &PackedCall<'_>, result: Option<Ty>) -> Result<Code, CodegenError> {
        match *call {
            PackedCall::Value(callee, args) => self.call_packed(callee, args, result),
            PackedCall::IntoList(list, index, callee, args) => self.call_into_list(list, index, callee, args),
            PackedCall::Reset(list, index) => self.reset_item(list, index),
        }
    }

    /// Calls a function; what comes back is a number of that type, or nobody asks.
    fn call_packed(&mut self, callee: Callee<'_>, args: &[PrimExpr], result: Option<Ty>) -> Result<Code, CodegenError> {
        let returned = self.packed_result(callee, args)?;
        let Some(ty) = result else { return Ok(Code::atom("0")) };
        Ok(match ty.kind {
            ScalarKind::Ptr => Code::atom(format!("{returned}.value.pointer")),
            kind if kind.is_float() => {
                self.source.helper("rx_number", |_| NUMBER.into());
                let number = Code::call("rx_number", &[&Code::atom(format!("&{returned}"))]);
                self.convert(number, ScalarKind::F64, kind)
            }
            kind => self.convert(Code::atom(format!("{returned}.value.integer")), Ty::I64.kind, kind),
        })
    }

    /// Calls a function and puts what comes back into a list.
    fn call_into_list(
        &mut self,
        list: &PrimExpr,
        index: &PrimExpr,
        callee: Callee<'_>,
        args: &[PrimExpr],
    ) -> Result<Code, CodegenError> {
        let item = self.item(list, index)?;
        let returned = self.packed_result(callee, args)?;
        runtime::set_item(self.source);
        self.line(format_args!("rx_set_item({}, {returned});", item.text));
        Ok(Code::atom("0"))
    }

    /// Empties a place of a list.
    fn reset_item(&mut self, list: &PrimExpr, index: &PrimExpr) -> Result<Code, CodegenError> {
        let item = self.item(list, index)?;
        runtime::set_item(self.source);
        runtime::constructor(self.source, "none");
        self.line(format_args!("rx_set_item({}, rx_none());", item.text));
        Ok(Code::atom("0"))
    }

    /// The place of a value in a list.
    fn item(&mut self, list: &PrimExpr, index: &PrimExpr) -> Result<Code, CodegenError> {
        let (list, index) = (self.eval(list)?, self.wide_index(index)?);
        let list = Code::cast("rx_value *", &list);
        Ok(Code::infix(&list, "+", &index, super::code::Level::Add))
    }

    /// Calls a function; the variable with what comes back.
    fn packed_result(&mut self, callee: Callee<'_>, args: &[PrimExpr]) -> Result<String, CodegenError> {
        if self.lane.is_some() {
            return Err(self.kernel.unsupported("a call of a function in a vector"));
        }
        let values = args.iter().map(|arg| self.argument(arg)).collect::<Result<Vec<_>, _>>()?;
        runtime::values(self.source);
        let mut arguments = "NULL".to_string();
        if !values.is_empty() {
            arguments = self.fresh("arguments");
            self.line(format_args!("rx_value {arguments}[{}];", values.len()));
            for (index, value) in values.iter().enumerate() {
                self.line(format_args!("{arguments}[{index}] = {};", value.text));
            }
        }
        let returned = self.fresh("returned");
        runtime::constructor(self.source, "none");
        self.line(format_args!("rx_value {returned} = rx_none();"));
        let count = values.len();
        let call = match callee {
            Callee::Registered(name) => {
                let function = runtime::caller_of(self.source, name, &self.kernel.name);
                format!("{function}({arguments}, {count}, &{returned})")
            }
            Callee::Kernel(name) => {
                let entry = self.source.entry(name);
                format!("{entry}(NULL, {arguments}, {count}, &{returned})")
            }
        };
        self.leave_if(&format!("{call} != 0"))?;
        Ok(returned)
    }

    fn argument(&mut self, arg: &PrimExpr) -> Result<Code, CodegenError> {
        if let Some([list, index]) = list_item(arg) {
            let item = self.item(list, index)?;
            return Ok(Code::atom(format!("*({})", item.text)));
        }
        if let Some(tensor) = TensorArgument::of(arg) {
            return self.tensor_argument(&tensor);
        }
        if is_null(arg) {
            runtime::constructor(self.source, "none");
            return Ok(Code::atom("rx_none()"));
        }
        if let PrimExpr::Str(text) = arg {
            runtime::constructor(self.source, "text");
            return Ok(Code::atom(format!("rx_text({})", string(&text.value))));
        }
        self.packed(arg)
    }

    /// A scalar as a packed value.
    pub fn packed(&mut self, value: &PrimExpr) -> Result<Code, CodegenError> {
        let ty = self.kernel.ty(value.dtype())?;
        if ty.is_vector() {
            return Err(self.kernel.malformed("a vector is passed on as one value"));
        }
        let value = self.eval(value)?;
        let (constructor, kind) = match ty.kind {
            ScalarKind::Bool => ("bool", ScalarKind::Bool),
            ScalarKind::Int { .. } => ("int", Ty::I64.kind),
            ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16 | ScalarKind::F32 | ScalarKind::F64 => {
                ("float", ScalarKind::F64)
            }
            ScalarKind::Ptr => ("pointer", ScalarKind::Ptr),
        };
        runtime::constructor(self.source, constructor);
        let value = self.convert(value, ty.kind, kind);
        Ok(Code::call(&format!("rx_{constructor}"), &[&value]))
    }

    /// Describes a buffer on the stack.
    fn tensor_argument(&mut self, tensor: &TensorArgument<'_>) -> Result<Code, CodegenError> {
        runtime::values(self.source);
        runtime::constructor(self.source, "tensor");
        let (pointer, offset) = (self.eval(tensor.data)?, self.wide_index(tensor.offset)?);
        let ndim = tensor.shape.len();
        let (shape, strides) = (self.fresh("shape"), self.fresh("strides"));
        self.line(format_args!("int64_t {shape}[{}];", ndim.max(1)));
        self.line(format_args!("int64_t {strides}[{}];", ndim.max(1)));
        for axis in (0..ndim).rev() {
            let dim = self.wide_index(&tensor.shape[axis])?;
            self.line(format_args!("{shape}[{axis}] = {};", dim.text));
            let stride = match tensor.strides.get(axis) {
                Some(stride) => self.wide_index(stride)?.text,
                None if axis + 1 == ndim => "1".into(),
                None => format!("{strides}[{next}] * {shape}[{next}]", next = axis + 1),
            };
            self.line(format_args!("{strides}[{axis}] = {stride};"));
        }
        let name = self.fresh("tensor");
        let DataType { code, bits, lanes } = tensor.dtype;
        let bytes = tensor.dtype.bytes();
        let offset = offset.inside(super::code::Level::Mul);
        self.line(format_args!(
            "rx_tensor {name} = {{{}, {{1, 0}}, {ndim}, {{{code}, {bits}, {lanes}}}, {shape}, {strides}, \
             (uint64_t)({offset} * {bytes})}};",
            pointer.text
        ));
        Ok(Code::atom(format!("rx_borrow(&{name})")))
    }
}

/// An integer serves as a float too.
const NUMBER: &str = "static inline double rx_number(const rx_value *value) {
    return value->type_index == 3 ? value->value.number : (double)value->value.integer;
}
";
