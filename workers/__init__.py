"""The execution plane: a node pins one device per job and measures in fresh child processes."""
