//! The signature of a program, as it rides behind the sections of an executable.
//!
//! An executable's own function table has the names of parameters but not their types. Relaxide adds them where TVM's
//! loader does not look: behind the last section, a magic number and JSON text.

use std::fmt;

use relaxide_ffi::{DataType, Error, Module};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{AttrValue, IRModule, Target, Type};
use relaxide_onnx::signature::{OUTPUT_NAMES, TEXT_INPUTS};
use relaxide_relax::Function;
use relaxide_relax::display::{dim_text, type_text};
use relaxide_runtime::processor::Needed;
use relaxide_runtime::processor::variants::Variant;
use relaxide_vm::executable::weights::{WeightTensor, WeightsApart};
use relaxide_vm::executable::{Origins, TRAILER_MAGIC};
use relaxide_vm::{Executable, FuncKind};
use serde_json::{Value, json};

use super::limits;
use crate::compiler::cost::KernelCost;
use crate::compiler::dims::ranges_of;
use crate::compiler::relay_signature::relay_table;
use crate::{DimRange, DimSpec};

/// How the type of a tensor of texts begins, which TVMScript has no name for.
const TEXTS: &str = "texts";

/// The functions of a program with their parameters, and what compiled it.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The functions.
    pub functions: Vec<FunctionSignature>,
    /// The version of Relaxide that compiled it, where it did.
    pub compiler: Option<String>,
    /// What it was compiled for.
    pub target: Option<String>,
    /// What a processor must have to run its kernels, where they are native code.
    pub processor: Option<Needed>,
    /// The processors that it has kernels for, the least first, where they are several; `processor` is the first of them.
    pub processors: Vec<Variant>,
    /// What its kernels cost, where the compiler counted that.
    pub kernels: Vec<KernelCost>,
    /// The nodes of a model that its instructions were made of.
    pub origins: Origins,
    /// The constructors of its data types by their tags, of a program of the Relay VM.
    pub constructors: Vec<(i64, String)>,
}

/// A function's parameters and result.
#[derive(Clone, Debug)]
pub struct FunctionSignature {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<ParamSignature>,
    /// The type of the result, as TVMScript.
    pub result: String,
    /// The names of what it returns, in order, where the model has names for it.
    pub outputs: Vec<String>,
    /// What lengths its symbolic dimensions may have, where that is limited.
    pub ranges: Vec<DimRange>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct ParamSignature {
    /// Its name.
    pub name: String,
    /// Its type, as TVMScript.
    pub ty: String,
    /// Element type, of a tensor of known element type.
    pub dtype: Option<DataType>,
    /// Dimensions, of a tensor of known dimensions; what is neither a number nor a name is shown as its text.
    pub dims: Vec<DimSpec>,
    /// What the elements of integers should stay below, where the program chooses rows of a table by them.
    pub below: Option<i64>,
}

impl Signature {
    /// The signature of a program.
    pub fn of_module(module: &IRModule, target: &Target) -> Signature {
        let functions = module.functions_of::<Function>().map(|(name, f)| FunctionSignature {
            name: name.to_string(),
            params: f
                .params
                .iter()
                .zip(limits::below(&f))
                .map(|(p, below)| match text_dims(&f, &p.name) {
                    Some(dims) => ParamSignature::of_texts(&p.name, dims),
                    None => ParamSignature { below, ..ParamSignature::of_type(&p.name, &p.ty) },
                })
                .collect(),
            result: type_text(&f.ret_ty),
            outputs: output_names(&f),
            ranges: ranges_of(&f),
        });
        Signature {
            functions: functions.collect(),
            compiler: Some(env!("CARGO_PKG_VERSION").to_string()),
            target: Some(target.to_string()),
            processor: None,
            processors: Vec::new(),
            kernels: Vec::new(),
            origins: Origins::default(),
            constructors: Vec::new(),
        }
    }

    /// The bytes that ride behind an executable.
    pub fn to_trailer(&self) -> Vec<u8> {
        trailer(&self.to_json())
    }

