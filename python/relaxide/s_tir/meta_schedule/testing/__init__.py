"""What tests of tuning share."""
