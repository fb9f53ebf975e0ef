//! Generators, references and oracles that tests and fuzz targets share.
//!
//! [`device`] is a device with handles in place of addresses. [`models`] has small programs and ONNX models. [`filetest`] runs the text tests in `tests/filetests`: a program, what is done to it, and what comes out.

pub mod device;
pub mod filetest;
pub mod models;
