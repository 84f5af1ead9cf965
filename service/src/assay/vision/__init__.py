"""From image bytes to the pixels a model takes: pure functions, no I/O, no framework.

The service, the check and the calibration all call this package, so that a measured answer is a served answer.
Callers: ``serving`` (header, decode and preprocess as separate stages), ``check`` and ``building`` (`preprocess.load`).
"""
