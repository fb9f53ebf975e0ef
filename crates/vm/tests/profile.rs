//! Profiles: every call of a run is counted once, with its time and its bytes, in all the forms.

use std::time::{Duration, Instant};

use crate::support::{machine, register};
use relaxide_ffi::{Any, AnyView, DataType, Function, Module, Tensor, get_global, replace_global};
use relaxide_vm::{Arg, ExecBuilder, ProfileReport, ProfileRow, Register};
use serde_json::Value;

fn reg(number: i64) -> Arg {
    Arg::Register(Register(number))
}

/// `main(x, n)`: calls `inner(x)` twice, which sleeps; both kernels and `main` are in the profile.
fn program() -> Module {
    replace_global(
        "test.profile.\"sleep\"",
        Function::new(|args| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(args[0].to_owned())
        }),
    );
    register("test.profile.nothing", |_| 0);
    let mut b = ExecBuilder::new();
    b.begin_function("inner", &["x"]).unwrap();
    b.emit_call("test.profile.\"sleep\"", &[reg(0)], Register(1)).unwrap();
    b.emit_ret(Register(1)).unwrap();
    b.end_function().unwrap();
    b.begin_function("main", &["x"]).unwrap();
    b.emit_call("inner", &[reg(0)], Register(1)).unwrap();
    let inner = b.function("inner").unwrap();
    let args = [Arg::Register(Register::VM), inner, reg(1)];
    b.emit_call("vm.builtin.invoke_closure", &args, Register(2)).unwrap();
    b.emit_call("test.profile.nothing", &[], Register(3)).unwrap();
    b.emit_ret(Register(2)).unwrap();
    b.end_function().unwrap();
    b.get().unwrap().into_module()
}

fn row<'a>(report: &'a ProfileReport, name: &str) -> &'a ProfileRow {
    report.rows().iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}: {report:?}"))
}

#[test]
fn a_profile_counts_calls_times_and_bytes() {
    let vm = machine(&program());
    let x = Tensor::zeros(&[25], DataType::float(32)).unwrap();
    let start = Instant::now();
    let (result, report) = vm.profile("main", &[AnyView::from(&x)]).unwrap();
    let elapsed = start.elapsed();
    assert_eq!(result.to::<Tensor>().unwrap().data_ptr(), x.data_ptr());
    let calls: Vec<(&str, u64, usize)> = ["main", "inner", "test.profile.\"sleep\"", "test.profile.nothing"]
        .map(|name| {
            let row = row(&report, name);
            (row.name.as_str(), row.calls, row.bytes)
        })
        .to_vec();
    assert_eq!(
        calls,
        [("main", 1, 200), ("inner", 2, 400), ("test.profile.\"sleep\"", 2, 400), ("test.profile.nothing", 1, 0)]
    );
    let (main, inner, sleep) = (row(&report, "main"), row(&report, "inner"), row(&report, "test.profile.\"sleep\""));
    assert!(sleep.own >= Duration::from_millis(4) && inner.total >= sleep.total && main.total >= inner.total);
    assert!(inner.own < sleep.own && main.own < sleep.own);
    assert!(report.duration() <= elapsed && report.duration() >= main.total - Duration::from_micros(10));
    assert_eq!(report.rows()[0].name, "test.profile.\"sleep\"", "what took most comes first");
}

#[test]
fn the_forms_say_the_same() {
    let vm = machine(&program());
    let (_, report) = vm.profile("main", &[AnyView::from(1_i64)]).unwrap();
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    let calls = json["calls"].as_array().unwrap();
    assert_eq!(calls.len(), report.rows().len());
    for (call, row) in calls.iter().zip(report.rows()) {
        assert_eq!(call["Name"]["string"], row.name);
        assert_eq!(call["Count"]["count"], row.calls);
        assert_eq!(call["Device"]["string"], "cpu0");
        let time = call["Duration (us)"]["microseconds"].as_f64().unwrap();
        assert!((time - row.own.as_secs_f64() * 1e6).abs() < 0.01);
    }
    assert!(json["device_metrics"]["cpu0"]["Duration (us)"]["microseconds"].as_f64().unwrap() > 4000.0);
    let trace: Value = serde_json::from_str(&report.to_chrome_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.len() as u64, report.rows().iter().map(|row| row.calls).sum::<u64>());
    let main = events.iter().find(|event| event["name"] == "main").unwrap();
    for event in events {
        let (start, end) = (event["ts"].as_f64().unwrap(), main["ts"].as_f64().unwrap());
        assert!(event["ph"] == "X" && start >= end, "{event}");
    }
    let table = report.to_table();
    assert_eq!(table.lines().count(), report.rows().len() + 2);
    assert!(table.lines().next().unwrap().starts_with("Name") && table.contains("test.profile.\"sleep\""), "{table}");
    assert!(report.to_csv().contains("\"test.profile.\"\"sleep\"\"\",2,"), "{}", report.to_csv());
}

#[test]
fn the_module_hands_profiles_out() {
    let module = machine(&program()).to_module();
    let name = Any::from("main");
    let call =
        |function: &str| module.get_function(function, false).unwrap().call(&[name.as_view(), 1_i64.into()]).unwrap();
    let json: Value = serde_json::from_str(call("profile").as_str().unwrap()).unwrap();
    assert_eq!(json["configuration"]["Executor"]["string"], "VM");
    let report = call("profile_report");
    assert_eq!(report.type_key(), "runtime.profiling.Report");
    for form in ["AsTable", "AsCSV", "AsJSON", "AsChromeTrace"] {
        let form = get_global(&format!("runtime.profiling.{form}")).unwrap();
        assert!(form.call(&[report.as_view()]).unwrap().as_str().unwrap().contains("main"));
        assert!(form.call(&[]).is_err());
    }
    let error = module.get_function("profile", false).unwrap().call(&[Any::from("nobody").as_view()]).unwrap_err();
    assert_eq!(error.message(), "Unknown function: nobody");
}
