//! Profiles for people and programs: a table, CSV, JSON, and a trace for Chrome's viewer.
//!
//! The JSON form is that of TVM's profiling reports: a list of calls, each a set of named metrics, a metric being an
//! object whose one key says what it is (`{"microseconds": 12.5}`).

use std::fmt::Write;
use std::time::Duration;

use relaxide_ffi::{AnyView, Device, Error, Function, Object, Ref, Shape, get_global, register_global};

use super::profile::Profile;
use crate::executable::FuncInfo;

/// What the calls of one function took together.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    /// The function's name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// The time from call to return. Where a function calls itself, inner calls are counted again.
    pub total: Duration,
    /// The time that was not spent in calls inside.
    pub own: Duration,
    /// The bytes of the tensors that it was given and that it returned.
    pub bytes: usize,
}

/// What a call was given, as far as its cost depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A tensor of these dimensions.
    Tensor(Vec<i64>),
    /// An integer.
    Int(i64),
    /// Something else.
    Other,
}

impl Argument {
    /// What a value is; a shape is its integers, as kernels take them.
    pub(super) fn of(value: &AnyView<'_>) -> Vec<Argument> {
        if let Some(tensor) = value.as_tensor() {
            return vec![Argument::Tensor(tensor.shape().to_vec())];
        }
        if let Some(value) = value.as_int() {
            return vec![Argument::Int(value)];
        }
        match value.to::<Shape>() {
            Ok(shape) => shape.iter().copied().map(Argument::Int).collect(),
            Err(_) => vec![Argument::Other],
        }
    }
}

/// One call of a run.
#[derive(Clone, Copy, Debug)]
pub struct ProfiledCall<'a> {
    /// The function's name.
    pub name: &'a str,
    /// When it began, from the beginning of the run.
    pub start: Duration,
    /// The time from call to return.
    pub time: Duration,
    /// The bytes of the tensors that it was given and that it returned.
    pub bytes: usize,
    /// The bytes of the machine's memory that were in use when it returned.
    pub memory: usize,
    /// What it was given; nothing where the run had too many different calls to keep that.
    pub arguments: &'a [Argument],
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) func: u32,
    pub(super) start: Duration,
    pub(super) time: Duration,
    pub(super) bytes: usize,
    pub(super) arguments: u32,
    pub(super) memory: usize,
}

/// What each function of a run took.
#[derive(Debug, Object)]
#[object(key = "runtime.profiling.Report")]
pub struct ProfileReport {
    #[field(hidden)]
    rows: Vec<ProfileRow>,
    /// By index in the function table.
    #[field(hidden)]
    names: Vec<String>,
    #[field(hidden)]
    events: Vec<Event>,
    #[field(hidden)]
    lists: Vec<Vec<Argument>>,
    #[field(hidden)]
    omitted: u64,
    #[field(hidden)]
    device: Device,
}

