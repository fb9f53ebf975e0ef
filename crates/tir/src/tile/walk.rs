//! What passes see of the arguments of tile primitives.

use relaxide_ffi::{Any, Array, Ref};
use relaxide_ir::prim::PrimExpr;

use super::{LambdaExpr, TilePrimitiveCall};
use crate::functor::{StmtMutator, StmtVisitor};
use crate::{BufferRegion, Range};

/// Visits the expressions of a call.
pub(crate) fn visit(visitor: &mut dyn StmtVisitor, call: &TilePrimitiveCall) {
    call.args.iter().for_each(|arg| visit_argument(visitor, arg));
}

fn visit_argument(visitor: &mut dyn StmtVisitor, arg: &Any) {
    if let Ok(items) = arg.to::<Array>() {
        return items.iter().for_each(|item| visit_argument(visitor, item));
    }
    let Some(object) = arg.as_object() else { return };
    if let Some(region) = object.downcast_ref::<BufferRegion>() {
        for range in &region.region {
            visitor.visit_prim(&range.min);
            visitor.visit_prim(&range.extent);
        }
    } else if let Some(lambda) = object.downcast_ref::<LambdaExpr>() {
        visitor.visit_prim(&lambda.pred);
    } else if let Ok(scalar) = PrimExpr::try_from(object.clone()) {
        visitor.visit_prim(&scalar);
    }
}

/// A call with its expressions and buffers rebuilt.
pub(crate) fn mutated(mutator: &mut dyn StmtMutator, call: &TilePrimitiveCall) -> TilePrimitiveCall {
    TilePrimitiveCall {
        op: call.op.clone(),
        args: call.args.iter().map(|arg| mutated_argument(mutator, arg)).collect(),
        workspace: call
            .workspace
            .iter()
            .map(|(what, buffer)| (what.clone(), mutator.mutate_buffer_use(buffer)))
            .collect(),
        config: call.config.clone(),
        dispatch: call.dispatch.clone(),
        scope: call.scope.clone(),
    }
}

fn mutated_argument(mutator: &mut dyn StmtMutator, arg: &Any) -> Any {
    if let Ok(items) = arg.to::<Array>() {
        return items.iter().map(|item| mutated_argument(mutator, item)).collect::<Array>().into();
    }
    let Some(object) = arg.as_object() else { return arg.clone() };
    if let Some(region) = object.downcast_ref::<BufferRegion>() {
        let range = |range: &Ref<Range>| {
            Ref::new(Range { min: mutator.mutate_prim(&range.min), extent: mutator.mutate_prim(&range.extent) })
        };
        let ranges = region.region.iter().map(range).collect();
        return Ref::new(BufferRegion { buffer: mutator.mutate_buffer_use(&region.buffer), region: ranges }).into();
    }
    if let Some(lambda) = object.downcast_ref::<LambdaExpr>() {
        return Ref::new(LambdaExpr { vars: lambda.vars.clone(), pred: mutator.mutate_prim(&lambda.pred) }).into();
    }
    match PrimExpr::try_from(object.clone()) {
        Ok(scalar) => mutator.mutate_prim(&scalar).into(),
        Err(_) => arg.clone(),
    }
}
