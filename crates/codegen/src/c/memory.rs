//! Loads, stores and allocation.

use relaxide_ir::{
    Buffer, PrimExpr, Ref, Var,
    prim::{BufferLoad, PrimVisitor},
};
use relaxide_tir::BufferStore;
use relaxide_tir::lower::Fault;

use super::{
    body::{Body, Known},
    code::{self, Code, Level, string},
    integers::replace_word,
    runtime,
    shared::{has_effects, shared},
    types::{declare, memory_type, suffix, value_type},
};
use crate::{
    error::CodegenError,
    on_device::is_shared,
    shared::{ScalarKind, Ty},
};

impl Body<'_, '_> {
    /// The element of a buffer in the lane at hand.
    pub fn eval_load(&mut self, n: &BufferLoad) -> Result<Code, CodegenError> {
        let element = self.kernel.ty(n.buffer.dtype)?;
        let on = match &n.predicate {
            Some(predicate) => Some(self.of_element(element, |this| this.condition(predicate))?),
            None => None,
        };
        let raw = self.place(&n.buffer, &n.indices)?;
        let raw = match self.kernel.pointers.element(&n.buffer.data) {
            Some(_) => raw,
            None => self.copied_out(&n.buffer.data, &raw, element.kind)?,
        };
        let value = match element.kind {
            ScalarKind::Bool => Code::infix(&raw, "!=", &Code::atom("0"), Level::Compare),
            _ => raw,
        };
        let zero = if element.kind.is_float() { code::float(element, 0.0) } else { code::integer(element, 0) };
        Ok(on.map_or_else(|| value.clone(), |on| Code::choice(&on, &value, &zero)))
    }

    /// One store; a vector's as a loop over its lanes.
    pub fn store(&mut self, n: &BufferStore) -> Result<(), CodegenError> {
        let expressions: Vec<&PrimExpr> = n.indices.iter().chain([&n.value]).chain(&n.predicate).collect();
        self.shared = shared(expressions.iter().copied());
        self.in_order = has_effects(expressions.iter().copied());
        let (element, value) = (self.kernel.ty(n.buffer.dtype)?, self.kernel.ty(n.value.dtype())?);
        let index_lanes = n.indices.last().map_or(1, |index| u32::from(index.dtype().lanes));
        let lanes = index_lanes * element.lanes;
        let fits = value.lanes == lanes || value.lanes == 1;
        if !fits || value.kind.bytes() != element.kind.bytes() {
            let what = format!("a store of {value} into {index_lanes} of {element} of `{}`", n.buffer.name);
            return Err(self.kernel.malformed(what));
        }
        if lanes == 1 {
            return self.store_lane(n, element, |this| this.eval(&n.value));
        }
        if self.in_order {
            return Err(self.kernel.unsupported("a call of a function in a vector"));
        }
        // All lanes are computed before any is stored.
        if value.lanes > 1 && self.may_read(&n.buffer.data, &expressions) {
            let vector = self.vector("vector", &n.value)?;
            return self.for_lanes(lanes, |this, lane| {
                let value = Code::element(&vector, &Code::atom(lane));
                this.store_lane(n, element, |_| Ok(value))
            });
        }
        self.for_lanes(lanes, |this, _| this.store_lane(n, element, |this| this.eval(&n.value)))
    }

    fn store_lane(
        &mut self,
        n: &BufferStore,
        element: Ty,
        value: impl FnOnce(&mut Self) -> Result<Code, CodegenError>,
    ) -> Result<(), CodegenError> {
        let value = value(self)?;
        let given = self.kernel.ty(n.value.dtype())?;
        let (held, wanted) = (value_type(given.kind), memory_type(element.kind));
        let value = if held == wanted || given.kind == ScalarKind::Bool { value } else { Code::cast(wanted, &value) };
        let place = self.place(&n.buffer, &n.indices)?;
        let line = match self.kernel.pointers.element(&n.buffer.data) {
            Some(_) => format!("{} = {};", place.text, value.text),
            None => self.copied_in(&n.buffer.data, &place, element.kind, &value)?,
        };
        let Some(predicate) = &n.predicate else {
            self.line(line);
            return Ok(());
        };
        let on = self.of_element(element, |this| this.condition(predicate))?;
        self.block(format_args!("if ({})", on.text), |this| {
            this.line(line);
            Ok(())
        })
    }

