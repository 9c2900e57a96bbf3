"""The ceiling of names that say nothing and of docstrings that open as a question, in the package and in its tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.stack.paths import ROOT

# As the whole name of a thing, these words say nothing of it.
EMPTY = frozenset({
    "found", "one", "ones", "told", "said", "given", "wanted", "made", "held", "there", "then", "these",
    "those", "both", "rest", "theirs", "ours", "was", "now", "seen", "others", "another",
})  # fmt: skip
# A docstring says what its function does ("Return the hours that …"), and does not open as an indirect question.
QUESTIONS = frozenset({"What", "How", "Whose", "Which", "That", "Those", "Whether", "Of", "As"})
PACKAGE = ("include", "dags", "plugins", "spark_jobs")
OURS_ALONE = ("tests", "bench", "scripts")
WORST = 15


def complaints(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each name that says nothing and of each docstring that opens as a question."""
    for node in ast.walk(tree):
        if (name := bound_name(node)) and name.strip("_") in EMPTY:
            yield getattr(node, "lineno", 1), name
        if question := opening(node):
            yield getattr(node, "lineno", 1), f'"{question} …"'


def bound_name(node: ast.AST) -> str:
    """Return the name that a node gives to a variable, an argument or a function, or ""."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
    return ""


def opening(node: ast.AST) -> str:
    """Return the first word of a node's docstring if it asks, or ""."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    word = next(iter((ast.get_docstring(node) or "").split()), "")
    return word if word in QUESTIONS else ""


class Measured:
    """The bindings of some folders, and in each file what says nothing."""

    def __init__(self, folders: tuple[str, ...], root: Path = ROOT) -> None:
        self.bindings, self.by_file = 0, dict[str, list[tuple[int, str]]]()
        for path in sorted(file for folder in folders for file in (root / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            self.bindings += sum(map(bool, map(bound_name, ast.walk(tree))))
            if lines := sorted(complaints(tree)):
                self.by_file[str(path.relative_to(root))] = lines

    @property
    def questions(self) -> int:
        """Docstrings that open as a question."""
        return sum(text.startswith('"') for lines in self.by_file.values() for _, text in lines)

    @property
    def percent(self) -> float:
        """Names that say nothing, of a hundred."""
        return 100 * (sum(map(len, self.by_file.values())) - self.questions) / self.bindings

    def __str__(self) -> str:
        worst = sorted(self.by_file.items(), key=lambda item: -len(item[1]))
        return "\n".join(
            f"{len(lines):4} in {path}: " + ", ".join(f"{text} (line {line})" for line, text in lines[:5])
            for path, lines in worst[:WORST]
        )


@pytest.mark.parametrize(("folders", "percent", "questions"), [(PACKAGE, 0.5, 3), (OURS_ALONE, 1.0, 3)])
def test_names_say_what_a_thing_is_and_docstrings_what_is_done(
    folders: tuple[str, ...], percent: float, questions: int
) -> None:
    measured = Measured(folders)
    assert measured.bindings > 10_000, f"the search finds no code in {', '.join(folders)}"
    assert measured.percent <= percent, (
        f"{measured.percent:.1f} % of the {measured.bindings} names in {', '.join(folders)} say nothing, "
        f"at most {percent} % may: "
        f"say what the thing is (`missing_keys`, `match`). The worst files:\n{measured}"
    )
    assert measured.questions <= questions, (
        f"{measured.questions} docstrings in {', '.join(folders)} open as a question, at most {questions} may: "
        f'begin with a verb ("Return the hours that …"). The worst files:\n{measured}'
    )


def test_each_binding_and_docstring_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_text(
        '"""Whether it counts."""\n'
        "def told(given, *, plan):\n"
        '    """Return what was found."""\n'
        "    found, keys = given\n"
        "    return [found for _one in keys if (now := _one.now)]\n"
    )
    measured = Measured(("a",), tmp_path)
    assert measured.bindings == 7
    assert measured.by_file == {
        "a/b.py": [(1, '"Whether …"'), (2, "given"), (2, "told"), (4, "found"), (5, "_one"), (5, "now")]
    }
    assert (measured.questions, round(measured.percent)) == (1, 71)
    assert str(measured).startswith('   6 in a/b.py: "Whether …" (line 1), given (line 2), told (line 2)')
