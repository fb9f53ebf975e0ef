//! The tensor-level IR: computes, schedule rules, lowering and a reference interpreter.
