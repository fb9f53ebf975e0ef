//! How large the caches of a processor's core are: what the host says of itself, or what is known of a processor by its name.

use std::path::Path;
use std::sync::OnceLock;

/// The caches that a core has for itself, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caches {
    /// The first level's, of data.
    pub l1: i64,
    /// The second level's; of one that several cores have, the part of one.
    pub l2: i64,
}

impl Caches {
    /// What is taken where nothing is known.
    pub const USUAL: Caches = Caches::kib(32, 512);

    const fn kib(l1: i64, l2: i64) -> Caches {
        Caches { l1: l1 << 10, l2: l2 << 10 }
    }

    /// Those of a processor by LLVM's name; of one that is not in the table, what nearly all have at least.
    pub fn of_processor(name: &str) -> Caches {
        TABLE.iter().find(|(names, _)| names.contains(&name)).map_or(Caches::USUAL, |(_, caches)| *caches)
    }

    /// Those of this machine's first core, where the system says it; else what nearly all processors have at least.
    pub fn of_host() -> Caches {
        static HOST: OnceLock<Caches> = OnceLock::new();
        *HOST.get_or_init(|| Caches::read(Path::new("/sys/devices/system/cpu/cpu0")).unwrap_or(Caches::USUAL))
    }

    /// What Linux says of a core in its folder (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
    fn read(core: &Path) -> Option<Caches> {
        let text = |path: &str| Some(std::fs::read_to_string(core.join(path)).ok()?.trim().to_string());
        let siblings = text("topology/thread_siblings_list").and_then(|list| count(&list)).unwrap_or(1);
        let (mut l1, mut l2) = (None, None);
        for index in 0..8 {
            let of = |what: &str| text(&format!("cache/index{index}/{what}"));
            let Some((level, kind)) = of("level").zip(of("type")) else { break };
            let Some(size) = of("size").and_then(|size| bytes(&size)) else { continue };
            match (level.as_str(), kind.as_str()) {
                ("1", "Data" | "Unified") => l1 = Some(size),
                ("2", "Data" | "Unified") => {
                    let threads = of("shared_cpu_list").and_then(|list| count(&list)).unwrap_or(siblings);
                    l2 = Some(size / (threads / siblings).max(1));
                }
                _ => {}
            }
        }
        Some(Caches { l1: l1?, l2: l2? }).filter(|caches| PLAUSIBLE.l1 <= caches.l1 && PLAUSIBLE.l2 <= caches.l2)
    }
}

/// A machine that says less is virtual and says nothing true.
const PLAUSIBLE: Caches = Caches::kib(8, 64);

/// Processors by LLVM's names, from their makers' optimization manuals. Of those with two kinds of cores it is the smaller kind's.
const TABLE: &[(&[&str], Caches)] = &[
    (
        &[
            "nehalem",
            "corei7",
            "westmere",
            "sandybridge",
            "corei7-avx",
            "ivybridge",
            "core-avx-i",
            "haswell",
            "core-avx2",
            "broadwell",
            "skylake",
        ],
        Caches::kib(32, 256),
    ),
    (&["skylake-avx512", "skx", "cascadelake", "cooperlake"], Caches::kib(32, 1024)),
    (&["icelake-client", "rocketlake"], Caches::kib(48, 512)),
    (&["icelake-server", "tigerlake"], Caches::kib(48, 1280)),
    (&["sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids"], Caches::kib(48, 2048)),
    (&["alderlake", "raptorlake", "meteorlake", "gracemont"], Caches::kib(32, 512)),
    (&["sierraforest", "grandridge", "arrowlake", "arrowlake-s", "lunarlake"], Caches::kib(32, 1024)),
    (&["znver4"], Caches::kib(32, 1024)),
    (&["znver5"], Caches::kib(48, 1024)),
    (&["cortex-a53", "cortex-a55"], Caches::kib(32, 128)),
    (&["cortex-a72", "cortex-a73"], Caches::kib(32, 256)),
    (&["cortex-a76", "cortex-a77", "cortex-a78", "cortex-x1"], Caches::kib(64, 256)),
    (&["neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2"], Caches::kib(64, 1024)),
    (&["a64fx"], Caches::kib(64, 512)),
    (&["apple-m1", "apple-m2", "apple-m3", "apple-m4"], Caches::kib(64, 1024)),
];

/// A size as the system writes it: `48K`, `1M`.
fn bytes(size: &str) -> Option<i64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(1 << unit)
}

/// How many processors a list of them names: `0-3,8`.
fn count(list: &str) -> Option<i64> {
    list.split(',').try_fold(0, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<i64>().ok()?, last.trim().parse::<i64>().ok()?);
        (last >= first).then_some(sum + last - first + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of a core with the files that are given.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn a_cache_of_several_cores_is_shared_and_one_of_two_threads_is_not() {
        let cores = |siblings, sharing| {
            let folder = folder(&[
                ("topology/thread_siblings_list", siblings),
                ("cache/index0/level", "1"),
                ("cache/index0/type", "Data"),
                ("cache/index0/size", "48K"),
                ("cache/index1/level", "1"),
                ("cache/index1/type", "Instruction"),
                ("cache/index1/size", "32K"),
                ("cache/index2/level", "2"),
                ("cache/index2/type", "Unified"),
                ("cache/index2/size", "2M"),
                ("cache/index2/shared_cpu_list", sharing),
            ]);
            Caches::read(folder.path())
        };
        assert_eq!(cores("0,8", "0,8"), Some(Caches::kib(48, 2048)));
        assert_eq!(cores("0", "0-3"), Some(Caches::kib(48, 512)));
    }

    #[test]
    fn what_says_nothing_or_nonsense_is_not_believed() {
        assert_eq!(Caches::read(folder(&[]).path()), None);
        let size = |size| {
            let level = |index: &str, level| {
                [
                    (format!("cache/{index}/level"), level),
                    (format!("cache/{index}/type"), "Data"),
                    (format!("cache/{index}/size"), size),
                ]
            };
            let files = [level("index0", "1"), level("index1", "2")].concat();
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            Caches::read(folder(&files).path())
        };
        for nonsense in ["", "K", "-1K", "9999999999999999999K", "9223372036854775807K", "0K", "48X", "2K"] {
            assert_eq!(size(nonsense), None, "{nonsense}");
        }
        assert_eq!(size("128K"), Some(Caches::kib(128, 128)));
    }

    #[test]
    fn processors_are_known_by_name() {
        assert_eq!(Caches::of_processor("znver5"), Caches::kib(48, 1024));
        assert_eq!(Caches::of_processor("a name of nothing"), Caches::USUAL);
    }
}
