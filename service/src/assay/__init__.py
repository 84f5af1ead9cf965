"""Assay's service: serves image classifiers on CPUs, and measures a model before it may take traffic.

Layers, from the outside in (an import contract keeps them): ``cli`` -> ``http`` -> ``serving``, ``building`` ->
``measurement`` -> ``inference``, ``packs``, ``check``, ``vision`` -> ``platform``, ``telemetry``, ``settings``,
``logs`` -> ``errors``, ``constants``.
"""

__version__ = "0.1.0"
