//! Statements and kernels as indented text, for messages and debugging. The text form that programs are written in is
//! `script`'s.

use std::fmt;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::PrimExpr;

use crate::PrimFunc;
use crate::stmt::*;

/// Items between commas.
struct Commas<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Commas<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A buffer where it is defined.
struct Definition<'a>(&'a Ref<Buffer>);

impl fmt::Display for Definition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}[{}]", self.0.name, self.0.dtype, Commas(&self.0.shape))?;
        if !self.0.strides.is_empty() {
            write!(f, " strides [{}]", Commas(&self.0.strides))?;
        }
        if self.0.scope != "global" { write!(f, " in {}", self.0.scope) } else { Ok(()) }
    }
}

/// A statement at some depth of indentation.
struct At<'a>(usize, &'a Stmt);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At(depth, stmt) = *self;
        let pad = "    ".repeat(depth);
        let inner = |s| At(depth + 1, s);
        match stmt {
            Stmt::For(n) => {
                let kind = format!("{:?}", n.kind).to_lowercase();
                let range = match n.min.is_int(0) {
                    true => n.extent.to_string(),
                    false => format!("{} .. + {}", n.min, n.extent),
                };
                let step = n.step.as_ref().map_or_else(String::new, |step| format!(", by {step}"));
                write!(f, "{pad}for {} in {kind}({range}{step}):\n{}", n.var.name, inner(&n.body))
            }
            Stmt::While(n) => write!(f, "{pad}while {}:\n{}", n.condition, inner(&n.body)),
            Stmt::Seq(n) if n.seq.is_empty() => writeln!(f, "{pad}pass"),
            Stmt::Seq(n) => n.seq.iter().try_for_each(|s| write!(f, "{}", At(depth, s))),
            Stmt::If(n) => {
                write!(f, "{pad}if {}:\n{}", n.condition, inner(&n.then_case))?;
                n.else_case.as_ref().map_or(Ok(()), |s| write!(f, "{pad}else:\n{}", inner(s)))
            }
            Stmt::Store(n) => {
                write!(f, "{pad}{}[{}] = {}", n.buffer.name, Commas(&n.indices), n.value)?;
                n.predicate.as_ref().map_or(Ok(()), |p| write!(f, " where {p}"))?;
                writeln!(f)
            }
            Stmt::Bind(n) => writeln!(f, "{pad}{}: {} = {}", n.var.name, n.var.dtype(), n.value),
            Stmt::Alloc(n) => writeln!(f, "{pad}alloc {}", Definition(&n.buffer)),
            Stmt::Evaluate(n) => writeln!(f, "{pad}{}", n.value),
            Stmt::Assert(n) => writeln!(f, "{pad}assert {}, {:?}", n.condition, n.said()),
            Stmt::Block(n) => write_block(f, depth, n),
            Stmt::Attr(n) => write!(f, "{pad}with {} = {}:\n{}", n.key, n.value, inner(&n.body)),
            Stmt::Decl(n) => writeln!(f, "{pad}view {} at {}", Definition(&n.buffer), n.data),
            Stmt::Break(_) => writeln!(f, "{pad}break"),
            Stmt::Continue(_) => writeln!(f, "{pad}continue"),
            Stmt::Return(n) => writeln!(f, "{pad}return {}", n.value),
            Stmt::ScopeIds(n) => {
                let names: Vec<_> = n.def.def_ids.iter().map(|var| var.name.as_str()).collect();
                writeln!(f, "{pad}{} number {} in {}", names.join(", "), n.def.scope.cur(), n.def.scope.parent())
            }
            Stmt::Tile(n) => writeln!(f, "{pad}{} by {}", n.name(), n.scope.kind.name()),
        }
    }
}

fn write_block(f: &mut fmt::Formatter<'_>, depth: usize, n: &SBlockRealize) -> fmt::Result {
    let (pad, deeper) = ("    ".repeat(depth), "    ".repeat(depth + 1));
    writeln!(f, "{pad}block {}:", n.block.name)?;
    if n.predicate.as_int() != Some(1) {
        writeln!(f, "{deeper}where {}", n.predicate)?;
    }
    for (iter, value) in n.block.iter_vars.iter().zip(&n.iter_values) {
        let kind = format!("{:?}", iter.kind).to_lowercase();
        writeln!(f, "{deeper}{} = {kind}({}, {value})", iter.var.name, iter.extent)?;
    }
    for buffer in &n.block.alloc_buffers {
        writeln!(f, "{deeper}alloc {}", Definition(buffer))?;
    }
    for matched in &n.block.match_buffers {
        let begin: Vec<&PrimExpr> = matched.source.region.iter().map(|r| &r.min).collect();
        writeln!(
            f,
            "{deeper}match {} = {}[{}]",
            Definition(&matched.buffer),
            matched.source.buffer.name,
            Commas(&begin)
        )?;
    }
    if let Some(init) = &n.block.init {
        write!(f, "{deeper}init:\n{}", At(depth + 2, init))?;
    }
    write!(f, "{}", At(depth + 1, &n.block.body))
}

impl fmt::Display for Stmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", At(0, self))
    }
}

impl fmt::Display for PrimFunc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let param = |(i, p): (usize, &Ref<relaxide_ir::Var>)| match self.buffers.get(i) {
            Some(Some(buffer)) => Definition(buffer).to_string(),
            _ => format!("{}: {}", p.name, p.dtype()),
        };
        let params: Vec<String> = self.params.iter().enumerate().map(param).collect();
        write!(f, "def {}({}):\n{}", self.global_symbol().unwrap_or("main"), Commas(&params), At(1, &self.body))
    }
}
