//! PrimFunc: one kernel.

use indexmap::IndexMap;
use relaxide_ffi::{Object, Ref};
use relaxide_ir::{Attrs, Buffer, Target, TargetError, Type, Var};

use crate::Stmt;

/// The attribute of a kernel of which no product may be fused with the sum that takes it: every operation rounds on its own.
pub const SEPARATE_ROUNDING: &str = "relaxide.separate_rounding";

/// The attribute of a kernel that the host runs, whatever device the program is for: one that computes shapes.
pub const HOST_FUNC: &str = "tirx.is_host_func";

/// One kernel: parameters in, effects on buffers out.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.PrimFunc")]
pub struct PrimFunc {
    /// Parameters: handles of buffers and scalars.
    #[field(def)]
    pub params: Vec<Ref<Var>>,
    /// Result; void for kernels that write their outputs.
    pub ret_type: Type,
    /// The buffer behind each handle parameter, parallel to `params`. Symbolic dimensions in their shapes are bound by the
    /// caller's tensors.
    #[field(def)]
    pub buffers: Vec<Option<Ref<Buffer>>>,
    /// `global_symbol`, `tirx.noalias`, `op_pattern`, `target` …
    pub attrs: Attrs,
    /// The body.
    pub body: Stmt,
}

impl PrimFunc {
    /// A kernel over buffers, then scalars: each buffer gets a handle parameter.
    pub fn over_buffers(buffers: &[Ref<Buffer>], scalars: &[Ref<Var>], body: Stmt) -> PrimFunc {
        let handle = |b: &Ref<Buffer>| Var::new(format!("var_{}", b.name), Type::prim(relaxide_ir::DataType::handle()));
        PrimFunc {
            params: buffers.iter().map(handle).chain(scalars.iter().cloned()).collect(),
            ret_type: Type::void(),
            buffers: buffers.iter().cloned().map(Some).chain(scalars.iter().map(|_| None)).collect(),
            attrs: Attrs::new().with("tirx.noalias", true),
            body,
        }
    }

    /// The same kernel with another body.
    pub fn with_body(&self, body: Stmt) -> PrimFunc {
        PrimFunc { body, ..self.clone() }
    }

    /// What it is compiled for, if it says so itself; else it is for the target of the compilation.
    pub fn target(&self) -> Result<Option<Target>, TargetError> {
        self.attrs.get("target").map(Target::of_attr).transpose()
    }

    /// The name under which a library exports it.
    pub fn global_symbol(&self) -> Option<&str> {
        self.attrs.str("global_symbol")
    }

    /// The buffer behind a parameter.
    pub fn buffer_of(&self, param: &Ref<Var>) -> Option<&Ref<Buffer>> {
        let index = self.params.iter().position(|p| p == param)?;
        self.buffers.get(index)?.as_ref()
    }

    /// Buffers by parameter, in order.
    pub fn buffer_map(&self) -> IndexMap<Ref<Var>, Ref<Buffer>> {
        self.params.iter().zip(&self.buffers).filter_map(|(p, b)| Some((p.clone(), b.clone()?))).collect()
    }
}
