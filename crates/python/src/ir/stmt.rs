//! Constructors of kernels: statements, blocks, buffers.

use relaxide::ffi::{Any, Array, DataType, Error, ErrorKind, FromAny, Map, Ref};
use relaxide::ir::layout::Placement;
use relaxide::ir::prim::{PrimExpr, PrimMutator, PrimVisitor, StringImm};
use relaxide::ir::{Buffer, Type, Var};
use relaxide::tir::{
    AllocBuffer, AssertStmt, AttrStmt, Bind, Break, BufferRegion, BufferStore, CommReducer, Continue, DeclBuffer,
    Evaluate, For, ForKind, IfThenElse, IterKind, IterVar, MatchBufferRegion, PrimFunc, Range, Return, SBlock,
    SBlockRealize, SeqStmt, Stmt, StmtMutator, StmtVisitor, While,
};

use super::args::prim_expr;
use super::prim::is_number;
use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("tirx.Bind", |args| Ok(Ref::new(Bind { var: args.get(0)?, value: args.prim(1)? }).into())),
    ("tirx.AssertStmt", |args| {
        let (error_kind, condition, message) = (text(args, 0)?, args.prim(1)?, text(args, 2)?);
        Ok(Ref::new(AssertStmt { condition, error_kind, message, numbers: Vec::new() }).into())
    }),
    ("tirx.For", for_loop),
    ("tirx.While", |args| Ok(Ref::new(While { condition: args.prim(0)?, body: args.get(1)? }).into())),
    ("tirx.BufferStore", store),
    ("tirx.AllocBuffer", |args| Ok(Ref::new(AllocBuffer { buffer: args.get(0)?, annotations: args.attrs(1)? }).into())),
    ("tirx.AttrStmt", |args| {
        let (key, value, body, node) = (text(args, 0)?, args.prim(1)?, args.get(2)?, args.optional(3)?);
        Ok(Ref::new(AttrStmt { node, key, value, body }).into())
    }),
    ("tirx.CommReducer", |args| {
        let (lhs, rhs) = (args.get(0)?, args.get(1)?);
        let (result, identity_element) = (args.prims(2)?.unwrap_or_default(), args.prims(3)?.unwrap_or_default());
        Ok(Ref::new(CommReducer { lhs, rhs, result, identity_element }).into())
    }),
    ("tirx.SeqStmt", |args| Ok(Ref::new(SeqStmt { seq: args.get(0)? }).into())),
    ("tirx.IfThenElse", |args| {
        let (condition, then_case, else_case) = (args.prim(0)?, args.get(1)?, args.optional(2)?);
        Ok(Ref::new(IfThenElse { condition, then_case, else_case }).into())
    }),
    ("tirx.DeclBuffer", declaration),
    ("tirx.Break", |_| Ok(Ref::new(Break {}).into())),
    ("tirx.Continue", |_| Ok(Ref::new(Continue {}).into())),
    ("tirx.Return", |args| Ok(Ref::new(Return { value: args.prim(0)? }).into())),
    ("tirx.Evaluate", |args| Ok(Ref::new(Evaluate { value: args.prim(0)? }).into())),
    ("ir.Range", |args| {
        let (min, extent) = alike(args, 0, 1)?;
        Ok(Ref::new(Range { min, extent }).into())
    }),
    ("tirx.IterVar", iter_var),
    ("tirx.BufferRegion", |args| Ok(Ref::new(BufferRegion { buffer: args.get(0)?, region: args.get(1)? }).into())),
    ("s_tir.MatchBufferRegion", |args| {
        Ok(Ref::new(MatchBufferRegion { buffer: args.get(0)?, source: args.get(1)? }).into())
    }),
    ("s_tir.SBlock", block),
    ("s_tir.SBlockRV", |_| Ok(Ref::new(relaxide::tir::s_tir::SBlockRV {}).into())),
    ("s_tir.LoopRV", |_| Ok(Ref::new(relaxide::tir::s_tir::LoopRV {}).into())),
    ("s_tir.SBlockRealize", realize),
    ("tirx.Buffer", buffer),
    ("tirx.PrimFunc", prim_func),
    ("tirx.Specialize", specialize),
    ("tirx.BufferAccesses", accesses),
    ("tirx.OverBuffers", over_buffers),
    ("tirx.TensorArgument", |args| {
        let buffer: Ref<Buffer> = args.get(0)?;
        Ok(relaxide::tir::tensor_argument::tensor_argument(&buffer).into())
    }),
];

