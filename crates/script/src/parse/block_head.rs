//! What the head of a block may speak of.
//!
//! A block's axes, predicate, regions, allocations, sub-buffers and initial values come in front of its body, in the program
//! as in the print, wherever the text has them. So what the body makes (`x = T.bind(...)`, a buffer, a loop's counter) has
//! no meaning there, even on lines behind it: while the head is read, no name stands for it.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::PrimVisitor;
use relaxide_ir::{Buffer, PrimExpr, Var};
use relaxide_tir::Stmt;

use super::value::Value;
use super::{Parsed, Parser};

/// The parts of a head. Each knows what those before it make.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    /// Axes, predicate, regions and annotations.
    Axes,
    /// Allocations, sub-buffers and initial values.
    Buffers,
}

impl Parser<'_> {
    /// Reads a part of the innermost block's head.
    pub(super) fn in_head<T>(&mut self, part: Part, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let innermost = self.kernel.blocks.len().saturating_sub(1);
        self.in_head_of(innermost, part, f)
    }

    /// Reads what stands in front of the whole body: the buffer of a parameter.
    pub(super) fn in_signature<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.in_head_of(0, Part::Axes, f)
    }

    fn in_head_of<T>(&mut self, block: usize, part: Part, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let made = self.made_behind(block, part);
        let mut hidden: Vec<HashMap<String, Value>> = Vec::new();
        if !made.is_empty() {
            for scope in &mut self.scopes {
                let names = std::mem::take(scope);
                let (behind, before) = names.into_iter().partition(|(_, value)| made.is_mentioned_in(value));
                *scope = before;
                hidden.push(behind);
            }
        }
        let names = hidden.iter().flat_map(|scope| scope.keys().cloned()).collect();
        let outer = std::mem::replace(&mut self.behind, names);
        let result = f(self);
        self.behind = outer;
        for (scope, names) in self.scopes.iter_mut().zip(hidden) {
            // A name that the head has just defined stands for that from here on.
            names.into_iter().for_each(|(name, value)| _ = scope.entry(name).or_insert(value));
        }
        result
    }

    /// What a block and those inside it have made so far that a part of its head cannot speak of.
    fn made_behind(&self, block: usize, part: Part) -> BoundNames {
        let mut made = BoundNames::default();
        let Some(frame) = self.kernel.blocks.get(block) else { return made };
        for stmt in self.kernel.stmts.iter().skip(frame.first_body).flatten() {
            match stmt {
                Stmt::Bind(n) => _ = made.vars.insert(n.var.clone()),
                Stmt::Alloc(n) => made.buffer(&n.buffer),
                _ => {}
            }
        }
        made.vars.extend(self.kernel.loops.iter().skip(frame.first_loop).map(|(var, _)| var.clone()));
        for (index, inner) in self.kernel.blocks.iter().enumerate().skip(block) {
            if index > block {
                made.vars.extend(inner.axes().cloned());
            }
            if index > block || part == Part::Axes {
                inner.buffers().for_each(|buffer| made.buffer(buffer));
                made.vars.extend(inner.strides.iter().cloned());
            }
        }
        made
    }
}

/// Variables and buffers.
#[derive(Default)]
struct BoundNames {
    vars: HashSet<Ref<Var>>,
    buffers: HashSet<Ref<Buffer>>,
}

impl BoundNames {
    fn is_empty(&self) -> bool {
        self.vars.is_empty() && self.buffers.is_empty()
    }

    /// A buffer, with the variables that come with it.
    fn buffer(&mut self, buffer: &Ref<Buffer>) {
        self.vars.insert(buffer.data.clone());
        self.buffers.insert(buffer.clone());
    }

    /// Whether a value speaks of any of them.
    fn is_mentioned_in(&self, value: &Value) -> bool {
        match value {
            Value::List(items) | Value::Tuple(items) => items.iter().any(|item| self.is_mentioned_in(item)),
            Value::Map(items) => items.iter().any(|(_, item)| self.is_mentioned_in(item)),
            Value::Prim(e) => self.is_in_prim(e),
            Value::Buffer(buffer) => self.is_in_buffer(buffer),
            Value::Region(buffer, ranges) => {
                let in_range = ranges.iter().any(|r| self.is_in_prim(&r.min) || self.is_in_prim(&r.extent));
                in_range || self.is_in_buffer(buffer)
            }
            _ => false,
        }
    }

    fn is_in_buffer(&self, buffer: &Ref<Buffer>) -> bool {
        let sizes = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
        self.buffers.contains(buffer)
            || self.vars.contains(&buffer.data)
            || sizes.into_iter().any(|size| self.is_in_prim(size))
    }

    fn is_in_prim(&self, e: &PrimExpr) -> bool {
        struct Find<'a>(&'a BoundNames, bool);
        impl PrimVisitor for Find<'_> {
            fn visit_prim(&mut self, e: &PrimExpr) {
                self.1 |= match e {
                    PrimExpr::Var(var) => self.0.vars.contains(var),
                    PrimExpr::Load(load) => self.0.is_in_buffer(&load.buffer),
                    _ => false,
                };
                self.walk_prim(e);
            }
        }
        let mut find = Find(self, false);
        find.visit_prim(e);
        find.1
    }
}
