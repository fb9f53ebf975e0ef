//! Virtual threads become copies of statements, side by side.
//!
//! ```text
//! for v in T.thread_binding(2, thread="vthread"):     C = T.alloc_buffer((8,))
//!     C = T.alloc_buffer((4,))                        for i in range(4):
//!     for i in range(4):                       ->         C[i] = B[i]
//!         C[i] = B[v * 4 + i]                             C[4 + i] = B[4 + i]
//! ```
//!
//! A virtual thread is a way to interleave: what several of them do at the same step stands together, so that it can be done at
//! once. The body is walked down to the smallest statements that depend on the thread, and these are repeated for each. Loops and
//! conditions that all threads agree on stay single. Scratch that the threads write differently gets a place for each of them.
//!
//! The threads promise that none depends on what another one writes. A statement that is the same for all of them is executed
//! once, unless it would add up.
//!
//! Sixteen threads and more become a loop in the place of copies. Scratch must have one dimension: the pass stands behind the
//! flattening of buffers.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, VarMap};
use relaxide_ir::{BinaryOp, Buffer, Var};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::analysis::regions::shared_memory;
use crate::functor::{StmtMutator, StmtVisitor, fresh_copy, substitute_stmt};
use crate::stmt::*;

/// From so many threads on there is a loop.
const MAX_COPIES: i64 = 16;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.InjectVirtualThread",
    "Virtual threads become copies of statements, side by side.",
    inject_virtual_threads
);

/// A kernel without virtual threads.
pub(super) fn inject_virtual_threads(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut inject = Inject { error: None };
    let body = inject.mutate_stmt(&func.body);
    match inject.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

struct Inject {
    error: Option<LowerError>,
}

impl PrimMutator for Inject {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl Inject {
    fn refuse(&mut self, message: String) -> Stmt {
        self.error.get_or_insert(LowerError::Refused(message));
        Stmt::nop()
    }
}

impl StmtMutator for Inject {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        let virtual_thread = n.thread_tag.starts_with("vthread") || n.thread_tag.starts_with("cthread");
        if n.kind != ForKind::ThreadBinding || !virtual_thread {
            return self.remake_stmt(stmt);
        }
        if n.body.has_early_exit() {
            let var = &n.var.name;
            return self.refuse(format!(
                "a `break`, `continue` or `return` under virtual thread `{var}` would end all of them"
            ));
        }
        // Inner ones first: what is left of them is statements.
        let body = self.mutate_stmt(&n.body);
        let Some(count) = n.extent.as_int() else {
            return self.refuse(format!("the number of virtual threads `{}` is not a constant", n.var.name));
        };
        if count >= MAX_COPIES {
            let (kind, thread_tag) = (ForKind::Serial, String::new());
            return Ref::new(For { kind, thread_tag, body, ..(**n).clone() }).into();
        }
        let own = own_scratch(&body, &n.var);
        if let Some(buffer) = own.iter().find(|b| b.ndim() != 1 || !b.strides.is_empty()) {
            return self.refuse(format!(
                "scratch `{}` of virtual threads has {} dimensions; FlattenBuffer has to run first",
                buffer.name,
                buffer.ndim()
            ));
        }
        let shared = shared_memory(&body);
        if let Some(buffer) = own.iter().find(|b| shared.contains(&b.data)) {
            return self.refuse(format!(
                "scratch `{}` of virtual threads is known by a pointer or as another buffer, so threads cannot get places of their own",
                buffer.name
            ));
        }
        let number = prim::binary(BinaryOp::Sub, &n.var, &n.min);
        let mut places = ScratchOfThreads { number, count, own: HashMap::new() };
        own.into_iter().for_each(|buffer| places.add(buffer));
        let body = places.mutate_stmt(&body);
        Copies { thread: &n.var, min: &n.min, count }.stmt(&body)
    }
}

/// What is allocated inside and is not the same for all threads.
fn own_scratch(body: &Stmt, thread: &Ref<Var>) -> Vec<Ref<Buffer>> {
    let mut differs = Differs { vars: HashSet::from([thread.clone()]), ..Default::default() };
    // What depends on scratch that differs, differs; chains of that are as long as there is scratch.
    loop {
        let known = (differs.vars.len(), differs.buffers.len());
        differs.visit_stmt(body);
        if (differs.vars.len(), differs.buffers.len()) == known {
            break;
        }
    }
    let mut allocated = std::mem::take(&mut differs.allocated);
    allocated.dedup();
    let mut seen = HashSet::new();
    allocated.into_iter().filter(|b| differs.buffers.contains(&b.data) && seen.insert(b.clone())).collect()
}

/// Looks for what depends on a thread.
#[derive(Default)]
struct Differs {
    vars: HashSet<Ref<Var>>,
    /// Memory, by its pointer.
    buffers: HashSet<Ref<Var>>,
    allocated: Vec<Ref<Buffer>>,
    /// How many conditions and loops around depend on the thread.
    around: usize,
}

impl Differs {
    fn depends(&self, e: &PrimExpr) -> bool {
        struct Find<'a>(&'a Differs, bool);
        impl PrimVisitor for Find<'_> {
            fn visit_prim(&mut self, e: &PrimExpr) {
                self.1 |= match e {
                    PrimExpr::Var(var) => self.0.vars.contains(var) || self.0.buffers.contains(var),
                    PrimExpr::Load(n) => self.0.buffers.contains(&n.buffer.data),
                    _ => false,
                };
                self.walk_prim(e);
            }
        }
        let mut find = Find(self, false);
        find.visit_prim(e);
        find.1
    }

    fn under(&mut self, differs: bool, stmt: &Stmt) {
        self.around += usize::from(differs);
        self.visit_stmt(stmt);
        self.around -= usize::from(differs);
    }
}

