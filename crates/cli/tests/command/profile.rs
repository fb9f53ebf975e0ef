//! `relaxide profile`: the table, the trace, and the page in a browser.

use std::process::Command;

use serde_json::Value;

use crate::workplace::Workplace;

#[test]
fn kernels_have_shares_and_rates_and_what_is_unknown_is_open() {
    let place = Workplace::with_models();
    place.ok("compile model.relax -q");
    let answer = place.json("profile model.so --dim n=64 --runs 3");
    let functions = answer["functions"].as_array().unwrap();
    let find = |name: &str| functions.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("{name}: {answer}"));
    let product = find("matmul");
    assert_eq!((&product["calls"], &product["operations"]), (&3.into(), &(3 * 64 * 4 * 8 * 2).into()));
    assert_eq!(product["bytes"], 3 * 4 * (64 * 4 + 4 * 8 + 64 * 8));
    assert!(product["of_roof"].as_f64().is_some_and(|share| share > 0.0), "{product}");
    assert_eq!(find("main")["operations"], Value::Null);
    let shares: f64 = functions.iter().filter_map(|f| f["share"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-6);
    assert!(answer["roof"]["operations_per_second"].as_f64().unwrap() > 1e8);
}

#[test]
fn the_table_has_a_row_a_function_and_traces_are_json() {
    let place = Workplace::with_models();
    place.ok("compile model.relax -q");
    let text = place.ok("profile model.so --dim n=8 --no-roof --top 2 --trace trace.json").out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("main: ") && lines[0].contains(" ms a run, 10 runs, 1 threads"), "{text}");
    assert_eq!(lines[1], "inputs: x float32[8, 4], w float32[4, 8]");
    let head: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(head, ["function", "calls", "time", "(ms)", "share", "GFLOP/s", "GB/s", "of", "roof"]);
    assert!(lines[5].starts_with("and ") && lines[6] == "wrote trace.json", "{text}");
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(place.path("trace.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().iter().any(|event| event["name"] == "matmul"));
    assert_eq!(place.run("profile model.so --dim n=8 --runs 0").code, 2);
}

/// A browser without a window.
fn browser() -> Option<&'static str> {
    let found = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()));
    if found.is_none() {
        eprintln!("skipped: there is no Chromium to look at the page with (`scripts/setup test-tools` installs it)");
    }
    found
}

#[test]
fn the_page_stands_alone_and_a_browser_shows_it() {
    let place = Workplace::with_models();
    place.ok("profile model.onnx --dim batch=1 --no-roof --html page.html");
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    for reference in ["src=", "href=", "url(", "@import", "fetch("] {
        assert!(!page.contains(reference), "the page needs nothing else, but has {reference}");
    }
    let addresses = page.matches("://").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count(), "no address but the namespace of SVG");
    for part in [
        "<meta name=\"viewport\"",
        "@media(prefers-color-scheme:dark)",
        "<th class=\"nodes\">nodes of the model</th>",
        "Conv `",
        "class=\"axis\"",
        "aria-sort=\"descending\"",
        "class=\"share\" style=\"--part:",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let Some(browser) = browser() else { return };
    let shown = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", place.path("browser").display()))
        .arg(format!("file://{}", place.path("page.html").display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&shown.stdout);
    assert!(
        dom.contains("data-ready=\"yes\""),
        "its script ran to the end: {}",
        String::from_utf8_lossy(&shown.stderr)
    );
    for part in ["<h2>Time</h2>", "<h2>Memory</h2>", "<h2>Graph</h2>", "fused_conv2d_relu", "<polygon"] {
        assert!(dom.contains(part), "{part}");
    }
    assert_eq!(dom.matches("<svg").count(), 3);
}
