//! Programs of tiles: where the device part begins, scope ids, operations of several threads on tiles.

use relaxide_ffi::{Any, Array, DataType, FreeVars, Ref, structural_equal};
use relaxide_ir::PrimExpr;
use relaxide_ir::layout::{Placement, ScopeKind};
use relaxide_tir::tile::{Default, LambdaExpr, Parameter, ScopeIdDefStmt, TILE_PREFIX, TilePrimitiveCall, primitive};
use relaxide_tir::{AttrStmt, BufferRegion, CommReducer, Stmt};

use super::Printer;
use crate::number::quoted;
use crate::parse::scope_id_function;

impl Printer<'_> {
    /// What a buffer's text says of its layout.
    pub(super) fn placement(&mut self, placement: &Placement) -> Option<String> {
        match placement {
            Placement::Strided => None,
            Placement::Unsaid => Some("layout=None".into()),
            Placement::By(layout) => Some(format!("layout={}", layout.text(&mut |e| self.prim(e)))),
        }
    }

    /// `T.device_entry()`, with what it is over behind it.
    pub(super) fn device_entry(&mut self, n: &Ref<AttrStmt>) {
        self.line("T.device_entry()");
        self.mark_last(&Stmt::Attr(n.clone()));
        self.stmt(&n.body);
    }

    /// `bx, by = T.cta_id([4, 2])`.
    pub(super) fn scope_ids(&mut self, n: &Ref<ScopeIdDefStmt>) {
        let def = &n.def;
        let function = scope_id_function(def.scope);
        let is_pair = def.scope == relaxide_ir::layout::ScopeBinding::ClusterCtaPair;
        let mut arguments: Vec<String> = Vec::new();
        if let Some(extents) = def.extents.as_ref().filter(|_| !is_pair) {
            arguments.push(format!("[{}]", self.prims(extents)));
        }
        if let Some(preferred) = &def.preferred_extents {
            arguments.push(format!("preferred=[{}]", self.prims(preferred)));
        }
        if let Some(dtype) = def.def_ids.first().map(|var| var.dtype()).filter(|dtype| dtype.to_string() != "int32") {
            arguments.push(format!("dtype={}", quoted(&dtype.to_string())));
        }
        let names: Vec<_> = def.def_ids.iter().map(|var| self.names.define(var.clone().into(), &var.name)).collect();
        self.line(format!("{} = T.{function}({})", names.join(", "), arguments.join(", ")));
        self.mark_last(&Stmt::ScopeIds(n.clone()));
    }

    /// `T.cta.copy(dst[0:64], src[0:64], dispatch="…")`.
    pub(super) fn tile_call(&mut self, n: &Ref<TilePrimitiveCall>) {
        let scope = if n.scope.kind == ScopeKind::Thread { "tile" } else { n.scope.kind.name() };
        let mut arguments: Vec<String> = n.args[..said(n)].iter().map(|arg| self.tile_argument(arg)).collect();
        if !n.workspace.is_empty() {
            let entries: Vec<_> =
                n.workspace.iter().map(|(what, buffer)| format!("{}: {}", quoted(what), self.buffer(buffer))).collect();
            arguments.push(format!("workspace={{{}}}", entries.join(", ")));
        }
        arguments.extend(n.dispatch.as_ref().map(|dispatch| format!("dispatch={}", quoted(dispatch))));
        let mut options: Vec<_> = n.config.0.iter().collect();
        options.sort_by_key(|(name, _)| *name);
        for (name, value) in options {
            arguments.push(format!("{name}={}", self.attr(value)));
        }
        self.line(format!("T.{scope}.{}({})", n.name(), arguments.join(", ")));
        self.mark_last(&Stmt::Tile(n.clone()));
    }

    fn tile_argument(&mut self, arg: &Any) -> String {
        if let Some(text) = arg.as_str() {
            return quoted(text.strip_prefix(TILE_PREFIX).unwrap_or(text));
        }
        if let Ok(items) = arg.to::<Array>() {
            let items: Vec<_> = items.iter().map(|item| self.tile_argument(item)).collect();
            let comma = if items.len() == 1 { "," } else { "" };
            return format!("({}{comma})", items.join(", "));
        }
        if let Ok(number) = arg.to::<i64>() {
            return number.to_string();
        }
        let Some(object) = arg.as_object() else { return "None".into() };
        if let Some(region) = object.downcast_ref::<BufferRegion>() {
            return self.whole_region(region);
        }
        if let Some(lambda) = object.downcast_ref::<LambdaExpr>() {
            self.names.push();
            let names: Vec<_> =
                lambda.vars.iter().map(|var| self.names.define(var.clone().into(), &var.name)).collect();
            let pred = self.prim(&lambda.pred);
            self.names.pop();
            return format!("lambda {}: {pred}", names.join(", "));
        }
        match PrimExpr::try_from(object.clone()) {
            Ok(scalar) => self.prim(&scalar),
            Err(_) => quoted(object.type_key()),
        }
    }

    /// `T.comm_reducer(lambda x, y: x + y, [T.float32(0.0)])`.
    pub(super) fn reducer(&mut self, reducer: &CommReducer) -> String {
        self.names.push();
        let vars = reducer.lhs.iter().chain(&reducer.rhs);
        let names: Vec<_> = vars.map(|var| self.names.define(var.clone().into(), &var.name)).collect();
        let result = match reducer.result.as_slice() {
            [one] => self.prim(one),
            several => format!("({})", self.prims(several)),
        };
        self.names.pop();
        format!("T.comm_reducer(lambda {}: {result}, [{}])", names.join(", "), self.prims(&reducer.identity_element))
    }

    /// A region that keeps its ranges of one element.
    fn whole_region(&mut self, region: &BufferRegion) -> String {
        if region.region.iter().any(|range| !range.extent.is_int(1)) {
            return self.region(region);
        }
        let name = self.buffer(&region.buffer);
        let ranges: Vec<_> = region
            .region
            .iter()
            .map(|range| {
                let end = relaxide_ir::prim::add(&range.min, &range.extent);
                format!("{}:{}", self.prim(&range.min), self.prim(&end))
            })
            .collect();
        format!("{name}[{}]", ranges.join(", "))
    }
}

