//! Unrolls loops: their bodies are repeated.
//!
//! A loop marked as unrolled with a constant extent becomes its iterations one behind the other, each with names and
//! scratch of its own. One with a symbolic extent, one whose copies would exceed a limit, or one that a `break` or `continue`
//! of its own leaves, becomes serial: back ends unroll such loops as they see fit.
//!
//! The option `tirx.UnrollLoop` of a pass context also has loops unrolled that nobody marked: those that come to few statements
//! (`auto_max_step`; the attribute `pragma_auto_unroll_max_step` says so of what is below it), that have few iterations
//! (`auto_max_extent`), and whose variable is an index of a thread's own memory (`unroll_local_access`). With `explicit_unroll` off they
//! are marked and not unrolled. Lowering does without: LLVM knows better.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::pass::{PassContext, PassInfo};
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, PrimVisitor, VarMap, free_vars};

use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::early_exit::EarlyExits;
use crate::functor::{StmtMutator, StmtVisitor, fresh_copy, substitute_stmt};
use crate::stmt::*;

/// Most statements that one loop may be unrolled to.
const MAX_STATEMENTS: i64 = 4096;

/// The option of a pass context that the pass reads.
const OPTION: &str = "tirx.UnrollLoop";

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "tirx.transform.UnrollLoop",
    "Unrolls the loops that are marked, and those that options find short.",
    |func, context, _| {
        let mut unroll = Unroll { short: Some(Short::of(context)) };
        Ok(func.with_body(unroll.mutate_stmt(&func.body)))
    }
);

/// A kernel without unrolled loops.
pub(super) fn unroll_loops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(Unroll { short: None }.mutate_stmt(&func.body)))
}

struct Unroll {
    /// Which loops are unrolled that nobody has marked.
    short: Option<Short>,
}

/// Which loops are short, and what was seen below.
struct Short {
    /// Most statements that a loop and those inside of it are unrolled to.
    max_step: i64,
    /// Most loops inside of each other.
    max_depth: i64,
    /// Most iterations of a loop that is unrolled whatever is in it.
    max_extent: i64,
    /// Whether loops are unrolled here; they are marked otherwise.
    explicit: bool,
    /// Whether loops go whose variable is an index of memory of one thread.
    local_access: bool,
    steps: i64,
    depth: i64,
    /// Whether there is a loop inside that stays.
    around_loop: bool,
    indices: HashSet<Ref<Var>>,
}

impl Short {
    fn of(context: &PassContext) -> Short {
        let entry = |name| context.config.entry(OPTION, name);
        Short {
            max_step: entry("auto_max_step"),
            max_depth: entry("auto_max_depth"),
            max_extent: entry("auto_max_extent"),
            explicit: entry("explicit_unroll") != 0,
            local_access: entry("unroll_local_access") != 0,
            steps: 0,
            depth: 0,
            around_loop: false,
            indices: HashSet::new(),
        }
    }

    /// Whether a loop is unrolled, its body having been seen, and whether its body is repeated then.
    fn takes(&mut self, n: &For) -> (bool, bool) {
        let count = n.extent.as_int().filter(|count| (0..=i64::from(i32::MAX)).contains(count));
        let short = count.is_some_and(|count| {
            let steps = count.saturating_mul(self.steps);
            let free = n.kind == ForKind::Serial && !self.around_loop && self.depth <= self.max_depth;
            free && (steps <= self.max_step || count <= self.max_extent)
                || self.local_access && count > 0 && self.indices.contains(&n.var)
        });
        let unrolled = short || n.kind == ForKind::Unrolled;
        match count {
            Some(count) if unrolled => {
                self.steps = self.steps.saturating_mul(count);
                self.depth += 1;
            }
            _ => self.around_loop = true,
        }
        let once = self.max_extent == 1 && count.is_some_and(|count| count <= 1);
        (unrolled, unrolled && self.explicit || once)
    }

    fn note_index(&mut self, scope: &str, indices: &[PrimExpr]) {
        if self.local_access && matches!(scope, "local" | "warp") {
            self.indices.extend(indices.iter().flat_map(free_vars));
        }
    }
}

impl PrimVisitor for Short {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Load(load) = e {
            self.note_index(&load.buffer.scope, &load.indices);
        }
        self.walk_prim(e);
    }
}

