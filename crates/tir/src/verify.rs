//! Whether a kernel is well-formed: what passes and back ends rely on, checked in one place.
//!
//! * Every variable is defined before it is used: as a parameter, as a dimension of a parameter's buffer that stands alone,
//!   by a loop, a binding, a block's axis or a `let`.
//! * Every access is to memory that the kernel was given or has allocated (a view of it counts), with one index for each
//!   dimension, or one flat index.
//! * Operands of an operator have one element type; conditions are bools; what is stored has the buffer's type and
//!   as many lanes as the index; loops count in integers.
//! * A known intrinsic has as many arguments as it takes; a block has a value for each axis.
//!
//! A kernel that passes can be lowered, interpreted and compiled without surprise. What it computes may still be wrong: an
//! index outside of its buffer, for instance, is not seen here.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Object, Ref};
use relaxide_ir::layout::{ScopeIdDef, check_scope_ids};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Buffer, Var};

use crate::PrimFunc;
use crate::early_exit::EarlyExit;
use crate::intrin::Intrinsic;
use crate::stmt::*;

/// Why a kernel is malformed. The fault of whoever made it: a pass, or the text that it was read from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Parameters and buffers are not parallel lists.
    #[error("{params} parameters with {buffers} buffer entries")]
    Signature {
        /// How many parameters there are.
        params: usize,
        /// How many entries for buffers.
        buffers: usize,
    },
    /// A variable is used where it has no value.
    #[error("variable `{var}` is used where it is not defined, in `{place}`")]
    UndefinedVar {
        /// The variable.
        var: String,
        /// The expression.
        place: String,
    },
    /// Scope ids that do not agree on how many units there are. The kernel's fault.
    #[error("{0}")]
    ScopeIds(String),
    /// A buffer is accessed that has no memory.
    #[error("buffer `{0}` is accessed but is no parameter and not allocated before")]
    UndefinedBuffer(String),
    /// An access has a number of indices that its buffer does not allow.
    #[error("buffer `{buffer}` has {ndim} dimensions but is accessed with {indices} indices")]
    WrongRank {
        /// The buffer.
        buffer: String,
        /// Its rank.
        ndim: usize,
        /// How many indices there are.
        indices: usize,
    },
    /// Types do not go together.
    #[error("{what} is of type {found}, expected {expected}, in `{place}`")]
    Type {
        /// What has the type.
        what: &'static str,
        /// The type that it has.
        found: String,
        /// The type that it should have.
        expected: String,
        /// The expression or statement.
        place: String,
    },
    /// An intrinsic has a number of arguments that it does not take.
    #[error("`{name}` with {count} arguments")]
    Arguments {
        /// The intrinsic.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// A `break` or `continue` without a loop that it could be of. The kernel's fault.
    #[error("`{exit}` outside of a loop")]
    NoLoop {
        /// The statement.
        exit: &'static str,
    },
    /// An early exit out of iterations that have no order. The kernel's fault.
    #[error(
        "`{exit}` in the {kind} loop over `{var}`, whose iterations have no order: only serial and `while` loops end early"
    )]
    UnorderedLoop {
        /// The statement.
        exit: &'static str,
        /// How the loop's iterations are executed.
        kind: &'static str,
        /// The loop's counter.
        var: String,
    },
    /// A barrier that not all threads of a block come to, or not all as often. The kernel's fault.
    #[error("{what}, in `{place}`: all threads of a block have to come to a barrier, or none of them goes on")]
    Barrier {
        /// What is wrong.
        what: String,
        /// The statement that it stands in.
        place: String,
    },
    /// A block is given values for fewer or more axes than it has.
    #[error("block `{block}` has {axes} axes but is given {values} values")]
    AxisValues {
        /// The block.
        block: String,
        /// How many axes it has.
        axes: usize,
        /// How many values there are.
        values: usize,
    },
}

type Result<T> = std::result::Result<T, VerifyError>;

/// Checks that a kernel is well-formed.
pub fn verify(func: &PrimFunc) -> Result<()> {
    let (params, buffers) = (func.params.len(), func.buffers.len());
    if params != buffers {
        return Err(VerifyError::Signature { params, buffers });
    }
    let mut scope = VerifyScope {
        vars: func.params.iter().cloned().collect(),
        memory: HashSet::new(),
        checked: HashMap::new(),
        added: Vec::new(),
        target: Target::None,
        unordered: None,
        has_barriers: false,
        scope_ids: Vec::new(),
    };
    for buffer in func.buffers.iter().flatten() {
        let own = [&buffer.elem_offset];
        let bound = buffer.shape.iter().chain(&buffer.strides).chain(own).filter_map(|e| e.as_var());
        bound.for_each(|var| scope.define(var));
        scope.give_memory(&buffer.data);
    }
    for buffer in func.buffers.iter().flatten() {
        scope.buffer(buffer)?;
    }
    scope.stmt(&func.body)?;
    if scope.has_barriers { crate::barriers::check(func) } else { Ok(()) }
}

