"""The dashboards, as Python: `generate.py` writes each as JSON into the chart.

One module per dashboard, whose `build()` returns it. `panels.py` alone knows Grafana's SDK, and the conventions that
every panel keeps: a title, a description, a unit, thresholds that are drawn.
"""
