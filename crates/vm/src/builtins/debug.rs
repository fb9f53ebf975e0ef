//! Looking into a running program.

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Tensor, get_global};

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.invoke_debug_func", invoke_debug_func),
    Builtin::plain("vm.builtin.debug_print", debug_print),
];

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
