//! A profile as one page of HTML that needs nothing else: the table, the calls of the last run over time, the memory that they
//! had in use, and the graph. The pictures are drawn here; the page's own few lines of script only zoom
//! and sort. It follows the reader's choice of a light or dark theme, and scrolls its tables and pictures on a narrow screen.

use std::fmt::Write;
use std::time::Duration;

use relaxide_vm::{ProfileReport, ProfiledCall};

use super::{Profile, ProfileLine, axis};
use crate::compiler::graph::escaped;

/// Calls that are drawn; of more, the longest.
const DRAWN: usize = 4000;
/// Width of the pictures over time, and height of a row of calls and of the curve of memory.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 20.0;
const CURVE: f64 = 90.0;

/// Columns of the table by which it is sorted at first, and which has bars.
const TIME: usize = 2;
const SHARE: usize = 3;
/// Nodes of a kernel that are shown at once: with more, rows are as high as the column is narrow.
const NODES: usize = 2;
/// Height of the numbers below a picture.
const AXIS: f64 = 18.0;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2933;--paper:#fff;--line:#e4e7eb;--edge:#cbd2d9;--bar:#b3d4fc;--curve:#3e82d9;--grid:#cbd2d9}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e7eb;--paper:#14181d;--line:#2c343d;--edge:#3e4c59;--bar:#1f4b7a;--curve:#6aa9f0;--grid:#3e4c59}}\
body{font:14px/1.5 system-ui,sans-serif;margin:1.5em auto;padding:0 1em;max-width:1300px;color:var(--ink);background:var(--paper)}\
h1{font-size:1.5em}h2{margin-top:2em}\
.wide,.picture{overflow:auto;max-width:100%}.picture{border:1px solid var(--edge);max-height:80vh}\
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}\
th{cursor:pointer;position:sticky;top:0;background:var(--paper)}th[aria-sort=descending]::after{content:' ▾'}th[aria-sort=ascending]::after{content:' ▴'}\
td:first-child,th:first-child{text-align:left;font-family:ui-monospace,monospace}\
td.nodes,th.nodes{text-align:left;white-space:normal;min-width:16em;max-width:40em}\
td.share{background:linear-gradient(var(--bar),var(--bar)) no-repeat left/var(--part) 100%}\
.calls text{fill:#1f2933}.axis text{fill:var(--ink)}.axis line{stroke:var(--grid)}\
.memory polygon{fill:var(--bar);stroke:var(--curve)}\
@media(max-width:600px){body{font-size:13px}td,th{padding:.15em .4em}td.nodes{min-width:10em}}";

const SCRIPT: &str = "\
const zoom=document.getElementById('zoom');zoom.addEventListener('input',()=>{const z=zoom.value;\
for(const svg of document.querySelectorAll('.time svg')){svg.setAttribute('width',WIDTH*z);\
for(const t of svg.querySelectorAll('text')){const x=t.getAttribute('x');\
t.setAttribute('transform',`translate(${x} 0) scale(${1/z} 1) translate(${-x} 0)`)}}});\
for(const th of document.querySelectorAll('th'))th.addEventListener('click',()=>{\
const down=th.getAttribute('aria-sort')!=='descending',i=th.cellIndex,body=th.closest('table').tBodies[0];\
const key=r=>{const v=r.cells[i].dataset.value;return v===undefined?r.cells[i].textContent:v===''?-1:+v};\
const rows=[...body.rows].sort((a,b)=>{const x=key(a),y=key(b);return(x<y?-1:x>y?1:0)*(down?-1:1)});\
for(const other of th.parentNode.cells)other.removeAttribute('aria-sort');\
th.setAttribute('aria-sort',down?'descending':'ascending');body.append(...rows)});\
document.body.dataset.ready='yes';";

impl Profile {
    /// The page.
    pub fn to_html(&self) -> String {
        let title = escaped(&format!("Profile of {}", self.function));
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}</style></head>\n\
             <body><h1>{title}</h1>\n<p>{}</p>\n",
            escaped(&self.summary())
        );
        self.table(&mut out);
        if let Some(last) = &self.last {
            out.push_str(
                "<h2>Time</h2>\n<p>Calls of the last run; rest the pointer on one to read it. \
                 <label>Zoom <input id=\"zoom\" type=\"range\" min=\"1\" max=\"40\" step=\"0.5\" value=\"1\"></label></p>\n",
            );
            timeline(last, &mut out);
        }
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
        out.push_str("<p>A click on a head sorts.</p>\n<div class=\"wide\"><table><thead><tr>");
        for (i, head) in ProfileLine::HEAD.iter().enumerate() {
            let sorted = if i == TIME { " aria-sort=\"descending\"" } else { "" };
            let _ = write!(out, "<th{sorted}>{head}</th>");
        }
        out.push_str("<th class=\"nodes\">nodes of the model</th></tr></thead><tbody>\n");
        for line in &self.lines {
            out.push_str("<tr>");
            for (i, (cell, value)) in line.cells().iter().zip(line.values()).enumerate() {
                let value = match value {
                    Some(value) => format!(" data-value=\"{value}\""),
                    // Names are sorted by their text; a number that is not known comes before all.
                    None if i == 0 => String::new(),
                    None => " data-value=\"\"".to_string(),
                };
                let bar = if i == SHARE {
                    format!(" class=\"share\" style=\"--part:{:.2}%\"", line.share * 100.0)
                } else {
                    String::new()
                };
                let _ = write!(out, "<td{bar}{value}>{}</td>", escaped(cell));
            }
            let _ = writeln!(out, "<td class=\"nodes\">{}</td></tr>", nodes(&line.nodes));
        }
        out.push_str("</tbody></table></div>\n");
    }
}

