//! Calls that a function ends with.
//!
//! A function that calls itself last is a loop. Its frame is no longer needed when it calls, so the arguments become its
//! parameters and it begins again: a program in which that is all the recursion there is needs one frame, however many
//! iterations it takes.
//!
//! ```text
//! if i < n:                                       if !(i < n) goto 4
//!     r = loop(i + 1, f(x))             →         %0 = i + 1;  %1 = f(x);  goto 0
//! else:
//!     r = x                                    4: ret %1
//! return r
//! ```
//!
//! What is killed behind such a call is killed before the jump. Functions without such a call are generated as ever, and so
//! are native ones, which have no jumps.

use crate::*;

/// A sequence whose last computation gives its result.
pub struct Ending<'a> {
    /// What comes before.
    pub before: Vec<&'a Binding>,
    /// The computation.
    pub last: &'a Expr,
    /// What is killed behind it.
    pub kills: Vec<&'a Call>,
}

/// The ending of a sequence, if a call of the function `own` may be the last that happens.
pub fn ending<'a>(seq: &'a SeqExpr, own: &str) -> Option<Ending<'a>> {
    let mut before: Vec<&Binding> = seq.blocks.iter().flat_map(|block| &block.bindings).collect();
    let mut result = seq.body.as_var()?;
    let mut kills = Vec::new();
    let last = loop {
        let Binding::Var(binding) = before.pop()? else { return None };
        if let Expr::Call(call) = &binding.value
            && call.op_name() == Some("vm.kill_object")
        {
            kills.push(&**call);
            continue;
        }
        if binding.var != result {
            return None;
        }
        match binding.value.as_var() {
            Some(renamed) => result = renamed,
            None => break &binding.value,
        }
    };
    let again = match last {
        Expr::Call(call) => matches!(&call.op, Expr::Global(gv) if gv.name == own),
        Expr::If(choice) => [&choice.true_branch, &choice.false_branch].iter().any(|b| ending(b, own).is_some()),
        _ => false,
    };
    again.then_some(Ending { before, last, kills })
}
