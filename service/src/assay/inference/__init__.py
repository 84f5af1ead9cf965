"""From pixels to scores: the engine runs a pack's model, the rest is arithmetic on its output.

``engine`` is the only module of the running service that imports ONNX Runtime. Callers: ``serving``, ``measurement``,
``building``.
"""