impl ProfileReport {
    pub(super) fn new(profile: Profile, functions: &[FuncInfo], device: Device) -> Self {
        let row = |(function, sum): (&FuncInfo, &super::profile::Sum)| ProfileRow {
            name: function.name.clone(),
            calls: sum.calls,
            total: sum.total,
            own: sum.own,
            bytes: sum.bytes,
        };
        let mut rows: Vec<ProfileRow> =
            functions.iter().zip(&profile.sums).filter(|(_, sum)| sum.calls > 0).map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.own));
        let names = functions.iter().map(|function| function.name.clone()).collect();
        Self { rows, names, events: profile.events, lists: profile.lists, omitted: profile.omitted, device }
    }

    /// The functions that were called, the one that took most itself first.
    pub fn rows(&self) -> &[ProfileRow] {
        &self.rows
    }

    /// The calls one by one, in the order in which they returned.
    pub fn calls(&self) -> impl Iterator<Item = ProfiledCall<'_>> {
        self.events.iter().map(|event| ProfiledCall {
            name: self.names.get(event.func as usize).map_or("?", String::as_str),
            start: event.start,
            time: event.time,
            bytes: event.bytes,
            memory: event.memory,
            arguments: self.lists.get(event.arguments as usize).map_or(&[], Vec::as_slice),
        })
    }

    /// How many calls are in the sums and not in the trace, which has room for a million.
    pub fn omitted_calls(&self) -> u64 {
        self.omitted
    }

    /// The time of the whole run.
    pub fn duration(&self) -> Duration {
        self.rows.iter().map(|row| row.own).sum()
    }

    fn percent(&self, row: &ProfileRow) -> f64 {
        let all = self.duration().as_secs_f64();
        if all > 0.0 { row.own.as_secs_f64() / all * 100.0 } else { 0.0 }
    }

    /// A table, one line for each function.
    pub fn to_table(&self) -> String {
        let wide = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max("Total".len());
        let mut out = String::new();
        let mut line = |name: &str, cells: [String; 6]| {
            let [calls, own, percent, total, bytes, rate] = cells;
            // Writing to a string does not fail.
            let _ = writeln!(out, "{name:wide$} {calls:>9} {own:>13} {percent:>8} {total:>13} {bytes:>14} {rate:>8}");
        };
        let head = ["Calls", "Self (us)", "Percent", "Total (us)", "Bytes", "GB/s"];
        line("Name", head.map(str::to_owned));
        let mut calls = 0;
        for row in &self.rows {
            calls += row.calls;
            let seconds = row.own.as_secs_f64();
            let rate = if row.bytes > 0 && seconds > 0.0 { row.bytes as f64 / seconds / 1e9 } else { 0.0 };
            let cells = [
                row.calls.to_string(),
                format!("{:.2}", micros(row.own)),
                format!("{:.2}", self.percent(row)),
                format!("{:.2}", micros(row.total)),
                row.bytes.to_string(),
                format!("{rate:.2}"),
            ];
            line(&row.name, cells);
        }
        let all = format!("{:.2}", micros(self.duration()));
        line("Total", [calls.to_string(), all.clone(), "100.00".to_owned(), all, String::new(), String::new()]);
        out
    }

    /// Comma-separated values, with the table's columns.
    pub fn to_csv(&self) -> String {
        let mut out = "Name,Calls,Self (us),Percent,Total (us),Bytes\n".to_owned();
        for row in &self.rows {
            let name = row.name.replace('"', "\"\"");
            let (own, percent, total) = (micros(row.own), self.percent(row), micros(row.total));
            let _ = writeln!(out, "\"{name}\",{},{own:.3},{percent:.3},{total:.3},{}", row.calls, row.bytes);
        }
        out
    }

    /// JSON, as TVM's reports have it.
    pub fn to_json(&self) -> String {
        // As TVM writes it: `cpu0`.
        let device = quoted(&self.device.to_string().replace(':', ""));
        let calls = self.rows.iter().map(|row| {
            format!(
                "{{\"Name\": {{\"string\": {}}}, \"Device\": {{\"string\": {}}}, \"Count\": {{\"count\": {}}}, \
                 \"Duration (us)\": {{\"microseconds\": {:.3}}}, \"Percent\": {{\"percent\": {:.4}}}, \
                 \"Total (us)\": {{\"microseconds\": {:.3}}}, \"Bytes\": {{\"count\": {}}}}}",
                quoted(&row.name),
                device,
                row.calls,
                micros(row.own),
                self.percent(row),
                micros(row.total),
                row.bytes
            )
        });
        let calls: Vec<String> = calls.collect();
        let (all, threads) = (micros(self.duration()), relaxide_runtime::num_threads());
        format!(
            "{{\"calls\": [{}], \"device_metrics\": {{{device}: {{\"Device\": {{\"string\": {device}}}, \"Duration (us)\": \
             {{\"microseconds\": {all:.3}}}, \"Percent\": {{\"percent\": 100.0}}}}}}, \"configuration\": {{\"Number of \
             threads\": {{\"count\": {threads}}}, \"Executor\": {{\"string\": \"VM\"}}}}}}",
            calls.join(", "),
        )
    }

    /// A trace in Chrome's format, for `chrome://tracing` and Perfetto.
    pub fn to_chrome_trace(&self) -> String {
        let event = |event: &Event| {
            let name = self.names.get(event.func as usize).map_or("?", String::as_str);
            format!(
                "{{\"name\": {}, \"cat\": \"vm\", \"ph\": \"X\", \"ts\": {:.3}, \"dur\": {:.3}, \"pid\": 1, \"tid\": 1, \
                 \"args\": {{\"bytes\": {}}}}}",
                quoted(name),
                micros(event.start),
                micros(event.time),
                event.bytes
            )
        };
        let events: Vec<String> = self.events.iter().map(event).collect();
        format!("{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{}\n]}}\n", events.join(",\n"))
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What makes a text of a report.
type ReportForm = fn(&ProfileReport) -> String;

/// Enters the forms of reports among the global functions.
pub(crate) fn register() {
    let forms: [(&str, ReportForm); 4] = [
        ("runtime.profiling.AsTable", ProfileReport::to_table),
        ("runtime.profiling.AsCSV", ProfileReport::to_csv),
        ("runtime.profiling.AsJSON", ProfileReport::to_json),
        ("runtime.profiling.AsChromeTrace", ProfileReport::to_chrome_trace),
    ];
    for (name, form) in forms {
        if get_global(name).is_none() {
            // Only another thread's registration of the same function can come between.
            let _ = register_global(
                name,
                Function::new(move |args| {
                    // What follows, as TVM's front end passes it, asks for a form that the report does not have.
                    let report = args.first().copied().unwrap_or(AnyView::none());
                    let report: Ref<ProfileReport> = report.to().map_err(|error: Error| error.context(name))?;
                    Ok(form(&report).into())
                }),
            );
        }
    }
}
