"""What other tools wrote, as an analysis or as a layer profile."""
