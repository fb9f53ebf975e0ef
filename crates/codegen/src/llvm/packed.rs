//! Calls in the packed convention, from inside a kernel: of registered functions by name, and of kernels beside it.
//!
//! A registered function is looked up once per library and name, through the library's imports and then the process's
//! functions, and its handle is kept. Everything needed comes through slots that the loader fills. Arguments are scalars,
//! strings, pointers, buffers, which are described on the stack, and values of lists (`anylist_getitem`), which are lent as
//! they are; what comes back is a scalar or nothing, or goes into a list.

use relaxide_ir::PrimExpr;
use relaxide_tir::tensor_argument::TensorArgument;

use super::{
    function::FunctionText,
    kernel::Body,
    module::global_name,
    raise,
    tensor_check::{DL_TENSOR, Field},
    value::{ScalarKind, Ty, Val},
};
use crate::shared::{LIBRARY_CONTEXT, index::DL_TENSOR_POINTER};
use crate::{
    error::CodegenError,
    packed_call::{Callee, PackedCall, is_null, list_item},
};

/// Size of a packed value: type index, padding, payload.
const PACKED: &str = "{ i32, i32, i64 }";

/// The device type of memory that the processor reaches.
const CPU: i64 = 1;

/// The type index of a packed C string.
const RAW_STRING: i64 = 8;

/// The function that puts a value into a list.
const SET_ITEM: &str = "relaxide.set_item";

/// Type indices from 64 on are objects', which count their references: strong ones in the lower half of the first word, weak
/// ones (of which all strong ones together are one) in the upper half. Who gives up the last of a kind calls the deleter,
/// with 1 for the value, 2 for the memory. This is the interface's own rule, so that nothing has to be imported.
const SET_ITEM_TEXT: &str = "define internal void @{set_item}(ptr %list, i64 %index, ptr %value) nounwind {
entry:
  %place = getelementptr { i32, i32, i64 }, ptr %list, i64 %index
  %old = load i32, ptr %place, align 8
  %payload = getelementptr i8, ptr %place, i64 8
  %object = load ptr, ptr %payload, align 8
  %bits = load i128, ptr %value, align 8
  store i128 %bits, ptr %place, align 8
  %counted = icmp sge i32 %old, 64
  br i1 %counted, label %release, label %done
release:
  %counts = atomicrmw sub ptr %object, i64 1 acq_rel, align 8
  %strong = trunc i64 %counts to i32
  %last = icmp eq i32 %strong, 1
  br i1 %last, label %delete, label %done
delete:
  %deleter_at = getelementptr i8, ptr %object, i64 16
  %deleter = load ptr, ptr %deleter_at, align 8
  %has_deleter = icmp ne ptr %deleter, null
  br i1 %has_deleter, label %ask, label %done
ask:
  %only = icmp eq i64 %counts, 4294967297
  br i1 %only, label %both, label %value_first
both:
  call void %deleter(ptr %object, i32 3)
  ret void
value_first:
  call void %deleter(ptr %object, i32 1)
  %weak = atomicrmw sub ptr %object, i64 4294967296 acq_rel, align 8
  %left = lshr i64 %weak, 32
  %nobody = icmp eq i64 %left, 1
  br i1 %nobody, label %memory, label %done
memory:
  call void %deleter(ptr %object, i32 2)
  ret void
done:
  ret void
}";

impl Body<'_, '_> {
    /// Executes an intrinsic; the result of a call is a number of that type, or nobody asks.
    pub fn packed_call(&mut self, call: &PackedCall<'_>, result: Option<Ty>) -> Result<Val, CodegenError> {
        match *call {
            PackedCall::Value(callee, args) => self.call_packed(callee, args, result),
            PackedCall::IntoList(list, index, callee, args) => self.call_into_list(list, index, callee, args),
            PackedCall::Reset(list, index) => self.reset_item(list, index),
        }
    }

    /// Calls a function; what comes back is a number of that type, or nobody asks.
    fn call_packed(&mut self, callee: Callee<'_>, args: &[PrimExpr], result: Option<Ty>) -> Result<Val, CodegenError> {
        let returned = self.packed_result(callee, args)?;
        Ok(match result {
            Some(ty) => self.unpacked(&returned, ty),
            None => Val::int(Ty::I32, 0),
        })
    }

