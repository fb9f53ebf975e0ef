//! Fusion: which kernels join, what the joint kernel computes, and what is left alone.

mod build;
mod evaluate;
mod grouping;
mod reshape;
