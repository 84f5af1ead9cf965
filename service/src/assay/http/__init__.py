"""HTTP in front of ``serving``: routes, bodies, problems, and the server that listens.

Contract: a route turns a request into a call of `assay.serving` and its result into a response; nothing here decides
about images. `envelope` is the outermost layer: request ids, counting, and what a drain does to connections.
"""
