"""The laws of model references: which code is meant, what belongs to it, what it is called."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from farm import archive, graphs, models
from farm.errors import FarmError, NoResult, Refused
from farm.models import ModelRow, Resolved
from farm.schema import Tensor
from tests.farm.graphs import drawn

ROWS = {"net": ModelRow(ref="workers.models.placeholder:demo_depth", kind="step", item="frame")}


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _names(resolved: Resolved) -> list[str]:
    return [name for name, _ in resolved.files]


def _run(code: str, *, cwd: Path) -> str:
    """Return what a fresh interpreter prints whose path starts with that folder."""
    env = {"PYTHONPATH": str(Path(models.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _refused(reference: str, root: Path) -> FarmError:
    with pytest.raises(Refused) as caught:
        models.resolve(reference, root=root, rows=ROWS)
    return caught.value


# ── the zoo ──────────────────────────────────────────────────────────────────────────────────────


def test_every_row_of_the_zoo_resolves(tmp_path: Path) -> None:
    """Each shipped model names installed code with a callable in it, by either form of its name."""
    for name, row in models.zoo().items():
        try:
            resolved = models.resolve(name, root=tmp_path)
        except NoResult:
            assert row.weights or graphs.is_graph(row.ref)  # its package is not installed here
            continue

        assert resolved == models.resolve(f"zoo:{name}", root=tmp_path)
        assert (name, row.ref) == (resolved.model.name, resolved.model.ref)
        assert ("zoo", False) == (resolved.model.source, resolved.model.bundled)
        assert resolved.defaults is not None
        assert (row.item, row.note) == (resolved.defaults.item, resolved.defaults.note)
        assert resolved.defaults.inputs
        if graphs.is_graph(row.ref):
            assert [row.ref] == _names(resolved)
        else:
            assert row == resolved.defaults
            assert "workers/models/__init__.py" in _names(resolved)


def test_the_zoo_is_ours_whatever_lies_in_the_folder(tmp_path: Path) -> None:
    """A user's own `workers` package, first on the path of the process, is not the zoo."""
    _write(tmp_path, {"workers/__init__.py": "", "workers/models/placeholder.py": "demo_depth = 1"})
    code = (
        "from pathlib import Path; from farm import models\n"
        f"row = models.ModelRow(ref={ROWS['net'].ref!r})\n"
        "print(models.resolve('net', root=Path.cwd(), rows={'net': row}).model.digest)\n"
    )

    printed = _run(code, cwd=tmp_path)

    assert models.resolve("net", root=tmp_path, rows=ROWS).model.digest == printed


def test_weights_of_a_package_count_in_the_digest(tmp_path: Path) -> None:
    """A row's weights are files of installed packages, and part of what the model is."""
    row = ModelRow(ref="workers.models.placeholder:demo_depth", weights=("numpy/py.typed",))
    plain = models.resolve("net", root=tmp_path, rows=ROWS)

    weighted = models.resolve("net", root=tmp_path, rows={"net": row})

    assert [*_names(plain), "numpy/py.typed"] == _names(weighted)
    assert plain.model.digest != weighted.model.digest


@pytest.mark.parametrize(
    ("row", "missing"),
    [
        (ModelRow(ref="no_such_net.code:build"), "no_such_net.code"),
        (ModelRow(ref=ROWS["net"].ref, weights=("no_such_net/w.jit",)), "no_such_net"),
        (ModelRow(ref=ROWS["net"].ref, weights=("numpy/w.jit",)), "numpy/w.jit"),
    ],
)
def test_a_model_whose_package_is_absent_gives_no_result(
    tmp_path: Path, row: ModelRow, missing: str
) -> None:
    """The words are right and nothing comes of them: exit 3, with what to install."""
    with pytest.raises(NoResult) as caught:
        models.resolve("net", root=tmp_path, rows={"net": row})

    assert f"model 'net' needs '{missing}', which is not installed" == caught.value.what
    assert "pip install" in caught.value.hint


def test_configs_are_found_in_the_wheel_before_the_checkout(tmp_path: Path) -> None:
    """`farm/configs` counts where it exists, else the folder beside the package."""
    package = tmp_path / "farm"
    package.mkdir()

    assert tmp_path / "configs" == models.configs(package)
    (package / "configs").mkdir()
    assert package / "configs" == models.configs(package)


def test_a_bad_table_of_models_is_refused(tmp_path: Path) -> None:
    """An unknown key in `models.yaml` is named with the file."""
    path = tmp_path / "models.yaml"
    path.write_text("schema: farm.models/v1\nmodels: {a: {ref: 'm:f', weightz: []}}\n")

    with pytest.raises(Refused, match=r"models.yaml: .*weightz"):
        models.zoo(path)


