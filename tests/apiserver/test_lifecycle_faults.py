"""Namespaces and the definition of ModelVariant that go away, with a real operator before a real API server."""

import httpx

from support.apiserver import eventually
from support.packs import FAST, GOOD, MODEL, OTHER, spec

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_fault_35_namespace_that_is_being_deleted_is_no_missing_right_and_no_hot_loop(target, proxy, run_operator):
    # No resync in between: that would try again of itself.
    with run_operator(url=proxy.url, resync_seconds=60) as operator:
        target.variant(spec(GOOD, **FAST))
        target.finish(target.new_job())
        eventually(lambda: target.annotations() == MODEL, "the annotations are applied")
        target.roll()
        target.wait("True Serving")
        target.api.delete(f"/api/v1/namespaces/{target.name}")  # nothing here removes what is in it: it stays so
        target.edit({"model": OTHER})
        began = len(proxy.seen)
        refused = eventually(
            lambda: [one for one in proxy.seen[began:] if one.path.endswith("/jobs") and one.status == 403],
            "no check can be made any more",
        )
        assert target.condition("Stalled") != "True InsufficientPermissions"
        assert operator.answers("/livez") == 200
        apart = eventually(
            lambda: [one.at for one in proxy.seen[began:] if one.path.endswith("/jobs") and one.status == 403][:4][3:],
            "it is tried again now and then",
        )
        assert apart[0] - refused[0].at > 1.5  # waits of a half, one and two seconds, less a half at random


def test_fault_35_definition_that_was_deleted_and_made_again_is_taken_up(swapped, operator, api, crd):
    api.delete(f"{DEFINITIONS}/{crd['metadata']['name']}")
    variants = "/apis/assay.dev/v1alpha1/modelvariants"
    eventually(lambda: api.http.get(variants).status_code == httpx.codes.NOT_FOUND, "the definition is gone")
    assert swapped.annotations() == MODEL  # what serves goes on
    assert operator.answers("/livez") == 200
    api.create(DEFINITIONS, crd)
    eventually(lambda: api.http.get(variants).status_code == httpx.codes.OK, "the definition is back")
    jobs = len(swapped.jobs())
    swapped.variant(spec(OTHER, **FAST))
    eventually(lambda: len(swapped.jobs()) == jobs + 1, "the new variant is checked")
    assert operator.answers("/livez") == 200
