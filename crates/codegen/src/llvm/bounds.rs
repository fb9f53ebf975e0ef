//! Indices that are held against their extents (the intrinsic `checked_index`).
//!
//! An index outside of its extent raises an `IndexError` with both numbers and leaves the kernel; inside a parallel loop it
//! ends the task, and the loop's launch hands the error on.

use relaxide_ir::PrimExpr;
use relaxide_tir::lower::Fault;

use super::{
    kernel::Body,
    module::ModuleText,
    raise,
    value::{Ty, Val},
};
use crate::error::CodegenError;

/// The function that raises: takes what comes before and between the numbers, and the numbers.
const OUTSIDE: &str = "relaxide.outside";

/// The same for any kind of error, which it takes first, with what comes behind the numbers.
const TOLD: &str = "relaxide.told";

impl Body<'_, '_> {
    /// The first lane of a vector among those that are marked, of which there is one.
    fn first_lane_of(&mut self, vector: &Val, marked: &Val) -> Val {
        if vector.ty.is_scalable() {
            let name = format!("llvm.experimental.cttz.elts.i64.{}", marked.ty.mangled());
            let at = self.f.call_with_immediates(&name, Ty::I64, &[marked, &Val::int(Ty::BOOL, 1)], &[1]);
            return self.f.emit(vector.ty.element(), format_args!("extractelement {vector}, {at}"));
        }
        let last = vector.ty.lanes - 1;
        let mut first = self.f.lane(vector, last);
        for lane in (0..last).rev() {
            let (bad, value) = (self.f.lane(marked, lane), self.f.lane(vector, lane));
            first = self.f.select(&bad, &value, &first);
        }
        first
    }

    /// The index, in 64 bits, once all lanes of it that are on have been found inside.
    pub fn checked_index(
        &mut self,
        index: &PrimExpr,
        shown: &PrimExpr,
        extent: &PrimExpr,
        what: &str,
        on: Option<&PrimExpr>,
    ) -> Result<Val, CodegenError> {
        let (index, shown, extent) = (self.eval(index)?, self.eval(shown)?, self.eval(extent)?);
        let shown = self.f.convert(&shown, Ty::I64);
        let (index, extent) = (self.f.convert(&index, Ty::I64), self.f.convert(&extent, Ty::I64));
        let lanes = index.ty.lanes;
        // As unsigned numbers, negative indices are the largest.
        let limits = self.f.splat_to(&extent, lanes);
        let mut outside = self.f.icmp("uge", &index, &limits);
        let on = match on {
            Some(on) => Some(self.eval(on)?),
            None => None,
        };
        for on in on.into_iter().chain(self.mask.clone()) {
            let on = self.f.splat_to(&on, lanes);
            if on.ty.lanes != lanes {
                let what = format!("a predicate of {} lanes for an index of {lanes}", on.ty.lanes);
                return Err(self.kernel.malformed(what));
            }
            outside = self.f.op("and", &outside, &on);
        }
        let any = match outside.ty.is_vector() {
            true => self.f.intrinsic("vector.reduce.or", outside.ty, Ty::BOOL, &[&outside]),
            false => outside.clone(),
        };
        let (fail, go_on) = (self.f.label(), self.f.label());
        self.f.branch_if(&any, fail, go_on);
        self.f.start(fail);
        let wrong = match outside.ty.is_vector() {
            true => self.first_lane_of(&shown, &outside),
            false => shown,
        };
        let extent = self.f.lane(&extent, 0);
        if self.kernel.device.is_some() {
            self.fault(&Fault::Index(what.to_string()), [&wrong, &extent]);
            self.f.start(go_on);
            return Ok(index);
        }
        define(self.f.module);
        let head = format!("{}: index ", self.f.module.plain(&self.kernel.name));
        let head = self.f.module.string(&head);
        let middle = self.f.module.string(&format!(" of {what} is outside of the extent "));
        self.f.effect(format_args!("call void @{OUTSIDE}(ptr {head}, {wrong}, ptr {middle}, {extent})"));
        self.leave(-1);
        self.f.start(go_on);
        Ok(index)
    }
}