# ── files and modules ────────────────────────────────────────────────────────────────────────────


def test_a_file_travels_with_what_it_imports(tmp_path: Path) -> None:
    """A file's bundle holds its local imports, packages called like ours included."""
    _write(
        tmp_path,
        {
            "model.py": "import workers, configs.sizes\ndef build():\n    from farm import net",
            "workers.py": "",
            "configs/__init__.py": "",
            "configs/sizes.py": "",
            "farm/__init__.py": "",
            "farm/net.py": "",
            "unused.py": "",
        },
    )

    resolved = models.resolve("model.py:build", root=tmp_path, kind="factory", rows=ROWS)

    local = ["configs/__init__.py", "configs/sizes.py", "farm/__init__.py", "farm/net.py"]
    assert [*local, "model.py", "workers.py"] == _names(resolved)
    assert "model.py:build" == resolved.model.name == resolved.model.ref
    assert ("file", True) == (resolved.model.source, resolved.model.bundled)
    assert "factory" == resolved.model.kind
    assert archive.pack(resolved.files)[0] == resolved.model.digest


def test_the_digest_follows_every_local_file(tmp_path: Path) -> None:
    """A changed import changes the digest, a file that is not imported does not."""
    _write(tmp_path, {"m.py": "import a\ndef f(): ...", "a.py": "x = 1", "b.py": ""})
    before = models.resolve("m.py:f", root=tmp_path, rows=ROWS).model.digest

    _write(tmp_path, {"b.py": "changed = 1"})
    assert before == models.resolve("m.py:f", root=tmp_path, rows=ROWS).model.digest
    _write(tmp_path, {"a.py": "x = 2"})
    assert before != models.resolve("m.py:f", root=tmp_path, rows=ROWS).model.digest


def test_a_name_holds_no_absolute_path(tmp_path: Path) -> None:
    """However a file is addressed, its name is its path below the root, or its own name."""
    root = _write(tmp_path / "root", {"sub/m.py": "def f(): ..."})
    _write(tmp_path, {"out/m.py": "def f(): ..."})

    def name(reference: str) -> str:
        return models.resolve(reference, root=root, rows=ROWS).model.name

    assert "sub/m.py:f" == name("sub/m.py:f")
    assert "sub/m.py:f" == name("./sub/../sub/m.py:f")
    assert "sub/m.py:f" == name(f"{root}/sub/m.py:f")
    assert "m.py:f" == name("../out/m.py:f")
    assert "m.py:f" == name(f"{tmp_path}/out/m.py:f")


def test_the_folder_of_the_sweep_comes_before_the_current_one(tmp_path: Path) -> None:
    """A reference is looked for beside the sweep first, and the root is the folder that has it."""
    beside = _write(tmp_path / "sweeps", {"a.py": "def f(): ..."})
    _write(tmp_path, {"a.py": "def f(): ...", "b.py": "def f(): ..."})

    def found(reference: str) -> Path:
        return models.resolve(reference, root=tmp_path, beside=beside, rows=ROWS).files[0][1]

    assert beside / "a.py" == found("a.py:f") == found("a:f")
    assert tmp_path / "b.py" == found("b.py:f") == found("b:f")


def test_a_local_module_travels(tmp_path: Path) -> None:
    """`package.module:callable` beside the sweep is bundled, with its packages."""
    _write(tmp_path, {"pack/__init__.py": "", "pack/net.py": "from . import part\nbuild = part.f"})
    _write(tmp_path, {"pack/part.py": "def f(): ..."})

    resolved = models.resolve("pack.net:build", root=tmp_path, rows=ROWS)

    assert ["pack/__init__.py", "pack/net.py", "pack/part.py"] == _names(resolved)
    assert "pack.net:build" == resolved.model.name
    assert ("module", True) == (resolved.model.source, resolved.model.bundled)


def test_an_installed_module_stays_where_it_is(tmp_path: Path) -> None:
    """Installed code is not bundled, all sources of its package count; nothing is imported."""
    code = (
        "import sys; from pathlib import Path; from farm import models\n"
        "found = models.resolve('numpy.linalg:norm', root=Path(), rows={})\n"
        "print(found.model.bundled, 'numpy' in sys.modules)\n"
    )

    resolved = models.resolve("json:dumps", root=tmp_path, rows=ROWS)
    printed = _run(code, cwd=tmp_path)

    assert ["json/__init__.py", "json/decoder.py", "json/encoder.py"] == _names(resolved)[:3]
    assert "json/tool.py" in _names(resolved)
    assert not resolved.model.bundled
    assert "False False" == printed


