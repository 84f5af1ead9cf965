"""The page of faults is what the tests' names say."""

import runpy

import pytest


@pytest.fixture
def generator(root):
    return runpy.run_path(str(root / "operator" / "generate.py"))


def test_page_of_faults_is_fresh(generator):
    assert generator["PAGE"].read_text() == generator["page"](), "run `make docs`"


def test_every_row_of_the_page_is_there_once(generator):
    assert [fault.number for fault in generator["FAULTS"]] == list(range(1, 49))
