"""The house stands as drawn: who imports whom, what a start costs, what is pinned."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HEAVY = {
    *("boto3", "celery", "duckdb", "jinja2", "kombu", "msgspec", "numpy", "onnxruntime"),
    *("pyarrow", "pynvml", "redis", "rich", "scipy", "torch", "yaml"),
}


def test_every_module_imports_only_what_lies_below() -> None:
    """The contracts of pyproject.toml hold; a new file must be given its place there."""
    said = subprocess.run(
        [BIN / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )

    assert 0 == said.returncode, said.stdout


def test_farm_help_imports_nothing_heavy() -> None:
    """`farm --help` answers at once: none of these libraries was imported for it."""
    code = f"""if True:
        import sys
        from farm.cli import main
        try:
            main(["--help"])
        except SystemExit as end:
            code = end.code
        print(code, sorted({HEAVY!r} & set(sys.modules)))
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "0 []" == said.stdout.splitlines()[-1]
    assert "Usage" in said.stdout


@pytest.mark.parametrize("program", ["farm", "farm-worker"])
def test_each_command_is_installed_and_answers(program: str) -> None:
    said = subprocess.run([BIN / program, "--help"], capture_output=True, text=True)

    assert 0 == said.returncode, said.stderr


def _functions() -> Iterator[tuple[str, int]]:
    """Yield every function of the product with its length: lines of code after the docstring."""
    for path in sorted([*ROOT.glob("farm/**/*.py"), *ROOT.glob("workers/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                documented = ast.get_docstring(node, clean=False) is not None
                start = (node.body[0].end_lineno or 0) + 1 if documented else node.lineno
                yield f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - start + 1


def test_no_function_is_longer_than_forty_lines() -> None:
    long = [f"{name}: {lines} lines" for name, lines in _functions() if lines > 40]

    assert [] == long, "\n".join(long)


def test_every_dependency_is_pinned() -> None:
    """What pyproject.toml asks for, deploy/constraints.txt fixes to one version."""
    pins = (ROOT / "deploy/constraints.txt").read_text("utf-8")
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(each for extra in extras for each in extra)]
    names = [re.match(r"[A-Za-z0-9_.-]+", each) for each in asked]

    pinned = {_plain(line.partition("==")[0]) for line in pins.splitlines() if "==" in line}

    assert set() == {_plain(each[0]) for each in names if each} - pinned
    assert "torch==2.13.0" in pins.splitlines()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
