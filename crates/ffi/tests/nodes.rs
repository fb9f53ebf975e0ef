//! A small IR made with the derives: reflection, families, structural equality and hashing.
//! The derives are usable where unsafe code is forbidden.
#![forbid(unsafe_code)]

use relaxide_ffi::{
    Any, DataType, Field, FreeVars, Handle, Object, ObjectEnum, ObjectRef, PathStep, Ref, Weak, structural_equal,
    structural_hash,
};

#[derive(Object, Debug)]
#[object(key = "test.Var", parent = "test.Expr", var)]
struct Var {
    #[field(ignore)]
    name: String,
    dtype: DataType,
}

#[derive(Object, Debug)]
#[object(key = "test.Const", parent = "test.Expr")]
struct Const {
    value: i64,
}

#[derive(Object, Debug)]
#[object(key = "test.Call", parent = "test.Expr")]
struct Call {
    op: String,
    args: Vec<Expr>,
    #[field(ignore)]
    span: Option<i64>,
}

#[derive(Object, Debug)]
#[object(key = "test.Lambda", parent = "test.Expr")]
struct Lambda {
    #[field(def)]
    params: Vec<Ref<Var>>,
    body: Expr,
    #[field(hidden)]
    _cache: std::sync::OnceLock<usize>,
}

#[derive(ObjectEnum, Debug)]
enum Leaf {
    Var(Ref<Var>),
    Const(Ref<Const>),
}

#[derive(ObjectEnum, Debug)]
enum Expr {
    Leaf(Leaf),
    Call(Ref<Call>),
    Lambda(Ref<Lambda>),
}

#[derive(Object, Debug)]
#[object(key = "test.Nothing")]
struct Nothing;

fn var(name: &str) -> Ref<Var> {
    Ref::new(Var { name: name.into(), dtype: DataType::int(64) })
}

fn leaf(var: &Ref<Var>) -> Expr {
    Leaf::from(var).into()
}

fn constant(value: i64) -> Expr {
    Leaf::from(Ref::new(Const { value })).into()
}

fn call(op: &str, args: Vec<Expr>) -> Expr {
    Ref::new(Call { op: op.into(), args, span: None }).into()
}

fn lambda(params: Vec<Ref<Var>>, body: Expr) -> Expr {
    Ref::new(Lambda { params, body, _cache: Default::default() }).into()
}

#[test]
fn functions_are_equal_up_to_the_names_of_their_variables() {
    let make = |x: &str, y: &str| {
        let (x, y) = (var(x), var(y));
        lambda(vec![x.clone(), y.clone()], call("sub", vec![leaf(&x), leaf(&y)]))
    };
    let (a, b) = (make("a", "b"), make("p", "q"));
    assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
    assert_eq!(structural_hash(&a, FreeVars::Same), structural_hash(&b, FreeVars::Same));
    let (x, y) = (var("x"), var("y"));
    let swapped = lambda(vec![x.clone(), y.clone()], call("sub", vec![leaf(&y), leaf(&x)]));
    assert!(structural_equal(&a, &swapped, FreeVars::Same).is_err());
    assert_ne!(structural_hash(&a, FreeVars::Same), structural_hash(&swapped, FreeVars::Same));
}

#[test]
fn a_shared_body_is_not_equal_to_itself_under_swapped_parameters() {
    let (x, y) = (var("x"), var("y"));
    let body = call("sub", vec![leaf(&x), leaf(&y)]);
    let a = lambda(vec![x.clone(), y.clone()], body.clone());
    let b = lambda(vec![y, x], body);
    assert!(structural_equal(&a, &b, FreeVars::Same).is_err());
}

#[test]
fn free_variables_equal_themselves_unless_they_are_mapped() {
    let (x, y) = (var("x"), var("y"));
    let (a, b) = (call("neg", vec![leaf(&x)]), call("neg", vec![leaf(&y)]));
    assert!(structural_equal(&a, &a.clone(), FreeVars::Same).is_ok());
    assert!(structural_equal(&a, &b, FreeVars::Same).is_err());
    assert!(structural_equal(&a, &b, FreeVars::Mapped).is_ok());
    assert_eq!(structural_hash(&a, FreeVars::Mapped), structural_hash(&b, FreeVars::Mapped));
    let twice = call("add", vec![leaf(&x), leaf(&x)]);
    let mixed = call("add", vec![leaf(&x), leaf(&y)]);
    assert!(structural_equal(&twice, &mixed, FreeVars::Mapped).is_err(), "one variable cannot stand for two");
    assert!(structural_equal(&mixed, &twice, FreeVars::Mapped).is_err());
}

