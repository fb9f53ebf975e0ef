//! Native code from lowered TIR, and its export as one shared library.

pub mod export;
