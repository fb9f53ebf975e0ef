//! `docs/pytorch.md` lists exactly the operators of the table. `RELAXIDE_BLESS=1 cargo test` writes the list anew.

use relaxide_torch::ops;

const BEGIN: &str = "<!-- operators: begin -->\n";
const END: &str = "<!-- operators: end -->";

/// The operators, by their library, between commas.
fn list() -> String {
    let mut text = String::new();
    for space in ["aten", "quantized_decomposed", "torchvision", "transformers"] {
        let own = ops::names().into_iter().filter_map(|name| name.strip_prefix(&format!("{space}.")));
        let names: Vec<String> = own.map(|name| format!("`{name}`")).collect();
        text += &format!("**{space}** ({}): {}.\n\n", names.len(), names.join(", "));
    }
    text
}

#[test]
fn the_guide_lists_every_operator() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pytorch.md");
    let guide = std::fs::read_to_string(path).expect("the guide is in the repository");
    let (before, rest) = guide.split_once(BEGIN).expect("the list begins with its mark");
    let (listed, after) = rest.split_once(END).expect("the list ends with its mark");
    if std::env::var_os("RELAXIDE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", list())).expect("the guide can be written");
        return;
    }
    assert_eq!(listed, list(), "run `RELAXIDE_BLESS=1 cargo test -p relaxide-torch --test all documentation`");
}
