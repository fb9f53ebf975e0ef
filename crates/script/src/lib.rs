//! TVMScript in and out, for Relax and TIR.
