"""Measures on this machine what each technique of serving is worth: variants of a model, input, batching and so on.

Contract: a module per question; each runs the code that serves, both sides of a comparison interleaved in one run, and
returns a `report.Report`: rows with named columns and units, beside the CPU they were measured on. Nothing here judges
(that is ``check``'s) or prints (that is the command line's); ``picture`` alone draws, and alone knows matplotlib.
Callers: ``cli.bench``, ``cli.capacity``. May import everything below it: ``http`` and ``serving`` for what is measured
with a server, ``building`` for packs.
"""
