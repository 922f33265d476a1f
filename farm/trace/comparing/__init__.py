"""Two analyses side by side: what may be compared, what changed, and what that is worth."""
