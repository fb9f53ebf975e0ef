//! Patterns against small graphs.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Attrs, Type, Var};

use super::*;
use crate::*;

fn matrix() -> Type {
    Type::tensor([4i64, 4], DataType::float(32))
}

/// `main(x, w, u)`: a = matmul(x, w), b = relu(a), c = add(u, b), t = (a, c), d = t[0], e = multiply(d, c).
fn program() -> (BlockBuilder, Ref<Function>) {
    let params: Vec<_> = ["x", "w", "u"].map(|name| Var::new(name, matrix())).to_vec();
    let [x, w, u] = [0, 1, 2].map(|i| Expr::Var(params[i].clone()));
    let mut b = BlockBuilder::new();
    let main = b
        .function::<BuildError>(params, Attrs::new(), |b| {
            b.begin_dataflow()?;
            let call = |name: &str, args: &[Expr]| op::call(name, args.to_vec(), Attrs::new());
            let a = b.emit_named("a", call("matmul", &[x, w])?)?;
            let r = b.emit_named("b", call("nn.relu", std::slice::from_ref(&a))?)?;
            let c = b.emit_named("c", call("add", &[u, r])?)?;
            let t = b.emit_named("t", Expr::tuple([a, c.clone()]))?;
            let d = b.emit_named("d", Expr::field(t, 0))?;
            let e = b.emit_output_named("e", call("multiply", &[d, c])?)?;
            b.end_dataflow()?;
            Ok(e)
        })
        .expect("the program is right");
    (b, main)
}

fn value(func: &Function, name: &str) -> Expr {
    let mut bindings = func.body.blocks.iter().flat_map(|b| &b.bindings);
    bindings.find(|b| b.var().name() == name).expect("the variable is bound").value().clone()
}

fn parsed(text: &str) -> Pattern {
    parse_pattern(text).expect("the text is right").0
}

fn is_match(text: &str, name: &str) -> bool {
    let (_, func) = program();
    match_expr(&parsed(text), &value(&func, name), &values_of(&func)).is_some()
}

#[test]
fn patterns_match_through_variables() {
    for (text, name, expected) in [
        ("relax.nn.relu(relax.matmul(*, *))", "b", true),
        ("relax.nn.relu(relax.add(*, *))", "b", false),
        ("add(nn.relu(*), var u)", "c", true),
        ("subtract(*, *)", "c", false),
        ("multiply((*, *).0, *)", "e", true),
        ("multiply(*.1, *)", "e", false),
        ("multiply(*._, *)", "e", true),
        ("add(...)", "c", true),
        ("add(*)", "c", false),
        ("add(*, ...)", "c", true),
        ("(* & var a, add(...))", "t", true),
        ("(var c, *)", "t", false),
        ("matmul(*: float32, *)", "a", true),
        ("matmul(*: float16, *)", "a", false),
        ("matmul(*, *) | nn.relu(*)", "b", true),
        ("!matmul(*, *)", "b", true),
        ("!matmul(*, *)", "a", false),
        ("matmul(const, *)", "a", false),
        ("add(x=*, x)", "c", false),
    ] {
        assert_eq!(is_match(text, name), expected, "{text} on {name}");
    }
}

#[test]
fn the_parts_of_a_match_are_variables_and_values() {
    let (_, func) = program();
    let (x, w) = (wildcard(), wildcard());
    let product = is_op("matmul").call([x.clone(), w]);
    let pattern = is_op("nn.relu").call([product.clone()]);
    let found = match_expr(&pattern, &value(&func, "b"), &values_of(&func)).expect("it matches");
    let name = |part: &Pattern| found.operand(part).and_then(Expr::as_var).map(|v| v.name().to_string());
    assert_eq!(name(&x).as_deref(), Some("x"));
    assert_eq!(name(&product).as_deref(), Some("a"));
    assert_eq!(found.value(&product), Some(&value(&func, "a")));
}

