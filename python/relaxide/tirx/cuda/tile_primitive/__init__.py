"""Tiles as NVIDIA's GPUs move and multiply them."""
