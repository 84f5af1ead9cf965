"""Names: of images by Docker's rule, of everything else in the configuration, of hosts in DNS."""

import subprocess
import sys

import pytest

from one_node import host, names
from one_node.images import full_name
from one_node.probes import dns_query


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("app", "docker.io/library/app:latest"),
        ("app:1", "docker.io/library/app:1"),
        ("team/app:1", "docker.io/team/app:1"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        ("registry.example/team/app:1", "registry.example/team/app:1"),
        ("docker.io/library/app:1", "docker.io/library/app:1"),
    ],
)
def test_image_name_is_completed_as_docker_and_the_kubelet_do(name, full):
    assert full_name(name) == full


def test_configuration_has_its_names_filled_in_and_is_left_alone_when_equal(tmp_path):
    host.write_configuration(tmp_path)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "conf").rglob("*") if path.is_file()}
    sources = [path for path in (names.HERE / "conf").rglob("*") if path.is_file()]
    assert len(written) == len(sources) > 0
    # A comment may speak of the names.
    lines = [line for path in written for line in path.read_text().splitlines() if not line.startswith("#")]
    assert not [line for line in lines if "$" in line]
    assert f'root = "{tmp_path}/containerd/root"' in (tmp_path / "conf/containerd.toml").read_text()

    host.write_configuration(tmp_path)

    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_state_of_two_clusters_is_apart(tmp_path):
    assert names.substitutions(tmp_path / "a")["state"] != names.substitutions(tmp_path / "b")["state"]


def test_dns_question_is_as_rfc_1035_has_it():
    expected = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + b"\x01a\x03bcd\x00" + b"\x00\x01\x00\x01"
    assert dns_query("a.bcd") == expected


def test_command_without_a_cluster_says_so_in_one_sentence(tmp_path, root):
    done = subprocess.run(
        [sys.executable, root / "k8s/one-node/cluster", "--dir", tmp_path / "none", "status"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"cluster: error: there is no cluster in {tmp_path / 'none'}: cluster up\n"


def test_down_without_a_cluster_is_harmless(tmp_path, root):
    done = subprocess.run(
        [sys.executable, root / "k8s/one-node/cluster", "--dir", tmp_path / "none", "down", "--delete"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert not (tmp_path / "none").exists()
