"""The checklist of the older tools: which of its lines a test proves, and which of those passed.

`python -m tests.checklist FILE…` counts what several runs of pytest wrote (FARM_SEEDS names the
file that a run adds to): a line is proven when a test marked with it passed and none failed.
"""

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).parent
LAST = {"S0": 39, "S1": 53, "S2": 26, "S4": 99}
GROUPS = {name: [f"{name}.{at}" for at in range(1, last + 1)] for name, last in LAST.items()}
GROUPS["S4"].append("S4.31b")


def ids() -> list[str]:
    """Return every line of the groups, in their order."""
    return [name for names in GROUPS.values() for name in names]


def marks() -> Iterator[tuple[str, list[str]]]:
    """Yield every test that is marked, as file:line, with its ids."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.seed(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                yield from _of(node, path)


def _of(test: ast.FunctionDef, path: Path) -> Iterator[tuple[str, list[str]]]:
    for each in test.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.seed":
            ids = [ast.literal_eval(word) for word in each.args]
            yield f"{path.relative_to(TESTS)}:{each.lineno}", ids


def proven(outcomes: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the lines of which a test passed and none failed; outcomes: id → outcome, per test."""
    passed: set[str] = set()
    failed: set[str] = set()
    for each in outcomes:
        for name, outcome in each.items():
            (passed if outcome == "passed" else failed if outcome == "failed" else set()).add(name)
    return passed - failed


def count(found: set[str]) -> str:
    """Return the one line that says how many of each group are proven."""
    groups = []
    for group, names in GROUPS.items():
        groups.append(f"{group} {sum(name in found for name in names)} of {len(names)}")
    return f"checklist: {', '.join(groups)}"


def main(files: list[str]) -> int:
    """Print the count of these runs, and what a skip left unproven."""
    lines = [line for name in files for line in Path(name).read_text("utf-8").splitlines()]
    found = proven(json.loads(line) for line in lines)
    print(count(found))
    missing = [name for name in ids() if name not in found]
    if missing:
        print(f"not proven here: {', '.join(missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
