//! Graphs: read, written, run; and no change of a text does harm.

use std::collections::HashMap;

use relaxide_ffi::{Any, DataType, Device, Function, Tensor};
use relaxide_relay_vm::graph::{EntryType, Graph, GraphExecutor, GraphFactory, Node, NodeEntry, NodeKind, graph_of};
use relaxide_relay_vm::{Alignment, Constant, Executable, Instruction as I, Size, VmFunction};

fn kernel(name: &str, inputs: Vec<NodeEntry>) -> Node {
    let kind = NodeKind::Kernel { function: name.into(), flatten: false, attrs: vec![("hash".into(), "17".into())] };
    Node { name: name.into(), kind, inputs, outputs: 1 }
}

fn entry(node: usize) -> NodeEntry {
    NodeEntry { node, index: 0 }
}

/// `double(double(x))`, whose first result is free when the second is there.
fn graph() -> Graph {
    let input = Node { name: "x".into(), kind: NodeKind::Input, inputs: vec![], outputs: 1 };
    let ty = |storage| EntryType { shape: vec![3], dtype: DataType::float(32), storage, device: None };
    Graph {
        nodes: vec![input, kernel("double", vec![entry(0)]), kernel("double", vec![entry(1)])],
        arg_nodes: vec![0],
        heads: vec![entry(2)],
        entries: vec![ty(0), ty(1), ty(2)],
        row: vec![0, 1, 2, 3],
    }
}

fn double() -> Function {
    Function::new(|args| {
        let (from, to) = (args[0].to::<Tensor>()?, args[1].to::<Tensor>()?);
        let values: Vec<f32> = from.to_vec::<f32>()?.iter().map(|v| v * 2.0).collect();
        to.copy_from_slice(&values)?;
        Ok(Any::none())
    })
}

#[test]
fn a_graph_that_was_written_is_read() {
    let graph = graph();
    assert_eq!(Graph::parse(&graph.to_json()).unwrap(), graph);
}

#[test]
fn a_graph_runs_on_functions_that_are_given() {
    let named = HashMap::from([("double".to_string(), double())]);
    let executor = GraphExecutor::new(graph(), None, &named, Device::cpu(0)).unwrap();
    executor.set_input(0, &Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).unwrap()).unwrap();
    executor.run().unwrap();
    let first = executor.output(0).unwrap();
    assert_eq!(first.to_vec::<f32>().unwrap(), [4.0, 8.0, 12.0]);
    // What was taken stays what it was.
    executor.set_input(0, &Tensor::from_slice(&[0f32, 0.0, 0.0], &[3]).unwrap()).unwrap();
    executor.run().unwrap();
    assert_eq!(first.to_vec::<f32>().unwrap(), [4.0, 8.0, 12.0]);
}

#[test]
fn a_program_without_control_flow_is_a_graph_whose_storages_are_shared() {
    let scalar = |value: i64| Constant::Immediate(Tensor::from_slice(&[value], &[]).unwrap());
    let mut code = vec![I::LoadConst { index: 0, device: 0, dst: 1 }, I::LoadConst { index: 1, device: 0, dst: 2 }];
    // Four kernels in a row, each into memory of its own.
    for step in 0..4 {
        let (storage, tensor) = (10 + 2 * step, 11 + 2 * step);
        let dtype = DataType::float(32);
        code.push(I::AllocStorage {
            size: Size::Register(1),
            alignment: Alignment::Bytes(64),
            dtype,
            device: 0,
            dst: storage,
        });
        code.push(I::AllocTensor { storage, offset: Some(2), shape: vec![3], dtype, dst: tensor });
        let from = if step == 0 { 0 } else { tensor - 2 };
        code.push(I::InvokePacked { index: 0, outputs: 1, args: vec![from, tensor] });
    }
    code.push(I::Ret { result: 17 });
    let main = VmFunction {
        name: "main".into(),
        params: vec!["x".into()],
        register_file_size: 20,
        instructions: code,
        param_devices: vec![0],
    };
    let executable = Executable {
        globals: vec!["main".into()],
        constants: vec![scalar(12), scalar(0)],
        constant_devices: vec![0, 0],
        primitives: vec!["double".into()],
        functions: vec![main],
        ..Executable::default()
    };
    let input = EntryType { shape: vec![3], dtype: DataType::float(32), storage: 0, device: None };
    let (graph, params) = graph_of(&executable, &[input]).unwrap();
    assert!(params.is_empty());
    let mut storages: Vec<usize> = graph.entries.iter().map(|e| e.storage).collect();
    storages.sort_unstable();
    storages.dedup();
    // The input's, the result's, and two that the others take in turns.
    assert_eq!(storages.len(), 4);
    let named = HashMap::from([("double".to_string(), double())]);
    let executor = GraphExecutor::new(graph, None, &named, Device::cpu(0)).unwrap();
    executor.set_input(0, &Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).unwrap()).unwrap();
    executor.run().unwrap();
    assert_eq!(executor.output(0).unwrap().to_vec::<f32>().unwrap(), [16.0, 32.0, 48.0]);
}

#[test]
fn a_factory_comes_back_from_its_bytes() {
    let weight = Tensor::from_slice(&[1f32, 2.0], &[2]).unwrap();
    let factory = GraphFactory { json: graph().to_json(), params: vec![("p0".into(), weight)], name: "default".into() };
    let again = GraphFactory::from_bytes(&factory.to_bytes().unwrap()).unwrap();
    assert_eq!((again.json, again.name), (factory.json, factory.name));
    assert_eq!(again.params[0].1.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

/// A generator of numbers that is the same every time.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn no_change_of_a_text_or_of_bytes_does_harm() {
    let text = graph().to_json();
    let factory = GraphFactory { json: text.clone(), params: vec![], name: "default".into() };
    let bytes = factory.to_bytes().unwrap();
    let named = HashMap::from([("double".to_string(), Function::new(|_| Ok(Any::none())))]);
    let mut state = 7;
    for _ in 0..20_000 {
        let mut changed = text.clone().into_bytes();
        for _ in 0..1 + next(&mut state) % 3 {
            let at = next(&mut state) as usize % changed.len();
            changed[at] = b"0123456789-[]{}\",:x"[next(&mut state) as usize % 19];
        }
        let Ok(changed) = String::from_utf8(changed) else { continue };
        if let Ok(graph) = Graph::parse(&changed) {
            let bytes: i64 = graph.entries.iter().map(|e| e.shape.iter().product::<i64>().saturating_mul(16)).sum();
            if bytes < 1 << 20 {
                // It is refused or it runs.
                let _ = GraphExecutor::new(graph, None, &named, Device::cpu(0)).map(|e| e.run());
            }
        }
        let mut changed = bytes.clone();
        let at = next(&mut state) as usize % changed.len();
        changed[at] = next(&mut state) as u8;
        let _ = GraphFactory::from_bytes(&changed);
    }
}
