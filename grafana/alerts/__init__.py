"""Recording rules and alerts, as Python: `generate.py` writes them into the chart and as one plain file.

`rules.py` says what a rule is; `availability.py`, `service.py` and `operator.py` hold them. Each alert has a runbook of
its name in `../runbooks`, and a firing and a silent case in `tests/`.
"""
