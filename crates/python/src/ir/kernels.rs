//! Kernels to Python: what is known of them, and variables and buffers of theirs exchanged for others.

use std::collections::HashMap;

use relaxide::ffi::{Any, Array, Error, ErrorKind, Map, Ref};
use relaxide::ir::prim::{PrimExpr, PrimMutator, VarMap};
use relaxide::ir::{Buffer, Var};
use relaxide::tir::analysis::{cost, effects, regions};
use relaxide::tir::{PrimFunc, SBlock, Stmt, StmtMutator, functor, verify};

use super::args::prim_expr;
use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("tirx.UndefinedVars", |args| Ok(list(functor::undefined_vars(&args.get(0)?)))),
    ("tirx.Verify", |args| {
        let func: Ref<PrimFunc> = args.get(0)?;
        Ok(verify::verify(&func).err().map_or_else(Any::default, |error| error.to_string().as_str().into()))
    }),
    ("tirx.EffectOf", |args| {
        let func: Ref<PrimFunc> = args.get(0)?;
        Ok(effects::effect_of(&func).map_or_else(Any::default, |effect| effect.as_str().into()))
    }),
    ("tirx.Substitute", |args| {
        let (stmt, map): (Stmt, Map) = (args.get(0)?, args.get(1)?);
        let mut values = VarMap::default();
        for (var, value) in map.iter() {
            values.insert(var.to()?, prim_expr(value.as_view())?);
        }
        Ok(functor::substitute_stmt(&stmt, &values).into())
    }),
    ("tirx.Exchange", exchange),
    ("tirx.FreshKernel", |args| {
        let func: Ref<PrimFunc> = args.get(0)?;
        Ok(Ref::new(functor::fresh_kernel(&func)).into())
    }),
    ("s_tir.AccessRegions", |args| {
        let block: Ref<SBlock> = args.get(0)?;
        let found = regions::regions_of_block(&block);
        Ok(list([list(found.reads), list(found.writes)]))
    }),
    ("s_tir.RegionsOf", |args| {
        let found = regions::regions_of(&args.get(0)?);
        Ok(list([list(found.reads), list(found.writes)]))
    }),
    ("s_tir.Operations", |args| {
        let func: Ref<PrimFunc> = args.get(0)?;
        Ok(cost::cost(&func).operations.map_or_else(Any::default, Any::from))
    }),
];

fn list<T: Into<Any>>(items: impl IntoIterator<Item = T>) -> Any {
    items.into_iter().map(Into::into).collect::<Array>().into()
}

/// Others in the place of variables and buffers, where they are defined and where they are used.
#[derive(Default)]
struct Exchange {
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl PrimMutator for Exchange {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).map_or_else(|| e.clone(), PrimExpr::from),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let data = self.vars.get(&buffer.data).unwrap_or(&buffer.data).clone();
        let made = self.remake_buffer(buffer, data);
        let same = made.data == buffer.data
            && made.shape == buffer.shape
            && made.strides == buffer.strides
            && made.elem_offset == buffer.elem_offset;
        let made = if same { buffer.clone() } else { Ref::new(made) };
        self.buffers.insert(buffer.clone(), made.clone());
        made
    }
}

impl StmtMutator for Exchange {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        self.vars.get(var).unwrap_or(var).clone()
    }
}

/// `(kernel or statement, variables, others, buffers, others)`.
fn exchange(args: &Args<'_>) -> Result<Any, Error> {
    let (old_vars, new_vars): (Vec<Ref<Var>>, Vec<Ref<Var>>) = (args.get(1)?, args.get(2)?);
    let (old, new): (Vec<Ref<Buffer>>, Vec<Ref<Buffer>>) = (args.get(3)?, args.get(4)?);
    if old_vars.len() != new_vars.len() || old.len() != new.len() {
        let message = "as many variables and buffers are needed as are exchanged";
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let mut exchange =
        Exchange { vars: old_vars.into_iter().zip(new_vars).collect(), buffers: old.into_iter().zip(new).collect() };
    let Ok(func) = args.get::<Ref<PrimFunc>>(0) else {
        return Ok(exchange.mutate_stmt(&args.get(0)?).into());
    };
    let params = func.params.iter().map(|param| exchange.mutate_var_def(param)).collect();
    let buffers = func.buffers.iter().map(|b| b.as_ref().map(|b| exchange.mutate_buffer_use(b))).collect();
    let body = exchange.mutate_stmt(&func.body);
    Ok(Ref::new(PrimFunc { params, buffers, body, ..PrimFunc::clone(&func) }).into())
}
