//! What a caller gives apart from a model: weights in the place of its own, files that it names, lengths of dimensions.
//!
//! Weights stay tensors of the caller's, which constants share. They are looked for by the names of the outermost graph.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use prost::bytes::Bytes;
use relaxide_ffi::Tensor;

use crate::constant;
pub use crate::constant::from_proto;
pub use crate::external::Beside;
use crate::model::Model;
use crate::proto::{DimensionValue, TensorProto, TypeKind};

/// Weights that are given apart from a model.
#[derive(Clone, Debug, Default)]
pub struct GivenWeights {
    /// In the place of the model's weights of these names.
    pub tensors: IndexMap<String, GivenTensor>,
    /// The contents of files that the model's weights lie in, by the names that it uses.
    pub files: BTreeMap<String, Bytes>,
}

/// A weight that is given apart from a model.
#[derive(Clone, Debug)]
pub struct GivenTensor {
    /// The weight.
    pub tensor: Tensor,
    /// Whether the model must have a weight of the name, in a file of its own. One that need not is not used where there is none.
    pub is_external: bool,
}

impl GivenWeights {
    /// What is wrong with what is given for a model, by the names of weights.
    pub(crate) fn problems(&self, weights: &[TensorProto]) -> Vec<(String, String)> {
        let problem = |(name, given): (&String, &GivenTensor)| {
            let own = weights.iter().find(|proto| proto.name == *name);
            Some((name.clone(), given.problem(own)?))
        };
        self.tensors.iter().filter_map(problem).collect()
    }
}

impl GivenTensor {
    fn problem(&self, own: Option<&TensorProto>) -> Option<String> {
        let Some(own) = own else {
            return self.is_external.then(|| "it is given apart, and the model has no weight of that name".into());
        };
        if self.is_external && own.data_location != 1 {
            return Some("it is given for a weight in a file beside the model, and the model holds it itself".into());
        }
        let (shape, dtype) = (self.tensor.shape(), self.tensor.dtype());
        let declared = constant::dtype_of(own.data_type.into()).ok();
        let fits = shape == own.dims && declared.is_none_or(|declared| declared == dtype);
        let name = declared.map_or_else(|| format!("type {}", own.data_type), |declared| declared.to_string());
        (!fits).then(|| format!("{dtype} {shape:?} is given for it, and the model has {name} {:?}", own.dims))
    }
}

impl Model {
    /// Takes the values of some weights away, which the file lists among its inputs, so that they are inputs as the others are.
    pub fn open_weights(&mut self, names: &[String]) {
        let (inputs, weights) = (&self.graph.input, &mut self.graph.initializer);
        let is_opened = |name: &String| names.contains(name) && inputs.iter().any(|input| input.name == *name);
        weights.retain(|weight| !is_opened(&weight.name));
    }

    /// Fixes dimensions of inputs by what the file says they stand for (`DATA_BATCH`); upper and lower case are the same.
    pub fn fix_denoted(&mut self, lengths: &BTreeMap<String, i64>) {
        let length = |denotation: &str| {
            lengths.iter().find(|(name, _)| name.eq_ignore_ascii_case(denotation)).map(|(_, length)| *length)
        };
        for input in &mut self.graph.input {
            let Some(TypeKind::Tensor(tensor)) = input.r#type.as_mut().and_then(|ty| ty.value.as_mut()) else {
                continue;
            };
            for dim in tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim) {
                let is_open = !matches!(dim.value, Some(DimensionValue::Value(known)) if known > 0);
                if let Some(length) = length(&dim.denotation).filter(|_| is_open && !dim.denotation.is_empty()) {
                    dim.value = Some(DimensionValue::Value(length));
                }
            }
        }
    }
}
