"""Measures packs on this machine: runs models over a dataset and times them. The verdict itself is ``check``'s.

Images go through ``vision`` and models through ``inference``, the very code that serves. Callers: ``cli.check``,
``building.ladder``.
"""
