//! Calls of registered functions by name, from inside a kernel.
//!
//! The function is looked up once per library and name, through the library's imports and then the process's functions,
//! and its handle is kept. Everything needed comes through slots that the loader fills. Arguments are scalars, strings
//! and pointers; what comes back is a scalar or nothing.

use relaxide_ir::PrimExpr;

use super::{
    kernel::Body,
    module::global_name,
    value::{Kind, Ty, Val},
};
use crate::error::CodegenError;

/// The slot in which the loader leaves the library's own module.
const LIBRARY_CONTEXT: &str = "__tvm_ffi__library_ctx";

/// Size of a packed value: type index, padding, payload.
const PACKED: &str = "{ i32, i32, i64 }";

/// The type index of a packed C string.
const RAW_STRING: i64 = 8;

impl Body<'_, '_> {
    pub fn call_packed(&mut self, name: &str, args: &[PrimExpr], result: Option<Ty>) -> Result<Val, CodegenError> {
        let handle = self.function_handle(name);
        let values = args.iter().map(|arg| Ok((self.eval(arg)?, matches!(arg, PrimExpr::Str(_)))));
        let values = values.collect::<Result<Vec<_>, CodegenError>>()?;
        let memory = self.f.stack_slot(PACKED, values.len().max(1) as u64, 8);
        for (index, (value, is_text)) in values.iter().enumerate() {
            let place = self.f.emit(Ty::PTR, format_args!("getelementptr {PACKED}, {memory}, i64 {index}"));
            let (type_index, payload) = self.packed(value, *is_text)?;
            self.store_packed(&place, type_index, &payload);
        }
        let returned = self.f.stack_slot(PACKED, 1, 8);
        self.store_packed(&returned, 0, &Val::zero(Ty::I64));
        let call = self.runtime_function("TVMFFIFunctionCall");
        let count = values.len();
        let code =
            self.f.emit(Ty::I32, format_args!("call i32 {}({handle}, {memory}, i32 {count}, {returned})", call.text));
        self.leave_unless_zero(&code);
        Ok(match result {
            Some(ty) => self.unpacked(&returned, ty),
            None => Val::int(Ty::I32, 0),
        })
    }

    /// The function's handle, looked up at the first call.
    fn function_handle(&mut self, name: &str) -> Val {
        let handle = global_name(&format!("relaxide.function.{name}"));
        let initialize = global_name(&format!("relaxide.find.{name}"));
        let text = self.f.module.string(name);
        let lookup = self.f.module.runtime_slot("TVMFFIEnvModLookupFromImports");
        self.f
            .module
            .define(LIBRARY_CONTEXT, || format!("@{LIBRARY_CONTEXT} = weak dso_local global ptr null, align 8"));
        self.f.module.define(&handle, || format!("{handle} = internal global ptr null, align 8"));
        self.f.module.define(&initialize, || {
            format!(
                "define internal i32 {initialize}(ptr %out) nounwind {{\n  \
                 %lookup = load ptr, ptr {lookup}, align 8\n  \
                 %library = load ptr, ptr @{LIBRARY_CONTEXT}, align 8\n  \
                 %code = call i32 %lookup(ptr %library, ptr {text}, ptr %out)\n  \
                 ret i32 %code\n}}"
            )
        });
        let once = self.runtime_function("TVMFFIHandleInitOnce");
        let missing = self.f.icmp("eq", &once, &Val::zero(Ty::PTR));
        let (fail, go_on) = (self.f.label(), self.f.label());
        self.f.branch_if(&missing, fail, go_on);
        self.f.start(fail);
        let message = format!("{}: no runtime is there to call `{name}`", self.kernel.name);
        self.fail("RuntimeError", &message);
        self.f.start(go_on);
        let code = self.f.emit(Ty::I32, format_args!("call i32 {}(ptr {handle}, ptr {initialize})", once.text));
        self.leave_unless_zero(&code);
        self.f.emit(Ty::PTR, format_args!("load ptr, ptr {handle}, align 8"))
    }

    /// A value's type index and payload.
    pub fn packed(&mut self, value: &Val, is_text: bool) -> Result<(i64, Val), CodegenError> {
        if value.ty.is_vector() {
            return Err(self.kernel.malformed("a vector is passed on as one value"));
        }
        Ok(match value.ty.kind {
            Kind::Bool => (2, self.f.convert(value, Ty::I64)),
            Kind::Int { .. } => (1, self.f.convert(value, Ty::I64)),
            Kind::F16 | Kind::BF16 | Kind::F32 | Kind::F64 => (3, self.f.convert(value, Ty::F64)),
            Kind::Ptr if is_text => (RAW_STRING, value.clone()),
            Kind::Ptr => (4, value.clone()),
        })
    }

    /// Writes a packed value.
    pub fn store_packed(&mut self, place: &Val, type_index: i64, payload: &Val) {
        let behind = self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i8, {place}, i64 8"));
        // Type index and padding at once.
        self.f.effect(format_args!("store i64 {type_index}, {place}, align 8"));
        self.f.effect(format_args!("store {payload}, {behind}, align 8"));
    }

    /// A number out of a packed value; an integer serves as a float too.
    fn unpacked(&mut self, place: &Val, ty: Ty) -> Val {
        let behind = self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i8, {place}, i64 8"));
        if ty.kind == Kind::Ptr {
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