#[test]
fn the_text_of_a_pattern_is_read_back() {
    for text in ["relax.nn.relu(relax.matmul(*, const))", "(*, var x).1", "@f(*, ...)", "!$g(*)", "* | const"] {
        assert_eq!(parsed(text).to_string(), text);
    }
    for wrong in ["", "relax.no_such_op(*)", "add(*", "add(*))", "*.x", "add(*){axis", &"(".repeat(500)] {
        assert!(parse_pattern(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn calls_are_rewritten_until_nothing_changes() {
    let (mut b, func) = program();
    let (x, w) = (wildcard(), wildcard());
    let pattern = is_op("matmul").call([x.clone(), w.clone()]);
    let mut rewriter = |_: &Expr, found: &Matches| {
        let part = |p: &Pattern| found.operand(p).cloned().expect("the part matched");
        Ok(op::call("subtract", [part(&x), part(&w)], Attrs::new())?)
    };
    let new = rewrite_call(&pattern, &mut rewriter, &func, &mut b).expect("it comes to rest");
    assert_eq!(value(&new, "a").as_op_call().map(|(_, name)| name.to_string()), Some("subtract".into()));
    assert!(new.body.blocks.iter().flat_map(|b| &b.bindings).all(|b| b.var().name() != "t"), "the tuple is used");
}

#[test]
fn a_rewriting_that_never_rests_is_an_error() {
    let (mut b, func) = program();
    let x = wildcard();
    let pattern = is_op("nn.relu").call([x.clone()]);
    let mut rewriter = |e: &Expr, _: &Matches| Ok(op::call("nn.relu", [e.clone()], Attrs::new())?);
    let error = rewrite_call(&pattern, &mut rewriter, &func, &mut b).expect_err("it goes on for ever");
    assert!(error.to_string().contains("does not come to rest"), "{error}");
}

#[test]
fn a_block_is_matched_by_a_graph_of_patterns() {
    let (_, func) = program();
    let block = &func.body.blocks[0];
    let (product, relu) = (is_op("matmul").call_any(), is_op("nn.relu").call_any());
    let found = |seq: PatternSeq| {
        let mut context = PatternContext::new();
        context.add_seq(&seq);
        context.match_block(block).map(|found| seq.patterns().iter().map(|p| found[p].name().to_string()).collect())
    };
    let names = |list: &[&str]| Some(list.iter().map(|s| (*s).to_string()).collect::<Vec<_>>());
    assert_eq!(found(product.clone() ^ relu.clone()), names(&["a", "b"]));
    assert_eq!(found(product.clone() >> relu.clone()), None, "the tuple uses the product too");
    assert_eq!(found(relu.clone() >> is_op("add").call_any()), names(&["b", "c"]));
    assert_eq!(found(relu.used_by(is_op("add").call_any(), Some(0))), None, "it is the second argument");
    assert_eq!(found(product ^ wildcard() ^ wildcard()), names(&["a", "b", "c"]));
}

#[test]
fn bindings_are_rewritten_in_an_order_that_holds() {
    let (mut b, func) = program();
    let (u, w) = (wildcard(), wildcard());
    let (product, sum) = (is_op("matmul").call([wildcard(), w.clone()]), is_op("add").call([u.clone(), wildcard()]));
    let mut context = PatternContext::new();
    context.add(&product);
    context.add(&sum);
    // The product is made to need the sum's operand; the sum no longer needs the product.
    let mut rewriter = |found: &std::collections::HashMap<Pattern, AnyVar>, _: &VarValues| {
        let of = |p: &Pattern| Expr::from(found[p].clone());
        let negated = op::call("negative", [of(&w)], Attrs::new())?;
        let new_sum = op::call("abs", [negated], Attrs::new())?;
        let new_product = op::call("exp", [of(&sum)], Attrs::new())?;
        Ok([(found[&sum].clone(), new_sum), (found[&product].clone(), new_product)].into_iter().collect())
    };
    let new = rewrite_bindings(&context, &mut rewriter, &func, &mut b).expect("it comes to rest");
    let names: Vec<_> = new.body.blocks[0].bindings.iter().map(|b| b.var().name().to_string()).collect();
    assert_eq!(names, ["lv", "c", "a", "t", "d", "e"]);
}
