//! Operators that a program adds to those of the [tables](super::all): a name, and what was said of it.
//!
//! Such an operator takes any arguments and attributes. The type of a call follows from a [`TypeRule`]; a call becomes something
//! that runs by [`note_lowering`](crate::transform::note_lowering). Until a program says that its calls have no effects, they are
//! taken to have some.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use relaxide_ffi::Ref;
use relaxide_ir::Type;

use super::{ArgDef, CallCx, Op, OpDef, OpError};
use crate::Call;

/// The type of a call, which has none yet; or what is wrong with the call.
pub type TypeRule = dyn Fn(&Ref<Call>) -> Result<Type, OpError> + Send + Sync;

/// What was said of an operator.
struct Registered {
    def: &'static OpDef,
    infer: Option<Arc<TypeRule>>,
}

static REGISTERED: RwLock<Option<HashMap<&'static str, Registered>>> = RwLock::new(None);

/// A name as the table of operators has it.
fn plain(name: &str) -> &str {
    name.strip_prefix("relax.").unwrap_or(name)
}

/// The definition of an operator that a program added.
pub(super) fn lookup(name: &str) -> Option<&'static OpDef> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.as_ref()?.get(name).map(|op| op.def)
}

/// Adds an operator, if there is none of that name. What is added stays as long as the process.
pub fn register(name: &str) -> &'static OpDef {
    if let Some(known) = super::lookup(name) {
        return known;
    }
    let name: &'static str = Box::leak(plain(name).to_string().into_boxed_str());
    let def = leaked(OpDef {
        name,
        doc: "An operator of the program.",
        args: const { &[ArgDef::any("args", "The arguments.").variadic()] },
        infer,
        pure: false,
        ..OpDef::BASE
    });
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.get_or_insert_default().entry(name).or_insert(Registered { def, infer: None }).def
}

/// Definitions are handed out for ever, so that a change of one is another; programs say such things once.
fn leaked(def: OpDef) -> &'static OpDef {
    Box::leak(Box::new(def))
}

/// Says how the type of a call follows; `None` takes that back. Operators of the tables keep their own rule.
pub fn note_type_rule(name: &str, rule: Option<Arc<TypeRule>>) {
    change(name, |op| op.infer = rule);
}

/// Says whether calls have no visible effect but their result. Operators of the tables stay what they are.
pub fn note_purity(name: &str, pure: bool) {
    change(name, |op| {
        if op.def.pure != pure {
            op.def = leaked(OpDef { pure, ..*op.def });
        }
    });
}

fn change(name: &str, change: impl FnOnce(&mut Registered)) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(op) = registered.as_mut().and_then(|registered| registered.get_mut(plain(name))) {
        change(op);
    }
}

fn infer(cx: &CallCx) -> Result<Type, OpError> {
    // The rule is the program's and may call operators: nothing is locked while it runs.
    let rule = {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        registered.as_ref().and_then(|registered| registered.get(cx.name())?.infer.clone())
    };
    let Some(rule) = rule else {
        return cx.invalid("has no type rule: say the type of the call, or note `FInferType` of the operator");
    };
    let call = Call {
        op: Op::get(cx.name()).into(),
        args: cx.args.to_vec(),
        attrs: cx.attrs.clone(),
        ty_args: cx.ty_args.to_vec(),
        ty: Type::missing(),
        span: None,
    };
    rule(&Ref::new(call))
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;
    use relaxide_ir::Attrs;

    use super::*;
    use crate::op;

    #[test]
    fn what_a_program_adds_is_found_and_typed_by_its_rule() {
        let float = Type::tensor([2], DataType::float(32));
        let x = relaxide_ir::Var::new("x", float.clone());
        let call = |attrs| op::call("tests.same", vec![x.clone().into()], attrs);
        assert_eq!(call(Attrs::new()).unwrap_err(), OpError::Unknown("tests.same".into()));
        assert!(!register("tests.same").pure);
        let error = call(Attrs::new()).unwrap_err().to_string();
        assert!(error.contains("tests.same") && error.contains("FInferType"), "{error}");
        note_type_rule("tests.same", Some(Arc::new(|call: &Ref<Call>| Ok(call.args[0].ty()))));
        note_purity("tests.same", true);
        assert!(op::lookup("tests.same").unwrap().pure);
        let typed = call(Attrs::new().with("axis", 1)).unwrap();
        assert!(crate::shape::same_type(&typed.ty(), &float));
    }

    #[test]
    fn operators_of_the_tables_stay() {
        assert!(std::ptr::eq(register("relax.add"), op::lookup("add").unwrap()));
        note_purity("add", false);
        note_type_rule("add", Some(Arc::new(|_: &Ref<Call>| Err(OpError::invalid("add", "no")))));
        assert!(op::lookup("add").unwrap().pure);
    }
}
