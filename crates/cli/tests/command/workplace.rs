//! A folder to work in, and the command run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use relaxide_testkit::models;

/// A folder that goes away, with the command.
pub struct Workplace(TempDir);

/// How a run of the command ended.
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Workplace {
    /// An empty folder.
    pub fn new() -> Workplace {
        Workplace(tempfile::tempdir().unwrap())
    }

    /// A folder with the program `model.relax` and the model `model.onnx`.
    pub fn with_models() -> Workplace {
        let place = Workplace::new();
        place.write("model.relax", models::PROGRAM);
        std::fs::write(place.path("model.onnx"), models::network()).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A picture. One with a palette has four colours.
    pub fn write_png(
        &self,
        name: &str,
        (width, height): (u32, u32),
        kind: (png::ColorType, png::BitDepth),
        data: &[u8],
    ) {
        let file = std::fs::File::create(self.path(name)).unwrap();
        let mut encoder = png::Encoder::new(file, width, height);
        encoder.set_color(kind.0);
        encoder.set_depth(kind.1);
        if kind.0 == png::ColorType::Indexed {
            encoder.set_palette((0..12).map(|at| (at * 53 + 7) as u8).collect::<Vec<_>>());
            encoder.set_trns(vec![255, 0, 3, 128]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
    }

    /// The command with arguments as they are typed, blanks between. Kernels that other tests compiled are not compiled again where the variable
    /// `RELAXIDE_CACHE` is set, as in `make test`.
    pub fn run(&self, args: &str) -> Ended {
        self.run_args(&args.split_whitespace().collect::<Vec<_>>())
    }

    pub fn run_args(&self, args: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relaxide"));
        command.args(args).current_dir(self.0.path()).env("RELAXIDE_NUM_THREADS", "1");
        Ended::of(command.output().unwrap())
    }

    /// The same, with kernels for a processor by name where a file has those for several.
    pub fn run_for(&self, processor: Option<&str>, args: &str) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relaxide"));
        command.args(args.split_whitespace()).current_dir(self.0.path()).env("RELAXIDE_NUM_THREADS", "1");
        command.env("RELAXIDE_PROCESSOR", processor.unwrap_or_default());
        Ended::of(command.output().unwrap())
    }

    /// The same, with a last argument that has blanks in it.
    pub fn run_with(&self, args: &str, last: &str) -> Ended {
        self.run_args(&args.split_whitespace().chain([last]).collect::<Vec<_>>())
    }

    pub fn ok_with(&self, args: &str, last: &str) -> Ended {
        let ended = self.run_with(args, last);
        assert_eq!(ended.code, 0, "relaxide {args} {last}\n{}{}", ended.out, ended.err);
        ended
    }

    /// The same, where success is expected.
    pub fn ok(&self, args: &str) -> Ended {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "relaxide {args}\n{}{}", ended.out, ended.err);
        ended
    }

    /// The answer in JSON of a command that succeeds.
    pub fn json(&self, args: &str) -> Value {
        let ended = self.ok(&format!("{args} --json"));
        assert_eq!(ended.err, "", "with --json nothing but the answer is printed");
        serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {}", ended.out))
    }
}

impl Ended {
    fn of(output: Output) -> Ended {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The error output with times and sizes replaced.
    pub fn err_masked(&self) -> String {
        masked(&self.err)
    }
}

/// A text in which numbers with a point are `#` and runs of blanks are one, since times and sizes change.
pub fn masked(text: &str) -> String {
    let word = |word: &str| {
        let digits = word.chars().all(|c| c.is_ascii_digit() || c == '.');
        if digits && word.contains('.') && word.len() > 1 { "#".to_string() } else { word.to_string() }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether a file is there and holds something.
pub fn is_made(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
}