    /// Calls a function and puts what comes back into a list.
    fn call_into_list(
        &mut self,
        list: &PrimExpr,
        index: &PrimExpr,
        callee: Callee<'_>,
        args: &[PrimExpr],
    ) -> Result<Val, CodegenError> {
        let (list, index) = (self.eval(list)?, self.index(index)?);
        let returned = self.packed_result(callee, args)?;
        self.set_item(&list, &index, &returned);
        Ok(Val::int(Ty::I32, 0))
    }

    /// Empties a place of a list.
    fn reset_item(&mut self, list: &PrimExpr, index: &PrimExpr) -> Result<Val, CodegenError> {
        let (list, index) = (self.eval(list)?, self.index(index)?);
        let nothing = self.f.shared_slot("returned", PACKED, 1, 8);
        self.store_packed(&nothing, 0, &Val::zero(Ty::I64));
        self.set_item(&list, &index, &nothing);
        Ok(Val::int(Ty::I32, 0))
    }

    /// Moves a value into a list.
    fn set_item(&mut self, list: &Val, index: &Val, value: &Val) {
        self.f.module.define(SET_ITEM, || SET_ITEM_TEXT.replace("{set_item}", SET_ITEM));
        self.f.effect(format_args!("call void @{SET_ITEM}({list}, {index}, {value})"));
    }

    /// Calls a function; the place of what comes back.
    fn packed_result(&mut self, callee: Callee<'_>, args: &[PrimExpr]) -> Result<Val, CodegenError> {
        let values = args.iter().map(|arg| self.argument(arg)).collect::<Result<Vec<_>, _>>()?;
        let memory = self.f.shared_slot("arguments", PACKED, values.len().max(1) as u64, 8);
        for (index, argument) in values.iter().enumerate() {
            let place = self.f.emit(Ty::PTR, format_args!("getelementptr {PACKED}, {memory}, i64 {index}"));
            match argument {
                Argument::Value(value, is_text) => {
                    let (type_index, payload) = self.packed(value, *is_text)?;
                    self.store_packed(&place, type_index, &payload);
                }
                Argument::Tensor(tensor) => self.store_packed(&place, DL_TENSOR_POINTER, tensor),
                Argument::Nothing => self.store_packed(&place, 0, &Val::zero(Ty::I64)),
                Argument::Item(item) => {
                    let bits = self.f.emit_raw(format_args!("load i128, {item}, align 8"));
                    self.f.effect(format_args!("store i128 {bits}, {place}, align 8"));
                }
            }
        }
        let returned = self.f.shared_slot("returned", PACKED, 1, 8);
        self.store_packed(&returned, 0, &Val::zero(Ty::I64));
        let (function, this) = match callee {
            Callee::Registered(name) => (self.caller_of(name), ""),
            Callee::Kernel(name) => (self.f.module.entry_of(name), "ptr null, "),
        };
        let count = values.len();
        let code = self.f.emit(Ty::I32, format_args!("call i32 {function}({this}{memory}, i32 {count}, {returned})"));
        self.leave_unless_zero(&code);
        Ok(returned)
    }

    fn argument(&mut self, arg: &PrimExpr) -> Result<Argument, CodegenError> {
        if let Some([list, index]) = list_item(arg) {
            let (list, index) = (self.eval(list)?, self.index(index)?);
            return Ok(Argument::Item(self.f.emit(Ty::PTR, format_args!("getelementptr {PACKED}, {list}, {index}"))));
        }
        if let Some(tensor) = TensorArgument::of(arg) {
            return self.tensor_argument(&tensor).map(Argument::Tensor);
        }
        if is_null(arg) {
            return Ok(Argument::Nothing);
        }
        Ok(Argument::Value(self.eval(arg)?, matches!(arg, PrimExpr::Str(_))))
    }

