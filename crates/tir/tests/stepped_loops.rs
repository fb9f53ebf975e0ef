//! Loops with steps are what their iterations are: to every pass, a kernel of such loops is the kernel whose loops count by one.

use std::cell::RefCell;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, VarMap};

use relaxide_tir::functor::substitute_stmt;
use relaxide_tir::lower::unit_steps;
use relaxide_tir::testing::{ProgramOptions, Random, check_seeds, program};
use relaxide_tir::{For, ForKind, PrimFunc, Stmt, StmtMutator};

use super::lowering_passes::{OTHER_RESULTS, agree, count, rows, run};

/// Gives some loops steps: `for i in range(4): f(i)` becomes `for i in range(2, 14, 3): f((i - 2) // 3)`.
struct Stepping<'r> {
    random: &'r RefCell<&'r mut Random>,
    stepped: usize,
}

impl PrimMutator for Stepping<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Stepping<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let made = self.remake_stmt(stmt);
        let Stmt::For(n) = &made else { return made };
        let mut random = self.random.borrow_mut();
        let is_plain = matches!(n.kind, ForKind::Serial | ForKind::Unrolled) && n.step.is_none() && n.min.is_int(0);
        if !is_plain || random.one_in(3) {
            return made;
        }
        self.stepped += 1;
        let number = |value: i64| prim::int_of(n.var.dtype(), value);
        let (begin, step) = (random.between(0, 3), random.between(2, 5));
        // The last iteration need not be a whole step before the end.
        let short = random.between(0, step - 1);
        let iteration = prim::floordiv(PrimExpr::from(&n.var) - number(begin), number(step));
        let body = substitute_stmt(&n.body, &VarMap::from([(n.var.clone(), iteration)]));
        let extent = &n.extent * number(step) - number(short);
        Ref::new(For { min: number(begin), extent, step: Some(number(step)), body, ..For::clone(n) }).into()
    }
}

fn stepping(random: &mut Random, func: &PrimFunc) -> (PrimFunc, usize) {
    let random = RefCell::new(random);
    let mut stepping = Stepping { random: &random, stepped: 0 };
    let body = stepping.mutate_stmt(&func.body);
    (func.with_body(body), stepping.stepped)
}

#[test]
fn passes_take_steps_for_what_they_are() {
    let stepped = RefCell::new(0);
    check_seeds(count(40), &|random| {
        let sample = program(random, ProgramOptions::default()).sample;
        let (func, steps) = stepping(random, &sample.func);
        *stepped.borrow_mut() += steps;
        let Some(unit) = unit_steps(&func).map_err(|e| e.to_string())? else { return Ok(()) };
        let expected = sample.interpret(&sample.func).map_err(|e| e.to_string())?;
        // Loops that are timed have numbers which no two kernels share.
        for (pass, args) in rows().filter(|(pass, _)| pass.name != "s_tir.transform.InstrumentProfileIntrinsics") {
            let story = |what: String| format!("{}: {what}\n{func}\n{unit}", pass.name);
            let (found, of_unit) = match (run(pass, &args, &func), run(pass, &args, &unit)) {
                (Ok(found), Ok(of_unit)) => (found, of_unit),
                (Err(_), Err(_)) => continue,
                (Err(e), Ok(_)) => return Err(story(format!("refused with steps: {e}"))),
                (Ok(_), Err(e)) => return Err(story(format!("refused without steps: {e}"))),
            };
            // A pass that looks at no loop may leave steps.
            let by_one = |made: &PrimFunc| unit_steps(made).map(|unit| unit.as_ref().unwrap_or(made).to_string());
            let texts = [by_one(&found), by_one(&of_unit)];
            let texts = texts.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| story(e.to_string()))?;
            if texts[0] != texts[1] {
                return Err(story(format!("made another kernel\n{}\n{}", texts[0], texts[1])));
            }
            if OTHER_RESULTS.contains(&pass.name) {
                continue;
            }
            let results = sample.interpret(&found).map_err(|e| story(format!("{e}\n{found}")))?;
            if !agree(&results, &expected) {
                return Err(story(format!("other results\n{found}")));
            }
        }
        Ok(())
    });
    assert!(*stepped.borrow() > 40, "{} loops had steps", stepped.borrow());
}
