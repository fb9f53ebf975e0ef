//! Relaxide: a tensor compiler and virtual machine. The public face of the workspace.
