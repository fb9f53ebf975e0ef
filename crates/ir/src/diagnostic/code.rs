//! The stable codes of problems, and what each means.
//!
//! A code is never given another meaning. Hundreds are stages: 1 reading a text, 2 rules that a module keeps, 3 passes,
//! 4 generation of code, 5 models of other formats, 6 files and calls.

/// A row of the table: the variant, its code, and its explanation.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $explain:literal;)*) => {
        /// What kind of problem it is; the number is stable and [`Code::explain`] says more.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[doc = $doc])* $name,)*
        }

        impl Code {
            /// All codes, in the order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The stable code, as `E0101`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// What the code means and what to do about it, for `relaxide explain`.
            pub const fn explain(self) -> &'static str {
                match self { $(Code::$name => $explain,)* }
            }
        }
    };
}

codes! {
    /// The text is not Python.
    Syntax = "E0101",
        "The text is not valid Python. TVMScript is Python syntax: check brackets, colons and indentation.";
    /// The text is nested or sized beyond a limit.
    Limit = "E0102",
        "The text is nested too deeply or too long. The limits keep a hostile text from exhausting the stack; split large \
         expressions into bindings.";
    /// Python that has no meaning in TVMScript.
    Unsupported = "E0103",
        "The construct is Python, but TVMScript gives it no meaning (or Relaxide does not support it yet). The text is \
         read, never run: calls of Python functions, comprehensions and imports of other modules have no effect here.";
    /// A name that is not in scope.
    UnknownName = "E0110",
        "A name is used that no parameter, binding, loop or declaration introduced. Dataflow variables end with their \
         block unless R.output names them.";
    /// A name behind `R.`, `T.` or `I.` that does not exist.
    UnknownMember = "E0111", "No operator, type or statement of that name exists behind R., T. or I.";
    /// Arguments that are missing, too many or of the wrong kind.
    Arguments = "E0120",
        "A call has arguments that are missing, unknown, too many, or not of the kind that is expected.";
    /// A type where another was expected.
    Type = "E0121", "A value or an annotation is of another type than the place needs.";
    /// An operator refuses its operands.
    Operator = "E0122",
        "The operator's own rules (shapes, dtypes, attributes, devices) refuse the call. The message lists the types of \
         its arguments.";
    /// A structure that the language forbids, such as a return in a dataflow block.
    Structure = "E0130",
        "Statements are arranged in a way that the language forbids: control flow in a dataflow block, a function without \
         return, a branch that ends without a binding …";
    /// The metadata section is missing or cannot be read.
    Metadata = "E0140",
        "The text mentions metadata[...], but its metadata section is absent or damaged. Print with metadata (show_meta) \
         to get a text that stands alone.";
    /// Python code around the program failed while the program was read.
    Outside = "E0150",
        "The program uses Python code of its surroundings (a helper function, a captured value), and that code raised an \
         exception while the program was read. The message is the exception's.";

    /// A variable that is used where it is not bound.
    Unbound = "E0201",
        "A function uses a variable before its binding, outside of the branch or the dataflow block that binds it, or \
         without any binding. Programs that are built node by node get there; give results of a block out with R.output \
         or emit_output.";
    /// A variable that is bound twice.
    BoundTwice = "E0202",
        "A variable is the target of two bindings. A variable is bound once; a second value needs a variable of its own.";
    /// A computation where an operand is expected.
    NotNormal = "E0203",
        "A computation stands as an operand of another, or a sequence in the place of a value. The block builder and the \
         pass Normalize bind every computation to a variable.";
    /// A symbolic variable that nothing binds.
    FreeSymbol = "E0204",
        "A symbolic variable stands in a type or a shape before a parameter's type or a match_cast binds it, so its value \
         is not known when the program runs.";
    /// An impure call where effects are forbidden.
    Impure = "E0205",
        "A dataflow block and a function that is declared pure may not call what has effects. End the block before the \
         call, declare the function with @R.function(pure=False), or promise by call_pure_packed that there is no effect.";
    /// A callee that does not exist, or arguments that do not fit it.
    Callee = "E0206",
        "A call names a function that the module lacks or an operator that does not exist, or gives it a wrong number of \
         arguments.";
    /// What has no place in its block.
    Misplaced = "E0207",
        "A dataflow block is a straight line: it holds no choice, and dataflow variables are bound in dataflow blocks only.";
    /// A declared type that contradicts what is there.
    Contradiction = "E0208",
        "A variable or a function declares a type that its value cannot have: another dtype, rank, or length of a \
         dimension. Where a length is only known when the program runs, R.match_cast checks it then.";

    /// A pass that does not exist.
    UnknownPass = "E0301",
        "No pass or pipeline has this name. `relaxide opt --list` shows the passes; names are those of TVM 0.27.";
    /// Parameters of a pass, or options of its context, that do not fit.
    PassArguments = "E0302",
        "A pass or the pass context was given a parameter that it does not have, or a value of the wrong kind. \
         `relaxide opt --list` shows the parameters of each pass with their defaults.";
    /// What a pass needs of a program, and does not find.
    Precondition = "E0303",
        "A pass found the program in a form that it does not work on. The message says what it needs; often another pass \
         brings the program there.";
    /// An operator that does not become code.
    NoLowering = "E0304",
        "No kernel can be made for a call: the operator has none, or the shapes and dtypes of its arguments are not known \
         well enough. R.match_cast gives a value of unknown shape a shape with symbolic dimensions.";
    /// A pass left a module that breaks the rules: a defect of the pass.
    BrokenByPass = "E0305",
        "A pass left a module that breaks the rules of modules. Where it is one of Relaxide's, that is a defect: please \
         report the program and the pass.";
    /// A step of a schedule that is not legal.
    ScheduleStep = "E0306",
        "A step of a manual schedule would change what the kernel computes, or names a block or loop that is not there. The \
         kernel is left as it was before the step. The message shows the place; docs of each step say when it is legal.";

    /// A target that does not exist or cannot be compiled for.
    Target = "E0401",
        "The target's text cannot be read: its kind or an option does not exist, or a value has the wrong form. Targets are \
         written as `llvm -mcpu=znver3` or as a dictionary.";
    /// What is left of a program that does not become bytecode.
    Bytecode = "E0402",
        "After all passes of the pipeline something is left that the virtual machine does not know. A pipeline that lowers \
         operators (`default`, `default_build`) is needed in front of code generation.";
    /// A kernel that does not become loops or machine code.
    Kernel = "E0403", "A kernel holds what the loops of the schedule rules or the back end do not support.";
    /// What the back end refuses.
    Native = "E0404", "The back end refuses the program or could not write the library.";
    /// An instruction set or a system that no code is made for.
    Architecture = "E0405",
        "The target's triple names an instruction set or a system that kernels are not compiled for. A triple is written \
         instruction set, system, environment: `-mtriple=aarch64-linux-gnu`; without one the machine at hand is meant.";
    /// A processor that is not known.
    Processor = "E0406",
        "The target's `-mcpu` names a processor that LLVM does not know for this instruction set. LLVM itself would warn and \
         compile for a processor of twenty years ago. Names are LLVM's; the message lists them.";
    /// A feature of processors that is not known.
    Feature = "E0407",
        "The target's `-mattr` adds or removes a feature that LLVM does not know for this instruction set, and would ignore. \
         Names are LLVM's, each with `+` or `-` in front: `-mattr=+avx2,-fma`.";
    /// An element type that the target has not.
    ElementType = "E0408",
        "A kernel computes with an element type that the target's back end has no code for. Convert the data to another \
         type, or keep that part of the program away from kernels.";
    /// Code that LLVM does not accept.
    Rejected = "E0409",
        "LLVM does not accept the code that a kernel became. The message names the kernel and the statement. A kernel that \
         calls LLVM's own functions with other types than theirs is at fault itself; anything else is a defect of Relaxide: \
         please report the program.";

    /// A model's file that cannot be read.
    Model = "E0501", "The file is no model of the format, or is damaged.";
    /// Operators or attributes of a model that cannot be imported.
    Import = "E0502", "The model uses operators, attributes or types that the importer does not support; all are listed.";

    /// A file that cannot be read or written.
    File = "E0601", "A file or folder cannot be read or written.";
    /// A call of a compiled function that failed.
    Call = "E0602", "A function of a compiled program, or the library that holds it, raised an error.";
    /// A name that is given on the command line or in a call, and does not exist.
    UnknownChoice = "E0603", "One of a fixed set of names is expected; the message lists them.";
    /// Arguments of the command that make no sense.
    Usage = "E0604", "The arguments of the command do not fit each other; `relaxide help COMMAND` shows them.";
    /// A program that the command works with and does not find, or that fails.
    Tool = "E0605",
        "The command works with another program (Python with ONNX Runtime, for comparisons), which is not installed, was not \
         found, or failed. The message says where it was looked for and what it said.";
    /// An input of a function that does not fit its type.
    Input = "E0606",
        "An input has another element type, another number of dimensions or another length of a dimension than the function \
         declares, or two inputs disagree on a symbolic dimension. `relaxide inspect MODEL` shows what is declared.";
    /// Results of two programs for one model that are not alike.
    Differs = "E0607",
        "`relaxide check` found an output that differs from ONNX Runtime's by more than the tolerance. The message names the \
         first operator that differs; please report it with the model, or with the part of it around that operator.";
    /// Decisions for kernels that do not fit them.
    Schedule = "E0608",
        "The decisions that were given for kernels name a kernel, stage, rule or parameter that is not there, or a value that \
         the parameter cannot have; the message says which values it can have and why. `relaxide compile MODEL --explain \
         --json` prints the decisions of a compilation, from which a file for `--schedule` is made.";
}

impl Code {
    /// The code of a text such as `E0101`, in either case.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_different_and_in_order() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        assert!(Code::ALL.iter().all(|code| Code::parse(&code.as_str().to_lowercase()) == Some(*code)));
        assert_eq!(Code::parse("E9999"), None);
    }
}
