//! Which values may be memory that outlives a call: constants, and, if they are asked for, parameters.
//!
//! A value is such memory if it is one, is bound to one, is a view of one, is a field of a tuple that holds one, or comes out of a
//! branch that may give one. What a call of a function gives is not looked into.

use std::collections::HashMap;
use std::rc::Rc;

use crate::*;

/// Where in a value foreign memory is.
#[derive(Clone, Debug)]
pub enum Holds {
    /// Nowhere, as far as is known.
    None,
    /// It is all of the value, or may be.
    Whole,
    /// In fields of a tuple.
    Fields(Rc<[Holds]>),
}

impl Holds {
    /// That of a field.
    pub fn field(&self, index: i64) -> Holds {
        match self {
            Holds::Fields(fields) => {
                usize::try_from(index).ok().and_then(|i| fields.get(i)).cloned().unwrap_or(Holds::None)
            }
            whole => whole.clone(),
        }
    }

    /// What is known of a value that is one of two.
    fn or(&self, other: &Holds) -> Holds {
        match (self, other) {
            (Holds::None, one) | (one, Holds::None) => one.clone(),
            (Holds::Fields(a), Holds::Fields(b)) => Holds::Fields(a.iter().zip(&**b).map(|(a, b)| a.or(b)).collect()),
            _ => Holds::Whole,
        }
    }
}

/// The variables behind which there is foreign memory.
#[derive(Debug, Default)]
pub struct Aliases(HashMap<AnyVar, Holds>);

impl Aliases {
    /// Says that a variable is foreign memory.
    pub fn mark(&mut self, var: AnyVar) {
        self.0.insert(var, Holds::Whole);
    }

    /// Notes what a variable is bound to.
    pub fn note(&mut self, var: &AnyVar, value: &Expr) {
        let holds = self.holds(value);
        if !matches!(holds, Holds::None) {
            self.0.insert(var.clone(), holds);
        }
    }

    /// Where in a value foreign memory is.
    pub fn holds(&self, value: &Expr) -> Holds {
        match value {
            Expr::Constant(_) => Holds::Whole,
            Expr::Var(_) | Expr::DataflowVar(_) => {
                value.as_var().and_then(|var| self.0.get(&var)).cloned().unwrap_or(Holds::None)
            }
            Expr::Tuple(tuple) => {
                let fields: Rc<[Holds]> = tuple.fields.iter().map(|field| self.holds(field)).collect();
                if fields.iter().all(|f| matches!(f, Holds::None)) { Holds::None } else { Holds::Fields(fields) }
            }
            Expr::TupleGetItem(item) => self.holds(&item.tuple).field(item.index),
            Expr::If(choice) => self.holds(&choice.true_branch.body).or(&self.holds(&choice.false_branch.body)),
            _ => match value.as_op_call() {
                // The machine copies a constant to a device once, and gives the copy every time.
                Some((call, "reshape" | "memory.view" | "memory.ensure_zero_offset" | "to_vdevice")) => {
                    call.args.first().map_or(Holds::None, |viewed| self.holds(viewed))
                }
                _ => Holds::None,
            },
        }
    }
}
