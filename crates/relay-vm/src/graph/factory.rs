//! A graph with its weights as a module: called with a device by its name (`default`), it gives an executor.
//!
//! Names of functions are TVM's. A library's file holds the factory as bytes and its kernels as native code.

use std::collections::HashMap;
use std::sync::Once;

use relaxide_ffi::{
    Any, AnyView, Device, Error, ErrorKind, Function, Map, Module, ModuleImpl, ModuleProperties, Tensor, get_global,
    register_global,
};
use relaxide_vm::executable::stream::{Reader, Section, Writer, read_tensor, write_tensor_before_bool};

use super::executor::{GraphExecutor, tensor_on};
use super::format::{Graph, NodeEntry};

const FACTORY_KIND: &str = "GraphExecutorFactory";
const EXECUTOR_KIND: &str = "GraphExecutor";

/// A graph with its weights.
#[derive(Clone, Debug)]
pub struct GraphFactory {
    /// The graph's JSON.
    pub json: String,
    /// The weights by name.
    pub params: Vec<(String, Tensor)>,
    /// The name by which executors are asked for.
    pub name: String,
}

fn invalid(message: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::ValueError, message.to_string())
}

/// Enters loader and constructor among the global functions. Calling it again does nothing.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let load = Function::new(|args| {
            let missing = || Error::new(ErrorKind::TypeError, "load_from_bytes takes the bytes of a graph");
            let bytes = args.first().and_then(AnyView::as_bytes).ok_or_else(missing)?;
            GraphFactory::from_bytes(bytes).map(|factory| Any::from(factory.into_module()))
        });
        let create = Function::new(create);
        let entries = [
            (format!("ffi.Module.load_from_bytes.{FACTORY_KIND}"), load),
            ("tvm.graph_executor.create".into(), create),
        ];
        for (name, function) in entries {
            if get_global(&name).is_none() {
                // Only another thread's registration of the same function can come between.
                let _ = register_global(&name, function);
            }
        }
    });
}

/// `(json, library or functions by name, device type, device id)`.
fn create(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let wrong =
        || Error::new(ErrorKind::TypeError, "create takes a graph's JSON, a library, and a device's type and number");
    let [json, library, kind, id, ..] = args else { return Err(wrong()) };
    let graph = Graph::parse(json.as_str().ok_or_else(wrong)?)?;
    let device = Device { device_type: kind.to::<i32>()?, device_id: id.to::<i32>()? };
    let (module, mut named) = (library.to::<Module>().ok(), HashMap::new());
    if module.is_none() && !library.is_none() {
        for (name, function) in library.to::<Map>()?.iter() {
            named.insert(name.to::<String>()?, function.to::<Function>()?);
        }
    }
    let executor = GraphExecutor::new(graph, module.as_ref(), &named, device)?;
    Ok(Any::from(Module::new(ExecutorModule { executor, device, library: module })))
}

impl GraphFactory {
    /// As a module. Its kernels are the module's imports.
    pub fn into_module(self) -> Module {
        register();
        Module::new(FactoryModule(self))
    }

    /// The factory of its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<GraphFactory, Error> {
        let reader = &mut Reader::new(bytes, Section::Parameters);
        let json = reader.string().map_err(invalid)?;
        let count = reader.count(8).map_err(invalid)?;
        let names = (0..count).map(|_| reader.string().map_err(invalid)).collect::<Result<Vec<_>, _>>()?;
        let tensors = (0..count).map(|_| read_tensor(reader).map_err(invalid)).collect::<Result<Vec<_>, _>>()?;
        let name = reader.string().map_err(invalid)?;
        Graph::parse(&json)?;
        Ok(GraphFactory { json, params: names.into_iter().zip(tensors).collect(), name })
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut out = Writer::default();
        out.string(&self.json);
        out.count(self.params.len());
        self.params.iter().for_each(|(name, _)| out.string(name));
        for (index, (_, tensor)) in self.params.iter().enumerate() {
            write_tensor_before_bool(&mut out, index, tensor).map_err(invalid)?;
        }
        out.string(&self.name);
        Ok(out.0.into_bytes())
    }
}

struct FactoryModule(GraphFactory);

