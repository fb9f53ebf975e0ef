//! A server of some models, and requests of HTTP to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::models;

/// A server that ends with the test.
pub struct Server {
    pub folder: TempDir,
    process: Child,
    pub http: String,
    pub grpc: String,
}

/// An answer of HTTP.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The message of an error.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {}", self.json())).to_string()
    }

    /// The numbers of the first output.
    pub fn numbers(&self) -> Vec<f64> {
        let json = self.json();
        let data = json["outputs"][0]["data"].as_array().unwrap_or_else(|| panic!("no data: {json}"));
        data.iter().map(|value| value.as_f64().unwrap()).collect()
    }
}

impl Server {
    /// Serves models by name.
    pub fn start(programs: &[(&str, String)], options: &[&str]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (name, text) in programs {
            let path = folder.path().join(format!("{name}.so"));
            models::compile(text, &path, &[]);
            paths.push(path);
        }
        Server::of_files(folder, &paths, options)
    }

    /// Serves files of a folder.
    pub fn of_files(folder: TempDir, paths: &[PathBuf], options: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relaxide"));
        command.arg("serve").args(paths).args(["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]).args(options);
        command.env("RELAXIDE_NUM_THREADS", "1").stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = |name: &str| {
            let line = lines.find_map(|line| Some(line.ok()?.strip_prefix(name)?.to_string()));
            line.unwrap_or_else(|| panic!("the server does not say where it is"))
        };
        let (http, grpc) = (address("http on "), address("grpc on "));
        let server = Server { folder, process, http, grpc };
        server.wait_until(|server| server.get("/v2/health/ready").status == 200);
        server
    }

    /// The file of a model.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.so"))
    }

    /// Waits until something is so.
    pub fn wait_until(&self, is_so: impl Fn(&Server) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < Duration::from_secs(60), "it does not come about");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processes that it started.
    pub fn workers(&self) -> Vec<u32> {
        let id = self.process.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let mut children: Vec<u32> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Threads other than the first start workers too.
        for task in std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
        children.sort_unstable();
        children.dedup();
        children
    }

    /// Sends the server a signal.
    pub fn signal(&self, name: &str) {
        signal(self.process.id(), name);
    }

    /// Waits for its end; its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(&self.http, "GET", path, &[], b"").unwrap()
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        ask(&self.http, "POST", path, &[], body.to_string().as_bytes()).unwrap()
    }

    /// Calls a model of one input `x` of floats.
    pub fn infer(&self, model: &str, shape: &[i64], data: &[f64]) -> Answer {
        self.post(&format!("/v2/models/{model}/infer"), &floats(shape, data))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a process a signal.
pub fn signal(process: u32, name: &str) {
    let done = Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap();
    assert!(done.success());
}

/// A request with one input `x` of floats.
pub fn floats(shape: &[i64], data: &[f64]) -> Value {
    json!({ "inputs": [{ "name": "x", "datatype": "FP32", "shape": shape, "data": data }] })
}

/// Asks over a connection of its own.
pub fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, String)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(&[head.as_bytes(), b"\r\n", body].concat())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| std::io::Error::other(format!("no answer: {}", String::from_utf8_lossy(&bytes))))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_ascii_lowercase(), body: bytes[end + 4..].to_vec() })
}
