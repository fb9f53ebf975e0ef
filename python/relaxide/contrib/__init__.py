"""What stands beside the compiler."""
