//! Raising errors from compiled code.
//!
//! A message is made of three pieces, of which the middle one (how the kernel is called) is shared by all checks of a
//! kernel. They are joined on the stack and handed to the runtime through the slot `__TVMFFIErrorSetRaisedFromCStr`, which
//! every loader of such libraries fills. So a library imports nothing from the process that loads it, and loads anywhere.

use super::{
    function::FunctionText,
    value::{Ty, Val},
};

const RAISE: &str = "relaxide.raise";

/// Raises an error of fixed text: up to three pieces.
pub(super) fn raise(f: &mut FunctionText<'_>, kind: &str, pieces: &[&str]) {
    let mut texts = [kind, "", "", ""];
    for (slot, piece) in texts[1..].iter_mut().zip(pieces) {
        *slot = piece;
    }
    let values = texts.map(|text| Val::new(Ty::PTR, f.module.string(text)));
    raise_values(f, &values);
}

/// Raises an error from pointers to its kind and its three pieces.
pub(super) fn raise_values(f: &mut FunctionText<'_>, texts: &[Val; 4]) {
    let slot = f.module.runtime_slot("TVMFFIErrorSetRaisedFromCStr");
    f.module.define(RAISE, || definition(&slot));
    let [kind, first, second, third] = texts;
    f.effect(format_args!("call void @{RAISE}({kind}, {first}, {second}, {third})"));
}

fn definition(slot: &str) -> String {
    format!(
        r#"define internal void @{RAISE}(ptr %kind, ptr %a, ptr %b, ptr %c) cold noinline nounwind "no-builtins" {{
entry:
  %function = load ptr, ptr {slot}, align 8
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %done, label %join
join:
  %la = call i64 @relaxide.length(ptr %a)
  %lb = call i64 @relaxide.length(ptr %b)
  %lc = call i64 @relaxide.length(ptr %c)
  %lab = add i64 %la, %lb
  %labc = add i64 %lab, %lc
  %size = add i64 %labc, 1
  %text = alloca i8, i64 %size, align 1
  %after_a = call ptr @relaxide.append(ptr %text, ptr %a)
  %after_b = call ptr @relaxide.append(ptr %after_a, ptr %b)
  %after_c = call ptr @relaxide.append(ptr %after_b, ptr %c)
  store i8 0, ptr %after_c, align 1
  call void %function(ptr %kind, ptr %text)
  br label %done
done:
  ret void
}}
define internal i64 @relaxide.length(ptr %text) noinline nounwind "no-builtins" {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %p = getelementptr inbounds i8, ptr %text, i64 %i
  %c = load i8, ptr %p, align 1
  %j = add i64 %i, 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %done, label %next
done:
  ret i64 %i
}}
define internal ptr @relaxide.append(ptr %to, ptr %from) noinline nounwind "no-builtins" {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %more ]
  %p = getelementptr inbounds i8, ptr %from, i64 %i
  %q = getelementptr inbounds i8, ptr %to, i64 %i
  %c = load i8, ptr %p, align 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %done, label %more
more:
  store i8 %c, ptr %q, align 1
  %j = add i64 %i, 1
  br label %next
done:
  ret ptr %q
}}"#
    )
}
