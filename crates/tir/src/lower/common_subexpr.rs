//! What is computed twice is computed once.
//!
//! ```text
//! for i in range(4):                            for i in range(4):
//!     A[i * 2 + 1] = B[i * 2 + 1] * 3     ->        cse_v1 = i * 2 + 1
//!                                                   A[cse_v1] = B[cse_v1] * 3
//! ```
//!
//! An expression that occurs more than once gets a name, in front of its first occurrence, in the innermost sequence of
//! statements around all of them. The largest come first; what then still occurs more than once, also in what has a name by
//! then, follows in the next round.
//!
//! Only arithmetic of scalars over variables and literals counts: a load may see a store in between, a call may have an effect, a
//! division by what might be zero may stand behind a guard, and conditions and vectors are cheaper where they are used.
//!
//! Needs that each variable is defined once, and sees to it. A walk takes time linear in the kernel; there are as many rounds as
//! such expressions are nested.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{BinaryOp, Var};

use super::pure::may_trap;
use super::{LowerError, kernel_pass, single_definition};
use crate::PrimFunc;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "tirx.transform.CommonSubexprElim",
    "What is computed twice is computed once, under a name.",
    eliminate_common_subexprs
);

/// A kernel that computes no index twice.
fn eliminate_common_subexprs(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let func = single_definition::define_once(func)?;
    let (mut body, mut names) = (func.body.clone(), 0);
    loop {
        let mut all = Occurrences::default();
        all.scope(&body, &mut Vec::new());
        all.found.retain(|_, found| found.times > 1);
        let mut outer =
            Occurrences { numbers: all.numbers, only: Some(all.found.keys().copied().collect()), ..Default::default() };
        outer.scope(&body, &mut Vec::new());
        // One that also stands in another waits until that has a name.
        outer.found.retain(|id, found| found.times > 1 && all.found.get(id).is_some_and(|a| a.times == found.times));
        if outer.found.is_empty() {
            return Ok(func.with_body(body));
        }
        let mut name = Name { numbers: outer.numbers, vars: HashMap::new(), places: HashMap::new() };
        for (id, found) in outer.found {
            names += 1;
            let var = Var::prim(format!("cse_v{names}"), found.example.dtype());
            name.vars.insert(id, var.clone());
            name.places.entry(found.place).or_default().push((var, found.example));
        }
        body = name.scope(&body, &mut Vec::new());
    }
}

/// What two expressions that compute the same have in common.
#[derive(PartialEq, Eq, Hash)]
enum ExprForm {
    Var(Ref<Var>),
    Int(DataType, i64),
    Float(DataType, u64),
    Cast(DataType, usize),
    Binary(BinaryOp, usize, usize),
    Not(usize),
    Select(usize, usize, usize),
}

/// Numbers for expressions; equal ones have one.
#[derive(Default)]
struct Numbers {
    forms: HashMap<ExprForm, usize>,
    /// By node, so that a shared one is looked at once; `None` for what must stay where it is.
    known: HashMap<PrimExpr, Option<usize>>,
    /// Names inside of expressions, which mean nothing outside.
    local: HashSet<Ref<Var>>,
}

impl Numbers {
    fn of(&mut self, e: &PrimExpr) -> Option<usize> {
        if let Some(known) = self.known.get(e) {
            return *known;
        }
        let number = self.form(e).map(|form| {
            let next = self.forms.len();
            *self.forms.entry(form).or_insert(next)
        });
        self.known.insert(e.clone(), number);
        number
    }