impl PrimVisitor for Differs {
    fn visit_prim(&mut self, _: &PrimExpr) {}
}

impl StmtVisitor for Differs {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Alloc(n) => self.allocated.push(n.buffer.clone()),
            Stmt::Bind(n) if self.depends(&n.value) => drop(self.vars.insert(n.var.clone())),
            Stmt::Store(n) => {
                let parts = [&n.value].into_iter().chain(&n.indices).chain(&n.predicate);
                if self.around > 0 || parts.into_iter().any(|e| self.depends(e)) {
                    self.buffers.insert(n.buffer.data.clone());
                }
            }
            Stmt::For(n) => {
                let differs = self.depends(&n.min) || self.depends(&n.extent);
                if differs {
                    self.vars.insert(n.var.clone());
                }
                self.under(differs, &n.body);
            }
            Stmt::If(n) => {
                let differs = self.depends(&n.condition);
                self.under(differs, &n.then_case);
                n.else_case.iter().for_each(|s| self.under(differs, s));
            }
            Stmt::While(n) => {
                let differs = self.depends(&n.condition);
                self.under(differs, &n.body);
            }
            // What a call may write through a pointer differs if anything about the call does.
            Stmt::Evaluate(n) if self.around > 0 || self.depends(&n.value) => {
                for pointer in crate::analysis::regions::pointers_of(stmt) {
                    self.buffers.insert(pointer);
                }
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Gives each thread a place in scratch.
struct ScratchOfThreads {
    /// Which of the threads it is, from zero on.
    number: PrimExpr,
    count: i64,
    own: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl ScratchOfThreads {
    fn add(&mut self, buffer: Ref<Buffer>) {
        let shape = buffer.shape.iter().map(|d| d * prim::int_of(d.dtype(), self.count)).collect();
        let data = Var::new(buffer.data.name.clone(), buffer.data.ty.clone());
        let wide = Buffer { shape, data, ..(*buffer).clone() };
        self.own.insert(buffer, Ref::new(wide));
    }

    /// Buffer and indices for the thread.
    fn at(&self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Option<(Ref<Buffer>, Vec<PrimExpr>)> {
        let (wide, index) = (self.own.get(buffer)?, indices.first()?);
        let size = buffer.shape.first()?;
        let dtype = index.dtype().element();
        let place = prim::cast(dtype, &self.number) * prim::cast(dtype, size);
        let index = match index {
            PrimExpr::Ramp(n) => prim::ramp(place + &n.base, n.stride.clone(), n.lanes),
            _ if index.dtype().lanes != 1 => prim::broadcast(place, index.dtype().lane_count()) + index,
            _ => place + index,
        };
        Some((wide.clone(), vec![index]))
    }
}

impl PrimMutator for ScratchOfThreads {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = self.remake_prim(e);
        let PrimExpr::Load(n) = &e else { return e };
        match self.at(&n.buffer, &n.indices) {
            Some((buffer, indices)) => Ref::new(BufferLoad { buffer, indices, predicate: n.predicate.clone() }).into(),
            None => e,
        }
    }
}

impl StmtMutator for ScratchOfThreads {
    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let (value, indices) = (self.mutate_prim(&n.value), self.mutate_prims(&n.indices));
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        let (buffer, indices) = self.at(&n.buffer, &indices).unwrap_or((n.buffer.clone(), indices));
        Ref::new(BufferStore { buffer, value, indices, predicate })
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.own.get(buffer).unwrap_or(buffer).clone()
    }
}

/// Repeats what depends on the thread.
struct Copies<'a> {
    thread: &'a Ref<Var>,
    min: &'a PrimExpr,
    count: i64,
}

impl Copies<'_> {
    fn stmt(&self, stmt: &Stmt) -> Stmt {
        if !uses(stmt, self.thread) && !adds_up(stmt) {
            return stmt.clone();
        }
        let agreed = |e: &PrimExpr| !prim::free_vars(e).contains(self.thread) && !reads_memory(e);
        match stmt {
            Stmt::Seq(n) if !n.seq.iter().any(|s| matches!(s, Stmt::Bind(b) if !agreed(&b.value))) => {
                Stmt::seq(n.seq.iter().map(|s| self.stmt(s)))
            }
            Stmt::For(n) if n.kind == ForKind::Serial && agreed(&n.min) && agreed(&n.extent) => {
                Stmt::loop_around(n, self.stmt(&n.body))
            }
            Stmt::If(n) if agreed(&n.condition) => {
                let then_case = self.stmt(&n.then_case);
                match &n.else_case {
                    Some(other) => Stmt::if_else(n.condition.clone(), then_case, self.stmt(other)),
                    None => Stmt::when(n.condition.clone(), then_case),
                }
            }
            Stmt::Alloc(_) => stmt.clone(),
            Stmt::Attr(n) if agreed(&n.value) => Ref::new(AttrStmt {
                node: n.node.clone(),
                key: n.key.clone(),
                value: n.value.clone(),
                body: self.stmt(&n.body),
            })
            .into(),
            _ => Stmt::seq((0..self.count).map(|number| self.copy(stmt, number))),
        }
    }

