//! Atoms: what the canonical form does not take apart, each kept once.

use indexmap::IndexMap;
use relaxide_ffi::{DataType, Ref};

use super::sum::{Sum, is_index};
use crate::{BinaryOp, Buffer, Var, prim};

/// An atom by its place in [`Atoms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AtomId(u32);

impl AtomId {
    /// Its place among the atoms of its analyzer.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An expression inside the analyzer: an index in canonical form, or anything else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Index(Sum),
    Other(AtomId),
}

/// What an atom is. Operands of the index operations are canonical, so equal atoms are equal values of this type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Var(Ref<Var>),
    FloorDiv(Sum, Sum),
    FloorMod(Sum, Sum),
    Min(Sum, Sum),
    Max(Sum, Sum),
    /// A comparison of indices: `Lt`, `Le`, `Eq` or `Ne`.
    Compare(BinaryOp, Sum, Sum),
    /// Anything else: what it is, and its operands.
    Node(Head, Vec<Value>),
}

/// What an expression is, its operands aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Head {
    Int(DataType, i64),
    /// The bits of the value.
    Float(DataType, u64),
    Str(String),
    Binary(BinaryOp),
    Not,
    Select,
    Cast(DataType),
    Let(Ref<Var>),
    Ramp(i64),
    Broadcast(i64),
    /// The last operand is a predicate where the flag is set.
    Load(Ref<Buffer>, bool),
    Call(String, DataType),
}

/// What is known of an atom at its making.
#[derive(Clone, Copy, Debug)]
struct Info {
    dtype: DataType,
    /// Whether its value depends on memory or calls.
    data: bool,
}

/// All atoms that an analyzer has met.
#[derive(Default)]
pub(super) struct Atoms {
    all: IndexMap<Atom, Info>,
    /// Whether the machine's factor of scalable vectors is a number like a variable, not data.
    pub counts_vscale: bool,
}

impl Atoms {
    pub fn get(&self, id: AtomId) -> &Atom {
        self.all.get_index(id.0 as usize).expect("an id is the index of an atom that was put here").0
    }

    pub fn dtype(&self, id: AtomId) -> DataType {
        self.all[id.0 as usize].dtype
    }

    pub fn is_data(&self, id: AtomId) -> bool {
        self.all[id.0 as usize].data
    }

    pub fn dtype_of(&self, value: &Value) -> DataType {
        match value {
            Value::Index(sum) => sum.dtype,
            Value::Other(atom) => self.dtype(*atom),
        }
    }

    /// Whether a sum depends on memory or calls.
    pub fn sum_is_data(&self, sum: &Sum) -> bool {
        sum.terms.iter().flat_map(|(product, _)| product).any(|atom| self.is_data(*atom))
    }

    pub fn value_is_data(&self, value: &Value) -> bool {
        match value {
            Value::Index(sum) => self.sum_is_data(sum),
            Value::Other(atom) => self.is_data(*atom),
        }
    }

    /// The atom of this kind and type.
    pub fn intern(&mut self, atom: Atom, dtype: DataType) -> AtomId {
        if let Some(at) = self.all.get_index_of(&atom) {
            return AtomId(at as u32);
        }
        let data = match &atom {
            Atom::Var(_) => false,
            Atom::FloorDiv(a, b) | Atom::FloorMod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                self.sum_is_data(a) || self.sum_is_data(b)
            }
            Atom::Compare(_, a, b) => self.sum_is_data(a) || self.sum_is_data(b),
            Atom::Node(Head::Call(name, _), args) if name == "tirx.if_then_else" => {
                args.iter().any(|a| self.value_is_data(a))
            }
            Atom::Node(Head::Call(name, _), _) if self.counts_vscale && name == prim::VSCALE => false,
            Atom::Node(Head::Load(..) | Head::Call(..) | Head::Float(..), _) => true,
            Atom::Node(_, args) => args.iter().any(|a| self.value_is_data(a)),
        };
        let (at, _) = self.all.insert_full(atom, Info { dtype, data });
        AtomId(at as u32)
    }

    /// The atom as a value of its type.
    pub fn value(&mut self, atom: Atom, dtype: DataType) -> Value {
        let id = self.intern(atom, dtype);
        if is_index(dtype) { Value::Index(Sum::atom(dtype, id)) } else { Value::Other(id) }
    }

    /// A bool.
    pub fn boolean(&mut self, value: bool) -> Value {
        let head = Head::Int(DataType::bool(), i64::from(value));
        Value::Other(self.intern(Atom::Node(head, Vec::new()), DataType::bool()))
    }
}
