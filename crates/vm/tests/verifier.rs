//! One program for each rule that breaks it and nothing else.

use relaxide_vm::verifier::Rule;
use relaxide_vm::{Executable, verify};

/// The binary form of an executable, field by field.
#[derive(Clone)]
struct Raw {
    functions: Vec<(i32, &'static str, [i64; 4], usize)>,
    scopes: Vec<i64>,
    constants: usize,
    code: Vec<Vec<i64>>,
    offsets: Option<Vec<i64>>,
    trailing_words: usize,
}

const VOID: i64 = 1 << 54;
const VM: i64 = VOID + 1;
const IMMEDIATE: i64 = 1 << 56;
const CONSTANT: i64 = 2 << 56;
const FUNCTION: i64 = 3 << 56;

impl Raw {
    /// `main(x)` with three registers and one constant: calls `other` and returns.
    fn valid() -> Self {
        Self {
            functions: vec![(1, "main", [0, 4, 1, 3], 1), (0, "other", [0, 0, -2, 0], 0), (1, "last", [4, 5, 0, 1], 0)],
            scopes: vec![0],
            constants: 1,
            code: vec![
                vec![1, 1, 1, 5, 0, IMMEDIATE, CONSTANT, FUNCTION, VM],
                vec![4, 1, 2],
                vec![3, 1],
                vec![2, 1],
                vec![2, 0],
            ],
            offsets: None,
            trailing_words: 0,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = 0xD225_DE2F_4214_151E_u64.to_le_bytes().to_vec();
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text.as_bytes());
        };
        let words = |out: &mut Vec<u8>, words: &[i64]| words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        text(&mut out, "0.14");
        words(&mut out, &[self.functions.len() as i64]);
        for (kind, name, numbers, params) in &self.functions {
            out.extend(kind.to_le_bytes());
            text(&mut out, name);
            words(&mut out, numbers);
            words(&mut out, &[*params as i64]);
            (0..*params).for_each(|_| text(&mut out, "p"));
        }
        words(&mut out, &[self.scopes.len() as i64]);
        for index in &self.scopes {
            words(&mut out, &[*index]);
            text(&mut out, "global");
        }
        words(&mut out, &[self.constants as i64]);
        for value in 0..self.constants as i64 {
            out.extend(1_i32.to_le_bytes());
            words(&mut out, &[value]);
        }
        let starts: Vec<i64> = self
            .code
            .iter()
            .scan(0, |at, words| {
                let start = *at;
                *at += words.len() as i64;
                Some(start)
            })
            .collect();
        let offsets = self.offsets.clone().unwrap_or(starts);
        words(&mut out, &[offsets.len() as i64]);
        words(&mut out, &offsets);
        let data: Vec<i64> = self.code.concat().into_iter().chain(vec![0; self.trailing_words]).collect();
        words(&mut out, &[data.len() as i64]);
        words(&mut out, &data);
        out
    }

    fn refusal(&self) -> Option<Rule> {
        let executable = Executable::from_bytes(&self.bytes()).unwrap();
        verify(executable.into()).err().map(|error| error.rule)
    }
}

/// Asserts that a change of the valid program breaks a rule that the pattern describes.
macro_rules! refused {
    ($($name:literal: |$raw:ident| $change:expr => $rule:pat,)*) => {
        let mut failures = Vec::new();
        $({
            let mut $raw = Raw::valid();
            $change;
            let found = $raw.refusal();
            if !matches!(found, Some($rule)) {
                failures.push(format!("{}: {found:?}", $name));
            }
        })*
        assert!(failures.is_empty(), "{failures:#?}");
    };
}

#[test]
fn the_program_is_valid_before_it_is_changed() {
    assert_eq!(Raw::valid().refusal(), None);
}

