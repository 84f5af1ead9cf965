"""One module per family: from a state dict to an ONNX graph, nothing else. Called by ``building.models``."""
