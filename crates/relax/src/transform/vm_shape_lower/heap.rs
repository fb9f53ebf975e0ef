//! The heap of a function: a slot for every symbolic scalar that the function needs while it runs.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use indexmap::IndexSet;
use relaxide_ffi::{DataType, FreeVars, Ref, structural_equal, structural_hash};
use relaxide_ir::prim::{PrimExpr, VarMap, cast, free_vars, load, substitute};
use relaxide_ir::{Attrs, Buffer, Var};
use relaxide_tir::{PrimFunc, Stmt};

/// A scalar expression that is the same key as any other of the same structure.
#[derive(Clone)]
struct Key(PrimExpr);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        structural_equal(&self.0, &other.0, FreeVars::Same).is_ok()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        structural_hash(&self.0, FreeVars::Same).hash(state);
    }
}

/// The slots, and which of them hold their value at the point that lowering has reached.
#[derive(Clone, Default)]
pub struct ShapeHeap {
    slots: IndexSet<Key>,
    known: HashSet<usize>,
}

impl ShapeHeap {
    /// Gives an expression a slot, and one to every variable in it. Literals need none.
    pub fn reserve(&mut self, e: &PrimExpr) {
        if e.as_int().is_some() || !e.dtype().is_int() {
            return;
        }
        for var in free_vars(e) {
            self.slots.insert(Key(PrimExpr::Var(var)));
        }
        self.slots.insert(Key(e.clone()));
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of an expression.
    pub fn slot(&self, e: &PrimExpr) -> Option<usize> {
        self.slots.get_index_of(&Key(e.clone()))
    }

    /// Whether a slot holds its value.
    pub fn is_known(&self, slot: usize) -> bool {
        self.known.contains(&slot)
    }

    /// Notes that a slot holds its value.
    pub fn mark_known(&mut self, slot: usize) {
        self.known.insert(slot);
    }

    /// What is known now, to be restored behind a branch.
    pub fn snapshot(&self) -> HashSet<usize> {
        self.known.clone()
    }

    /// Goes back to what was known.
    pub fn restore(&mut self, known: HashSet<usize>) {
        self.known = known;
    }

    fn knows(&self, var: &Ref<Var>) -> bool {
        self.slot(&PrimExpr::Var(var.clone())).is_some_and(|slot| self.is_known(slot))
    }

    /// A kernel that computes every expression whose variables are known and that is not; none if there is nothing to do.
    pub fn compute_ready(&mut self) -> Option<PrimFunc> {
        let ready: Vec<(usize, PrimExpr)> = self
            .slots
            .iter()
            .enumerate()
            .filter(|(slot, key)| !self.is_known(*slot) && key.0.as_var().is_none())
            .filter(|(_, key)| free_vars(&key.0).iter().all(|v| self.knows(v)))
            .map(|(slot, key)| (slot, key.0.clone()))
            .collect();
        if ready.is_empty() {
            return None;
        }
        let heap = Buffer::new("H", DataType::int(64), [self.len() as i64]);
        let loads: VarMap = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(slot, key)| {
                let var = key.0.as_var()?;
                Some((var.clone(), cast(var.dtype(), load(&heap, [slot as i64]))))
            })
            .collect();
        let stores = ready
            .iter()
            .map(|(slot, e)| Stmt::store(&heap, [*slot as i64], cast(DataType::int(64), substitute(e, &loads))));
        let body = Stmt::seq(stores);
        self.known.extend(ready.iter().map(|(slot, _)| *slot));
        let mut func = PrimFunc::over_buffers(&[heap], &[], body);
        func.attrs = Attrs::new().with(relaxide_tir::HOST_FUNC, true).with("s_tir", true);
        Some(func)
    }
}
