"""A model that chooses a place in the list, and not an option: nobody overlooks it."""

from pathlib import Path

import pytest

from prism.testing import FakeOllama, Fault
from tests.kit.commands import Prism

RUN = ("run", "vaccination", "--agents", 20, "--rounds", 2, "--seed", 1, "--model", "ollama:tiny")


@pytest.mark.parametrize(
    ("shares", "is_told"), [({"A": 0.98}, True), ({"A": 0.33, "B": 0.34, "C": 0.33}, False)]
)
def test_summary_status_and_report_tell_what_the_place_explains(
    shares: dict[str, float], is_told: bool, prism: Prism
) -> None:
    """They say how many choices the place explains, unless chance would do as well."""
    with FakeOllama(models=["tiny"]) as server:
        server.fail_always(Fault.weighs(shares))
        run = prism(*RUN, "--host", server.host, "--out", "run")
    report = prism("report", "run")
    assert (run.status, report.status) == (0, 0), run.err + report.err
    status = prism("status", "run").out
    page = next(Path(prism.folder).glob("**/*.html")).read_text(encoding="utf-8")
    for text in (run.out + run.err, status, page):
        assert ("the place in the list explains" in text) is is_told
