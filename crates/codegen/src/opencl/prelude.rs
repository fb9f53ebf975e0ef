//! C's names in OpenCL C: types of a width, functions of single precision, `memcpy`.

use std::fmt::Write as _;

/// Functions of floats that OpenCL has under the same name for both precisions.
const FUNCTIONS: &[&str] = &[
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "tanh",
    "erf",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "floor",
    "ceil",
    "trunc",
    "fabs",
    "atan2",
    "pow",
    "hypot",
    "copysign",
    "nextafter",
    "fmod",
    "fma",
    "ldexp",
];

/// Words of OpenCL C that are names elsewhere.
pub(super) const WORDS: &[&str] = &[
    "kernel",
    "global",
    "local",
    "constant",
    "private",
    "generic",
    "half",
    "uchar",
    "ushort",
    "uint",
    "ulong",
    "event_t",
    "sampler_t",
    "pipe",
    "read_only",
    "write_only",
    "read_write",
    "image1d_t",
    "image2d_t",
    "image3d_t",
    "queue_t",
    "vec_step",
    "isnan",
    "isinf",
    "isfinite",
    "rint",
    "barrier",
    "get_group_id",
    "get_local_id",
    "atomic_cmpxchg",
];

/// Names that variables may not have: they would hide functions.
pub(super) fn taken() -> impl Iterator<Item = &'static str> {
    WORDS.iter().chain(FUNCTIONS).copied()
}

const TYPES: &str = "#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define UINT64_MAX ULONG_MAX
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define nearbyint rint
#define nearbyintf rint
";

const MEMCPY: &str = "static inline void rx_copy(void *to, const void *from, size_t count) {
    for (size_t i = 0; i < count; ++i) ((uchar *)to)[i] = ((const uchar *)from)[i];
}
#define memcpy rx_copy
";

/// Says which check failed, and its numbers: the first that does. The first word's lower half is changed as one.
const FAULT: &str = "static inline void rx_fault(__global int64_t *faults, int number, int64_t index, int64_t extent) {
    if (atomic_cmpxchg((volatile __global int *)faults, 0, number) != 0) return;
    faults[1] = index;
    faults[2] = extent;
}
";

/// What stands in front of each function.
pub(super) fn prelude() -> String {
    let mut text = TYPES.to_string();
    for function in FUNCTIONS {
        let _ = writeln!(text, "#define {function}f {function}");
    }
    text + MEMCPY + FAULT
}