    /// Describes a buffer on the stack.
    fn tensor_argument(&mut self, tensor: &TensorArgument<'_>) -> Result<Val, CodegenError> {
        let (pointer, offset) = (self.eval(tensor.data)?, self.index(tensor.offset)?);
        let ndim = tensor.shape.len();
        let numbers = ndim.max(1) as u64;
        let (shape, strides) = (self.f.stack_slot("i64", numbers, 8), self.f.stack_slot("i64", numbers, 8));
        let mut compact = Val::int(Ty::I64, 1);
        for axis in (0..ndim).rev() {
            let dim = self.index(&tensor.shape[axis])?;
            let stride = match tensor.strides.get(axis) {
                Some(stride) => self.index(stride)?,
                None => compact.clone(),
            };
            for (row, number) in [(&shape, &dim), (&strides, &stride)] {
                let at = self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i64, {row}, i64 {axis}"));
                self.f.effect(format_args!("store {number}, {at}, align 8"));
            }
            compact = self.f.op("mul", &compact, &dim);
        }
        let [low, high] = tensor.dtype.lanes.to_le_bytes();
        let dtype = i32::from_le_bytes([tensor.dtype.code, tensor.dtype.bits, low, high]);
        if tensor.dtype.is_packed() && offset.as_int_literal() != Some(0) {
            return Err(self.kernel.unsupported("a tensor that may begin inside of a byte"));
        }
        let bytes = Val::int(Ty::I64, tensor.dtype.bytes() as i64);
        let byte_offset = self.f.op("mul", &offset, &bytes);
        let place = self.f.stack_slot(DL_TENSOR, 1, 8);
        let word = |value: i64| Val::int(Ty::I32, value);
        for (field, value) in [
            (Field::Data, pointer),
            (Field::DeviceType, word(CPU)),
            (Field::DeviceId, word(0)),
            (Field::Rank, word(ndim as i64)),
            (Field::ElementType, word(i64::from(dtype))),
            (Field::Shape, shape),
            (Field::Strides, strides),
            (Field::ByteOffset, byte_offset),
        ] {
            let index = field as u32;
            let at = format_args!("getelementptr inbounds {DL_TENSOR}, {place}, i64 0, i32 {index}");
            let at = self.f.emit(Ty::PTR, at);
            self.f.effect(format_args!("store {value}, {at}"));
        }
        Ok(place)
    }

    /// A function of this library that calls a registered one, which it looks up at its first call.
    fn caller_of(&mut self, name: &str) -> String {
        let caller = global_name(&format!("relaxide.call.{name}"));
        if !self.f.module.defines(&caller) {
            let message = format!("{}: no runtime is there to call `{name}`", self.f.module.plain(&self.kernel.name));
            let text = write_caller(FunctionText::new(self.f.module, self.f.native_f16), name, &caller, &message);
            self.f.module.function(&text);
        }
        caller
    }

    /// A value's type index and payload.
    pub fn packed(&mut self, value: &Val, is_text: bool) -> Result<(i64, Val), CodegenError> {
        if value.ty.is_vector() {
            return Err(self.kernel.malformed("a vector is passed on as one value"));
        }
        Ok(match value.ty.kind {
            ScalarKind::Bool => (2, self.f.convert(value, Ty::I64)),
            ScalarKind::Int { .. } => (1, self.f.convert(value, Ty::I64)),
            ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16 | ScalarKind::F32 | ScalarKind::F64 => {
                (3, self.f.convert(value, Ty::F64))
            }
            ScalarKind::Ptr if is_text => (RAW_STRING, value.clone()),
            ScalarKind::Ptr => (4, value.clone()),
        })
    }

    /// Writes a packed value.
    pub fn store_packed(&mut self, place: &Val, type_index: i64, payload: &Val) {
        let behind = self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i8, {place}, i64 8"));
        // All of it, also where an address is shorter.
        let payload = match payload.ty.kind {
            ScalarKind::Ptr => self.f.cast("ptrtoint", payload, Ty::I64),
            _ => payload.clone(),
        };
        // Type index and padding at once.
        self.f.effect(format_args!("store i64 {type_index}, {place}, align 8"));
        self.f.effect(format_args!("store {payload}, {behind}, align 8"));
    }

