"""Data: the ModelVariant's spec and status, a check's result, and what was observed in the cluster.

Frozen, without I/O, and known to every other package. Nothing here imports another package of the operator.
"""
