"""The file of prompts and replies: what survives, what is refused, and who may read it."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.runlog import PromptLog, SimulatedClock, read_prompts
from prism.runlog._prompts import asked_in, find_prompts
from prism.telemetry.events import TEXT_WRITTEN

NAME = "prompts.jsonl.gz"


def keep(log: PromptLog, agent: str = "ada", **more: Any) -> str:
    """Keep one record, and return its id."""
    record_id = log.new_id(agent)
    log.keep({"id": record_id, "kind": "decision", "prompt": f"Hello, {record_id}.", **more})
    return record_id


def ids(path: Path, **options: Any) -> list[str]:
    return [record["id"] for record in read_prompts(path, **options)]


def test_records_are_read_as_they_were_kept(tmp_path: Path) -> None:
    """Round, tick and every key come back, in the order of the answers, by folder or by file."""
    clock = SimulatedClock()
    with PromptLog(tmp_path / NAME, clock) as log:
        clock.begin_round(2)
        clock.advance()
        first, second = log.new_id("ada"), log.new_id("bob")
        clock.advance()
        log.keep({"id": second, "prompt": "é\n", "attempts": [{"seconds": 0.5}]})
        log.keep({"id": first})
    expected: Any = [
        {"id": "bob:1", "round": 2, "tick": 1, "prompt": "é\n", "attempts": [{"seconds": 0.5}]},
        {"id": "ada:1", "round": 2, "tick": 1},
    ]
    assert list(read_prompts(tmp_path)) == list(read_prompts(tmp_path / NAME)) == expected


def test_only_the_owner_may_read_it_and_it_says_why(tmp_path: Path) -> None:
    """The file has mode 0600, and its first line says what is private in it."""
    with PromptLog(tmp_path / NAME):
        pass
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    header = json.loads(gzip.decompress((tmp_path / NAME).read_bytes()))
    assert "private" in header["private"]


def test_a_program_that_starts_again_goes_on_in_its_file(tmp_path: Path) -> None:
    """Its records are those of the last run, also after a kill within a block."""
    for run in range(3):
        with PromptLog(tmp_path / NAME) as log:
            kept = [keep(log, run=run) for _ in range(2)]
            with pytest.raises(InputError, match="is being written by another process"):
                PromptLog(tmp_path / NAME)
        assert ids(tmp_path) == kept
        assert {record["run"] for record in read_prompts(tmp_path)} == {run}
        assert find_prompts(tmp_path, ["ada:1"], lambda _: None)["ada:1"]["run"] == run
        whole = (tmp_path / NAME).read_bytes()
        (tmp_path / NAME).write_bytes(whole + gzip.compress(b"cut off", mtime=0)[:-4])
    assert ids(tmp_path, on_fault=lambda _: None) == kept


@pytest.mark.parametrize(
    "content", [b"a diary", gzip.compress(b"a diary", mtime=0), b"\x1f\x8bdamaged"]
)
def test_nothing_is_added_to_another_file(content: bytes, tmp_path: Path) -> None:
    """A file that is none of prompts is refused, and left as it is."""
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(InputError, match="nothing is added to it"):
        PromptLog(tmp_path / NAME)
    assert (tmp_path / NAME).read_bytes() == content


def test_what_was_flushed_can_be_read_at_once(tmp_path: Path) -> None:
    """Another process sees everything until the last flush, while the file is being written."""
    with PromptLog(tmp_path / NAME) as log:
        kept = [keep(log) for _ in range(3)]
        log.flush()
        keep(log)
        assert ids(tmp_path) == kept


def test_a_file_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    """What was kept after the last save is cut off, and its ids are given again."""
    with PromptLog(tmp_path / NAME) as log:
        keep(log), keep(log, "bob")
        saved = json.loads(json.dumps(log.save()))
        keep(log), keep(log)
    with PromptLog(tmp_path / NAME, go_on=saved) as log:
        keep(log), keep(log, "bob")
    assert ids(tmp_path) == ["ada:1", "bob:1", "ada:2", "bob:2"]


def test_a_file_that_lost_its_end_is_not_gone_on_with(tmp_path: Path) -> None:
    """A file shorter than it was when it was saved is refused, and left as it is."""
    with PromptLog(tmp_path / NAME) as log:
        keep(log)
        saved = log.save()
    (tmp_path / NAME).write_bytes((tmp_path / NAME).read_bytes()[:-1])
    with pytest.raises(InputError, match="put it back"):
        PromptLog(tmp_path / NAME, go_on=saved)


def test_a_kill_loses_the_last_block_at_most(tmp_path: Path) -> None:
    """Cut off at any byte, the blocks before are read, and the cut is told."""
    with PromptLog(tmp_path / NAME) as log:
        sizes = [log.save()["bytes"]]
        for _ in range(3):
            keep(log)
            sizes.append(log.save()["bytes"])
    content = (tmp_path / NAME).read_bytes()
    for length in range(sizes[0], len(content)):
        (tmp_path / NAME).write_bytes(content[:length])
        told: list[str] = []
        whole = sum(size <= length for size in sizes) - 1
        found = ids(tmp_path, on_fault=told.append)
        # a record may be whole before the end of its block is
        assert found[:whole] == [f"ada:{number}" for number in range(1, whole + 1)]
        assert len(found) <= whole + 1
        assert bool(told) == (length not in sizes)
    with pytest.raises(InputError, match="cut off"):
        ids(tmp_path)


def test_many_records_take_little_room(tmp_path: Path) -> None:
    """A thousand decisions with prompts of the feed's size take less than 300 kB."""
    with PromptLog(tmp_path / NAME) as log:
        for number in range(1000):
            keep(log, f"agent_{number % 90}", state="evaluating", reply=str(number), text="x" * 900)
    assert (tmp_path / NAME).stat().st_size < 300_000
    assert len(ids(tmp_path)) == 1000


