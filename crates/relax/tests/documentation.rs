//! `docs/operators.md` says what the registry says. `cargo xtask operators` writes it anew.

use std::collections::HashMap;

use relaxide_relax::op::{self, Arity, AttrDef, AttrDefault, Lowering, MixedPrecision, OpDef};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const HEAD: &str = "\
# Operators

This page is written by `cargo xtask operators` from the registry (`crates/relax/src/op`); what is tested comes from
`tests/operators/tested.txt`. A text names an operator `R.NAME`, Python `relax.op.NAME`.

*Executed*: `kernel`, one made for each call; `operators`, a few others; `VM`, a builtin; `pass`, a pass or code
generation knows it. *Fused*: how freely a kernel may be fused with its neighbours. *Hooks*: **g**radient, **l**ayout,
**m**ixed precision (`M` always in low precision, `m` where its arguments are). *Dtypes* are those that tests use.

";

/// What tests cover of each operator: dtypes, and what they compare with.
fn tested() -> HashMap<String, (String, String)> {
    let path = format!("{ROOT}/tests/operators/tested.txt");
    let text = std::fs::read_to_string(path).expect("the list of tests is in the repository");
    let row = |line: &str| {
        let [name, dtypes, against] = line.split(" | ").collect::<Vec<_>>().try_into().ok()?;
        Some((name.to_string(), (dtypes.to_string(), against.to_string())))
    };
    text.lines().filter_map(row).collect()
}

fn default(attr: &AttrDef) -> String {
    match attr.default {
        AttrDefault::Required => attr.name.to_string(),
        AttrDefault::None | AttrDefault::Same(_) | AttrDefault::Void => format!("{}=None", attr.name),
        AttrDefault::Bool(v) => format!("{}={}", attr.name, if v { "True" } else { "False" }),
        AttrDefault::Int(v) => format!("{}={v}", attr.name),
        AttrDefault::Float(v) => format!("{}={v:?}", attr.name),
        AttrDefault::Str(v) => format!("{}={v:?}", attr.name),
        AttrDefault::Ints(v) => format!("{}={v:?}", attr.name),
        AttrDefault::Zeros(n) => format!("{}={:?}", attr.name, vec![0.0; n]),
    }
}

fn signature(def: &OpDef) -> String {
    let arg = |a: &op::ArgDef| match a.arity {
        Arity::Required => a.name.to_string(),
        Arity::Optional => format!("{}=None", a.name),
        Arity::Variadic => format!("*{}", a.name),
    };
    let names: Vec<String> = def.args.iter().map(arg).chain(def.attrs.iter().map(default)).collect();
    names.join(", ")
}

fn hooks(def: &OpDef) -> String {
    let precision = match def.mixed_precision {
        MixedPrecision::Always(_) => "M",
        MixedPrecision::Follow => "m",
        MixedPrecision::Never => "",
    };
    let mut text = String::new();
    text += if def.gradient.is_some() { "g" } else { "" };
    text += if def.layout.is_some() { "l" } else { "" };
    text + precision
}

fn page() -> String {
    let tested = tested();
    let mut defs: Vec<&OpDef> = op::all().collect();
    defs.sort_by_key(|d| (d.name.contains('.'), d.name));
    let mut text = HEAD.to_string();
    text += "| operator | does | executed | fused | hooks | dtypes | tested against |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for def in defs {
        let way = match def.lower {
            Lowering::Scalar(_) | Lowering::Compute(_) => "kernel",
            Lowering::Decompose(_) => "operators",
            Lowering::Builtin(_) => "VM",
            Lowering::Special => "pass",
        };
        let fused = if way == "kernel" { format!("{:?}", def.pattern) } else { String::new() };
        let none = (String::new(), "programs".to_string());
        let (dtypes, against) = tested.get(def.name).unwrap_or(&none);
        let doc = def.doc.replace('|', "\\|");
        let effect = if def.pure { "" } else { " Not pure." };
        let (name, signature, hooks) = (def.name, signature(def), hooks(def));
        text +=
            &format!("| `{name}({signature})` | {doc}{effect} | {way} | {fused} | {hooks} | {dtypes} | {against} |\n");
    }
    text
}

#[test]
fn the_page_of_operators_is_current() {
    let path = format!("{ROOT}/docs/operators.md");
    if std::env::var_os("RELAXIDE_BLESS").is_some() {
        std::fs::write(path, page()).expect("the page can be written");
        return;
    }
    let found = std::fs::read_to_string(path).expect("the page is in the repository");
    assert!(found == page(), "docs/operators.md is out of date: run `cargo xtask operators`");
}

#[test]
fn every_operator_that_makes_values_is_tested() {
    let tested = tested();
    let elsewhere = ["call_", "ccl.", "dist.", "vm.", "memory.", "builtin."];
    let missing: Vec<&str> = op::all()
        .filter(|d| matches!(d.lower, Lowering::Scalar(_) | Lowering::Compute(_) | Lowering::Decompose(_)))
        .map(|d| d.name)
        .filter(|name| !elsewhere.iter().any(|p| name.starts_with(p)) && !tested.contains_key(*name))
        .collect();
    assert_eq!(missing, ["hint_on_device"], "add cases in tests/operators, and run list_tested.py there");
}
