"""Inference requests by hand: the protocol's client sends nothing that is wrong."""

import json
import struct
from types import SimpleNamespace

import httpx

NAME = "efficientnet-lite0-fp32"


def body(message, binary=b""):
    head = json.dumps(message).encode() if isinstance(message, dict) else message
    return SimpleNamespace(content=head + binary, headers={"Inference-Header-Content-Length": str(len(head))})


def one(name, shape, datatype, data=None, **parameters):
    return {"inputs": [{"name": name, "shape": shape, "datatype": datatype, "data": data, "parameters": parameters}]}


def files(*contents):
    return b"".join(struct.pack("<I", len(content)) + content for content in contents)


def infer(server, message, binary=b"", model=NAME, **headers):
    sent = body(message, binary)
    url = f"{server.url}/v2/models/{model}/infer"
    return httpx.post(url, content=sent.content, headers={**sent.headers, **headers}, timeout=60)


def assert_refused(answer, status, code):
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "code", "detail", "error"}
    assert (problem["status"], problem["code"], problem["error"]) == (status, code, problem["detail"])