    fn copy(&self, stmt: &Stmt, number: i64) -> Stmt {
        let copy = if number == 0 { stmt.clone() } else { fresh_copy(stmt) };
        let at = prim::add(self.min, prim::int_of(self.thread.dtype(), number));
        substitute_stmt(&copy, &VarMap::from([(self.thread.clone(), at)]))
    }
}

fn uses(stmt: &Stmt, var: &Ref<Var>) -> bool {
    crate::functor::undefined_vars(stmt).contains(var)
}

fn reads_memory(e: &PrimExpr) -> bool {
    relaxide_ir::prim::is_data(e)
}

/// Whether executing a statement once more would make a difference: it reads what it writes, or calls something.
fn adds_up(stmt: &Stmt) -> bool {
    #[derive(Default)]
    struct Find {
        read: HashSet<Ref<Var>>,
        written: HashSet<Ref<Var>>,
        calls: bool,
    }
    impl PrimVisitor for Find {
        fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
            self.read.insert(buffer.data.clone());
        }
    }
    impl StmtVisitor for Find {
        fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
            self.written.insert(buffer.data.clone());
        }

        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.calls |= matches!(stmt, Stmt::Evaluate(_));
            self.walk_stmt(stmt);
        }
    }
    let mut find = Find::default();
    find.visit_stmt(stmt);
    find.calls || find.read.intersection(&find.written).next().is_some()
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Tensor};

    use super::*;
    use crate::interp::{self, Arg};

    const F32: DataType = DataType::float(32);

    /// A loop over virtual threads.
    fn threads(min: i64, count: i64, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
        let Stmt::For(n) = Stmt::each("v", count, body) else { panic!("not a loop") };
        let (kind, thread_tag) = (ForKind::ThreadBinding, "vthread.x".to_string());
        Ref::new(For { kind, thread_tag, min: prim::int(min), ..(*n).clone() }).into()
    }

    #[test]
    fn copies_compute_what_threads_do() {
        let (a, b) = (Buffer::new("A", F32, [64]), Buffer::new("B", F32, [64]));
        let s = Buffer::scoped("s", F32, [4], "local");
        let own = |v: &PrimExpr| {
            Stmt::seq([
                Stmt::alloc(&s),
                Stmt::each("i", 4, |i| Stmt::store(&s, [i], prim::load(&b, [v * 4 + i]))),
                Stmt::when(prim::gt(v, 2), Stmt::store(&s, [1], prim::float_of(F32, 7.0))),
                Stmt::each("j", 4, |j| Stmt::store(&a, [v * 4 + j], prim::load(&s, [PrimExpr::from(3) - j]))),
            ])
        };
        let twice = |_: &PrimExpr| Stmt::store(&a, [0], prim::load(&a, [0]) + 1);
        let cases = [
            ("scratch of their own", threads(0, 3, own)),
            ("a first thread that is not zero", threads(2, 3, own)),
            ("a sum over them", threads(0, 3, twice)),
            ("one inside of another", threads(0, 2, |v| threads(0, 2, |w| own(&(v * 2 + w))))),
            ("many", threads(0, 16, |v| Stmt::store(&a, [v], prim::load(&b, [v])))),
        ];
        for (name, body) in cases {
            let func = PrimFunc::over_buffers(&[a.clone(), b.clone()], &[], body);
            let made = inject_virtual_threads(&func).unwrap();
            crate::verify::verify(&made).unwrap_or_else(|e| panic!("{name}: {e}\n{made}"));
            assert!(!made.to_string().contains("vthread"), "{name}: {made}");
            let results = [&func, &made].map(|func| {
                let numbers: Vec<u8> = (0..64).flat_map(|i| (i as f32).to_ne_bytes()).collect();
                let out = Tensor::zeros(&[64], F32).unwrap();
                let args = [out.clone(), Tensor::from_bytes(&numbers, &[64], F32).unwrap()].map(Arg::from);
                interp::run(func, &args).unwrap_or_else(|e| panic!("{name}: {e}\n{func}"));
                out.to_bytes().unwrap()
            });
            assert!(results[0] == results[1], "{name}: {made}");
        }
    }
}