    fn form(&mut self, e: &PrimExpr) -> Option<ExprForm> {
        if e.dtype().lanes != 1 {
            return None;
        }
        Some(match e {
            PrimExpr::Var(var) if !self.local.contains(var) => ExprForm::Var(var.clone()),
            PrimExpr::Int(n) => ExprForm::Int(n.dtype, n.value),
            PrimExpr::Float(n) => ExprForm::Float(n.dtype, n.value.to_bits()),
            PrimExpr::Cast(n) => ExprForm::Cast(n.dtype, self.of(&n.value)?),
            PrimExpr::Binary(n) if !may_trap(n) => ExprForm::Binary(n.op, self.of(&n.a)?, self.of(&n.b)?),
            PrimExpr::Not(n) => ExprForm::Not(self.of(&n.a)?),
            PrimExpr::Select(n) => {
                ExprForm::Select(self.of(&n.condition)?, self.of(&n.true_value)?, self.of(&n.false_value)?)
            }
            _ => return None,
        })
    }

    /// The number of an expression that is worth a name.
    fn of_worthy(&mut self, e: &PrimExpr) -> Option<usize> {
        let worthy = match e {
            PrimExpr::Binary(_) | PrimExpr::Select(_) => !e.dtype().is_bool(),
            PrimExpr::Cast(n) => n.value.as_int().is_none() && !matches!(n.value, PrimExpr::Float(_)),
            _ => false,
        };
        if worthy { self.of(e) } else { None }
    }
}

/// A way to a statement: its number in its scope, then which of its bodies, and so on.
type Path = Vec<usize>;

/// Where an expression occurs.
struct Candidate {
    example: PrimExpr,
    times: usize,
    /// The scope around all occurrences, and the first statement in it that has one.
    place: Path,
}

/// Counts occurrences.
#[derive(Default)]
struct Occurrences {
    numbers: Numbers,
    found: IndexMap<usize, Candidate>,
    /// If given, only these, and not what is inside of them.
    only: Option<HashSet<usize>>,
    here: Path,
}

impl Occurrences {
    fn scope(&mut self, body: &Stmt, path: &mut Path) {
        for (at, stmt) in statements(body).iter().enumerate() {
            path.push(at);
            self.here.clone_from(path);
            for_each_expr(stmt, |e| self.visit_prim(e));
            for (which, body) in bodies(stmt).into_iter().enumerate() {
                path.push(which);
                self.scope(body, path);
                path.pop();
            }
            path.pop();
        }
    }

    fn meet(&mut self, id: usize, e: &PrimExpr) {
        let here = &self.here;
        let found =
            self.found.entry(id).or_insert_with(|| Candidate { example: e.clone(), times: 0, place: here.clone() });
        found.times += 1;
        let common = found.place.iter().zip(here).take_while(|(a, b)| a == b).count();
        // A scope has an even way; what comes behind it is the first statement's number.
        let scope = if common == found.place.len() { common - 1 } else { common - common % 2 };
        found.place.truncate(scope + 1);
    }
}

impl PrimVisitor for Occurrences {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Let(n) = e {
            self.numbers.local.insert(n.var.clone());
        }
        if let Some(id) = self.numbers.of_worthy(e)
            && self.only.as_ref().is_none_or(|only| only.contains(&id))
        {
            self.meet(id, e);
            if self.only.is_some() {
                return;
            }
        }
        self.walk_prim(e);
    }
}

/// Puts names in the place of expressions, and defines them.
struct Name {
    numbers: Numbers,
    vars: HashMap<usize, Ref<Var>>,
    places: HashMap<Path, Vec<(Ref<Var>, PrimExpr)>>,
}

impl Name {
    fn scope(&mut self, body: &Stmt, path: &mut Path) -> Stmt {
        let mut seq = Vec::new();
        for (at, stmt) in statements(body).iter().enumerate() {
            path.push(at);
            seq.extend(self.places.remove(path).into_iter().flatten().map(|(var, value)| Stmt::bind(var, value)));
            seq.push(self.stmt(stmt, path));
            path.pop();
        }
        Stmt::seq(seq)
    }

