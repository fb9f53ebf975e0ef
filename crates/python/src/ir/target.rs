//! Questions about what the code generator knows: instruction sets, processors, features.

use relaxide::codegen::{Facts, NativeTarget, known_architectures, llvm_version, parse_targets};
use relaxide::ffi::{Any, Array, Error, ErrorKind};
use relaxide::ir::Target;
use relaxide::ir::target::{add_tag, tag_names};

use super::Row;

pub(super) const TABLE: &[Row] = &[
    ("target.tag_names", |_| Ok(names(tag_names()))),
    ("target.add_tag", |args| {
        let (tag, target) = (args.get::<String>(0)?, args.get::<String>(1)?);
        add_tag(&tag, &target).map_err(|error| refused(error.to_string()))?;
        Ok(Any::none())
    }),
    ("target.in_list", |args| {
        let targets = parse_targets(&args.get::<String>(0)?).map_err(|error| refused(error.to_string()))?;
        Ok(names(targets.iter().map(ToString::to_string)))
    }),
    ("target.llvm_version", |_| Ok(i64::from(llvm_version()).into())),
    ("target.llvm_architectures", |_| Ok(names(known_architectures()))),
    ("target.llvm_host", |args| {
        let host = resolve("llvm")?;
        let part = args.get::<String>(0)?;
        Ok(if part == "triple" { host.triple } else { host.cpu }.into())
    }),
    ("target.llvm_processors", |args| Ok(names(facts(&args.get::<String>(0)?)?.processors))),
    ("target.llvm_features", |args| Ok(names(facts(&args.get::<String>(0)?)?.features))),
    ("target.llvm_vector_bits", |args| Ok(facts(&args.get::<String>(0)?)?.vector_bits.into())),
];

fn names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Any {
    Array::from_vec(names.into_iter().map(|name| Any::from(name.into())).collect()).into()
}

fn target(text: &str) -> Result<Target, Error> {
    text.parse::<Target>().map_err(|error| refused(error.to_string()))
}

fn resolve(text: &str) -> Result<NativeTarget, Error> {
    NativeTarget::resolve(&target(text)?).map_err(|error| refused(error.to_string()))
}

fn facts(text: &str) -> Result<Facts, Error> {
    Facts::of(&target(text)?).map_err(|error| refused(error.to_string()))
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::ValueError, message)
}