#[test]
fn a_mismatch_says_where_and_what() {
    let a = call("f", vec![constant(1), call("g", vec![constant(2), constant(3)])]);
    let b = call("f", vec![constant(1), call("g", vec![constant(2), constant(4)])]);
    let mismatch = structural_equal(&a, &b, FreeVars::Same).unwrap_err();
    let args = || PathStep::Field("args".into());
    let expected = [args(), PathStep::Index(1), args(), PathStep::Index(1)];
    assert_eq!(mismatch.path[..4], expected);
    assert_eq!(mismatch.to_string(), "at <root>.args[1].args[1].value: 3 differs from 4");
    let other = call("f", vec![constant(1), constant(2)]);
    let mismatch = structural_equal(&a, &other, FreeVars::Same).unwrap_err();
    assert_eq!(mismatch.to_string(), "at <root>.args[1]: a test.Call against a test.Const");
}

#[test]
fn ignored_fields_do_not_count() {
    let a = Ref::new(Call { op: "f".into(), args: vec![], span: Some(1) });
    let b = Ref::new(Call { op: "f".into(), args: vec![], span: Some(2) });
    assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
    assert_eq!(structural_hash(&a, FreeVars::Same), structural_hash(&b, FreeVars::Same));
    assert_ne!(a, b);
}

#[test]
fn deeply_shared_graphs_are_compared_in_linear_time() {
    let tower = || (0..200).fold(constant(1), |below, _| call("add", vec![below.clone(), below]));
    let (a, b) = (tower(), tower());
    assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
    assert_eq!(structural_hash(&a, FreeVars::Same), structural_hash(&b, FreeVars::Same));
}

#[test]
fn fields_are_read_by_name() {
    let node: ObjectRef = call("f", vec![constant(7)]).into();
    assert_eq!(relaxide_ffi::reflect::field_names(&node), ["op", "args", "span"]);
    assert_eq!(node.field("op").unwrap().as_str(), Some("f"));
    assert!(node.field("span").unwrap().is_none());
    assert!(node.field("missing").is_none());
    let args: Vec<Expr> = node.field("args").unwrap().to().unwrap();
    assert_eq!(args[0].as_object().field("value").unwrap().as_int(), Some(7));
    let lambda: ObjectRef = lambda(vec![], constant(0)).into();
    assert_eq!(relaxide_ffi::reflect::field_names(&lambda), ["params", "body"]);
    assert_eq!(lambda.type_key(), "test.Lambda");
    let parent = relaxide_ffi::type_info::type_index_of_key("test.Expr").unwrap();
    assert!(relaxide_ffi::type_info::is_instance(lambda.type_index(), parent));
}

#[test]
fn families_take_their_members_and_nothing_else() {
    let object: ObjectRef = constant(3).into();
    assert!(matches!(Expr::try_from(object.clone()), Ok(Expr::Leaf(Leaf::Const(c))) if c.value == 3));
    let nothing: ObjectRef = Ref::new(Nothing).into();
    let error = Expr::try_from(nothing.clone()).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: expected `Expr` but got `test.Nothing`");
    assert!(nothing.clone().downcast::<Const>().is_err());
    assert!(Any::from(nothing).to::<Expr>().is_err());
    assert!(Any::from(1i64).to::<Expr>().is_err());
    assert!(Expr::try_from_object(object).is_ok());
}

#[test]
fn counts_follow_the_handles() {
    let node = Ref::new(Const { value: 1 });
    assert_eq!(Ref::strong_count(&node), 1);
    let value = Any::from(node.clone());
    let expr = Expr::from(Leaf::from(&node));
    let copy = value.clone();
    assert_eq!(Ref::strong_count(&node), 4);
    drop((value, copy));
    let weak: Weak<Const> = Ref::downgrade(&node);
    assert_eq!(Ref::strong_count(&weak.upgrade().unwrap()), 3);
    drop((node, expr));
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_value_is_copied_before_it_changes_unless_it_is_ours_alone() {
    #[derive(Object, Clone)]
    #[object(key = "test.Counter")]
    struct Counter {
        n: i64,
    }
    let mut a = Ref::new(Counter { n: 1 });
    let address = Ref::as_ptr(&a);
    Ref::make_mut(&mut a).n = 2;
    assert_eq!(Ref::as_ptr(&a), address);
    let b = a.clone();
    assert!(Ref::get_mut(&mut a).is_none());
    Ref::make_mut(&mut a).n = 3;
    assert_eq!((a.n, b.n), (3, 2));
}

#[test]
fn values_are_dropped_once() {
    struct Probe(std::sync::Arc<()>);
    #[derive(Object)]
    #[object(key = "test.Holder")]
    struct Holder {
        #[field(hidden)]
        _probe: Probe,
    }
    let shared = std::sync::Arc::new(());
    let holder = Ref::new(Holder { _probe: Probe(shared.clone()) });
    let array = relaxide_ffi::Array::from_vec(vec![Any::from(&holder), Any::from(&holder), holder.to_any()]);
    assert_eq!(std::sync::Arc::strong_count(&shared), 2);
    drop(holder);
    assert_eq!(std::sync::Arc::strong_count(&shared), 2);
    drop(array);
    assert_eq!(std::sync::Arc::strong_count(&shared), 1);
    let _ = |holder: &Holder| holder._probe.0.clone();
}