impl PrimMutator for Unroll {}

impl StmtMutator for Unroll {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let Some(short) = &mut self.short {
            match stmt {
                Stmt::Store(n) => {
                    short.steps += 1;
                    short.note_index(&n.buffer.scope, &n.indices);
                    short.visit_prim(&n.value);
                    return stmt.clone();
                }
                Stmt::Evaluate(_) => {
                    short.steps += 1;
                    return stmt.clone();
                }
                Stmt::Attr(n) => return self.told(n),
                Stmt::Seq(n) => return Stmt::seq(n.seq.iter().map(|stmt| self.alone(stmt))),
                _ => {}
            }
        }
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        let Some(short) = &mut self.short else {
            if n.kind != ForKind::Unrolled {
                return self.remake_stmt(stmt);
            }
            let body = self.mutate_stmt(&n.body);
            return unrolled(n, body);
        };
        let exits = EarlyExits::of(&n.body).of_loop;
        let explicit = short.explicit;
        let body = self.mutate_stmt(&n.body);
        let Some(short) = &mut self.short else { return Stmt::loop_around(n, body) };
        short.explicit = explicit;
        match short.takes(n) {
            (_, true) if !exits => unrolled(n, body),
            (true, false) if !exits => of_kind(n, ForKind::Unrolled, body),
            _ => Stmt::loop_around(n, body),
        }
    }
}

impl Unroll {
    /// A statement among others: what was seen in them says nothing about it.
    fn alone(&mut self, stmt: &Stmt) -> Stmt {
        let seen = |short: &mut Short| {
            let Short { steps, depth, around_loop, .. } = short;
            (std::mem::take(steps), std::mem::take(depth), std::mem::take(around_loop))
        };
        let before = self.short.as_mut().map(seen).unwrap_or_default();
        let made = self.mutate_stmt(stmt);
        if let Some(short) = &mut self.short {
            short.steps += before.0;
            short.depth = short.depth.max(before.1);
            short.around_loop |= before.2;
        }
        made
    }

    /// The body of an attribute; what it says about loops holds in there, and it goes then.
    fn told(&mut self, n: &Ref<AttrStmt>) -> Stmt {
        let (Some(short), Some(value)) = (&mut self.short, n.value.as_int()) else {
            return self.remake_stmt(&n.clone().into());
        };
        let outer = (short.max_step, short.explicit);
        match n.key.as_str() {
            "pragma_auto_unroll_max_step" => short.max_step = value,
            "pragma_unroll_explicit" => short.explicit = value != 0,
            _ => return self.remake_stmt(&n.clone().into()),
        }
        let body = self.mutate_stmt(&n.body);
        if let Some(short) = &mut self.short {
            (short.max_step, short.explicit) = outer;
        }
        body
    }
}

fn of_kind(n: &Ref<For>, kind: ForKind, body: Stmt) -> Stmt {
    Ref::new(For { kind, body, ..For::clone(n) }).into()
}

/// The iterations of a loop one behind the other, where that is possible and not too long; a serial loop otherwise.
fn unrolled(n: &Ref<For>, body: Stmt) -> Stmt {
    let count = n.extent.as_int().filter(|count| count.saturating_mul(statements(&body)) <= MAX_STATEMENTS);
    let Some(count) = count.filter(|_| !EarlyExits::of(&body).of_loop) else {
        return of_kind(n, ForKind::Serial, body);
    };
    let copy = |i: i64| {
        let at = prim::add(&n.min, prim::int_of(n.var.dtype(), i));
        let copy = if i == 0 { body.clone() } else { fresh_copy(&body) };
        substitute_stmt(&copy, &VarMap::from([(n.var.clone(), at)]))
    };
    Stmt::seq((0..count).map(copy))
}

/// How many statements there are that do something themselves.
fn statements(stmt: &Stmt) -> i64 {
    struct Count(i64);
    impl PrimVisitor for Count {
        fn visit_prim(&mut self, _: &relaxide_ir::PrimExpr) {}
    }
    impl StmtVisitor for Count {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 += i64::from(!matches!(stmt, Stmt::Seq(_) | Stmt::For(_) | Stmt::Decl(_)));
            self.walk_stmt(stmt);
        }
    }
    let mut count = Count(0);
    count.visit_stmt(stmt);
    count.0.max(1)
}
