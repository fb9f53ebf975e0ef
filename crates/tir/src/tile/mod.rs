//! Programs of tiles: which threads of a device execute a part of a kernel, and operations of these threads on whole tiles.
//!
//! A kernel says where its device part begins (`T.device_entry()`, an attribute over the rest), numbers blocks, warps and threads
//! ([`ScopeIdDefStmt`]), and lets the threads of a scope copy, compute or multiply tiles together ([`TilePrimitiveCall`]). Buffers of such
//! kernels have [layouts](relaxide_ir::layout), which say what each thread holds.
//!
//! These are statements of programs that are read, printed, compared and checked. No pass makes code of them yet: [`unlowered`] finds
//! them, so that compiling such a kernel is an error that says so.

mod primitives;
mod walk;

use indexmap::IndexMap;
use relaxide_ffi::{Any, Object, Ref};
use relaxide_ir::layout::{ExecScope, ScopeIdDef, ScopeKind};
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};
use relaxide_ir::{Attrs, Buffer, Var};

use crate::functor::StmtVisitor;
use crate::{PrimFunc, Stmt};

pub use primitives::{Default, Kind, Parameter, Primitive, primitive};
pub(crate) use walk::{mutated, visit};

/// The attribute over the part of a kernel that runs on the device.
pub const DEVICE_ENTRY: &str = "tirx.device_entry";

/// The attribute that tells a reader something of the statements under it: what it is about is a map of texts and numbers.
pub const HINT: &str = "tirx_hint";

/// The text of a [`HINT`].
pub const HINT_MESSAGE: &str = "message";

/// The attribute of kernels whose blocks stay and take one tile after another.
pub const PERSISTENT_KERNEL: &str = "tirx.persistent_kernel";

/// The prefix of the names of tile primitives.
pub const TILE_PREFIX: &str = "tirx.tile.";

/// Numbers for the units of a scope, for the statements behind it in the same sequence.
#[derive(Object, Debug)]
#[object(key = "tirx.ScopeIdDefStmt")]
pub struct ScopeIdDefStmt {
    /// The definition.
    pub def: Ref<ScopeIdDef>,
}

/// An operation of the threads of a scope on tiles.
#[derive(Object, Debug)]
#[object(key = "tirx.TilePrimitiveCall")]
pub struct TilePrimitiveCall {
    /// Which: `"tirx.tile.copy"`.
    pub op: String,
    /// Regions of buffers, scalars, and what else the primitive takes, in the order of its parameters.
    pub args: Vec<Any>,
    /// Buffers that it may use, by what for.
    pub workspace: IndexMap<String, Ref<Buffer>>,
    /// Hints for the implementation.
    pub config: Attrs,
    /// The implementation that is asked for by name.
    pub dispatch: Option<String>,
    /// Which threads do it together.
    pub scope: Ref<ExecScope>,
}

impl TilePrimitiveCall {
    /// The primitive's name without the prefix.
    pub fn name(&self) -> &str {
        self.op.strip_prefix(TILE_PREFIX).unwrap_or(&self.op)
    }
}

/// An expression over indices of elements.
#[derive(Object, Debug)]
#[object(key = "tirx.LambdaExpr")]
pub struct LambdaExpr {
    /// The indices.
    #[field(def)]
    pub vars: Vec<Ref<Var>>,
    /// The expression.
    pub pred: PrimExpr,
}

impl LambdaExpr {
    /// The expression at an element; `None` where the element has another number of indices.
    pub fn apply(&self, indices: &[PrimExpr]) -> Option<PrimExpr> {
        if indices.len() != self.vars.len() {
            return None;
        }
        let map: VarMap = self.vars.iter().cloned().zip(indices.iter().cloned()).collect();
        Some(substitute(&self.pred, &map))
    }
}

/// The names of scopes in front of a primitive: `T.cta.copy`, `T.wg.copy`.
pub const SCOPE_NAMES: [(&str, ScopeKind); 6] = [
    ("cluster", ScopeKind::Cluster),
    ("cta", ScopeKind::Cta),
    ("warpgroup", ScopeKind::Warpgroup),
    ("wg", ScopeKind::Warpgroup),
    ("warp", ScopeKind::Warp),
    ("thread", ScopeKind::Thread),
];

/// What of a kernel no pass makes code of, in words.
pub fn unlowered(func: &PrimFunc) -> Option<String> {
    #[derive(std::default::Default)]
    struct Find(Option<String>);
    impl relaxide_ir::prim::PrimVisitor for Find {}
    impl StmtVisitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            let found = match stmt {
                Stmt::ScopeIds(n) => Some(format!("scope ids ({} in {})", n.def.scope.cur(), n.def.scope.parent())),
                Stmt::Tile(n) => Some(format!("the tile primitive `{}`", n.name())),
                Stmt::Attr(n) if n.key == DEVICE_ENTRY => Some("T.device_entry()".to_string()),
                Stmt::Alloc(n) => placed(&n.buffer),
                Stmt::Decl(n) => placed(&n.buffer),
                Stmt::Block(n) => n.block.alloc_buffers.iter().find_map(|buffer| placed(buffer)),
                _ => None,
            };
            match found {
                Some(found) => drop(self.0.get_or_insert(found)),
                None => self.walk_stmt(stmt),
            }
        }
    }
    fn placed(buffer: &Buffer) -> Option<String> {
        let layout = buffer.layout.layout()?;
        Some(format!("the layout of the buffer `{}`, {layout}", buffer.name))
    }
    if let Some(found) = func.buffers.iter().flatten().find_map(|buffer| placed(buffer)) {
        return Some(found);
    }
    let mut find = Find::default();
    find.visit_stmt(&func.body);
    find.0
}
