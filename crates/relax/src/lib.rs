//! The graph-level IR: expressions, operators, transforms and VM code generation.
