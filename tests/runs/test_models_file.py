"""Files of models: what they may say, and what is told of a mistake."""

from hashlib import sha256
from pathlib import Path

import pytest

from prism.errors import InputError
from prism.llm import Model

MODELS = """\
# who asks whom
model = "llama3.2"
host = "http://one:11434"
concurrency = 8
think = false

[archetype.superuser]
model = "llama3.3"
temperature = 0.7

[kind.Seller]
server = "openai"
host = ["http://two:8000",
        "http://three:8000"]

[agent."user_1*"]
temperature = 0.2
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a place for a file of models."""
    return tmp_path / "models.toml"


def test_a_file_is_read_as_options(path: Path) -> None:
    """A default for all, and a table for each group; what a table leaves out is the default's."""
    path.write_text(MODELS)
    options = Model.from_file(path, max_calls=5)
    assert options == Model(
        "llama3.2",
        hosts=("http://one:11434",),
        concurrency=8,
        think="false",
        max_calls=5,
        assigned={
            "agent user_1*": {"temperature": 0.2},
            "archetype superuser": {"model": "llama3.3", "temperature": 0.7},
            "kind Seller": {"server": "openai", "hosts": ("http://two:8000", "http://three:8000")},
        },
        models_file=(str(path), sha256(MODELS.encode()).hexdigest()),
    )
    users, superusers, sellers = map(options.for_those, options.assigned)
    assert (users.model, users.temperature, users.concurrency) == ("llama3.2", 0.2, 8)
    assert (superusers.hosts, superusers.max_calls) == (("http://one:11434",), 5)
    assert (sellers.server, sellers.model, sellers.think) == ("openai", "llama3.2", False)


def test_what_is_given_beside_a_file_goes_before_it(path: Path) -> None:
    """An option replaces the default of the file; another dialect has other servers."""
    path.write_text(MODELS)
    given = Model.from_file(path, model="qwen3", think=None, concurrency=2)
    assert (given.model, given.think, given.concurrency) == ("qwen3", False, 2)
    with pytest.raises(InputError, match="must name an OpenAI-compatible server"):
        Model.from_file(path, server="openai")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 'a'\nmodl = 'b'", "line 2, field 'modl': is unknown; did you mean 'model'"),
        ("model = 'a'\n[archetype.x]\n\nheat = 1", "line 4, field 'archetype.x.heat': is unknown"),
        ("model = 'a'\n[archetypes.x]\nmodel = 'b'", "line 2, field 'archetypes': is unknown"),
        ("model = 'a'\n[kind.X] # none", "line 2, field 'kind.X': is empty"),
        ("model = 'a'\nkind = 3", "line 2, field 'kind': must be a mapping of keys"),
        ("model = 'a'\nkind.X = 3", "line 2, field 'kind.X': must be a mapping of keys"),
        (
            "model = 'a'\n[kind.X]\nmode = 'chatty'",
            "line 3, .*must be 'auto', 'decision'",
        ),
        (
            "model = 'a'\n[kind.X]\ntemperature = '1'",
            "line 3, .*temperature': must be a number, got '1'",
        ),
        ("model = 'a'\nconcurrency = true", "line 2, field 'concurrency': must be a whole number"),
        ("model = 'a'\nhost = [1]", "line 2, field 'host': must be a text or a list of texts"),
        ("model = 'a'\n[kind.X]\nserver = 'openai'", "line 2, field 'kind.X.host': must name an"),
        ("model = 'a'\nhost = []", "line 2, field 'host': must be an address, or a list"),
        ("host = 'http://h'", "field 'model': needs a default"),
        ("model = 'a'\n[kind", "line 2: is not valid TOML"),
        ("model = 'a'\ntemperature = nan", "line 2, field 'temperature': must be a finite number"),
        ("model = 'a'\n[kind.X]\ntemperature = -1", "line 3, .*temperature': must be at least 0"),
        ("model = 'a'\n[kind.X]\nconcurrency = 0", "line 3, .*concurrency': must be at least 1"),
        ("model = 'a'\ntimeout = 0", "line 2, field 'timeout': must be at least 0.01, got 0"),
        ("model = 'a'\n[kind.X]\nmodel = ''", "line 3, field 'kind.X.model': must name a model"),
        ("model = 'a'\nhost = 'ftp://h'", "line 2, field 'host': must be an address such as"),
    ],
)
def test_a_mistake_is_told_with_its_line(path: Path, text: str, message: str) -> None:
    """Whatever a file cannot say is refused by its name, in its line."""
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Model.from_file(path)


def test_all_mistakes_are_told_at_once(path: Path) -> None:
    """Every fault of a file is listed with its line and key."""
    path.write_text("modl = 'a'\ntimeout = 0\n[kind.X]\nhost = 'ftp://h'\n[colour]\na = 1\n")
    with pytest.raises(InputError) as refused:
        Model.from_file(path)

    told = str(refused.value)
    assert "4 problems" in told
    for place in ("1: modl:", "2: timeout:", "4: kind.X.host:", "5: colour:"):
        assert place in told


def test_the_hosts_of_a_file_stay_with_its_server(path: Path) -> None:
    """Hosts are those of the file where its server is the one that is named, or the default."""
    path.write_text("model = 'a'\nhost = 'http://127.0.0.1:1'\n")
    assert Model.from_file(path, server="ollama").hosts == ("http://127.0.0.1:1",)
    with pytest.raises(InputError, match="host"):
        Model.from_file(path, server="openai")