/// What may be used at a place. It is one for the whole kernel: what a scope adds is taken out at its end, so that the time
/// grows with the kernel and not with what is in scope.
struct VerifyScope {
    vars: HashSet<Ref<Var>>,
    /// Pointers with memory behind them.
    memory: HashSet<Ref<Var>>,
    /// Expressions that several places share and that were found well-formed here, by their address, with their type.
    checked: HashMap<usize, DataType>,
    /// What was added, in order.
    added: Vec<Added>,
    /// What a `break` would leave.
    target: Target,
    /// The innermost loop without an order around.
    unordered: Option<(&'static str, String)>,
    /// Whether threads wait for each other somewhere.
    has_barriers: bool,
    /// The scope ids that were defined.
    scope_ids: Vec<Ref<ScopeIdDef>>,
}

/// What a scope has added.
enum Added {
    Var(Ref<Var>),
    Memory(Ref<Var>),
    Checked(usize),
}

/// What a `break` or `continue` would be of.
#[derive(Clone)]
enum Target {
    /// Nothing.
    None,
    /// A loop whose iterations come one after the other.
    Serial,
    /// A loop without an order.
    Unordered(&'static str, String),
}

/// How a loop without an order is called; `None` for one that has an order.
fn unordered(kind: ForKind) -> Option<&'static str> {
    match kind {
        // An unrolled loop is a serial one whose body is to be repeated where that can be.
        ForKind::Serial | ForKind::Unrolled => None,
        ForKind::Parallel => Some("parallel"),
        ForKind::Vectorized => Some("vectorized"),
        ForKind::ThreadBinding => Some("thread-bound"),
    }
}

/// The address of an expression that more than one place refers to.
fn shared_address(e: &PrimExpr) -> Option<usize> {
    fn address<T: Object>(node: &Ref<T>) -> Option<usize> {
        (Ref::strong_count(node) > 1).then(|| Ref::as_ptr(node) as usize)
    }
    match e {
        PrimExpr::Binary(n) => address(n),
        PrimExpr::Select(n) => address(n),
        PrimExpr::Call(n) => address(n),
        PrimExpr::Load(n) => address(n),
        PrimExpr::Cast(n) => address(n),
        _ => None,
    }
}

/// The type of two operands, which is the same, with as many lanes.
fn alike(a: DataType, b: DataType, place: &PrimExpr) -> Result<DataType> {
    if a == b { Ok(a) } else { Err(mismatch("the second operand", b, a, place)) }
}

fn mismatch(what: &'static str, found: DataType, expected: impl ToString, place: impl ToString) -> VerifyError {
    VerifyError::Type { what, found: found.to_string(), expected: expected.to_string(), place: place.to_string() }
}

/// The first line of a statement, to name it.
pub(crate) fn headline(stmt: &Stmt) -> String {
    stmt.to_string().lines().next().unwrap_or_default().to_string()
}

impl VerifyScope {
    fn define(&mut self, var: &Ref<Var>) {
        if self.vars.insert(var.clone()) {
            self.added.push(Added::Var(var.clone()));
        }
    }

    fn give_memory(&mut self, data: &Ref<Var>) {
        if self.memory.insert(data.clone()) {
            self.added.push(Added::Memory(data.clone()));
        }
        self.define(data);
    }

    /// The dimensions of a buffer, where it is defined.
    fn buffer(&mut self, buffer: &Buffer) -> Result<()> {
        if buffer.dtype.scalable_lanes().is_some() {
            let place = format!("buffer `{}`", buffer.name);
            return Err(mismatch("an element", buffer.dtype, "a type whose size is known", place));
        }
        let parts = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
        parts.into_iter().try_for_each(|e| self.integer(e).map(drop))
    }

    fn allocate(&mut self, buffer: &Ref<Buffer>) -> Result<()> {
        self.buffer(buffer)?;
        self.give_memory(&buffer.data);
        Ok(())
    }

    fn integer(&mut self, e: &PrimExpr) -> Result<DataType> {
        let dtype = self.expr(e)?;
        if dtype.is_integer() { Ok(dtype) } else { Err(mismatch("an index or extent", dtype, "an integer", e)) }
    }

