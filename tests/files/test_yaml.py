"""The strict YAML reader."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import InputError
from prism.files._yaml import MAX_DEPTH, parse_yaml
from prism.files.source import Source

yaml = pytest.importorskip("yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: on", {"a": "on"}),
        ("[yes, no, off, y, n]", ["yes", "no", "off", "y", "n"]),
        ("no: 1\nnull: 2\n3: 4", {"no": 1, "null": 2, "3": 4}),
        ("[true, False, null, ~, '~', 'true']", [True, False, None, None, "~", "true"]),
        ("[12, -3, 0o14, 0x1F, 0o9, -0x1, 1_000]", [12, -3, 12, 31, "0o9", "-0x1", "1_000"]),
        ("[1.5, .5, 1e3, 1.e-2, '.inf', nan]", [1.5, 0.5, 1000.0, 0.01, ".inf", "nan"]),
        ("[2026-01-30, 1:30]", ["2026-01-30", "1:30"]),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: &x [1, {b: 2}]\nc: *x\n", {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}),
        ("a:", {"a": None}),
    ],
)
def test_scalars_are_those_of_the_core_schema(text: str, value: Any) -> None:
    """Only numbers, true, false and null are not text; a key is always the text that is written."""
    assert parse_yaml(text).value == value


def test_an_alias_shares_nothing_with_its_anchor() -> None:
    """What an alias repeats is a copy, so that changing one does not change the other."""
    found = parse_yaml("a: &x [1]\nb: *x\n").value
    assert found["a"] is not found["b"]


def test_every_value_has_a_position() -> None:
    """Lines and columns are counted from 1; an entry of a mapping begins with its key."""
    document = parse_yaml("a: 1\nlist:\n  - name: x\n    code: |\n      1\n")
    assert document.positions["list", 0, "code"] == (4, 5)
    assert document.blocks["list", 0, "code"] == 4
    assert document.positions["list", 0] == (3, 5)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", None, "is empty"),
        ("a: [", 2, "is not valid YAML"),
        ("a:\tb: c", 1, "is not valid YAML"),
        ("a: 1\nb: 2\na: 3", 3, "the key 'a' appears twice"),
        ("{x: {b: 1, b: 1}}", 1, "the key 'b' appears twice"),
        ("a: &x {b: 1}\nc:\n  <<: *x", 3, "prism merges no mappings"),
        ("--- 1\n--- 2", 2, "expected a single document in the stream"),
        ("a: !!python/object/apply:os.system [ls]", 1, "has the tag"),
        ("a: !!binary aGk=", 1, "has the tag"),
        ("a: !!str 12", 1, "has the tag"),
        ("- *nobody", 1, "found undefined alias"),
        ("a: &x [*x]", 1, f"is nested more than {MAX_DEPTH} levels deep"),
        ("? [1, 2]\n: 3", 1, "a key must be text"),
        ("a: 1e999", 1, "contains a number that is too large"),
        ("- .inf", 1, "contains .inf, which is not finite: if it is text, quote it"),
        ("[" * 100_000, 1, f"is nested more than {MAX_DEPTH} levels deep"),
        ("a: " * 1 + "- " * 100_000, 1, "is not valid YAML|is nested more than"),
        ("\0", None, "is not valid YAML"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_not_plain_is_refused(text: str, line: int | None, problem: str) -> None:
    """Broken YAML, repeated keys, tags, second documents and depth are refused with their line."""
    with pytest.raises(InputError, match=problem) as caught:
        parse_yaml(text, path="agent.yaml")
    assert (caught.value.path, caught.value.line) == ("agent.yaml", line)


@pytest.mark.parametrize("level", ["[*a{}]", "{{k: *a{}}}", "{{k: [*a{}]}}", "[[*a{}, x], y]"])
def test_aliases_may_nest_as_deeply_as_values_that_are_written_out(level: str) -> None:
    """Values are as deep as if aliases were written out."""
    lines, value = ["- &a0 [x]"], "[x]"
    while True:
        value = level.replace("*a{}", "{}").format(value)
        lines.append(f"- &a{len(lines)} {level.format(len(lines) - 1)}")
        try:
            parse_yaml(f"- {value}")
        except InputError:
            break

        parse_yaml("\n".join(lines))

    with pytest.raises(InputError, match=f"is nested more than {MAX_DEPTH} levels deep"):
        parse_yaml("\n".join(lines))
    assert len(lines) > MAX_DEPTH // 3


def test_aliases_that_explode_are_refused_before_they_do() -> None:
    """Nine levels of ten aliases, a billion values, are refused while the file is small."""
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(InputError, match="with its aliases expanded"):
        parse_yaml("a0: &a0 [x]\n" + "\n".join(levels))


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**40), 2**40)
        | st.text("abc on:-{}'\"", max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner)
        ),
        max_leaves=8,
    )
)
@settings(deadline=None)
def test_what_pyyaml_writes_is_read_again(value: Any) -> None:
    """Plain data that PyYAML's own writer quotes as it must comes back as it was."""
    assert parse_yaml(yaml.safe_dump(value)).value == value


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_no_text_raises_anything_else(data: bytes) -> None:
    """Whatever the text, it is read or refused as a wrong file."""
    try:
        parse_yaml(data.decode("utf-8", "replace"), path=Path("x.yaml"))
    except InputError:
        return


def test_of_a_file_that_is_too_long_only_the_beginning_is_read(tmp_path: Path) -> None:
    """A file of a hundred megabytes is refused without being held."""
    path = tmp_path / "long.yaml"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="has more than 2,000,000 characters"):
            Source.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20
