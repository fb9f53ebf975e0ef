"""What is about NVIDIA's GPUs alone."""