def test_our_own_packages_in_a_checkout_are_the_installed_ones() -> None:
    """`workers.models…` from the folder of the checkout is not bundled as user code."""
    root = Path(models.__file__).parents[1]

    resolved = models.resolve("workers.models.placeholder:demo_depth", root=root, rows=ROWS)

    assert ("module", False) == (resolved.model.source, resolved.model.bundled)


def test_no_model_code_runs(tmp_path: Path) -> None:
    """Resolving reads files: a module that would raise at import resolves like any other."""
    _write(tmp_path, {"m.py": "raise SystemExit('run!')\ndef f(): ..."})

    assert "m:f" == models.resolve("m:f", root=tmp_path, rows=ROWS).model.name
    assert "m.py:f" == models.resolve("m.py:f", root=tmp_path, rows=ROWS).model.name


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────


def test_a_graph_is_a_model_of_its_own(tmp_path: Path) -> None:
    """An ONNX file travels, ONNX Runtime runs it, and it says itself what it takes and is."""
    drawn.mlp(tmp_path / "sub" / "net.onnx")

    resolved = models.resolve("sub/net.onnx", root=tmp_path, rows=ROWS)

    assert "sub/net.onnx" == resolved.model.name == resolved.model.ref
    assert ("file", True, "onnx") == (
        resolved.model.source,
        resolved.model.bundled,
        resolved.backend,
    )
    assert ["sub/net.onnx"] == _names(resolved)
    assert archive.pack(resolved.files)[0] == resolved.model.digest
    assert resolved.defaults is not None
    assert {"x": Tensor(shape=("batch", 64))} == resolved.defaults.inputs
    assert "fp32" == resolved.precision


def test_the_weights_beside_a_graph_travel_with_it(tmp_path: Path) -> None:
    """And count in its digest, wherever the graph lies."""
    path = drawn.mlp(tmp_path / "sub" / "net.onnx", external="net.weights")
    before = models.resolve("sub/net.onnx", root=tmp_path, rows=ROWS)

    weights = path.with_name("net.weights")
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    after = models.resolve("sub/net.onnx", root=tmp_path, rows=ROWS)

    assert ["sub/net.onnx", "sub/net.weights"] == _names(before)
    assert before.model.digest != after.model.digest


def test_a_graph_beside_the_sweep_comes_first(tmp_path: Path) -> None:
    """Its name is its path below the folder that has it; an absolute path is no part of it."""
    beside = tmp_path / "sweeps"
    drawn.mlp(beside / "net.onnx")
    drawn.mlp(tmp_path / "net.onnx")
    drawn.mlp(tmp_path / "other" / "far.onnx")

    found = models.resolve("net.onnx", root=tmp_path, beside=beside, rows=ROWS)
    far = models.resolve(f"{tmp_path}/other/far.onnx", root=beside, rows=ROWS)

    assert beside / "net.onnx" == found.files[0][1]
    assert ("net.onnx", "far.onnx") == (found.model.name, far.model.name)


def test_what_a_graph_leaves_open_is_left_open(tmp_path: Path) -> None:
    """It still is a model: whoever measures it is asked for the inputs then."""
    drawn.save(
        tmp_path / "net.onnx",
        [drawn.node("Neg", "x", "y")],
        inputs=[("x", drawn.INT64, ["batch", None])],
        outputs=[("y", drawn.INT64, None)],
    )

    resolved = models.resolve("net.onnx", root=tmp_path, rows=ROWS)

    assert resolved.defaults is not None
    assert UNSET is resolved.defaults.inputs
    assert "unspecified" == resolved.precision


def test_a_graph_of_an_installed_package_is_a_row(tmp_path: Path) -> None:
    """It stays where it is, and a row without inputs has those of the graph."""
    row = ModelRow(ref="onnx/backend/test/data/light/light_squeezenet.onnx", item="image")

    resolved = models.resolve("light", root=tmp_path, rows={"light": row})

    assert ("zoo", False, row.ref) == (
        resolved.model.source,
        resolved.model.bundled,
        resolved.model.ref,
    )
    assert resolved.defaults is not None
    assert {"data_0": Tensor(shape=(1, 3, 224, 224))} == resolved.defaults.inputs
    assert "image" == resolved.defaults.item


