//! Small programs and ONNX models that tests of several crates are about.

use prost::Message;
use relaxide::onnx::proto::*;

/// A product, a softmax and a sum, over a dimension `n`.
pub const PROGRAM: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.nn.softmax(lv, axis=-1)
            gv = R.sum(lv1, axis=0)
            R.output(gv)
        return gv

    @R.function
    def pair(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            lv = R.add(x, x)
            gv = (lv, x)
            R.output(gv)
        return gv
"#;

fn tensor_type(dims: &[&str]) -> Option<TypeProto> {
    let dim = |dim: &&str| Dimension {
        value: Some(match dim.parse() {
            Ok(value) => DimensionValue::Value(value),
            Err(_) => DimensionValue::Param(dim.to_string()),
        }),
        ..Dimension::default()
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    Some(TypeProto { value: Some(TypeKind::Tensor(TensorTypeProto { elem_type: ElementType::Float as i32, shape })) })
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: op.into(),
        name: format!("{op}_of_{output}"),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    }
}

fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let count: i64 = dims.iter().product();
    TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: ElementType::Float as i32,
        float_data: (0..count).map(|i| (i as f32 * 0.37).sin() * 0.2).collect(),
        ..TensorProto::default()
    }
}

fn file(nodes: Vec<NodeProto>, initializer: Vec<TensorProto>, input: &[&str]) -> Vec<u8> {
    let graph = GraphProto {
        node: nodes,
        name: "test".into(),
        initializer,
        input: vec![ValueInfoProto { name: "image".into(), r#type: tensor_type(input) }],
        output: vec![ValueInfoProto { name: "y".into(), r#type: tensor_type(&[]) }],
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..ModelProto::default() }.encode_to_vec()
}

/// A convolution, a ReLU, a mean over the image and a product: an image (batch, 3, 8, 8) to five numbers.
pub fn network() -> Vec<u8> {
    let nodes = vec![
        node("Conv", &["image", "kernel"], "a"),
        node("Relu", &["a"], "b"),
        node("GlobalAveragePool", &["b"], "c"),
        node("Flatten", &["c"], "d"),
        node("MatMul", &["d", "matrix"], "y"),
    ];
    file(nodes, vec![weight("kernel", &[4, 3, 3, 3]), weight("matrix", &[4, 5])], &["batch", "3", "8", "8"])
}

/// A model with two operators that do not exist.
pub fn unsupported() -> Vec<u8> {
    let nodes = vec![
        node("Frobnicate", &["image"], "a"),
        node("Relu", &["a"], "b"),
        node("Grumble", &["image"], "c"),
        node("Add", &["b", "c"], "y"),
    ];
    file(nodes, Vec::new(), &["batch", "3"])
}

/// Eight floats, or a scalar of another type.
fn info(name: &str, element: ElementType) -> ValueInfoProto {
    let dim = Dimension { value: Some(DimensionValue::Value(8)), ..Dimension::default() };
    let dim = if element == ElementType::Float { vec![dim] } else { Vec::new() };
    let tensor = TensorTypeProto { elem_type: element as i32, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { value: Some(TypeKind::Tensor(tensor)) }) }
}

fn body(nodes: Vec<NodeProto>, input: Vec<ValueInfoProto>, output: Vec<ValueInfoProto>) -> GraphProto {
    GraphProto { node: nodes, name: "body".into(), input, output, ..GraphProto::default() }
}

fn with_graph(mut node: NodeProto, name: &str, graph: GraphProto) -> NodeProto {
    let kind = AttributeKind::Graph as i32;
    node.attribute.push(AttributeProto {
        name: name.into(),
        g: Some(graph),
        r#type: kind,
        ..AttributeProto::default()
    });
    node
}

fn scalar(name: &str, element: ElementType, bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: name.into(),
        data_type: element as i32,
        raw_data: bytes.to_vec().into(),
        ..TensorProto::default()
    }
}

/// A loop of three iterations; each takes the branch of an `If` that has a product with a matrix in it. What stands around does not
/// lose precision in 16 bits.
pub fn nested() -> Vec<u8> {
    let float = |name: &str| info(name, ElementType::Float);
    let then =
        body(vec![node("Neg", &["state"], "t"), node("MatMul", &["t", "matrix"], "then")], vec![], vec![float("then")]);
    let other = body(vec![node("Identity", &["state"], "else")], vec![], vec![float("else")]);
    let branch = with_graph(with_graph(node("If", &["yes"], "next"), "then_branch", then), "else_branch", other);
    let iteration = body(
        vec![node("Identity", &["going"], "goes"), branch],
        vec![info("iteration", ElementType::Int64), info("going", ElementType::Bool), float("state")],
        vec![info("goes", ElementType::Bool), float("next")],
    );
    let repeat = with_graph(node("Loop", &["iterations", "yes", "small"], "y"), "body", iteration);
    let matrix = TensorProto { name: "matrix".into(), ..weight("matrix", &[8, 8]) };
    let constants = vec![
        matrix,
        scalar("iterations", ElementType::Int64, &3i64.to_le_bytes()),
        scalar("yes", ElementType::Bool, &[1]),
    ];
    file(vec![node("Relu", &["image"], "small"), repeat], constants, &["8"])
}

/// Rows of a table of seven, by number.
pub fn table() -> Vec<u8> {
    let ids = TensorTypeProto {
        elem_type: ElementType::Int64 as i32,
        shape: Some(TensorShapeProto {
            dim: vec![Dimension { value: Some(DimensionValue::Param("n".into())), ..Dimension::default() }],
        }),
    };
    let bytes = file(vec![node("Gather", &["rows", "ids"], "y")], vec![weight("rows", &[7, 4])], &[]);
    let mut model = ModelProto::decode(&bytes[..]).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.input =
        vec![ValueInfoProto { name: "ids".into(), r#type: Some(TypeProto { value: Some(TypeKind::Tensor(ids)) }) }];
    model.encode_to_vec()
}
