"""What things cost here and now, each beside what one would do without us: `make bench`.

Both sides of a row are measured interleaved in one run, and the row is the median of their ratios
with its quartiles, because absolute times say little on a busy machine. Nothing is judged here.
"""
