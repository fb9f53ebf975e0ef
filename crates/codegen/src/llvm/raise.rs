//! Raising errors from compiled code.
//!
//! A message is made of up to seven pieces, of which most (how the kernel is called, the words around names) are shared by
//! many checks. They are joined on the stack and handed to the runtime through the slot `__TVMFFIErrorSetRaisedFromCStr`,
//! which every loader of such libraries fills. So a library imports nothing from the process that loads it, and loads
//! anywhere.

use super::{
    function::FunctionText,
    module::ModuleText,
    tensor_check::distance,
    value::{Ty, Val},
};

/// The function that raises: takes the kind and seven pieces.
pub(super) const RAISE: &str = "relaxide.raise";

/// The function that raises what a row of a [`refusals`] table says.
pub(super) const REFUSE: &str = "relaxide.refuse";

/// How many pieces a message has.
const PIECES: usize = 7;

/// Bytes in a row of a [`refusals`] table.
pub(super) const ROW: usize = 12;

/// Raises an error of fixed text.
pub(super) fn raise(f: &mut FunctionText<'_>, kind: &str, message: &str) {
    define(f.module);
    let mut values = vec![Val::new(Ty::PTR, f.module.string(kind)), Val::new(Ty::PTR, f.module.string(message))];
    values.resize_with(PIECES + 1, || Val::new(Ty::PTR, f.module.string("")));
    f.effect(format_args!("call void @{RAISE}({})", super::function::join(&values)));
}

/// A table of errors, each a kind, what comes before the kernel's signature in its message, and what comes behind.
pub(super) fn refusals(module: &mut ModuleText, rows: &[[String; 3]]) -> String {
    define(module);
    let table = format!("@.refusals{}", module.fresh_number());
    let mut fields = Vec::with_capacity(rows.len() * 3);
    for (row, texts) in rows.iter().enumerate() {
        for text in texts {
            let text = module.string(text);
            fields.push(distance(module, &text, &table, row * ROW));
        }
    }
    let (count, list) = (fields.len(), fields.join(", "));
    module.define(&table, || format!("{table} = internal unnamed_addr constant [{count} x i32] [{list}], align 4"));
    table
}

/// Writes the functions that raise, unless they are there.
pub(super) fn define(module: &mut ModuleText) {
    let pieces = ", ptr".repeat(PIECES);
    module.helper(RAISE, &format!("void @{RAISE}(ptr{pieces})"), |module| {
        let slot = module.runtime_slot("TVMFFIErrorSetRaisedFromCStr");
        let params: String = (0..PIECES).map(|i| format!(", ptr %p{i}")).collect();
        let lengths: String = (0..PIECES)
            .map(|i| format!("  %l{i} = call i64 @relaxide.length(ptr %p{i})\n  %n{} = add i64 %n{i}, %l{i}\n", i + 1))
            .collect();
        let copies: String =
            (0..PIECES).map(|i| format!("  %t{} = call ptr @relaxide.append(ptr %t{i}, ptr %p{i})\n", i + 1)).collect();
        TEMPLATE
            .replace("{raise}", RAISE)
            .replace("{slot}", &slot)
            .replace("{pieces}", &params)
            .replace("{lengths}", &lengths)
            .replace("{copies}", &copies)
            .replace("{count}", &PIECES.to_string())
    });
    module.helper(REFUSE, &format!("void @{REFUSE}(ptr, ptr)"), |module| {
        let nothing = module.string("");
        REFUSE_TEMPLATE.replace("{refuse}", REFUSE).replace("{raise}", RAISE).replace("{nothing}", &nothing)
    });
}

const TEMPLATE: &str = r#"define {linkage} void @{raise}(ptr %kind{pieces}) cold noinline nounwind "no-builtins" {
entry:
  %function = load ptr, ptr {slot}, align 8
  %missing = icmp eq ptr %function, null
  br i1 %missing, label %done, label %join
join:
  %n0 = add i64 0, 1
{lengths}  %t0 = alloca i8, i64 %n{count}, align 1
{copies}  store i8 0, ptr %t{count}, align 1
  call void %function(ptr %kind, ptr %t0)
  br label %done
done:
  ret void
}
define internal i64 @relaxide.length(ptr %text) noinline nounwind "no-builtins" {
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
}
define internal ptr @relaxide.append(ptr %to, ptr %from) noinline nounwind "no-builtins" {
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
}"#;

const REFUSE_TEMPLATE: &str = r#"define {linkage} void @{refuse}(ptr %row, ptr %signature) cold noinline nounwind {
  %kind_far = load i32, ptr %row, align 4
  %head_at = getelementptr i32, ptr %row, i64 1
  %head_far = load i32, ptr %head_at, align 4
  %tail_at = getelementptr i32, ptr %row, i64 2
  %tail_far = load i32, ptr %tail_at, align 4
  %kind_wide = sext i32 %kind_far to i64
  %head_wide = sext i32 %head_far to i64
  %tail_wide = sext i32 %tail_far to i64
  %kind = getelementptr i8, ptr %row, i64 %kind_wide
  %head = getelementptr i8, ptr %row, i64 %head_wide
  %tail = getelementptr i8, ptr %row, i64 %tail_wide
  call void @{raise}(ptr %kind, ptr %head, ptr %signature, ptr %tail, ptr {nothing}, ptr {nothing}, ptr {nothing}, ptr {nothing})
  ret void
}"#;
