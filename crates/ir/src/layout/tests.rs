//! Tests of layouts.
