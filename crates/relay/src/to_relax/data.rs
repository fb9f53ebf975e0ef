//! Values of data types, and the choices that `match` makes among them.
//!
//! A value is a tuple: the number of its constructor, then the fields. A data type with one constructor needs no number. What
//! the fields are is known by the constructor only, and a list has lists in it, so the tuple's type is that of any value; a
//! field that is taken out is checked to be what Relay's types say.
//!
//! ```text
//! match (%xs) {                    tag = tuple_getitem(xs, 0)
//!   Cons(%x, %rest) => a,    →     if tag: x = match_cast(tuple_getitem(xs, 1), R.Tensor((3,))); a
//!   Nil => b,                      else:   b
//! }
//! ```
//!
//! Cases are tried in order, as in the Relay VM: the tests of a nested form give one condition, so that no case stands in the
//! program twice. The last case of a complete `match` over forms without forms inside is not tested.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Attrs, Type as RxType, Var as RxVar, prim};
use relaxide_relax as rx;

use super::Writer;
use crate::compile::CompileError;
use crate::*;

/// A condition, and whether the case fits where it holds or where it does not.
struct Test {
    condition: rx::Expr,
    holds: bool,
}

/// The number of a constructor in its data type; none where it is the only one.
fn number(constructor: &Constructor) -> Option<i64> {
    (constructor.siblings != 1).then_some(constructor.tag & 0xff_ffff)
}

/// A value of a data type.
fn made(constructor: &Constructor, fields: Vec<rx::Expr>) -> rx::Expr {
    let tag = number(constructor).map(|n| rx::Expr::prim(prim::int(n)));
    rx::Expr::tuple(tag.into_iter().chain(fields).collect::<Vec<_>>())
}

/// Whether every value has the form.
fn fits_always(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Wildcard(_) | Pattern::Var(_) => true,
        Pattern::Tuple(p) => p.patterns.iter().all(fits_always),
        Pattern::Constructor(p) => p.constructor.siblings == 1 && p.patterns.iter().all(fits_always),
    }
}

/// Whether the cases are the constructors of a type, each once.
fn names_each_constructor(clauses: &[Ref<Clause>]) -> bool {
    let mut tags = Vec::new();
    for clause in clauses {
        let Pattern::Constructor(p) = &clause.pattern else { return false };
        if tags.contains(&p.constructor.tag) || !p.patterns.iter().all(fits_always) {
            return false;
        }
        tags.push(p.constructor.tag);
        if tags.len() as i64 == p.constructor.siblings {
            return true;
        }
    }
    false
}

