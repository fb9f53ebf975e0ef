//! Where kernels and their statements stand in a text: what a printer knows and a debugger wants to.

use std::collections::HashMap;

use crate::Stmt;

/// The lines of kernels and statements, counted from 1.
///
/// A statement is known by its node. Where a node is part of a kernel several times, its first line counts.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    kernels: HashMap<String, u32>,
    statements: HashMap<Stmt, u32>,
}

impl Lines {
    /// Notes where a kernel's definition stands.
    pub fn add_kernel(&mut self, name: impl Into<String>, line: u32) {
        self.kernels.insert(name.into(), line);
    }

    /// Notes the line of a statement: of a loop or a choice, of its head.
    pub fn add_statement(&mut self, stmt: Stmt, line: u32) {
        self.statements.entry(stmt).or_insert(line);
    }

    /// Where a kernel's definition stands.
    pub fn of_kernel(&self, name: &str) -> Option<u32> {
        self.kernels.get(name).copied()
    }

    /// Where a statement stands.
    pub fn of_statement(&self, stmt: &Stmt) -> Option<u32> {
        self.statements.get(stmt).copied()
    }
}
