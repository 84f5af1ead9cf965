"""Certificates hold what TLS peers check."""

import json
import re
import subprocess

import pytest

from one_node import host, names, pki

pytestmark = pytest.mark.system  # openssl


def openssl(*argv):
    return subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    host.write_configuration(folder)
    pki.make_all(folder, "https://198.18.0.1:6443")
    return folder


def test_every_certificate_is_of_its_own_authority_only(state):
    lines = (state / "conf/certificates").read_text().splitlines()
    issued = [line.split()[:2] for line in lines if not line.startswith("#")]
    assert len(issued) == 11
    for name, authority in issued:
        certificate = state / "pki" / f"{name}.crt"
        openssl("verify", "-CAfile", state / "pki" / f"{authority}.crt", certificate)
        other = "etcd-ca" if authority == "ca" else "ca"
        with pytest.raises(subprocess.CalledProcessError):
            openssl("verify", "-CAfile", state / "pki" / f"{other}.crt", certificate)


def test_server_names_its_hosts_and_client_may_not_serve(state):
    server = openssl("x509", "-in", state / "pki/apiserver.crt", "-noout", "-text")
    assert "TLS Web Server Authentication" in server
    assert f"IP Address:{names.NODE_IP}, IP Address:{names.API_IP}" in server
    client = openssl("x509", "-in", state / "pki/kube-scheduler.crt", "-noout", "-text")
    assert "TLS Web Client Authentication" in client
    assert "TLS Web Server Authentication" not in client
    assert re.search(r"Subject: CN ?= ?system:kube-scheduler", client)  # OpenSSL 3.2 lost the blanks


def test_kubeconfig_is_for_its_owner_alone_and_made_once(state):
    path = state / "kubeconfig"
    assert path.stat().st_mode & 0o077 == 0
    assert json.loads(path.read_text())["clusters"][0]["cluster"]["server"] == "https://198.18.0.1:6443"
    before = path.read_bytes(), (state / "pki/ca.crt").read_bytes()
    pki.make_all(state, "https://198.18.0.1:6443")
    assert (path.read_bytes(), (state / "pki/ca.crt").read_bytes()) == before
