"""Logging: one event per line, as JSON in a cluster. A message is a sentence that says the next step, if there is one.

Never logged: image bytes, secrets, query strings.
"""

import logging
import sys
from typing import Literal

import structlog

_process: dict[str, str] = {}


def bind_process(**fields: str) -> None:
    """Put these into every event from now on, whichever thread, task or signal handler it comes from."""
    _process.update(fields)


def _add_process(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {**_process, **event}


_SHARED: list[structlog.typing.Processor] = [
    _add_process,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logging(style: Literal["auto", "json", "console"] = "auto", level: str = "info") -> None:
    """Send this program's events and those of libraries to stderr, in one format."""
    as_json = style == "json" or (style == "auto" and not sys.stderr.isatty())
    renderer: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    severity = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(severity),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(severity)
    # Uvicorn tells at "info" what this service tells itself, with more context.
    logging.getLogger("uvicorn.error").setLevel(max(severity, logging.WARNING))