    /// Whether expressions may read what a store to the memory changes.
    fn may_read(&self, data: &Ref<Var>, expressions: &[&PrimExpr]) -> bool {
        struct Reads<'a>(Vec<&'a Ref<Var>>, bool);
        impl PrimVisitor for Reads<'_> {
            fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
                self.1 |= self.0.iter().any(|data| **data == buffer.data);
            }
        }
        if !self.kernel.distinct || self.kernel.pointers.element(data).is_none() {
            return true;
        }
        let mut reads = Reads(vec![data], false);
        expressions.iter().for_each(|e| reads.visit_prim(e));
        reads.1
    }

    /// Evaluates for the element that the lane at hand belongs to, where elements are vectors themselves.
    fn of_element<T>(&mut self, element: Ty, inside: impl FnOnce(&mut Self) -> T) -> T {
        let lane = self.lane.clone();
        if element.is_vector() {
            let count = code::integer(Ty::I32, i64::from(element.lanes));
            self.lane = lane.as_ref().map(|lane| Code::infix(lane, "/", &count, Level::Mul));
        }
        let value = inside(self);
        self.lane = lane;
        value
    }

    /// The element in the lane at hand, as `A[i]`; for memory of several types its number, counted in elements.
    fn place(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Result<Code, CodegenError> {
        let element = self.kernel.ty(buffer.dtype)?;
        let mut index = self.of_element(element, |this| this.flat_index(buffer, indices))?;
        if element.is_vector() {
            let lane = self.lane.clone().ok_or_else(|| self.kernel.malformed("a vector element as one value"))?;
            let count = code::integer(Ty::I64, i64::from(element.lanes));
            let inner = Code::infix(&lane, "%", &count, Level::Mul);
            index = Code::infix(&Code::infix(&index, "*", &count, Level::Mul), "+", &inner, Level::Add);
        }
        if self.kernel.pointers.element(&buffer.data).is_none() {
            return Ok(index);
        }
        let base = self.known_var(&buffer.data)?;
        Ok(Code::element(&base.code.inside(Level::Atom), &index))
    }

    /// The index into the buffer's memory.
    fn flat_index(&mut self, buffer: &Buffer, indices: &[PrimExpr]) -> Result<Code, CodegenError> {
        let flat =
            crate::flat_index::flat_index(buffer, indices).map_err(|what| self.kernel.malformed(what.to_string()))?;
        self.index(&flat)
    }

    /// The address of an element.
    pub fn address_of(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Result<Code, CodegenError> {
        self.kernel.only_on_hosts("an address")?;
        let element = self.kernel.ty(buffer.dtype)?;
        let base = self.known_var(&buffer.data)?;
        let index = self.flat_index(buffer, indices)?;
        let bytes = code::integer(Ty::I64, i64::from(element.lanes) * element.kind.bytes() as i64);
        let offset = Code::infix(&Code::cast("int64_t", &index), "*", &bytes, Level::Mul);
        let base = Code::cast("char *", &base.code);
        Ok(Code::cast("void *", &Code::infix(&base, "+", &offset, Level::Add)))
    }

    fn copied_out(&mut self, data: &Ref<Var>, index: &Code, kind: ScalarKind) -> Result<Code, CodegenError> {
        self.kernel.only_on_hosts("memory of several types of elements")?;
        let function = format!("rx_load_{}", suffix(kind));
        self.source
            .helper(function.clone(), |_| replace_word(&COPY_OUT.replace("{f}", &function), "T", memory_type(kind)));
        let base = self.known_var(data)?;
        Ok(Code::call(&function, &[&base.code, index]))
    }

    fn copied_in(
        &mut self,
        data: &Ref<Var>,
        index: &Code,
        kind: ScalarKind,
        value: &Code,
    ) -> Result<String, CodegenError> {
        self.kernel.only_on_hosts("memory of several types of elements")?;
        let function = format!("rx_store_{}", suffix(kind));
        self.source
            .helper(function.clone(), |_| replace_word(&COPY_IN.replace("{f}", &function), "T", memory_type(kind)));
        let base = self.known_var(data)?;
        Ok(format!("{};", Code::call(&function, &[&base.code, index, value]).text))
    }

    /// Allocates a buffer, on the stack or, where it is large, from the workspace until the end of its sequence.
    pub fn allocate(&mut self, buffer: &Ref<Buffer>) -> Result<(), CodegenError> {
        if is_shared(buffer) && self.kernel.device.is_some() {
            // It is declared already.
            return Ok(());
        }
        let element = self.kernel.ty(buffer.dtype)?;
        let size = i64::from(element.lanes) * element.kind.bytes() as i64;
        let pointer = self.kernel.pointers.pointer(&buffer.data);
        let name = self.fresh(&buffer.name);
        if let Some(bytes) = self.stack.take(buffer) {
            let typed = self.kernel.pointers.element(&buffer.data);
            let each = if typed.is_some() { element.kind.bytes() as i64 } else { 1 };
            let array = declare(typed.unwrap_or("unsigned char"), &name);
            self.line(format_args!("{array}[{}];", (bytes / each).max(1)));
        } else {
            self.kernel.only_on_hosts("memory that a thread takes for itself, and is large or of unknown size")?;
            self.shared.clear();
            let mut count = Code::atom(format!("INT64_C({size})"));
            for dimension in &buffer.shape {
                let dimension = self.wide_index(dimension)?;
                count = Code::infix(&count, "*", &dimension, Level::Mul);
            }
            runtime::workspace(self.source);
            let (code, bits) = (buffer.dtype.code, buffer.dtype.bits);
            let memory = declare(&pointer, &name);
            self.line(format_args!("{memory} = rx_allocate({}, {code}, {bits});", count.text));
            let message = format!("{}: no workspace memory for buffer `{}`", self.kernel.name, buffer.name);
            self.block(format_args!("if ({name} == NULL)"), |this| {
                this.fail("MemoryError", &message);
                Ok(())
            })?;
            self.workspaces.push(name.clone());
        }
        self.vars.insert(buffer.data.clone(), Known::scalar(name, pointer));
        Ok(())
    }

    pub fn free_workspace(&mut self, pointer: &str) {
        runtime::workspace(self.source);
        self.line(format_args!("rx_free({pointer});"));
    }

    /// Raises an error of fixed text and leaves.
    pub fn fail(&mut self, kind: &str, message: &str) {
        if self.kernel.device.is_some() {
            let fault = Fault::Assertion(kind.to_string(), message.to_string());
            return self.fault(&fault, ["0", "0"]);
        }
        runtime::raise(self.source);
        self.line(format_args!("rx_raise({}, {});", string(kind), string(message)));
        self.leave("-1");
    }
}

const COPY_OUT: &str = "static inline T {f}(const void *memory, int64_t index) {
    T element;
    memcpy(&element, (const char *)memory + index * (int64_t)sizeof element, sizeof element);
    return element;
}
";

const COPY_IN: &str = "static inline void {f}(void *memory, int64_t index, T element) {
    memcpy((char *)memory + index * (int64_t)sizeof element, &element, sizeof element);
}
";
