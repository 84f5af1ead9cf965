"""What this process runs on and what it may use: CPU, memory, control groups.

Contract: reads files below ``/proc`` and ``/sys`` (every function takes the folder, so that tests can bring their own)
and calls nothing that needs a network. Nothing here knows what the process does.
"""
