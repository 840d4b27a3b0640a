"""The reference of the command line, in Markdown, from the command itself."""

import re
import subprocess
import sys


def command_line() -> str:
    """Describe every command of ``prism`` as its ``--help`` does."""
    command = [sys.executable, "-m", "typer", "prism.cli._main", "utils", "docs", "--name", "prism"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = re.sub("<[^>]*>(Examples?)</[^>]*>", r"**\1**:", text[text.index("\n## ") :])
    return "\n".join(map(_marked, text.splitlines()))


def _marked(line: str) -> str:
    """Mark options that a sentence names as code; an example is code as a whole."""
    if line.startswith("* `prism "):
        return line
    option, ends, sentence = line.rpartition("`: ")
    return option + ends + re.sub("(?<= )--[a-z][a-z-]+", r"`\g<0>`", sentence)
