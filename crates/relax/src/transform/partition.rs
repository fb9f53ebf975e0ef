//! Putting bindings of a dataflow block into groups, and a call in the place of each group.
//!
//! A group is a set of bindings that one call can replace: nothing outside of the group stands between two members, that
//! is, uses one and is used by another. [`Groups`] keeps groups apart and refuses what would make such a circle.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;

use crate::functor::used_vars;
use crate::*;

/// Which binding is in which group.
pub(super) struct Groups {
    /// For each binding, the bindings of the block whose variables it uses.
    uses: Vec<Vec<usize>>,
    group: Vec<Option<usize>>,
    members: Vec<Vec<usize>>,
}

impl Groups {
    /// No groups in a block.
    pub fn of(block: &BindingBlock) -> Groups {
        let index: HashMap<&AnyVar, usize> = block.bindings.iter().enumerate().map(|(i, b)| (b.var(), i)).collect();
        let uses = |b: &Binding| used_vars(b.value()).iter().filter_map(|v| index.get(v).copied()).collect();
        let uses: Vec<Vec<usize>> = block.bindings.iter().map(uses).collect();
        Groups { group: vec![None; uses.len()], uses, members: Vec::new() }
    }

    /// Makes a group, which takes the place of those that are wholly inside of it; unless a member is in another one or the
    /// groups would need each other in a circle.
    pub fn add(&mut self, members: &[usize]) -> Option<usize> {
        let inside: HashSet<usize> = members.iter().filter_map(|m| self.of_binding(*m)).collect();
        let is_inside = |group: &usize| {
            let own = self.bindings(Item::Group(*group));
            own.len() < members.len() && own.iter().all(|m| members.contains(m))
        };
        if members.iter().any(|m| *m >= self.group.len()) || !inside.iter().all(is_inside) {
            return None;
        }
        let before = (self.group.clone(), self.members.clone());
        let id = self.members.len();
        inside.iter().for_each(|group| self.members[*group].clear());
        self.members.push(members.to_vec());
        members.iter().for_each(|m| self.group[*m] = Some(id));
        if self.has_circle() {
            (self.group, self.members) = before;
            return None;
        }
        Some(id)
    }

    /// Makes two groups one, unless that makes a circle.
    pub fn merge(&mut self, into: usize, from: usize) -> bool {
        if into == from {
            return true;
        }
        let before = (self.group.clone(), self.members.clone());
        for group in self.group.iter_mut().filter(|g| **g == Some(from)) {
            *group = Some(into);
        }
        let moved = self.members.get_mut(from).map(std::mem::take).unwrap_or_default();
        if let Some(members) = self.members.get_mut(into) {
            members.extend(moved);
            members.sort_unstable();
        }
        let merged = !self.has_circle();
        if !merged {
            (self.group, self.members) = before;
        }
        merged
    }

    /// The group of a binding.
    pub fn of_binding(&self, binding: usize) -> Option<usize> {
        self.group.get(binding).copied().flatten()
    }

    /// The bindings that a binding uses.
    pub fn used(&self, binding: usize) -> &[usize] {
        self.uses.get(binding).map(Vec::as_slice).unwrap_or_default()
    }

    /// The members of every group that has any, in order.
    pub fn lists(&self) -> Vec<Vec<usize>> {
        self.members.iter().filter(|m| !m.is_empty()).cloned().collect()
    }