fn refuse<T>(kind: ErrorKind, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(kind, message.into()))
}

/// Text, bare or as a literal.
fn text(args: &Args<'_>, at: usize) -> Result<String, Error> {
    match args.optional::<Ref<StringImm>>(at) {
        Ok(Some(literal)) => Ok(literal.value.clone()),
        _ => args.get(at),
    }
}

/// Two scalars of one type: a literal takes the other's.
fn alike(args: &Args<'_>, left: usize, right: usize) -> Result<(PrimExpr, PrimExpr), Error> {
    let (a, b) = relaxide::ir::prim::promote(args.prim(left)?, args.prim(right)?);
    match a.dtype() == b.dtype() {
        true => Ok((a, b)),
        false => refuse(ErrorKind::TypeError, format!("{}: {} and {} differ", args.function, a.dtype(), b.dtype())),
    }
}

/// An integer as an integer of a type; anything else as it is.
fn index_of(dtype: DataType, value: PrimExpr) -> PrimExpr {
    match value.as_int() {
        Some(number) if relaxide::ir::prim::holds(dtype, number) => relaxide::ir::prim::int_of(dtype, number),
        _ => value,
    }
}

/// `(buffer, data)`. The buffer's own pointer is another variable than the address, unless it was made over that.
fn declaration(args: &Args<'_>) -> Result<Any, Error> {
    let (buffer, data): (Ref<Buffer>, PrimExpr) = (args.get(0)?, args.prim(1)?);
    if !data.dtype().is_handle() {
        return refuse(
            ErrorKind::TypeError,
            format!("{} is declared over an address, not a {}", buffer.name, data.dtype()),
        );
    }
    Ok(Ref::new(DeclBuffer { buffer, data }).into())
}

/// `(loop_var, min, extent, kind, body, thread_tag, annotations, step)`.
fn for_loop(args: &Args<'_>) -> Result<Any, Error> {
    let var: Ref<Var> = args.get(0)?;
    let dtype = var.dtype();
    let (min, extent) = (index_of(dtype, args.prim(1)?), index_of(dtype, args.prim(2)?));
    let step = args.values.get(7).filter(|step| !step.is_none()).map(|_| args.prim(7)).transpose()?;
    let step = step.map(|step| index_of(dtype, step)).filter(|step| !step.is_int(1));
    if step.as_ref().is_some_and(|step| step.is_int(0)) {
        return refuse(ErrorKind::ValueError, format!("the loop over {} counts by zero, and does not end", var.name));
    }
    for bound in [&min, &extent].into_iter().chain(&step) {
        if bound.dtype() != dtype && bound.as_int().is_some_and(|value| !relaxide::ir::prim::holds(dtype, value)) {
            return refuse(
                ErrorKind::TypeError,
                format!("{bound}, a bound of a loop, is not representable as {dtype}"),
            );
        }
        if bound.dtype() != dtype {
            return refuse(ErrorKind::TypeError, format!("a loop over a {dtype} has a bound of {}", bound.dtype()));
        }
    }
    let kind: ForKind = args.get(3)?;
    let thread_tag: String = args.optional(5)?.unwrap_or_default();
    if thread_tag.is_empty() == (kind == ForKind::ThreadBinding) {
        return refuse(ErrorKind::ValueError, "a loop has a thread if it is bound to one, and only then");
    }
    let (annotations, body) = (args.attrs(6)?, args.get(4)?);
    Ok(Ref::new(For { var, min, extent, kind, thread_tag, annotations, body, step }).into())
}

