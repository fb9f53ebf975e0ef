"""What TVM keeps for single kinds of devices."""
