//! The Python extension module.
//!
//! `relaxide._core` carries values across the border and nothing else: tensors, functions, modules, programs and errors. The
//! names that users know are given to them by the Python package around it.

mod array;
mod builder;
mod call;
mod classes;
mod compile;
mod container;
mod convert;
mod dataclass;
mod device;
mod error;
mod function;
mod interrupt;
mod ir;
mod module;
mod object;
mod onnx;
mod onnx_run;
mod opaque;
mod params;
mod program;
mod rpc;
mod script;
mod tensor;
mod torch;
mod vectorcall;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // Compiled libraries resolve the runtime's symbols through the process, where Python puts extensions out of sight.
    relaxide::runtime::ensure_symbols_global().map_err(error::to_py)?;
    // Global functions are there from the start, as they are where a front end of another language loads the runtime.
    relaxide::vm::register();
    relaxide::relay_vm::register();
    // Classes are found by the type, which exists from its first use on.
    <relaxide::vm::TextTensor as relaxide::ffi::Object>::type_index();
    ir::register().map_err(error::to_py)?;
    interrupt::register().map_err(error::to_py)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<tensor::Tensor>()?;
    m.add_class::<module::Module>()?;
    m.add_class::<ir::module::IRModule>()?;
    m.add_class::<ir::builder::BlockBuilder>()?;
    m.add_class::<ir::rewriter::PatternRewriter>()?;
    m.add_class::<program::Target>()?;
    m.add_class::<compile::CompiledModule>()?;
    m.add_class::<builder::ExecBuilder>()?;
    device::register(m)?;
    array::register(m)?;
    object::register(m)?;
    container::register(m)?;
    classes::register(m)?;
    convert::register(m)?;
    error::register(m)?;
    function::register(m)?;
    module::register(m)?;
    onnx::register(m)?;
    onnx_run::register(m)?;
    params::register(m)?;
    dataclass::register(m)?;
    script::register(m)?;
    ir::op::register(m)?;
    ir::schedule::register(m)?;
    ir::tensor_intrin::register(m)?;
    ir::te::register(m)?;
    ir::sym::register(m)?;
    ir::transform::register(m)?;
    ir::dpl::register(m)?;
    ir::fuse_by_pattern::register(m)?;
    ir::pass_functions::register(m)?;
    ir::relay::register(m)?;
    rpc::register(m)?;
    program::register(m)?;
    compile::register(m)?;
    torch::register(m)
}
