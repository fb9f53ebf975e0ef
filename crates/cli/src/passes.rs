//! How passes are run and instrumented: what `compile` and `opt` share.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use relaxide::Target;
use relaxide::ir::pass::{Dump, PassContext, Print, Printer, Timing, When, parse_value};
use relaxide::relax::transform;

use crate::answer::Form;
use crate::error::CliError;

/// Which passes run, with which options, and what is shown of them.
#[derive(Args)]
#[command(next_help_heading = "Passes")]
pub struct PassArgs {
    /// Print the program before these passes (`all`: before each).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub print_before: Vec<String>,
    /// Print the program behind these passes (`all`: behind each).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub print_after: Vec<String>,
    /// Write the program behind each pass to a file of this folder.
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
    /// Say how long each pass took.
    #[arg(long)]
    pub timing: bool,
    /// Passes of higher levels are left out.
    #[arg(long, default_value_t = 2)]
    pub opt_level: u32,
    /// Passes that are left out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub disable: Vec<String>,
    /// An option, as NAME=VALUE.
    #[arg(long, value_name = "NAME=VALUE")]
    pub config: Vec<String>,
}

impl PassArgs {
    /// What measures the passes, if that is asked for.
    pub fn timing(&self) -> Option<Arc<Timing>> {
        self.timing.then(Timing::new)
    }

    /// The context of the passes.
    pub fn context(&self, target: Target, form: Form, timing: Option<&Arc<Timing>>) -> Result<PassContext, CliError> {
        let printer: Printer = Arc::new(print);
        let mut context = PassContext {
            target,
            opt_level: self.opt_level,
            disabled: full_names(&self.disable)?,
            ..PassContext::default()
        };
        for option in &self.config {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| CliError::usage(format!("{option:?} is no option"), "write --config NAME=VALUE"))?;
            let value = parse_value(value).map_err(relaxide::Error::from)?;
            context.config.set(name.trim(), value).map_err(relaxide::Error::from)?;
        }
        for (when, names) in [(When::Before, &self.print_before), (When::After, &self.print_after)] {
            if !names.is_empty() {
                let names = if names.iter().any(|name| name == "all") { None } else { Some(full_names(names)?) };
                // The one object of JSON has standard output for itself.
                let say = move |text: &str| match form {
                    Form::Text => println!("{text}"),
                    Form::Json => eprintln!("{text}"),
                };
                context.instruments.push(Print::new(when, names, printer.clone(), say));
            }
        }
        if let Some(folder) = &self.dump {
            context.instruments.push(Dump::new(folder, printer));
        }
        if let Some(timing) = timing {
            context.instruments.push(timing.clone());
        }
        Ok(context)
    }
}

/// The program with its constants, so that the text can be read back.
pub fn print(module: &relaxide::IRModule) -> String {
    relaxide::script::print_module_with(module, relaxide::script::PrintOptions { show_meta: true })
}

/// Names of passes as the tables write them; an unknown one is an error, since nothing would come of it.
fn full_names(names: &[String]) -> Result<Vec<String>, CliError> {
    let full = |name: &String| {
        let known = transform::pass(name).map(|pass| pass.name.to_string());
        known.ok_or_else(|| {
            CliError::usage(format!("there is no pass {name:?}"), "`relaxide opt --list` lists the passes".to_string())
        })
    };
    names.iter().map(full).collect()
}