    fn condition(&mut self, e: &PrimExpr) -> Result<DataType> {
        let dtype = self.expr(e)?;
        if dtype.is_bool() { Ok(dtype) } else { Err(mismatch("a condition", dtype, "bool", e)) }
    }

    /// An access, and how many lanes it has.
    fn access(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr], predicate: Option<&PrimExpr>) -> Result<u16> {
        if !self.memory.contains(&buffer.data) {
            return Err(VerifyError::UndefinedBuffer(buffer.name.clone()));
        }
        if indices.len() != buffer.ndim() && indices.len() != 1 {
            let (ndim, indices) = (buffer.ndim(), indices.len());
            return Err(VerifyError::WrongRank { buffer: buffer.name.clone(), ndim, indices });
        }
        let mut lanes = 1;
        for index in indices {
            lanes = self.integer(index)?.lanes;
        }
        predicate.map_or(Ok(lanes), |p| self.condition(p).map(|_| lanes))
    }

    /// Checks an expression, and gives its type. The type is that of [`PrimExpr::dtype`], which would go down again at each
    /// level.
    fn expr(&mut self, e: &PrimExpr) -> Result<DataType> {
        let address = shared_address(e);
        if let Some(dtype) = address.and_then(|address| self.checked.get(&address)) {
            return Ok(*dtype);
        }
        let dtype = self.node(e).map_err(|error| in_place(error, e))?;
        if let Some(address) = address {
            self.checked.insert(address, dtype);
            self.added.push(Added::Checked(address));
        }
        Ok(dtype)
    }

    fn node(&mut self, e: &PrimExpr) -> Result<DataType> {
        match e {
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => Ok(e.dtype()),
            PrimExpr::Var(var) if self.vars.contains(var) => Ok(e.dtype()),
            PrimExpr::Var(var) => Err(VerifyError::UndefinedVar { var: var.name.clone(), place: e.to_string() }),
            PrimExpr::Cast(n) => self.expr(&n.value).map(|_| n.dtype),
            PrimExpr::Binary(n) => {
                let (a, b) = (self.expr(&n.a)?, self.expr(&n.b)?);
                if n.op.is_logical() && !a.is_bool() {
                    return Err(mismatch("a condition", a, "bool", &n.a));
                }
                alike(a, b, e)?;
                Ok(if n.op.is_comparison() { DataType::bool().with_lanes(a.lanes) } else { a })
            }
            PrimExpr::Not(n) => self.condition(&n.a),
            PrimExpr::Select(n) => {
                self.condition(&n.condition)?;
                let (a, b) = (self.expr(&n.true_value)?, self.expr(&n.false_value)?);
                alike(a, b, e)
            }
            PrimExpr::Let(n) => {
                self.expr(&n.value)?;
                self.inside(|scope| {
                    scope.define(&n.var);
                    scope.expr(&n.body)
                })
            }
            PrimExpr::Ramp(n) => {
                let (base, stride) = (self.integer(&n.base)?, self.integer(&n.stride)?);
                Ok(alike(base, stride, e)?.with_lanes(n.lanes as u16))
            }
            PrimExpr::Broadcast(n) => Ok(self.expr(&n.value)?.with_lanes(n.lanes as u16)),
            PrimExpr::Load(n) => {
                let lanes = self.access(&n.buffer, &n.indices, n.predicate.as_ref())?;
                Ok(n.buffer.dtype.with_lanes(n.buffer.dtype.lanes.wrapping_mul(lanes)))
            }
            PrimExpr::Call(n) => {
                let wrong = |i: &Intrinsic| !i.arity().accepts(n.args.len());
                if Intrinsic::of_call(&n.op).as_ref().is_some_and(wrong) {
                    return Err(VerifyError::Arguments { name: n.op.clone(), count: n.args.len() });
                }
                n.args.iter().try_for_each(|a| self.expr(a).map(drop))?;
                Ok(n.dtype)
            }
        }
    }

