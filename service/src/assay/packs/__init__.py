"""Packs and datasets as files: what is in them, how they are read, written and fetched.

``manifest`` knows no I/O and no framework; ``fetch`` alone talks to the network. Callers: everything that loads a
model or a set of photos. Nothing here is trusted before its digest is verified, and nothing is unpacked to disk.
"""