def test_halves_of_characters_are_kept_as_marks(tmp_path: Path) -> None:
    """What no UTF-8 can hold is replaced, and the record is there all the same."""
    with PromptLog(tmp_path / NAME) as log:
        keep(log, reply="a\ud800b")
    (record,) = read_prompts(tmp_path)
    assert record["reply"] == "a?b"


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """What cannot be written is an error that names the file; what was saved before is read."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = PromptLog(tmp_path / NAME)
    keep(log)
    room = log.save()["bytes"] + 20
    keep(log)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as raised:
            log.flush()
        assert raised.value.filename == str(tmp_path / NAME)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    keep(log)
    with pytest.raises(OSError, match="too large"):
        log.close()
    assert ids(tmp_path, on_fault=lambda _: None)[0] == "ada:1"


@pytest.mark.parametrize(
    ("line", "said"),
    [(b'{"id": "ada:1"}', "is not a file of prompts"), (b'{"prompts": 99}', "newer")],
)
def test_another_file_is_refused(line: bytes, said: str, tmp_path: Path) -> None:
    """A file of something else, or of a newer prism, is not read as if it were one of prompts."""
    (tmp_path / NAME).write_bytes(gzip.compress(line + b"\n"))
    with pytest.raises(InputError, match=said):
        ids(tmp_path)


def test_a_damaged_record_is_told_where_it_is_looked_for(tmp_path: Path) -> None:
    """With file and line; the others are found."""
    lines = [b'{"prompts": 1}', b'{"id":"ada:1","prompt":"Hel', b'{"id":"bo:1","prompt":"Hi"}']
    (tmp_path / NAME).write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    told: list[str] = []
    found = find_prompts(tmp_path, ["ada:1", "bo:1"], told.append)
    assert found == {"bo:1": {"id": "bo:1", "prompt": "Hi"}}
    (message,) = told
    assert f"{tmp_path / NAME}" in message
    assert "line 2 is cut off or damaged: not a JSON object" in message


def test_what_no_model_was_asked_for_has_no_id(tmp_path: Path) -> None:
    """Neither a template, nor anything where prompts were recorded and it has none."""
    text = {"event": TEXT_WRITTEN, "agent_id": "ada", "source": "model"}
    events = [{**text, "source": "template"}, text, {**text, "text_id": "ada:7"}]
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in events))
    asked = list(asked_in(log, lambda _: None))
    assert [each.id for each in asked] == [None, "ada:1", "ada:7"]
    with PromptLog(tmp_path / NAME):
        pass
    asked = list(asked_in(log, lambda _: None, beside=tmp_path))
    assert [(each.id, each.line) for each in asked] == [(None, 1), (None, 2), ("ada:7", 3)]


def test_a_run_without_prompts_is_refused_by_name(tmp_path: Path) -> None:
    """Where nothing was recorded, the message says how to record."""
    with pytest.raises(InputError, match=r"holds no prompts\.jsonl\.gz"):
        read_prompts(tmp_path)


_UNCLOSED = """
import sys
from prism.runlog import PromptLog

log = PromptLog(sys.argv[1])
for number in range(3):
    log.keep({"id": log.new_id("ada"), "kind": "text", "prompt": f"prompt {number}"})
if sys.argv[2] == "fails":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["ends", "fails"])
@pytest.mark.sampled(2)
def test_a_record_that_nobody_closes_is_whole_at_the_end(tmp_path: Path, how: str) -> None:
    """A program that ends without closing its record leaves every prompt in the file."""
    path = tmp_path / "prompts.jsonl.gz"
    line = [sys.executable, "-c", _UNCLOSED, str(path), how]
    ended = subprocess.run(line, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0 if how == "ends" else 3, "")
    assert [each["prompt"] for each in read_prompts(path)] == ["prompt 0", "prompt 1", "prompt 2"]
