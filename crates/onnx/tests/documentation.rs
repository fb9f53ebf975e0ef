//! `docs/onnx.md` lists exactly the operators of the table. `RELAXIDE_BLESS=1 cargo test` writes the list anew.

use relaxide_onnx::testing::{MAX_OPSET, TABLE};

const BEGIN: &str = "<!-- operators: begin -->\n";
const END: &str = "<!-- operators: end -->";

fn table() -> String {
    let mut text = String::from("| operator | from opset | with changes at |\n| --- | --- | --- |\n");
    for row in TABLE {
        let mut since = row.versions.iter().map(|(since, _)| since.to_string());
        let first = since.next().unwrap_or_default();
        text += &format!("| {} | {first} | {} |\n", row.name, since.collect::<Vec<_>>().join(", "));
    }
    text
}

#[test]
fn the_guide_lists_every_operator() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/onnx.md");
    let guide = std::fs::read_to_string(path).expect("the guide is in the repository");
    let (before, rest) = guide.split_once(BEGIN).expect("the list begins with its mark");
    let (listed, after) = rest.split_once(END).expect("the list ends with its mark");
    if std::env::var_os("RELAXIDE_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table())).expect("the guide can be written");
        return;
    }
    assert_eq!(listed, table(), "run `RELAXIDE_BLESS=1 cargo test -p relaxide-onnx --test all documentation`");
    assert!(guide.contains(&format!("up to opset {MAX_OPSET}")), "the guide names the newest opset, {MAX_OPSET}");
}
