"""The verdict: from counts and timings to Pass, Fail or Inconclusive with one reason. Its only home.

Pure functions: no files, no clock, no framework, no ONNX Runtime. ``measurement`` produces what goes in, ``cli.check``
prints what comes out, and the operator reads it as JSON (``report``), never by import.
"""
