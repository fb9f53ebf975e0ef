//! The entry of a kernel: decoding and checking of packed arguments.
//!
//! Every kernel is exported as `int __tvm_ffi_<name>(void *self, const TVMFFIAny *args, int n, TVMFFIAny *result)`. Before
//! the body runs, the arguments are held against the signature, in an order and with texts that users of TVM know: the
//! number of arguments, then each argument's type, then rank, element type and device of every tensor, then strides,
//! shapes and data. A symbolic dimension is bound by the first tensor that has it alone as a dimension, and checked by the
//! others. Strides are compared with the shape that the tensor has, so that a wrong shape is reported as such. What does
//! not depend on the kernel's dimensions is checked by one function for all kernels, see [`tensor_check`].

use std::collections::HashMap;

use relaxide_ir::{BinaryOp, Buffer, PrimExpr, Ref, Var};
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::{fix_vscale, not_serial};

use super::{
    function::{FunctionText, Label, join},
    kernel::{Body, Kernel},
    module::{ModuleText, global_name},
    raise::{self, REFUSE, ROW},
    tensor_check::{self, CHECK, DL_TENSOR, Field},
    value::{Overflow, ScalarKind, Ty, Val},
};
use crate::{
    error::CodegenError,
    on_device::in_turn,
    shared::{ENTRY_PREFIX, index},
    signature::{expected, signature},
    target::NativeTarget,
    uses::Uses,
};

/// The size of an object's header, behind which a tensor's description lies.
const OBJECT_HEADER: i64 = 24;

/// Writes the entry and the body of a kernel; with `shared`, the entry only, which calls the body of that kernel.
pub(crate) fn write_kernel(
    name: &str,
    func: &PrimFunc,
    shared: Option<&str>,
    native: &NativeTarget,
    module: &mut ModuleText,
) -> Result<(), CodegenError> {
    let fixed = if native.has_scalable_vectors() { None } else { fix_vscale(func) };
    let func = fixed.as_ref().unwrap_or(func);
    let kernel = Kernel::new(name.to_string(), func, native, module);
    if func.buffers.len() != func.params.len() {
        return Err(kernel.malformed("parameters and buffers differ in number"));
    }
    if let Some(buffer) = not_serial(func) {
        return Err(kernel.unsupported(in_turn(&buffer)));
    }
    let mut entry = Entry::new(&kernel, func, module);
    let symbol = format!("{ENTRY_PREFIX}{name}");
    // A debugger finds the computation by the kernel's name, unless that goes by another's.
    entry.f().describe(name, if shared.is_some() { name } else { &symbol }, None);
    entry.check_count();
    let arguments = entry.decode()?;
    entry.check_shapes(&arguments)?;
    entry.check_deferred()?;
    let used = entry.used_variables()?;
    let values: Vec<Val> = used.iter().map(|(_, value)| value.clone()).collect();
    let body_name = global_name(&format!("{}.body", shared.unwrap_or(name)));
    let (list, result) = (join(&values), Val::new(Ty::PTR, "%result"));
    let separator = if values.is_empty() { "" } else { ", " };
    let code = entry.body.f.emit(Ty::I32, format_args!("call i32 {body_name}({list}{separator}{result})"));
    entry.body.f.ret(format_args!("i32 {}", code.text));
    let text = entry.finish(name);
    module.function(&text);
    match shared {
        Some(_) => Ok(()),
        None => write_body(&kernel, func, &body_name, &used, module),
    }
}

/// The computation itself, over pointers and scalars.
fn write_body(
    kernel: &Kernel,
    func: &PrimFunc,
    name: &str,
    used: &[(Ref<Var>, Val)],
    module: &mut ModuleText,
) -> Result<(), CodegenError> {
    let mut body = Body::new(kernel, module);
    let noalias = if func.attrs.bool("tirx.noalias") == Some(true) { " noalias" } else { "" };
    let is_data = |var: &Ref<Var>| func.buffers.iter().flatten().any(|buffer| buffer.data == *var);
    let mut params = Vec::with_capacity(used.len() + 1);
    for (index, (var, value)) in used.iter().enumerate() {
        let attribute = if is_data(var) { noalias } else { "" };
        params.push(format!("{}{attribute} %p{index}", value.ty));
        body.vars.insert(var.clone(), Val::new(value.ty, format!("%p{index}")));
    }
    params.push("ptr %result".to_string());
    body.result = Some(Val::new(Ty::PTR, "%result"));
    body.f.describe(&kernel.name, &kernel.name, None);
    body.stmt(&func.body)?;
    body.leave(0);
    let text = body.f.finish(&format!("define internal i32 {name}({}) #0", params.join(", ")));
    module.function(&text);
    Ok(())
}

