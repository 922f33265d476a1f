"""Numbers in, numbers out: no clock, no file, no device, no randomness."""
