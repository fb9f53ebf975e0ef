//! Models that clients have loaded and unloaded, and what is counted of them.

use serde_json::json;

use crate::models;
use crate::server::Server;

#[test]
fn models_of_the_folder_are_loaded_and_unloaded() {
    for options in [&[][..], &["--workers", "1"]] {
        let folder = tempfile::tempdir().unwrap();
        let given = folder.path().join("given.so");
        let models = folder.path().join("models");
        std::fs::create_dir(&models).unwrap();
        models::compile(&models::scale(2), &given, &[]);
        models::compile(&models::scale(3), &models.join("more.so"), &[]);
        std::fs::write(models.join("broken.so"), b"no library").unwrap();
        let models = models.to_str().unwrap().to_owned();
        let server = Server::of_files(folder, &[given], &[&["--repository", &models], options].concat());
        let index = |body: &str| {
            let answer = server.post("/v2/repository/index", &serde_json::from_str(body).unwrap());
            let state = |model: &serde_json::Value| {
                format!("{} {}", model["name"].as_str().unwrap(), model["state"].as_str().unwrap())
            };
            answer.json().as_array().unwrap().iter().map(state).collect::<Vec<_>>()
        };
        let change = |name: &str, how: &str| server.post(&format!("/v2/repository/models/{name}/{how}"), &json!({}));
        assert_eq!(index("{}"), ["broken UNAVAILABLE", "given READY", "more UNAVAILABLE"]);
        assert_eq!(server.infer("more", &[1, 3], &[1.0; 3]).status, 404);
        for _ in 0..2 {
            assert_eq!(change("more", "load").status, 200);
            assert_eq!(server.infer("more", &[1, 3], &[1.0; 3]).numbers(), [3.0; 3]);
            assert_eq!(index("{\"ready\": true}"), ["given READY", "more READY"]);
            assert_eq!(change("more", "unload").status, 200);
            assert_eq!(server.infer("more", &[1, 3], &[1.0; 3]).status, 404);
            assert_eq!(change("more", "unload").status, 404);
        }
        assert_eq!(change("given", "unload").status, 200);
        assert_eq!(index("{\"ready\": true}"), [""; 0]);
        assert_eq!(change("given", "load").status, 200);
        assert_eq!(server.infer("given", &[1, 3], &[1.0; 3]).numbers(), [2.0; 3]);
        let broken = change("broken", "load");
        assert!(broken.status >= 400 && broken.error().contains("model \"broken\""), "{}", broken.error());
        for name in ["none", "..%2Fgiven", ".."] {
            assert_eq!(change(name, "load").status, 404, "{name}");
        }
        let other =
            server.post("/v2/repository/models/more/load", &json!({ "parameters": { "file:1/model.so": "AAAA" } }));
        assert!(
            other.status == 415 && other.error().contains("`config` and `files` are not taken"),
            "{}",
            other.error()
        );
    }
}

#[test]
fn nothing_is_unloaded_unless_the_server_allows_it() {
    let server = Server::start(&[("scale", models::scale(2))], &[]);
    let answer = server.post("/v2/repository/models/scale/unload", &json!({}));
    assert!(answer.status == 415 && answer.error().contains("--repository FOLDER"), "{}", answer.error());
    assert_eq!(server.post("/v2/repository/models/other/load", &json!({})).status, 404);
    assert_eq!(server.infer("scale", &[1, 3], &[1.0; 3]).numbers(), [2.0; 3]);
}

#[test]
fn requests_rows_and_runs_are_counted() {
    let server = Server::start(&[("scale", models::scale(2)), ("total", models::total())], &["--max-batch", "4"]);
    for rows in [1, 3, 3, 9] {
        assert_eq!(server.infer("scale", &[rows, 3], &vec![1.0; 3 * rows as usize]).status, 200);
    }
    assert_eq!(server.infer("scale", &[1, 4], &[1.0; 4]).status, 400);
    assert_eq!(server.infer("total", &[5, 3], &[1.0; 15]).status, 200);
    let all = server.get("/v2/models/stats").json();
    assert_eq!(all["model_stats"].as_array().unwrap().len(), 2);
    let found = server.get("/v2/models/scale/versions/1/stats").json();
    let scale = &found["model_stats"][0];
    assert_eq!((&scale["inference_count"], &scale["execution_count"]), (&json!(16), &json!(4)));
    let stats = &scale["inference_stats"];
    for (name, count) in [("success", 4), ("fail", 1), ("queue", 4), ("compute_infer", 4), ("cache_hit", 0)] {
        assert_eq!(stats[name]["count"], json!(count), "{name}");
    }
    assert!(stats["success"]["ns"].as_u64() > stats["compute_infer"]["ns"].as_u64());
    let batches: Vec<_> = scale["batch_stats"].as_array().unwrap().iter().collect();
    assert_eq!(batches.iter().map(|batch| &batch["batch_size"]).collect::<Vec<_>>(), [&json!(1), &json!(3)]);
    assert_eq!(batches[1]["compute_infer"]["count"], json!(2));
    let total = server.get("/v2/models/total/stats").json();
    assert_eq!(total["model_stats"][0]["inference_count"], json!(1));
    assert_eq!(server.get("/v2/models/other/stats").status, 404);
}
