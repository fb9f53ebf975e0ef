//! The checks that every tensor argument gets, as one function over a record for each argument.

use relaxide_ir::Buffer;

use super::{code::string, runtime, source::Source};
use crate::shared::tensor_failures::{self, Expected};

/// Defines the function: takes a packed argument, a record and the kernel's signature, gives the tensor, or null with an error
/// raised.
pub(crate) fn define(source: &mut Source) {
    runtime::values(source);
    runtime::refuse(source);
    source.helper("rx_check_tensor", |_| {
        let mut text = CHECK.to_string();
        for failure in &tensor_failures::ALL {
            let name = if failure.names_tensor() { "wanted->name" } else { "\"\"" };
            let expected = match failure.expected {
                Expected::Fixed(text) => string(text),
                // C is for hosts.
                Expected::Device => string("cpu"),
                Expected::Rank => "wanted->ndim_text".into(),
                Expected::ElementType => "wanted->dtype_text".into(),
                Expected::ByteOffset => "wanted->byte_offset_text".into(),
                Expected::Alignment => "wanted->alignment_text".into(),
            };
            let (kind, before, after, tail) =
                (string(failure.kind), string(failure.before), string(failure.after), string(failure.tail));
            let call = format!("rx_wrong(wanted, signature, {kind}, {before}, {name}, {after}, {tail}, {expected})");
            text = text.replace(&format!("{{{}}}", failure.check), &call);
        }
        text
    });
}

/// The record of an argument, as an initializer.
pub(crate) fn record(buffer: &Buffer, alignment: u64, position: usize) -> String {
    let offset = fixed_offset(buffer);
    let (name, place) = (string(&buffer.name), string(&format!(" on argument #{position}")));
    let dtype = buffer.dtype;
    let fields = [
        name,
        place,
        string(&buffer.ndim().to_string()),
        string(&dtype.to_string()),
        string(&offset.unwrap_or_default().to_string()),
        string(&format!("{alignment} bytes")),
        buffer.ndim().to_string(),
        dtype.code.to_string(),
        dtype.bits.to_string(),
        dtype.lanes.to_string(),
        buffer.strides.is_empty().to_string(),
        offset.is_some().to_string(),
        format!("UINT64_C({})", offset.unwrap_or_default() as u64),
        alignment.to_string(),
    ];
    format!("{{{}}}", fields.join(", "))
}

/// How long a message about the argument can be, without the kernel's signature.
pub(crate) fn longest(buffer: &Buffer) -> usize {
    let fixed = tensor_failures::ALL.iter().map(|failure| {
        let expected = match failure.expected {
            Expected::Fixed(text) => text.len(),
            Expected::Device => "cpu".len(),
            _ => 40,
        };
        failure.before.len() + failure.after.len() + failure.tail.len() + expected
    });
    fixed.max().unwrap_or_default() + buffer.name.len() + 40
}

fn fixed_offset(buffer: &Buffer) -> Option<i64> {
    buffer.elem_offset.as_int().map(|elements| elements.wrapping_mul(buffer.dtype.bytes() as i64))
}

const CHECK: &str = "/* What a kernel wants of a tensor. */
typedef struct {
    const char *name;
    const char *place;
    const char *ndim_text;
    const char *dtype_text;
    const char *byte_offset_text;
    const char *alignment_text;
    int32_t ndim;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    bool is_compact;
    bool has_offset;
    uint64_t byte_offset;
    uint32_t alignment;
} rx_wanted;

static rx_tensor *rx_wrong(const rx_wanted *wanted, const char *signature, const char *kind, const char *before,
                           const char *name, const char *after, const char *tail, const char *expected) {
    char message[RX_LONGEST_MESSAGE];
    char *end = rx_append(rx_append(rx_append(message, before), name), after);
    rx_append(rx_append(rx_append(rx_append(end, wanted->place), signature), tail), expected);
    rx_raise(kind, message);
    return NULL;
}

/* The tensor in a packed value; NULL with an error raised if it is not what a kernel wants. */
static rx_tensor *rx_check_tensor(const rx_value *value, const rx_wanted *wanted, const char *signature) {
    int32_t type = value->type_index;
    char *pointer = value->value.pointer;
    if (pointer == NULL || (type != 0 && type != 4 && type != 7 && type != 70)) {
        return {entry};
    }
    /* Behind the header of a tensor object lies its description. */
    rx_tensor *tensor = (rx_tensor *)(void *)(type == 70 ? pointer + 24 : pointer);
    if (tensor->ndim != wanted->ndim) {
        return {rank};
    }
    if (tensor->dtype.code != wanted->code || tensor->dtype.bits != wanted->bits ||
        tensor->dtype.lanes != wanted->lanes) {
        return {dtype};
    }
    if (tensor->device.type != 1) {
        return {device};
    }
    int64_t compact = 1;
    bool is_compact = true;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; --axis) {
        int64_t extent = tensor->shape[axis];
        if (tensor->strides != NULL && extent != 1 && tensor->strides[axis] != compact) is_compact = false;
        compact = (int64_t)((uint64_t)compact * (uint64_t)extent);
    }
    bool is_empty = compact == 0;
    if (wanted->is_compact && !is_compact && !is_empty) {
        return {judged};
    }
    if (tensor->data == NULL && !is_empty) {
        return {data};
    }
    uint64_t moved = wanted->has_offset ? 0 : tensor->byte_offset;
    if (((uintptr_t)tensor->data + moved) % wanted->alignment != 0 && !is_empty) {
        return {address};
    }
    if (wanted->has_offset && tensor->byte_offset != wanted->byte_offset) {
        return {offset};
    }
    return tensor;
}
";
