//! The devices of this machine.

use crate::workplace::Workplace;

#[test]
fn devices_are_listed_or_it_is_said_why_there_are_none() {
    let place = Workplace::new();
    let answer = place.json("devices");
    let devices = answer["devices"].as_array().unwrap();
    assert_eq!(devices[0]["device"], "cpu:0");
    let of_opencl = devices.iter().filter(|device| device["device"].as_str().unwrap().starts_with("opencl:")).count();
    let why = answer["absent"].as_array().unwrap().iter().find(|kind| kind["kind"] == "opencl");
    match why {
        Some(why) => assert!(of_opencl == 0 && why["why"].as_str().unwrap().contains("install"), "{why}"),
        None => assert!(of_opencl > 0 && devices[1]["name"].is_string(), "{answer}"),
    }
    let text = place.ok("devices").out;
    assert!(text.contains("cpu:0") && text.contains("opencl"), "{text}");
}

#[test]
fn a_target_without_a_back_end_says_so() {
    let place = Workplace::with_models();
    let said = place.run("compile model.relax --target metal").err;
    assert!(said.contains("target `metal` is not served: there is no back end of that kind"), "{said}");
    let said = place.run_args(&["compile", "model.relax", "--target", "llvm -mabi=lp64d"]).err;
    assert!(said.contains("mabi"), "{said}");
}
