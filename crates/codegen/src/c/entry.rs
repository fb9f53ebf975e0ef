//! The entry of a kernel: decoding and checking of packed arguments.
//!
//! The checks, their order and their texts are those of native code ([`crate::llvm`]): the number of arguments, each argument's
//! type, rank, element type and device of every tensor, then strides, shapes and data. A symbolic dimension is bound by the first
//! tensor that has it alone as a dimension, and checked by the others.

use std::collections::HashMap;

use relaxide_ir::{Buffer, PrimExpr, Ref, Var};
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::{fix_vscale, not_serial};

use super::{
    body::{Body, Kernel, Known},
    code::{Code, Level, comment, string},
    floats, runtime,
    source::Source,
    tensor_check,
    types::{declare, value_type},
};
use crate::{
    error::CodegenError,
    on_device::in_turn,
    shared::{ScalarKind, Ty, index},
    signature::{expected, signature},
    uses::Uses,
};

/// Writes the entry and the body of a kernel; with `shared`, the entry only, which calls the body of that kernel.
pub(crate) fn write_kernel(
    name: &str,
    func: &PrimFunc,
    shared: Option<&str>,
    source: &mut Source,
) -> Result<(), CodegenError> {
    let identifier = super::names::identifier(name);
    let fixed = fix_vscale(func);
    let func = fixed.as_ref().unwrap_or(func);
    let kernel = Kernel::new(name, func, identifier);
    if func.buffers.len() != func.params.len() {
        return Err(kernel.malformed("parameters and buffers differ in number"));
    }
    if let Some(buffer) = not_serial(func) {
        return Err(kernel.unsupported(in_turn(&buffer)));
    }
    if kernel.separate_rounding {
        floats::separate_rounding(source);
    }
    let entry_name = source.entry(name);
    let mut entry = EntryPoint::new(&kernel, func, source);
    entry.check_count();
    entry.decode()?;
    let used = entry.used_variables();
    let mut arguments: Vec<&str> = used.iter().map(|(_, known)| known.code.text.as_str()).collect();
    if kernel.pointers.returns {
        arguments.push("result");
    }
    let arguments = arguments.join(", ");
    let known = shared.and_then(|original| entry.body.source.bodies.get(original).cloned());
    let body_name = match known.clone() {
        Some(body) => body,
        None => entry.body.source.names.fresh(&format!("{}_body", kernel.identifier)),
    };
    entry.body.line(format_args!("return {body_name}({arguments});"));
    let text = entry.finish(&entry_name);
    if known.is_none() {
        write_body(&kernel, func, &body_name, &used, source)?;
        source.bodies.insert(name.to_string(), body_name);
    }
    source.function(&text);
    Ok(())
}

/// The computation itself, over pointers and scalars.
fn write_body(
    kernel: &Kernel,
    func: &PrimFunc,
    name: &str,
    used: &[(Ref<Var>, Known)],
    source: &mut Source,
) -> Result<(), CodegenError> {
    let mut body = Body::new(kernel, source);
    let mut params = Vec::with_capacity(used.len() + 1);
    let mut names = Vec::with_capacity(used.len());
    for (var, known) in used {
        let name = body.fresh(&var.name);
        names.push(name.clone());
        let restrict = if kernel.distinct && kernel.pointers.is_own(var) { "restrict" } else { "" };
        params.push(declare(&format!("{}{restrict}", known.ty), &name));
        body.vars.insert(var.clone(), Known { code: Code::atom(name), ..known.clone() });
    }
    body.has_result = kernel.pointers.returns;
    if body.has_result {
        params.push("rx_value *result".to_string());
    }
    if params.is_empty() {
        params.push("void".to_string());
    }
    body.stmt(&func.body)?;
    body.leave("0");
    // What the kernel reads need not be in its code: `n * 0` is a zero.
    let mentioned = body.mentioned();
    let opening: String =
        names.iter().filter(|name| !mentioned.contains(*name)).map(|name| format!("    (void){name};\n")).collect();
    let text = body.finish(&format!("static int {name}({})", params.join(", ")), &opening);
    let title = comment(&signature(&kernel.name, func));
    source.function(&format!("/* {title} */\n{text}"));
    Ok(())
}