#[test]
fn every_rule_is_enforced() {
    refused! {
        "empty body": |raw| raw.functions[2].2 = [4, 4, 0, 1] => Rule::Range { .. },
        "body before the code": |raw| raw.functions[2].2 = [-1, 5, 0, 1] => Rule::Range { .. },
        "body behind the code": |raw| raw.functions[2].2 = [4, 6, 0, 1] => Rule::Range { .. },
        "body far behind the code": |raw| raw.functions[2].2 = [4, i64::MAX, 0, 1] => Rule::Range { .. },
        "shared code": |raw| raw.functions[2].2 = [3, 5, 0, 1] => Rule::Overlap { .. },
        "negative arguments": |raw| raw.functions[2].2 = [4, 5, -2, 1] => Rule::NumArgs { num_args: -2 },
        "frame smaller than the arguments": |raw| raw.functions[0].2 = [0, 4, 1, 0] => Rule::FrameSize { .. },
        "absurd frame": |raw| raw.functions[0].2 = [0, 4, 1, 1 << 40] => Rule::FrameSize { .. },
        "no room for a native result": |raw| raw.functions.push((2, "t", [0, 0, 1, 1], 0)) => Rule::FrameSize { .. },
        "too many names": |raw| raw.functions[0].3 = 2 => Rule::ParamNames { .. },
        "scope of no constant": |raw| raw.scopes[0] = 1 => Rule::MemoryScope { .. },
        "scope of a negative constant": |raw| raw.scopes[0] = -1 => Rule::MemoryScope { .. },
        "no end": |raw| raw.code[4] = vec![1, VOID, 1, 0] => Rule::FallsOff,
        "gap": |raw| raw.offsets = Some(vec![0, 10, 13, 15, 17]) => Rule::NotContiguous { .. },
        "negative offset": |raw| raw.offsets = Some(vec![-1, 9, 12, 14, 16]) => Rule::NotContiguous { .. },
        "words left over": |raw| raw.trailing_words = 2 => Rule::TrailingWords(2),
        "no such opcode": |raw| raw.code[4] = vec![7, 0] => Rule::Bytecode(_),
        "no such kind of argument": |raw| raw.code[0][4] = 9 << 56 => Rule::Bytecode(_),
        "destination outside": |raw| raw.code[0][1] = 3 => Rule::Register { .. },
        "negative destination": |raw| raw.code[0][1] = -1 => Rule::Register { .. },
        "the machine as destination": |raw| raw.code[0][1] = VM => Rule::Register { .. },
        "argument outside": |raw| raw.code[0][4] = 3 => Rule::Register { .. },
        "result outside": |raw| raw.code[3][1] = 9 => Rule::Register { .. },
        "condition outside": |raw| raw.code[1][1] = VOID => Rule::Register { .. },
        "constant outside": |raw| raw.code[0][6] = CONSTANT | 1 => Rule::Constant { .. },
        "function value outside": |raw| raw.code[0][7] = FUNCTION | 3 => Rule::Function { .. },
        "callee outside": |raw| raw.code[0][2] = 3 => Rule::Function { .. },
        "negative callee": |raw| raw.code[0][2] = -1 => Rule::Function { .. },
        "wrong arity": |raw| raw.code[0][2] = 2 => Rule::Arity { expected: 0, found: 5, .. },
        "jump to itself": |raw| raw.code[2][1] = 0 => Rule::Jump { offset: 0 },
        "jump out at the end": |raw| raw.code[2][1] = 2 => Rule::Jump { .. },
        "jump out at the front": |raw| raw.code[2][1] = -3 => Rule::Jump { .. },
        "jump beyond all numbers": |raw| raw.code[2][1] = i64::MAX => Rule::Jump { .. },
        "branch without a true side": |raw| raw.code[1][2] = 1 => Rule::Branch { .. },
        "branch back": |raw| raw.code[1][2] = -1 => Rule::Branch { .. },
        "branch out": |raw| raw.code[1][2] = 3 => Rule::Jump { .. },
    }
}

#[test]
fn a_refusal_names_function_and_instruction() {
    let mut raw = Raw::valid();
    raw.code[0][4] = 77;
    let error = verify(Executable::from_bytes(&raw.bytes()).unwrap().into()).unwrap_err();
    let expected = "the VM executable is not valid, function \"main\", instruction 0: \
                    register %77 is not in the frame of 3 registers";
    assert_eq!(error.to_string(), expected);
}
