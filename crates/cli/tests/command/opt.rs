//! `relaxide opt`, `explain` and `completions`.

use crate::workplace::Workplace;

#[test]
fn passes_are_run_timed_and_listed() {
    let place = Workplace::with_models();
    let text = place.ok("opt model.relax --passes LegalizeOps,FuseOps").out;
    assert!(text.contains("@T.prim_func") && text.contains("R.call_tir"), "{text}");
    let timed = place.ok("opt model.relax --passes LegalizeOps --timing -o legal.py");
    assert!(timed.out.is_empty() && timed.err.contains("LegalizeOps") && timed.err.contains("total"), "{}", timed.err);
    assert_eq!(place.ok("opt legal.py").code, 0, "what is written is read");
    let answer = place.json("opt model.relax --passes LegalizeOps,FuseOps -o legal.py");
    assert_eq!(answer["passes"][1]["pass"], "FuseOps");
    let list = place.json("opt --list");
    let names: Vec<&str> = list["passes"].as_array().unwrap().iter().filter_map(|pass| pass["name"].as_str()).collect();
    assert!(names.contains(&"ToMixedPrecision") && names.contains(&"FuseOps"));
    let unknown = place.run("opt model.relax --passes FuseOp");
    assert!(unknown.code == 2 && unknown.err.starts_with("error[E0301]"), "{}", unknown.err);
    assert_eq!(place.run("opt").code, 2);
}

#[test]
fn codes_are_explained() {
    let place = Workplace::new();
    assert!(place.ok("explain e0606").out.starts_with("E0606: An input has another element type"));
    assert!(place.ok("explain").out.lines().count() > 20);
    assert_eq!(place.json("explain E0101")["codes"][0]["code"], "E0101");
    assert_eq!(place.run("explain E9999").code, 2);
}

#[test]
fn shells_get_their_completions() {
    let place = Workplace::new();
    for (shell, sign) in [("bash", "_relaxide()"), ("zsh", "#compdef relaxide"), ("fish", "complete -c relaxide")] {
        let script = place.ok(&format!("completions {shell}")).out;
        assert!(script.contains(sign) && script.contains("inspect"), "{shell}");
    }
    assert_eq!(place.run("completions tcl").code, 2);
}

#[test]
fn help_has_examples_for_every_command() {
    let place = Workplace::new();
    let overview = place.ok("--help").out;
    let commands = overview.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for name in names.iter().filter(|name| !matches!(**name, "help" | "(s)")) {
        let help = place.ok(&format!("{name} --help")).out;
        assert!(help.contains("Example"), "relaxide {name} --help has no example");
    }
}