/// A dimension that must equal an expression, checked when all variables are known.
struct Deferred {
    position: usize,
    place: String,
    actual: Code,
    expected: PrimExpr,
}

struct EntryPoint<'m, 'k> {
    body: Body<'m, 'k>,
    func: &'k PrimFunc,
    signature: String,
    /// Where each symbolic variable was found, for messages.
    places: HashMap<Ref<Var>, String>,
    deferred: Vec<Deferred>,
}

impl<'m, 'k> EntryPoint<'m, 'k> {
    fn new(kernel: &'k Kernel, func: &'k PrimFunc, source: &'m mut Source) -> Self {
        runtime::values(source);
        runtime::refuse(source);
        let signature = format!(" when calling:\n  `{}", signature(&kernel.name, func));
        let body = Body::new(kernel, source);
        Self { body, func, signature, places: HashMap::new(), deferred: Vec::new() }
    }

    /// Leaves with an error of two pieces, with the signature between them, if something holds that must not.
    fn refuse_if(&mut self, wrong: &str, kind: &str, head: &str, tail: &str) {
        self.body.source.message(head.len() + self.signature.len() + tail.len());
        let (kind, head, tail) = (string(kind), string(head), string(tail));
        self.body.line(format_args!("if ({wrong}) return rx_refuse({kind}, {head}, signature, {tail});"));
    }

    fn expect(&mut self, wrong: &str, kind: &str, what: &str, position: usize, wanted: &str) {
        self.refuse_if(wrong, kind, &format!("{what} on argument #{position}"), &format!("`,\n  expected {wanted}"));
    }

    fn check_count(&mut self) {
        let count = self.func.params.len();
        self.refuse_if(&format!("count != {count}"), "TypeError", &format!("Expected {count} arguments"), "`");
        if count > 0 {
            self.refuse_if("args == NULL", "TypeError", "args pointer is NULL", "`");
        }
    }

    /// Takes every argument out of its packed form, and checks shapes and device numbers when all are known to be tensors.
    fn decode(&mut self) -> Result<(), CodegenError> {
        let mut tensors = Vec::new();
        for (position, param) in self.func.params.iter().enumerate() {
            match self.func.buffers[position].clone() {
                Some(buffer) => {
                    let tensor = self.decode_tensor(&buffer, position)?;
                    self.body.vars.insert(param.clone(), Known::scalar(&tensor, "rx_tensor *"));
                    tensors.push((position, buffer, tensor));
                }
                None => self.decode_scalar(param, position)?,
            }
        }
        let mut first_device: Option<(String, String)> = None;
        for (position, buffer, tensor) in tensors {
            for (axis, wanted) in buffer.shape.iter().enumerate() {
                let actual = Code::atom(format!("{tensor}->shape[{axis}]"));
                self.bind_or_check(wanted, actual, position, format!("{}.shape[{axis}]", buffer.name))?;
            }
            self.bind_strides(&buffer, &tensor, position)?;
            let place = format!("{}.device_id", buffer.name);
            match &first_device {
                None => first_device = Some((tensor.clone(), place)),
                Some((first, first_place)) => {
                    let wrong = format!("{tensor}->device.number != {first}->device.number");
                    let (head, tail) = (
                        format!("Mismatched {place} on argument #{position}"),
                        format!("`,\n  expected to match {first_place}"),
                    );
                    self.refuse_if(&wrong, "ValueError", &head, &tail);
                }
            }
            self.bind_data(&buffer, &tensor, position)?;
        }
        self.check_deferred()
    }

    /// A tensor, held against its record: type, rank, element type, device, strides, data and offset.
    fn decode_tensor(&mut self, buffer: &Ref<Buffer>, position: usize) -> Result<String, CodegenError> {
        let element = self.body.kernel.ty(buffer.dtype)?.kind.alignment();
        let alignment = crate::shared::tensor_failures::alignment(buffer, element);
        let record = tensor_check::record(buffer, alignment, position);
        tensor_check::define(self.body.source);
        self.body.source.message(tensor_check::longest(buffer) + self.signature.len());
        let wanted = self.body.fresh(&format!("{}_wanted", buffer.name));
        self.body.line(format_args!("static const rx_wanted {wanted} = {record};"));
        let tensor = self.body.fresh(&format!("{}_tensor", buffer.name));
        let check = format!("rx_check_tensor(&args[{position}], &{wanted}, signature)");
        self.body.line(format_args!("rx_tensor *const {tensor} = {check};"));
        self.body.line(format_args!("if ({tensor} == NULL) return -1;"));
        Ok(tensor)
    }

