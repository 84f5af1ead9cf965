"""The Dockerfile fits what it builds from."""

import re

import yaml

import assay
import assay_operator
from assay.building.builtins import MODEL
from assay.cli.builtin import DEFAULT_BASE
from assay.settings import Settings
from local_cluster import providers
from one_node.names import BASE_IMAGE


def copied(dockerfile):
    """What the Dockerfile copies from the project, not from another stage."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    return [source for line in lines for source in line.split()]


def test_labels_chart_and_distributions_have_one_version(root):
    labels = re.findall(r'image\.version="([^"]+)"', (root / "Dockerfile").read_text())
    assert labels == [assay.__version__] * 2
    assert providers.version() == assay.__version__ == assay_operator.__version__


def test_everything_copied_is_there_and_passes_the_ignore_file(root):
    allowed = [line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for dockerfile in ("Dockerfile", "k6/Dockerfile"):
        sources = copied((root / dockerfile).read_text())
        assert sources
        for source in sources:
            assert list(root.glob(source)), f"{dockerfile} copies {source}, which is not there"
            assert any(
                source == entry
                or source.startswith(f"{entry}/")
                or entry.startswith(f"{source}/")
                or re.fullmatch(entry.replace(".", r"\.").replace("*", r"[^/]*"), source)
                for entry in allowed
            ), f".dockerignore hides {source}"


def test_packs_are_built_without_the_parts_that_only_serve(root):
    """Otherwise every change of the server would quantise and judge the packs anew."""
    stage = (root / "Dockerfile").read_text().partition(" AS packs\n")[2].partition("\nFROM ")[0]
    assert {source for source in copied(stage) if "*" not in source}
    assert not {source.rpartition("/")[2] for source in copied(stage)} & {"http", "serving", "src", "assay"}


def test_the_default_base_model_is_one_everywhere(root):
    dockerfile = (root / "Dockerfile").read_text()
    assert f"\nARG BASE_MODEL={MODEL}\n" in dockerfile
    assert "ASSAY_BASE_MODEL_URI=builtin:${BASE_MODEL}-fp32\n" in dockerfile
    assert DEFAULT_BASE == MODEL
    values = yaml.safe_load((root / "charts/assay/values.yaml").read_text())
    assert values["baseModel"]["uri"] == Settings.model_fields["base_model_uri"].default == f"builtin:{MODEL}-fp32"


def test_weights_in_the_build_context_are_no_part_of_the_repository(root):
    ignored = (root / ".gitignore").read_text().splitlines()
    assert {"weights/*", "!weights/README.md"} <= set(ignored)


def test_base_image_is_the_one_that_the_stand_in_is_named_after(root):
    for dockerfile in ("Dockerfile", "k6/Dockerfile"):
        assert f"\nARG PYTHON_IMAGE={BASE_IMAGE}\n" in (root / dockerfile).read_text()
