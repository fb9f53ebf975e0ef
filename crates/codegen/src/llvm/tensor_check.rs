//! The checks that every tensor argument gets, as one function of the library over a record for each argument.
//!
//! Written out in every kernel these checks would be as much code as the kernels. The record says what is expected and how to
//! name it; texts are given by their distance from the record, so that loading a library relocates nothing.

use relaxide_ffi::Device;
use relaxide_ir::Buffer;

use super::{
    module::ModuleText,
    raise::{self, RAISE},
    value::Ty,
};
use crate::shared::tensor_failures::{self, Expected, Failure};

/// The function: takes a packed argument and a record, gives the DLTensor, or null with an error raised.
pub(super) const CHECK: &str = "relaxide.tensor";

/// A DLTensor, in C's layout on each machine: data, device type and number, rank, element type, shape, strides, byte offset.
pub(super) const DL_TENSOR: &str = "{ ptr, i32, i32, i32, i32, ptr, ptr, i64 }";

/// The fields of a tensor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    Data = 0,
    DeviceType = 1,
    DeviceId = 2,
    Rank = 3,
    ElementType = 4,
    Shape = 5,
    Strides = 6,
    ByteOffset = 7,
}

impl Field {
    pub fn ty(self) -> Ty {
        match self {
            Self::Data | Self::Shape | Self::Strides => Ty::PTR,
            Self::DeviceType | Self::DeviceId | Self::Rank | Self::ElementType => Ty::I32,
            Self::ByteOffset => Ty::I64,
        }
    }
}

/// Whether strides must be compact, as bits of a record's flags.
const COMPACT: i64 = 1;
/// Whether the byte offset is fixed.
const FIXED_OFFSET: i64 = 2;

/// Writes the record of an argument, and the function if it is the first; the record's name. Elements are accessed at
/// multiples of `alignment` bytes: a tensor from elsewhere need not begin at one.
pub(super) fn record(
    module: &mut ModuleText,
    buffer: &Buffer,
    alignment: u64,
    position: usize,
    middle: &str,
    device_type: i64,
) -> String {
    raise::define(module);
    define(module);
    let name = format!("@.tensor{}", module.fresh_number());
    let fixed_offset = buffer.elem_offset.as_int().map(|elements| elements * buffer.dtype.bytes() as i64);
    let texts = [
        buffer.name.clone(),
        format!(" on argument #{position}"),
        middle.to_string(),
        buffer.ndim().to_string(),
        buffer.dtype.to_string(),
        fixed_offset.unwrap_or_default().to_string(),
        format!("{alignment} bytes"),
        device_name(device_type),
    ];
    let mut fields: Vec<String> = texts
        .iter()
        .map(|text| {
            let text = module.string(text);
            distance(module, &text, &name, 0)
        })
        .collect();
    let [low, high] = buffer.dtype.lanes.to_le_bytes();
    let word = i32::from_le_bytes([buffer.dtype.code, buffer.dtype.bits, low, high]);
    let mut flags = if buffer.strides.is_empty() { COMPACT } else { 0 };
    // An offset beyond the field is checked by nobody's record, but no such tensor can be made either.
    let offset = fixed_offset.and_then(|bytes| i32::try_from(bytes).ok());
    flags |= if offset.is_some() { FIXED_OFFSET } else { 0 };
    let offset = i64::from(offset.unwrap_or_default());
    for number in [buffer.ndim() as i64, i64::from(word), offset, flags, alignment as i64 - 1, device_type] {
        fields.push(format!("i32 {number}"));
    }
    let (count, list) = (fields.len(), fields.join(", "));
    module.define(&name, || format!("{name} = internal unnamed_addr constant [{count} x i32] [{list}], align 4"));
    name
}

fn device_name(device_type: i64) -> String {
    let device = i32::try_from(device_type).map(|device_type| Device::new(device_type, 0));
    device.ok().and_then(Device::type_name).map_or_else(|| format!("device {device_type}"), str::to_string)
}

