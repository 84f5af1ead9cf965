"""``assay bench``: one command for each question, all with the same output: a table, one JSON document, a picture."""

import click

from assay.cli.lazy import LazyGroup

COMMANDS = {
    "variants": ("assay.cli.bench.variants:variants", "PyTorch, ONNX FP32, dynamic INT8 and static INT8 of one model."),
    "input": ("assay.cli.bench.input:input_", "Decode and preprocess by megapixels, scan type and path."),
    "batching": ("assay.cli.bench.batching:batching", "Batches against one by one, by window, batch and rate."),
    "cache": ("assay.cli.bench.cache:cache", "What a hit costs, and what a miss pays, by size of the image."),
    "storage": ("assay.cli.bench.storage:storage", "Storing in the request's path, in the background, and not at all."),
}
"""Name to where the command is and its line in the overview."""


@click.group(cls=LazyGroup, table=COMMANDS)
def bench() -> None:
    """Measure what each technique is worth on this machine; both sides of each comparison interleaved in one run.

    \b
    Example:
      assay bench variants mobilenet-v3-large
      assay bench input --json
      assay bench batching --picture batching.png
    """
