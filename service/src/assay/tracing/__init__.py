"""Traces of requests for an OpenTelemetry collector (OTLP over HTTP). Off unless an endpoint is set.

Contract: a span for each request and below it one for each stage, with the times that the stages were measured with:
nothing is timed again. `finished` is what is told of a request; `spans` makes the spans of it, and `export` sends them
from a thread of its own, after the answer. Neither of these two is imported while traces are off. The only package that
knows OpenTelemetry. May import ``telemetry``.
"""
