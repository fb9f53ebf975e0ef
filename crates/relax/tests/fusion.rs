//! Fusion: which kernels join, what the joint kernel computes, and what is left alone.

mod build;
mod evaluate;
mod folding;
mod grouping;
mod merging;
mod reshape;
