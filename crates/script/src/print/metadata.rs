//! The metadata section: objects that the text itself cannot hold, such as tensors.
//!
//! The text refers to the `i`-th object of a type as `metadata["type"][i]`; the section maps each type to its objects, in
//! the JSON graph that TVM's `load_json` reads.

use relaxide_ffi::{ObjectRef, Ref, Tensor};
use relaxide_relax::Constant;

use crate::meta_json;

/// The objects that a text refers to.
#[derive(Default)]
pub(crate) struct Metadata {
    constants: Vec<(ObjectRef, Ref<Constant>)>,
    tensors: Vec<(ObjectRef, Tensor)>,
    /// Objects of other kinds, by type key and address; they have no section.
    others: Vec<ObjectRef>,
}

impl Metadata {
    pub fn is_empty(&self) -> bool {
        self.constants.is_empty() && self.tensors.is_empty() && self.others.is_empty()
    }

    /// The text that refers to a constant. One constant is one entry, however often it is used.
    pub fn constant(&mut self, constant: &Ref<Constant>) -> String {
        let node = ObjectRef::from(constant.clone());
        let index = self.constants.iter().position(|(known, _)| known == &node).unwrap_or_else(|| {
            self.constants.push((node, constant.clone()));
            self.constants.len() - 1
        });
        format!("metadata[\"ir.GenericConst\"][{index}]")
    }

    /// The text that refers to another object: a tensor, or something that has no section.
    pub fn object(&mut self, object: &ObjectRef) -> String {
        if let Ok(tensor) = Tensor::try_from(object.clone()) {
            let index = self.tensors.iter().position(|(known, _)| known == object).unwrap_or_else(|| {
                self.tensors.push((object.clone(), tensor));
                self.tensors.len() - 1
            });
            return format!("metadata[\"{}\"][{index}]", meta_json::TENSORS);
        }
        let key = object.type_key().to_string();
        let mut same = self.others.iter().filter(|o| o.type_key() == object.type_key());
        let index = same.position(|o| o == object).unwrap_or_else(|| {
            let count = self.others.iter().filter(|o| o.type_key() == object.type_key()).count();
            self.others.push(object.clone());
            count
        });
        format!("metadata[\"{key}\"][{index}]")
    }

    /// The section as text.
    pub fn section(&self) -> String {
        let section = meta_json::Section {
            constants: self.constants.iter().map(|(_, c)| c.value.clone()).collect(),
            tensors: self.tensors.iter().map(|(_, t)| t.clone()).collect(),
        };
        let json = meta_json::write(&section);
        format!("metadata = tvm.ir.load_json(\"\"\"{}\"\"\")\n", json.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
