"""How many files of prism the way from a log to its page enters."""

import pytest

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.analysis import cascades, read_log
from prism.report import make_report
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed, Parameters
from tests.kit.ways import Way, table_of_ways


@pytest.fixture(scope="module")
def way(html: str, tmp_path_factory: pytest.TempPathFactory) -> Way:
    """Follow a report of a short run, which is not the first, until its page is made."""
    folder = tmp_path_factory.mktemp("report")
    log, population = folder / "page.jsonl", synthetic_population(40, seed=5)
    with RunLog(log, SimulatedClock()) as written:
        posts = opening_posts(population.agents, seed=5)
        classic = Parameters.preset("classic")
        Run(
            Feed(first_posts=posts, parameters=classic),
            population.agents,
            rounds=4,
            seed=5,
            logger=written.logger,
        ).run()
    assert cascades(read_log(log))["size"].max() > 1

    followed = Way()
    followed.take(
        lambda: (folder / "page.html").write_text(make_report(read_log(log)).html(), "utf-8")
    )
    return followed


@pytest.mark.slow
def test_a_log_becomes_a_page_through_few_files(way: Way) -> None:
    """A log becomes a page through at most 45 files."""
    assert len(way.files) <= 45, way.files


@pytest.mark.slow
def test_the_architecture_page_has_the_count(way: Way) -> None:
    """The table on the architecture page says what is counted here."""
    assert way.row("a log, until its page is made") in table_of_ways(), way.files
