//! The Relax virtual machine: bytecode, executable, verifier, interpreter and builtins.
