"""Names and passwords of servers, which a run does not keep."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import InputError
from prism.llm import Model
from prism.llm._addresses import with_credentials

PATH = Path("run.json")
SECRET = "http://ann:s3cret@host:1234"
BARE = "http://host:1234"
KEPT = {"host": ["http://***@host:1234"]}


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=9))
def test_no_form_of_an_address_leaks(secret: str) -> None:
    """Whatever an address looks like, its name, password and query are not written down."""
    for host in (
        f"http://{secret}@h:1",
        f"http://ann:{secret}@h:1/path",
        f"ann:{secret}@h",
        f"http://ann:x/{secret}@h:1",
        f"http://h:1?key={secret}",
        f"http://h:1/#{secret}",
    ):
        try:
            told = json.dumps(Model("m", hosts=(host,)).to_config())
        except InputError as error:  # of an address that is none
            told = str(error)
        assert secret not in told


def test_hosts_that_had_credentials_are_kept_with_stars() -> None:
    """A run says which of its hosts had credentials, by stars in their place."""
    config = Model("m", hosts=(SECRET, "http://other")).to_config()
    assert config["host"] == [*KEPT["host"], "http://other"]


def test_credentials_come_from_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken from a given address, else from the environment's."""
    assert with_credentials(KEPT, [f"{SECRET}/"], PATH)["host"] == [f"{SECRET}/"]
    monkeypatch.setenv("OLLAMA_HOST", SECRET)
    assert with_credentials(KEPT, [], PATH)["host"] == [SECRET]


@pytest.mark.parametrize("environment", ["", BARE, "http://ann:s3cret@another:1"])
def test_missing_credentials_are_asked_for(
    environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without credentials a run is not resumed, and the error says how to give them."""
    monkeypatch.setenv("OLLAMA_HOST", environment)
    with pytest.raises(InputError, match="--host http://NAME:PASSWORD@host:1234, or set OLLAMA"):
        with_credentials(KEPT, [], PATH)


def test_another_server_is_refused_without_its_password() -> None:
    """An address that is none of the run's is refused, and shown without its password."""
    with pytest.raises(InputError, match="http://x is not one of the run's") as refused:
        with_credentials(KEPT, ["http://ann:s3cret@x"], PATH)
    assert "s3cret" not in str(refused.value)
