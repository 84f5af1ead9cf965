"""Turns anyone's ONNX classifier into a pack: reads it with suspicion, rewrites it, proves the result.

In order: `file` (bytes to a model, whose weights are all inside), `tidy` (one plain graph), `interface` (which input
and output, and do they fit), `scores` (logits, not probabilities), `batch` (any number of images), `wrap` (uint8
photos in, logits out), `proof` (it runs, and alike whatever the batch), `pack` (all of that, and the file); `surgery`
is what several of them do to graphs, `labels` reads labels. All but `file`, `labels`, `proof` and `pack` are pure:
models in, models out.

Every refusal is a ``BuildError``: one sentence with what was seen and what to do.
"""
