"""The request path: what happens to an image between its bytes and its labels, and when it is refused instead.

Contract: knows no HTTP framework; ``http`` calls it, ``cli.classify`` uses its stages without a server. Admission and
the drain live on the event loop; the stages of a request run on the worker threads of `executor`. `process` is the one
place where the objects of a process are wired together.
"""
