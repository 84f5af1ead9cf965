"""Builds packs and datasets: checkpoints to ONNX graphs, FP32 to INT8, photos to datasets.

Needs the extra ``build`` (``onnx``); nothing that serves imports it. Callers: ``cli.model``, ``cli.quantize``,
``cli.dataset``, ``cli.builtin``, ``cli.demo``, ``bench``. May import ``measurement`` and everything below it.
"""

import assay.inference  # noqa: F401 - it tells ONNX Runtime, which is imported here too, to report nothing
