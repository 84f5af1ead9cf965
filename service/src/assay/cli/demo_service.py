"""The second half of the demo: a real service as a subprocess, asked over HTTP, then stopped."""

import json
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from assay.bench.service import Service, running, service_environment
from assay.platform.cpu import cpu_limit_millicores

_PHOTOS: Final = ("chelsea.png", "coffee.png", "rocket.jpg")
"""Photos a visitor recognises; none of them calibrated the pack."""


def _settings() -> dict[str, object]:
    """The demo means to use the whole machine; without a limit the service warns that nobody set one."""
    return {"cpu_limit_millicores": cpu_limit_millicores()}


def demo_environment(pack: Path) -> dict[str, str]:
    """Return an environment in which ``assay serve`` serves a pack, whatever settings are set outside."""
    return service_environment(pack, _settings())


def classify_three(pack: Path, console: Console) -> None:
    """Serve a pack on a free port of the loopback, classify three photos over HTTP, print answers and stages, stop."""
    # Imported here: the names of the photos' distributions belong to what builds datasets.
    from assay.building.distributions import distribution_file
    from assay.building.photos import JUDGING

    photos = [photo for photo in JUDGING if photo.file in _PHOTOS]
    with running(pack, _settings()) as service:
        console.print(f"the service answers on http://127.0.0.1:{service.port}", highlight=False)
        table = Table(title="three photos over HTTP", title_justify="left")
        for name in ("photo", "labels", "milliseconds by stage"):
            table.add_column(name, overflow="fold")
        for photo in photos:
            data = distribution_file(photo.distribution, f"{photo.folder}/{photo.file}", photo.sha256).read_bytes()
            table.add_row(photo.file, *_classified(service, data))
    console.print(table)
    console.print("the service has drained and stopped", highlight=False)


def _classified(service: Service, data: bytes) -> tuple[str, str]:
    """Return the labels with their scores, and the stages with their times, one a line."""
    answered = service.classify(data)
    labels = "\n".join(f"{found['score']:.3f}  {found['label']}" for found in json.loads(answered.body)["predictions"])
    return labels, "\n".join(f"{ms:6.2f}  {name}" for name, ms in answered.stages_ms.items())
