"""Settings of the service: environment variables with the prefix ``ASSAY_``.

An empty variable counts as absent (Kubernetes hands an absent annotation over as an empty text). A name nobody knows is
refused: a setting that is spelled wrong must not be a setting that is silently off.
"""

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from assay.constants import TERMINATION_LOG
from assay.errors import SettingsError

PREFIX = "ASSAY_"

_SERVICE_LINK = re.compile(
    r"ASSAY(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)"
)
"""Names Kubernetes injects for every Service of the namespace that is called ``assay`` or ``assay-…``."""

_COLLECTOR = re.compile(r"^$|^https?://[^/?#@]+(/[^?#]*)?$")
"""An address without what may be a secret: it is logged. The chart's schema has the same pattern."""

_LINK_ADVICE = "Kubernetes sets it for a Service of that name: put `enableServiceLinks: false` into the pod template"


class Settings(BaseSettings):
    """Every setting of the service. A variable's name is ``ASSAY_`` and the field's name in capitals."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",  # unknown names are refused by `load_settings`, which knows the nearest one
        frozen=True,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    model_uri: str = ""
    """URI of the pack to serve; empty means the base. From the pod annotation ``assay.dev/model-uri``."""

    model_digest: str = ""
    """Digest (``sha256:…``) of that pack; needed for every URI but ``builtin:`` and plain paths."""

    model_precision: Literal["", "FP32", "INT8"] = ""
    """Precision the pack must have; empty means any. A pack of another one is refused: somebody approved that one."""

    variant: str = Field(default="", pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$|^$")
    """Name of the ModelVariant that chose the pack, for answers and logs; empty means the base."""

    base_model_uri: str = "builtin:efficientnet-lite0-fp32"
    """URI of the pack that serves when no variant says otherwise, and the yardstick of a check that names none."""

    base_model_digest: str = ""
    """Digest of the base pack; may be empty for ``builtin:``, which comes with the program."""

    builtin_dir: Path | None = None
    """Folder of the built-in packs and datasets; by default ``share/assay`` of the Python environment."""

    cache_dir: Path = Path("/tmp/assay")  # noqa: S108 - the chart mounts its own; files in it are trusted by digest only
    """Folder for fetched packs; in a cluster an emptyDir with a size, because the root file system is read-only."""

    host: str = "0.0.0.0"  # noqa: S104 - a pod is reached by its address
    """Address to listen on."""

    port: int = Field(default=8000, ge=0, le=65535)
    """TCP port to listen on; 0 takes a free one and logs it."""

    cpu_limit_millicores: int = Field(default=0, ge=0)
    """CPU limit of the container in thousandths of a core, from the downward API; 0 means: ask the control groups."""

    memory_limit_bytes: int = Field(default=0, ge=0)
    """Memory limit of the container in bytes, from the downward API; 0 means: ask the control groups."""

    workers: int = Field(default=0, ge=0, le=256)
    """Threads that decode and infer; 0 means one per whole core of the CPU limit. More only compete."""

    top_k: int = Field(default=3, ge=1, le=1000)
    """Labels in an answer when the request does not say; three is what a check's containment is about."""

    max_body_bytes: int = Field(default=8 << 20, ge=1024, le=256 << 20)
    """Largest request body in bytes; a 12-megapixel phone photo has 3 to 6 MB."""

    max_pixels: int = Field(default=16_000_000, ge=1024, le=89_000_000)
    """Most pixels of an image, told from its header before decoding; above 89 million Pillow itself warns of a bomb."""

    receive_timeout_s: float = Field(default=10, gt=0, le=600)
    """Seconds for a request's body to arrive, for its headers, and for an answer that waits to be read; 8 MiB in 10 s
    are 7 Mbit/s."""

    max_receiving_bytes: int = Field(default=0, ge=0)
    """Bytes of all request bodies held at once; 0 means a 42nd of the memory limit (48 MiB of 2 GiB). Beyond it, the
    largest body that is still arriving is refused."""

    max_picture_bytes: int = Field(default=0, ge=0)
    """Bytes of memory for large pictures while they are decoded; 0 means a 42nd of the memory limit (48 MiB of 2 GiB).
    A pixel takes 4 bytes in a PNG, up to 12 in a progressive JPEG, 17 in a WebP, below 1 in a large baseline JPEG."""

    deadline_ms: int = Field(default=1000, ge=10, le=600_000)
    """Milliseconds from a received body to its answer; what waits longer is dropped before decoding."""

    queue_budget_ms: int = Field(default=500, ge=0, le=600_000)
    """Estimated CPU-milliseconds that may wait for a worker; on 2 cores 500 are a quarter of a second of waiting, which
    leaves the deadline room for the work itself."""

    cache_bytes: int = Field(default=0, ge=0)
    """Bytes of answers to keep for images that come again, about 0.7 KB each at three labels; 0 keeps none and
    costs nothing. Worth it where images repeat: a miss pays for a digest of the image."""

    batching: bool = False
    """Whether images under way together go through the model together. Off: on a CPU it gains a few percent at best,
    and one thread computes all batches of a process."""

    batch_window_ms: float = Field(default=5, ge=0, le=1000)
    """Milliseconds an image waits for others that are under way, about one decode; where none are, it never waits."""

    batch_max: int = Field(default=4, ge=1, le=32)
    """Most images in a batch; beyond four the activations outgrow the processor's caches and the gain is lost again."""

    drain_delay_s: float = Field(default=0, ge=0, le=300)
    """Seconds to keep serving after SIGTERM while already not ready: the time load balancers need to look away."""

    drain_timeout_s: float = Field(default=10, ge=0, le=600)
    """Seconds after that for admitted requests to finish; ten deadlines."""

    store_uri: str = ""
    """Where answered images are kept with their results, those of ``/v1/classify`` and files sent to ``/v2``:
    ``file:///folder``, ``s3://bucket/prefix``, ``gs://…`` or ``az://…``; empty keeps nothing. Credentials come from the
    environment each cloud uses (``AWS_ACCESS_KEY_ID``, …)."""

    store_queue_bytes: int = Field(default=64 << 20, ge=1 << 20, le=4 << 30)
    """Bytes of answers that may wait to be stored; new ones are dropped beyond it, and beyond a quarter of the memory
    limit. 64 MiB are half a minute of 20 photos of 100 KB a second."""

    drain_store_timeout_s: float = Field(default=5, ge=0, le=600)
    """Seconds, after the last answer of a drain, for what waits to be stored; the rest is lost, and counted."""

    traces_endpoint: str = Field(default="", json_schema_extra={"pattern": _COLLECTOR.pattern})
    """Where traces of requests are sent, by OTLP over HTTP: a collector (``http://collector:4318``), or the whole
    address if it is not at ``/v1/traces``; empty traces nothing. Credentials go into ``OTEL_EXPORTER_OTLP_HEADERS``."""

    traces_ratio: float = Field(default=1, ge=0, le=1)
    """Share of requests that are traced where their caller has not decided (``traceparent``)."""

    drain_traces_timeout_s: float = Field(default=2, ge=0, le=600)
    """Seconds, after the last answer of a drain, for traces that wait to be sent, at the same time as what is to be
    stored; a collector that works takes them in less than one."""

    termination_log: Path = TERMINATION_LOG
    """File for the container's last words; written only where it exists, as it does in a pod."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """``json``: one event a line; ``console``: for people; ``auto``: for people on a terminal only."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is logged."""

    access_log: bool = False
    """Whether every request is logged; off, because the metrics count them and a line costs as much as an answer."""

    @field_validator("traces_endpoint")
    @classmethod
    def _is_collector(cls, value: str) -> str:
        if not _COLLECTOR.fullmatch(value):
            raise ValueError(
                "write http:// or https://, host and port, as http://collector:4318; "
                "credentials go into OTEL_EXPORTER_OTLP_HEADERS"
            )
        return value


