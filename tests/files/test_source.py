"""Documents of three languages, and the lines of YAML."""

import pytest

from prism.errors import InputError
from prism.files.source import DocumentError, Problems, Source

TEXTS = {
    "json": '{\n "plan": {\n  "arm": [\n   {"name": "x"}\n  ]\n }\n}',
    "toml": "\n[plan]\n[[plan.arm]]\nname = 'x'\n",
    "yaml": "\nplan:\n  arm:\n    - name: x\n",
}


@pytest.mark.parametrize(
    ("ending", "language"), [("yml", "yaml"), ("TOML", "toml"), ("x", "json"), ("json", "json")]
)
def test_the_ending_of_a_file_tells_its_language(tmp_path, ending, language):
    """A file is read as its ending says, whatever its case, and as JSON if that says nothing."""
    path = tmp_path / f"plan.{ending}"
    path.write_text(TEXTS[language])
    assert Source.read(path).value == {"plan": {"arm": [{"name": "x"}]}}


def test_a_key_of_yaml_has_its_line():
    """A missing key has the line of what is around it; a part of JSON has a key alone."""
    source = Source.parse(TEXTS["yaml"], "yaml")
    assert source.line_of(("plan", "arm", 0, "name")) == 4
    assert source.line_of(("plan", "arm", 0, "kind")) == 4
    assert source.line_of(("plan", "kind")) == 2
    assert Source.parse(TEXTS["json"], "json").line_of(("plan", "arm")) == 0


@pytest.mark.parametrize(
    ("language", "text"), [("json", '{\n"a": }'), ("toml", "\na = \nb = 1"), ("yaml", "a: 1\nb: [")]
)
def test_what_is_not_the_language_is_refused_with_its_line(tmp_path, language, text):
    """A text that cannot be parsed is refused by the file and a line."""
    path = tmp_path / f"plan.{language}"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        Source.read(path)
    assert refused.value.path == str(path)
    assert "line 2" in str(refused.value) or "line 3" in str(refused.value)


def test_a_byte_order_mark_is_left_out():
    """JSON that an editor has begun with a byte-order mark is read."""
    assert Source.parse('\ufeff{"a": 1}', "json").value == {"a": 1}


def test_a_line_inside_a_block_of_text_is_reported():
    """The second line of a block of YAML stands two lines below its key."""
    source = Source.parse("code: |\n  one\n  two\nother: x\n", "yaml")
    assert source.position_of(("code",), line=2) == (3, 1)
    assert source.position_of(("other",), line=1) == (4, 1)


def test_all_problems_are_reported_once_in_the_order_of_the_document():
    """Errors and warnings are listed by line; warnings alone keep nothing from being used."""
    problems = Problems(Source.parse("a: 1\nb: 2\nc: 3", "yaml", path="plan.yaml"))
    problems.add(("b",), "is never used", severity="warning")
    problems.raise_if_any()
    problems.add(("c",), "is unknown")
    problems.add(("a",), "must be text")
    problems.add(("a",), "must be text")
    problems.add((), "is long", severity="note")
    with pytest.raises(DocumentError) as refused:
        problems.raise_if_any()
    assert str(refused.value) == (
        "plan.yaml: has 3 problems:\n"
        "  plan.yaml:1:1: a: must be text\n"
        "  plan.yaml:2:1: b: is never used\n"
        "  plan.yaml:3:1: c: is unknown"
    )
