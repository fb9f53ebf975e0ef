//! The tile primitives: one table from which the reader of programs and Python take names and parameters.

/// A tile primitive.
#[derive(Debug)]
pub struct Primitive {
    /// Its name without the prefix.
    pub name: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What stands for it.
    pub kind: Kind,
    /// What it is where nothing is given.
    pub default: Default,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A region of a buffer.
    Region,
    /// A region of a buffer, or a scalar.
    Operand,
    /// A scalar.
    Scalar,
    /// Numbers of dimensions.
    Axes,
    /// True or false, which may be known when the kernel runs.
    Flag,
    /// The name of another primitive.
    Primitive,
    /// An expression over the indices of an element.
    Lambda,
}

/// What an argument is where none is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It must be given.
    Required,
    /// Nothing.
    Absent,
    /// What the first parameter is.
    First,
    /// False.
    No,
    /// The last dimension.
    LastAxis,
    /// A number.
    Number(f64),
}

const fn parameter(name: &'static str, kind: Kind, default: Default) -> Parameter {
    Parameter { name, kind, default }
}

const fn region(name: &'static str) -> Parameter {
    parameter(name, Kind::Region, Default::Required)
}

const fn operand(name: &'static str) -> Parameter {
    parameter(name, Kind::Operand, Default::Required)
}

const fn flag(name: &'static str) -> Parameter {
    parameter(name, Kind::Flag, Default::No)
}

const fn other(name: &'static str) -> Parameter {
    parameter(name, Kind::Primitive, Default::Required)
}

const DST: Parameter = region("dst");
const SRC: Parameter = region("src");
const IN_PLACE: Parameter = parameter("src", Kind::Region, Default::First);
const BIAS: Parameter = parameter("bias", Kind::Operand, Default::Absent);
const SCALE: Parameter = parameter("scale", Kind::Operand, Default::Absent);
const AXES: Parameter = parameter("reduce_axes", Kind::Axes, Default::LastAxis);

const COPY: &[Parameter] = &[DST, SRC];
const UNARY: &[Parameter] = &[DST, IN_PLACE];
const SCALED: &[Parameter] = &[DST, IN_PLACE, BIAS, SCALE];
const BINARY: &[Parameter] = &[DST, operand("src1"), operand("src2")];
const FILL: &[Parameter] = &[DST, parameter("value", Kind::Scalar, Default::Required)];
const REDUCE: &[Parameter] = &[DST, IN_PLACE, parameter("axes", Kind::Axes, Default::LastAxis), flag("accum")];

const fn row(name: &'static str, parameters: &'static [Parameter]) -> Primitive {
    Primitive { name, parameters }
}

const TABLE: &[Primitive] = &[
    row("add", BINARY),
    row(
        "binary_chain",
        &[
            region("output"),
            operand("data"),
            operand("operand0"),
            operand("operand1"),
            other("op0"),
            other("op1"),
            flag("reverse1"),
        ],
    ),
    row(
        "binary_reduce",
        &[
            region("binary_output"),
            region("reduce_output"),
            operand("binary_input1"),
            operand("binary_input2"),
            other("binary_op"),
            other("reduce_op"),
            AXES,
        ],
    ),
    row("cast", UNARY),
    row("copy", COPY),
    row("copy_async", COPY),
    row("exp", SCALED),
    row("exp2", SCALED),
    row("fdiv", BINARY),
    row("fill", FILL),
    row("fma", &[DST, SRC, operand("scale"), operand("bias")]),
    row(
        "gemm",
        &[
            region("D"),
            region("A"),
            region("B"),
            region("C"),
            flag("transpose_A"),
            flag("transpose_B"),
            parameter("alpha", Kind::Scalar, Default::Number(1.0)),
            parameter("beta", Kind::Scalar, Default::Number(0.0)),
        ],
    ),
    row(
        "gemm_async",
        &[
            region("C"),
            region("A"),
            region("B"),
            parameter("SFA", Kind::Region, Default::Absent),
            parameter("SFB", Kind::Region, Default::Absent),
            flag("transA"),
            flag("transB"),
            flag("accum"),
        ],
    ),
    row("log2", SCALED),
    row("max", REDUCE),
    row("maximum", BINARY),
    row("memset", FILL),
    row("min", REDUCE),
    row("minimum", BINARY),
    row("mul", BINARY),
    row("permute_layout", COPY),
    row("reciprocal", UNARY),
    row("reduce_negate", &[region("output"), region("input"), other("reduce_op"), AXES, flag("accum")]),
    row(
        "select",
        &[DST, operand("true_value"), operand("false_value"), parameter("pred", Kind::Lambda, Default::Required)],
    ),
    row("silu", COPY),
    row("sqrt", SCALED),
    row("sub", BINARY),
    row("sum", REDUCE),
    row(
        "unary_reduce",
        &[
            region("unary_output"),
            region("reduce_output"),
            region("unary_input"),
            other("unary_op"),
            other("reduce_op"),
            BIAS,
            SCALE,
            AXES,
        ],
    ),
    row("zero", UNARY),
];

/// The primitive of a name, without the prefix.
pub fn primitive(name: &str) -> Option<&'static Primitive> {
    TABLE.iter().find(|row| row.name == name)
}
