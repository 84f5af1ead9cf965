"""Open Inference Protocol v2 over HTTP: its messages, and tensors from and to the bytes of a body.

Contract: pure functions between bytes and values, called by ``routes.inference``; nothing here waits, admits or infers.

Protocol: https://github.com/kserve/open-inference-protocol (REST) and the binary tensor data extension of
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md.
"""
