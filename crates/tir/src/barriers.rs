//! Whether all threads of a block come to each barrier, and equally often.
//!
//! A thread that waits for one that never comes waits for ever. So what decides whether a barrier is come to is the same for all threads of
//! a block: conditions, and how often loops iterate. A value may *vary* if a number of a thread (`threadIdx`) is in it or if it comes from
//! memory, unless the kernel says that it does not (`tvm_thread_invariant`).
//!
//! ```text
//! if t < 4: sync                              refused: `t` varies
//! for k in range(t): sync                     refused
//! if n < 4: sync                              n is a number of the kernel: one for all
//! for k in range(n): s[t] = …; sync; …
//! ```
//!
//! What the threads of a warp do together ([`warp`](crate::warp)) is come to in the same way.
//!
//! Nor may a thread end before others wait: checks of indices that are data end threads on devices, and so loops over threads have such
//! checks or barriers.

use std::collections::HashSet;

use relaxide_ir::prim::{PrimExpr, PrimVisitor};
use relaxide_ir::{Ref, Var};

use crate::PrimFunc;
use crate::early_exit::EarlyExits;
use crate::functor::StmtVisitor;
use crate::stmt::*;
use crate::verify::{VerifyError, headline};
use crate::warp::warp_call;

/// Checks the barriers of a kernel.
pub(crate) fn check(func: &PrimFunc) -> Result<(), VerifyError> {
    Check::default().stmt(&func.body)
}

/// Whether it is a barrier, or something that the threads of a warp do together.
fn is_for_all(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Evaluate(n) if is_barrier(&n.value)) || warp_call(stmt).is_some()
}

/// Whether a barrier, or what is come to as one, stands in a statement.
pub(crate) fn has_barrier(stmt: &Stmt) -> bool {
    struct Has(bool);
    impl PrimVisitor for Has {
        fn visit_prim(&mut self, _: &PrimExpr) {}
    }
    impl StmtVisitor for Has {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= is_for_all(stmt);
            if !self.0 {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut has = Has(false);
    has.visit_stmt(stmt);
    has.0
}

/// Which values threads may differ in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Varying(HashSet<Ref<Var>>);

impl Varying {
    pub fn add(&mut self, var: &Ref<Var>) {
        self.0.insert(var.clone());
    }

    /// Whether threads may have different values of an expression.
    pub fn varies(&self, e: &PrimExpr) -> bool {
        struct Varies<'a>(&'a HashSet<Ref<Var>>, bool, HashSet<PrimExpr>);
        impl PrimVisitor for Varies<'_> {
            fn visit_prim(&mut self, e: &PrimExpr) {
                match e {
                    PrimExpr::Var(var) => self.1 |= self.0.contains(var),
                    PrimExpr::Load(_) => self.1 = true,
                    PrimExpr::Call(n) if n.op == "tirx.tvm_thread_invariant" => {}
                    PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => {}
                    _ if !self.1 && self.2.insert(e.clone()) => self.walk_prim(e),
                    _ => {}
                }
            }
        }
        let mut varies = Varies(&self.0, false, HashSet::new());
        varies.visit_prim(e);
        varies.1
    }
}

#[derive(Default)]
struct Check {
    varying: Varying,
    /// The outermost statement around that not all threads execute alike.
    divergent: Option<String>,
    /// The axes of the threads around, the outermost first.
    threads: Vec<String>,
}

