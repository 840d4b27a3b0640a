"""``prism batch`` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.kit.commands import Prism

pytest.importorskip("polars")

PLAN = 'world = "rumour"\nagents = 8\nrounds = 2\n'


def test_a_plan_is_carried_out_and_resumed(prism: Prism) -> None:
    """Lines tell what goes on, a table what came of it; a complete batch is left as it is."""
    Path("plan.toml").write_text(PLAN)
    done = prism("batch", "plan.toml", "--seeds", 2, "--workers", 1, "--out", "out")
    assert done.status == 0
    assert done.err == "1 of 2: all/seed-0 complete\n2 of 2: all/seed-1 complete\n"
    assert "2 of 2 runs are complete" in done.out
    assert "reached" in done.out

    again = prism("batch", "--resume", "out", "--json")
    assert (again.status, again.err) == (0, "prism: continuing after 2 of 2 runs\n")
    assert json.loads(again.out)["runs"][1] == {
        "run": "all/seed-1",
        "configuration": "all",
        "arm": None,
        "seed": 1,
        "parameters": {},
        "status": "complete",
        "error": None,
    }


def test_mistakes_are_one_line(prism: Prism) -> None:
    """What is missing, contradicts itself or is no plan is said with status 2; nothing is run."""
    Path("plan.toml").write_text(PLAN + "seds = 3\n")
    for arguments, said in (
        ((), "needs the file of a plan, or --resume with the folder of a batch"),
        (("plan.toml", "--out", "o"), "plan.toml, line 4, field 'seds': is unknown; did you mean"),
        (("none.toml", "--out", "o"), "none.toml: there is no such file"),
        (("--resume", "none"), "none: holds no batch to resume (no plan.json): begin one"),
        (("plan.toml", "--resume", "o", "--seeds", 3), "leave out --seeds, plan.toml"),
    ):
        ended = prism("batch", *arguments)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.startswith("prism: ")
        assert said in ended.err
        assert ended.err.count("\n") == 1

    Path("plan.toml").write_text(PLAN)
    assert "--out is missing" in prism("batch", "plan.toml").err
    assert "--host is for a model" in prism("batch", "plan.toml", "--host", "h", "--out", "o").err
    assert (
        "--workers must be from 1"
        in prism("batch", "plan.toml", "--workers", 999, "--out", "o").err
    )
    assert not Path("o").exists()


@pytest.mark.slow
def test_a_failed_run_is_told_with_status_1(prism: Prism) -> None:
    """The others are complete, and the reason is told."""
    Path("fragile_in_a_batch.py").write_text(
        "from prism.examples.rumour import Rumour\n\n"
        "class Fragile(Rumour):\n"
        "    fails: bool = False\n\n"
        "    def round_begins(self):\n"
        "        assert not self.fails, 'broken'\n"
    )
    text = PLAN.replace('"rumour"', '"fragile_in_a_batch.py"') + "[vary]\nfails = [false, true]\n"
    Path("plan.toml").write_text(text)
    ended = prism("batch", "plan.toml", "--workers", 1, "--out", "out")
    assert ended.status == 1
    assert "1 of 2 runs are complete" in ended.out
    assert "fails=true/seed-0 failed: " in ended.err
    # its traceback lies in its folder
    assert ended.err.count("\n") == 2
    assert f"{ended.out}{ended.err}".count("seed-0 failed") == 1
    assert "out/fails=true/seed-0/traceback.txt" in ended.out
    assert "broken" in Path("out/fails=true/seed-0/traceback.txt").read_text()