/// How many arguments say something: those behind them are what they are where none is given.
fn said(n: &TilePrimitiveCall) -> usize {
    let Some(of) = primitive(n.name()).filter(|of| of.parameters.len() == n.args.len()) else { return n.args.len() };
    let is_default = |(parameter, arg): (&Parameter, &Any)| match parameter.default {
        Default::Required => false,
        Default::Absent => arg.is_none(),
        Default::First => n.args.first().is_some_and(|first| same(first, arg)),
        Default::No => scalar(arg).is_some_and(|e| e.dtype().is_bool() && e.is_int(0)),
        Default::LastAxis => arg
            .to::<Array>()
            .is_ok_and(|axes| axes.len() == 1 && axes.iter().all(|axis| axis.as_view().as_int() == Some(-1))),
        Default::Number(number) => scalar(arg).is_some_and(
            |e| matches!(e, PrimExpr::Float(imm) if imm.value == number && imm.dtype == DataType::float(32)),
        ),
    };
    let trailing = of.parameters.iter().zip(&n.args).rev().take_while(|pair| is_default((pair.0, pair.1))).count();
    n.args.len() - trailing
}

fn scalar(arg: &Any) -> Option<PrimExpr> {
    PrimExpr::try_from(arg.as_object()?.clone()).ok()
}

fn same(a: &Any, b: &Any) -> bool {
    let both = a.as_object().zip(b.as_object());
    both.is_some_and(|(a, b)| structural_equal(a, b, FreeVars::Same).is_ok())
}
