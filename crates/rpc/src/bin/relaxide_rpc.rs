//! `relaxide-rpc`: the commands of `relaxide rpc` alone, for boards that compile nothing.

fn main() {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let itself = std::env::current_exe().map_or_else(|_| "relaxide-rpc".into(), std::path::PathBuf::into_os_string);
    std::process::exit(relaxide_rpc::command::run(&[itself], &words));
}
