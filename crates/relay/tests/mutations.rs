//! Damaged texts and saved graphs: reading, typing, printing and rewriting them ends in an answer or an error, and what was read is
//! printed and saved as what reads the same.
//!
//! Bytes are changed, words of a text are moved about, and values in a graph are replaced by others that stand there, so that many
//! stay programs. 1,200 of them; a million under `RELAXIDE_DEEP=1`, on all processors, which says every fifty thousand how far it is.

use crate::generate;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::generate::Random;
use relaxide_ffi::{FreeVars, structural_equal};
use relaxide_relay::prelude::{parse_with_prelude, without_unused};
use relaxide_relay::text::{PrintOptions, Source, parse, print_module};
use relaxide_relay::{Expr, Module, infer, json, to_a_normal_form, to_relax, visit, well_formed};
use serde_json::Value;

const NAMES: [&str; 8] = ["closure", "const", "dense", "dynshape", "if_dyn", "list_sum", "loop", "tuple_match"];

fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn changed_bytes(random: &mut Random, original: &str) -> String {
    let mut bytes = original.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = b" (){}[]%@,;=0129azAZ\"?/:->"[random.below(26)],
            1 => drop(bytes.remove(at)),
            2 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, b"({[\"%0"[random.below(6)]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The words of a text and what stands between them.
fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for c in text.chars() {
        let inside = |c: char| c.is_alphanumeric() || "_%@.".contains(c);
        match found.last_mut() {
            Some(word) if inside(c) && word.chars().all(inside) => word.push(c),
            _ => found.push(c.to_string()),
        }
    }
    found
}

fn changed_words(random: &mut Random, original: &str) -> String {
    const NUMBERS: [&str; 9] = ["0", "-1", "1", "2", "2147483648", "9223372036854775807", "1e39f", "?", "1000000"];
    let mut words = words(original);
    for _ in 0..1 + random.below(3) {
        let (at, other) = (random.below(words.len()), random.below(words.len()));
        match random.below(5) {
            0 => words[at] = words[other].clone(),
            1 => words.swap(at, other),
            2 => drop(words.remove(at)),
            3 => words.insert(at, words[other].clone()),
            _ => {
                let numbers: Vec<usize> = (0..words.len()).filter(|i| words[*i].parse::<i64>().is_ok()).collect();
                if !numbers.is_empty() {
                    words[numbers[random.below(numbers.len())]] = NUMBERS[random.below(NUMBERS.len())].into();
                }
            }
        }
    }
    words.concat()
}

/// The places of a graph's values, as ways from its root.
fn places(value: &Value, way: &str, found: &mut Vec<String>) {
    found.push(way.to_string());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| places(item, &format!("{way}/{i}"), found))
        }
        Value::Object(fields) => fields.iter().for_each(|(name, item)| places(item, &format!("{way}/{name}"), found)),
        _ => {}
    }
}

fn changed_values(random: &mut Random, original: &Value, ways: &[String]) -> String {
    let mut graph = original.clone();
    for _ in 0..1 + random.below(3) {
        let from = original.pointer(&ways[random.below(ways.len())]).cloned().unwrap_or_default();
        let number = [0, 1, -1, 5, i64::MAX, 1 << 40, random.below(60) as i64][random.below(7)];
        let Some(place) = graph.pointer_mut(&ways[random.below(ways.len())]) else { continue };
        *place = match (&*place, random.below(4)) {
            (Value::Number(_), 0 | 1) => number.into(),
            (Value::String(text), 0 | 1) if text.parse::<i64>().is_ok() => number.to_string().into(),
            (Value::Array(items), 0) => items.iter().rev().cloned().collect(),
            (_, 2) => Value::Null,
            _ => from,
        };
    }
    graph.to_string()
}

fn same(a: &Module, b: &Module) -> bool {
    a.functions.len() == b.functions.len()
        && a.functions
            .iter()
            .all(|(name, f)| b.functions.get(name).is_some_and(|g| structural_equal(f, g, FreeVars::Same).is_ok()))
}

/// Whether a node that binds names stands at two places. Text has it twice, with names of their own.
fn shares_bindings(module: &Module) -> bool {
    let (mut met, mut twice) = (HashSet::new(), false);
    for function in module.functions.values() {
        visit::each(&function.body, |expr| {
            for child in expr.children() {
                let binds = matches!(child, Expr::Let(_) | Expr::Function(_) | Expr::Match(_) | Expr::If(_));
                twice |= binds && !met.insert(child.address());
            }
        });
    }
    twice
}

