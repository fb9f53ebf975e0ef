//! Each schedule rule, and each pass over kernels, is shown by a file.

use std::collections::BTreeSet;
use std::path::Path;

use libtest_mimic::Failed;
use relaxide_testkit::filetest::discover;
use relaxide_tir::{lower, schedule};

/// Fails with the names of the rules and passes that no file in `root` is about.
pub fn check(root: &Path) -> Result<(), Failed> {
    let (mut rules, mut passes): ([BTreeSet<String>; 2], String) = Default::default();
    for path in discover(root)? {
        let text = std::fs::read_to_string(&path)?;
        let (input, expected) = text.split_once("# ----\n").unwrap_or((&text, ""));
        match input.lines().next() {
            Some("# test: schedule") => note_rules(input, expected, &mut rules),
            Some(line) => passes.push_str(line),
            None => {}
        }
    }
    let [own, of_devices] = schedule::rule_names();
    let mut missing: Vec<String> = Vec::new();
    for (kind, names, shown) in [("processors", own, &rules[0]), ("devices", of_devices, &rules[1])] {
        let lacks = names.into_iter().filter(|name| !shown.contains(*name));
        missing.extend(lacks.map(|name| format!("no test of kind `schedule` shows the rule `{name}` for {kind}")));
    }
    for pass in lower::PASSES {
        let short = pass.name.rsplit('.').next().unwrap_or(pass.name);
        if !passes.contains(pass.name)
            && !passes.contains(short)
            && !ELSEWHERE.iter().any(|(name, _)| *name == pass.name)
        {
            missing.push(format!("no test names the pass `{}`", pass.name));
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\n").into()) }
}

/// Passes that no file can be about, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("s_tir.transform.ApplyScheduleRules", "the tests of kind `schedule` are about it"),
    (
        "tirx.transform.ConvertSSA",
        "text gives each definition a variable of its own; unit tests build kernels that do not",
    ),
    ("s_tir.transform.ConvertSSA", "as above"),
];

/// The rules that an expectation names in its notes, `# stage: rule, parameters`.
fn note_rules(input: &str, expected: &str, rules: &mut [BTreeSet<String>; 2]) {
    let is_device = |target: &str| target.starts_with("opencl") || target.starts_with("cuda");
    let mut device = input.lines().filter_map(|line| line.strip_prefix("# target: ")).any(is_device);
    for line in expected.lines().filter_map(|line| line.strip_prefix("# ")) {
        if let Some(target) = line.strip_prefix("==== ") {
            device = is_device(target);
        } else if let Some((_, rule)) = line.split_once(": ").filter(|_| !line.starts_with(' ')) {
            let rule = rule.split([',', '(']).next().unwrap_or(rule).trim();
            rules[usize::from(device)].insert(rule.to_string());
        }
    }
}
