"""What other people's profilers and ours leave behind, read as one kind of table."""
