"""``assay classify``."""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from assay.errors import AssayError
from assay.settings import Settings, load_settings

_TIMEOUT_S = 30.0  # a server's deadline is a second; this is for networks

Classify = Callable[[bytes, int], dict[str, Any]]
"""From image bytes and the number of labels to an answer as the HTTP API gives it."""


class RefusedError(AssayError):
    """A server refused an image, or did not answer."""

    code = "Refused"


def _on_server(url: str) -> Classify:
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("expected http://… or https://…", param_hint="--url")

    def classify(data: bytes, top_k: int) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked above
            f"{url.rstrip('/')}/v1/classify?top_k={top_k}", data, {"Content-Type": "application/octet-stream"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310 - as above
                answer: dict[str, Any] = json.load(response)
                return {**answer, "server_timing": response.headers.get("Server-Timing", "")}
        except urllib.error.HTTPError as error:
            try:
                detail = json.load(error)["detail"]
            except (ValueError, KeyError):
                detail = error.reason
            raise RefusedError(f"{url} answered {error.code}: {detail}") from error
        except OSError as error:
            raise RefusedError(f"{url} did not answer: {getattr(error, 'reason', error)}") from error

    return classify


def _here(settings: Settings) -> Classify:
    from assay.inference.engine import Engine  # here: ONNX Runtime is not needed to ask a server
    from assay.serving.model import open_pack
    from assay.serving.stages import classify as stages
    from assay.vision.header import read_header

    _, pack = open_pack(settings)
    engine = Engine(pack)

    def classify(data: bytes, top_k: int) -> dict[str, Any]:
        started = time.perf_counter()
        header = read_header(data, settings.max_pixels)
        result = stages(data, header, pack, engine, top_k=top_k, started=started)
        return {
            "predictions": [
                {"label": pack.labels[index], "index": index, "score": round(score, 6)}
                for index, score in result.predictions
            ],
            "model": {"name": pack.manifest.name, "precision": pack.manifest.precision, "digest": pack.digest},
            "server_timing": ", ".join(f"{name};dur={seconds * 1000:.3f}" for name, seconds in result.stages.items()),
        }

    return classify


def _milliseconds(server_timing: str) -> str:
    """``decode 2.1, infer 9.7`` of a ``Server-Timing`` header."""
    stages = (entry.strip().partition(";dur=") for entry in server_timing.split(",") if ";dur=" in entry)
    return ", ".join(f"{name} {float(duration):.1f}" for name, _, duration in stages)


def _show(answers: list[tuple[str, dict[str, Any]]]) -> None:
    table = Table("file", "label", "score", "milliseconds")
    for name, answer in answers:
        for rank, found in enumerate(answer["predictions"]):
            first = rank == 0
            timing = _milliseconds(answer["server_timing"]) if first else ""
            table.add_row(name if first else "", found["label"], f"{found['score']:.3f}", timing)
    Console().print(table)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", help="Ask this server; by default the pack is loaded here.")
@click.option("--model", "model_uri", metavar="URI", help="Pack to use here (ASSAY_MODEL_URI).")
@click.option("--digest", "model_digest", metavar="SHA256", help="Its digest, sha256:… (ASSAY_MODEL_DIGEST).")
@click.option("--top-k", type=click.IntRange(1, 1000), help="Labels per image (ASSAY_TOP_K).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def classify(files: tuple[Path, ...], url: str | None, top_k: int | None, as_json: bool, **options: object) -> None:
    """Classify image files.

    A file that cannot be classified is told on stderr, the others go on; the exit code is 2 then.

    \b
    Example:
      assay classify cat.jpg dog.png --model builtin:efficientnet-lite0-int8
      assay classify cat.jpg --url http://127.0.0.1:8000 --json
    """
    settings = load_settings(top_k=top_k, **options)
    ask = _on_server(url) if url else _here(settings)
    answers, failed = [], False
    for file in files:
        try:
            answers.append((str(file), ask(file.read_bytes(), settings.top_k)))
        except (AssayError, OSError) as error:
            failed = True
            click.echo(f"assay: error: {file}: {error}", err=True)
            continue
        if as_json:
            click.echo(json.dumps({"file": str(file), **answers[-1][1]}))
    if not as_json and answers:
        _show(answers)
    if failed:
        sys.exit(2)
