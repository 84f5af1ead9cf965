"""The samples, and the manifest for those without Helm."""

import runpy

import jsonschema
import pytest
import yaml

SAMPLES = ["base", "int8", "own-model", "refused"]


@pytest.fixture(scope="module")
def variant_schema(folder):
    crd = yaml.safe_load((folder / "files" / "crd" / "modelvariants.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


@pytest.fixture(params=SAMPLES)
def sample(request, root):
    return yaml.safe_load((root / "k8s" / "samples" / f"{request.param}.yaml").read_text())


def unknown_fields(value, schema, path=""):
    """Fields that the API server would prune without a word; it knows no additionalProperties: false."""
    if isinstance(value, dict) and "properties" in schema:
        for key, item in value.items():
            if key not in schema["properties"]:
                yield f"{path}.{key}"
            else:
                yield from unknown_fields(item, schema["properties"][key], f"{path}.{key}")


def test_these_are_all_the_samples(root):
    assert sorted(file.stem for file in (root / "k8s" / "samples").iterdir()) == SAMPLES


def test_every_sample_is_the_same_variant_so_that_a_swap_is_an_edit(sample):
    assert sample["metadata"] == {"name": "assay"}
    assert sample["spec"]["targetRef"] == {"name": "assay"}


def test_every_sample_fits_the_definition(sample, variant_schema):
    jsonschema.validate(sample, variant_schema)
    assert not list(unknown_fields(sample["spec"], variant_schema["properties"]["spec"]))


def test_every_sample_names_the_digest_of_what_is_not_in_the_image(sample):
    model = sample["spec"]["model"]
    assert model["uri"].startswith("builtin:") or model["digest"].startswith("sha256:")


def test_base_sample_is_the_charts_base_model(root, folder):
    sample = yaml.safe_load((root / "k8s" / "samples" / "base.yaml").read_text())
    values = yaml.safe_load((folder / "values.yaml").read_text())
    assert sample["spec"]["model"]["uri"] == values["baseModel"]["uri"]


@pytest.mark.system
def test_manifest_for_those_without_helm_is_fresh(root, chart):
    generate = runpy.run_path(str(root / "charts" / "generate.py"))
    assert (root / "k8s" / "install.yaml").read_text() == generate["install"](chart.helm), "run `make manifests`"


@pytest.mark.system
def test_manifest_for_those_without_helm_holds_what_helm_installs_and_its_namespace(root, defaults):
    objects = [item for item in yaml.safe_load_all((root / "k8s" / "install.yaml").read_text()) if item]
    names = {(item["kind"], item["metadata"]["name"]) for item in objects}
    assert names == defaults.names() - {("Pod", "assay-test")} | {("Namespace", "assay")}
    assert "managed-by" not in (root / "k8s" / "install.yaml").read_text()
