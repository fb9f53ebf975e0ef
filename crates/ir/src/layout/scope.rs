//! Scopes: the units that the threads of a device form.

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Field, FromAny, Object, Ref, StructuralEqual, StructuralHash};

use super::LayoutError;
use crate::Var;
use crate::prim::{self, PrimExpr};

/// A unit of threads. Numbers are TVM's; what is larger comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeKind {
    /// Blocks that share memory.
    Cluster = 2,
    /// A block.
    Cta = 3,
    /// Four warps.
    Warpgroup = 4,
    /// Threads that run in step.
    Warp = 5,
    /// A thread.
    Thread = 6,
}

const KINDS: [(ScopeKind, &str); 5] = [
    (ScopeKind::Cluster, "cluster"),
    (ScopeKind::Cta, "cta"),
    (ScopeKind::Warpgroup, "warpgroup"),
    (ScopeKind::Warp, "warp"),
    (ScopeKind::Thread, "thread"),
];

impl ScopeKind {
    /// Its name in programs.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The scope of a name.
    pub fn from_name(name: &str) -> Result<ScopeKind, LayoutError> {
        let found = KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
        found.ok_or_else(|| LayoutError::UnknownScope { name: name.to_string() })
    }

    /// Whether it is a unit of units of the other.
    pub fn is_above(self, other: ScopeKind) -> bool {
        self < other
    }
}

/// Implements a field that is one of a few cases, and travels as its number.
macro_rules! numbered_field {
    ($name:ident: $cases:expr) => {
        impl Field for $name {
            fn to_any(&self) -> Any {
                (*self as i64).into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                (*self as i64).s_equal(&(*other as i64), eq)
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                (*self as i64).s_hash(hash);
            }
        }

        impl From<$name> for Any {
            fn from(value: $name) -> Any {
                (value as i64).into()
            }
        }

        impl FromAny for $name {
            fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
                let number: i64 = value.to()?;
                let found = $cases.into_iter().find(|case| *case as i64 == number);
                found.ok_or_else(|| Error::new(ErrorKind::ValueError, format!("{number} is no {}", stringify!($name))))
            }
        }
    };
}

numbered_field!(ScopeKind: KINDS.map(|(kind, _)| kind));
numbered_field!(ScopeBinding: BINDINGS.map(|row| row.binding));

/// A scope as a node of programs.
#[derive(Object, Debug)]
#[object(key = "tirx.ExecScope")]
pub struct ExecScope {
    /// Which it is.
    pub kind: ScopeKind,
}

/// What a scope id counts, and within what. Numbers are TVM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScopeBinding {
    /// Clusters of a kernel.
    KernelCluster = 0,
    /// Blocks of a kernel.
    KernelCta = 1,
    /// Blocks of a cluster.
    ClusterCta = 2,
    /// Warp groups of a block.
    CtaWarpgroup = 3,
    /// Warps of a block.
    CtaWarp = 4,
    /// Warps of a warp group.
    WarpgroupWarp = 5,
    /// Threads of a warp.
    WarpThread = 6,
    /// Threads of a block.
    CtaThread = 7,
    /// Threads of a warp group.
    WarpgroupThread = 8,
    /// Pairs of blocks of a cluster.
    ClusterCtaPair = 9,
}

struct Binding {
    binding: ScopeBinding,
    parent: &'static str,
    cur: &'static str,
}

const fn binds(binding: ScopeBinding, parent: &'static str, cur: &'static str) -> Binding {
    Binding { binding, parent, cur }
}

const BINDINGS: [Binding; 10] = [
    binds(ScopeBinding::KernelCluster, "kernel", "cluster"),
    binds(ScopeBinding::KernelCta, "kernel", "cta"),
    binds(ScopeBinding::ClusterCta, "cluster", "cta"),
    binds(ScopeBinding::CtaWarpgroup, "cta", "warpgroup"),
    binds(ScopeBinding::CtaWarp, "cta", "warp"),
    binds(ScopeBinding::WarpgroupWarp, "warpgroup", "warp"),
    binds(ScopeBinding::WarpThread, "warp", "thread"),
    binds(ScopeBinding::CtaThread, "cta", "thread"),
    binds(ScopeBinding::WarpgroupThread, "warpgroup", "thread"),
    binds(ScopeBinding::ClusterCtaPair, "cluster", "cta_pair"),
];

impl ScopeBinding {
    /// The binding between two scopes.
    pub fn between(parent: &str, cur: &str) -> Result<ScopeBinding, LayoutError> {
        let found = BINDINGS.iter().find(|row| (row.parent, row.cur) == (parent, cur));
        found.map(|row| row.binding).ok_or_else(|| LayoutError::UnknownBinding {
            parent: parent.to_string(),
            cur: cur.to_string(),
            known: BINDINGS.iter().map(|row| format!("{}->{}", row.parent, row.cur)).collect::<Vec<_>>().join(", "),
        })
    }

    fn row(self) -> &'static Binding {
        &BINDINGS[self as usize]
    }

    /// The scope that is counted within.
    pub fn parent(self) -> &'static str {
        self.row().parent
    }

    /// The scope that is counted.
    pub fn cur(self) -> &'static str {
        self.row().cur
    }
}

/// Variables that number the units of a scope, along one axis or several.
#[derive(Object, Debug)]
#[object(key = "tirx.ScopeIdDef")]
pub struct ScopeIdDef {
    /// The variables.
    #[field(def)]
    pub def_ids: Vec<Ref<Var>>,
    /// How many units there are along each axis; none where that follows from the other scopes of the kernel.
    pub extents: Option<Vec<PrimExpr>>,
    /// What they count.
    pub scope: ScopeBinding,
    /// How many units the kernel would like, where fewer may be given to it.
    pub preferred_extents: Option<Vec<PrimExpr>>,
}

impl ScopeIdDef {
    /// A definition; as many extents as variables, or no extents and one variable.
    pub fn new(
        def_ids: Vec<Ref<Var>>,
        extents: Option<Vec<PrimExpr>>,
        scope: ScopeBinding,
        preferred_extents: Option<Vec<PrimExpr>>,
    ) -> Result<ScopeIdDef, LayoutError> {
        match &extents {
            Some(extents) if extents.len() != def_ids.len() => {
                let (what, expected) = ("scope ids, one for each extent", extents.len());
                return Err(LayoutError::Length { what, expected, given: def_ids.len() });
            }
            None if def_ids.len() != 1 => {
                let count = def_ids.len();
                let message = format!("Deferred ScopeIdDef (without extents) must define exactly one Var, not {count}");
                return Err(LayoutError::ScopeId(message));
            }
            _ => {}
        }
        if preferred_extents.is_some() && (extents.is_none() || scope != ScopeBinding::ClusterCta) {
            let message = "preferred extents are of blocks in a cluster, beside their extents";
            return Err(LayoutError::ScopeId(message.into()));
        }
        Ok(ScopeIdDef { def_ids, extents, scope, preferred_extents })
    }

    /// How many units there are in all, where the definition says it.
    pub fn count(&self) -> Option<PrimExpr> {
        self.extents.as_ref()?.iter().cloned().reduce(prim::mul)
    }
}
