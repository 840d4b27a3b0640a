"""``prism protocol`` as a user runs it."""

import csv
from pathlib import Path

import pytest

pytest.importorskip("statsmodels")

from tests.kit.commands import Prism
from tests.kit.servers import Serve


@pytest.mark.slow
def test_everything_is_in_the_folder(prism: Prism, serve: Serve) -> None:
    """The command prints and keeps both comparisons, and --resume shows a complete one again."""
    server = serve(decision_models=())
    asked = ("--model", "tiny", "--host", server.host, "--agents", 40, "--decisions", 60)
    ran = prism("protocol", *asked, "--out", "all")
    assert (ran.status, ran.err) == (0, "")
    for title in ("Model (base) against the explicit policy", "its calibrated policy", "Time"):
        assert title in ran.out

    folder = prism.folder / "all"
    rows = csv.DictReader((folder / "divergence.csv").read_text().splitlines())
    assert {row["comparison"] for row in rows} == {"reference", "calibrated"}
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == 2
    assert 'src="http' not in page
    assert (folder / "reference-base.pdf").read_bytes().startswith(b"%PDF")

    again = prism("protocol", "--resume", "all")
    assert (again.status, again.stdout) == (0, ran.stdout)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "--out is needed"),
        (("--out", "x"), "--model is needed"),
        (("--resume", "x", "--decisions", 5), "leave out --decisions"),
        (("--resume", "x"), "holds no protocol"),
    ],
)
def test_mistakes_are_one_line(prism: Prism, options: tuple[str, ...], problem: str) -> None:
    """What is missing, or cannot be given again, is said in one line."""
    found = prism("protocol", *options)
    assert (found.status, len(found.err.splitlines())) == (2, 1)
    assert problem in found.err
    assert not Path(prism.folder / "x").exists()