impl ModuleImpl for FactoryModule {
    fn kind(&self) -> &str {
        FACTORY_KIND
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        let own = self.0.clone();
        match name {
            "get_graph_json" => Some(Function::new(move |_| Ok(Any::from(own.json.as_str())))),
            "get_graph_params" => Some(Function::new(move |_| {
                let pair = |(name, tensor): &(String, Tensor)| (Any::from(name.as_str()), Any::from(tensor.clone()));
                Ok(Any::from(own.params.iter().map(pair).collect::<Map>()))
            })),
            "get_lib" => {
                let module = module.clone();
                Some(Function::new(move |_| Ok(module.imports().into_iter().next().map_or(Any::none(), Any::from))))
            }
            _ if name == self.0.name => {
                let module = module.clone();
                Some(Function::new(move |args| {
                    let device = args.first().ok_or_else(|| invalid("the device is missing"))?.to::<Device>()?;
                    let graph = Graph::parse(&own.json)?;
                    let executor = GraphExecutor::new(graph, Some(&module), &HashMap::new(), device)?;
                    for (name, tensor) in &own.params {
                        if let Some(index) = executor.input_index(name) {
                            executor.set_input(index, tensor)?;
                        }
                    }
                    Ok(Any::from(Module::new(ExecutorModule { executor, device, library: Some(module.clone()) })))
                }))
            }
            _ => None,
        }
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::BINARY_SERIALIZABLE
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.0.to_bytes()
    }
}

struct ExecutorModule {
    executor: GraphExecutor,
    device: Device,
    /// Keeps the kernels' code.
    #[allow(dead_code, reason = "held so that the library stays loaded")]
    library: Option<Module>,
}

impl ExecutorModule {
    /// An input by name or place.
    fn input(&self, value: Option<&AnyView<'_>>) -> Result<usize, Error> {
        let value = value.ok_or_else(|| invalid("the input's name or place is missing"))?;
        match value.as_str() {
            None => usize::try_from(value.to::<i64>()?).map_err(|_| invalid("there is no such input")),
            Some(name) => self.executor.input_index(name).ok_or_else(|| {
                let graph = self.executor.graph();
                let known: Vec<&str> = graph.arg_nodes.iter().map(|at| graph.nodes[*at].name.as_str()).collect();
                invalid(format!("there is no input {name}; there are {}", known.join(", ")))
            }),
        }
    }

    fn place(args: &[AnyView<'_>], at: usize) -> Result<usize, Error> {
        let value = args.get(at).ok_or_else(|| invalid("a number is missing"))?.to::<i64>()?;
        usize::try_from(value).map_err(|_| invalid(format!("there is no output {value}")))
    }
}

type ExecutorFunction = fn(&ExecutorModule, &[AnyView<'_>]) -> Result<Any, Error>;

const FUNCTIONS: &[(&str, ExecutorFunction)] = &[
    ("set_input", |m, args| {
        let index = m.input(args.first())?;
        let value = args.get(1).ok_or_else(|| invalid("the value is missing"))?;
        m.executor.set_input(index, &tensor_on(*value, m.device)?).map(|()| Any::none())
    }),
    ("get_input", |m, args| m.executor.input(m.input(args.first())?).map(Any::from)),
    ("get_input_index", |m, args| {
        let name = args.first().and_then(AnyView::as_str).ok_or_else(|| invalid("the input's name is missing"))?;
        Ok(Any::from(m.executor.input_index(name).map_or(-1, |i| i as i64)))
    }),
    ("get_num_inputs", |m, _| Ok(Any::from(m.executor.graph().arg_nodes.len() as i64))),
    ("get_num_outputs", |m, _| Ok(Any::from(m.executor.graph().heads.len() as i64))),
    ("get_output", |m, args| m.executor.output(ExecutorModule::place(args, 0)?).map(Any::from)),
    ("debug_get_output", |m, args| {
        let graph = m.executor.graph();
        let node = match args.first().and_then(AnyView::as_str) {
            Some(name) => graph
                .nodes
                .iter()
                .position(|n| n.name == name)
                .ok_or_else(|| invalid(format!("there is no node {name}")))?,
            None => ExecutorModule::place(args, 0)?,
        };
        m.executor.result(NodeEntry { node, index: 0 }).map(Any::from)
    }),
    ("run", |m, _| m.executor.run().map(|()| Any::none())),
    ("load_params", |m, args| {
        let bytes =
            args.first().and_then(AnyView::as_bytes).ok_or_else(|| invalid("the weights' bytes are missing"))?;
        m.executor.load_params(bytes).map(|()| Any::none())
    }),
    ("get_graph_json", |m, _| Ok(Any::from(m.executor.graph().to_json().as_str()))),
];

impl ModuleImpl for ExecutorModule {
    fn kind(&self) -> &str {
        EXECUTOR_KIND
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        let (_, body) = FUNCTIONS.iter().find(|(own, _)| *own == name)?;
        let module = module.clone();
        Some(Function::new(move |args| {
            let own = module.downcast::<ExecutorModule>().ok_or_else(|| invalid("not a graph executor"))?;
            body(own, args)
        }))
    }
}
