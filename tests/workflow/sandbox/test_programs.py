"""Code steps as programs: what is refused when they are loaded, and what they bind."""

import ast
from pathlib import Path
from time import process_time

import pytest

from prism.workflow._sandbox._programs import CodeError, Program


@pytest.mark.parametrize(
    ("code", "line", "problem"),
    [
        ("x = (", 1, "is not Python"),
        ("x = 1\nreturn x", 2, "is not Python: 'return' outside function"),
        ("\n\nbreak", 3, "is not Python"),
        ("await x", 1, "is not Python"),
        ("x = 1\nimport os", 2, "imports os: code steps have json, math, random, re"),
        ("from os import path", 1, "imports os"),
        ("from . import x", 1, r"imports \."),
        ("import json, time", 1, "imports time"),
        ("import math.os", 1, "imports math.os"),
        ("eval('1')", 1, "uses eval"),
        ("f = exec", 1, "uses exec"),
        ("open('x')", 1, "uses open"),
        ("hash('x')", 1, "uses hash"),
        ("__builtins__", 1, "uses __builtins__"),
        ("_prism_text = 1", 1, "uses _prism_text"),
        ("x = ().__class__", 1, "uses .__class__"),
        ("global x\nx = 1", 1, "uses global: put the value in context"),
        ("def f():\n    global x\n    x = 1", 2, "uses global: put the value in context"),
        ("def f():\n    nonlocal x", 2, "uses nonlocal: return the value"),
        ("if x:\n    return 1", 2, "'return' outside function"),
        ("def f():\n    class A:\n        return 1", 3, "'return' outside function"),
        ("def f(a):\n    def g(x, x):\n        return x", 2, "duplicate argument 'x'"),
        ("def f(*a, a=1):\n    return a", 1, "duplicate argument 'a'"),
        ("def f(__debug__):\n    return 1", 1, "cannot assign to __debug__"),
        ("x" * 20_001, None, "has more than 20,000 characters"),
        ("-" * 19_000 + "1", None, "is not Python"),
        ("[" * 5_000, 1, "is not Python"),
        ("x = '\0'", None, "is not Python"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_no_step_may_do_is_refused_when_it_is_loaded(
    code: str, line: int | None, problem: str
) -> None:
    """Broken Python, other modules and ways around the sandbox are refused with their line."""
    with pytest.raises(CodeError, match=problem) as caught:
        Program(code)
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "",
        "# only a comment",
        "t = '''a\n  b\nc'''\nu = f'''{t}\n v'''",
        "x = [\n  1,\n    2,\n]\nif x:\n\ty = 1",
        "x = 1 + \\\n  2",
        "def f(a):\n    return '''\n  in\n'''\nx = f(1)",
    ],
)
def test_a_program_keeps_its_lines_and_texts(code: str) -> None:
    """Dressed as a function, the code has the same lines and the same texts of several lines."""
    program = Program(code)
    source = program.source({}, {}, "k")
    dressed = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    texts = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    kept = [node.value for node in ast.walk(dressed) if isinstance(node, ast.Constant)]
    assert [text for text in texts if text not in kept] == []
    for number, line in enumerate(code.split("\n"), 1):
        at = next(n for n in range(1, 200) if program.line(n) == number)
        assert source.split("\n")[at - 1].endswith(line)


def test_programs_are_never_run_by_the_host() -> None:
    """No module of the room calls exec, eval or the code that compile gave."""
    room = Path(__file__).parents[3] / "prism" / "workflow"
    for path in room.rglob("*.py"):
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"exec", "eval"}, path


def test_a_form_feed_is_refused_where_it_stands() -> None:
    """It would end the indentation of what the code becomes, so the message names its line."""
    with pytest.raises(CodeError, match="line 2 of the code: holds a form feed") as caught:
        Program("x = 1\n\x0cy = 2")
    assert caught.value.line == 2


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(ending: str) -> None:
    """Code reads the same with the line ends of Windows and of old Macs."""
    program = Program(ending.join(["if total:", "    x = 1", "y = 2"]))
    assert (program.assigned, program.code.count("\n")) == (("x", "y"), 2)


def test_long_formatted_texts_are_read_in_time() -> None:
    """A text of thousands of lines and values is not gone through once for each of them."""
    began = process_time()
    Program("x = f'''" + "{1}\n" * 3300 + "'''")
    assert process_time() - began < 2
