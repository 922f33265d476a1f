"""The control plane: sweeps become jobs, jobs become stored profiles, profiles become reports."""

__version__ = "0.1.0"
