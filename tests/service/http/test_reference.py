"""The OpenAPI document against the service: whatever may be sent by it, the answers are those it promises."""

import asyncio
import re
import time

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from assay.http.app import create_app
from assay.serving.process import build_process
from assay.settings import Settings
from support.images import jpeg
from support.tensors import NAME, files, infer, one

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@pytest.fixture(scope="module")
def document(server):
    return httpx.get(f"{server.url}/openapi.json").json()


@pytest.fixture(scope="module")
def reference(server):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    schema.config.generation.update(modes=list(GenerationMode))
    return schema


PATHS = [
    ("GET", "/"), ("GET", "/docs"), ("GET", "/livez"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/v1/model"),
    ("POST", "/v1/classify"), ("GET", "/v2"), ("GET", "/v2/health/live"), ("GET", "/v2/health/ready"),
    ("GET", "/v2/models/{model}"), ("GET", "/v2/models/{model}/ready"), ("POST", "/v2/models/{model}/infer"),
    ("GET", "/v2/models/{model}/versions/{version}"), ("GET", "/v2/models/{model}/versions/{version}/ready"),
    ("POST", "/v2/models/{model}/versions/{version}/infer"),
]  # fmt: skip


def test_document_has_every_route(document):
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == set(PATHS)


BOUNDED = settings(
    derandomize=True,  # the same requests in every run
    database=None,
    deadline=None,  # the machine may be busy
    suppress_health_check=list(HealthCheck),  # it minds the time that making a request takes
    phases=[Phase.explicit, Phase.generate],  # shrinking would take minutes
)


def hold_to_the_document(reference, base_pack, method, path, mode, examples):
    operation = reference[path][method]
    cases = operation.as_strategy(mode)
    if "{model}" in path:  # half of the requests name the model that is there; the others get no further than its name
        cases |= operation.as_strategy(mode, path_parameters={"model": NAME, "version": base_pack.digest})

    @settings(BOUNDED, max_examples=examples)
    @given(case=cases)
    def run(case):
        case.call_and_validate(checks=CHECKS, timeout=30)

    run()


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_answers_are_those_that_the_document_promises(reference, base_pack, method, path):
    hold_to_the_document(reference, base_pack, method, path, GenerationMode.POSITIVE, 20 if method == "POST" else 4)


@pytest.mark.parametrize("path", [path for method, path in PATHS if method == "POST"])
def test_what_the_document_does_not_allow_is_refused_as_it_says(reference, base_pack, path):
    hold_to_the_document(reference, base_pack, "POST", path, GenerationMode.NEGATIVE, 20)


FILE = files(jpeg())
TENSOR = one("encoded", [1], "BYTES", binary_data_size=len(FILE))
VALID = {
    "an image": ("/v1/classify", lambda server: httpx.post(f"{server.url}/v1/classify", content=jpeg())),
    "a form": ("/v1/classify", lambda server: httpx.post(f"{server.url}/v1/classify", files={"file": jpeg()})),
    "a tensor": ("/v2/models/{model}/infer", lambda server: infer(server, TENSOR, FILE)),
    "a tensor for tensors": (
        "/v2/models/{model}/infer",
        lambda server: infer(server, {**TENSOR, "parameters": {"binary_data_output": True}}, FILE),
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_answer_to_a_photo_is_the_one_described(server, reference, name):
    path, send = VALID[name]
    answer = send(server)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] in reference[path]["POST"].definition.raw["responses"]["200"]["content"]
    answer.request.read()  # schemathesis wants to quote it
    reference[path]["POST"].validate_response(answer)


def test_server_timing_is_what_the_w3c_says_and_true(server):
    started = time.perf_counter()
    answer = httpx.post(f"{server.url}/v1/classify", content=jpeg())
    elapsed = (time.perf_counter() - started) * 1000
    entries = answer.headers["Server-Timing"].split(", ")
    token = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110, section 5.6.2; server-timing-metric = token *( ";" param )
    assert all(re.fullmatch(rf"{token};dur=[0-9]+(\.[0-9]+)?", entry) for entry in entries)
    assert 0 < sum(float(entry.partition("dur=")[2]) for entry in entries) < elapsed


def test_problems_are_what_rfc_9457_says(server):
    answer = httpx.post(f"{server.url}/v1/classify", content=b"text")
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"  # section 3
    assert problem["type"] == f"urn:assay:problem:{problem['code']}"  # 3.1.1: a URI, and one that never changes
    assert problem["status"] == answer.status_code  # 3.1.2
    assert problem["title"] == "Unsupported Media Type"  # 3.1.3
    assert isinstance(problem["detail"], str)  # 3.1.4


def test_refusals_say_what_would_have_been_taken(server):
    post = httpx.post(f"{server.url}/v1/classify", content=b"text")
    assert "image/jpeg" in post.headers["Accept"]  # RFC 9110, section 15.5.16
    assert httpx.get(f"{server.url}/v1/classify").headers["Allow"] == "POST"  # 15.5.6: it must be there
    assert httpx.post(f"{server.url}/v1/model").headers["Allow"] == "GET"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/classify"), ("GET", "/v1/model"), ("GET", "/readyz"), ("GET", "/v2/health/ready"),
        ("GET", "/v2/models/assay"), ("GET", "/v2/models/assay/ready"), ("POST", "/v2/models/assay/infer"),
    ],
)  # fmt: skip
def test_every_route_that_needs_the_model_says_when_to_try_again_while_there_is_none(method, path):
    process = build_process(Settings(workers=1))

    async def ask():
        transport = httpx.ASGITransport(app=create_app(process))
        async with httpx.AsyncClient(transport=transport, base_url="http://unloaded") as client:
            return await client.request(method, path)

    answer = asyncio.run(ask())
    process.executor.close()
    assert (answer.status_code, answer.json()["code"]) == (503, "NotReady")
    assert ("error" in answer.json()) == path.startswith("/v2")
    assert re.fullmatch(r"[1-9][0-9]*", answer.headers["Retry-After"])  # RFC 9110, section 10.2.3: delay-seconds
