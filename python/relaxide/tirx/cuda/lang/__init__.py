"""What kernels for NVIDIA's GPUs are written with, beyond instructions."""