@pytest.mark.parametrize(
    ("ref", "missing"),
    [("no_such_net/a.onnx", "no_such_net"), ("onnx/no_such.onnx", "onnx/no_such.onnx")],
)
def test_a_graph_whose_package_is_absent_gives_no_result(
    tmp_path: Path, ref: str, missing: str
) -> None:
    with pytest.raises(NoResult) as caught:
        models.resolve("net", root=tmp_path, rows={"net": ModelRow(ref=ref)})

    assert f"model 'net' needs '{missing}', which is not installed" == caught.value.what
    assert f"pip install {missing.partition('/')[0].replace('_', '-')}" == caught.value.hint


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reference", "what", "why", "hint"),
    [
        ("nett", "unknown model 'nett'", "known: net", "did you mean `net`?"),
        ("zoo:nett", "unknown model 'nett'", "known: net", "did you mean `net`?"),
        ("zoo:m.py:f", "unknown model 'm.py:f'", "known: net", ""),
        ("", "'' is no model", "a model is a name", ""),
        ("  ", "'  ' is no model", "a model is a name", ""),
        ("x" * 10_000, "'xxx", "a model is a name", ""),
        ("m.py:f\0", r"'m.py:f\x00' is no model", "a model is a name", ""),
        ("https://hub/m:f", "'https://hub/m:f' is no model", "nothing is ever downloaded", ""),
        ("hf:bert", "model 'hf:bert' is not in this version", "a model is a name", ""),
        ("net.pt2", "model 'net.pt2' is not in this version", "of model files only", "write a f"),
        ("net.onnx", "no file 'net.onnx'", "looked in ", "did you mean `nets.onnx`?"),
        ("nets.onnx", "nets.onnx is no ONNX model", "it holds no graph", ""),
        ("a:b:c", "model 'a:b:c' is neither a module nor a file", "a model is a name", ""),
        ("a-b:c", "model 'a-b:c' is neither a module nor a file", "a model is a name", ""),
        ("m.py:", "model 'm.py:' names no callable", "a model is a name", ""),
        ("m.py:a.b", "model 'm.py:a.b' names no callable", "a model is a name", ""),
        (":f", "model ':f' is neither a module nor a file", "a model is a name", ""),
        ("m.py", "model 'm.py' names no callable", "it has build, Net, np", "m.py:build"),
        ("m.py:buildx", "model 'm.py:buildx': no 'buildx' in m.py", "it has build", "did you"),
        ("m:nothing", "model 'm:nothing': no 'nothing' in m.py", "it has build, Net, np", ""),
        ("empty.py:f", "model 'empty.py:f': no 'f' in empty.py", "it defines nothing", ""),
        ("n.py:build", "no file 'n.py'", "looked in ", "did you mean `m.py`?"),
        ("/no/such/m.py:build", "no file '/no/such/m.py'", "looked in /no/such", ""),
        (f"{'d' * 201}/m.py:f", "'ddd", "a model is a name", ""),
        ("folder.py:f", "no file 'folder.py'", "looked in ", ""),
        ("no_such_module:f", "no module 'no_such_module'", "neither in ", ""),
        ("m.inner:f", "no module 'm.inner'", "neither in ", ""),
        ("json.nothing:f", "no module 'json.nothing'", "neither in ", ""),
        ("sys:exit", "no module 'sys'", "neither in ", ""),
        ("json:dump_it", "model 'json:dump_it': no 'dump_it' in __init__.py", "it has dump", "did"),
    ],
)
def test_a_wrong_reference_is_refused(
    tmp_path: Path, reference: str, what: str, why: str, hint: str
) -> None:
    """Each mistake says what is wrong and names what is there."""
    _write(tmp_path, {"m.py": "import numpy as np\ndef build(): ...\nclass Net: ...\n_x = 1"})
    _write(tmp_path, {"empty.py": "", "folder.py/x": "", "nets.onnx": "\x08\x08"})

    error = _refused(reference, tmp_path)

    assert error.what.startswith(what)
    assert error.why.startswith(why)
    assert error.hint.startswith(hint)
    assert bool(hint) == bool(error.hint)
    assert len(str(error)) < 400


def test_a_syntax_error_is_named_with_its_line(tmp_path: Path) -> None:
    """A model that Python cannot read is refused when it is submitted, not on a worker."""
    _write(tmp_path, {"m.py": "import helper\ndef f(): ...", "helper.py": "x = 1\ndef g(:\n"})

    error = _refused("m.py:f", tmp_path)

    assert f"{tmp_path / 'helper.py'}: not Python on line 2" == error.what


def test_a_module_that_answers_any_name_is_believed(tmp_path: Path) -> None:
    """Where names come from `import *` or `__getattr__`, a missing one is not refused."""
    _write(tmp_path, {"m.py": "from numpy import *"})

    assert "m.py:anything" == models.resolve("m.py:anything", root=tmp_path, rows=ROWS).model.name


@given(st.text(max_size=40))
def test_any_text_resolves_or_is_refused(text: str) -> None:
    """No reference ends in anything but a model or an error that was meant."""
    with contextlib.suppress(Refused, NoResult):
        assert models.resolve(text, root=Path("/nonexistent"), rows=ROWS).model.digest
