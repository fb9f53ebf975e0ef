//! What no committed file contains: paths of somebody's machine, hosts of somebody's network.

use super::{File, Problem};

/// Starts of paths that exist on one machine only. They are put together here so that this file passes its own rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Hosts that files may name.
const HOSTS: &[&str] = &[
    "apache.org",
    "arxiv.org",
    "doc.rust-lang.org",
    "docs.rs",
    "dmlc.github.io",
    "example.invalid",
    "github.com",
    "keepachangelog.com",
    "localhost",
    "onnx.ai",
    "onnxruntime.ai",
    "semver.org",
    "tvm.apache.org",
    "www.apache.org",
    // The namespace of SVG, which nobody fetches.
    "www.w3.org",
    "127.0.0.1",
];

/// Files whose text comes from elsewhere as it is.
const FOREIGN: &[&str] = &["LICENSE"];

/// Checks every file.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let own = files.iter().filter(|file| !FOREIGN.contains(&file.path.as_str()));
    own.flat_map(|file| {
        file.text.lines().enumerate().flat_map(move |(i, line)| {
            let paths = MACHINE_PATHS.iter().filter(|path| mentions(line, path));
            let paths = paths.map(|path| format!("a path of one machine ({path}…) has no meaning on another"));
            let hosts = hosts(line).filter(|host| !HOSTS.contains(host));
            let hosts =
                hosts.map(|host| format!("the host {host} is not among those that files may name (xtask, text.rs)"));
            paths.chain(hosts).map(move |message| file.problem(i + 1, message)).collect::<Vec<_>>()
        })
    })
    .collect()
}

/// Whether a line has an absolute path that starts so, rather than a longer one that contains it.
fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().last());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '}' | '~' | ')'))
    })
}

/// The hosts of the addresses in a line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let marker = "://";
    line.match_indices(marker).filter_map(move |(at, _)| {
        let scheme = line.get(..at)?;
        if !scheme.ends_with("http") && !scheme.ends_with("https") {
            return None;
        }
        let rest = line.get(at + marker.len()..)?;
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))).unwrap_or(rest.len());
        rest.get(..end).filter(|host| !host.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> usize {
        check(&[File { path: "a.md".into(), text: text.into() }]).len()
    }

    #[test]
    fn machine_paths_and_unknown_hosts_are_found() {
        assert_eq!(problems(concat!("see /wo", "rk/main/x")), 1);
        assert_eq!(problems(concat!("see https:/", "/mirror.internal/simple")), 1);
        assert_eq!(problems("see https://github.com/apache/tvm and frame/work/x"), 0);
    }
}