    fn decode_scalar(&mut self, param: &Ref<Var>, position: usize) -> Result<(), CodegenError> {
        let ty = self.body.kernel.ty(param.dtype())?;
        let (accepted, wanted): (&[i64], &str) = match ty.kind {
            ScalarKind::Ptr => {
                (&[index::TENSOR, index::NONE, index::OPAQUE_POINTER, index::DL_TENSOR_POINTER], "pointer")
            }
            ScalarKind::Int { .. } => (&[index::INT, index::BOOL], "int"),
            ScalarKind::Bool => (&[index::BOOL, index::INT], "boolean"),
            _ => (&[index::FLOAT, index::INT, index::BOOL], "float"),
        };
        let others: Vec<String> =
            accepted.iter().map(|index| format!("args[{position}].type_index != {index}")).collect();
        self.expect(&others.join(" && "), "TypeError", "Mismatched type", position, wanted);
        let value = format!("args[{position}].value");
        let code = match ty.kind {
            // Behind the header of a tensor object lies its description.
            ScalarKind::Ptr => {
                let pointer = format!("(char *){value}.pointer");
                let is_object = format!("args[{position}].type_index == {}", index::TENSOR);
                Code::new(format!("{pointer} + ({is_object} ? 24 : 0)"), Level::Add)
            }
            kind if kind.is_float() => {
                let is_float = format!("args[{position}].type_index == {}", index::FLOAT);
                let number = Code::new(format!("{is_float} ? {value}.number : (double){value}.integer"), Level::Choice);
                self.body.convert(number, ScalarKind::F64, kind)
            }
            kind => self.body.convert(Code::atom(format!("{value}.integer")), Ty::I64.kind, kind),
        };
        if !self.body.kernel.pointers.uses(param) && !self.is_mentioned(param) {
            return Ok(());
        }
        let c_type = value_type(ty.kind);
        let name = self.body.define(&param.name, c_type, &code);
        self.body.vars.insert(param.clone(), Known::scalar(name, c_type));
        Ok(())
    }

    /// Whether a buffer's dimensions mention a variable.
    fn is_mentioned(&self, var: &Ref<Var>) -> bool {
        let buffers = self.func.buffers.iter().flatten();
        let mut mentioned = buffers.flat_map(|b| b.shape.iter().chain(&b.strides).chain([&b.elem_offset]));
        mentioned.any(|e| relaxide_ir::prim::free_vars(e).contains(var))
    }

    /// The strides that the buffer declares; compact ones are the record's business.
    fn bind_strides(&mut self, buffer: &Ref<Buffer>, tensor: &str, position: usize) -> Result<(), CodegenError> {
        for (axis, wanted) in buffer.strides.iter().enumerate().rev() {
            if axis >= buffer.ndim() {
                continue;
            }
            self.body.source.helper("rx_stride", |_| STRIDE.into());
            let actual = Code::atom(format!("rx_stride({tensor}, {axis})"));
            self.bind_or_check(wanted, actual, position, format!("{}.strides[{axis}]", buffer.name))?;
        }
        Ok(())
    }