/// `(buffer, value, indices)`. A number takes the buffer's type.
fn store(args: &Args<'_>) -> Result<Any, Error> {
    let buffer: Ref<Buffer> = args.get(0)?;
    let indices = args.prims(2)?.unwrap_or_default();
    if indices.len() != buffer.ndim() {
        let message = format!("{} has {} dimensions, not {}", buffer.name, buffer.ndim(), indices.len());
        return refuse(ErrorKind::ValueError, message);
    }
    let value = match args.values.get(1).is_some_and(|value| is_number(*value)) {
        true => relaxide::ir::prim::cast(buffer.dtype, args.prim(1)?),
        false => args.prim(1)?,
    };
    let lanes = indices.last().map_or(1, |index| index.dtype().lanes);
    let expected = buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes));
    if value.dtype() != expected {
        let message = format!("{} holds {expected}, the value is a {}", buffer.name, value.dtype());
        return refuse(ErrorKind::TypeError, message);
    }
    let predicate = if args.absent(3) { None } else { Some(args.prim(3)?) };
    Ok(Ref::new(BufferStore { buffer, value, indices, predicate }).into())
}

/// `(min, extent, var, kind)`, with the kind as blocks name it.
fn iter_var(args: &Args<'_>) -> Result<Any, Error> {
    let var: Ref<Var> = args.get(2)?;
    let kind: IterKind = args.get(3)?;
    let (min, extent) = (index_of(var.dtype(), args.prim(0)?), index_of(var.dtype(), args.prim(1)?));
    Ok(Ref::new(IterVar { var, min, extent, kind }).into())
}

