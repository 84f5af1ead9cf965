"""One story for all tests of dashboards and alerts: told once in the session, asked about by each."""

import pytest

from support.monitored import told


@pytest.fixture(scope="session")
def story(root, tmp_path_factory):
    """What a Prometheus has seen; see `support.story`."""
    with told(root, tmp_path_factory.mktemp("story")) as seen:
        yield seen
