//! Blocks of a Relax function: `with R.dataflow():`, and branches that bind one name.

use relaxide_ffi::Ref;
use relaxide_ir::Type;
use relaxide_ir::diagnostic::Code;
use relaxide_relax::shape::unify;
use relaxide_relax::{Expr as Relax, If, SeqExpr};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::{Bound, RelaxFrame, chosen_type, is_leaf, times_bound};
use crate::parse::{Parsed, Parser};

impl Parser<'_> {
    /// A block of these statements, with more outputs than they say.
    pub(super) fn dataflow_block(&mut self, with: &ast::StmtWith, body: &[Stmt], more: Vec<String>) -> Parsed<()> {
        let (item, _, path) = self.entered(with)?;
        if path != "R.dataflow" {
            return Err(self.unsupported("this block in a Relax function", item.range));
        }
        if self.frame().dataflow.is_some() {
            return Err(self.error(Code::Structure, "dataflow blocks are not nested", item.range));
        }
        let mut outputs = self.outputs(body)?;
        outputs.extend(more.into_iter().filter(|name| times_bound(body, name) > 0));
        outputs.dedup();
        self.close_block(Some(outputs.iter().map(|name| (name.clone(), times_bound(body, name))).collect()));
        // Inner variables end with the block; outputs go on.
        let given = self.scoped(|p| {
            body.iter().try_for_each(|stmt| p.statement(stmt))?;
            let bound = p.scopes.last().into_iter().flat_map(|scope| scope.keys().cloned());
            p.ended = bound.filter(|name| !outputs.contains(name)).collect();
            outputs
                .iter()
                .map(|name| match p.scopes.last().and_then(|s| s.get(name)) {
                    Some(value) => Ok((name.clone(), value.clone())),
                    None => Err(p.error(
                        Code::UnknownName,
                        format!("the block does not bind its output `{name}`"),
                        item.range,
                    )),
                })
                .collect::<Parsed<Vec<_>>>()
        })?;
        self.close_block(None);
        for (name, value) in given {
            self.define(&name, value);
        }
        Ok(())
    }

    /// The names in `R.output(...)`.
    fn outputs(&self, body: &[Stmt]) -> Parsed<Vec<String>> {
        let mut names = Vec::new();
        for stmt in body {
            let Stmt::Expr(e) = stmt else { continue };
            if self.call_path(&e.value).as_deref() != Some("R.output") {
                continue;
            }
            let Expr::Call(call) = &*e.value else { continue };
            for arg in &call.arguments.args {
                let Expr::Name(name) = arg else {
                    return Err(self.error(Code::Arguments, "R.output takes names", arg.range()));
                };
                names.push(name.id.to_string());
            }
        }
        Ok(names)
    }

    pub(super) fn choice(&mut self, choice: &ast::StmtIf) -> Parsed<()> {
        if self.frame().dataflow.is_some() {
            return Err(self
                .error(Code::Structure, "a dataflow block holds no control flow", choice.range)
                .with_help("end the block before the if")
                .into());
        }
        let condition = self.expr(&choice.test)?;
        let condition = self.leaf_value(condition, choice.test.range())?;
        let [clause] = choice.elif_else_clauses.as_slice() else {
            let message = "both outcomes bind the result: one if and one else";
            return Err(self.error(Code::Structure, message, choice.range));
        };
        if clause.test.is_some() {
            return Err(self
                .error(Code::Structure, "elif is not available in a Relax function", clause.range)
                .with_help("nest an if in the else")
                .into());
        }
        let (true_branch, name, annotation, range) = self.branch(&choice.body, "_then", choice.range)?;
        let (false_branch, other, other_annotation, other_range) = self.branch(&clause.body, "_else", clause.range)?;
        if name != other {
            let message =
                format!("both branches end by binding one name, but this one binds `{other}`, the other `{name}`");
            return Err(self.error(Code::Structure, message, other_range));
        }
        let ty = unify(&true_branch.body.ty(), &false_branch.body.ty());
        let ty = chosen_type(ty, annotation.or(other_annotation));
        let value = Relax::If(Ref::new(If { condition, true_branch, false_branch, ty }));
        self.bind(&name, Bound::Value(value), None, range).map(drop)
    }

    /// A branch: its bindings, its result, and the name (with annotation) that the last statement gives the result.
    fn branch(
        &mut self,
        body: &[Stmt],
        suffix: &str,
        range: TextRange,
    ) -> Parsed<(Ref<SeqExpr>, String, Option<Type>, TextRange)> {
        let Some((last, rest)) = body.split_last() else {
            return Err(self.error(Code::Structure, "a branch ends by binding its result", range));
        };
        self.frames.push(RelaxFrame::default());
        let parsed = self.scoped(|p| {
            rest.iter().try_for_each(|stmt| p.statement(stmt))?;
            p.branch_result(last, suffix)
        });
        self.close_block(None);
        let frame = self.frames.pop().unwrap_or_default();
        let (result, name, annotation, at) = parsed?;
        Ok((Ref::new(SeqExpr { blocks: frame.blocks, body: result }), name, annotation, at))
    }

    fn branch_result(&mut self, last: &Stmt, suffix: &str) -> Parsed<(Relax, String, Option<Type>, TextRange)> {
        let (target, annotation, value) = match last {
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(target)] => (target, None, &*assign.value),
                _ => return Err(self.unsupported("this assignment at the end of a branch", assign.range)),
            },
            Stmt::AnnAssign(assign) => match (&*assign.target, &assign.value) {
                (Expr::Name(target), Some(value)) => (target, Some(&*assign.annotation), &**value),
                _ => return Err(self.unsupported("this assignment at the end of a branch", assign.range)),
            },
            Stmt::If(choice) => {
                self.choice(choice)?;
                let last = self.frame().open.last().map(|b| b.var().clone());
                let Some(var) = last else { return Err(self.unsupported("this statement", choice.range)) };
                let name = var.name().to_string();
                return Ok((var.into(), name, None, choice.range));
            }
            ret @ Stmt::Return(_) => {
                self.statement(ret)?;
                return Err(self.unsupported("this statement", ret.range()));
            }
            // What is done and gives nothing is the result of a branch that ends with it.
            Stmt::Expr(e) if !matches!(self.call_path(&e.value).as_deref(), Some("R.output" | "R.func_attr")) => {
                self.statement(last)?;
                match self.frame().open.last().map(|binding| binding.var().clone()) {
                    Some(var) if is_void(var.ty()) => return Ok((var.into(), "_".into(), None, e.range)),
                    _ => return Err(self.error(Code::Structure, "a branch ends by binding its result", e.range)),
                }
            }
            other => {
                return Err(self.error(Code::Structure, "a branch ends by binding its result", other.range()));
            }
        };
        let name = target.id.to_string();
        let annotation = annotation.map(|e| self.ty(e)).transpose()?;
        let result = match self.bound(value)? {
            Bound::Value(value) if is_leaf(&value) => value,
            bound => {
                let inner = self.fresh(&format!("{name}{suffix}"));
                self.bind(&inner, bound, annotation.clone(), target.range)?.into()
            }
        };
        Ok((result, name, annotation, target.range))
    }
}

/// Whether a type is that of no result.
pub(super) fn is_void(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.fields.is_empty())
}