    /// The same for an executable whose weights are in another file.
    pub fn to_trailer_with(&self, weights: &WeightsApart) -> Vec<u8> {
        let tensor = |t: &WeightTensor| json!({ "constant": t.constant, "name": t.name, "dtype": t.dtype.to_string(), "shape": t.shape });
        let tensors: Vec<Value> = weights.tensors.iter().map(tensor).collect();
        let mut head = self.to_json();
        head["weights"] = json!({
            "file": weights.file, "bytes": weights.bytes, "checksum": format!("{:016x}", weights.checksum),
            "tensors": tensors,
        });
        trailer(&head)
    }

    fn to_json(&self) -> Value {
        let function = |f: &FunctionSignature| {
            let param = |p: &ParamSignature| {
                let dims: Vec<String> = p.dims.iter().map(ToString::to_string).collect();
                json!({ "name": p.name, "type": p.ty, "dtype": p.dtype.map(|d| d.to_string()), "dims": dims, "below": p.below })
            };
            let range = |r: &DimRange| json!({ "name": r.name, "min": r.min, "max": r.max });
            let params: Vec<Value> = f.params.iter().map(param).collect();
            let ranges: Vec<Value> = f.ranges.iter().map(range).collect();
            json!({ "name": f.name, "params": params, "result": f.result, "outputs": f.outputs, "ranges": ranges })
        };
        let functions: Vec<Value> = self.functions.iter().map(function).collect();
        let kernels: Vec<Value> = self.kernels.iter().map(KernelCost::to_json).collect();
        let processor = self.processor.as_ref().map(processor_json);
        let mut head = json!({
            "compiler": self.compiler, "target": self.target, "processor": processor, "functions": functions,
            "kernels": kernels,
        });
        if !self.processors.is_empty() {
            head["processors"] = self.processors.iter().map(variant_json).collect();
        }
        if !self.constructors.is_empty() {
            head["constructors"] = self.constructors.iter().map(|(tag, name)| json!([tag, name])).collect();
        }
        if !self.origins.is_empty() {
            let (words, ranges) = self.origins.parts();
            head["origins"] = json!({ "words": words, "ranges": ranges });
        }
        head
    }

    /// The signature in the bytes behind an executable; none if it is not there or not readable.
    pub fn from_trailer(bytes: &[u8]) -> Option<Signature> {
        let value: Value = serde_json::from_slice(bytes.strip_prefix(TRAILER_MAGIC)?).ok()?;
        let text = |value: &Value| value.as_str().map(str::to_string);
        let param = |value: &Value| {
            let dims = value["dims"].as_array()?.iter();
            Some(ParamSignature {
                name: text(&value["name"])?,
                ty: text(&value["type"])?,
                dtype: value["dtype"].as_str().and_then(|t| t.parse().ok()),
                dims: dims.map(|d| d.as_str().map(dim_of_text)).collect::<Option<Vec<_>>>()?,
                below: value["below"].as_i64().filter(|below| *below > 0),
            })
        };
        let range = |value: &Value| {
            Some(DimRange { name: text(&value["name"])?, min: value["min"].as_i64()?, max: value["max"].as_i64() })
        };
        // What later versions added may be missing.
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let function = |value: &Value| {
            Some(FunctionSignature {
                name: text(&value["name"])?,
                params: value["params"].as_array()?.iter().map(param).collect::<Option<Vec<_>>>()?,
                result: text(&value["result"])?,
                outputs: list(&value["outputs"]).iter().filter_map(text).collect(),
                ranges: list(&value["ranges"]).iter().filter_map(range).collect(),
            })
        };
        Some(Signature {
            functions: value["functions"].as_array()?.iter().map(function).collect::<Option<Vec<_>>>()?,
            compiler: text(&value["compiler"]),
            target: text(&value["target"]),
            processor: processor_of_json(&value["processor"]),
            processors: list(&value["processors"])
                .iter()
                .filter_map(|own| Some(Variant { name: text(&own["variant"])?, needed: processor_of_json(own)? }))
                .collect(),
            kernels: list(&value["kernels"]).iter().filter_map(KernelCost::from_json).collect(),
            origins: origins_of_json(&value["origins"]).unwrap_or_default(),
            constructors: list(&value["constructors"])
                .iter()
                .filter_map(|pair| Some((pair[0].as_i64()?, text(&pair[1])?)))
                .collect(),
        })
    }

