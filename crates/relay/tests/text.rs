//! The text, against what the reference printed.

use std::path::PathBuf;

use relaxide_ffi::{FreeVars, structural_equal};
use relaxide_relay::text::{PrintOptions, Source, parse, print_module};
use relaxide_relay::{Module, infer, json, parse_and_infer, to_a_normal_form};

const NAMES: [&str; 8] = ["closure", "const", "dense", "dynshape", "if_dyn", "list_sum", "loop", "tuple_match"];

fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read(name: &str) -> Module {
    parse(&Source::new("from_string", sample(name))).unwrap_or_else(|d| panic!("{name}: {d}"))
}

fn equal(a: &Module, b: &Module) -> bool {
    a.functions.len() == b.functions.len()
        && a.functions
            .iter()
            .all(|(name, f)| b.functions.get(name).is_some_and(|g| structural_equal(f, g, FreeVars::Same).is_ok()))
        && a.types.keys().eq(b.types.keys())
}

#[test]
fn a_type_that_is_left_open_is_read_to_an_equal_program() {
    let mut tried = 0;
    for name in NAMES {
        let text = sample(&format!("{name}.src.relay"));
        let nested = "#[version = \"0.0.5\"]\ndef @main(%f: fn (int32, (int32, bool)) -> int32, %r: ref(int32)) -> (int32, int32) { (1, 2) }";
        for text in [text.as_str(), nested] {
            let places = ["int32", "float32", "bool"].into_iter().flat_map(|ty| text.match_indices(ty));
            for (at, ty) in places {
                let open = format!("{}_{}", &text[..at], &text[at + ty.len()..]);
                let Ok(module) = parse(&Source::new("open", open.clone())) else { continue };
                tried += 1;
                let printed = print_module(&module, PrintOptions::default());
                let again = parse(&Source::new("again", printed.clone())).unwrap_or_else(|d| panic!("{d}\n{printed}"));
                assert!(equal(&module, &again), "{open}\nis printed as\n{printed}");
            }
        }
    }
    assert!(tried > 40, "only {tried} texts with an open type were read");
}

/// The text without places, and without line breaks at the end.
fn without_spans(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" span=") {
        out += &rest[..at];
        let behind = &rest[at..];
        rest = &behind[behind.find(" */").unwrap_or(behind.len())..];
    }
    (out + rest).trim_end().to_string()
}

#[test]
fn programs_are_printed_with_their_types_as_the_reference_prints_them() {
    for name in NAMES {
        let source = Source::new("from_string", sample(&format!("{name}.src.relay")));
        let (mut module, types) = parse_and_infer(&source).unwrap_or_else(|e| panic!("{name}: {}", e[0]));
        module.functions.sort_keys();
        let text = print_module(&module, PrintOptions { types: Some(&types), ..PrintOptions::default() });
        assert_eq!(text.trim_end(), without_spans(&sample(&format!("{name}.astext.txt"))), "{name}");
    }
}

#[test]
fn what_was_printed_is_read_to_an_equal_program() {
    for name in NAMES {
        let module = read(&format!("{name}.src.relay"));
        let text = print_module(&module, PrintOptions::default());
        let again = parse(&Source::new("again", text.clone())).unwrap_or_else(|d| panic!("{name}: {d}\n{text}"));
        assert!(equal(&module, &again), "{name}:\n{text}");
    }
}

#[test]
fn the_texts_of_the_reference_are_read_and_typed() {
    for name in NAMES {
        for kind in ["astext", "anf"] {
            let module = read(&format!("{name}.{kind}.txt"));
            infer(&module).unwrap_or_else(|e| panic!("{name}.{kind}: {}", e[0].message));
        }
    }
}

#[test]
fn normal_form_is_that_of_the_reference_but_for_names_and_constants() {
    for name in NAMES {
        let module = to_a_normal_form(&read(&format!("{name}.src.relay")));
        infer(&module).unwrap_or_else(|e| panic!("{name}: {}", e[0].message));
        let text = print_module(&module, PrintOptions::default());
        // Every computation has a name: nothing has a number.
        assert!(!text.contains("%0"), "{name}:\n{text}");
        let again = to_a_normal_form(&module);
        assert!(equal(&module, &again), "{name}: a second time changes the program\n{text}");
    }
}

