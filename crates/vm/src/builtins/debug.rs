//! Looking into a running program.

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Tensor, get_global};

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.invoke_debug_func", invoke_debug_func),
    Builtin::plain("vm.builtin.debug_print", debug_print),
    Builtin::plain("relax.run.assert_op", assert_op),
];

/// `(condition, format, value…)`: fails unless the condition holds. The message is the format with the values in the place
/// of its fields, `{}`; doubled braces are braces.
fn assert_op(args: &Args<'_, '_>) -> Result<Any, Error> {
    if super::truth(args.view(0, "condition")?)? {
        return Ok(Any::none());
    }
    let format: String = args.get(1, "format")?;
    let mut values = args.rest(2).iter();
    let mut message = String::new();
    let mut rest = format.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let (plain, braces) = rest.split_at(at);
        message.push_str(plain);
        rest = if let Some(behind) = braces.strip_prefix("{}") {
            message.push_str(&values.next().map_or_else(|| "{}".into(), |value| describe(*value)));
            behind
        } else {
            message.push_str(&braces[..1]);
            braces.strip_prefix("{{").or_else(|| braces.strip_prefix("}}")).unwrap_or(&braces[1..])
        };
    }
    message.push_str(rest);
    let message = if message.is_empty() { "an assertion does not hold".into() } else { message };
    Err(Error::new(ErrorKind::AssertionError, message))
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
    const SHOWN: usize = 16;
    let Ok(tensor) = value.to::<Tensor>() else { return format!("{value:?}") };
    let elements = tensor.to_vec::<f32>().map(|values| format!("{:?}", values.get(..SHOWN).unwrap_or(&values)));
    let elements = elements.or_else(|_| tensor.to_vec::<i64>().map(|v| format!("{:?}", v.get(..SHOWN).unwrap_or(&v))));
    elements.map_or_else(|_| format!("{tensor:?}"), |elements| format!("{tensor:?} {elements}"))
}
