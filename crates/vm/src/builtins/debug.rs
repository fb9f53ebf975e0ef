//! Looking into a running program.

use relaxide_ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, Tensor, get_global};

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.invoke_debug_func", invoke_debug_func),
    Builtin::plain("vm.builtin.debug_print", debug_print),
    Builtin::plain("relax.run.assert_op", assert_op),
    Builtin::plain("relax.run.print", print),
];

/// `(condition, format, value…)`: fails unless the condition holds, with the message that format and values make.
fn assert_op(args: &Args<'_, '_>) -> Result<Any, Error> {
    if super::truth(args.view(0, "condition")?)? {
        return Ok(Any::none());
    }
    let format: String = args.get(1, "format")?;
    let message = formatted(&format, args.rest(2));
    let message = if message.is_empty() { "Assertion Failed".into() } else { message };
    Err(Error::new(ErrorKind::AssertionError, message))
}

/// `(format, value…)`: prints the text that format and values make.
fn print(args: &Args<'_, '_>) -> Result<Any, Error> {
    let format: String = args.get(0, "format")?;
    println!("{}", formatted(&format, args.rest(1)));
    Ok(Any::none())
}

/// A format with values in the place of its fields, `{}`; doubled braces are braces. Without a format, the values alone.
fn formatted(format: &str, values: &[AnyView<'_>]) -> String {
    if format.is_empty() {
        return values.iter().map(|value| render(*value)).collect::<Vec<_>>().join(" ");
    }
    let mut values = values.iter();
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        let (plain, braces) = rest.split_at(at);
        text.push_str(plain);
        rest = if let Some(behind) = braces.strip_prefix("{}") {
            text.push_str(&values.next().map_or_else(|| "{}".into(), |value| render(*value)));
            behind
        } else {
            text.push_str(&braces[..1]);
            braces.strip_prefix("{{").or_else(|| braces.strip_prefix("}}")).unwrap_or(&braces[1..])
        };
    }
    text.push_str(rest);
    text
}

/// A value as a user reads it: the elements of a tensor, the fields of a tuple.
fn render(value: AnyView<'_>) -> String {
    if let Ok(tensor) = value.to::<Tensor>() {
        return tensor_text(&tensor);
    }
    if let Ok(fields) = value.to::<Array>() {
        let fields: Vec<String> = fields.iter().map(|field| render(field.as_view())).collect();
        return format!("({})", fields.join(", "));
    }
    match (value.as_str(), value.as_shape()) {
        (Some(text), _) => text.to_string(),
        (_, Some(shape)) => format!("{:?}", shape.as_slice()),
        _ => format!("{value:?}"),
    }
}

/// More elements than these are not written out.
const MOST_ELEMENTS: usize = 1000;

/// The elements of a tensor in nested brackets; what it is, where they are many or of a type without a text.
fn tensor_text(tensor: &Tensor) -> String {
    if tensor.numel() > MOST_ELEMENTS {
        return format!("{tensor:?}");
    }
    let dtype = tensor.dtype();
    let elements = match (dtype.code, dtype.bits) {
        (DataType::BOOL, _) => tensor.to_bytes().map(|bytes| bytes.iter().map(|byte| truth_text(*byte)).collect()),
        (DataType::FLOAT, 32) => tensor.to_vec::<f32>().map(|v| texts(&v)),
        (DataType::FLOAT, 64) => tensor.to_vec::<f64>().map(|v| texts(&v)),
        (DataType::INT, 64) => tensor.to_vec::<i64>().map(|v| texts(&v)),
        (DataType::INT, 32) => tensor.to_vec::<i32>().map(|v| texts(&v)),
        (DataType::INT, 16) => tensor.to_vec::<i16>().map(|v| texts(&v)),
        (DataType::INT, 8) => tensor.to_vec::<i8>().map(|v| texts(&v)),
        (DataType::UINT, 64) => tensor.to_vec::<u64>().map(|v| texts(&v)),
        (DataType::UINT, 32) => tensor.to_vec::<u32>().map(|v| texts(&v)),
        (DataType::UINT, 16) => tensor.to_vec::<u16>().map(|v| texts(&v)),
        (DataType::UINT, 8) => tensor.to_vec::<u8>().map(|v| texts(&v)),
        _ => return format!("{tensor:?}"),
    };
    elements.map_or_else(|_| format!("{tensor:?}"), |elements: Vec<String>| nested(&elements, tensor.shape()))
}

fn truth_text(byte: u8) -> String {
    if byte == 0 { "False".into() } else { "True".into() }
}

fn texts<T: std::fmt::Debug>(elements: &[T]) -> Vec<String> {
    elements.iter().map(|element| format!("{element:?}")).collect()
}

fn nested(elements: &[String], shape: &[i64]) -> String {
    let Some((first, inner)) = shape.split_first() else { return elements.first().cloned().unwrap_or_default() };
    let size = elements.len() / usize::try_from(*first).unwrap_or(1).max(1);
    let parts: Vec<String> = match size {
        0 => Vec::new(),
        _ => elements.chunks(size).map(|part| nested(part, inner)).collect(),
    };
    format!("[{}]", parts.join(" "))
}

/// `(effect, name, line, argument…)`: calls a global function with the line and the arguments; the effect passes through.
fn invoke_debug_func(args: &Args<'_, '_>) -> Result<Any, Error> {
    let name: String = args.get(1, "name")?;
    let Some(function) = get_global(&name) else {
        let message = format_args!("{name} is not found: register it as a global function");
        return Err(args.error(ErrorKind::ValueError, message));
    };
    function.call(args.rest(2))?;
    Ok(args.view(0, "effect")?.to_owned())
}

/// `(x…)`: prints values; of a tensor, its type and first elements.
fn debug_print(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.rest(0).iter().for_each(|view| println!("{}", describe(*view)));
    Ok(Any::none())
}

fn describe(value: AnyView<'_>) -> String {
    match value.to::<Tensor>() {
        Ok(tensor) => format!("{tensor:?} {}", tensor_text(&tensor)),
        Err(_) => render(value),
    }
}