impl Body<'_, '_> {
    /// An integer that a message may tell.
    pub fn number(&mut self, e: &PrimExpr) -> Result<Val, CodegenError> {
        let value = self.eval(e)?;
        Ok(self.f.convert(&value, Ty::I64))
    }

    /// Raises an error whose text has two numbers in it, and leaves.
    pub fn fail_with_numbers(&mut self, kind: &str, texts: [&str; 3], [first, second]: &[Val; 2]) {
        define(self.f.module);
        let kind = self.f.module.string(kind);
        let [before, between, behind] = texts.map(|text| self.f.module.string(text));
        self.f.effect(format_args!(
            "call void @{TOLD}(ptr {kind}, ptr {before}, {first}, ptr {between}, {second}, ptr {behind})"
        ));
        self.leave(-1);
    }
}

/// Writes the functions that put numbers into messages, unless they are there.
fn define(module: &mut ModuleText) {
    raise::define(module);
    let (kind, nothing) = (module.string("IndexError"), module.string(""));
    module.define(OUTSIDE, || {
        TEMPLATE
            .replace("{outside}", OUTSIDE)
            .replace("{told}", TOLD)
            .replace("{raise}", raise::RAISE)
            .replace("{kind}", &kind)
            .replace("{nothing}", &nothing)
    });
}

const TEMPLATE: &str = r#"define internal void @{outside}(ptr %head, i64 %index, ptr %middle, i64 %extent) cold noinline nounwind {
  call void @{told}(ptr {kind}, ptr %head, i64 %index, ptr %middle, i64 %extent, ptr {nothing})
  ret void
}
define internal void @{told}(ptr %kind, ptr %head, i64 %index, ptr %middle, i64 %extent, ptr %tail) cold noinline nounwind {
  %a = alloca i8, i64 24, align 1
  %b = alloca i8, i64 24, align 1
  %a_end = getelementptr i8, ptr %a, i64 24
  %b_end = getelementptr i8, ptr %b, i64 24
  %index_text = call ptr @relaxide.decimal(ptr %a_end, i64 %index)
  %extent_text = call ptr @relaxide.decimal(ptr %b_end, i64 %extent)
  call void @{raise}(ptr %kind, ptr %head, ptr %index_text, ptr %middle, ptr %extent_text, ptr %tail, ptr {nothing}, ptr {nothing})
  ret void
}
define internal ptr @relaxide.decimal(ptr %end, i64 %value) noinline nounwind "no-builtins" {
entry:
  %last = getelementptr i8, ptr %end, i64 -1
  store i8 0, ptr %last, align 1
  %negative = icmp slt i64 %value, 0
  %opposite = sub i64 0, %value
  %magnitude = select i1 %negative, i64 %opposite, i64 %value
  br label %next
next:
  %left = phi i64 [ %magnitude, %entry ], [ %rest, %next ]
  %behind = phi ptr [ %last, %entry ], [ %at, %next ]
  %rest = udiv i64 %left, 10
  %whole = mul i64 %rest, 10
  %digit = sub i64 %left, %whole
  %small = trunc i64 %digit to i8
  %character = add i8 %small, 48
  %at = getelementptr i8, ptr %behind, i64 -1
  store i8 %character, ptr %at, align 1
  %done = icmp eq i64 %rest, 0
  br i1 %done, label %sign, label %next
sign:
  br i1 %negative, label %minus, label %finish
minus:
  %first = getelementptr i8, ptr %at, i64 -1
  store i8 45, ptr %first, align 1
  br label %finish
finish:
  %text = phi ptr [ %at, %sign ], [ %first, %minus ]
  ret ptr %text
}"#;