/// A text without the numbers behind its variables' names, which are others where one node has become two.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('%').enumerate() {
        let end = part.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(part.len());
        let (name, rest) = if at == 0 { ("", part) } else { part.split_at(end) };
        out.push_str(name.trim_end_matches(|c: char| c.is_ascii_digit()));
        out.push_str(rest);
    }
    out
}

/// Goes through all that is done with a program before it is compiled. Whether it is one.
fn used(module: &Module, damaged: &str) -> bool {
    let typed = infer(module).is_ok();
    let formed = well_formed(module).is_empty();
    let printed = print_module(module, PrintOptions::default());
    if !typed || !formed {
        return false;
    }
    let again = parse(&Source::new("printed", printed.clone()));
    let again = again.unwrap_or_else(|d| panic!("{d}\nwas printed of\n{damaged}\nas\n{printed}"));
    let alike = || {
        let anew = print_module(&again, PrintOptions::default());
        shares_bindings(module) && without_numbers(&anew) == without_numbers(&printed)
    };
    assert!(
        same(module, &again) || alike(),
        "{printed}\nis read as another program than it was printed of:\n{damaged}"
    );
    if let Ok(saved) = json::save(module) {
        let again = json::load(&saved).unwrap_or_else(|e| panic!("{e}\nwas saved of\n{damaged}"));
        assert!(same(module, &again), "another program is saved of\n{damaged}");
    }
    let normal = to_a_normal_form(module);
    assert!(infer(&normal).is_ok(), "the normal form has no types:\n{damaged}");
    let _ = to_relax(module);
    true
}

/// What damage is done to.
struct Samples {
    texts: Vec<String>,
    graphs: Vec<Value>,
    saved: Vec<String>,
    /// The places in each graph.
    ways: Vec<Vec<String>>,
}

fn samples() -> Samples {
    let mut texts: Vec<String> = NAMES.iter().map(|name| sample(&format!("{name}.src.relay"))).collect();
    let mut graphs: Vec<Value> =
        NAMES.iter().map(|name| serde_json::from_str(&sample(&format!("{name}.mod.json"))).unwrap()).collect();
    for seed in [7, 8] {
        let module = parse_with_prelude(&Source::new("random", generate::module(seed, 3))).unwrap();
        let module = without_unused(&module).unwrap();
        texts.push(print_module(&module, PrintOptions::default()));
        graphs.push(serde_json::from_str(&json::save(&module).unwrap()).unwrap());
    }
    let places_of = |graph: &Value| {
        let mut found = Vec::new();
        places(graph, "", &mut found);
        found
    };
    let (ways, saved) = (graphs.iter().map(places_of).collect(), graphs.iter().map(Value::to_string).collect());
    Samples { texts, graphs, saved, ways }
}

/// Tries damaged texts and graphs by turns. How many of each were programs, and which took longest.
fn try_out(samples: &Samples, seed: u64, runs: usize) -> ([usize; 2], (Duration, String)) {
    let (mut random, mut programs, mut slowest) = (Random::new(seed), [0usize; 2], (Duration::ZERO, String::new()));
    for run in 0..runs {
        let (which, is_graph) = (random.below(samples.texts.len()), run % 2 == 1);
        let damaged = match (is_graph, random.below(4)) {
            (false, 0) => changed_bytes(&mut random, &samples.texts[which]),
            (false, _) => changed_words(&mut random, &samples.texts[which]),
            (true, 0) => changed_bytes(&mut random, &samples.saved[which]),
            (true, _) => changed_values(&mut random, &samples.graphs[which], &samples.ways[which]),
        };
        let start = Instant::now();
        let module =
            if is_graph { json::load(&damaged).ok() } else { parse(&Source::new("damaged", damaged.clone())).ok() };
        if module.is_some_and(|module| used(&module, &damaged)) {
            programs[usize::from(is_graph)] += 1;
        }
        if start.elapsed() > slowest.0 {
            slowest = (start.elapsed(), damaged);
        }
    }
    (programs, slowest)
}

#[test]
fn damaged_texts_and_graphs_are_refused_or_read_as_what_they_say() {
    let (seeds, runs) = if std::env::var_os("RELAXIDE_DEEP").is_some() { (20, 50_000) } else { (1, 1_200) };
    let (samples, next) = (samples(), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let (programs, (time, text)) = try_out(&samples, 5 + seed, runs);
            let start: String = text.chars().take(2000).collect();
            println!(
                "{runs} texts and graphs, of which {programs:?} were programs; the slowest took {time:?}:\n{start}"
            );
            assert!(programs.iter().all(|count| *count > runs / 40), "only {programs:?} of {runs} were programs");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(seeds as usize) {
            scope.spawn(work);
        }
    });
}
