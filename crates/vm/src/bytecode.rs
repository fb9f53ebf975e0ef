//! The instruction set of the Relax VM: four opcodes over 64-bit words.
//!
//! An executable stores its code as one flat array of words and a table with the position of each instruction in it.
//! The fields of an instruction are plain integers, except the arguments of a call: each of these is one word with its
//! kind in the top eight bits and its value, sign extended, in the other 56.
//!
//! | opcode | words | meaning |
//! | --- | --- | --- |
//! | 1 `call` | `1, dst, func, n, arg × n` | call function `func`, write its result to register `dst` |
//! | 2 `ret` | `2, result` | return the value in register `result` |
//! | 3 `goto` | `3, offset` | move on by `offset` instructions |
//! | 4 `If` | `4, cond, false_offset` | fall through if register `cond` is not zero, else move by `false_offset` |
//!
//! Two register numbers stand for something else than a place in the frame: [`Register::VOID`] (no value) and
//! [`Register::VM`] (the virtual machine itself).
//!
//! Nothing here trusts its input: [`Instruction::decode`] refuses what is not an instruction, and the verifier checks
//! that what an instruction names exists.

use std::fmt;

/// The opcode words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum Opcode {
    /// Call a function.
    Call = 1,
    /// Return from the current function.
    Ret = 2,
    /// Jump.
    Goto = 3,
    /// Branch on a register.
    If = 4,
}

impl Opcode {
    /// The opcode that a word stands for.
    pub fn from_word(word: i64) -> Option<Self> {
        [Self::Call, Self::Ret, Self::Goto, Self::If].into_iter().find(|op| *op as i64 == word)
    }

    /// The name that the text form prints.
    pub fn mnemonic(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Ret => "ret",
            Self::Goto => "goto",
            Self::If => "If",
        }
    }
}

/// The number of a register in a function's frame, or one of the two special registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub i64);

impl Register {
    /// The first number that is not a register of the frame.
    pub const SPECIAL_BASE: i64 = 1 << 54;
    /// As a destination: drop the result. As an argument: the null value.
    pub const VOID: Self = Self(Self::SPECIAL_BASE);
    /// As an argument: the virtual machine.
    pub const VM: Self = Self(Self::SPECIAL_BASE + 1);

    /// Whether this is one of the numbers that stand for something else than a place in the frame.
    pub fn is_special(self) -> bool {
        self.0 >= Self::SPECIAL_BASE
    }

    /// The index in a frame of `frame_size` registers, or `None` if there is no such register.
    pub fn index_in(self, frame_size: usize) -> Option<usize> {
        usize::try_from(self.0).ok().filter(|index| *index < frame_size)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::VOID => f.write_str("%void"),
            Self::VM => f.write_str("%vm"),
            Self(number) => write!(f, "%{number}"),
        }
    }
}

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// The value of a register.
    Register(Register),
    /// A small integer, written in the instruction itself.
    Immediate(i64),
    /// An entry of the constant pool.
    Constant(i64),
    /// A function of the function table, as a value.
    Function(i64),
}

impl Arg {
    /// The largest value that an argument word holds; the smallest is its negation.
    pub const VALUE_LIMIT: i64 = (1 << 55) - 1;
    const VALUE_BITS: u32 = 56;
    const KINDS: i64 = 4;

    /// Reads an argument word.
    pub fn from_word(word: i64) -> Result<Self, BytecodeError> {
        let value = (word << (64 - Self::VALUE_BITS)) >> (64 - Self::VALUE_BITS);
        // The kind is the unsigned top byte: a logical shift.
        match (word as u64 >> Self::VALUE_BITS) as u8 {
            0 => Ok(Self::Register(Register(value))),
            1 => Ok(Self::Immediate(value)),
            2 => Ok(Self::Constant(value)),
            3 => Ok(Self::Function(value)),
            kind => Err(BytecodeError::ArgKind { kind, kinds: Self::KINDS }),
        }
    }

    /// The word of this argument, or an error if its value does not fit.
    pub fn to_word(self) -> Result<i64, BytecodeError> {
        let (kind, value) = match self {
            Self::Register(register) => (0, register.0),
            Self::Immediate(value) => (1, value),
            Self::Constant(index) => (2, index),
            Self::Function(index) => (3, index),
        };
        if !(-Self::VALUE_LIMIT..=Self::VALUE_LIMIT).contains(&value) {
            return Err(BytecodeError::ValueRange { value, limit: Self::VALUE_LIMIT });
        }
        let mask = (1_i64 << Self::VALUE_BITS) - 1;
        Ok((kind << Self::VALUE_BITS) | (value & mask))
    }
}

/// The arguments of a call, still as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args<'a>(&'a [i64]);

impl<'a> Args<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The arguments in order.
    pub fn iter(self) -> impl Iterator<Item = Result<Arg, BytecodeError>> + 'a {
        self.0.iter().map(|word| Arg::from_word(*word))
    }
}

/// One instruction, read from the words of an executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction<'a> {
    /// Call function number `func`.
    Call {
        /// Where the result goes.
        dst: Register,
        /// Index in the function table.
        func: i64,
        /// What it is called with.
        args: Args<'a>,
    },
    /// Return the value of a register.
    Ret {
        /// The register.
        result: Register,
    },
    /// Jump by a number of instructions.
    Goto {
        /// Relative to this instruction.
        offset: i64,
    },
    /// Fall through if the register is not zero, else jump.
    If {
        /// The register.
        cond: Register,
        /// Relative to this instruction.
        false_offset: i64,
    },
}