    /// A number out of a packed value; an integer serves as a float too.
    fn unpacked(&mut self, place: &Val, ty: Ty) -> Val {
        let behind = self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i8, {place}, i64 8"));
        if ty.kind == ScalarKind::Ptr {
            return self.f.emit(Ty::PTR, format_args!("load ptr, {behind}, align 8"));
        }
        let integer = self.f.emit(Ty::I64, format_args!("load i64, {behind}, align 8"));
        if !ty.kind.is_float() {
            return self.f.convert(&integer, ty);
        }
        let type_index = self.f.emit(Ty::I32, format_args!("load i32, {place}, align 8"));
        let is_float = self.f.icmp("eq", &type_index, &Val::int(Ty::I32, 3));
        let float = self.f.bitcast(&integer, Ty::F64);
        let converted = self.f.convert(&integer, Ty::F64);
        let number = self.f.select(&is_float, &float, &converted);
        self.f.convert(&number, ty)
    }
}

/// An argument of a packed call.
enum Argument {
    /// No value.
    Nothing,
    /// A scalar, a pointer, or text.
    Value(Val, bool),
    /// The place of a value that is lent as it is.
    Item(Val),
    /// The place of a tensor's description.
    Tensor(Val),
}

/// Writes a function that calls a registered one with packed arguments.
fn write_caller(mut f: FunctionText<'_>, name: &str, caller: &str, message: &str) -> String {
    let handle = global_name(&format!("relaxide.function.{name}"));
    let initialize = global_name(&format!("relaxide.find.{name}"));
    let text = f.module.string(name);
    let lookup = f.module.runtime_slot("TVMFFIEnvModLookupFromImports");
    let context = f.module.loader_slot(LIBRARY_CONTEXT);
    f.module.define(&handle, || format!("{handle} = internal global ptr null, align 8"));
    f.module.define(&initialize, || {
        format!(
            "define internal i32 {initialize}(ptr %out) nounwind {{\n  \
             %lookup = load ptr, ptr {lookup}, align 8\n  \
             %library = load ptr, ptr {context}, align 8\n  \
             %code = call i32 %lookup(ptr %library, ptr {text}, ptr %out)\n  \
             ret i32 %code\n}}"
        )
    });
    let (once, call) = (f.module.runtime_slot("TVMFFIHandleInitOnce"), f.module.runtime_slot("TVMFFIFunctionCall"));
    let [find, fail, look, leave, found, go] = std::array::from_fn(|_| f.label());
    let known = f.emit(Ty::PTR, format_args!("load atomic ptr, ptr {handle} acquire, align 8"));
    let unknown = f.icmp("eq", &known, &Val::zero(Ty::PTR));
    let first = f.current();
    f.branch_if(&unknown, find, go);
    f.start(find);
    let once = f.emit(Ty::PTR, format_args!("load ptr, ptr {once}, align 8"));
    let missing = f.icmp("eq", &once, &Val::zero(Ty::PTR));
    f.branch_if(&missing, fail, look);
    f.start(fail);
    raise::raise(&mut f, "RuntimeError", message);
    f.ret("i32 -1");
    f.start(look);
    let code = f.emit(Ty::I32, format_args!("call i32 {}(ptr {handle}, ptr {initialize})", once.text));
    let failed = f.icmp("ne", &code, &Val::zero(Ty::I32));
    f.branch_if(&failed, leave, found);
    f.start(leave);
    f.ret("i32 -1");
    f.start(found);
    let new = f.emit(Ty::PTR, format_args!("load atomic ptr, ptr {handle} acquire, align 8"));
    f.branch(go);
    f.start(go);
    let function = f.phi(Ty::PTR, &[(known, first), (new, found)]);
    let call = f.emit(Ty::PTR, format_args!("load ptr, ptr {call}, align 8"));
    let arguments = "ptr %args, i32 %count, ptr %result";
    let code = f.emit(Ty::I32, format_args!("call i32 {}({function}, {arguments})", call.text));
    f.ret(format_args!("i32 {}", code.text));
    f.finish(&format!("define internal i32 {caller}({arguments}) #1"))
}
