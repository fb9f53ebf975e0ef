//! Whether a stage of a kernel computes what a pattern says.
//!
//! A pattern is a kernel of one loop nest over one block. Its parameters are buffers, then symbols:
//!
//! ```text
//! @T.prim_func(s_tir=True)
//! def scale(a: T.handle, c: T.handle, n: T.int64, alpha: T.float32):
//!     A = T.match_buffer(a, (n,))
//!     C = T.match_buffer(c, (n,))
//!     for i in range(n):
//!         with T.sblock("scale"):
//!             v = T.axis.spatial(n, i)
//!             C[v] = alpha * A[v]
//! ```
//!
//! Loops, axes, regions and values are compared in order; sums and products may have their operands the other way round. A
//! symbol stands for a literal, the same one everywhere; where it is a summand or a factor it may be missing, and is 0 or 1
//! then: `C[v] = A[v]` is `scale` with `alpha = 1`. Buffers of the pattern stand for buffers of the kernel, one for one.

use std::collections::HashMap;

use relaxide_ffi::{Object, Ref};
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, free_vars};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::{BufferRegion, BufferStore, For, ForKind, PrimFunc, SBlock, SBlockRealize, Stmt};

use crate::transform::root_block::{root_block, statements};

/// A stage of a kernel that is what a pattern says.
#[derive(Object, Debug)]
#[object(key = "relax.MatchResult")]
pub struct MatchResult {
    /// The pattern.
    pub pattern: Ref<PrimFunc>,
    /// What its symbols stand for, in the order of its parameters.
    pub symbol_values: Vec<PrimExpr>,
    /// What its buffers stand for, in the order of its parameters.
    pub matched_buffers: Vec<Ref<Buffer>>,
}

/// Why a kernel is no pattern, or what matches it cannot be handed over.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    #[error("its buffers stand in front of its symbols")]
    Order,
    #[error("a pattern is one loop nest under a root block, and this has {0}")]
    Nests(usize),
    #[error("it is no nest of serial loops from zero around one block that stores an element")]
    NoNest,
    #[error("the dimension `{0}` is none of its parameters, as a symbol is")]
    FreeDimension(String),
    #[error("its body does not say what `{0}` stands for")]
    Silent(String),
    #[error("the library takes `{0}`, which is no parameter that its stages read")]
    NotRead(String),
    #[error("the library is to execute {stages} stages, and {matched} match patterns")]
    Stages { stages: usize, matched: usize },
    #[error("pattern {place}: {source}")]
    OfPattern { place: usize, source: Box<PatternError> },
}

/// A pattern in the form in which it is compared.
pub struct Pattern {
    kernel: Ref<PrimFunc>,
    nest: Nest,
}

/// Serial loops from zero around a block.
struct Nest {
    loops: Vec<Ref<For>>,
    realize: Ref<SBlockRealize>,
}

impl Pattern {
    /// Checks that a kernel is a pattern.
    pub fn new(kernel: Ref<PrimFunc>) -> Result<Pattern, PatternError> {
        let buffers = kernel.buffers.iter().take_while(|b| b.is_some()).count();
        if kernel.buffers.iter().skip(buffers).any(Option::is_some) {
            return Err(PatternError::Order);
        }
        let stages = root_block(&kernel).map(|root| statements(root)).unwrap_or_default();
        let [stage] = stages.as_slice() else {
            return Err(PatternError::Nests(stages.len()));
        };
        let Some(nest) = Nest::of(stage) else {
            return Err(PatternError::NoNest);
        };
        let symbols: Vec<&Ref<Var>> = kernel.params.iter().skip(buffers).collect();
        let dims = kernel.buffers.iter().flatten().flat_map(|b| &b.shape).flat_map(free_vars);
        match dims.into_iter().find(|var| !symbols.contains(&var)) {
            Some(var) => Err(PatternError::FreeDimension(var.name.clone())),
            None => Ok(Pattern { kernel, nest }),
        }
    }

    /// What a stage is in the words of the pattern; `None` where it is something else.
    pub fn matches(&self, stage: &Stmt) -> Result<Option<MatchResult>, PatternError> {
        let Some(given) = Nest::of(stage) else { return Ok(None) };
        let params = || self.kernel.params.iter().zip(&self.kernel.buffers);
        let symbols: Vec<Ref<Var>> = params().filter(|(_, b)| b.is_none()).map(|(p, _)| p.clone()).collect();
        let mut comparison = Comparison { symbols: &symbols, found: MatchedPart::default() };
        if !comparison.nest(&self.nest, &given) {
            return Ok(None);
        }
        let MatchedPart { values, buffers, .. } = comparison.found;
        let silent = |name: &str| PatternError::Silent(name.to_string());
        let symbol_values = symbols.iter().map(|s| values.get(s).cloned().ok_or_else(|| silent(&s.name)));
        let matched = self.kernel.buffers.iter().flatten();
        let matched = matched.map(|b| buffers.get(b).cloned().ok_or_else(|| silent(&b.name)));
        Ok(Some(MatchResult {
            pattern: self.kernel.clone(),
            symbol_values: symbol_values.collect::<Result<_, _>>()?,
            matched_buffers: matched.collect::<Result<_, _>>()?,
        }))
    }
}

