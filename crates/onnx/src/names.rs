//! [`Names`]: what the names of open graphs stand for.
//!
//! Graphs nest: a branch of `If` and the body of `Loop` see the names around them, the body of a function sees only its own.
//! The body of a loop is a function of its own in the program, so what it reads from outside has to be handed to it: its
//! level has a [`Captures`], which turns values from outside into parameters as they are asked for.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_frontend::Captures;
use relaxide_ir::Var;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::shape::vars_of;

use crate::flow::capture;
use crate::quantized::dequantized::Dequantized;
use crate::quantized::requantized::OfIntegers;
use crate::value::Value;

/// A name of a graph during import.
#[derive(Clone, Debug)]
pub enum Known {
    /// It stands for a value.
    Value(Value),
    /// Its node has a problem, which is noted.
    Failed,
}

/// What a graph sees of those around it.
#[derive(Debug, Default)]
pub enum Visibility {
    /// Their names and values.
    #[default]
    Open,
    /// Nothing: the body of a function.
    Closed,
    /// Their names, as parameters.
    Captured(Captures),
}

#[derive(Debug, Default)]
struct Level {
    names: HashMap<String, Known>,
    /// What values of its own nodes were dequantized from.
    dequantized: HashMap<String, Dequantized>,
    /// Which of them are products and sums of values that were.
    of_integers: HashMap<String, OfIntegers>,
    /// The symbolic variables that values of the level are described with, whatever its names mean by now.
    dims: HashSet<Ref<Var>>,
    /// Names of long expressions of lengths.
    lengths: HashMap<PrimExpr, PrimExpr>,
    visibility: Visibility,
}

/// The names of open graphs.
#[derive(Debug, Default)]
pub struct Names {
    levels: Vec<Level>,
}

impl Names {
    /// Opens a graph.
    pub fn open(&mut self, visibility: Visibility) {
        self.levels.push(Level { visibility, ..Level::default() });
    }

    /// Closes the innermost graph. What it captured is given back.
    pub fn close(&mut self) -> Option<Captures> {
        match self.levels.pop()?.visibility {
            Visibility::Captured(captures) => Some(captures),
            _ => None,
        }
    }

    /// How many graphs are open.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// What the innermost graph captures, if it is the body of a loop.
    pub fn captures(&mut self) -> Option<&mut Captures> {
        match &mut self.levels.last_mut()?.visibility {
            Visibility::Captured(captures) => Some(captures),
            _ => None,
        }
    }

    /// Gives a name of the innermost graph a meaning.
    pub fn set(&mut self, name: &str, known: Known) {
        if let Some(level) = self.levels.last_mut() {
            level.insert(name, known);
        }
    }

    /// Notes what a name of the innermost graph was dequantized from.
    pub fn set_dequantized(&mut self, name: &str, from: Dequantized) {
        if let Some(level) = self.levels.last_mut() {
            level.dequantized.insert(name.to_string(), from);
        }
    }

    /// What a name was dequantized from, where a node of the innermost graph did that.
    pub fn dequantized(&self, name: &str) -> Option<&Dequantized> {
        self.levels.last()?.dequantized.get(name)
    }

    /// Notes that a name of the innermost graph is a product or a sum of values that were dequantized.
    pub fn set_of_integers(&mut self, name: &str, value: OfIntegers) {
        if let Some(level) = self.levels.last_mut() {
            level.of_integers.insert(name.to_string(), value);
        }
    }

    /// The product or sum of dequantized values that a name of the innermost graph is.
    pub fn of_integers(&self, name: &str) -> Option<&OfIntegers> {
        self.levels.last()?.of_integers.get(name)
    }

    /// The symbolic variable that stands for an expression of lengths in the innermost graph.
    pub fn length(&mut self, long: &PrimExpr) -> PrimExpr {
        let fresh = || PrimExpr::Var(Var::dim("d"));
        match self.levels.last_mut() {
            Some(level) => level.lengths.entry(long.clone()).or_insert_with(fresh).clone(),
            None => fresh(),
        }
    }

    /// What a name stands for in the innermost graph.
    pub fn get(&mut self, name: &str) -> Option<Known> {
        let mut at = self.levels.len();
        let found = loop {
            at = at.checked_sub(1)?;
            let level = self.levels.get(at)?;
            if let Some(known) = level.names.get(name) {
                break known.clone();
            }
            if matches!(level.visibility, Visibility::Closed) {
                return None;
            }
        };
        let Known::Value(mut value) = found else { return Some(Known::Failed) };
        for level in self.levels.iter_mut().skip(at + 1) {
            if let Visibility::Captured(captures) = &mut level.visibility {
                value = capture(captures, &value);
                level.insert(name, Known::Value(value.clone()));
            }
        }
        Some(Known::Value(value))
    }

    /// Whether values of the function under construction are described with a symbolic variable.
    pub fn describe(&self, var: &Ref<Var>) -> bool {
        for level in self.levels.iter().rev() {
            if level.dims.contains(var) {
                return true;
            }
            if let Visibility::Captured(captures) = &level.visibility {
                return vars_of(captures.params().map(|p| &p.ty)).contains(var)
                    || captures.bound_dims().any(|d| d == *var);
            }
        }
        false
    }
}

impl Level {
    fn insert(&mut self, name: &str, known: Known) {
        if let Known::Value(value) = &known {
            self.dims.extend(value.dim_vars());
        }
        self.dequantized.remove(name);
        self.of_integers.remove(name);
        self.names.insert(name.to_string(), known);
    }
}