    /// Bindings, and groups as one each, in an order in which everything stands behind what it uses; `None` if there is no
    /// such order. A group takes the place of its last member where that is possible.
    fn order(&self) -> Option<Vec<Item>> {
        let last: HashMap<usize, usize> =
            self.group.iter().enumerate().filter_map(|(i, g)| g.map(|g| (g, i))).collect();
        let items = (0..self.uses.len()).filter_map(|i| match self.group[i] {
            None => Some(Item::Binding(i)),
            Some(g) => (last.get(&g) == Some(&i)).then_some(Item::Group(g)),
        });
        let mut waiting: Vec<Item> = items.collect();
        let mut done = vec![false; self.uses.len()];
        let mut out = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for item in waiting {
                if self.needs(item).into_iter().all(|need| done[need]) {
                    self.bindings(item).into_iter().for_each(|i| done[i] = true);
                    out.push(item);
                } else {
                    later.push(item);
                }
            }
            if later.len() == before {
                return None;
            }
            waiting = later;
        }
        Some(out)
    }

    fn has_circle(&self) -> bool {
        self.order().is_none()
    }

    fn bindings(&self, item: Item) -> Vec<usize> {
        match item {
            Item::Binding(i) => vec![i],
            Item::Group(g) => self.members.get(g).cloned().unwrap_or_default(),
        }
    }

    /// What an item uses outside of itself.
    fn needs(&self, item: Item) -> HashSet<usize> {
        let own: HashSet<usize> = self.bindings(item).into_iter().collect();
        own.iter().flat_map(|i| self.used(*i)).copied().filter(|i| !own.contains(i)).collect()
    }

    /// What a group's members hold that is used outside: first what outlives the block, then by first use.
    pub fn outputs(&self, block: &BindingBlock, members: &[usize]) -> Vec<AnyVar> {
        let var = |i: &usize| block.bindings.get(*i).map(|b| b.var().clone());
        let outlives = |v: &AnyVar| matches!(v, AnyVar::Var(_));
        let mut outputs: Vec<AnyVar> = members.iter().filter_map(var).filter(outlives).collect();
        for user in (0..self.uses.len()).filter(|i| !members.contains(i)) {
            for used in self.used(user).iter().filter(|i| members.contains(i)).filter_map(var) {
                if !outputs.contains(&used) {
                    outputs.push(used);
                }
            }
        }
        outputs
    }

    /// The block with a call in the place of each group; `call` makes it of the group's bindings and outputs. `None` where it
    /// makes none: those bindings stay.
    pub fn replace(
        &self,
        block: &Ref<BindingBlock>,
        mut call: impl FnMut(&[&Ref<VarBinding>], &[AnyVar]) -> Result<Option<Expr>, BuildError>,
    ) -> Result<Ref<BindingBlock>, BuildError> {
        let order = self.order().ok_or_else(|| BuildError::Program("groups of bindings need each other".into()))?;
        let mut out: Vec<Binding> = Vec::with_capacity(block.bindings.len());
        for item in order {
            let members: Vec<Binding> =
                self.bindings(item).into_iter().filter_map(|i| block.bindings.get(i).cloned()).collect();
            let Item::Group(g) = item else {
                out.extend(members);
                continue;
            };
            let bound: Vec<&Ref<VarBinding>> = members
                .iter()
                .filter_map(|b| match b {
                    Binding::Var(b) => Some(b),
                    Binding::MatchCast(_) => None,
                })
                .collect();
            let outputs = self.outputs(block, &self.bindings(Item::Group(g)));
            match call(&bound, &outputs)? {
                Some(value) => bind_outputs(&mut out, value, &outputs),
                None => out.extend(members),
            }
        }
        Ok(Ref::new(BindingBlock { bindings: out, dataflow: block.dataflow }))
    }
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Binding(usize),
    Group(usize),
}

/// Binds the result of a call to the variables that held it: the fields of a tuple where they are several.
fn bind_outputs(out: &mut Vec<Binding>, value: Expr, outputs: &[AnyVar]) {
    if let [one] = outputs {
        out.push(Ref::new(VarBinding { var: one.clone(), value }).into());
        return;
    }
    let tuple = Ref::new(DataflowVar { name: "lv".into(), ty: value.ty(), span: None });
    out.push(Ref::new(VarBinding { var: tuple.clone().into(), value }).into());
    for (i, var) in outputs.iter().enumerate() {
        let value = Expr::field(Expr::DataflowVar(tuple.clone()), i);
        out.push(Ref::new(VarBinding { var: var.clone(), value }).into());
    }
}

/// Functions that were made, so that equal ones are one function of the module.
#[derive(Default)]
pub(super) struct Made(HashMap<u64, Vec<Named>>);

/// A function, and what it is called by.
type Named = (Ref<Function>, Ref<relaxide_ir::GlobalVar>);

impl Made {
    /// The name of an equal function, or of this one, which is added to the module.
    pub fn add(
        &mut self,
        module: &mut relaxide_ir::IRModule,
        func: Function,
        hint: &str,
    ) -> Ref<relaxide_ir::GlobalVar> {
        let func = Ref::new(func);
        let alike = self.0.entry(relaxide_ffi::structural_key(&func, relaxide_ffi::FreeVars::Mapped)).or_default();
        if let Some((_, var)) =
            alike.iter().find(|(f, _)| relaxide_ffi::structural_equal(f, &func, relaxide_ffi::FreeVars::Mapped).is_ok())
        {
            return var.clone();
        }
        let var = relaxide_ir::GlobalVar::typed(module.fresh_name(hint), func.ty());
        module.insert(var.name.clone(), func.clone());
        alike.push((func, var.clone()));
        var
    }
}