    /// What the function table of an executable says, where there is nothing better.
    fn of_table(executable: &Executable) -> Signature {
        let functions =
            executable.functions().iter().filter(|f| f.kind != FuncKind::Packed).map(|f| FunctionSignature {
                name: f.name.clone(),
                params: f.param_names.iter().map(|name| ParamSignature::unknown(name)).collect(),
                result: "R.Any".into(),
                outputs: Vec::new(),
                ranges: Vec::new(),
            });
        Signature { functions: functions.collect(), ..Signature::default() }
    }
}

/// What a processor must have, for scripts.
pub fn processor_json(needed: &Needed) -> Value {
    json!({ "architecture": needed.architecture, "name": needed.processor, "features": needed.features })
}

/// One of several processors, for scripts.
pub fn variant_json(variant: &Variant) -> Value {
    let mut value = processor_json(&variant.needed);
    value["variant"] = json!(variant.name);
    value
}

fn processor_of_json(value: &Value) -> Option<Needed> {
    let text = |value: &Value| value.as_str().map(str::to_string);
    Some(Needed {
        architecture: text(&value["architecture"])?,
        processor: text(&value["name"])?,
        features: value["features"].as_array()?.iter().filter_map(text).collect(),
    })
}

fn origins_of_json(value: &Value) -> Option<Origins> {
    let word = |which: &Value| value["words"].get(usize::try_from(which.as_u64()?).ok()?)?.as_str();
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let mut origins = Origins::default();
    for range in value["ranges"].as_array()? {
        origins.add(number(&range[0])?, number(&range[1])?, word(&range[2])?);
    }
    Some(origins)
}

fn trailer(head: &Value) -> Vec<u8> {
    TRAILER_MAGIC.iter().copied().chain(head.to_string().into_bytes()).collect()
}

/// The names that a function's attribute says; none unless all of them are texts.
fn output_names(f: &Function) -> Vec<String> {
    let Some(AttrValue::List(names)) = f.attrs.get(OUTPUT_NAMES) else { return Vec::new() };
    let text = |name: &AttrValue| match name {
        AttrValue::Str(name) => Some(name.clone()),
        _ => None,
    };
    names.iter().map(text).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The dimensions of a parameter that is a tensor of texts, where the function says that it is one.
fn text_dims(f: &Function, name: &str) -> Option<Vec<DimSpec>> {
    let Some(AttrValue::List(inputs)) = f.attrs.get(TEXT_INPUTS) else { return None };
    inputs.iter().find_map(|input| {
        let AttrValue::List(parts) = input else { return None };
        let mut texts = parts.iter().map(|part| match part {
            AttrValue::Str(text) => Some(text.as_str()),
            _ => None,
        });
        (texts.next()?? == name).then_some(())?;
        texts.map(|text| text.map(dim_of_text)).collect()
    })
}

fn dim_of_text(text: &str) -> DimSpec {
    text.parse().unwrap_or_else(|_| DimSpec::Name(text.to_string()))
}

impl ParamSignature {
    pub(crate) fn of_type(name: &str, ty: &Type) -> ParamSignature {
        let tensor = ty.as_tensor();
        let dim = |dim: &PrimExpr| dim.as_int().map_or_else(|| DimSpec::Name(dim_text(dim)), DimSpec::Int);
        ParamSignature {
            name: name.to_string(),
            ty: type_text(ty),
            dtype: tensor.map(|t| t.dtype).filter(|d| !d.is_void()),
            dims: tensor.and_then(|t| t.shape.as_ref()).map(|dims| dims.iter().map(dim).collect()).unwrap_or_default(),
            below: None,
        }
    }

    fn of_texts(name: &str, dims: Vec<DimSpec>) -> ParamSignature {
        let shown: Vec<String> = dims.iter().map(ToString::to_string).collect();
        let ty = format!("{TEXTS}({})", shown.join(", "));
        ParamSignature { name: name.to_string(), ty, dtype: None, dims, below: None }
    }

    /// Whether it is a tensor of texts.
    pub fn is_texts(&self) -> bool {
        self.ty.starts_with(TEXTS)
    }

    pub(crate) fn unknown(name: &str) -> ParamSignature {
        ParamSignature { name: name.to_string(), ty: "R.Any".into(), dtype: None, dims: Vec::new(), below: None }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, function) in self.functions.iter().enumerate() {
            let params: Vec<String> = function.params.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
            let end = if i + 1 == self.functions.len() && self.compiler.is_none() { "" } else { "\n" };
            write!(f, "{}({}) -> {}", function.name, params.join(", "), function.result)?;
            function.ranges.iter().try_for_each(|range| write!(f, "\n    {range}"))?;
            write!(f, "{end}")?;
        }
        if let (Some(compiler), Some(target)) = (&self.compiler, &self.target) {
            write!(f, "compiled by Relaxide {compiler} for {target}")?;
        }
        Ok(())
    }
}

/// The signature of a program.
pub fn signature(module: &IRModule) -> Signature {
    Signature { compiler: None, target: None, ..Signature::of_module(module, &Target::default()) }
}

/// The signature of a compiled model.
pub fn signature_of_file(module: &Module) -> Result<Signature, Error> {
    if let Some(executable) = relaxide_relay_vm::Executable::of_module(module) {
        return Ok(Signature::from_trailer(&executable.trailer).unwrap_or_else(|| relay_table(&executable)));
    }
    let executable = Executable::of_module(module).ok_or_else(|| {
        let message = format!("a module of kind {:?} holds no program of the virtual machine", module.kind());
        Error::new("ValueError", message)
    })?;
    Ok(Signature::from_trailer(executable.trailer()).unwrap_or_else(|| Signature::of_table(&executable)))
}

/// The signature of one function of a compiled model.
pub fn function_signature(module: &Module, name: &str) -> Result<FunctionSignature, Error> {
    let signature = signature_of_file(module)?;
    let known: Vec<String> = signature.functions.iter().map(|f| f.name.clone()).collect();
    signature.functions.into_iter().find(|f| f.name == name).ok_or_else(|| {
        Error::new("ValueError", format!("there is no function {name:?}; the file has: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_survives_the_way_through_a_file() {
        let param = ParamSignature {
            name: "x".into(),
            ty: "R.Tensor((n, 3), dtype=\"float32\")".into(),
            dtype: Some(DataType::float(32)),
            dims: vec![DimSpec::Name("n".into()), DimSpec::Int(3)],
            below: Some(9),
        };
        let ranges = vec![DimRange { name: "n".into(), min: 1, max: Some(64) }];
        let outputs = vec!["y:0".to_string()];
        let function =
            FunctionSignature { name: "main".into(), params: vec![param], result: "R.Any".into(), outputs, ranges };
        let signature = Signature {
            functions: vec![function],
            compiler: Some("1".into()),
            target: Some("llvm".into()),
            processor: Some(Needed {
                architecture: "x86_64".into(),
                processor: "znver4".into(),
                features: vec!["avx".into()],
            }),
            processors: vec![Variant { name: "some".into(), needed: Needed::default() }],
            kernels: Vec::new(),
            origins: Origins::default(),
            constructors: vec![(1, "Cons".into())],
        };
        let read = Signature::from_trailer(&signature.to_trailer()).expect("what was written is readable");
        assert_eq!(read.to_string(), signature.to_string());
        assert_eq!(read.processor, signature.processor);
        assert_eq!(read.processors, signature.processors);
        assert_eq!(read.constructors, signature.constructors);
        assert_eq!(read.functions[0].outputs, ["y:0"]);
        assert_eq!(read.functions[0].params[0].below, Some(9));
        assert_eq!(read.functions[0].params[0].dims, signature.functions[0].params[0].dims);
    }

    #[test]
    fn bytes_that_are_no_signature_are_none() {
        for bytes in [&b""[..], b"RLXSIGN1", b"RLXSIGN1{}", b"RLXSIGN1{\"functions\":[{}]}", b"xxxxxxxx{}"] {
            assert!(Signature::from_trailer(bytes).is_none());
        }
    }
}
