//! Axes that a layout leads to: threads of a device, and memories.

use std::sync::LazyLock;

use relaxide_ffi::{Object, Ref};

use super::ScopeKind;

/// An axis. Two of one name are the same axis.
#[derive(Object, Debug, PartialEq, Eq)]
#[object(key = "tirx.Axis")]
pub struct Axis {
    /// `"laneid"`, `"m"` … A name that is not in the table is a memory.
    pub name: String,
}

/// What is known of an axis by its name.
struct AxisRow {
    name: &'static str,
    /// For threads: what the axis counts, and within what.
    threads: Option<Counts>,
}

#[derive(Clone, Copy)]
struct Counts {
    subscope: ScopeKind,
    scope: ScopeKind,
}

const fn threads(name: &'static str, subscope: ScopeKind, scope: ScopeKind) -> AxisRow {
    AxisRow { name, threads: Some(Counts { subscope, scope }) }
}

const fn memory(name: &'static str) -> AxisRow {
    AxisRow { name, threads: None }
}

const TABLE: &[AxisRow] = &[
    // Blocks of a grid are outside of every scope; TVM says `thread` there.
    threads("bx", ScopeKind::Cta, ScopeKind::Thread),
    threads("by", ScopeKind::Cta, ScopeKind::Thread),
    threads("bz", ScopeKind::Cta, ScopeKind::Thread),
    threads("cbx", ScopeKind::Cta, ScopeKind::Cluster),
    threads("cby", ScopeKind::Cta, ScopeKind::Cluster),
    threads("cbz", ScopeKind::Cta, ScopeKind::Cluster),
    threads("tx", ScopeKind::Thread, ScopeKind::Cta),
    threads("warpid", ScopeKind::Warp, ScopeKind::Cta),
    threads("laneid", ScopeKind::Thread, ScopeKind::Warp),
    threads("wgid", ScopeKind::Warpgroup, ScopeKind::Cta),
    threads("tid_in_wg", ScopeKind::Thread, ScopeKind::Warpgroup),
    threads("wid_in_wg", ScopeKind::Warp, ScopeKind::Warpgroup),
    memory("m"),
    memory("P"),
    memory("F"),
    memory("Bank"),
    memory("TCol"),
    memory("TLane"),
];

/// The axes of the table. They are made once, so that maps find them by their address.
pub static AXES: LazyLock<Vec<Ref<Axis>>> =
    LazyLock::new(|| TABLE.iter().map(|row| Ref::new(Axis { name: row.name.to_string() })).collect());

impl Axis {
    /// The axis of a name.
    pub fn get(name: &str) -> Ref<Axis> {
        let known = AXES.iter().find(|axis| axis.name == name).cloned();
        known.unwrap_or_else(|| Ref::new(Axis { name: name.to_string() }))
    }

    /// The axis of addresses.
    pub fn memory() -> Ref<Axis> {
        Axis::get("m")
    }

    fn threads(&self) -> Option<Counts> {
        TABLE.iter().find(|row| row.name == self.name)?.threads
    }

    /// Whether it counts threads, or units of them.
    pub fn is_thread(&self) -> bool {
        self.threads().is_some()
    }

    /// Whether it counts places of a memory.
    pub fn is_memory(&self) -> bool {
        !self.is_thread()
    }

    /// Within what it counts, of an axis of threads.
    pub fn scope(&self) -> Option<ScopeKind> {
        Some(self.threads()?.scope)
    }

    /// What it counts, of an axis of threads.
    pub fn subscope(&self) -> Option<ScopeKind> {
        Some(self.threads()?.subscope)
    }
}