/// The calls and, on the same axis, the memory.
fn timeline(last: &ProfileReport, out: &mut String) {
    let mut calls: Vec<ProfiledCall<'_>> = last.calls().collect();
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
    let times = time_axis(end.as_secs_f64(), height);
    let text: String = times.into_iter().chain(boxes.into_iter().map(|(_, text)| text)).collect();
    let picture = |class: &str, height: f64, inside: &str| {
        format!(
            "<div class=\"picture time {class}\"><svg width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             preserveAspectRatio=\"none\" font-size=\"11\" font-family=\"ui-monospace, monospace\">{inside}</svg></div>\n"
        )
    };
    out.push_str(&picture("calls", height + AXIS, &text));
    if omitted > 0 {
        let _ = writeln!(out, "<p>{omitted} shorter calls are not drawn.</p>");
    }
    let (curve, peak) = memory;
    let most = axis::written(peak as f64, axis::byte_unit(peak as f64));
    let _ = writeln!(out, "<h2>Memory</h2>\n<p>In use by the machine's tensors, at most {peak} bytes ({most}).</p>");
    let axes: String = byte_axis(peak as f64).chain(time_axis(end.as_secs_f64(), CURVE)).collect();
    out.push_str(&picture("memory", CURVE + AXIS, &(curve + &axes)));
}

/// Nodes of a model as a cell: the first ones, and the others when they are asked for.
fn nodes(all: &[String]) -> String {
    // What one call was made of is one text.
    let shown: Vec<String> = all.iter().flat_map(|words| words.split(", ")).map(escaped).collect();
    match shown.split_at_checked(NODES) {
        Some((first, rest)) if !rest.is_empty() => {
            let (first, rest, more) = (first.join(", "), rest.join(", "), rest.len());
            format!("<details><summary>{first}, and {more} more</summary>{rest}</details>")
        }
        _ => shown.join(", "),
    }
}

/// Lines at round times, with the times below a picture of that height.
fn time_axis(end: f64, height: f64) -> Vec<String> {
    let unit = axis::time_unit(end);
    let one = |time: f64| {
        let (x, bottom) = (time / end.max(1e-9) * WIDTH, height + AXIS - 5.0);
        // The last number must not leave the picture.
        let anchor = if x > WIDTH - 40.0 { "end" } else { "start" };
        format!(
            "<g class=\"axis\"><line x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"0\" y2=\"{height}\"/>\
             <text x=\"{x:.2}\" y=\"{bottom}\" text-anchor=\"{anchor}\">{}</text></g>\n",
            axis::written(time, unit)
        )
    };
    axis::ticks(end, 8.0).into_iter().map(one).collect()
}

/// Lines at round amounts of memory.
fn byte_axis(peak: f64) -> impl Iterator<Item = String> {
    let unit = axis::byte_unit(peak);
    axis::ticks(peak, 3.0).into_iter().skip(1).map(move |bytes| {
        let y = height_of(bytes, peak);
        format!(
            "<g class=\"axis\"><line x1=\"0\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"4\" y=\"{:.1}\">{}</text></g>\n",
            y + 11.0,
            axis::written(bytes, unit)
        )
    })
}

/// Where an amount of memory is drawn.
fn height_of(bytes: f64, peak: f64) -> f64 {
    CURVE - (CURVE - 6.0) * bytes / peak.max(1.0)
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
    let mut level = CURVE;
    let mut points = format!("0,{CURVE}");
    for call in calls {
        let at = x(call.start + call.time);
        let next = height_of(call.memory as f64, peak as f64);
        let _ = write!(points, " {at:.2},{level:.1} {at:.2},{next:.1}");
        level = next;
    }
    let _ = write!(points, " {WIDTH},{level:.1} {WIDTH},{CURVE}");
    (format!("<polygon points=\"{points}\"/>"), peak)
}

impl ProfileLine {
    /// The heads of the columns.
    pub const HEAD: [&'static str; 7] = ["function", "calls", "time (ms)", "share", "GFLOP/s", "GB/s", "of roof"];

    /// The numbers in the cells of a row, to sort by; a name has none.
    fn values(&self) -> [Option<f64>; 7] {
        [
            None,
            Some(self.calls as f64),
            Some(self.time.as_secs_f64()),
            Some(self.share),
            self.operation_rate(),
            self.byte_rate(),
            self.of_roof,
        ]
    }

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
