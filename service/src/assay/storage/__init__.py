"""Answers kept for later: the image and the result of each answered request, written away from the request path.

Contract: `queue` takes answers from the event loop without ever waiting, and writes them from a thread of its own to a
sink of `sinks`; `names` says what the objects are called. May import ``vision``, ``platform``, ``telemetry`` and
``settings``; ``serving`` makes the queue, ``http`` hands the answers over. Off unless a URI is set.
"""
