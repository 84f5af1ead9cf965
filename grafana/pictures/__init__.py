"""Pictures of dashboards: each panel's queries put to a Prometheus, and drawn with matplotlib.

They are for documentation and for looking at what a test found. They are not Grafana's: colours, fonts and axes
differ; queries, legends, units, stacking, thresholds and the grid are the JSON's.
"""