impl Writer<'_> {
    pub(super) fn data(&mut self, constructor: &Constructor, fields: Vec<rx::Expr>) -> Result<rx::Expr, CompileError> {
        let tuple = self.builder.emit(made(constructor, fields))?;
        // Other constructors of the type have other fields.
        Ok(self.builder.match_cast(tuple, RxType::any())?)
    }

    /// A constructor as a function.
    pub(super) fn constructor(&mut self, constructor: &Constructor) -> Result<rx::Expr, CompileError> {
        if constructor.inputs.is_empty() {
            return self.data(constructor, Vec::new());
        }
        let params: Vec<_> =
            (0..constructor.inputs.len()).map(|i| RxVar::new(format!("x{i}"), RxType::any())).collect();
        let (attrs, fields) = (Attrs::new(), params.iter().map(|p| p.clone().into()).collect());
        let function = self.builder.function(params, attrs, |builder| {
            let tuple = builder.emit(made(constructor, fields))?;
            builder.match_cast(tuple, RxType::any())
        })?;
        Ok(self.builder.emit(rx::Expr::Function(function))?)
    }

    pub(super) fn matching(&mut self, m: &Ref<Match>) -> Result<rx::Expr, CompileError> {
        let data = self.atom(&m.data)?;
        let sure = m.complete && names_each_constructor(&m.clauses);
        self.cases(&data, &m.clauses, sure)
    }

    /// The first case that fits. If `sure`, one of them does.
    fn cases(&mut self, data: &rx::Expr, clauses: &[Ref<Clause>], sure: bool) -> Result<rx::Expr, CompileError> {
        let Some((first, rest)) = clauses.split_first() else { return self.no_case() };
        let test = match rest.is_empty() && sure {
            true => None,
            false => self.test(&first.pattern, data)?,
        };
        let Some(test) = test else {
            self.name_parts(&first.pattern, data)?;
            return self.scope(&first.body);
        };
        let fits = self.sequence(|w| {
            w.name_parts(&first.pattern, data)?;
            w.scope(&first.body)
        })?;
        let fails = self.sequence(|w| w.cases(data, rest, sure))?;
        self.choice(test, fits, fails)
    }

    fn choice(
        &mut self,
        test: Test,
        fits: Ref<rx::SeqExpr>,
        fails: Ref<rx::SeqExpr>,
    ) -> Result<rx::Expr, CompileError> {
        let ty = rx::shape::unify(&fits.body.ty(), &fails.body.ty());
        let (true_branch, false_branch) = if test.holds { (fits, fails) } else { (fails, fits) };
        let made = rx::If { condition: test.condition, true_branch, false_branch, ty };
        Ok(self.builder.emit(rx::Expr::If(Ref::new(made)))?)
    }

    /// What tells whether a value has a form; nothing where it always does.
    fn test(&mut self, pattern: &Pattern, value: &rx::Expr) -> Result<Option<Test>, CompileError> {
        let (own, patterns, first) = match pattern {
            Pattern::Wildcard(_) | Pattern::Var(_) => return Ok(None),
            Pattern::Tuple(p) => (None, &p.patterns, 0),
            Pattern::Constructor(p) => match number(&p.constructor) {
                Some(number) => (Some(self.tag_test(value, number, p.constructor.siblings)?), &p.patterns, 1),
                None => (None, &p.patterns, 0),
            },
        };
        let parts: Vec<_> = patterns.iter().enumerate().filter(|(_, p)| !fits_always(p)).collect();
        if parts.is_empty() {
            return Ok(own);
        }
        let Some(own) = own else { return self.all(value, &parts, first).map(Some) };
        let inner = self.sequence(|w| {
            let test = w.all(value, &parts, first)?;
            w.truth(test)
        })?;
        self.and(own, inner).map(Some)
    }

    /// What tells whether some fields of a value have their forms.
    fn all(&mut self, value: &rx::Expr, parts: &[(usize, &Pattern)], first: usize) -> Result<Test, CompileError> {
        let mut tests = parts.iter();
        let Some((index, pattern)) = tests.next() else { return Ok(Test { condition: truth(true)?, holds: true }) };
        let field = self.part(value, index + first)?;
        let test = self.test(pattern, &field)?;
        let test = match test {
            Some(test) => test,
            None => Test { condition: truth(true)?, holds: true },
        };
        if parts.len() == 1 {
            return Ok(test);
        }
        let inner = self.sequence(|w| {
            let rest = w.all(value, &parts[1..], first)?;
            w.truth(rest)
        })?;
        self.and(test, inner)
    }

    /// A test, and behind it another.
    fn and(&mut self, test: Test, inner: Ref<rx::SeqExpr>) -> Result<Test, CompileError> {
        let fails = self.sequence(|_| truth(false))?;
        Ok(Test { condition: self.choice(test, inner, fails)?, holds: true })
    }

    /// A test as a bool.
    fn truth(&mut self, test: Test) -> Result<rx::Expr, CompileError> {
        if test.holds && matches!(test.condition.ty(), RxType::Tensor(_)) {
            return Ok(test.condition);
        }
        let (fits, fails) = (self.sequence(|_| truth(true))?, self.sequence(|_| truth(false))?);
        self.choice(test, fits, fails)
    }

    /// Whether a value was made by the constructor of a number.
    fn tag_test(&mut self, value: &rx::Expr, number: i64, siblings: i64) -> Result<Test, CompileError> {
        let int = RxType::prim(DataType::int(64));
        let at = rx::Expr::prim(prim::int(0));
        let tag = self.packed("vm.builtin.tuple_getitem", [value.clone(), at], int.clone())?;
        if siblings == 2 {
            return Ok(Test { condition: tag, holds: number == 1 });
        }
        // A condition is zero or not: the number says which element of a list of zeros and a one it is.
        let flags: Vec<rx::Expr> = (0..siblings).map(|n| rx::Expr::prim(prim::int(i64::from(n == number)))).collect();
        let flags = self.packed("vm.builtin.make_tuple", flags, RxType::any())?;
        let condition = self.packed("vm.builtin.tuple_getitem", [flags, tag], int)?;
        Ok(Test { condition, holds: true })
    }

    /// Binds the names of a form to the parts of a value that has it.
    fn name_parts(&mut self, pattern: &Pattern, value: &rx::Expr) -> Result<(), CompileError> {
        let (patterns, first) = match pattern {
            Pattern::Wildcard(_) => return Ok(()),
            Pattern::Var(p) => {
                let ty = self.types.of_var(&p.var).unwrap_or_else(Type::fresh);
                let value = self.typed(value.clone(), &ty, false)?;
                self.values.insert(super::address(&p.var), value);
                return Ok(());
            }
            Pattern::Tuple(p) => (&p.patterns, 0),
            Pattern::Constructor(p) => (&p.patterns, usize::from(number(&p.constructor).is_some())),
        };
        for (index, pattern) in patterns.iter().enumerate() {
            if !matches!(pattern, Pattern::Wildcard(_)) {
                let part = self.part(value, index + first)?;
                self.name_parts(pattern, &part)?;
            }
        }
        Ok(())
    }

    /// A part of a value, of a type that is not known yet unless the value is a tuple of Relay's.
    fn part(&mut self, value: &rx::Expr, index: usize) -> Result<rx::Expr, CompileError> {
        match (value, value.ty()) {
            (rx::Expr::Tuple(t), _) if index < t.fields.len() => Ok(t.fields[index].clone()),
            (_, RxType::Tuple(_)) => Ok(self.builder.emit(rx::Expr::field(value.clone(), index))?),
            _ => {
                let index = rx::Expr::prim(prim::int(index as i64));
                self.packed("vm.builtin.tuple_getitem", [value.clone(), index], RxType::any())
            }
        }
    }

    /// A call of a function of the runtime without effects.
    fn packed(&mut self, name: &str, args: impl Into<Vec<rx::Expr>>, ty: RxType) -> Result<rx::Expr, CompileError> {
        let mut all = vec![rx::Expr::external(name)];
        all.extend(args.into());
        let call = rx::op::call_typed("call_pure_packed", all, Attrs::new(), vec![ty])
            .map_err(|e| relaxide_ffi::Error::new(relaxide_ffi::ErrorKind::InternalError, e.to_string()))?;
        Ok(self.builder.emit(call)?)
    }

    /// What stands behind the last case.
    fn no_case(&mut self) -> Result<rx::Expr, CompileError> {
        let args = [truth(false)?, rx::Expr::string("no case of a `match` fits")];
        self.packed("relax.run.assert_op", args, RxType::any())
    }
}

fn truth(value: bool) -> Result<rx::Expr, CompileError> {
    Ok(rx::Expr::constant(scalar::int(i64::from(value), DataType::bool())?))
}
