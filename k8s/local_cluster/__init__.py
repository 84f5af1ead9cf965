"""What stands behind `make cluster image up swap load down`: a development cluster, Assay's images in it, its release.

``__main__`` is the command line; ``providers`` are the kinds of cluster that can be made here (kind, one-node);
``target`` decides which cluster may be touched at all; ``release`` installs and removes; ``swap`` watches a model
change; ``load`` runs a load test. Only the standard library is used: the Makefile runs this with the machine's Python,
before any environment.
"""