    fn stmt(&mut self, stmt: &Stmt, path: &mut Path) -> Stmt {
        let mut inner = |this: &mut Self, which: usize, body: &Stmt| {
            path.push(which);
            let body = this.scope(body, path);
            path.pop();
            body
        };
        match stmt {
            Stmt::For(n) => {
                let (min, extent) = (self.mutate_prim(&n.min), self.mutate_prim(&n.extent));
                let body = inner(self, 0, &n.body);
                Ref::new(For { min, extent, body, ..(**n).clone() }).into()
            }
            Stmt::While(n) => {
                let (condition, body) = (self.mutate_prim(&n.condition), inner(self, 0, &n.body));
                Ref::new(While { condition, body }).into()
            }
            Stmt::If(n) => {
                let condition = self.mutate_prim(&n.condition);
                let then_case = inner(self, 0, &n.then_case);
                let else_case = n.else_case.as_ref().map(|s| inner(self, 1, s));
                Ref::new(IfThenElse { condition, then_case, else_case }).into()
            }
            Stmt::Attr(n) => {
                let body = inner(self, 0, &n.body);
                Ref::new(AttrStmt { node: n.node.clone(), key: n.key.clone(), value: n.value.clone(), body }).into()
            }
            Stmt::Block(n) => {
                let (iter_values, predicate) = (self.mutate_prims(&n.iter_values), self.mutate_prim(&n.predicate));
                let body = inner(self, 0, &n.block.body);
                let block = Ref::new(SBlock { body, ..(*n.block).clone() });
                Ref::new(SBlockRealize { iter_values, predicate, block }).into()
            }
            Stmt::Store(n) => {
                let (value, indices) = (self.mutate_prim(&n.value), self.mutate_prims(&n.indices));
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
            }
            Stmt::Bind(n) => Stmt::bind(n.var.clone(), self.mutate_prim(&n.value)),
            Stmt::Evaluate(n) => Stmt::evaluate(self.mutate_prim(&n.value)),
            Stmt::Assert(n) => {
                let condition = self.mutate_prim(&n.condition);
                let (error_kind, message) = (n.error_kind.clone(), n.message.clone());
                Ref::new(AssertStmt { condition, error_kind, message, numbers: n.numbers.clone() }).into()
            }
            _ => stmt.clone(),
        }
    }
}

impl PrimMutator for Name {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let name = self.numbers.of_worthy(e).and_then(|id| self.vars.get(&id));
        match name {
            Some(var) => PrimExpr::from(var),
            None => self.remake_prim(e),
        }
    }
}

/// The statements of a scope.
fn statements(body: &Stmt) -> &[Stmt] {
    match body {
        Stmt::Seq(n) => &n.seq,
        _ => std::slice::from_ref(body),
    }
}

/// The scopes inside of a statement.
fn bodies(stmt: &Stmt) -> Vec<&Stmt> {
    match stmt {
        Stmt::For(n) => vec![&n.body],
        Stmt::While(n) => vec![&n.body],
        Stmt::Attr(n) => vec![&n.body],
        Stmt::If(n) => [&n.then_case].into_iter().chain(&n.else_case).collect(),
        // Between a block's axes and both its initial value and its body nothing can be named.
        Stmt::Block(n) => vec![&n.block.body],
        _ => Vec::new(),
    }
}

/// The expressions that a statement evaluates itself. Extents of memory stay as they are written.
fn for_each_expr(stmt: &Stmt, mut see: impl FnMut(&PrimExpr)) {
    match stmt {
        Stmt::For(n) => [&n.min, &n.extent].into_iter().for_each(see),
        Stmt::While(n) => see(&n.condition),
        Stmt::If(n) => see(&n.condition),
        Stmt::Block(n) => n.iter_values.iter().chain([&n.predicate]).for_each(see),
        Stmt::Store(n) => [&n.value].into_iter().chain(&n.indices).chain(&n.predicate).for_each(see),
        Stmt::Bind(n) => see(&n.value),
        Stmt::Evaluate(n) => see(&n.value),
        Stmt::Assert(n) => see(&n.condition),
        _ => {}
    }
}
