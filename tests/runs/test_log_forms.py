"""Logs that are compressed, and logs of rounds alone."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import measures, read_log, transition_counts
from prism.errors import InputError, MissingExtraError
from prism.report import make_report
from prism.runlog import RunLog, SimulatedClock
from prism.runlog._reader import LOG_NAME, read_blocks, zstd
from prism.runs import run_status
from prism.watch._tail import Changed, Tail
from prism.worlds import Run, replay, resume
from tests.kit.dice import StoppedError, stop_after, tree

try:
    zstd()
except MissingExtraError as error:
    pytest.skip(str(error), allow_module_level=True)

PACKED = f"{LOG_NAME}.zst"


def text_of(log: Path) -> bytes:
    """Return what is in a log, unpacked."""
    blocks = list(read_blocks(log))
    assert all(block.fault is None for block in blocks)
    return b"".join(block.data for block in blocks)


def kept(folder: Path, **options: Any) -> Path:
    """Keep a short run; return its folder."""
    Run("epidemic", 60, rounds=4, seed=3, **options).keep(folder, checkpoint_every=0)
    return folder


def test_a_compressed_log_holds_the_same(tmp_path: Path) -> None:
    """Unpacked, the log has the bytes of one that was not compressed, and is much shorter."""
    plain, packed = kept(tmp_path / "plain"), kept(tmp_path / "packed", log="zstd")
    assert not (packed / LOG_NAME).exists()
    assert text_of(packed / PACKED) == (plain / LOG_NAME).read_bytes()
    assert (packed / PACKED).stat().st_size * 3 < (plain / LOG_NAME).stat().st_size


@pytest.mark.slow
def test_what_reads_logs_reads_compressed_ones(tmp_path: Path) -> None:
    """Tables, report and status are those of the plain log, and a replay writes it again."""
    plain, packed = kept(tmp_path / "plain"), kept(tmp_path / "packed", log="zstd")
    tables = [transition_counts(read_log(each)) for each in (plain, packed)]
    assert tables[0].equals(tables[1])
    assert run_status(packed).state == "complete"
    assert "60 agents, 4 rounds" in make_report(read_log(packed)).html()
    again = replay(packed, tmp_path / "again")
    assert again is not None
    assert text_of(tmp_path / "again" / PACKED) == text_of(packed / PACKED)


@pytest.mark.slow
def test_a_killed_run_goes_on_with_its_compressed_log(tmp_path: Path) -> None:
    """Killed after any round, a run is resumed to the bytes of one that was not."""
    whole = (kept(tmp_path / "whole", log="zstd") / PACKED).read_bytes()
    for number in (1, 2, 3):
        folder = tmp_path / str(number)
        code = (
            "import os, signal\nfrom prism import Run\n"
            f"Run('epidemic', 60, rounds=4, seed=3, log='zstd').keep({str(folder)!r}, "
            "checkpoint_every=0, on_round=lambda each: "
            f"each.number == {number} and os.kill(os.getpid(), signal.SIGKILL))"
        )
        ended = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert (folder / PACKED).read_bytes() == whole[: (folder / PACKED).stat().st_size]
        assert resume(folder) is not None
        assert (folder / PACKED).read_bytes() == whole


def test_a_compressed_log_is_followed_while_it_grows(tmp_path: Path) -> None:
    """The viewer reads what each round adds, and notices that a log was cut back."""
    path = tmp_path / PACKED
    with RunLog(path, SimulatedClock()) as log:
        log.logger.info("one")
        log.flush()
        tail = Tail(path)
        assert [block.data.count(b'"one"') for block in tail.blocks()] == [1]
        log.logger.info("two")
        assert list(tail.blocks()) == []
        log.flush()
        assert [block.data.count(b'"two"') for block in tail.blocks()] == [1]

    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Changed):
        list(tail.blocks())
    tail.close()


def test_a_compressed_log_that_is_damaged_is_reported(tmp_path: Path) -> None:
    """A log that was cut off, or changed in its middle, says so."""
    packed = kept(tmp_path / "packed", log="zstd") / PACKED
    whole = packed.read_bytes()
    packed.write_bytes(whole[:-3])
    assert read_log(packed).notes[0].kind == "truncated"
    packed.write_bytes(whole[:40] + b"\0\0\0\0\0\0" + whole[46:])
    assert read_log(packed).notes[0].kind == "corrupt"


def test_a_log_of_rounds_tells_of_no_agent(tmp_path: Path) -> None:
    """Rounds and measures of everybody are there, and nothing that single agents do."""
    plain, rounds = kept(tmp_path / "plain"), kept(tmp_path / "rounds", log="rounds")
    lines = [json.loads(line) for line in (rounds / LOG_NAME).read_bytes().splitlines()]
    assert {line["event"] for line in lines} == {
        *("run.started", "round.started", "round.ended", "run.ended")
    }
    assert lines[0]["logged_agents"] == 0
    ended = [line for line in lines if line["event"] == "round.ended"]
    assert [sum(line["states"].values()) for line in ended] == [60] * 4
    assert measures(read_log(rounds)).equals(measures(read_log(plain)))


def test_a_feeds_log_of_rounds_has_posts_and_votes_and_no_other_act(tmp_path: Path) -> None:
    """A feed is resumed from its posts and likes, so these stay; the run is the same otherwise."""
    run = Run("feed", 20, rounds=3, seed=1, log="rounds")
    run.keep(tmp_path / "whole")
    lines = (tmp_path / "whole" / LOG_NAME).read_bytes().splitlines()
    events = {json.loads(line)["event"] for line in lines}
    runs = {"run.started", "round.started", "round.ended", "run.ended"}
    assert events == {*runs, "post.published", "post.liked"}

    with pytest.raises(StoppedError):
        run.keep(
            tmp_path / "cut", on_round=lambda ended: stop_after(2)(ended.number), checkpoint_every=0
        )
    resume(tmp_path / "cut")
    assert tree(tmp_path / "cut") == tree(tmp_path / "whole")


def test_a_sampled_log_says_of_how_many_it_tells(tmp_path: Path) -> None:
    """Tables and report say of how many of all agents the log tells."""
    folder = kept(tmp_path / "sampled", log_agents=7)
    (note,) = read_log(folder).notes
    assert note.kind == "sampled"
    assert "7 of 60 agents" in note.message
    assert "7 of 60 agents, 4 rounds" in make_report(read_log(folder)).html()


def test_forms_of_logs_are_checked() -> None:
    """A form that is unknown, and a sample of agents in a log of rounds, are refused."""
    with pytest.raises(InputError, match="must be plain, zstd, rounds, got 'gzip'"):
        Run("epidemic", log="gzip")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="leave one of them out"):
        Run("epidemic", log="rounds", log_agents=3)