#[test]
fn graphs_of_the_reference_are_read_to_the_programs_that_they_were_saved_of() {
    for name in NAMES {
        let loaded = json::load(&sample(&format!("{name}.mod.json"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut module = read(&format!("{name}.astext.txt"));
        module.functions.sort_keys();
        let (a, b) = (print_module(&loaded, PrintOptions::default()), print_module(&module, PrintOptions::default()));
        assert_eq!(a, b, "{name}");
        infer(&loaded).unwrap_or_else(|e| panic!("{name}: {}", e[0].message));
    }
}

#[test]
fn a_saved_graph_comes_back() {
    for name in NAMES {
        let mut module = read(&format!("{name}.src.relay"));
        module.functions.sort_keys();
        let again = json::load(&json::save(&module).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(equal(&module, &again), "{name}");
    }
}

#[test]
fn the_prelude_is_read_typed_and_printed() {
    let module = relaxide_relay::prelude::prelude().unwrap();
    let types = infer(module).unwrap_or_else(|e| panic!("{}", e[0].diagnostic(None)));
    assert_eq!(module.functions.len(), 24);
    let text = print_module(module, PrintOptions { types: Some(&types), ..PrintOptions::default() });
    let again = parse(&Source::new("again", text)).unwrap_or_else(|d| panic!("{d}"));
    assert!(infer(&again).is_ok());
}

#[test]
fn problems_are_named_in_the_words_of_the_reference_at_their_lines() {
    let cases = [
        (
            "def @main(%x: Tensor[(3), float32], %y: Tensor[(4), float32]) { %x + %y }",
            "Incompatible broadcast type TensorType([3], float32) and TensorType([4], float32)",
            65,
        ),
        (
            "def @main(%x: Tensor[(3), float32], %y: Tensor[(3), int32]) { %x + %y }",
            "data types float32 and int32 do not match in BroadcastRel",
            63,
        ),
        (
            "def @main(%x: Tensor[(3), float32]) { if (%x) { 1 } else { 2 } }",
            "In particular `Tensor[(3), float32]` does not match `bool`",
            11,
        ),
        ("def @main(%x: bool) { if (%x) { 1 } else { 2f } }", "In particular `int32` does not match `float32`", 23),
        (
            "def @f(%x: int32) -> int32 { %x } def @main(%x: float32) { @f(%x) }",
            "In particular `int32` does not match `float32`",
            60,
        ),
        (
            "def @f(%x: int32) -> int32 { %x } def @main(%x: int32) { @f(%x, %x) }",
            "the function is provided too many arguments expected 1, found 2",
            58,
        ),
        (
            "def @main(%x: int32) { %x(1) }",
            "only expressions with function types can be called, found TensorType([], int32)",
            24,
        ),
        (
            "type L[A] { C(A, L[A]), N, } def @main(%l: L[int32]) { match (%l) { C(%h, _) => %h, } }",
            "match expression does not handle the following cases: case 0: \nN",
            56,
        ),
        (
            "type L[A] { C(A, L[A]), N, } def @main(%l: L[int32]) { match? (%l) { C(%h) => %h, } }",
            "Not enough inputs for the constructor; expected 2, got 1",
            56,
        ),
        ("def @main(%x) { %x }", "unable to infer a type for this expression", 11),
        ("def @main(%x: int32) { let %f = fn (%y: int32) -> float32 { %y }; %f(%x) }", "does not match", 33),
        ("def @main(%x: int32) { foo(%x) }", "operator `foo` not found, perhaps you forgot to register it?", 24),
        ("def @main() { 1.5 }", "invalid integer number `1.5`", 15),
        ("def @main(%x: bool) -> Foo[int32] { %x }", "the type variable : `Foo` is undefined", 5),
        ("def @main() { %y }", "this local variable has not been previously declared", 15),
        ("def @main() { 1i8 }", "Unrecognized int scalar width: 8", 15),
        ("type A { X, } type B { X, } def @main() { 1 }", "a constructor with the name `X` was previously defined", 24),
        ("extern type A { X, } def @main() { 1 }", "an external type may not have any constructors", 13),
        ("def @main() { meta[relay.Constant][0] }", "no entry in the meta table for `relay.Constant`", 15),
        (
            "def @main(%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[4, 2]) }",
            "Input tensor shape(2,3) and reshaped shape(4,2) are not compatible!",
            42,
        ),
        ("def @main(%x: int32) { match? (%x) { Foo(%y) => 1, } }", "undefined constructor name `Foo`", 38),
    ];
    for (text, expected, column) in cases {
        let source = Source::new("a.relay", format!("#[version = \"0.0.5\"]\n{text}"));
        let errors = parse_and_infer(&source).map(|_| ()).expect_err(text);
        let found = errors.iter().find(|d| d.message.contains(expected));
        let found = found.unwrap_or_else(|| panic!("{text}: {}", errors[0]));
        let snippet = found.snippet.as_ref().unwrap_or_else(|| panic!("{text}: no place"));
        assert_eq!((snippet.line, snippet.column), (2, column), "{text}: {found}");
    }
    let error = parse(&Source::new("a", "#[version = \"0.0.4\"]\n")).unwrap_err();
    assert!(error.message.contains("invalid semantic version `0.0.4`"));
}

#[test]
fn results_of_operators_with_unknown_dimensions_have_the_types_that_the_reference_gives() {
    let head = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, ?, 4), float32], %i: Tensor[(3), int64], %s: Tensor[(2), int64]) { ";
    let cases = [
        ("reshape(%x, newshape=[0, -1])", "Tensor[(2, ?), float32]"),
        ("reshape(%x, newshape=[-3, 4])", "Tensor[(?, 4), float32]"),
        ("reshape(%x, newshape=[-2])", "Tensor[(2, ?, 4), float32]"),
        ("argmax(%x, axis=[1])", "Tensor[(2, 4), int32]"),
        ("take(%x, %i)", "Tensor[(3), float32]"),
        ("dyn.reshape(%x, %s, newshape=[])", "Tensor[(?, ?), float32]"),
        ("transpose(%x, axes=None)", "Tensor[(4, ?, 2), float32]"),
        ("mean(%x, axis=[0], keepdims=True)", "Tensor[(1, ?, 4), float32]"),
        ("strided_slice(%x, begin=[0,0,0], end=[1,1,1], strides=[1,1,1], axes=None)", "Tensor[(1, ?, 1), float32]"),
        ("split(%x, indices_or_sections=2, axis=0)", "(Tensor[(1, ?, 4), float32], Tensor[(1, ?, 4), float32])"),
        ("nn.batch_flatten(%x)", "Tensor[(2, ?), float32]"),
        ("where(%x > 0f, %x, %x)", "Tensor[(2, ?, 4), float32]"),
        ("layout_transform(%x, src_layout=\"NCW\", dst_layout=\"NCW4w\")", "Tensor[(2, ?, 1, 4), float32]"),
        ("sort(%x)", "Tensor[(2, ?, 4), float32]"),
        ("isnan(%x)", "Tensor[(2, ?, 4), bool]"),
        ("one_hot(%i, 1, 0, depth=4, dtype=\"int32\")", "Tensor[(3, 4), int32]"),
        ("dyn.zeros(%s, shape=None, dtype=\"float32\")", "Tensor[(?, ?), float32]"),
        ("gather_nd(%x, cast(%s, dtype=\"int32\"))", "Tensor[(4), float32]"),
        ("tile(%x, reps=[2])", "Tensor[(2, ?, 8), float32]"),
        ("repeat(%x, repeats=2, axis=0)", "Tensor[(4, ?, 4), float32]"),
        ("nn.softmax(%x)", "Tensor[(2, ?, 4), float32]"),
        ("cast(%x, dtype=\"bool\")", "Tensor[(2, ?, 4), bool]"),
        ("nn.dropout(%x)", "(Tensor[(2, ?, 4), float32], Tensor[(2, ?, 4), float32])"),
    ];
    let mut wrong = Vec::new();
    for (call, expected) in cases {
        let source = Source::new("a.relay", format!("{head}{call} }}"));
        match parse_and_infer(&source) {
            Ok((module, types)) => {
                let found = types.of(&module.functions["main"].body).unwrap().to_string();
                if found != expected {
                    wrong.push(format!("{call}: {found}, not {expected}"));
                }
            }
            Err(errors) => wrong.push(format!("{call}: {}", errors[0].message)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let source = Source::new("a.relay", format!("{head}squeeze(%x) }}"));
    assert!(parse_and_infer(&source).unwrap_err()[0].message.contains("axis needs to be defined for dynamic input."));
}

#[test]
fn names_that_are_no_words_are_written_between_back_quotes() {
    let plain = r#"#[version = "0.0.5"]
type `-1`[A] {
  `if`(A),
  `two words`,
}

def @`a\`b`(%x: int32, `odd.attr.`=1) -> int32 {
  match (%x) {
    %y => {
      add(%y, 1)
    },
  }
}

def @main[A](%v: `-1`[A], %w: int32) -> `-1`[A] {
  let %s = @`a\`b`(%w);
  match (%v) {
    `if`(%z) => {
      `if`(%z)
    },
    _ => {
      `two words`
    },
  }
}
"#;
    let module = parse(&Source::new("odd", plain)).unwrap_or_else(|d| panic!("{d}"));
    assert!(module.functions.contains_key("a`b") && module.types.contains_key("-1"));
    assert!(infer(&module).is_ok());
    let text = print_module(&module, PrintOptions::default());
    assert_eq!(text, plain);
    let saved = json::load(&json::save(&module).unwrap()).unwrap();
    assert!(equal(&module, &saved));
    assert_eq!(print_module(&saved, PrintOptions::default()), plain);
    // A constructor takes the place of an operator of its name, which is an entry of the metadata then.
    let renamed = json::save(&module).unwrap().replace("two words", "add");
    let clashing = json::load(&renamed).unwrap();
    let text = print_module(&clashing, PrintOptions::default());
    assert!(text.contains("meta[Op][0](%y, 1)") && text.contains("  add,"), "{text}");
    let again = parse(&Source::new("again", text.clone())).unwrap_or_else(|d| panic!("{d}\n{text}"));
    assert!(equal(&clashing, &again), "{text}");
}

#[test]
fn type_parameters_are_told_apart_by_names_of_their_own() {
    let module = parse(&Source::new(
        "inner",
        "#[version = \"0.0.5\"]\ntype t { c }\ndef @f[A](%x: A) -> A { let %g = fn [B](%y: B, %z: A) -> A { %z }; %g(c, %x) }",
    ))
    .unwrap();
    // Inner and outer parameter have one name, that of a type, or that of an element type.
    for name in ["A", "t", "int32", "-"] {
        let text = json::save(&module).unwrap();
        let renamed = ["\"A\"", "\"B\""].iter().fold(text, |text, old| text.replace(old, &format!("\"{name}\"")));
        let read = json::load(&renamed).unwrap();
        assert!(infer(&read).is_ok(), "{name}");
        let printed = print_module(&read, PrintOptions::default());
        let again = parse(&Source::new("again", printed.clone())).unwrap_or_else(|d| panic!("{name}: {d}\n{printed}"));
        assert!(equal(&read, &again), "{printed}");
    }
}

#[test]
fn texts_of_the_first_release_are_read() {
    let whole = "v0.0.4\ndef @id[A](%x: A) -> A { %x }\ndef @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n  \
                 %0 = nn.relu(%x) /* ty=Tensor[(2, 3), float32] */;\n  @id(%0)\n}\n// meta data omitted. you can use \
                 show_meta_data=True to include meta data";
    let alone = "v0.0.4\nfree_var %x: Tensor[(2,), float32]\nfree_var %y: Tensor[(2,), float32];\n%0 = add(%x, %y)\n;\ntanh(%0)";
    let function =
        "v0.0.4\nfn (%x: Tensor[(2,), float32]) -> Tensor[(2,), float32] {\n  add(%x, meta[relay.Constant][0])\n}\n";
    for text in [whole.to_string(), alone.to_string()] {
        let module = parse(&Source::new("old", text)).unwrap_or_else(|d| panic!("{d}"));
        assert!(infer(&module).is_ok() && module.functions.contains_key("main"));
    }
    // Metadata began with a word, and their maps had another key.
    let json = sample("const.mod.json");
    let graph: serde_json::Value = serde_json::from_str(&json).unwrap();
    let metadata = serde_json::json!({"root": 1, "nodes": [
        {"type_key": ""},
        {"type_key": "StrMap", "keys": ["relay.Constant"], "data": [2]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "relay.Constant", "attrs": {"data": "0"}},
    ], "b64ndarrays": graph["b64ndarrays"], "attrs": {"tvm_version": "0.6.0"}});
    let module = parse(&Source::new("old", format!("{function}METADATA:\n{metadata}")));
    let module = module.unwrap_or_else(|d| panic!("{d}"));
    assert!(module.functions["main"].body.children().len() == 3);
}

#[test]
fn names_say_where_they_live_wherever_they_are_bound() {
    let text = r##"#[version = "0.0.5"]
def @main(%n {virtual_device=meta[VirtualDevice][0]}: int32) -> int32 {
  let %g {virtual_device=meta[VirtualDevice][0]}: int32 = %n;
  match (%g) {
    %h {virtual_device=meta[VirtualDevice][0]} => {
      %h
    },
  }
}

#[metadata]
{
  "attrs": {"tvm_version": "0.16.0"}, "b64ndarrays": [], "root": 1,
  "nodes": [
    {"type_key": ""}, {"type_key": "Map", "keys": ["VirtualDevice"], "data": [4]}, {"type_key": "runtime.String"},
    {"type_key": "VirtualDevice", "attrs": {"device_type_int": "1", "memory_scope": "2", "target": "0", "virtual_device_id": "0"}},
    {"type_key": "Array", "data": [3]}
  ]
}
"##;
    let module = parse(&Source::new("placed", text)).unwrap_or_else(|d| panic!("{d}"));
    let printed = print_module(&module, PrintOptions::default());
    assert_eq!(printed.matches("{virtual_device=meta[VirtualDevice][0]}").count(), 3, "{printed}");
    let again = parse(&Source::new("again", printed.clone())).unwrap_or_else(|d| panic!("{d}\n{printed}"));
    assert!(equal(&module, &again), "{printed}");
}
