//! The signature of a program in Relay. Tensors and tuples of them are written as Relax writes them, so that whoever makes inputs
//! needs one way of reading; other types are written as in Relay's text.

use relaxide_ir::Target;
use relaxide_relax::display::type_text;
use relaxide_relay::convert::{DimNames, to_relax_named};
use relaxide_relay::{CompileError, Expr, Module, Type, Types, infer};
use relaxide_relay_vm::Executable;

use crate::compiler::signature::Signature;
use crate::{Error, FunctionSignature, ParamSignature};

/// The signature of a program in Relay.
pub fn relay_signature(module: &Module) -> Result<Signature, Error> {
    let types = infer(module).map_err(CompileError::Types)?;
    let names: Vec<&String> = module.functions.keys().collect();
    Ok(of_functions(module, &types, &names))
}

/// The signature of what a program was compiled to: of the program's functions that are in the executable.
pub(crate) fn relay_executable_signature(
    module: &Module,
    executable: &Executable,
    target: &Target,
) -> Result<Signature, Error> {
    let types = infer(module).map_err(CompileError::Types)?;
    let names: Vec<&String> = executable.globals.iter().filter(|name| module.functions.contains_key(*name)).collect();
    let signature = of_functions(module, &types, &names);
    let (compiler, target) = (Some(env!("CARGO_PKG_VERSION").to_string()), Some(target.to_string()));
    Ok(Signature { compiler, target, ..signature })
}

/// What an executable says of itself, where nobody wrote a signature behind it.
pub(crate) fn relay_table(executable: &Executable) -> Signature {
    let function = |f: &relaxide_relay_vm::VmFunction| FunctionSignature {
        name: f.name.clone(),
        params: f.params.iter().map(|name| ParamSignature::unknown(name)).collect(),
        result: "R.Any".into(),
        outputs: Vec::new(),
        ranges: Vec::new(),
    };
    Signature { functions: executable.functions.iter().map(function).collect(), ..Signature::default() }
}

fn of_functions(module: &Module, types: &Types, names: &[&String]) -> Signature {
    let functions = names.iter().filter_map(|name| function(module, types, name)).collect();
    let constructors = module.types.values().flat_map(|ty| &ty.constructors);
    let constructors = constructors.map(|constructor| (constructor.tag, constructor.name.clone())).collect();
    Signature { functions, constructors, ..Signature::default() }
}

fn function(module: &Module, types: &Types, name: &str) -> Option<FunctionSignature> {
    let f = module.functions.get(name)?;
    let Type::Func(ty) = types.of(&Expr::Function(f.clone()))? else { return None };
    let mut dims = DimNames::default();
    let param = |(param, ty): (&relaxide_ffi::Ref<relaxide_relay::Var>, &Type)| match to_relax_named(ty, &mut dims) {
        Ok(ty) => ParamSignature::of_type(&param.name, &ty),
        Err(_) => ParamSignature { ty: ty.to_string(), ..ParamSignature::unknown(&param.name) },
    };
    let params = f.params.iter().zip(&ty.args).map(param).collect();
    // The result's unknown dimensions have nothing to do with those of the parameters.
    let result = match is_known(&ty.ret) {
        true => {
            to_relax_named(&ty.ret, &mut DimNames::default()).map_or_else(|_| ty.ret.to_string(), |ty| type_text(&ty))
        }
        false => ty.ret.to_string(),
    };
    Some(FunctionSignature { name: name.to_string(), params, result, outputs: Vec::new(), ranges: Vec::new() })
}

fn is_known(ty: &Type) -> bool {
    match ty {
        Type::Tensor(t) => t.is_static(),
        Type::Tuple(t) => t.fields.iter().all(is_known),
        _ => false,
    }
}