impl Nest {
    fn of(stage: &Stmt) -> Option<Nest> {
        let mut loops = Vec::new();
        let mut at = stage;
        while let Stmt::For(n) = at {
            let plain = n.kind == ForKind::Serial && n.annotations.is_empty() && n.min.as_int() == Some(0);
            plain.then(|| loops.push(n.clone()))?;
            at = &n.body;
        }
        let Stmt::Block(realize) = at else { return None };
        let block = &realize.block;
        let axes = realize.iter_values.len() == block.iter_vars.len()
            && realize.iter_values.iter().zip(&loops).all(|(v, n)| matches!(v, PrimExpr::Var(v) if *v == n.var));
        let simple = axes
            && block.iter_vars.len() <= loops.len()
            && realize.predicate.as_int() == Some(1)
            && block.alloc_buffers.is_empty()
            && block.match_buffers.is_empty()
            && store(&block.body).is_some()
            && block.init.as_ref().is_none_or(|init| store(init).is_some());
        (simple && !loops.is_empty()).then(|| Nest { loops, realize: realize.clone() })
    }
}

fn store(stmt: &Stmt) -> Option<&Ref<BufferStore>> {
    match stmt {
        Stmt::Store(store) if store.predicate.is_none() => Some(store),
        _ => None,
    }
}

/// What parts of the pattern stand for, as far as it is known.
#[derive(Clone, Default)]
struct MatchedPart {
    values: HashMap<Ref<Var>, PrimExpr>,
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

/// A comparison under way: the pattern's part comes first, then the kernel's.
struct Comparison<'a> {
    symbols: &'a [Ref<Var>],
    found: MatchedPart,
}