/// An optional list.
fn list<T: FromAny>(args: &Args<'_>, at: usize) -> Result<Vec<T>, Error>
where
    Vec<T>: FromAny,
{
    Ok(args.optional(at)?.unwrap_or_default())
}

/// `(iter_vars, reads, writes, name, body, init, alloc_buffers, match_buffers, annotations)`.
fn block(args: &Args<'_>) -> Result<Any, Error> {
    Ok(Ref::new(SBlock {
        iter_vars: list(args, 0)?,
        reads: list(args, 1)?,
        writes: list(args, 2)?,
        name: args.get(3)?,
        body: args.get(4)?,
        init: args.optional(5)?,
        alloc_buffers: list(args, 6)?,
        match_buffers: list(args, 7)?,
        annotations: args.attrs(8)?,
    })
    .into())
}

/// `(iter_values, predicate, block)`.
fn realize(args: &Args<'_>) -> Result<Any, Error> {
    let (values, predicate, block): (_, _, Ref<SBlock>) =
        (args.prims(0)?.unwrap_or_default(), args.prim(1)?, args.get(2)?);
    if values.len() != block.iter_vars.len() {
        let message = format!("the block {} has {} axes, not {}", block.name, block.iter_vars.len(), values.len());
        return refuse(ErrorKind::ValueError, message);
    }
    let typed = values.into_iter().zip(&block.iter_vars);
    let iter_values = typed.map(|(value, axis)| index_of(axis.var.dtype(), value)).collect();
    Ok(Ref::new(SBlockRealize { iter_values, predicate, block }).into())
}

/// `(name, dtype, shape, data, strides, elem_offset, scope, alignment, offset_factor, layout)`.
fn buffer(args: &Args<'_>) -> Result<Any, Error> {
    let (name, dtype): (String, DataType) = (args.get(0)?, args.get(1)?);
    let given: Option<Ref<Var>> = args.optional(3)?;
    let mut scope: String = args.optional(6)?.unwrap_or_default();
    if let Some(Type::Pointer(pointer)) = given.as_ref().map(|data| &data.ty) {
        scope.clone_from(&pointer.scope);
    }
    if scope.is_empty() {
        scope = "global".into();
    }
    let alignment: i64 = args.optional(7)?.unwrap_or(-1);
    let shape = args.prims(2)?.unwrap_or_default();
    let layout = match args.get(9)? {
        Placement::By(layout) => Placement::by(layout, &shape),
        other => other,
    };
    Ok(Ref::new(Buffer {
        data: given.unwrap_or_else(|| Var::new(name.clone(), Type::pointer(dtype, &scope))),
        name,
        dtype,
        shape,
        strides: args.prims(4)?.unwrap_or_default(),
        elem_offset: if args.absent(5) { PrimExpr::from(0) } else { args.prim(5)? },
        scope,
        alignment: if alignment > 0 { alignment } else { 64 },
        offset_factor: args.optional::<i64>(8)?.unwrap_or(1).max(1),
        layout,
        producer: None,
    })
    .into())
}

/// `(params, body, ret_type, attrs, buffers)`. A buffer among the parameters is a handle with that buffer behind it.
fn prim_func(args: &Args<'_>) -> Result<Any, Error> {
    let given: Array = args.get(0)?;
    let behind: Option<Map> = args.optional(4)?;
    let (mut params, mut buffers) = (Vec::new(), Vec::new());
    for param in given.iter() {
        if let Ok(buffer) = param.to::<Ref<Buffer>>() {
            params.push(Var::new(format!("var_{}", buffer.name), Type::prim(DataType::handle())));
            buffers.push(Some(buffer));
            continue;
        }
        let Ok(var) = param.to::<Ref<Var>>() else {
            return refuse(ErrorKind::TypeError, "params can only contain Var or Buffer");
        };
        let own = behind.iter().flat_map(Map::iter).find(|(key, _)| key.to::<Ref<Var>>().is_ok_and(|key| key == var));
        buffers.push(own.map(|(_, buffer)| buffer.to()).transpose()?);
        params.push(var);
    }
    let ret_type = match args.ty(2)? {
        Type::Missing(_) => Type::void(),
        ty => ty,
    };
    Ok(Ref::new(PrimFunc { params, ret_type, buffers, attrs: args.attrs(3)?, body: args.get::<Stmt>(1)? }).into())
}

/// The kernel with values for parameters: numbers for scalars and for symbolic dimensions, buffers for handles.
fn specialize(args: &Args<'_>) -> Result<Any, Error> {
    let func: Ref<PrimFunc> = args.get(0)?;
    let given: Map = args.get(1)?;
    let mut values = relaxide::ir::prim::VarMap::default();
    for (key, value) in given.iter() {
        let var: Ref<Var> = key.to()?;
        match (value.to::<Ref<Buffer>>(), func.buffer_of(&var)) {
            (Ok(new), Some(old)) => {
                if new.ndim() != old.ndim() || new.dtype != old.dtype {
                    return refuse(ErrorKind::ValueError, format!("{} does not fit the buffer {}", new.name, old.name));
                }
                for (old, new) in old.shape.iter().zip(&new.shape) {
                    if let PrimExpr::Var(dim) = old {
                        values.insert(dim.clone(), index_of(dim.dtype(), new.clone()));
                    }
                }
            }
            (Ok(_), None) => return refuse(ErrorKind::ValueError, format!("there is no buffer behind {}", var.name)),
            (Err(_), Some(_)) => {
                return refuse(ErrorKind::TypeError, format!("a buffer takes the place of {}", var.name));
            }
            (Err(_), None) => {
                let value = index_of(var.dtype(), prim_expr(value.as_view())?);
                values.insert(var, value);
            }
        }
    }
    Ok(Ref::new(relaxide::tir::specialize(&func, &values)).into())
}

/// The buffers that a statement reads, and those that it writes.
fn accesses(args: &Args<'_>) -> Result<Any, Error> {
    #[derive(Default)]
    struct Accesses {
        reads: Vec<Ref<Buffer>>,
        writes: Vec<Ref<Buffer>>,
    }
    impl PrimVisitor for Accesses {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Load(load) = e {
                self.reads.push(load.buffer.clone());
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Accesses {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Store(store) = stmt {
                self.writes.push(store.buffer.clone());
            }
            self.walk_stmt(stmt);
        }
    }
    let mut found = Accesses::default();
    found.visit_stmt(&args.get(0)?);
    let list = |buffers: Vec<Ref<Buffer>>| buffers.into_iter().map(Any::from).collect::<Array>();
    Ok([list(found.reads), list(found.writes)].into_iter().map(Any::from).collect::<Array>().into())
}

/// `(statement, buffers, others)`: the statement with others in the place of buffers.
fn over_buffers(args: &Args<'_>) -> Result<Any, Error> {
    struct Replace(Vec<(Ref<Buffer>, Ref<Buffer>)>);
    impl PrimMutator for Replace {
        fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
            self.0.iter().find(|(old, _)| old == buffer).map_or(buffer, |(_, new)| new).clone()
        }
    }
    impl StmtMutator for Replace {}
    let (old, new): (Vec<Ref<Buffer>>, Vec<Ref<Buffer>>) = (args.get(1)?, args.get(2)?);
    Ok(Replace(old.into_iter().zip(new).collect()).mutate_stmt(&args.get(0)?).into())
}
