//! Graphs as SVG: one file that shows in every browser, and that pages may hold.

use std::fmt::Write;

use super::layout::{HEIGHT, Layout, layout};
use super::{Graph, Node, NodeKind};

/// Width of a letter, and space beside a label.
const LETTER: f64 = 7.2;
const MARGIN: f64 = 20.0;
/// Labels are cut behind so many letters; the whole name shows when the pointer rests on a node.
const LETTERS: usize = 44;

/// Colours in dark surroundings; in light ones, and in programs that read no styles, are those of the elements. Nodes with a share stay light.
const DARK: &str = "<style>@media(prefers-color-scheme:dark){\
.relaxide-graph{background:#14181d}.relaxide-graph .edge{stroke:#7b8794}\
.relaxide-graph .input rect{fill:#1d3a28}.relaxide-graph .output rect{fill:#1c2f4d}.relaxide-graph .call rect{fill:#1f262e}\
.relaxide-graph .plain text{fill:#e4e7eb}.relaxide-graph .plain text+text{fill:#9aa5b1}}</style>";

impl Graph {
    /// The graph as an SVG document.
    pub fn to_svg(&self) -> String {
        let layout = layout(self, |i| self.nodes.get(i).map_or(0.0, width));
        let (width, height) = (layout.width.max(1.0), layout.height.max(1.0));
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"relaxide-graph\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, monospace\" font-size=\"12\">{DARK}"
        );
        for (edge, bends) in self.edges.iter().zip(&layout.bends) {
            let _ = writeln!(out, "{}", edge_path(&layout, edge.0, edge.1, bends));
        }
        for (node, place) in self.nodes.iter().zip(&layout.nodes) {
            out.push_str(&node_box(node, place.0, place.1));
        }
        out.push_str("</svg>\n");
        out
    }
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(LETTERS).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

fn second_line(node: &Node) -> String {
    match node.share {
        Some(share) => format!("{:.1} %", share * 100.0),
        None => short(node.detail.lines().next().unwrap_or_default()),
    }
}

fn width(node: &Node) -> f64 {
    let letters = short(&node.label).chars().count().max(second_line(node).chars().count());
    letters as f64 * LETTER + MARGIN
}

/// A curve through the bends of an edge.
fn edge_path(layout: &Layout, from: usize, to: usize, bends: &[(f64, f64)]) -> String {
    let at = |i: usize| layout.nodes.get(i).copied().unwrap_or_default();
    let (start, end) = (at(from), at(to));
    let mut path = format!(
        "<path class=\"edge\" fill=\"none\" stroke=\"#9aa5b1\" d=\"M{:.1} {:.1}",
        start.0,
        start.1 + HEIGHT / 2.0
    );
    let mut before = (start.0, start.1 + HEIGHT / 2.0);
    for (x, y) in bends.iter().copied().chain([(end.0, end.1 - HEIGHT / 2.0)]) {
        let middle = (before.1 + y) / 2.0;
        let _ = write!(path, " C{:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}", before.0);
        before = (x, y);
    }
    path.push_str("\"/>");
    path
}

fn node_box(node: &Node, x: f64, y: f64) -> String {
    let width = width(node);
    let (class, fill) = match (node.kind, node.share) {
        (_, Some(share)) => {
            // From white to orange; small shares are told apart better than large ones.
            let depth = share.clamp(0.0, 1.0).sqrt();
            let mix = |full: f64| (255.0 - depth * (255.0 - full)).round();
            ("share", format!("rgb({},{},{})", mix(255.0), mix(140.0), mix(40.0)))
        }
        (NodeKind::Input, None) => ("plain input", "#e3f2e6".into()),
        (NodeKind::Output, None) => ("plain output", "#e6eefa".into()),
        (NodeKind::Call, None) => ("plain call", "#ffffff".into()),
    };
    let title = escaped(format!("{}\n{}", node.label, node.detail).trim_end());
    let (label, second) = (escaped(&short(&node.label)), escaped(&second_line(node)));
    let lines = if second.is_empty() {
        format!("<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", y + 4.0)
    } else {
        format!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text><text x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\" fill=\"#5c6773\">{second}</text>",
            y - 3.0,
            y + 12.0
        )
    };
    format!(
        "<g class=\"node {class}\"><title>{title}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" \
         rx=\"6\" fill=\"{fill}\" stroke=\"#52606d\"/>{lines}</g>\n",
        x - width / 2.0,
        y - HEIGHT / 2.0
    )
}

/// A text inside of XML or HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('�'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_text() {
        let evil = Node::new(NodeKind::Call, "</svg><script>alert(1)</script>\u{0}", "\" onload='x'");
        let svg = Graph { nodes: vec![evil], edges: Vec::new() }.to_svg();
        assert!(!svg.contains("<script") && !svg.contains("' ") && svg.matches("</svg>").count() == 1, "{svg}");
    }
}
