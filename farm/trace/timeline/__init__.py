"""What a trace looks like over time: bounded lanes of rectangles, ready to be drawn."""
