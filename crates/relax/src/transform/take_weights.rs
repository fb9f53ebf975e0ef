//! Weights that come in one tuple: each is taken from it in front of where it is first used.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::{Type, Var};

use crate::functor::{VarReplacer, used_vars};
use crate::*;

/// Takes weights from a tuple as they are met.
pub(super) struct WeightTuple {
    pub(super) tuple: Ref<Var>,
    /// Where each weight is in the tuple.
    places: HashMap<AnyVar, usize>,
    /// Whether a weight is dropped from the tuple once it is taken.
    consume: bool,
    pub(super) replace: VarReplacer,
}

impl WeightTuple {
    pub(super) fn new(name: &str, weights: &[Ref<Var>], consume: bool) -> WeightTuple {
        let tuple = Var::new(name, Type::tuple(weights.iter().map(|w| w.ty.clone()).collect::<Vec<_>>()));
        let places = weights.iter().enumerate().map(|(i, w)| (AnyVar::Var(w.clone()), i)).collect();
        WeightTuple { tuple, places, consume, replace: VarReplacer::default() }
    }

    /// Takes those of some variables that are weights and not taken yet; `outlive` says which are used outside of the block.
    pub(super) fn take(&mut self, used: &[AnyVar], outlive: impl Fn(&AnyVar) -> bool, out: &mut Vec<Binding>) {
        for weight in used {
            let Some(place) = self.places.get(weight).copied() else { continue };
            if self.replace.0.contains_key(weight) {
                continue;
            }
            let (name, ty) = (weight.name().to_string(), weight.ty().clone());
            let var = match outlive(weight) {
                true => AnyVar::Var(Var::new(name, ty)),
                false => AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span: None })),
            };
            let value = Expr::field(self.tuple.clone(), place);
            out.push(Ref::new(VarBinding { var: var.clone(), value }).into());
            self.replace.0.insert(weight.clone(), var.into());
            if self.consume {
                out.push(self.drop_item(place));
            }
        }
    }

    /// A body whose weights come from the tuple.
    pub(super) fn in_body(&mut self, body: &SeqExpr) -> Ref<SeqExpr> {
        let of_block = |b: &Ref<BindingBlock>| -> HashSet<AnyVar> {
            b.bindings.iter().flat_map(|binding| used_vars(binding.value())).collect()
        };
        let used: Vec<HashSet<AnyVar>> = body.blocks.iter().map(of_block).collect();
        let last: Vec<AnyVar> = used_vars(&body.body);
        let mut blocks: Vec<Ref<BindingBlock>> = Vec::with_capacity(body.blocks.len());
        for (i, block) in body.blocks.iter().enumerate() {
            let later = |v: &AnyVar| last.contains(v) || used[i + 1..].iter().any(|block| block.contains(v));
            let mut bindings = Vec::with_capacity(block.bindings.len());
            for binding in &block.bindings {
                self.take(&used_vars(binding.value()), |v| !block.dataflow || later(v), &mut bindings);
                bindings.push(self.replace.remake_binding(binding));
            }
            blocks.push(Ref::new(BindingBlock { bindings, dataflow: block.dataflow }));
        }
        let mut bindings = Vec::new();
        self.take(&last, |_| true, &mut bindings);
        if !bindings.is_empty() {
            blocks.push(Ref::new(BindingBlock { bindings, dataflow: false }));
        }
        Ref::new(SeqExpr { blocks, body: self.replace.mutate_expr(&body.body) })
    }

    /// Drops an item of the tuple, so that its memory can go.
    fn drop_item(&self, place: usize) -> Binding {
        let place = relaxide_ir::prim::int_of(relaxide_ffi::DataType::int(32), place as i64);
        let args = vec![Expr::external("vm.builtin.tuple_reset_item"), self.tuple.clone().into(), Expr::prim(place)];
        let ty = Type::void();
        let value = Ref::new(Call {
            op: op::Op::get("call_pure_packed").into(),
            args,
            attrs: relaxide_ir::Attrs::new(),
            ty_args: vec![ty.clone()],
            ty: ty.clone(),
            span: None,
        });
        let var = Ref::new(DataflowVar { name: "_".into(), ty, span: None });
        Ref::new(VarBinding { var: var.into(), value: value.into() }).into()
    }
}