KNOWN = frozenset(PREFIX + name.upper() for name in Settings.model_fields)
"""Every variable there is."""


def check_names(names: Iterable[str]) -> None:
    """Raise `SettingsError` for a variable with the prefix that is no setting, with the nearest one that is."""
    for name in sorted(names):
        if not name.upper().startswith(PREFIX) or name.upper() in KNOWN:
            continue
        if _SERVICE_LINK.fullmatch(name):
            raise SettingsError(f"{name} is not a setting: {_LINK_ADVICE}.")
        near = get_close_matches(name.upper(), KNOWN, n=1)
        raise SettingsError(f"{name} is not a setting{f': did you mean {near[0]}?' if near else '.'}")


def load_settings(**given: object) -> Settings:
    """Settings from the environment; ``given`` (by field name, from the command line) wins, except where it is None.

    Raises `SettingsError` naming the first variable that is unknown or out of range.
    """
    check_names(os.environ)
    chosen = {name: value for name, value in given.items() if value is not None}
    if "port" not in chosen and os.environ.get("ASSAY_PORT", "").startswith(("tcp://", "udp://")):
        raise SettingsError(f"ASSAY_PORT={os.environ['ASSAY_PORT']} is not a port: {_LINK_ADVICE}.")
    try:
        return Settings(**chosen)  # type: ignore[arg-type] # pydantic checks the values
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = PREFIX + str(first["loc"][0]).upper() if first["loc"] else PREFIX
        raise SettingsError(f"{name}={first.get('input')!r}: {first['msg'].removeprefix('Value error, ')}.") from error
