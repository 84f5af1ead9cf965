"""The search for the ceiling."""

import pytest

from support.k6 import evaluate

OPTIONS = "{ startRate: 10, resolutionPercent: 5 }"
# Against servers that pass up to a rate and fail above it.
SEARCHES = f"""
return CEILINGS.map((ceiling) => {{
  const probes = [];
  for (;;) {{
    const next = search(probes, {OPTIONS});
    if (next.rate === undefined) {{
      return {{ ceiling, probes, ...next }};
    }}
    probes.push({{ rate: next.rate, verdict: next.rate <= ceiling ? 'pass' : 'fail' }});
  }}
}});
"""


def test_ceiling_is_found_between_close_bounds(tmp_path):
    ceilings = [2.3, 9, 10, 10.1, 37, 80, 99.9, 333, 700]
    for found in evaluate(tmp_path, {"search.js": "search"}, SEARCHES.replace("CEILINGS", str(ceilings))):
        assert found["low"] <= found["ceiling"] < found["high"]
        assert found["high"] / found["low"] <= 1.05 or found["high"] - found["low"] < 0.25
        assert len(found["probes"]) <= 16


def test_server_that_can_do_nothing_ends_the_search_with_no_lower_bound(tmp_path):
    (found,) = evaluate(tmp_path, {"search.js": "search"}, SEARCHES.replace("CEILINGS", "[0]"))
    assert found["low"] == 0
    assert found["high"] < 1


@pytest.mark.parametrize(
    ("probes", "low", "high"),
    [
        ([(10, "pass"), *3 * [(20, "invalid")]], 10, None),
        (3 * [(10, "invalid")], 0, None),
        ([(10, "pass"), (20, "fail"), *3 * [(15, "invalid")]], 10, 20),
    ],
)
def test_generator_that_cannot_keep_up_ends_the_search(tmp_path, probes, low, high):
    listed = [{"rate": rate, "verdict": verdict} for rate, verdict in probes]
    found = evaluate(tmp_path, {"search.js": "search"}, f"return search({listed}, {OPTIONS});")
    assert "did not keep up" in found["done"]
    assert (found["low"], found["high"]) == (low, high)  # JSON has no infinity: null


def test_rate_at_which_the_generator_stumbled_is_tried_again(tmp_path):
    for tries in (1, 2):
        probes = [{"rate": 10, "verdict": "pass"}, *tries * [{"rate": 20, "verdict": "invalid"}]]
        found = evaluate(tmp_path, {"search.js": "search"}, f"return search({probes}, {OPTIONS});")
        assert found == {"rate": 20}


def test_rate_that_failed_once_bounds_the_ceiling_whatever_passed_above_it(tmp_path):
    probes = [{"rate": 10, "verdict": "pass"}, {"rate": 20, "verdict": "fail"}, {"rate": 15, "verdict": "fail"}]
    probes += [{"rate": 17, "verdict": "pass"}, {"rate": 12.5, "verdict": "pass"}]
    assert evaluate(tmp_path, {"search.js": "search"}, f"return search({probes}, {OPTIONS});") == {"rate": 13.8}