impl Check {
    fn stmt(&mut self, stmt: &Stmt) -> Result<(), VerifyError> {
        match stmt {
            _ if is_for_all(stmt) => self.barrier(stmt),
            Stmt::Bind(n) => {
                if self.varying.varies(&n.value) {
                    self.varying.add(&n.var);
                }
                Ok(())
            }
            Stmt::Seq(n) => n.seq.iter().try_for_each(|stmt| self.stmt(stmt)),
            Stmt::Attr(n) => self.stmt(&n.body),
            _ if !has_barrier(stmt) => Ok(()),
            Stmt::For(n) => self.for_loop(n, stmt),
            Stmt::If(n) => self.under(self.varying.varies(&n.condition), stmt, |this| {
                this.stmt(&n.then_case)?;
                n.else_case.as_ref().map_or(Ok(()), |other| this.stmt(other))
            }),
            Stmt::While(n) => {
                let leaves = EarlyExits::of(&n.body).of_loop;
                self.under(leaves || self.varying.varies(&n.condition), stmt, |this| this.stmt(&n.body))
            }
            Stmt::Block(n) => {
                for (iter, value) in n.block.iter_vars.iter().zip(&n.iter_values) {
                    if self.varying.varies(value) {
                        self.varying.add(&iter.var);
                    }
                }
                self.under(self.varying.varies(&n.predicate), stmt, |this| {
                    n.block.init.as_ref().map_or(Ok(()), |init| this.stmt(init))?;
                    this.stmt(&n.block.body)
                })
            }
            _ => Ok(()),
        }
    }

    fn for_loop(&mut self, n: &For, stmt: &Stmt) -> Result<(), VerifyError> {
        if n.kind == ForKind::ThreadBinding && !n.thread_tag.starts_with("blockIdx.") {
            if let Some(what) = ends_threads(&n.body) {
                let what = format!("{what} may end a thread in front of a barrier");
                return Err(VerifyError::Barrier { what, place: headline(stmt) });
            }
            self.varying.add(&n.var);
            self.threads.push(n.thread_tag.clone());
            self.stmt(&n.body)?;
            self.threads.pop();
            return Ok(());
        }
        if self.varying.varies(&n.min) {
            self.varying.add(&n.var);
        }
        let differs = self.varying.varies(&n.min) || self.varying.varies(&n.extent) || EarlyExits::of(&n.body).of_loop;
        self.under(differs, stmt, |this| this.stmt(&n.body))
    }

    fn under(
        &mut self,
        differs: bool,
        stmt: &Stmt,
        inside: impl FnOnce(&mut Check) -> Result<(), VerifyError>,
    ) -> Result<(), VerifyError> {
        let outer = self.divergent.clone();
        if differs {
            self.divergent.get_or_insert_with(|| headline(stmt));
        }
        let done = inside(self);
        self.divergent = outer;
        done
    }

    fn barrier(&self, stmt: &Stmt) -> Result<(), VerifyError> {
        match &self.divergent {
            Some(place) => Err(VerifyError::Barrier {
                what: "a barrier stands where threads of a block may go different ways".into(),
                place: place.clone(),
            }),
            None if self.threads.is_empty() => Err(VerifyError::Barrier {
                what: "a barrier stands outside of any thread".into(),
                place: headline(stmt),
            }),
            // Neighbours in a warp are neighbours along the innermost axis.
            None if warp_call(stmt).is_some() && self.threads.windows(2).any(|pair| pair[0] <= pair[1]) => {
                Err(VerifyError::Barrier {
                    what: format!(
                        "threads of a warp are counted along `threadIdx.x`, inside of y and z, not {:?}",
                        self.threads
                    ),
                    place: headline(stmt),
                })
            }
            None => Ok(()),
        }
    }
}

