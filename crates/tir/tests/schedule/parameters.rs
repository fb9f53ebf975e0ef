//! Decisions of schedule rules: whatever a parameter may be, the kernel computes the same; what it may not be is refused.

use relaxide_ir::Target;
use relaxide_tir::schedule::{self, Note, Override, Overrides, Scheduled};
use serde_json::json;

use super::*;

/// Values of a domain that are tried, besides its last: all under `RELAXIDE_DEEP=1`, else so many that lie equally far apart. Domains are
/// short, as of rows of a tile, where each value is a nest of its own, or long, as of pieces, where neighbours differ in lengths.
fn most_values() -> usize {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { usize::MAX } else { 5 }
}

fn target() -> Target {
    Target::llvm("x86-64-v3")
}

fn scheduled(case: &Case, asked: &[Override]) -> Result<Scheduled, String> {
    let func = te::create_prim_func(&case.args).expect("a kernel");
    schedule::apply_with(&func, &target(), asked).map_err(|error| error.to_string())
}

fn one(note: &Note, name: &str, value: i64) -> Override {
    Override { stage: note.key.clone(), rule: note.rule.into(), values: vec![(name.into(), value)] }
}

/// Tries each value of each parameter of each piece, alone.
fn every_value(cases: &[Case]) {
    let mut found = Vec::new();
    for case in cases {
        let prepared = Prepared::of(case);
        let guessed = schedule::apply(&prepared.func, &target()).expect("a schedule");
        for (note, parameter) in guessed.notes.iter().flat_map(|n| n.parameters.iter().map(move |p| (n, p))) {
            assert!(!parameter.reason.is_empty() && !parameter.limit.is_empty(), "{parameter}");
            let values: Vec<i64> = parameter.domain.values().collect();
            let step = values.len().div_ceil(most_values()).max(1);
            for value in values.iter().step_by(step).chain(values.last()) {
                let asked = [one(note, &parameter.name, *value)];
                let problem = match schedule::apply_with(&prepared.func, &target(), &asked) {
                    Ok(scheduled) => prepared.difference(&scheduled.func),
                    Err(error) => Some(format!("{}: {error}", case.name)),
                };
                found.extend(problem.map(|text| format!("{} {} = {value}: {text}", note.key, parameter.name)));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn convolutions_are_right_with_every_value_of_every_parameter() {
    let small = Conv { channels: (2, 8), image: (5, 9), ..PLAIN };
    every_value(&[
        small.case("conv"),
        Conv { stride: (2, 2), symbolic: true, ..small }.case("conv"),
        Conv { depthwise: true, channels: (2, 2), ..small }.case("depthwise"),
        Conv { depthwise: true, channels: (2, 2), symbolic: true, stride: (1, 2), ..small }.case("depthwise"),
    ]);
}

#[test]
fn convolutions_in_panels_are_right_with_every_value_of_every_parameter() {
    let small = Conv { channels: (9, 40), image: (5, 9), panel: Some(16), ..PLAIN };
    every_value(&[
        small.case("conv"),
        Conv { stride: (2, 2), symbolic: true, ..small }.case("conv"),
        Conv { kernel: (1, 1), pad: (0, 0), channels: (9, 64), ..small }.case("conv"),
    ]);
}

/// A convolution of a signal.
fn signal(symbolic: bool, length: i64) -> Case {
    let mut d = Dims::new(symbolic);
    let width = d.dim("w", length);
    let a = te::placeholder("A", [int(3), &width + 2], F32);
    let weight = te::placeholder("W", [4, 3, 3], F32);
    let (c, r) = (te::reduce_axis(3), te::reduce_axis(3));
    let conv = te::compute("conv", [int(4), width], |i| {
        te::sum(a.at(&[c.var(), &i[1] + r.var()]) * weight.at(&[i[0].clone(), c.var(), r.var()]), [&c, &r])
    });
    d.case(format!("a signal of {length}, symbolic {symbolic}"), "conv", vec![a, weight, conv])
}

#[test]
fn signals_are_right_with_every_value_of_every_parameter() {
    every_value(&[signal(false, 150), signal(true, 70)]);
    // What is left behind the pieces has decisions of its own.
    let case = signal(false, 150);
    let cut = Override { stage: "conv".into(), rule: "conv".into(), values: vec![("piece".into(), 64)] };
    let notes = scheduled(&case, &[cut]).unwrap().notes;
    let names: Vec<&str> = notes[0].parameters.iter().map(|p| p.name.as_str()).collect();
    assert!(names.contains(&"rows") && names.contains(&"rest.rows"), "{names:?}");
}

#[test]
fn matrix_products_are_right_with_every_value_of_every_parameter() {
    every_value(&[
        matmul(false, (2, 21, 40, 9), false),
        matmul(false, (1, 13, 19, 40), true),
        matmul(true, (1, 19, 37, 6), false),
        matmul(true, (2, 9, 20, 11), true),
        matmul(false, (1, 1, 70, 5), false),
    ]);
}

#[test]
fn reductions_and_maps_are_right_with_every_value_of_every_parameter() {
    let mut d = Dims::new(true);
    let (h, w) = (d.dim("h", 19), d.dim("w", 41));
    let a = te::placeholder("A", [h.clone(), w.clone()], F32);
    let transposed = te::compute("T", [w, h], |i| relu(a.at(&[i[1].clone(), i[0].clone()])));
    let transposed = d.case("transpose".into(), "transpose", vec![a, transposed]);
    let a = te::placeholder("A", [3, 11], F32);
    let twice = te::compute("R", [6, 22], |i| a.at(&[prim::floordiv(&i[0], int(2)), prim::floordiv(&i[1], int(2))]));
    let twice = Dims::new(false).case("resize".into(), "interleave", vec![a, twice]);
    let a = te::placeholder("A", [3, 300], F32);
    let long = te::compute("L", [3, 300], |i| {
        prim::math("log1p", prim::math("exp", prim::math("tanh", a.at(i)) * prim::constant(F32, 0.5)))
    });
    let long = Dims::new(false).case("a long chain".into(), "elementwise", vec![a, long]);
    every_value(&[
        transposed,
        twice,
        long,
        reduction(false, [3, 5, 41], &[2], true),
        reduction(true, [3, 5, 41], &[1], false),
        reduction(false, [67, 1, 70], &[0], false),
        reduction(true, [9, 3, 40], &[0, 1], true),
    ]);
}

#[test]
fn rows_are_right_with_every_value_of_every_parameter() {
    every_value(&[
        softmax(false, &[20, 37], 1, "rowwise"),
        softmax(true, &[19, 21], 1, "rowwise"),
        softmax(false, &[3, 600], 1, "rowwise"),
        plain_norm(true, &[9, 20], 1),
    ]);
}

/// Sums of terms that are no plain products, of rows by panels of columns.
fn panels(symbolic: bool, [rows, terms, count, width]: [i64; 4]) -> Case {
    let mut d = Dims::new(symbolic);
    let m = d.dim("m", rows);
    let a = te::placeholder("A", [m.clone(), int(terms)], F32);
    let [b, s] = ["B", "S"].map(|name| te::placeholder(name, [count, terms, width], F32));
    let k = te::reduce_axis(terms);
    let sums = te::compute("panels", [m, int(count), int(width)], |i| {
        let place = [i[1].clone(), k.var(), i[2].clone()];
        te::sum(prim::math("fabs", a.at(&[i[0].clone(), k.var()]) - b.at(&place)) * s.at(&place), [&k])
    });
    let done = te::compute("D", sums.shape(), |i| relu(sums.at(i) - prim::constant(F32, 1.0)));
    d.case(
        format!("panels of {rows} rows by {count} of {width}, symbolic {symbolic}"),
        "column_terms",
        vec![a, b, s, done],
    )
}

#[test]
fn sums_by_panels_are_right_with_every_value_of_every_parameter() {
    let cases: Vec<Case> = [[1, 5, 3, 16], [2, 3, 1, 70], [7, 4, 2, 64], [13, 3, 2, 41]]
        .into_iter()
        .flat_map(|shape| [false, true].map(|symbolic| panels(symbolic, shape)))
        .collect();
    every_value(&cases);
    check(cases);
}

/// The decisions of some notes as a file holds them.
fn file(notes: &[Note]) -> String {
    let pieces: Vec<_> = notes.iter().map(Note::to_json).collect();
    json!({ "schedule": [{ "kernel": "k", "pieces": pieces }] }).to_string()
}

#[test]
fn what_is_printed_can_be_given_back() {
    for case in [PLAIN.case("conv"), softmax(true, &[19, 21], 1, "rowwise"), matmul(true, (1, 19, 37, 6), false)] {
        let guessed = scheduled(&case, &[]).unwrap();
        let text = file(&guessed.notes);
        let again = scheduled(&case, Overrides::from_json(&text).unwrap().of_kernel("k")).unwrap();
        assert_eq!(file(&again.notes), text);
        assert_eq!(again.func.to_string(), guessed.func.to_string(), "{}", case.name);
    }
}

#[test]
fn a_replaced_value_changes_the_kernel_and_what_is_said_of_it() {
    let case = PLAIN.case("conv");
    let guessed = scheduled(&case, &[]).unwrap();
    let rows = guessed.notes[0].parameters.iter().find(|p| p.name == "rows").unwrap();
    let other = if rows.value == 2 { 3 } else { 2 };
    let changed = scheduled(&case, &[one(&guessed.notes[0], "rows", other)]).unwrap();
    assert_ne!(changed.func.to_string(), guessed.func.to_string());
    let said = changed.notes[0].explained();
    assert!(said.contains(&format!("rows = {other} (of 1 to 7): as asked; the guess is {}", rows.value)), "{said}");
}

#[test]
fn another_rule_may_serve_a_stage() {
    let case = PLAIN.case("conv");
    let plain = Override { stage: "conv".into(), rule: "fallback".into(), values: Vec::new() };
    let served = scheduled(&case, &[plain]).unwrap();
    assert_eq!(served.notes[0].rule, "fallback");
    assert_eq!(Prepared::of(&case).difference(&served.func), None);
    // A map and the sum of its row, each for itself.
    let case = softmax(false, &[20, 37], 1, "rowwise");
    let apart = ["exps", "total"].map(|stage| {
        let rule = if stage == "exps" { "elementwise" } else { "reduction" };
        Override { stage: stage.into(), rule: rule.into(), values: Vec::new() }
    });
    let served = scheduled(&case, &apart).unwrap();
    let rules: Vec<&str> = served.notes.iter().map(|n| n.rule).collect();
    assert!(!rules.contains(&"cached_row"), "{rules:?}");
    assert_eq!(Prepared::of(&case).difference(&served.func), None);
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let case = PLAIN.case("conv");
    let of = |stage: &str, rule: &str, values: &[(&str, i64)]| Override {
        stage: stage.into(),
        rule: rule.into(),
        values: values.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
    };
    let refused = [
        (
            of("conv", "conv", &[("rows", 40)]),
            "stage \"conv\", rule conv: rows = 40 is refused: the value is one of 1 to 7, because",
        ),
        (
            of("conv", "conv", &[("row", 4)]),
            "rule conv has no parameter \"row\" for stage \"conv\"; did you mean \"rows\"?",
        ),
        (of("cov", "conv", &[]), "it has no stage \"cov\"; did you mean \"conv\"?"),
        (
            of("conv", "convolution", &[]),
            "stage \"conv\" is served by no rule \"convolution\"; there are \"conv\", \"channel_lanes\", \"masked_depthwise\", \"depthwise\"",
        ),
        (of("conv", "depthwise", &[]), "rule depthwise does not take stage \"conv\": "),
    ];
    for (asked, said) in refused {
        let error = scheduled(&case, &[asked]).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let softmax = softmax(false, &[20, 37], 1, "rowwise");
    let error = scheduled(&softmax, &[of("highest, exps, total, B", "rowwise", &[("together", 0)])]).unwrap_err();
    assert!(error.contains("together = 0 is refused: the value is one of 1 to 64, because"), "{error}");
}
