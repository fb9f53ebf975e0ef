//! Generators, references and oracles that tests and fuzz targets share.
//!
//! [`device`] is a device with handles in place of addresses. [`models`] has small programs and ONNX models. [`hostile`] has calls of
//! operators with indices and lengths that do not fit, and [`pages`] memory in which they would be found out. [`filetest`] runs the text
//! tests in `tests/filetests`: a program, what is done to it, and what comes out.

pub mod device;
pub mod filetest;
pub mod hostile;
pub mod models;
pub mod pages;