    /// Whether an early exit has a place to go to.
    fn check_exit(&self, exit: EarlyExit<'_>) -> Result<()> {
        let word = exit.word();
        let no_order = |(kind, var): (&'static str, String)| VerifyError::UnorderedLoop { exit: word, kind, var };
        match (exit, self.target.clone()) {
            (EarlyExit::Return(_), _) => self.unordered.clone().map_or(Ok(()), |around| Err(no_order(around))),
            (_, Target::Serial) => Ok(()),
            (_, Target::None) => Err(VerifyError::NoLoop { exit: word }),
            (_, Target::Unordered(kind, var)) => Err(no_order((kind, var))),
        }
    }

    /// A statement; what it defines stays in scope for the statements behind it.
    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        if let Some(exit) = stmt.early_exit() {
            self.check_exit(exit)?;
        }
        match stmt {
            Stmt::For(n) => {
                self.integer(&n.min)?;
                self.integer(&n.extent)?;
                n.step.iter().try_for_each(|step| self.integer(step).map(drop))?;
                if !n.var.dtype().is_integer() {
                    return Err(mismatch("a loop variable", n.var.dtype(), "an integer", headline(stmt)));
                }
                self.inside(|scope| {
                    scope.define(&n.var);
                    scope.target = Target::Serial;
                    if let Some(kind) = unordered(n.kind) {
                        scope.target = Target::Unordered(kind, n.var.name.clone());
                        scope.unordered = Some((kind, n.var.name.clone()));
                    }
                    scope.stmt(&n.body)
                })
            }
            Stmt::While(n) => {
                self.condition(&n.condition)?;
                self.inside(|scope| {
                    scope.target = Target::Serial;
                    scope.stmt(&n.body)
                })
            }
            Stmt::Seq(n) => n.seq.iter().try_for_each(|s| self.stmt(s)),
            Stmt::If(n) => {
                self.condition(&n.condition)?;
                self.inside(|scope| scope.stmt(&n.then_case))?;
                n.else_case.as_ref().map_or(Ok(()), |other| self.inside(|scope| scope.stmt(other)))
            }
            Stmt::Store(n) => self.store(n, stmt),
            Stmt::Bind(n) => {
                let dtype = self.expr(&n.value)?;
                if dtype != n.var.dtype() {
                    return Err(mismatch("a bound value", dtype, n.var.dtype(), headline(stmt)));
                }
                self.define(&n.var);
                Ok(())
            }
            Stmt::Alloc(n) => self.allocate(&n.buffer),
            Stmt::Evaluate(n) => {
                self.has_barriers |= is_barrier(&n.value);
                self.expr(&n.value).map(drop)
            }
            Stmt::Assert(n) => self.condition(&n.condition).map(drop),
            Stmt::Block(n) => self.block(n),
            Stmt::Attr(n) => {
                self.expr(&n.value)?;
                self.inside(|scope| scope.stmt(&n.body))
            }
            Stmt::Decl(n) => {
                let dtype = self.expr(&n.data)?;
                if !dtype.is_handle() {
                    return Err(mismatch("the address of a buffer", dtype, "handle", headline(stmt)));
                }
                self.allocate(&n.buffer)
            }
            Stmt::Break(_) | Stmt::Continue(_) => Ok(()),
            Stmt::Return(n) => self.expr(&n.value).map(drop),
            Stmt::ScopeIds(n) => {
                n.def.extents.iter().flatten().try_for_each(|extent| self.expr(extent).map(drop))?;
                n.def.def_ids.iter().for_each(|var| self.define(var));
                self.scope_ids.push(n.def.clone());
                check_scope_ids(&self.scope_ids).map_err(|why| VerifyError::ScopeIds(why.to_string()))
            }
            // Its regions and scalars are checked where it is lowered.
            Stmt::Tile(_) => Ok(()),
        }
    }

    /// Checks what has a scope of its own.
    fn inside<T>(&mut self, check: impl FnOnce(&mut VerifyScope) -> Result<T>) -> Result<T> {
        let (begin, target, unordered) = (self.added.len(), self.target.clone(), self.unordered.clone());
        let result = check(self);
        for added in self.added.drain(begin..) {
            match added {
                Added::Var(var) => drop(self.vars.remove(&var)),
                Added::Memory(data) => drop(self.memory.remove(&data)),
                Added::Checked(address) => drop(self.checked.remove(&address)),
            }
        }
        (self.target, self.unordered) = (target, unordered);
        result
    }

    fn store(&mut self, n: &BufferStore, stmt: &Stmt) -> Result<()> {
        let dtype = self.expr(&n.value)?;
        let lanes = self.access(&n.buffer, &n.indices, n.predicate.as_ref())?;
        let expected = n.buffer.dtype.with_lanes(n.buffer.dtype.lanes.wrapping_mul(lanes));
        if dtype != expected {
            return Err(mismatch("a stored value", dtype, expected, headline(stmt)));
        }
        Ok(())
    }

