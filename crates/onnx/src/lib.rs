//! The ONNX importer.
