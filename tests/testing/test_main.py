"""``python -m prism.testing``: a server for as long as standard input lasts."""

import io
import json
import sys

import httpx
import pytest

from prism.testing.__main__ import main


class Asking(io.StringIO):
    """An input that asks the server a question before it ends."""

    def __init__(self, said: pytest.CaptureFixture[str]) -> None:
        super().__init__()
        self._said = said
        self.host = ""

    def read(self, size: int | None = -1, /) -> str:
        """Ask what the host that was printed answers."""
        self.host = self._said.readouterr().out.strip()
        question = {"model": "llama3.2", "messages": [{"role": "user", "content": "Hello"}]}
        assert httpx.post(f"{self.host}/v1/chat/completions", json=question).status_code == 200
        return super().read(size)


@pytest.mark.parametrize("latency", ["0", "0.001"])
def test_a_server_prints_its_host_and_then_what_it_was_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], latency: str
) -> None:
    """Its times may vary, and may be none."""
    options = ["--dialect", "openai", "--latency", latency, "--tail", "3", "--slots", "1"]
    monkeypatch.setattr(sys, "argv", ["testing", *options])
    monkeypatch.setattr(sys, "stdin", Asking(capsys))
    main()
    assert json.loads(capsys.readouterr().out)["questions"] == 1


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--slots", "0", "--slots must be 1 or more, got 0"),
        ("--latency", "-1", "--latency must be 0 or more, got -1"),
        ("--tail", "nan", "--tail must be 1 or more, got nan"),
    ],
)
def test_numbers_that_no_server_has_are_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
    said: str,
) -> None:
    """Each is one line with status 2, and no server begins."""
    monkeypatch.setattr(sys, "argv", ["testing", option, value])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
