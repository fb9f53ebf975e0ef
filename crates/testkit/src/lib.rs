//! Generators, references and oracles that tests and fuzz targets share.