/// How far a text lies from a record (plus an offset into it), as a constant.
pub(super) fn distance(module: &ModuleText, text: &str, from: &str, offset: usize) -> String {
    let word = module.word();
    let from = format!("ptrtoint (ptr getelementptr (i8, ptr {from}, i64 {offset}) to {word})");
    let far = format!("sub ({word} ptrtoint (ptr {text} to {word}), {word} {from})");
    // Assemblers know differences of addresses, and nothing that widens them.
    if word == "i32" { format!("i32 {far}") } else { format!("i32 trunc ({word} {far} to i32)") }
}

/// Writes the function, unless it is there.
pub(super) fn define(module: &mut ModuleText) {
    module.helper(CHECK, &format!("ptr @{CHECK}(ptr, ptr)"), definition);
}

fn definition(module: &mut ModuleText) -> String {
    let mut phi = |value: &str, text: &dyn Fn(&Failure) -> (&'static str, String)| {
        let incoming: Vec<String> = tensor_failures::ALL
            .iter()
            .map(|failure| {
                let (literal, register) = text(failure);
                let operand = if register.is_empty() { module.string(literal) } else { register };
                format!("[ {operand}, %{} ]", failure.check)
            })
            .collect();
        format!("  {value} = phi ptr {}\n", incoming.join(", "))
    };
    let fixed = |text: &'static str| (text, String::new());
    let mut fail = phi("%kind", &|failure| fixed(failure.kind));
    fail += &phi("%before", &|failure| fixed(failure.before));
    fail += &phi("%named", &|failure| match failure.names_tensor() {
        true => ("", "%name".to_string()),
        false => fixed(""),
    });
    fail += &phi("%after", &|failure| fixed(failure.after));
    fail += &phi("%tail", &|failure| fixed(failure.tail));
    fail += &phi("%expected", &|failure| match failure.expected {
        Expected::Fixed(text) => fixed(text),
        Expected::Rank => ("", "%text3".into()),
        Expected::ElementType => ("", "%text4".into()),
        Expected::ByteOffset => ("", "%text5".into()),
        Expected::Alignment => ("", "%text6".into()),
        Expected::Device => ("", "%text7".into()),
    });
    let texts: String = (0..8)
        .map(|index| {
            format!(
                "  %at{index} = getelementptr i32, ptr %record, i64 {index}\n  \
                 %far{index} = load i32, ptr %at{index}, align 4\n  \
                 %wide{index} = sext i32 %far{index} to i64\n  \
                 %text{index} = getelementptr i8, ptr %record, i64 %wide{index}\n"
            )
        })
        .collect();
    let body = TEMPLATE.replace("{texts}", &texts.replace("%text0 ", "%name ")).replace("{fail}", &fail);
    body.replace("{DL}", DL_TENSOR).replace("{name}", CHECK).replace("{raise}", RAISE)
}

/// Numbers of a record follow its eight texts: rank, element type, byte offset, flags, bits that the address must not have, device type.
/// The type indices of plain pointers (0, 4 and 7) are the bits of 145.
const TEMPLATE: &str = "define {linkage} ptr @{name}(ptr %packed, ptr %record) noinline nounwind uwtable {
entry:
{texts}  %type = load i32, ptr %packed, align 8
  %payload = getelementptr i8, ptr %packed, i64 8
  %pointer = load ptr, ptr %payload, align 8
  %object = icmp eq i32 %type, 70
  %behind = getelementptr i8, ptr %pointer, i64 24
  %tensor = select i1 %object, ptr %behind, ptr %pointer
  %small = icmp ult i32 %type, 8
  %low = and i32 %type, 7
  %bits = lshr i32 145, %low
  %bit = trunc i32 %bits to i1
  %plain = and i1 %small, %bit
  %known = or i1 %object, %plain
  %present = icmp ne ptr %pointer, null
  %fine = and i1 %known, %present
  br i1 %fine, label %rank, label %fail
rank:
  %ndim_at = getelementptr {DL}, ptr %tensor, i64 0, i32 3
  %ndim = load i32, ptr %ndim_at, align 4
  %wanted_ndim_at = getelementptr i32, ptr %record, i64 8
  %wanted_ndim = load i32, ptr %wanted_ndim_at, align 4
  %same_ndim = icmp eq i32 %ndim, %wanted_ndim
  br i1 %same_ndim, label %dtype, label %fail
