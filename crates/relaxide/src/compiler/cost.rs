//! What the kernels of a file cost, as functions of the shapes that they are called with.
//!
//! The compiler counts ([`relaxide_tir::analysis::cost`]); the counts ride in the file's signature; whoever profiles a run puts the
//! shapes of a call in. Files of other compilers have none of this, and kernels whose work depends on their data have none
//! either: their cost is unknown, not zero.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::PrimFunc;
use relaxide_tir::analysis::cost::cost;
use relaxide_vm::Argument;
use serde_json::{Value, json};

use crate::compiler::formula::Formula;

/// What a kernel costs.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCost {
    /// The kernel.
    pub name: String,
    /// What its parameters say about dimensions.
    params: Vec<CostParam>,
    operations: Option<Formula>,
    bytes: Option<Formula>,
    /// The type that its operations are done in, where it is one.
    pub dtype: Option<DataType>,
}

#[derive(Clone, Debug, PartialEq)]
enum CostParam {
    Tensor(Vec<Formula>),
    Scalar(String),
}

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallCost {
    /// Operations on floating-point data.
    pub operations: Option<u64>,
    /// Bytes that had to be read or written.
    pub bytes: Option<u64>,
}

impl KernelCost {
    /// Counts what a kernel costs.
    pub fn of(name: &str, kernel: &PrimFunc) -> KernelCost {
        let counted = cost(kernel);
        let mut names = UniqueNames::default();
        let mut formula = |e: &PrimExpr| Formula::of(e, &mut |var| names.of(var));
        // What is no formula is compared with nothing, and binds nothing.
        let mut dims = |shape: &[PrimExpr]| shape.iter().map(|dim| formula(dim).unwrap_or(Formula::Int(-1))).collect();
        let buffers: Vec<Option<Vec<Formula>>> =
            kernel.buffers.iter().map(|buffer| buffer.as_ref().map(|buffer| dims(&buffer.shape))).collect();
        let params = kernel.params.iter().zip(buffers).map(|(param, buffer)| match buffer {
            Some(dims) => CostParam::Tensor(dims),
            None => CostParam::Scalar(names.of(param)),
        });
        let params = params.collect();
        let mut formula = |e: Option<PrimExpr>| Formula::of(&e?, &mut |var| names.of(var));
        let (operations, bytes) = (formula(counted.operations), formula(counted.bytes));
        KernelCost { name: name.to_string(), params, operations, bytes, dtype: counted.dtype }
    }

    /// What a call with these arguments cost.
    pub fn at(&self, arguments: &[Argument]) -> CallCost {
        let mut dims = HashMap::new();
        for (param, argument) in self.params.iter().zip(arguments) {
            match (param, argument) {
                (CostParam::Scalar(name), Argument::Int(value)) => {
                    dims.insert(name.clone(), *value);
                }
                (CostParam::Tensor(shape), Argument::Tensor(given)) => {
                    for (dim, length) in shape.iter().zip(given) {
                        if let Formula::Name(name) = dim {
                            dims.insert(name.clone(), *length);
                        }
                    }
                }
                _ => {}
            }
        }
        let value = |formula: &Option<Formula>| u64::try_from(formula.as_ref()?.value(&dims)?).ok();
        CallCost { operations: value(&self.operations), bytes: value(&self.bytes) }
    }

    /// As JSON, for the signature of a file.
    pub(crate) fn to_json(&self) -> Value {
        let param = |param: &CostParam| match param {
            CostParam::Tensor(dims) => Value::Array(dims.iter().map(Formula::to_json).collect()),
            CostParam::Scalar(name) => json!(name),
        };
        let formula = |formula: &Option<Formula>| formula.as_ref().map_or(Value::Null, Formula::to_json);
        json!({
            "name": self.name, "params": self.params.iter().map(param).collect::<Vec<_>>(),
            "operations": formula(&self.operations), "bytes": formula(&self.bytes),
            "dtype": self.dtype.map(|dtype| dtype.to_string()),
        })
    }

    /// From the JSON of a file's signature.
    pub(crate) fn from_json(value: &Value) -> Option<KernelCost> {
        let param = |value: &Value| match value {
            Value::String(name) => Some(CostParam::Scalar(name.clone())),
            Value::Array(dims) => dims.iter().map(Formula::from_json).collect::<Option<_>>().map(CostParam::Tensor),
            _ => None,
        };
        Some(KernelCost {
            name: value["name"].as_str()?.to_string(),
            params: value["params"].as_array()?.iter().map(param).collect::<Option<_>>()?,
            operations: Formula::from_json(&value["operations"]),
            bytes: Formula::from_json(&value["bytes"]),
            dtype: value["dtype"].as_str().and_then(|text| text.parse().ok()),
        })
    }
}

/// Names of variables, each its own: variables are told apart by identity, and two may have one name.
#[derive(Default)]
struct UniqueNames {
    of: HashMap<Ref<Var>, String>,
}

impl UniqueNames {
    fn of(&mut self, var: &Ref<Var>) -> String {
        if let Some(name) = self.of.get(var) {
            return name.clone();
        }
        let taken = |name: &str| self.of.values().any(|known| known == name);
        let mut name = var.name.clone();
        let mut count = 1;
        while taken(&name) {
            name = format!("{}_{count}", var.name);
            count += 1;
        }
        self.of.insert(var.clone(), name.clone());
        name
    }
}