/// A failed check: where from, and what to say.
struct Failure {
    from: Label,
    kind: &'static str,
    head: String,
    tail: String,
}

/// A tensor argument.
struct TensorArgument {
    position: usize,
    buffer: Ref<Buffer>,
    /// Pointer to its DLTensor.
    tensor: Val,
}

struct Entry<'m, 'k> {
    body: Body<'m, 'k>,
    func: &'k PrimFunc,
    signature: String,
    /// Where checks written out here go when they fail.
    fail: Label,
    failures: Vec<Failure>,
    /// Where the kernel is left when an error has been raised.
    failed: Label,
    /// Where each symbolic variable was found, for messages.
    places: HashMap<Ref<Var>, String>,
    /// Dimensions that must equal an expression, checked when all variables are known.
    deferred: Vec<Deferred>,
}

struct Deferred {
    position: usize,
    place: String,
    actual: Val,
    expected: PrimExpr,
}

impl<'m, 'k> Entry<'m, 'k> {
    fn new(kernel: &'k Kernel, func: &'k PrimFunc, module: &'m mut ModuleText) -> Self {
        let signature = format!(" when calling:\n  `{}", signature(module.plain(&kernel.name), func));
        let mut body = Body::new(kernel, module);
        let (fail, failed) = (body.f.label(), body.f.label());
        let (failures, places, deferred) = (Vec::new(), HashMap::new(), Vec::new());
        Self { body, func, signature, fail, failures, failed, places, deferred }
    }

    /// Goes on if `ok` holds; otherwise the caller gets an error of two pieces with the signature between them.
    fn check(&mut self, ok: &Val, kind: &'static str, head: String, tail: String) {
        let go_on = self.body.f.label();
        self.failures.push(Failure { from: self.body.f.current(), kind, head, tail });
        self.body.f.branch_if(ok, go_on, self.fail);
        self.body.f.start(go_on);
    }

    fn expect(&mut self, ok: &Val, kind: &'static str, what: &str, position: usize, wanted: &str) {
        self.check(ok, kind, format!("{what} on argument #{position}"), format!("`,\n  expected {wanted}"));
    }

