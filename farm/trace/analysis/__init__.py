"""What a trace says: a window of steady steps, and what the device and the host did in it."""
