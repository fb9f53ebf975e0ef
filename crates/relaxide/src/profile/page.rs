//! A profile as one page of HTML that needs nothing else: the table, the calls of the last run over time, the memory that they
//! had in use, and the graph. The pictures are drawn here; the page's own few lines of script only zoom.

use std::fmt::Write;
use std::time::Duration;

use relaxide_vm::ProfiledCall;

use super::{Profile, ProfileLine};
use crate::graph::escaped;

/// Calls that are drawn; of more, the longest.
const DRAWN: usize = 4000;
/// Width of the pictures over time, and height of a row of calls and of the curve of memory.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 20.0;
const CURVE: f64 = 90.0;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:2em;color:#1f2933}h2{margin-top:2em}\
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #e4e7eb}\
td:first-child,th:first-child{text-align:left;font-family:ui-monospace,monospace}\
.picture{overflow:auto;border:1px solid #cbd2d9;max-height:80vh}";

const SCRIPT: &str = "const zoom=document.getElementById('zoom');zoom.addEventListener('input',()=>{\
for(const svg of document.querySelectorAll('.time svg'))svg.setAttribute('width',WIDTH*zoom.value)});\
document.body.dataset.ready='yes';";

impl Profile {
    /// The page.
    pub fn to_html(&self) -> String {
        let title = escaped(&format!("Profile of {}", self.function));
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
             <body><h1>{title}</h1>\n<p>{}</p>\n",
            escaped(&self.summary())
        );
        self.table(&mut out);
        out.push_str(
            "<h2>Time</h2>\n<p>Calls of the last run; rest the pointer on one to read it. \
             <label>Zoom <input id=\"zoom\" type=\"range\" min=\"1\" max=\"40\" step=\"0.5\" value=\"1\"></label></p>\n",
        );
        self.timeline(&mut out);
        if let Some(graph) = self.graph() {
            out.push_str("<h2>Graph</h2>\n<p>Darker calls take more of the time.</p>\n<div class=\"picture graph\">");
            out.push_str(&graph.to_svg());
            out.push_str("</div>\n");
        }
        let script = SCRIPT.replace("WIDTH", &format!("{WIDTH}"));
        let _ = writeln!(out, "<script>{script}</script>\n</body></html>");
        out
    }

    /// The whole in a sentence or two.
    pub fn summary(&self) -> String {
        let each = self.time.as_secs_f64() * 1e3 / self.runs as f64;
        let roof = self.roof.map_or(String::new(), |roof| {
            let (operations, bytes) = (roof.operations / 1e9, roof.bytes / 1e9);
            format!("; the machine's roof: {operations:.0} GFLOP/s (float32), {bytes:.1} GB/s")
        });
        let threads = crate::num_threads();
        format!("{}: {each:.3} ms a run, {} runs, {threads} threads{roof}", self.function, self.runs)
    }

    fn table(&self, out: &mut String) {
        out.push_str("<table><thead><tr>");
        ProfileLine::HEAD.iter().for_each(|head| _ = write!(out, "<th>{head}</th>"));
        out.push_str("</tr></thead><tbody>\n");
        for line in &self.lines {
            let cells: String = line.cells().iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
            let _ = writeln!(out, "<tr>{cells}</tr>");
        }
        out.push_str("</tbody></table>\n");
    }

    /// The calls and, on the same axis, the memory.
    fn timeline(&self, out: &mut String) {
        let mut calls: Vec<ProfiledCall<'_>> = self.last.calls().collect();
        let end = calls.iter().map(|call| call.start + call.time).max().unwrap_or_default();
        let scale = WIDTH / end.as_secs_f64().max(1e-9);
        let x = |time: Duration| time.as_secs_f64() * scale;
        let memory = curve(&calls, x);
        calls.sort_by_key(|call| std::cmp::Reverse(call.time));
        let omitted = calls.len().saturating_sub(DRAWN);
        calls.truncate(DRAWN);
        let boxes = boxes(calls, x);
        let depth = boxes.iter().map(|(depth, _)| depth + 1).max().unwrap_or(1);
        let height = depth as f64 * ROW;
        let text: String = boxes.into_iter().map(|(_, text)| text).collect();
        let picture = |class: &str, height: f64, inside: &str| {
            format!(
                "<div class=\"picture time {class}\"><svg width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
                 preserveAspectRatio=\"none\" font-size=\"11\" font-family=\"ui-monospace, monospace\">{inside}</svg></div>\n"
            )
        };
        out.push_str(&picture("calls", height, &text));
        if omitted > 0 {
            let _ = writeln!(out, "<p>{omitted} shorter calls are not drawn.</p>");
        }
        let (curve, peak) = memory;
        let _ = writeln!(out, "<h2>Memory</h2>\n<p>In use by the machine's tensors, at most {} bytes.</p>", peak);
        out.push_str(&picture("memory", CURVE, &curve));
    }
}