    fn block(&mut self, n: &SBlockRealize) -> Result<()> {
        let block = &n.block;
        let (axes, values) = (block.iter_vars.len(), n.iter_values.len());
        if axes != values {
            return Err(VerifyError::AxisValues { block: block.name.clone(), axes, values });
        }
        n.iter_values.iter().try_for_each(|v| self.integer(v).map(drop))?;
        self.condition(&n.predicate)?;
        self.inside(|scope| {
            for iter in &block.iter_vars {
                scope.integer(&iter.min)?;
                scope.integer(&iter.extent)?;
                scope.define(&iter.var);
            }
            block.alloc_buffers.iter().try_for_each(|b| scope.allocate(b))?;
            for matched in &block.match_buffers {
                let (buffer, source) = (&matched.buffer, &matched.source);
                source
                    .region
                    .iter()
                    .try_for_each(|r| scope.integer(&r.min).and_then(|_| scope.integer(&r.extent)).map(drop))?;
                if !scope.memory.contains(&source.buffer.data) {
                    return Err(VerifyError::UndefinedBuffer(source.buffer.name.clone()));
                }
                let own = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
                own.filter_map(|e| e.as_var()).for_each(|var| scope.define(var));
                scope.allocate(buffer)?;
            }
            block.init.as_ref().map_or(Ok(()), |init| scope.inside(|scope| scope.stmt(init)))?;
            scope.stmt(&block.body)
        })
    }
}

/// Names the whole expression that an undefined variable stands in, once there is one around it.
fn in_place(error: VerifyError, e: &PrimExpr) -> VerifyError {
    match error {
        VerifyError::UndefinedVar { var, place } if place == var => {
            VerifyError::UndefinedVar { var, place: e.to_string() }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim;

    use super::*;
    use crate::testing::{Options, reschedule, sample};

    const F32: DataType = DataType::float(32);

    #[test]
    fn kernels_are_well_formed_in_every_form() {
        for seed in 1000..1100 {
            let sample = sample(seed, Options::default()).unwrap();
            let mut func = reschedule(&sample.func, seed);
            verify(&sample.func).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            verify(&func).unwrap_or_else(|e| panic!("seed {seed}, rescheduled: {e}"));
            for step in crate::lower::PIPELINE {
                func = (step.run)(&func).unwrap();
                verify(&func).unwrap_or_else(|e| panic!("seed {seed}, behind {}: {e}\n{func}", step.pass.name));
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let (a, b) = (Buffer::new("A", F32, [4, 4]), Buffer::new("B", F32, [4]));
        let (i, one) = (Var::dim("i"), prim::float_of(F32, 1.0));
        let truth = |e: PrimExpr| Stmt::when(e, Stmt::store(&b, [0], one.clone()));
        let raw = |op, x: PrimExpr, y: PrimExpr| -> PrimExpr { Ref::new(prim::Binary { op, a: x, b: y }).into() };
        let mixed = raw(relaxide_ir::BinaryOp::Add, one.clone(), prim::int(1));
        let other = Buffer::new("C", F32, [4]);
        let cases = [
            (
                Stmt::store(&b, [PrimExpr::from(&i) + 1], one.clone()),
                "variable `i` is used where it is not defined, in `i + 1`",
            ),
            (
                Stmt::store(&other, [0], one.clone()),
                "buffer `C` is accessed but is no parameter and not allocated before",
            ),
            (Stmt::store(&a, [0, 0, 0], one.clone()), "buffer `A` has 2 dimensions but is accessed with 3 indices"),
            (Stmt::store(&b, [0], prim::int(1)), "a stored value is of type int64, expected float32, in `B[0] = 1`"),
            (truth(PrimExpr::from(3) + &i), "variable `i` is used where it is not defined, in `3 + i`"),
            (truth(prim::load(&b, [0])), "a condition is of type float32, expected bool, in `B[0]`"),
            (Stmt::store(&b, [0], mixed), "the second operand is of type int64, expected float32, in `1.0 + 1`"),
            (Stmt::store(&b, [0], prim::call(F32, "tirx.exp", vec![])), "`tirx.exp` with 0 arguments"),
        ];
        for (body, message) in cases {
            let func = PrimFunc::over_buffers(&[a.clone(), b.clone()], &[], body);
            assert_eq!(verify(&func).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn what_one_branch_allocates_is_not_there_for_the_other() {
        let (b, s) = (Buffer::new("B", F32, [4]), Buffer::new("s", F32, [4]));
        let one = prim::float_of(F32, 1.0);
        let n = Var::dim("n");
        let fill = Stmt::seq([Stmt::alloc(&s), Stmt::store(&s, [0], one)]);
        let body = Stmt::if_else(prim::lt(&n, 4), fill, Stmt::store(&b, [0], prim::load(&s, [0])));
        let func = PrimFunc::over_buffers(&[b], &[n], body);
        assert_eq!(verify(&func), Err(VerifyError::UndefinedBuffer("s".into())));
    }
}
