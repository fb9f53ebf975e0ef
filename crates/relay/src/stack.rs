//! Room for recursion.
//!
//! Passes walk expressions by recursion, and a program may be deep: a network of ten thousand layers is one expression. So
//! they run on a thread whose stack is large enough for [`MAX_DEPTH`] levels, and what is deeper is refused before.

use std::cell::Cell;
use std::collections::HashMap;

use crate::Expr;

/// How many levels an expression may have; bindings that follow each other are no levels.
pub const MAX_DEPTH: usize = 20_000;

/// Room for so many levels of any pass, unoptimized too. The system gives memory for what is used only.
const STACK_BYTES: usize = 1 << 30;

thread_local! {
    static DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` where the stack is large.
pub fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if DEEP.get() {
        return work();
    }
    let run = move || {
        DEEP.set(true);
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // The system refuses a thread only where nothing else would work either.
            Err(error) => panic!("no thread could be started: {error}"),
        }
    })
}

/// How many levels an expression has, counted without recursion.
pub fn depth(expr: &Expr) -> usize {
    let mut depths: HashMap<usize, usize> = HashMap::new();
    let mut work = vec![(expr, false)];
    while let Some((expr, below_done)) = work.pop() {
        if depths.contains_key(&expr.address()) {
            continue;
        }
        let known = |e: &Expr| depths.get(&e.address()).copied().unwrap_or(0);
        if below_done {
            let depth = match expr {
                // The next binding is no level.
                Expr::Let(l) => known(&l.body).max(known(&l.value) + 1),
                _ => expr.children().into_iter().map(known).max().unwrap_or(0) + 1,
            };
            depths.insert(expr.address(), depth);
        } else {
            work.push((expr, true));
            work.extend(expr.children().into_iter().map(|child| (child, false)));
        }
    }
    depths.get(&expr.address()).copied().unwrap_or(0)
}