/// The calls as boxes, each with its depth: calls inside of another stand below it.
fn boxes(mut calls: Vec<ProfiledCall<'_>>, x: impl Fn(Duration) -> f64) -> Vec<(usize, String)> {
    calls.sort_by_key(|call| (call.start, std::cmp::Reverse(call.time)));
    let mut open: Vec<Duration> = Vec::new();
    let draw = |call: ProfiledCall<'_>| {
        while open.last().is_some_and(|end| *end <= call.start) {
            open.pop();
        }
        let depth = open.len();
        open.push(call.start + call.time);
        let (left, width, top) = (x(call.start), x(call.time).max(0.2), depth as f64 * ROW);
        let hue = call.name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 360;
        let name = escaped(call.name);
        let title = format!("{name}\n{:.1} us, {} bytes", call.time.as_secs_f64() * 1e6, call.bytes);
        let label = if width > call.name.chars().count() as f64 * 6.8 {
            format!("<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", left + 2.0, top + 14.0)
        } else {
            String::new()
        };
        let text = format!(
            "<g><title>{title}</title><rect x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{:.0}\" \
             fill=\"hsl({hue} 60% 75%)\"/>{label}</g>\n",
            ROW - 2.0
        );
        (depth, text)
    };
    calls.into_iter().map(draw).collect()
}

/// The memory in use over time, and its peak.
fn curve(calls: &[ProfiledCall<'_>], x: impl Fn(Duration) -> f64) -> (String, usize) {
    let peak = calls.iter().map(|call| call.memory).max().unwrap_or(0);
    let mut points = String::from("0,0");
    let mut level = CURVE;
    points = points.replace("0,0", &format!("0,{CURVE}"));
    for call in calls {
        let at = x(call.start + call.time);
        let next = CURVE - (CURVE - 6.0) * call.memory as f64 / peak.max(1) as f64;
        let _ = write!(points, " {at:.2},{level:.1} {at:.2},{next:.1}");
        level = next;
    }
    let _ = write!(points, " {WIDTH},{level:.1} {WIDTH},{CURVE}");
    (format!("<polygon points=\"{points}\" fill=\"#b3d4fc\" stroke=\"#3e82d9\"/>"), peak)
}

impl ProfileLine {
    /// The heads of the columns.
    pub const HEAD: [&'static str; 7] = ["function", "calls", "time (ms)", "share", "GFLOP/s", "GB/s", "of roof"];

    /// The cells of a row; what is not known is `-`.
    pub fn cells(&self) -> [String; 7] {
        let number =
            |value: Option<f64>, scale: f64| value.map_or("-".to_string(), |value| format!("{:.1}", value / scale));
        [
            self.name.clone(),
            self.calls.to_string(),
            format!("{:.3}", self.time.as_secs_f64() * 1e3),
            format!("{:.1} %", self.share * 100.0),
            number(self.operation_rate(), 1e9),
            number(self.byte_rate(), 1e9),
            match self.of_roof {
                None => "-".to_string(),
                // The roof is that of memory, and what caches hold comes faster; a little more is noise.
                Some(share) if share > 1.1 => "cache".to_string(),
                Some(share) => format!("{:.0} %", share * 100.0),
            },
        ]
    }
}
