"""A certificate authority and a server's certificate, for a source of packs that speaks https."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """Three files as text: whom to believe, and what the server shows and keeps."""

    authority: str
    server: str
    key: str


def make_certificates(folder: Path, host: str) -> Certificates:
    """Certificates for one host name, good for two days."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2")

    def make(name: str, subject: str, *more: str) -> None:
        files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
        argv = ["openssl", "req", "-x509", *key, *files, "-subj", f"/CN={subject}", *more]
        subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=60)

    make("ca", "faults")
    # rustls takes no authority's certificate for a server's.
    leaf = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName=DNS:{host}")
    make("server", host, *leaf, "-CA", "ca.crt", "-CAkey", "ca.key")
    return Certificates(*((folder / name).read_text() for name in ("ca.crt", "server.crt", "server.key")))
