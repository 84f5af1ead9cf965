"""The cluster's keys, certificates and kubeconfigs, made with openssl.

Which certificates there are says conf/certificates; each of the cluster's own authority gets a kubeconfig too.
"""

import base64
import json
import shutil
import subprocess
from pathlib import Path

from one_node.commands import run
from one_node.names import CLUSTER

AUTHORITIES = ("ca", "etcd-ca", "front-proxy-ca")
DAYS = "3650"  # longer than any development cluster lives: nothing renews them


def _openssl(*argv: str | Path) -> None:
    run("openssl", *argv, stderr=subprocess.DEVNULL)


def _certificate(pki: Path, name: str, subject: str, *extensions: str, signer: tuple[str | Path, ...] = ()) -> None:
    _openssl(
        *("req", "-x509", "-config", pki / "openssl.cnf", "-days", DAYS, "-subj", subject),
        *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-keyout", pki / f"{name}.key", "-out", pki / f"{name}.crt", *signer),
        *(word for extension in extensions for word in ("-addext", extension)),
    )


def make_authority(pki: Path, name: str) -> None:
    """Make a certificate authority's key and certificate."""
    usage = "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"
    _certificate(pki, name, f"/CN={CLUSTER}-{name}", "basicConstraints=critical,CA:TRUE", usage)


def issue(pki: Path, name: str, authority: str, subject: str, hosts: str = "") -> None:
    """Issue a certificate for a client or, given its hosts (``DNS:a,IP:b``), for a server too."""
    usage = ["extendedKeyUsage=clientAuth"]
    if hosts:
        usage = ["extendedKeyUsage=clientAuth,serverAuth", f"subjectAltName={hosts}"]
    signer = ("-CA", pki / f"{authority}.crt", "-CAkey", pki / f"{authority}.key")
    _certificate(pki, name, subject, "basicConstraints=critical,CA:FALSE", *usage, signer=signer)


def write_kubeconfig(path: Path, pki: Path, name: str, server: str) -> None:
    """Write a kubeconfig (JSON is YAML too) that only its owner reads: it holds a key."""

    def data(filename: str) -> str:
        return base64.b64encode((pki / filename).read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": data("ca.crt")}
    user = {"client-certificate-data": data(f"{name}.crt"), "client-key-data": data(f"{name}.key")}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CLUSTER,
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": name}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=1))


def make_all(state: Path, server: str) -> None:
    """Fill ``state/pki`` and write ``state/kubeconfig``, unless both are there."""
    pki = state / "pki"
    if (state / "kubeconfig").exists():  # the last thing written
        return
    shutil.rmtree(pki, ignore_errors=True)
    pki.mkdir(mode=0o700)
    (pki / "openssl.cnf").write_text("[req]\ndistinguished_name=dn\n[dn]\n")
    for authority in AUTHORITIES:
        make_authority(pki, authority)
    for line in (state / "conf/certificates").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, authority, subject, *hosts = line.split()
        issue(pki, name, authority, subject, *hosts)
        if authority == "ca":
            write_kubeconfig(pki / f"{name}.kubeconfig", pki, name, server)
    _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", pki / "sa.key")
    _openssl("ec", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub")
    write_kubeconfig(state / "kubeconfig", pki, "admin", server)
