fn main() {
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap();
        match relaxide_script::parse_module(&text, &file) {
            Ok(m) => {
                let show_meta = text.contains("load_json");
                let once = relaxide_script::print_module_with(&m, relaxide_script::PrintOptions { show_meta });
                print!("{once}");
                match relaxide_script::parse_module(&once, "again") {
                    Ok(m2) => {
                        let twice =
                            relaxide_script::print_module_with(&m2, relaxide_script::PrintOptions { show_meta });
                        if once != twice {
                            println!("#### NOT A FIXED POINT\n{twice}");
                        }
                        for (name, f) in &m.functions {
                            if let Err(e) = relaxide_ffi::structural_equal(&f.0, &m2.functions[name].0, true) {
                                println!("#### {name} DIFFERS: {e:?}");
                            }
                        }
                    }
                    Err(e) => println!("#### AGAIN {e}"),
                }
            }
            Err(e) => println!("{e}"),
        }
    }
}
