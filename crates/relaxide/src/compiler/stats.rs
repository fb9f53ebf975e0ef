//! Counts of what a program consists of.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use relaxide_ir::IRModule;
use relaxide_relax::functor::ExprVisitor;
use relaxide_relax::{Expr, Function};
use relaxide_tir::PrimFunc;

/// What a program consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramStats {
    /// Functions of the graph level.
    pub functions: usize,
    /// Kernels that the program holds as it is.
    pub kernels: usize,
    /// Calls of each operator or function, by name.
    pub calls: BTreeMap<String, usize>,
    /// Tensors that are constants.
    pub constants: usize,
    /// Their elements.
    pub constant_elements: u64,
    /// Their bytes.
    pub constant_bytes: u64,
}

impl ProgramStats {
    /// Counts a program.
    pub fn of(module: &IRModule) -> ProgramStats {
        let mut count = Count { stats: ProgramStats::default(), seen: HashSet::new() };
        for (_, function) in module.functions_of::<Function>() {
            count.stats.functions += 1;
            count.visit_seq(&function.body);
        }
        count.stats.kernels = module.functions_of::<PrimFunc>().count();
        count.stats
    }
}

impl fmt::Display for ProgramStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "functions  {}", self.functions)?;
        writeln!(f, "kernels    {}", self.kernels)?;
        let (elements, bytes) = (self.constant_elements, self.constant_bytes);
        writeln!(f, "constants  {} ({elements} elements, {bytes} bytes)", self.constants)?;
        write!(f, "calls      {}", self.calls.values().sum::<usize>())?;
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
        calls.iter().try_for_each(|(name, n)| write!(f, "\n  {n:6}  {name}"))
    }
}

struct Count {
    stats: ProgramStats,
    /// Data of constants that were counted: one tensor may be used in several places.
    seen: HashSet<usize>,
}

impl ExprVisitor for Count {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Call(call) => {
                *self.stats.calls.entry(callee_text(&call.op)).or_default() += 1;
            }
            Expr::Constant(constant) if self.seen.insert(constant.value.data_ptr() as usize) => {
                self.stats.constants += 1;
                self.stats.constant_elements += constant.value.numel() as u64;
                self.stats.constant_bytes += constant.value.byte_size() as u64;
            }
            _ => {}
        }
        self.walk_expr(e);
    }
}

/// What a call calls, in a word.
pub(crate) fn callee_text(callee: &Expr) -> String {
    match callee {
        Expr::Op(op) => op.name.strip_prefix("relax.").unwrap_or(&op.name).to_string(),
        Expr::Global(global) => global.name.clone(),
        Expr::Extern(function) => function.global_symbol.clone(),
        Expr::Var(var) => var.name.clone(),
        Expr::DataflowVar(var) => var.name.clone(),
        _ => "(function)".into(),
    }
}