impl Comparison<'_> {
    /// Tries a way; what it found is forgotten where it leads nowhere.
    fn attempt(&mut self, way: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.found.clone();
        let matched = way(self);
        if !matched {
            self.found = before;
        }
        matched
    }

    fn nest(&mut self, pattern: &Nest, given: &Nest) -> bool {
        if pattern.loops.len() != given.loops.len() {
            return false;
        }
        for (p, g) in pattern.loops.iter().zip(&given.loops) {
            if !self.define(&p.var, &g.var) || !self.scalar(&p.extent, &g.extent) {
                return false;
            }
        }
        self.block(&pattern.realize.block, &given.realize.block)
    }

    fn block(&mut self, p: &SBlock, g: &SBlock) -> bool {
        if p.iter_vars.len() != g.iter_vars.len() {
            return false;
        }
        for (p, g) in p.iter_vars.iter().zip(&g.iter_vars) {
            let same = p.kind == g.kind && self.scalar(&p.min, &g.min) && self.scalar(&p.extent, &g.extent);
            if !same || !self.define(&p.var, &g.var) {
                return false;
            }
        }
        let init = match (&p.init, &g.init) {
            (None, None) => true,
            (Some(p), Some(g)) => self.store(p, g),
            _ => false,
        };
        self.regions(&p.writes, &g.writes) && self.regions(&p.reads, &g.reads) && init && self.store(&p.body, &g.body)
    }

    fn store(&mut self, p: &Stmt, g: &Stmt) -> bool {
        let (Some(p), Some(g)) = (store(p), store(g)) else { return false };
        self.buffer(&p.buffer, &g.buffer) && self.scalars(&p.indices, &g.indices) && self.scalar(&p.value, &g.value)
    }

    fn regions(&mut self, p: &[Ref<BufferRegion>], g: &[Ref<BufferRegion>]) -> bool {
        p.len() == g.len()
            && p.iter().zip(g).all(|(p, g)| {
                let ranges = |this: &mut Self| {
                    let mut both = p.region.iter().zip(&g.region);
                    both.all(|(p, g)| this.scalar(&p.min, &g.min) && this.scalar(&p.extent, &g.extent))
                };
                self.buffer(&p.buffer, &g.buffer) && p.region.len() == g.region.len() && ranges(self)
            })
    }

    /// Buffers correspond one for one; they are compact, and a library gets them so.
    fn buffer(&mut self, p: &Ref<Buffer>, g: &Ref<Buffer>) -> bool {
        if let Some(known) = self.found.buffers.get(p) {
            return known == g;
        }
        let compact = |b: &Buffer| b.strides.is_empty() && b.elem_offset.as_int() == Some(0);
        let alike = p.dtype == g.dtype && p.scope == g.scope && compact(p) && compact(g);
        let taken = self.found.buffers.values().any(|known| known == g);
        if !alike || taken || !self.scalars(&p.shape, &g.shape) {
            return false;
        }
        self.found.buffers.insert(p.clone(), g.clone());
        true
    }

    fn define(&mut self, p: &Ref<Var>, g: &Ref<Var>) -> bool {
        p.dtype() == g.dtype() && self.found.vars.insert(p.clone(), g.clone()).is_none()
    }

    fn bind(&mut self, symbol: &Ref<Var>, value: PrimExpr) -> bool {
        match self.found.values.get(symbol) {
            Some(known) => same_literal(known, &value),
            None => {
                self.found.values.insert(symbol.clone(), value);
                true
            }
        }
    }

    fn symbol<'e>(&self, e: &'e PrimExpr) -> Option<&'e Ref<Var>> {
        match e {
            PrimExpr::Var(var) if self.symbols.contains(var) => Some(var),
            _ => None,
        }
    }

    fn scalars(&mut self, p: &[PrimExpr], g: &[PrimExpr]) -> bool {
        p.len() == g.len() && p.iter().zip(g).all(|(p, g)| self.scalar(p, g))
    }

    fn scalar(&mut self, p: &PrimExpr, g: &PrimExpr) -> bool {
        if let Some(symbol) = self.symbol(p) {
            let literal = matches!(g, PrimExpr::Int(_) | PrimExpr::Float(_));
            return literal && symbol.dtype() == g.dtype() && self.bind(symbol, g.clone());
        }
        self.without_symbol(p, g) || self.alike(p, g)
    }

    /// A summand or a factor that is a symbol is missing: it is 0 or 1.
    fn without_symbol(&mut self, p: &PrimExpr, g: &PrimExpr) -> bool {
        let PrimExpr::Binary(both) = p else { return false };
        let neutral = match both.op {
            BinaryOp::Add => 0.0,
            BinaryOp::Mul => 1.0,
            _ => return false,
        };
        [(&both.a, &both.b), (&both.b, &both.a)].into_iter().any(|(symbol, other)| {
            let Some(symbol) = self.symbol(symbol).cloned() else { return false };
            let value = prim::constant(symbol.dtype(), neutral);
            self.attempt(|this| this.scalar(other, g) && this.bind(&symbol, value))
        })
    }

    fn alike(&mut self, p: &PrimExpr, g: &PrimExpr) -> bool {
        match (p, g) {
            (PrimExpr::Var(p), PrimExpr::Var(g)) => self.found.vars.get(p) == Some(g),
            (PrimExpr::Str(p), PrimExpr::Str(g)) => p.value == g.value,
            (PrimExpr::Cast(p), PrimExpr::Cast(g)) => p.dtype == g.dtype && self.scalar(&p.value, &g.value),
            (PrimExpr::Not(p), PrimExpr::Not(g)) => self.scalar(&p.a, &g.a),
            (PrimExpr::Binary(p), PrimExpr::Binary(g)) if p.op == g.op => {
                let swaps = matches!(p.op, BinaryOp::Add | BinaryOp::Mul);
                self.attempt(|this| this.scalar(&p.a, &g.a) && this.scalar(&p.b, &g.b))
                    || (swaps && self.attempt(|this| this.scalar(&p.a, &g.b) && this.scalar(&p.b, &g.a)))
            }
            (PrimExpr::Select(p), PrimExpr::Select(g)) => {
                self.scalar(&p.condition, &g.condition)
                    && self.scalar(&p.true_value, &g.true_value)
                    && self.scalar(&p.false_value, &g.false_value)
            }
            (PrimExpr::Load(p), PrimExpr::Load(g)) => {
                let plain = p.predicate.is_none() && g.predicate.is_none();
                plain && self.buffer(&p.buffer, &g.buffer) && self.scalars(&p.indices, &g.indices)
            }
            (PrimExpr::Call(p), PrimExpr::Call(g)) => {
                p.op == g.op && p.dtype == g.dtype && self.scalars(&p.args, &g.args)
            }
            _ => same_literal(p, g),
        }
    }
}

fn same_literal(p: &PrimExpr, g: &PrimExpr) -> bool {
    match (p, g) {
        (PrimExpr::Int(p), PrimExpr::Int(g)) => p.dtype == g.dtype && p.value == g.value,
        (PrimExpr::Float(p), PrimExpr::Float(g)) => p.dtype == g.dtype && p.value.to_bits() == g.value.to_bits(),
        _ => false,
    }
}
