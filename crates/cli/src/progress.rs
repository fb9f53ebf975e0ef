//! How far a command is: a bar by stage where a person looks at a terminal, a line for each stage elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use relaxide::Progress;

/// Whether anything is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Stages as they come.
    Stages,
    /// Nothing.
    Nothing,
}

/// The progress bar, and the time that each stage took.
pub struct Bar {
    bar: ProgressBar,
    /// Whether stages become lines when they end.
    lines: bool,
    stages: Vec<(String, Duration)>,
    current: Option<(String, Instant, usize)>,
}

impl Bar {
    /// A bar of which nothing is done.
    pub fn new(show: Show) -> Self {
        let person = std::io::stderr().is_terminal();
        let bar = if show == Show::Stages && person { ProgressBar::new(1) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg:12} [{bar:30}] {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Bar { bar, lines: show == Show::Stages && !person, stages: Vec::new(), current: None }
    }

    /// A stage of one step begins.
    pub fn begin(&mut self, name: &str) {
        self.stage(name, 0, 1);
    }

    /// The stages that have ended, with their times.
    pub fn stages(&self) -> &[(String, Duration)] {
        &self.stages
    }

    fn close_stage(&mut self) {
        let Some((name, start, steps)) = self.current.take() else { return };
        let took = start.elapsed();
        if self.lines {
            let steps = if steps > 1 { format!("  ({steps})") } else { String::new() };
            eprintln!("{name:12} {:6.2} s{steps}", took.as_secs_f64());
        }
        self.stages.push((name, took));
    }

    /// Everything is done.
    pub fn finish(&mut self) {
        self.close_stage();
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn stage(&mut self, name: &str, done: usize, total: usize) {
        if self.current.as_ref().is_none_or(|(current, _, _)| current != name) {
            self.close_stage();
            self.current = Some((name.to_string(), Instant::now(), total));
            self.bar.set_message(name.to_string());
        }
        if let Some((_, _, steps)) = &mut self.current {
            *steps = total;
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
