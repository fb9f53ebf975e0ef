//! Statements that go on elsewhere than at the next one: the end of a loop, of an iteration, of the kernel.
//!
//! TVM has two spellings of each: a node (`tirx.Break`), and a call that is evaluated for its effect
//! (`T.evaluate(T.break_loop())`), which is what its parser makes of `break`. Both are kept as they were written; what they
//! mean is asked here, so that no pass knows of two.
//!
//! ```text
//! for i in range(n):           what leaves           | the loop over j | the loop over i
//!     for j in range(m):       `break`, `continue`   | yes             | no: they are of the innermost loop
//!         if a[i, j] < 0:      `return`              | yes             | yes
//!             break
//! ```
//!
//! A loop that something leaves has an order: its iterations are neither lanes nor shares of threads, and none may be
//! unrolled without the early exit that might have left out the next.

use relaxide_ir::PrimExpr;

use crate::intrin::Intrinsic;
use crate::stmt::*;

/// Where a statement goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyExit<'s> {
    /// Behind the innermost loop.
    Break,
    /// At the next iteration of the innermost loop.
    Continue,
    /// At the end of the kernel, perhaps with a result.
    Return(Option<&'s PrimExpr>),
}

impl EarlyExit<'_> {
    /// As a program says it.
    pub fn word(&self) -> &'static str {
        match self {
            EarlyExit::Break => "break",
            EarlyExit::Continue => "continue",
            EarlyExit::Return(_) => "return",
        }
    }
}

/// The early exits that leave a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyExits {
    /// Some `break` or `continue` is of a loop around the statement.
    pub of_loop: bool,
    /// Some `return` ends the kernel.
    pub of_kernel: bool,
}

impl EarlyExits {
    /// Those of a statement.
    pub fn of(stmt: &Stmt) -> EarlyExits {
        let mut found = EarlyExits::default();
        found.add(stmt);
        found
    }

    /// Whether there is one.
    pub fn any(self) -> bool {
        self.of_loop || self.of_kernel
    }

    fn add(&mut self, stmt: &Stmt) {
        match stmt.early_exit() {
            Some(EarlyExit::Break | EarlyExit::Continue) => self.of_loop = true,
            Some(EarlyExit::Return(_)) => self.of_kernel = true,
            None => {}
        }
        match stmt {
            // Its own loop is what they leave.
            Stmt::For(n) => self.of_kernel |= EarlyExits::of(&n.body).of_kernel,
            Stmt::While(n) => self.of_kernel |= EarlyExits::of(&n.body).of_kernel,
            Stmt::Seq(n) => n.seq.iter().for_each(|s| self.add(s)),
            Stmt::If(n) => [&n.then_case].into_iter().chain(&n.else_case).for_each(|s| self.add(s)),
            Stmt::Attr(n) => self.add(&n.body),
            Stmt::Block(n) => n.block.init.iter().chain([&n.block.body]).for_each(|s| self.add(s)),
            _ => {}
        }
    }
}

impl Stmt {
    /// Where it goes on, if it is an early exit itself.
    pub fn early_exit(&self) -> Option<EarlyExit<'_>> {
        match self {
            Stmt::Break(_) => Some(EarlyExit::Break),
            Stmt::Continue(_) => Some(EarlyExit::Continue),
            Stmt::Return(n) => Some(EarlyExit::Return(Some(&n.value))),
            Stmt::Evaluate(n) => {
                let PrimExpr::Call(call) = &n.value else { return None };
                match Intrinsic::of_call(&call.op)? {
                    Intrinsic::BreakLoop => Some(EarlyExit::Break),
                    Intrinsic::ContinueLoop => Some(EarlyExit::Continue),
                    Intrinsic::Ret => Some(EarlyExit::Return(call.args.first())),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a statement anywhere inside of it is an early exit, whatever loop it leaves.
    pub fn has_early_exit(&self) -> bool {
        if self.early_exit().is_some() {
            return true;
        }
        match self {
            Stmt::For(n) => n.body.has_early_exit(),
            Stmt::While(n) => n.body.has_early_exit(),
            Stmt::Seq(n) => n.seq.iter().any(Stmt::has_early_exit),
            Stmt::If(n) => n.then_case.has_early_exit() || n.else_case.as_ref().is_some_and(Stmt::has_early_exit),
            Stmt::Attr(n) => n.body.has_early_exit(),
            Stmt::Block(n) => n.block.init.iter().chain([&n.block.body]).any(Stmt::has_early_exit),
            _ => false,
        }
    }

    /// Whether what follows it in a sequence is never reached.
    pub fn never_ends(&self) -> bool {
        match self {
            Stmt::Seq(n) => n.seq.iter().any(Stmt::never_ends),
            Stmt::If(n) => n.then_case.never_ends() && n.else_case.as_ref().is_some_and(Stmt::never_ends),
            Stmt::Attr(n) => n.body.never_ends(),
            _ => self.early_exit().is_some(),
        }
    }

    /// The statements of a sequence without those that are never reached.
    pub fn reached(seq: Vec<Stmt>) -> Vec<Stmt> {
        match seq.iter().position(Stmt::never_ends) {
            Some(last) => seq.into_iter().take(last + 1).collect(),
            None => seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::Var;
    use relaxide_ir::prim::{self, lt};

    use super::*;

    #[test]
    fn a_jump_leaves_the_innermost_loop_only() {
        let i = Var::dim("i");
        let sometimes = Stmt::when(lt(&i, 3), Stmt::break_loop());
        assert_eq!(EarlyExits::of(&sometimes), EarlyExits { of_loop: true, of_kernel: false });
        let nest = Stmt::serial(i.clone(), 4, sometimes);
        assert_eq!(EarlyExits::of(&nest), EarlyExits::default());
        assert!(nest.has_early_exit());
        let result = Stmt::serial(i, 4, Stmt::ret(1));
        assert_eq!(EarlyExits::of(&result), EarlyExits { of_loop: false, of_kernel: true });
    }

    #[test]
    fn a_call_and_a_node_are_one_jump() {
        let call = |op: &str, args| Stmt::evaluate(prim::call(relaxide_ir::DataType::void(), op, args));
        assert_eq!(call("tirx.break_loop", vec![]).early_exit(), Some(EarlyExit::Break));
        assert_eq!(call("tirx.continue_loop", vec![]).early_exit(), Stmt::continue_loop().early_exit());
        let two = prim::int(2);
        assert_eq!(call("tirx.ret", vec![two.clone()]).early_exit(), Stmt::ret(two).early_exit());
        assert_eq!(Stmt::nop().early_exit(), None);
    }

    #[test]
    fn what_follows_a_jump_on_every_way_is_not_reached() {
        let i = Var::dim("i");
        let sometimes = Stmt::when(lt(&i, 3), Stmt::break_loop());
        let always = Stmt::if_else(lt(&i, 3), Stmt::break_loop(), Stmt::continue_loop());
        assert!(!sometimes.never_ends() && always.never_ends());
        // A loop ends where one of its own iterations is left.
        assert!(!Stmt::serial(i, 4, Stmt::break_loop()).never_ends());
        assert_eq!(Stmt::reached(vec![sometimes.clone(), always.clone(), Stmt::nop()]), [sometimes, always]);
    }
}
