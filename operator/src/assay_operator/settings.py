"""The operator's settings: environment variables ASSAY_OPERATOR_*."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class Settings(BaseSettings):
    """All of them, with their defaults."""

    model_config = SettingsConfigDict(env_prefix="ASSAY_OPERATOR_", frozen=True, populate_by_name=True)

    namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    """Comma-separated; empty means the whole cluster."""

    port: Annotated[
        int,
        Field(
            ge=0,
            le=65535,
            validation_alias=AliasChoices(
                "ASSAY_OPERATOR_PORT", "ASSAY_OPERATOR_METRICS_PORT", "ASSAY_OPERATOR_HEALTH_PORT", "port"
            ),
        ),
    ] = 8080
    """For /livez, /readyz and /metrics."""

    log_format: Literal["json", "text"] = "json"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    resync_seconds: Annotated[float, Field(gt=0)] = 60.0
    """Every ModelVariant is looked at this often even if nothing was heard of it: watches may lose events."""

    liveness_seconds: Annotated[float, Field(gt=0)] = 300.0
    """Without a successful resync for this long the process calls itself dead: five resyncs have failed by then."""

    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """ModelVariants worked on at a time. A pass is a handful of small requests, so few are enough."""

    running_checks: Annotated[int, Field(ge=1)] = 2
    """Checks running at a time in one namespace; more would only slow each other down."""

    request_timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    """For one request to the API server."""

    watch_timeout_seconds: Annotated[int, Field(ge=1)] = 300
    """The API server ends a watch after this long, and it is begun anew. One that has not ended a fifth later has
    stalled, and is given up."""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value
