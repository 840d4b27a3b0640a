"""Documents of three languages, and where each part of them stands."""

import pytest

from prism.errors import InputError
from prism.files._source import DocumentError, Place, Problems, Source

TEXTS = {
    "json": '{\n "plan": {\n  "arm": [\n   {"name": "x"}\n  ]\n }\n}',
    "toml": "\n[plan]\n[[plan.arm]]\nname = 'x'\n",
    "yaml": "\nplan:\n  arm:\n    - name: x\n",
}


@pytest.mark.parametrize("language", TEXTS)
def test_every_language_tells_the_line_of_a_key(language):
    """A key deep inside a document is found on its line, whatever the document is written in."""
    source = Source.parse(TEXTS[language], language)
    assert source.value == {"plan": {"arm": [{"name": "x"}]}}
    assert source.place(("plan", "arm", 0, "name")).line == 4


@pytest.mark.parametrize("language", TEXTS)
def test_a_missing_key_is_reported_where_it_should_stand(language):
    """The place of a key that is not there is that of the nearest thing around it."""
    found = Source.parse(TEXTS[language], language).place(("plan", "arm", 0, "kind"))
    assert found.line in (3, 4)


@pytest.mark.parametrize(("ending", "language"), [("yml", "yaml"), ("TOML", "toml"), ("x", "json")])
def test_the_ending_of_a_file_tells_its_language(tmp_path, ending, language):
    """A file is read as its ending says, whatever its case, and as JSON if that says nothing."""
    path = tmp_path / f"plan.{ending}"
    path.write_text(TEXTS[language])
    assert Source.read(path).language == language


@pytest.mark.parametrize(
    ("language", "text"), [("json", '{\n"a": }'), ("toml", "\na = "), ("yaml", "a: 1\nb: [")]
)
def test_what_is_not_the_language_is_refused_with_its_line(tmp_path, language, text):
    """A text that cannot be parsed is refused by the file and a line."""
    path = tmp_path / f"plan.{language}"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        Source.read(path)
    assert refused.value.path == str(path)
    assert refused.value.line in (2, 3)


def test_a_byte_order_mark_is_left_out():
    """JSON that an editor has begun with a byte-order mark is read."""
    assert Source.parse('\ufeff{"a": 1}', "json").value == {"a": 1}


def test_a_line_inside_a_block_of_text_is_told():
    """The second line of a block of YAML stands two lines below its key."""
    source = Source.parse("code: |\n  one\n  two\nother: x\n", "yaml")
    assert source.place_inside(("code",), 2) == Place(3, 1)
    assert source.place_inside(("other",), 2).line == 4


def test_all_problems_are_told_in_the_order_of_the_document():
    """Several problems are listed by line, and warnings keep nothing from being used."""
    problems = Problems(Source.parse("a = 1\nb = 2\nc = 3", "toml", path="plan.toml"))
    problems.add(("c",), "is unknown")
    problems.add(("a",), "must be text")
    problems.add(("b",), "is never used", severity="warning")
    with pytest.raises(DocumentError) as refused:
        problems.raise_if_any()
    assert str(refused.value) == (
        "plan.toml: has 2 problems:\n  plan.toml:1: a: must be text\n  plan.toml:3: c: is unknown"
    )


def test_what_is_found_twice_is_told_and_counted_once() -> None:
    """A problem that two readers of a document find is one, also among those that are counted."""
    problems = Problems(Source.parse("a = 1\nb = 2", "toml", path="plan.toml"))
    for _ in range(3):
        problems.add(("a",), "is wrong")
    problems.add(("b",), "is wrong")
    with pytest.raises(DocumentError, match="has 2 problems") as caught:
        problems.raise_if_any()
    assert "more" not in str(caught.value)


def test_only_so_many_problems_are_listed():
    """A document with hundreds of problems has fifty listed and the others counted."""
    problems = Problems(Source.of({}))
    for number in range(120):
        problems.add((f"key{number:03}",), "is unknown")
    with pytest.raises(DocumentError) as refused:
        problems.raise_if_any()
    assert str(refused.value).count("is unknown") == 50
    assert str(refused.value).endswith("and 70 more")
    assert len(refused.value.problems) == 50
