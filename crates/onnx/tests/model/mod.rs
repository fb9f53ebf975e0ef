//! Small models for tests, written down in a few words.

use prost::Message;
use relaxide_onnx::proto::*;
use relaxide_onnx::{ImportError, ImportOptions, Model, import};
use relaxide_relax::Function;
use relaxide_relax::display::type_text;

/// A model under construction.
pub struct Build {
    graph: GraphProto,
    opset: i64,
}

/// The type of a float tensor; dimensions are numbers, names, or `?`.
pub fn float(dims: &[&str]) -> TypeProto {
    tensor(ElementType::Float, dims)
}

/// The type of a tensor.
pub fn tensor(element: ElementType, dims: &[&str]) -> TypeProto {
    let dim = |d: &&str| Dimension {
        value: Some(match d.parse() {
            Ok(n) => DimensionValue::Value(n),
            Err(_) => DimensionValue::Param(d.to_string()),
        }),
        ..Dimension::default()
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    TypeProto { value: Some(TypeKind::Tensor(TensorTypeProto { elem_type: element as i32, shape: Some(shape) })) }
}

impl Build {
    /// A model of an operator set.
    pub fn new(opset: i64) -> Build {
        Build { graph: GraphProto::default(), opset }
    }

    /// An input.
    pub fn input(mut self, name: &str, ty: TypeProto) -> Build {
        self.graph.input.push(ValueInfoProto { name: name.into(), r#type: Some(ty) });
        self
    }

    /// An integer constant.
    pub fn ints(mut self, name: &str, values: &[i64]) -> Build {
        self.graph.initializer.push(TensorProto {
            dims: vec![values.len() as i64],
            data_type: ElementType::Int64 as i32,
            int64_data: values.to_vec(),
            name: name.into(),
            ..Default::default()
        });
        self
    }

    /// A float constant of zeros.
    pub fn zeros(self, name: &str, dims: &[i64]) -> Build {
        let count = dims.iter().product::<i64>() as usize;
        self.initializer(TensorProto {
            dims: dims.to_vec(),
            data_type: ElementType::Float as i32,
            raw_data: vec![0u8; 4 * count].into(),
            name: name.into(),
            ..Default::default()
        })
    }

    /// Any constant.
    pub fn initializer(mut self, tensor: TensorProto) -> Build {
        self.graph.initializer.push(tensor);
        self
    }

    /// A node with integer attributes; it is named by its first output.
    pub fn node(mut self, op: &str, inputs: &[&str], outputs: &[&str], attrs: &[(&str, &[i64])]) -> Build {
        let lists = ["axes", "starts", "ends", "pads", "strides", "dilations", "kernel_shape", "perm", "split"];
        let attribute = attrs
            .iter()
            .map(|(name, values)| {
                let list = lists.contains(name);
                AttributeProto {
                    name: name.to_string(),
                    i: if list { 0 } else { values[0] },
                    ints: if list { values.to_vec() } else { vec![] },
                    r#type: if list { AttributeKind::Ints } else { AttributeKind::Int } as i32,
                    ..Default::default()
                }
            })
            .collect();
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|s| s.to_string()).collect(),
            output: outputs.iter().map(|s| s.to_string()).collect(),
            name: format!("make_{}", outputs[0]),
            op_type: op.into(),
            attribute,
            ..Default::default()
        });
        self
    }

    /// The file, with its outputs.
    pub fn bytes(mut self, outputs: &[&str]) -> Vec<u8> {
        self.graph.output = outputs.iter().map(|&o| ValueInfoProto { name: o.into(), r#type: None }).collect();
        let opset = OperatorSetIdProto { domain: String::new(), version: self.opset };
        let model =
            ModelProto { ir_version: 8, graph: Some(self.graph), opset_import: vec![opset], ..Default::default() };
        model.encode_to_vec()
    }

    /// `main` of the imported module.
    pub fn import(self, outputs: &[&str]) -> Result<Imported, ImportError> {
        self.import_with(outputs, &ImportOptions::default())
    }

    /// `main` of the module imported with options.
    pub fn import_with(self, outputs: &[&str], options: &ImportOptions) -> Result<Imported, ImportError> {
        let model = Model::from_bytes(self.bytes(outputs)).expect("the model is sound");
        let module = import(&model, options)?;
        Ok(Imported(module.get_as::<Function>("main").expect("an imported module has a main")))
    }
}

/// An imported function.
pub struct Imported(pub relaxide_ffi::Ref<Function>);

impl Imported {
    /// The result's type as text.
    pub fn result(&self) -> String {
        type_text(&self.0.ret_ty)
    }

    /// Parameters as text.
    pub fn params(&self) -> Vec<String> {
        self.0.params.iter().map(|p| format!("{}: {}", p.name, type_text(&p.ty))).collect()
    }

    /// The operators in order; `match_cast` is one.
    pub fn ops(&self) -> Vec<String> {
        let bindings = self.0.body.blocks.iter().flat_map(|b| &b.bindings);
        bindings
            .filter_map(|b| match b {
                relaxide_relax::Binding::MatchCast(_) => Some("match_cast".to_string()),
                relaxide_relax::Binding::Var(b) => b.value.as_op_call().map(|(_, name)| name.to_string()),
            })
            .collect()
    }
}
