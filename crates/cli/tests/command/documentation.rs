//! The examples of `docs/command-line.md` do what they say.

use crate::check::python;
use crate::workplace::{Workplace, is_made};

#[test]
fn the_examples_run_in_order() {
    let text = include_str!("../../../../docs/command-line.md");
    let examples: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ relaxide ")).collect();
    assert!(examples.len() > 15, "{examples:?}");
    let place = Workplace::with_models();
    place.write("program.relay", "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(?, 3), float32]) { nn.relu(%x) }\n");
    place.write_png("photo.png", (20, 30), (png::ColorType::Rgb, png::BitDepth::Eight), &[0; 3 * 20 * 30]);
    for example in examples {
        match (example.starts_with("check"), python()) {
            (true, Some(python)) => drop(place.ok(&format!("{example} --python {}", python.display()))),
            (true, None) => {}
            (false, _) => drop(place.ok(example)),
        }
    }
    for made in ["model.so", "model.c", "result.npz", "trace.json", "profile.html", "graph.svg", "lowered.py"] {
        assert!(is_made(&place.path(made)), "{made}");
    }
}
