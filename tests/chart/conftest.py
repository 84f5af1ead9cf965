"""What the tests of the chart share."""

from pathlib import Path

import pytest

from support.chart import CI_VALUES, Chart, Objects, find_helm


@pytest.fixture(scope="session")
def folder(root) -> Path:
    """The chart's folder."""
    return root / "charts" / "assay"


@pytest.fixture(scope="session")
def chart(root, folder) -> Chart:
    """The chart and a real Helm; a missing one is an error, never a skip."""
    return Chart(folder, find_helm(root))


@pytest.fixture(scope="session")
def defaults(chart) -> Objects:
    """What the chart renders with its default values."""
    return chart.render()


@pytest.fixture(params=CI_VALUES)
def rendered(request, chart, folder) -> Objects:
    """What the chart renders with each set of ci values in turn."""
    return chart.render(values=folder / "ci" / f"{request.param}-values.yaml")
