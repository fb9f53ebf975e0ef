//! `relaxide inspect`.

use crate::args::{InspectArgs, View};
use crate::compile::load_program;
use crate::error::CliError;

/// Shows what a file consists of.
pub fn run(args: &InspectArgs) -> Result<(), CliError> {
    if args.file.extension().is_some_and(|e| e == "so") { compiled(args) } else { program(args) }
}

fn program(args: &InspectArgs) -> Result<(), CliError> {
    let module = load_program(&args.file, &[])?;
    match args.show {
        None | Some(View::Script) => println!("{}", relaxide::to_script(&module)),
        Some(View::Signature) => println!("{}", relaxide::signature(&module)),
        Some(_) => {
            return Err(CliError::usage(
                format!("{} is not compiled yet", args.file.display()),
                format!("relaxide compile {} first, then inspect the .so", args.file.display()),
            ));
        }
    }
    Ok(())
}

fn compiled(args: &InspectArgs) -> Result<(), CliError> {
    let module = relaxide::load_module(&args.file)?;
    let text = |name: &str| -> Result<String, CliError> {
        let function = module.get_function(name, false).ok_or_else(|| {
            CliError::usage(
                format!("{} holds no program of the virtual machine", args.file.display()),
                "inspect a file that `relaxide compile` or TVM's relax exported",
            )
        })?;
        Ok(function.call(&[])?.to::<String>()?)
    };
    match args.show {
        None | Some(View::Signature) => println!("{}", relaxide::signature_of_file(&module)?),
        Some(View::Text) => println!("{}", text("as_text")?),
        Some(View::Python) => println!("{}", text("as_python")?),
        Some(View::Stats) => println!("{}", text("stats")?),
        Some(View::Script) => {
            return Err(CliError::usage(
                "a compiled file does not hold its source program",
                "inspect the .onnx, .py or .relax file, or show the instructions with --show text",
            ));
        }
    }
    Ok(())
}