impl<'a> Instruction<'a> {
    /// Reads the instruction that begins at word `at`.
    pub fn decode(words: &'a [i64], at: usize) -> Result<Self, BytecodeError> {
        let field = |index: usize| {
            let position = at.checked_add(index);
            position.and_then(|p| words.get(p)).copied().ok_or(BytecodeError::Truncated { at, words: words.len() })
        };
        let word = field(0)?;
        match Opcode::from_word(word).ok_or(BytecodeError::Opcode { word, at })? {
            Opcode::Call => {
                let (dst, func, count) = (Register(field(1)?), field(2)?, field(3)?);
                let args = usize::try_from(count)
                    .ok()
                    .and_then(|n| words.get(at + 4..)?.get(..n))
                    .ok_or(BytecodeError::ArgCount { count, at })?;
                Ok(Self::Call { dst, func, args: Args(args) })
            }
            Opcode::Ret => Ok(Self::Ret { result: Register(field(1)?) }),
            Opcode::Goto => Ok(Self::Goto { offset: field(1)? }),
            Opcode::If => Ok(Self::If { cond: Register(field(1)?), false_offset: field(2)? }),
        }
    }

    /// The opcode.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Call { .. } => Opcode::Call,
            Self::Ret { .. } => Opcode::Ret,
            Self::Goto { .. } => Opcode::Goto,
            Self::If { .. } => Opcode::If,
        }
    }

    /// How many words the instruction takes.
    pub fn words(&self) -> usize {
        match self {
            Self::Call { args, .. } => 4 + args.len(),
            Self::Ret { .. } | Self::Goto { .. } => 2,
            Self::If { .. } => 3,
        }
    }
}

/// Why words are not an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytecodeError {
    /// The first word is no opcode. The file is damaged or of another format.
    #[error("word {at} is {word}, which is not an opcode")]
    Opcode {
        /// The word.
        word: i64,
        /// Its position.
        at: usize,
    },
    /// The code ends inside an instruction.
    #[error("the instruction at word {at} runs past the end of the code ({words} words)")]
    Truncated {
        /// Where the instruction begins.
        at: usize,
        /// How many words there are.
        words: usize,
    },
    /// A call has more arguments than there are words left, or fewer than none.
    #[error("the call at word {at} has {count} arguments, more than the code holds")]
    ArgCount {
        /// The count in the instruction.
        count: i64,
        /// Where the instruction begins.
        at: usize,
    },
    /// An argument word has a kind that does not exist.
    #[error("an argument has kind {kind}; there are {kinds} kinds")]
    ArgKind {
        /// The kind byte.
        kind: u8,
        /// How many kinds exist.
        kinds: i64,
    },
    /// A value does not fit the 56 bits of an argument word.
    #[error("the value {value} does not fit an argument word (at most {limit} either side of zero)")]
    ValueRange {
        /// The value.
        value: i64,
        /// The largest magnitude.
        limit: i64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_words_are_those_of_the_format() {
        assert_eq!(Arg::Immediate(-5).to_word().unwrap(), 0x01ff_ffff_ffff_fffb);
        assert_eq!(Arg::Constant(2).to_word().unwrap(), 0x0200_0000_0000_0002);
        assert_eq!(Arg::Register(Register::VM).to_word().unwrap(), 0x0040_0000_0000_0001);
        assert_eq!(Arg::Register(Register::VOID).to_word().unwrap(), 0x0040_0000_0000_0000);
    }

    #[test]
    fn argument_words_come_back() {
        for value in [0, 1, -1, 77, Arg::VALUE_LIMIT, -Arg::VALUE_LIMIT] {
            for arg in
                [Arg::Register(Register(value)), Arg::Immediate(value), Arg::Constant(value), Arg::Function(value)]
            {
                assert_eq!(Arg::from_word(arg.to_word().unwrap()).unwrap(), arg);
            }
        }
    }

    #[test]
    fn a_value_beyond_the_limit_is_refused() {
        let error = Arg::Immediate(Arg::VALUE_LIMIT + 1).to_word().unwrap_err();
        assert!(matches!(error, BytecodeError::ValueRange { .. }));
        assert!(matches!(Arg::from_word(4 << 56), Err(BytecodeError::ArgKind { kind: 4, .. })));
    }

    #[test]
    fn what_is_no_instruction_is_refused() {
        assert!(matches!(Instruction::decode(&[9, 0], 0), Err(BytecodeError::Opcode { word: 9, at: 0 })));
        assert!(matches!(Instruction::decode(&[2], 0), Err(BytecodeError::Truncated { .. })));
        assert!(matches!(Instruction::decode(&[], usize::MAX), Err(BytecodeError::Truncated { .. })));
        for count in [-1, 2, i64::MAX] {
            assert!(matches!(Instruction::decode(&[1, 0, 0, count, 0], 0), Err(BytecodeError::ArgCount { .. })));
        }
    }

    #[test]
    fn a_call_holds_its_arguments() {
        let words = [1, 3, 2, 2, 0, Arg::Immediate(7).to_word().unwrap()];
        let Instruction::Call { dst, func, args } = Instruction::decode(&words, 0).unwrap() else {
            panic!("not a call");
        };
        assert_eq!((dst, func), (Register(3), 2));
        let args: Vec<_> = args.iter().map(Result::unwrap).collect();
        assert_eq!(args, [Arg::Register(Register(0)), Arg::Immediate(7)]);
    }
}