    fn f(&mut self) -> &mut FunctionText<'m> {
        &mut self.body.f
    }

    fn load(&mut self, base: &Val, offset: i64, ty: Ty) -> Val {
        let place = self.f().emit(Ty::PTR, format_args!("getelementptr inbounds i8, {base}, i64 {offset}"));
        let align = ty.kind.alignment();
        self.f().emit(ty, format_args!("load {ty}, {place}, align {align}"))
    }

    /// A field of a tensor.
    fn field(&mut self, tensor: &Val, field: Field) -> Val {
        let (ty, index) = (field.ty(), field as u32);
        let place =
            self.f().emit(Ty::PTR, format_args!("getelementptr inbounds {DL_TENSOR}, {tensor}, i64 0, i32 {index}"));
        self.f().emit(ty, format_args!("load {ty}, {place}"))
    }

    fn check_count(&mut self) {
        let count = self.func.params.len();
        let wanted = Val::int(Ty::I32, count as i64);
        let ok = self.f().icmp("eq", &Val::new(Ty::I32, "%count"), &wanted);
        self.check(&ok, "TypeError", format!("Expected {count} arguments"), "`".into());
        if count > 0 {
            let ok = self.f().icmp("ne", &Val::new(Ty::PTR, "%args"), &Val::zero(Ty::PTR));
            self.check(&ok, "TypeError", "args pointer is NULL".into(), "`".into());
        }
    }

    /// Takes every argument out of its packed form; tensors are returned, scalars become variables.
    fn decode(&mut self) -> Result<Vec<TensorArgument>, CodegenError> {
        let mut tensors = Vec::new();
        for (position, param) in self.func.params.iter().enumerate() {
            match self.func.buffers[position].clone() {
                Some(buffer) => {
                    let tensor = self.decode_tensor(&buffer, position)?;
                    self.body.vars.insert(param.clone(), tensor.clone());
                    tensors.push(TensorArgument { position, buffer, tensor });
                }
                None => {
                    let value = self.decode_scalar(param, position)?;
                    self.body.vars.insert(param.clone(), value);
                }
            }
        }
        Ok(tensors)
    }

    /// A tensor, held against its record: type, rank, element type, device, strides, data and offset.
    fn decode_tensor(&mut self, buffer: &Ref<Buffer>, position: usize) -> Result<Val, CodegenError> {
        let device_type = self.body.kernel.device_type;
        let element = self.body.kernel.ty(buffer.dtype)?.kind.alignment();
        // What is no address has no alignment.
        let alignment = if device_type == 1 { crate::shared::tensor_failures::alignment(buffer, element) } else { 1 };
        let signature = self.signature.clone();
        let record = tensor_check::record(self.f().module, buffer, alignment, position, &signature, device_type);
        let offset = 16 * position;
        let packed = self.f().emit(Ty::PTR, format_args!("getelementptr inbounds i8, ptr %args, i64 {offset}"));
        let tensor = self.f().emit(Ty::PTR, format_args!("call ptr @{CHECK}({packed}, ptr {record})"));
        let ok = self.f().icmp("ne", &tensor, &Val::zero(Ty::PTR));
        let (failed, go_on) = (self.failed, self.f().label());
        self.f().branch_if(&ok, go_on, failed);
        self.f().start(go_on);
        Ok(tensor)
    }

    /// A pointer, or what lies behind the header of a tensor object.
    fn decode_pointer(&mut self, type_index: &Val, payload: i64, position: usize) -> Val {
        let pointer = self.load(&Val::new(Ty::PTR, "%args"), payload, Ty::PTR);
        let is_tensor = self.f().icmp("eq", type_index, &Val::int(Ty::I32, index::TENSOR));
        let mut ok = is_tensor.clone();
        for plain in [index::NONE, index::OPAQUE_POINTER, index::DL_TENSOR_POINTER] {
            let is_plain = self.f().icmp("eq", type_index, &Val::int(Ty::I32, plain));
            ok = self.f().op("or", &ok, &is_plain);
        }
        self.expect(&ok, "TypeError", "Mismatched type", position, "pointer");
        let inner = self.f().emit(Ty::PTR, format_args!("getelementptr inbounds i8, {pointer}, i64 {OBJECT_HEADER}"));
        self.f().select(&is_tensor, &inner, &pointer)
    }

    fn decode_scalar(&mut self, param: &Ref<Var>, position: usize) -> Result<Val, CodegenError> {
        let ty = self.body.kernel.ty(param.dtype())?;
        let args = Val::new(Ty::PTR, "%args");
        let type_index = &self.load(&args, 16 * position as i64, Ty::I32);
        let payload = 16 * position as i64 + 8;
        let (accepted, wanted): (&[i64], &str) = match ty.kind {
            ScalarKind::Ptr => return Ok(self.decode_pointer(type_index, payload, position)),
            ScalarKind::Int { .. } => (&[index::INT, index::BOOL], "int"),
            ScalarKind::Bool => (&[index::BOOL, index::INT], "boolean"),
            _ => (&[index::FLOAT, index::INT, index::BOOL], "float"),
        };
        let mut ok = Val::int(Ty::BOOL, 0);
        for accepted in accepted {
            let matches = self.f().icmp("eq", type_index, &Val::int(Ty::I32, *accepted));
            ok = self.f().op("or", &ok, &matches);
        }
        self.expect(&ok, "TypeError", "Mismatched type", position, wanted);
        let integer = self.load(&args, payload, Ty::I64);
        if !ty.kind.is_float() {
            return Ok(self.f().convert(&integer, ty));
        }
        let float = self.load(&args, payload, Ty::F64);
        let from_integer = self.f().convert(&integer, Ty::F64);
        let is_float = self.f().icmp("eq", type_index, &Val::int(Ty::I32, index::FLOAT));
        let number = self.f().select(&is_float, &float, &from_integer);
        Ok(self.f().convert(&number, ty))
    }

    /// Shapes and device numbers of the tensors; binds what the shapes define.
    fn check_shapes(&mut self, tensors: &[TensorArgument]) -> Result<(), CodegenError> {
        let mut first_device: Option<(Val, String)> = None;
        for TensorArgument { position, buffer, tensor } in tensors {
            let position = *position;
            let shape = self.field(tensor, Field::Shape);
            let extents: Vec<Val> =
                (0..buffer.ndim()).map(|axis| self.load(&shape, 8 * axis as i64, Ty::I64)).collect();
            for (axis, (actual, wanted)) in extents.iter().zip(&buffer.shape).enumerate() {
                let place = format!("{}.shape[{axis}]", buffer.name);
                self.bind_or_check(wanted, actual, position, place)?;
            }
            self.bind_strides(buffer, tensor, &extents, position)?;
            let device = self.field(tensor, Field::DeviceId);
            let place = format!("{}.device_id", buffer.name);
            match &first_device {
                None => first_device = Some((device, place)),
                Some((first, first_place)) => {
                    let (first, tail) = (first.clone(), format!("`,\n  expected to match {first_place}"));
                    let ok = self.f().icmp("eq", &device, &first);
                    self.check(&ok, "ValueError", format!("Mismatched {place} on argument #{position}"), tail);
                }
            }
            let data = self.field(tensor, Field::Data);
            self.bind_data(buffer, tensor, &data, position)?;
        }
        Ok(())
    }

    /// The strides that the buffer declares; compact ones are the record's business.
    fn bind_strides(
        &mut self,
        buffer: &Ref<Buffer>,
        tensor: &Val,
        extents: &[Val],
        position: usize,
    ) -> Result<(), CodegenError> {
        if buffer.strides.is_empty() || extents.is_empty() {
            return Ok(());
        }
        let strides = self.field(tensor, Field::Strides);
        let absent = self.f().icmp("eq", &strides, &Val::zero(Ty::PTR));
        // Without strides, the shape stands in their place: any readable memory of that length does.
        let shape = self.field(tensor, Field::Shape);
        let readable = self.f().select(&absent, &shape, &strides);
        let mut compact = Val::int(Ty::I64, 1);
        for (axis, extent) in extents.iter().enumerate().rev() {
            let stride = self.load(&readable, 8 * axis as i64, Ty::I64);
            let actual = self.f().select(&absent, &compact, &stride);
            if let Some(wanted) = buffer.strides.get(axis) {
                self.bind_or_check(wanted, &actual, position, format!("{}.strides[{axis}]", buffer.name))?;
            }
            compact = self.f().binary(BinaryOp::Mul, &compact, extent, Overflow::Wraps);
        }
        Ok(())
    }

    /// The pointer that the body computes with, and the offset that the tensor declares.
    fn bind_data(
        &mut self,
        buffer: &Ref<Buffer>,
        tensor: &Val,
        data: &Val,
        position: usize,
    ) -> Result<(), CodegenError> {
        self.body.vars.insert(buffer.data.clone(), data.clone());
        let bytes = self.field(tensor, Field::ByteOffset);
        let place = format!("{}.byte_offset", buffer.name);
        let size = Val::int(Ty::I64, buffer.dtype.bytes() as i64);
        match &buffer.elem_offset {
            PrimExpr::Var(_) if buffer.dtype.is_packed() => {
                let bits = self.f().op("mul", &bytes, &Val::int(Ty::I64, 8));
                let width = i64::from(buffer.dtype.bits) * i64::from(buffer.dtype.lanes);
                let elements = self.f().op("udiv", &bits, &Val::int(Ty::I64, width));
                self.bind_or_check(&buffer.elem_offset.clone(), &elements, position, place)
            }
            offset if buffer.dtype.is_packed() && !offset.is_int(0) => {
                Err(self.body.kernel.unsupported(format!("`{}`, which may begin inside of a byte,", buffer.name)))
            }
            PrimExpr::Var(_) => {
                let rest = self.f().op("urem", &bytes, &size);
                let whole = self.f().icmp("eq", &rest, &Val::zero(Ty::I64));
                let wanted = format!("a multiple of {} bytes", size.as_int_literal().unwrap_or(1));
                self.expect(&whole, "ValueError", &format!("Invalid {place}"), position, &wanted);
                let elements = self.f().op("udiv", &bytes, &size);
                self.bind_or_check(&buffer.elem_offset.clone(), &elements, position, place)
            }
            PrimExpr::Int(_) => Ok(()),
            offset => {
                let expected = offset.clone() * PrimExpr::from(size.as_int_literal().unwrap_or(1));
                self.deferred.push(Deferred { position, place, actual: bytes, expected });
                Ok(())
            }
        }
    }

    /// Binds a variable that has no value yet; anything else must equal what the tensor has.
    fn bind_or_check(
        &mut self,
        wanted: &PrimExpr,
        actual: &Val,
        position: usize,
        place: String,
    ) -> Result<(), CodegenError> {
        if let PrimExpr::Var(var) = wanted {
            let ty = self.body.kernel.ty(var.dtype())?;
            match self.body.vars.get(var).cloned() {
                None => {
                    let value = self.f().convert(actual, ty);
                    if ty.kind.bytes() < 8 {
                        let back = self.f().convert(&value, Ty::I64);
                        let ok = self.f().icmp("eq", &back, actual);
                        let wanted = format!("a number that {} holds", var.dtype());
                        self.expect(&ok, "ValueError", &format!("Invalid {place}"), position, &wanted);
                    }
                    self.body.vars.insert(var.clone(), value);
                    self.places.insert(var.clone(), place);
                }
                Some(known) => {
                    let known = self.f().convert(&known, Ty::I64);
                    let ok = self.f().icmp("eq", actual, &known);
                    let source = self.places.get(var).cloned().unwrap_or_else(|| var.name.clone());
                    let head = format!("Mismatched {place} on argument #{position}");
                    self.check(&ok, "ValueError", head, format!("`,\n  expected to match {source}"));
                }
            }
            return Ok(());
        }
        self.deferred.push(Deferred { position, place, actual: actual.clone(), expected: wanted.clone() });
        Ok(())
    }

    /// Checks what had to wait until all variables were bound.
    fn check_deferred(&mut self) -> Result<(), CodegenError> {
        for item in std::mem::take(&mut self.deferred) {
            let wanted = self.body.index(&item.expected)?;
            self.body.forget_values();
            let ok = self.f().icmp("eq", &item.actual, &wanted);
            let text = expected(&item.expected, &self.places);
            self.expect(&ok, "ValueError", &format!("Invalid {}", item.place), item.position, &text);
        }
        Ok(())
    }

    /// What the body needs of what the entry knows.
    fn used_variables(&self) -> Result<Vec<(Ref<Var>, Val)>, CodegenError> {
        let known = |var: Ref<Var>| self.body.vars.get(&var).cloned().map(|value| (var, value));
        Ok(Uses::of(&self.func.body).into_iter().filter_map(known).collect())
    }

    /// The entry's text, with the one place where all failed checks meet.
    fn finish(mut self, name: &str) -> String {
        let fail = self.fail;
        self.body.f.start(fail);
        let failures = std::mem::take(&mut self.failures);
        let rows: Vec<[String; 3]> = failures
            .iter()
            .map(|failure| [failure.kind.to_string(), failure.head.clone(), failure.tail.clone()])
            .collect();
        let table = raise::refusals(self.f().module, &rows);
        let incoming: Vec<(Val, Label)> = failures
            .iter()
            .enumerate()
            .map(|(row, failure)| (Val::int(Ty::I64, (row * ROW) as i64), failure.from))
            .collect();
        let offset = self.f().phi(Ty::I64, &incoming);
        let row = self.f().emit(Ty::PTR, format_args!("getelementptr inbounds i8, ptr {table}, {offset}"));
        let signature = self.signature.clone();
        let signature = Val::new(Ty::PTR, self.f().module.string(&signature));
        self.f().effect(format_args!("call void @{REFUSE}({row}, {signature})"));
        let failed = self.failed;
        self.f().branch(failed);
        self.f().start(failed);
        self.f().ret("i32 -1");
        let symbol = format!("{ENTRY_PREFIX}{name}");
        self.f().module.own_entry(&symbol);
        let symbol = global_name(&symbol);
        let params = "ptr %self, ptr %args, i32 %count, ptr %result";
        self.body.f.finish(&format!("define dso_local i32 {symbol}({params}) #1"))
    }
}
