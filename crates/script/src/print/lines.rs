//! Notes where kernels and statements come to stand while they are printed.
//!
//! A place is noted by its distance from the beginning of what is printed. Lines are counted at the end, when declarations that
//! are put in front are there.

use relaxide_ir::IRModule;
use relaxide_tir::lines::Lines;
use relaxide_tir::{PrimFunc, Stmt};

use super::{PrintOptions, Printer};

/// What is noted so far.
#[derive(Default)]
pub(super) struct Marks {
    kernels: Vec<(String, usize)>,
    statements: Vec<(Stmt, usize)>,
}

/// Kernels as the text of one module, by the names that they are exported by, and the lines of their statements.
pub fn print_with_lines<'f>(funcs: impl IntoIterator<Item = &'f relaxide_ffi::Ref<PrimFunc>>) -> (String, Lines) {
    let mut module = IRModule::default();
    for func in funcs {
        module.insert(func.global_symbol().unwrap_or("main"), func.clone());
    }
    let mut printer = Printer::new(Some(&module));
    printer.marks = Some(Marks::default());
    printer.module(&module);
    let marks = printer.marks.take().unwrap_or_default();
    let printed = printer.out.len();
    let text = printer.finish(PrintOptions::default());
    (text.clone(), marks.lines(&text, printed))
}

impl Marks {
    /// Places as lines of the whole text, which ends in the `printed` bytes that they are counted in.
    fn lines(self, text: &str, printed: usize) -> Lines {
        let start = text.len().saturating_sub(printed);
        let ends: Vec<usize> = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        let line = |place: usize| ends.partition_point(|end| *end < start + place) as u32 + 1;
        let mut lines = Lines::default();
        self.kernels.into_iter().for_each(|(name, place)| lines.add_kernel(name, line(place)));
        self.statements.into_iter().for_each(|(stmt, place)| lines.add_statement(stmt, line(place)));
        lines
    }
}

impl Printer<'_> {
    /// Notes that the next line is a kernel's definition.
    pub(super) fn mark_kernel(&mut self, func: &PrimFunc, name: &str) {
        let place = self.out.len();
        if let Some(marks) = &mut self.marks {
            marks.kernels.push((func.global_symbol().unwrap_or(name).to_string(), place));
        }
    }

    /// Notes that the next line is a statement, or its head.
    pub(super) fn mark_next(&mut self, stmt: impl FnOnce() -> Stmt) {
        let place = self.out.len();
        if let Some(marks) = &mut self.marks {
            marks.statements.push((stmt(), place));
        }
    }

    /// Notes that the line that was written last is a statement.
    pub(super) fn mark_last(&mut self, stmt: &Stmt) {
        let written = self.out.strip_suffix('\n').unwrap_or(&self.out);
        let place = written.rfind('\n').map_or(0, |end| end + 1);
        if let Some(marks) = &mut self.marks {
            marks.statements.push((stmt.clone(), place));
        }
    }

    /// Puts text in front of what was written behind a place.
    pub(super) fn insert(&mut self, place: usize, text: &str) {
        self.out.insert_str(place, text);
        if let Some(marks) = &mut self.marks {
            let places = marks.statements.iter_mut().map(|(_, at)| at);
            let places = places.chain(marks.kernels.iter_mut().map(|(_, at)| at));
            places.filter(|at| **at >= place).for_each(|at| *at += text.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Ref};
    use relaxide_ir::{Attrs, Buffer, PrimExpr, Var, prim};
    use relaxide_tir::StmtVisitor;

    use super::*;

    #[test]
    fn every_statement_stands_on_its_line() {
        let f32 = DataType::float(32);
        let (n, i, j) = (Var::dim("n"), Var::dim("i"), Var::dim("j"));
        let [a, b] = ["A", "B"].map(|name| Buffer::new(name, f32, [PrimExpr::from(&n), PrimExpr::from(8)]));
        let own = Buffer::scoped("own", f32, [8i64], "local");
        let fill = Stmt::serial(j.clone(), 8, Stmt::store(&own, [&j], prim::load(&a, [&i, &j])));
        let k = Var::dim("k");
        let positive = prim::gt(prim::load(&own, [&k]), prim::float_of(f32, 0.0));
        let back = Stmt::store(&b, [&i, &k], prim::load(&own, [&k]));
        let body = Stmt::seq([Stmt::alloc(&own), fill, Stmt::serial(k, 8, Stmt::when(positive, back))]);
        let mut func = PrimFunc::over_buffers(&[a, b], &[], Stmt::serial(i, &n, body));
        func.attrs = Attrs::new().with("global_symbol", "second").with("tirx.noalias", true);
        let mut first = func.clone();
        first.attrs = Attrs::new().with("global_symbol", "first");
        first.body = Stmt::Evaluate(Ref::new(relaxide_tir::Evaluate { value: prim::int(7) }));
        let funcs = [Ref::new(first), Ref::new(func)];
        let (text, lines) = print_with_lines(&funcs);
        let line = |number: u32| text.lines().nth(number as usize - 1).unwrap().trim();
        for func in &funcs {
            let name = func.global_symbol().unwrap();
            assert!(line(lines.of_kernel(name).unwrap()).starts_with(&format!("def {name}(")), "{text}");
        }
        struct Each<'l>(&'l Lines, Vec<(String, u32)>);
        impl prim::PrimVisitor for Each<'_> {}
        impl StmtVisitor for Each<'_> {
            fn visit_stmt(&mut self, stmt: &Stmt) {
                if !matches!(stmt, Stmt::Seq(_)) {
                    self.1.push((format!("{stmt:?}"), self.0.of_statement(stmt).expect("it was printed")));
                }
                self.walk_stmt(stmt);
            }
        }
        let mut each = Each(&lines, Vec::new());
        each.visit_stmt(&funcs[1].body);
        let starts = ["for i", "own =", "for j", "own[j] =", "for k", "if own[k]", "B[i, k] ="];
        assert_eq!(each.1.len(), starts.len(), "{text}");
        for ((stmt, number), start) in each.1.iter().zip(starts) {
            assert!(line(*number).starts_with(start), "{stmt} is not `{}`\n{text}", line(*number));
        }
    }
}