dtype:
  %dtype_at = getelementptr {DL}, ptr %tensor, i64 0, i32 4
  %dtype_is = load i32, ptr %dtype_at, align 4
  %wanted_dtype_at = getelementptr i32, ptr %record, i64 9
  %wanted_dtype = load i32, ptr %wanted_dtype_at, align 4
  %same_dtype = icmp eq i32 %dtype_is, %wanted_dtype
  br i1 %same_dtype, label %device, label %fail
device:
  %device_at = getelementptr {DL}, ptr %tensor, i64 0, i32 1
  %device_is = load i32, ptr %device_at, align 4
  %wanted_device_at = getelementptr i32, ptr %record, i64 13
  %wanted_device = load i32, ptr %wanted_device_at, align 4
  %same_device = icmp eq i32 %device_is, %wanted_device
  br i1 %same_device, label %strides, label %fail
strides:
  %flags_at = getelementptr i32, ptr %record, i64 11
  %flags = load i32, ptr %flags_at, align 4
  %shape_at = getelementptr {DL}, ptr %tensor, i64 0, i32 5
  %shape = load ptr, ptr %shape_at
  %strides_at = getelementptr {DL}, ptr %tensor, i64 0, i32 6
  %strides_are = load ptr, ptr %strides_at
  %absent = icmp eq ptr %strides_are, null
  %readable = select i1 %absent, ptr %shape, ptr %strides_are
  %axes = zext i32 %ndim to i64
  br label %axis
axis:
  %left = phi i64 [ %axes, %strides ], [ %index, %next ]
  %compact = phi i64 [ 1, %strides ], [ %product, %next ]
  %ok = phi i1 [ true, %strides ], [ %still, %next ]
  %end = icmp eq i64 %left, 0
  br i1 %end, label %judged, label %next
next:
  %index = add i64 %left, -1
  %extent_at = getelementptr i64, ptr %shape, i64 %index
  %extent = load i64, ptr %extent_at, align 8
  %stride_at = getelementptr i64, ptr %readable, i64 %index
  %stride = load i64, ptr %stride_at, align 8
  %same = icmp eq i64 %stride, %compact
  %single = icmp eq i64 %extent, 1
  %either = or i1 %same, %single
  %good = or i1 %either, %absent
  %still = and i1 %ok, %good
  %product = mul i64 %compact, %extent
  br label %axis
judged:
  %empty = icmp eq i64 %compact, 0
  %compact_bit = and i32 %flags, 1
  %any = icmp eq i32 %compact_bit, 0
  %lax = or i1 %empty, %any
  %strides_fit = or i1 %ok, %lax
  br i1 %strides_fit, label %data, label %fail
data:
  %data_is = load ptr, ptr %tensor
  %data_present = icmp ne ptr %data_is, null
  %data_fits = or i1 %data_present, %empty
  br i1 %data_fits, label %address, label %fail
address:
  %odd_at = getelementptr i32, ptr %record, i64 12
  %odd_32 = load i32, ptr %odd_at, align 4
  %odd = zext i32 %odd_32 to i64
  %offset_at = getelementptr {DL}, ptr %tensor, i64 0, i32 7
  %offset_is = load i64, ptr %offset_at, align 8
  %offset_bit = and i32 %flags, 2
  %free = icmp eq i32 %offset_bit, 0
  %moved = select i1 %free, i64 %offset_is, i64 0
  %address_is = ptrtoint ptr %data_is to i64
  %begin = add i64 %address_is, %moved
  %odd_part = and i64 %begin, %odd
  %even = icmp eq i64 %odd_part, 0
  %address_fits = or i1 %even, %empty
  br i1 %address_fits, label %offset, label %fail
offset:
  %wanted_offset_at = getelementptr i32, ptr %record, i64 10
  %wanted_offset_32 = load i32, ptr %wanted_offset_at, align 4
  %wanted_offset = sext i32 %wanted_offset_32 to i64
  %same_offset = icmp eq i64 %offset_is, %wanted_offset
  %offset_fits = or i1 %same_offset, %free
  br i1 %offset_fits, label %done, label %fail
done:
  ret ptr %tensor
fail:
{fail}  call void @{raise}(ptr %kind, ptr %before, ptr %named, ptr %after, ptr %text1, ptr %text2, ptr %tail, ptr %expected)
  ret ptr null
}";