/// What may end a thread early, if something may.
fn ends_threads(stmt: &Stmt) -> Option<&'static str> {
    #[derive(Default)]
    struct Ends(Option<&'static str>, HashSet<PrimExpr>);
    impl PrimVisitor for Ends {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Var(_) | PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => {}
                PrimExpr::Call(n) if n.op == "tirx.checked_index" => self.0 = Some("a check of an index"),
                _ if self.0.is_none() && self.1.insert(e.clone()) => self.walk_prim(e),
                _ => {}
            }
        }
    }
    impl StmtVisitor for Ends {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match stmt {
                Stmt::Assert(_) => self.0 = Some("an assertion"),
                _ => self.walk_stmt(stmt),
            }
        }
    }
    let mut ends = Ends::default();
    ends.visit_stmt(stmt);
    ends.0
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim::{self, int, lt};
    use relaxide_ir::{Buffer, DataType};

    use super::*;
    use crate::lower::{DeviceLimits, split_device};
    use crate::schedule::launch;
    use crate::verify::verify;

    const F32: DataType = DataType::float(32);

    fn kernel(threads: i64, body: impl FnOnce(&PrimExpr, &Ref<Buffer>, &PrimExpr) -> Stmt) -> PrimFunc {
        let (a, n) = (Buffer::new("A", F32, [1024]), Var::dim("n"));
        let [block, thread] = ["block", "thread"].map(Var::dim);
        let inside = body(&PrimExpr::from(&thread), &a, &PrimExpr::from(&n));
        PrimFunc::over_buffers(std::slice::from_ref(&a), &[n], launch(&block, int(1), &thread, threads, inside))
    }

    #[test]
    fn barriers_that_some_threads_miss_are_refused() {
        let accepted = [
            kernel(4, |_, _, n| Stmt::when(lt(n.clone(), 4), Stmt::barrier())),
            kernel(4, |_, _, n| Stmt::each("k", n.clone(), |_| Stmt::barrier())),
        ];
        accepted.iter().for_each(|func| verify(func).unwrap());
        let read = |a: &Ref<Buffer>| prim::cast(DataType::int(64), prim::load(a, [0]));
        let refused = [
            (kernel(4, |t, _, _| Stmt::when(lt(t.clone(), 2), Stmt::barrier())), "go different ways"),
            (kernel(4, |t, _, _| Stmt::each("k", t.clone(), |_| Stmt::barrier())), "go different ways"),
            (kernel(4, |_, a, _| Stmt::when(lt(read(a), 2), Stmt::barrier())), "go different ways"),
            (
                kernel(4, |t, _, n| {
                    let own = Var::dim("own");
                    let bind = Stmt::bind(own.clone(), t.clone() + n.clone());
                    Stmt::seq([bind, Stmt::when(lt(&own, 2), Stmt::barrier())])
                }),
                "go different ways",
            ),
            (
                kernel(4, |t, a, _| {
                    let what = vec![read(a), int(4), prim::string("A"), int(0)];
                    let at = prim::call(DataType::int(64), "tirx.checked_index", what);
                    let store = Stmt::store(a, [at], prim::cast(F32, t.clone()));
                    Stmt::seq([store, Stmt::barrier()])
                }),
                "a check of an index may end a thread",
            ),
            (PrimFunc::over_buffers(&[], &[], Stmt::barrier()), "outside of any thread"),
        ];
        for (func, why) in refused {
            let error = verify(&func).unwrap_err().to_string();
            assert!(error.contains(why), "{error} for {why}\n{func}");
        }
    }

    #[test]
    fn what_a_device_has_not_enough_of_is_named() {
        let limits = DeviceLimits { threads: 256, shared_bytes: 4096 };
        let made = |threads: i64, floats: i64, scope: &str| {
            let memory = Buffer::scoped("s", F32, [floats], scope);
            let func = kernel(threads, |t, _, _| {
                Stmt::seq([Stmt::alloc(&memory), Stmt::store(&memory, [int(0)], prim::cast(F32, t.clone()))])
            });
            split_device(&func, 2).and_then(|split| split.launches.iter().try_for_each(|launch| limits.check(launch)))
        };
        made(256, 1024, "shared").unwrap();
        made(256, 1024, "shared.dyn").unwrap();
        for (result, words) in [
            (made(512, 1, "shared"), "blocks of 512 threads; the target's limit `max_threads_per_block` is 256"),
            (made(256, 1025, "shared"), "4100 bytes that the threads of a block share"),
            (made(256, 1025, "shared.dyn"), "4100 bytes that the threads of a block share"),
            (made(256, 1, "warp"), "the scope `warp`"),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(words), "{error} for {words}");
        }
    }
}
