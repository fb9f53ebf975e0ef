//! Imports a model and prints the signature of its `main`, or every problem that there is.
//!
//! ```text
//! cargo run -p relaxide-onnx --example signature -- model.onnx
//! ```

use std::process::ExitCode;

use relaxide_onnx::{ImportOptions, Model, import};
use relaxide_relax::display::type_text;
use relaxide_relax::{Binding, Function};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: signature MODEL.onnx");
        return ExitCode::FAILURE;
    };
    let module = Model::open(path)
        .map_err(|e| e.to_string())
        .and_then(|model| import(&model, &ImportOptions::default()).map_err(|e| e.to_string()));
    let main = match module.map(|m| m.get_as::<Function>("main")) {
        Ok(Some(main)) => main,
        Ok(None) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for param in &main.params {
        println!("{}: {}", param.name, type_text(&param.ty));
    }
    println!("-> {}", type_text(&main.ret_ty));
    let bindings = || main.body.blocks.iter().flat_map(|b| &b.bindings);
    let checks = bindings().filter(|b| matches!(b, Binding::MatchCast(_))).count();
    println!("{} bindings, {checks} of them checks at run time", bindings().count());
    ExitCode::SUCCESS
}
