"""The laws of the import walk: every local file that a model is made of, and no other."""

from pathlib import Path

import pytest

from farm import imports
from farm.errors import Refused


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _closure(root: Path, entry: str, package: str = "") -> list[str]:
    found = imports.closure(root / entry, root=root, package=package)
    return [path.relative_to(root).as_posix() for path in found]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import one", ["one.py"]),
        ("import pack", ["pack/__init__.py"]),
        ("import pack.sub.leaf", ["pack/__init__.py", "pack/sub/__init__.py", "pack/sub/leaf.py"]),
        ("from pack.sub import leaf", None),
        ("from pack import one, sub", ["pack/__init__.py", "pack/one.py", "pack/sub/__init__.py"]),
        ("from pack import *", ["pack/__init__.py"]),
        ("from pack import CONSTANT", ["pack/__init__.py"]),
        ("from plain.deep import leaf", ["plain/deep/leaf.py"]),
        ("def f():\n    import one", ["one.py"]),
        ("try:\n    import one\nexcept ImportError:\n    import two", ["one.py", "two.py"]),
        (
            "import importlib\nimportlib.import_module('pack.one')",
            ["pack/__init__.py", "pack/one.py"],
        ),
        ("m = __import__('one')", ["one.py"]),
        ("from . import one", ["one.py"]),
        ("from .pack.one import f", ["pack/__init__.py", "pack/one.py"]),
        ("import torch, os.path, json", []),
        ("from .. import above", []),
        ("from ..... import above", []),
        ("import_module(name)\nimport_module('../one')\nimport_module('a b')\n__import__()", []),
        (
            "import workers.record, farm, configs.x",
            ["configs/x.py", "farm.py", "workers/record.py"],
        ),
    ],
)
def test_an_import_is_followed_wherever_it_stands(
    tmp_path: Path, statement: str, expected: list[str] | None
) -> None:
    """Absolute, relative, nested and literal dynamic imports of local files count, no others."""
    leaf = ["pack/__init__.py", "pack/sub/__init__.py", "pack/sub/leaf.py"]
    names = ["one", "two", "pack/__init__", "pack/one", "pack/sub/__init__", "pack/sub/leaf"]
    names += ["plain/deep/leaf", "workers/record", "farm", "configs/x", "unused"]
    root = _tree(tmp_path / "root", {f"{name}.py": "" for name in names})
    _tree(tmp_path, {"above.py": "", "root/model.py": statement})

    found = _closure(root, "model.py")

    assert sorted(["model.py", *(leaf if expected is None else expected)]) == found


def test_imports_are_followed_to_the_end_and_in_circles(tmp_path: Path) -> None:
    """A file imported by an import counts; a circle ends."""
    root = _tree(
        tmp_path,
        {
            "model.py": "import a",
            "a.py": "import pack.b",
            "pack/__init__.py": "from .c import x",
            "pack/b.py": "from . import d\nfrom ..a import y",
            "pack/c.py": "import model",
            "pack/d.py": "",
        },
    )

    found = _closure(root, "model.py")

    expected = ["a.py", "model.py", "pack/__init__.py", "pack/b.py", "pack/c.py", "pack/d.py"]
    assert expected == found


def test_a_file_finds_its_neighbours_and_the_root(tmp_path: Path) -> None:
    """A file in a sub-folder imports what lies beside it first, then what lies in the root."""
    root = _tree(
        tmp_path,
        {"sub/model.py": "import near, far", "sub/near.py": "", "near.py": "", "far.py": ""},
    )

    assert ["far.py", "sub/model.py", "sub/near.py"] == _closure(root, "sub/model.py")


def test_a_package_hides_a_folder_without_init(tmp_path: Path) -> None:
    """As in Python, a regular module anywhere on the way beats a namespace folder before it."""
    root = _tree(tmp_path, {"sub/model.py": "import a.b", "sub/a/b.py": "", "a/__init__.py": ""})
    _tree(root, {"a/b.py": ""})

    assert ["a/__init__.py", "a/b.py", "sub/model.py"] == _closure(root, "sub/model.py")


def test_a_compiled_module_counts(tmp_path: Path) -> None:
    """An extension module is a file like any other."""
    import importlib.machinery

    name = f"fast{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    root = _tree(tmp_path, {"model.py": "import fast", name: "\x7fELF", "fast.py": ""})

    assert sorted([name, "model.py"]) == _closure(root, "model.py")


def test_a_walk_may_stay_in_one_package(tmp_path: Path) -> None:
    """With a package named, absolute imports of others are not followed."""
    files = {"mine/__init__.py": "", "mine/net.py": "import mine.part, other\nfrom . import odd"}
    root = _tree(tmp_path, {**files, "mine/part.py": "", "mine/odd.py": "", "other.py": ""})

    found = _closure(root, "mine/net.py", package="mine")

    assert ["mine/__init__.py", "mine/net.py", "mine/odd.py", "mine/part.py"] == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "not Python on line 1: invalid syntax"),
        ("x = 1\nprint 2\n", "not Python on line 2: Missing parentheses"),
        ("x = '\0'", "not Python: source code string cannot contain null bytes"),
        ("# coding: nonsense\n", "not Python: unknown encoding: nonsense"),
        ("x = " + "(" * 5000, "not Python"),
        ("x = " + "-" * 100_000 + "1", "not Python"),
    ],
)
def test_a_file_that_is_no_python_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A syntax error is named with its file and line, in imported files too."""
    root = _tree(tmp_path, {"model.py": "import bad", "bad.py": text})

    with pytest.raises(Refused) as caught:
        imports.closure(root / "model.py", root=root)

    assert str(caught.value).startswith(f"{root / 'bad.py'}: {message}")


def test_a_warning_about_the_authors_code_is_none_of_ours(tmp_path: Path) -> None:
    r"""Python's remarks on `"\d"` reach nobody."""
    root = _tree(tmp_path, {"model.py": r'x = "\d"; y = 1 is 1'})

    assert ["model.py"] == _closure(root, "model.py")


@pytest.mark.parametrize(
    ("text", "names", "is_open"),
    [
        ("def a(): ...\nasync def b(): ...\nclass C: ...", ["a", "b", "C"], False),
        ("x = y = 1\n(p, [q, *r]) = 2\nz: int = 3", ["x", "y", "p", "q", "r", "z"], False),
        ("import a.b, c as d\nfrom e import f as g\ndef h(): ...", ["h", "a", "d", "g"], False),
        ("if 1:\n    def a(): ...\nelse:\n    def b(): ...", ["a", "b"], False),
        ("try:\n    import a\nexcept E:\n    a = None\nfinally:\n    b = 1", ["a", "b"], False),
        ("with x:\n    for i in y:\n        a = 1", ["a"], False),
        ("match x:\n    case 1:\n        a = 1", ["a"], False),
        ("def f():\n    inner = 1", ["f"], False),
        ("x.attribute = 1\nx[0] = 2", [], False),
        ("from a import *", ["*"], True),
        ("def __getattr__(name): ...", ["__getattr__"], True),
    ],
)
def test_the_names_of_a_module_are_those_it_binds(
    tmp_path: Path, text: str, names: list[str], is_open: bool
) -> None:
    """Definitions, assignments and imports of the top level count, inside `if` and `try` too."""
    path = tmp_path / "m.py"
    path.write_text(text)

    found, found_open = imports.offered(imports.parsed(path))

    assert sorted(names) == sorted(found)
    assert is_open == found_open
