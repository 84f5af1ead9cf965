"""The routes, one module per subject; each has a function that makes its router for a process."""
