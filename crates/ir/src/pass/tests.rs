//! The order in which passes and instruments run, and what contexts refuse.

use std::sync::Mutex;

use super::*;
use crate::AttrValue;

fn noting(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Pass {
    let log = log.clone();
    Pass::new(name, move |module, _| {
        log.lock().expect("no thread panicked").push(name.to_string());
        Ok(module)
    })
}

fn ran(context: &PassContext, passes: impl FnOnce(&Arc<Mutex<Vec<String>>>) -> Vec<Pass>) -> Vec<String> {
    let log = Arc::default();
    let sequence = Pass::sequential("all", passes(&log));
    sequence.run(IRModule::new(), context).expect("the passes succeed");
    log.lock().expect("no thread panicked").clone()
}

#[test]
fn a_sequence_runs_what_the_context_enables() {
    let context = PassContext {
        opt_level: 1,
        required: vec!["deep".into()],
        disabled: vec!["off".into()],
        ..PassContext::default()
    };
    let names = ran(&context, |log| {
        vec![
            noting("plain", log),
            noting("off", log),
            noting("high", log).opt_level(2),
            noting("deep", log).opt_level(3).requires(vec![noting("first", log)]),
        ]
    });
    assert_eq!(names, ["plain", "first", "deep"]);
}

#[test]
fn an_instrument_leaves_passes_out_unless_they_are_required() {
    struct Never;
    impl PassInstrument for Never {
        fn should_run(&self, pass: &Pass, _: &IRModule) -> Result<bool, PassError> {
            Ok(pass.name() == "all")
        }
    }
    let context =
        PassContext { required: vec!["b".into()], instruments: vec![Arc::new(Never)], ..PassContext::default() };
    assert_eq!(ran(&context, |log| vec![noting("a", log), noting("b", log)]), ["b"]);
}

#[test]
fn timing_shows_which_pass_ran_which() {
    let timing = Timing::new();
    let context = PassContext { instruments: vec![timing.clone()], ..PassContext::default() };
    ran(&context, |log| vec![noting("inner", log)]);
    let report = timing.report();
    let lines: Vec<&str> = report.lines().map(|line| line.split_once("ms  ").expect("a time").1).collect();
    assert_eq!(lines, ["all", "  inner", "total"]);
}

#[test]
fn unknown_options_and_wrong_kinds_are_refused() {
    let mut context = PassContext::default();
    assert!(context.config.set("relax.FuseOps.max_depth", 4).is_ok());
    let unknown = context.config.set("relax.FuseOp.max_depth", 4).expect_err("it is misspelt").to_string();
    assert!(unknown.contains("did you mean relax.FuseOps.max_depth"), "{unknown}");
    assert!(context.config.set("relax.FuseOps.max_depth", "deep").is_err());
    assert_eq!(context.config.int("relax.FuseOps.max_depth"), Some(4));
}

const SHOW: PassInfo = PassInfo::new("Show", "Shows its parameters.", |_, _, args| {
    Err(PassError::new("Show", format!("{:?} {:?}", args.dtype("out"), args.int("n"))))
})
.params(&[
    PassParam::required("out", ParamKind::DType, "An element type."),
    PassParam::new("n", ParamKind::Int, ParamDefault::Int(7), "A number."),
]);

fn shown(given: Attrs) -> String {
    let result = SHOW.make(&given).and_then(|pass| pass.run(IRModule::new(), &PassContext::default()));
    result.expect_err("it always fails").refusal.message
}

#[test]
fn parameters_have_defaults_and_are_checked() {
    assert_eq!(shown(Attrs::new().with("out", "float16")), "Some(float16) Some(7)");
    assert!(shown(Attrs::new()).contains("\"out\" must be given"));
    assert!(shown(Attrs::new().with("out", "float16").with("m", 1)).contains("it has out, n"));
    assert!(shown(Attrs::new().with("out", "no type")).contains("kind DType"));
}

#[test]
fn passes_are_written_as_text() {
    let calls = parse_calls("A, B(x=1, y=[a, 'b c'], 2.5), C(z={k: [NCHW, OIHW]}),").expect("the text is right");
    assert_eq!(calls.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!(calls[1].named.int("x"), Some(1));
    assert_eq!(calls[1].named.get("y"), Some(&AttrValue::List(vec!["a".into(), "b c".into()])));
    assert_eq!(calls[1].positional, [AttrValue::Float(2.5)]);
    for wrong in ["A(", "A(x=)", "A B", "A([1", "A('x", "(", &format!("A({}", "[".repeat(100))] {
        assert!(parse_calls(wrong).is_err(), "{wrong}");
    }
}
