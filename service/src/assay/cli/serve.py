"""``assay serve``."""

import os
import sys

import click

from assay.logs import configure_logging
from assay.settings import load_settings


@click.command()
@click.option("--model", "model_uri", metavar="URI", help="Pack to serve (ASSAY_MODEL_URI); by default the base.")
@click.option("--digest", "model_digest", metavar="SHA256", help="Its digest, sha256:… (ASSAY_MODEL_DIGEST).")
@click.option("--host", help="Address to listen on (ASSAY_HOST).")
@click.option("--port", type=int, help="TCP port; 0 takes a free one (ASSAY_PORT).")
@click.option("--workers", type=int, help="Threads; by default one per core of the CPU limit (ASSAY_WORKERS).")
@click.option(
    "--log-format", type=click.Choice(["auto", "json", "console"]), help="Form of the log (ASSAY_LOG_FORMAT)."
)
def serve(**options: object) -> None:
    """Serve a model over HTTP until told to end (SIGTERM).

    Every setting is an environment variable ASSAY_…; these options are the ones one types.

    \b
    Example:
      assay serve --model builtin:efficientnet-lite0-int8 --port 8000
      curl --data-binary @photo.jpg http://127.0.0.1:8000/v1/classify
    """
    settings = load_settings(**options)
    configure_logging(settings.log_format, settings.log_level)
    from assay.http.server import run  # after the settings: a wrong one is told before seconds of imports

    code = run(settings)
    # Not `sys.exit`: as the interpreter ends it stops threads wherever they are, and one that is inside ONNX Runtime (a
    # warm-up, a request nobody waits for any more) makes C++ abort the process. Everything was closed by `run`.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
