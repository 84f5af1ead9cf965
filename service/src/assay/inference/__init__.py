"""From pixels to scores: the engine runs a pack's model, the rest is arithmetic on its output.

``engine`` is the only module of the running service that imports ONNX Runtime. Callers: ``serving``, ``measurement``,
``building``.
"""

import os

# Its wheels come with a library that keeps a device id in the home folder and reports use to the vendor. Read when ONNX
# Runtime is imported; whoever sets the variable decides.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
