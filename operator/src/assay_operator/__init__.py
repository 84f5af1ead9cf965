"""Assay's operator: a model takes traffic only after a check in the cluster has passed it."""

__version__ = "0.1.0"