    /// The pointer that the body computes with, and the offset that the tensor declares.
    fn bind_data(&mut self, buffer: &Ref<Buffer>, tensor: &str, position: usize) -> Result<(), CodegenError> {
        let pointer = self.body.kernel.pointers.pointer(&buffer.data);
        let data = Known::scalar(format!("{tensor}->data"), pointer);
        self.body.vars.insert(buffer.data.clone(), data);
        let element = self.body.kernel.ty(buffer.dtype)?;
        let size = i64::from(element.lanes) * element.kind.bytes() as i64;
        let place = format!("{}.byte_offset", buffer.name);
        match &buffer.elem_offset {
            PrimExpr::Var(_) => {
                let rest = format!("{tensor}->byte_offset % {size} != 0");
                let wanted = format!("a multiple of {size} bytes");
                self.expect(&rest, "ValueError", &format!("Invalid {place}"), position, &wanted);
                let elements = Code::new(format!("(int64_t)({tensor}->byte_offset / {size})"), Level::Unary);
                self.bind_or_check(&buffer.elem_offset.clone(), elements, position, place)
            }
            PrimExpr::Int(_) => Ok(()),
            offset => {
                let expected = offset.clone() * PrimExpr::from(size);
                let actual = Code::cast("int64_t", &Code::atom(format!("{tensor}->byte_offset")));
                self.deferred.push(Deferred { position, place, actual, expected });
                Ok(())
            }
        }
    }

    /// Binds a variable that has no value yet; anything else must equal what the tensor has.
    fn bind_or_check(
        &mut self,
        wanted: &PrimExpr,
        actual: Code,
        position: usize,
        place: String,
    ) -> Result<(), CodegenError> {
        let Some(var) = wanted.as_var() else {
            self.deferred.push(Deferred { position, place, actual, expected: wanted.clone() });
            return Ok(());
        };
        let ty = self.body.kernel.ty(var.dtype())?;
        match self.body.vars.get(var).cloned() {
            None => {
                let value = self.body.convert(actual, Ty::I64.kind, ty.kind);
                let name = self.body.define(&var.name, value_type(ty.kind), &value);
                // Sizes are not negative.
                let known = Known { is_natural: true, ..Known::scalar(name, value_type(ty.kind)) };
                self.body.vars.insert(var.clone(), known);
                self.places.insert(var.clone(), place);
            }
            Some(known) => {
                let wrong = Code::infix(&actual, "!=", &known.code, Level::Compare);
                let source = self.places.get(var).cloned().unwrap_or_else(|| var.name.clone());
                let (head, tail) = (
                    format!("Mismatched {place} on argument #{position}"),
                    format!("`,\n  expected to match {source}"),
                );
                self.refuse_if(&wrong.text, "ValueError", &head, &tail);
            }
        }
        Ok(())
    }

    /// Checks what had to wait until all variables were bound.
    fn check_deferred(&mut self) -> Result<(), CodegenError> {
        for item in std::mem::take(&mut self.deferred) {
            self.body.begin([&item.expected]);
            let wanted = self.body.wide_index(&item.expected)?;
            self.body.forget();
            let wrong = Code::infix(&item.actual, "!=", &wanted, Level::Compare);
            let text = expected(&item.expected, &self.places);
            self.expect(&wrong.text, "ValueError", &format!("Invalid {}", item.place), item.position, &text);
        }
        Ok(())
    }

    /// What the body needs of what the entry knows.
    fn used_variables(&self) -> Vec<(Ref<Var>, Known)> {
        let known = |var: Ref<Var>| self.body.vars.get(&var).cloned().map(|value| (var, value));
        Uses::of(&self.func.body).into_iter().filter_map(known).collect()
    }

    fn finish(self, name: &str) -> String {
        let mut opening =
            format!("    static const char signature[] = {};\n    (void)self;\n", string(&self.signature));
        if self.func.params.is_empty() {
            opening.push_str("    (void)args;\n");
        }
        if !self.body.kernel.pointers.returns {
            opening.push_str("    (void)result;\n");
        }
        let title = comment(&self.body.kernel.name);
        let text = self.body.finish_plain(
            &format!("int {name}(void *self, const rx_value *args, int32_t count, rx_value *result)"),
            &opening,
        );
        format!("/* Checks and unpacks the arguments of `{title}`. */\n{text}")
    }
}

const STRIDE: &str = "/* Elements between neighbours of a tensor along an axis; a compact tensor may leave them out. */
static int64_t rx_stride(const rx_tensor *tensor, int32_t axis) {
    int64_t compact = 1;
    if (tensor->strides != NULL) return tensor->strides[axis];
    for (int32_t inner = axis + 1; inner < tensor->ndim; ++inner) {
        compact = (int64_t)((uint64_t)compact * (uint64_t)tensor->shape[inner]);
    }
    return compact;
}
";
