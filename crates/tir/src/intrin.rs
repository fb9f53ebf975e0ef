//! The intrinsics that kernels may call: one table from which the interpreter, the back ends and the docs take them.
//!
//! An intrinsic is a [`PrimCall`](relaxide_ir::prim::PrimCall) whose name starts with `tirx.`, or with `tir.`, as older programs
//! say it. Names are read here and nowhere else: passes and back ends match [`Intrinsic`]. Element-wise ones map over lanes. What each computes is said here; how exactly (rounding, special values) is said once for the interpreter, in
//! [`interp`](crate::interp), and back ends follow it, transcendental functions to within their accuracy.

/// How many arguments an intrinsic takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly so many.
    Exactly(usize),
    /// At least so many.
    AtLeast(usize),
}

impl Arity {
    /// Whether a number of arguments is right.
    pub fn accepts(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n,
            Arity::AtLeast(n) => count >= n,
        }
    }
}

macro_rules! intrinsics {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal $(or $alias:literal)?, $arity:expr;)*) => {
        /// An intrinsic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Intrinsic {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Intrinsic {
            /// All of them.
            pub const ALL: &'static [Intrinsic] = &[$(Intrinsic::$variant,)*];

            /// The name without the prefix `tirx.`.
            pub const fn name(self) -> &'static str {
                match self { $(Intrinsic::$variant => $name,)* }
            }

            /// How many arguments it takes.
            pub const fn arity(self) -> Arity {
                use Arity::*;
                match self { $(Intrinsic::$variant => $arity,)* }
            }

            /// The intrinsic of a call's name, prefix included; other spellings are understood, too.
            pub fn of_call(op: &str) -> Option<Intrinsic> {
                match op.strip_prefix("tirx.").or_else(|| op.strip_prefix("tir."))? {
                    $($name $(| $alias)? => Some(Intrinsic::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

intrinsics! {
    /// e to the power of x.
    Exp = "exp", Exactly(1);
    /// e to the power of x, which is not positive; where that is no normal number, it may be zero.
    ExpNonpositive = "exp_nonpositive", Exactly(1);
    /// 2 to the power of x.
    Exp2 = "exp2", Exactly(1);
    /// 10 to the power of x.
    Exp10 = "exp10", Exactly(1);
    /// e to the power of x, less 1.
    Expm1 = "expm1", Exactly(1);
    /// Natural logarithm.
    Log = "log", Exactly(1);
    /// Logarithm of base 2.
    Log2 = "log2", Exactly(1);
    /// Logarithm of base 10.
    Log10 = "log10", Exactly(1);
    /// Natural logarithm of 1 + x.
    Log1p = "log1p", Exactly(1);
    /// Square root.
    Sqrt = "sqrt", Exactly(1);
    /// 1 / sqrt(x).
    Rsqrt = "rsqrt", Exactly(1);
    /// Hyperbolic tangent.
    Tanh = "tanh", Exactly(1);
    /// 1 / (1 + exp(-x)).
    Sigmoid = "sigmoid", Exactly(1);
    /// The error function.
    Erf = "erf", Exactly(1);
    /// Sine.
    Sin = "sin", Exactly(1);
    /// Cosine.
    Cos = "cos", Exactly(1);
    /// Tangent.
    Tan = "tan", Exactly(1);
    /// Arc sine.
    Asin = "asin", Exactly(1);
    /// Arc cosine.
    Acos = "acos", Exactly(1);
    /// Arc tangent.
    Atan = "atan", Exactly(1);
    /// Hyperbolic sine.
    Sinh = "sinh", Exactly(1);
    /// Hyperbolic cosine.
    Cosh = "cosh", Exactly(1);
    /// Inverse hyperbolic sine.
    Asinh = "asinh", Exactly(1);
    /// Inverse hyperbolic cosine.
    Acosh = "acosh", Exactly(1);
    /// Inverse hyperbolic tangent.
    Atanh = "atanh", Exactly(1);
    /// The angle of the point (x, y), given y and x.
    Atan2 = "atan2", Exactly(2);
    /// x to the power of y.
    Pow = "pow", Exactly(2);
    /// The length of the vector (x, y).
    Hypot = "hypot", Exactly(2);
    /// The first argument with the sign of the second.
    Copysign = "copysign", Exactly(2);
    /// The neighbour of the first argument towards the second.
    Nextafter = "nextafter", Exactly(2);
    /// The remainder of the truncating division of floats.
    Fmod = "fmod", Exactly(2);
    /// Largest whole number that is not larger.
    Floor = "floor", Exactly(1);
    /// Smallest whole number that is not smaller.
    Ceil = "ceil", Exactly(1);
    /// Nearest whole number; ties go to the even one.
    Round = "round", Exactly(1);
    /// Nearest whole number; ties go to the even one.
    Nearbyint = "nearbyint", Exactly(1);
    /// The whole part.
    Trunc = "trunc", Exactly(1);
    /// Magnitude, of floats and of integers.
    Fabs = "fabs" or "abs", Exactly(1);
    /// a * b + c, rounded once.
    Fma = "fma", Exactly(3);
    /// c plus the products of bytes, wrapping: a and b are four bytes each, which have a sign where the type of the argument has.
    /// c and the result are int32.
    DotBytes = "dot_bytes", Exactly(3);
    /// The same, as devices know it: a and b are words, or vectors of four bytes.
    Dp4a = "dp4a", Exactly(3);
    /// c plus the products of two pairs of bfloat16: a and b are words of 32 bits with two numbers each. c and the result are float32.
    /// Sums round as the processor rounds them, and numbers below the least normal one may be taken as zero.
    DotPairs = "dot_pairs", Exactly(3);
    /// Whether it is not a number.
    IsNan = "isnan", Exactly(1);
    /// Whether it is infinite.
    IsInf = "isinf", Exactly(1);
    /// Whether it is neither infinite nor NaN.
    IsFinite = "isfinite", Exactly(1);
    /// Bitwise and.
    BitwiseAnd = "bitwise_and", Exactly(2);
    /// Bitwise or.
    BitwiseOr = "bitwise_or", Exactly(2);
    /// Bitwise exclusive or.
    BitwiseXor = "bitwise_xor", Exactly(2);
    /// Bitwise complement.
    BitwiseNot = "bitwise_not", Exactly(1);
    /// Shift towards higher bits; bits that leave are lost. The amount counts modulo the width.
    ShiftLeft = "shift_left", Exactly(2);
    /// Shift towards lower bits; signed integers keep their sign. The amount counts modulo the width.
    ShiftRight = "shift_right", Exactly(2);
    /// How many bits are set.
    Popcount = "popcount", Exactly(1);
    /// How many zero bits stand above the highest one.
    Clz = "clz", Exactly(1);
    /// x times 2 to the power of an integer.
    Ldexp = "ldexp", Exactly(2);
    /// Whether a handle is null.
    IsNullptr = "isnullptr", Exactly(1);
    /// A product with a number of fixed point, shifted and rounded; see [`crate::expand`].
    QMultiplyShift = "q_multiply_shift", Exactly(4);
    /// The same with shifts that are there or not: x, y, left, right, bits behind the point, and whether to shift each way.
    QMultiplyShiftPerAxis = "q_multiply_shift_per_axis", Exactly(7);
    /// The condition itself, by which no loop is to be parted.
    IgnoreLoopPartition = "ignore_loop_partition", Exactly(1);
    /// The value itself, which is the same in all threads.
    ThreadInvariant = "tvm_thread_invariant", Exactly(1);
    /// Where the threads of a block wait for each other: what one has written to memory of the scope that the first argument names,
    /// the others read behind it.
    StorageSync = "tvm_storage_sync", AtLeast(1);
    /// A product of small matrices by the threads of a warp, added to a third: fragments of the three; see [`crate::warp`].
    WarpMultiplyAdd = "warp_multiply_add", Exactly(3);
    /// Matrices of 8 × 8 elements of 16 bits, of which each thread of a warp gives a row: transposed (1) or not (0), and the row.
    /// See [`crate::warp`].
    WarpLoadMatrix = "warp_load_matrix", Exactly(2);
    /// The value of the thread that is so many places further in its part of a warp, or the thread's own where there is none: a mask of the
    /// threads, which is all of them, the value, the places, the threads of a part, those of a warp.
    WarpShuffleDown = "tvm_warp_shuffle_down", Exactly(5);
    /// Whether an address is a multiple of so many bytes.
    IsAligned = "is_aligned", Exactly(2);
    /// The index itself, and a promise: the address of the access whose index it is a part of is a multiple of so many bytes.
    AtMultiple = "at_multiple", Exactly(2);
    /// A promise that the condition holds.
    Assume = "assume", Exactly(1);
    /// The lower half of a vector's lanes.
    VectorLow = "vectorlow", Exactly(1);
    /// The upper half of a vector's lanes.
    VectorHigh = "vectorhigh", Exactly(1);
    /// The lanes of one vector, and behind them those of another of the same type.
    VectorCombine = "vectorcombine", Exactly(2);
    /// Lanes of vectors by their numbers: how many vectors, the vectors, and for each lane of the result, as a literal, which of
    /// all their lanes it is.
    Shuffle = "shuffle", AtLeast(3);
    /// A choice of which only the chosen side is evaluated.
    IfThenElse = "if_then_else", Exactly(3);
    /// Least value of the call's type; minus infinity for floats.
    MinValue = "min_value", Exactly(0);
    /// Greatest value of the call's type; infinity for floats.
    MaxValue = "max_value", Exactly(0);
    /// By how much the machine's scalable vectors are longer than their shortest; one where it has none.
    VScale = "vscale", Exactly(0);
    /// The same bits as another type of the same size.
    Reinterpret = "reinterpret", Exactly(1);
    /// An index that must lie in `0 ..` the second argument, else an error that names the third, a buffer and its dimension, and
    /// shows the fourth: the index as it was given, before it was counted from the end. A fifth argument says in which lanes.
    CheckedIndex = "checked_index", AtLeast(4);
    /// A hint that the condition holds, which is checked where that is cheap.
    Likely = "likely", Exactly(1);
    /// The value itself, computed where it stands: a compiler for devices does not move its computation to where the value is used.
    OptimizationBarrier = "optimization_barrier", Exactly(1);
    /// Asks for the memory of the load that is its argument, which will be needed soon. Nothing is read and nothing changes.
    Prefetch = "prefetch", Exactly(1);
    /// The same for memory that will be written very soon.
    PrefetchWrite = "prefetch_write", Exactly(1);
    /// The sum of a vector's lanes. The order of additions is free.
    VectorReduceAdd = "vector_reduce_add", Exactly(1);
    /// The product of a vector's lanes. The order of multiplications is free.
    VectorReduceMul = "vector_reduce_mul", Exactly(1);
    /// The smallest lane of a vector.
    VectorReduceMin = "vector_reduce_min", Exactly(1);
    /// The largest lane of a vector.
    VectorReduceMax = "vector_reduce_max", Exactly(1);
    /// Calls a registered function by name with the other arguments.
    CallPacked = "call_packed" or "tvm_call_packed", AtLeast(1);
    /// Calls a kernel of the same library by name with the other arguments.
    CallCpacked = "call_cpacked" or "tvm_call_cpacked", AtLeast(1);
    /// Calls a kernel of the same module by name with the other arguments; see [`crate::kernel_call`].
    CallKernel = "call_kernel", AtLeast(1);
    /// A value of a list of values, as an argument of a call.
    AnylistGetitem = "anylist_getitem", Exactly(2);
    /// Puts what a registered function returns into a list: list, index, name, arguments.
    AnylistSetitemCallPacked = "anylist_setitem_call_packed", AtLeast(3);
    /// Puts what a kernel of the same library returns into a list: list, index, name, arguments.
    AnylistSetitemCallCpacked = "anylist_setitem_call_cpacked", AtLeast(3);
    /// Empties a place of a list.
    AnylistResetitem = "anylist_resetitem", Exactly(2);
    /// A buffer as an argument of a packed call; see [`crate::tensor_argument`].
    TvmStackMakeArray = "tvm_stack_make_array", Exactly(6);
    /// Numbers in a row: dimensions or strides of such an argument.
    TvmStackMakeShape = "tvm_stack_make_shape", AtLeast(0);
    /// Calls a C symbol by name with the other arguments.
    CallExtern = "call_extern", AtLeast(1);
    /// The same of one that does nothing but to give a value.
    CallPureExtern = "call_pure_extern", AtLeast(1);
    /// Calls a function of LLVM's own by name, `llvm.…`, with the other arguments.
    CallLlvmIntrin = "call_llvm_intrin", AtLeast(1);
    /// The same of one that does nothing but to give a value.
    CallLlvmPureIntrin = "call_llvm_pure_intrin", AtLeast(1);
    /// The address of the element that its argument loads.
    AddressOf = "address_of", Exactly(1);
    /// An address in a buffer: an annotation of the type, the buffer's pointer, offset and extent in elements, and whether it
    /// is read (1) or written (2).
    AccessPtr = "tvm_access_ptr", Exactly(5);
    /// An address so many bytes behind another.
    HandleAddByteOffset = "handle_add_byte_offset", Exactly(2);
    /// A value of a type, for what only its type matters of.
    TypeAnnotation = "type_annotation", Exactly(0);
    /// Ends the kernel, with a result perhaps.
    Ret = "ret", Exactly(1);
    /// Leaves the innermost loop.
    BreakLoop = "break_loop", Exactly(0);
    /// Goes on with the next iteration of the innermost loop.
    ContinueLoop = "continue_loop", Exactly(0);
}

impl Intrinsic {
    /// Whether it calls a function, which may do anything, or reads or writes lists of values.
    pub const fn calls_functions(self) -> bool {
        use Intrinsic::*;
        matches!(
            self,
            CallPacked
                | CallCpacked
                | CallKernel
                | CallExtern
                | AnylistGetitem
                | AnylistSetitemCallPacked
                | AnylistSetitemCallCpacked
                | AnylistResetitem
        )
    }

    /// Whether it gives an integer that has no sign, or is not negative, as it is.
    pub const fn keeps_integers(self) -> bool {
        use Intrinsic::*;
        matches!(self, Fabs | Floor | Ceil | Trunc | Round | Nearbyint)
    }

    /// Whether each lane of its result depends on the same lane of its arguments only, and nothing else happens.
    pub const fn is_elementwise(self) -> bool {
        use Intrinsic::*;
        !matches!(
            self,
            CheckedIndex
                | IsNullptr
                | Assume
                | StorageSync
                | WarpMultiplyAdd
                | WarpLoadMatrix
                | WarpShuffleDown
                | IsAligned
                | AtMultiple
                | VectorLow
                | VectorHigh
                | VectorCombine
                | Shuffle
                | Prefetch
                | PrefetchWrite
                | VectorReduceAdd
                | VectorReduceMul
                | VectorReduceMin
                | VectorReduceMax
                | CallPacked
                | CallCpacked
                | CallKernel
                | AnylistGetitem
                | AnylistSetitemCallPacked
                | AnylistSetitemCallCpacked
                | AnylistResetitem
                | CallExtern
                | CallPureExtern
                | CallLlvmIntrin
                | CallLlvmPureIntrin
                | AddressOf
                | AccessPtr
                | HandleAddByteOffset
                | TypeAnnotation
                | Ret
                | BreakLoop
                | ContinueLoop
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_intrinsics() {
        for intrinsic in Intrinsic::ALL {
            assert_eq!(Intrinsic::of_call(&format!("tirx.{}", intrinsic.name())), Some(*intrinsic));
        }
        assert_eq!(Intrinsic::of_call("tir.exp"), Some(Intrinsic::Exp));
        assert_eq!(Intrinsic::of_call("tirx.tvm_call_packed"), Some(Intrinsic::CallPacked));
        assert_eq!(Intrinsic::of_call("exp"), None);
        assert_eq!(Intrinsic::of_call("tirx.unheard_of"), None);
    }
}
