"""A folder with good and bad sweeps, a store with two runs, and the command run inside it."""

import gzip
import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest
from msgspec import structs

from farm import schema
from farm.cli import cli, main
from farm.schema import Artifact
from farm.store import LocalStore, blob_key, job_key
from tests.cli import workbench
from tests.farm import make

SWEEP: Final = """
name: small
matrix: {model: mlp, backend: fake, batch: [1, 8], device: cpu}
measure: {repeats: 1}
"""
FAILED: Final = make.job("cnn")
_X: Final = "inputs: {x: {shape: [batch, 4], dtype: float32}}\n"
_BUILD: Final = "import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 4)\n"
_BOMB: Final = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]\n"
    for last, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def _matrix(rest: str) -> str:
    return f"name: bad\nmatrix: {{{rest}}}\n"


FILES: Final[dict[str, str | bytes]] = {
    "sweep.yaml": SWEEP,
    "model.py": _BUILD,
    "raises.py": "raise RuntimeError('at import')\n",
    "syntax.py": "def build(:\n",
    # what YAML makes of it
    "broken.yaml": "matrix: [",
    "list.yaml": "- 1",
    "bomb.yaml": _BOMB,
    "deep.yaml": "[" * 20_000,
    "alias.yaml": "matrix: &m {model: *m}\n",
    "latin.yaml": "name: caf\xe9\n".encode("latin-1"),
    "utf16.yaml": SWEEP.encode("utf-16"),
    "nul.yaml": b"name: a\x00b\n",
    "huge.yaml": "# " + "x" * 300_000,
    "twice.yaml": SWEEP + "name: again\n",
    "python-tag.yaml": "name: !!python/object/apply:os.system ['true']\n",
    "date.yaml": SWEEP.replace("small", "2026-11-30"),
    "yes.yaml": SWEEP.replace("small", "yes"),
    # what a sweep makes of it
    "unknown.yaml": SWEEP + "matrx: 1\n",
    "empty.yaml": "matrix: {model: [], batch: 1}\n",
    "none.yaml": SWEEP + "exclude: [{model: mlp}]\n",
    "million.yaml": _matrix(
        f"model: mlp, batch: [{','.join(map(str, range(1, 1001)))}], "
        f"seq: [{','.join(map(str, range(1, 1001)))}]"
    )
    + "inputs: {x: {shape: [batch, seq], dtype: float32}}\n",
    "ten-thousand-batches.yaml": _matrix(
        f"model: [mlp, cnn, lstm], precision: [fp32, bf16], "
        f"batch: [{','.join(map(str, range(1, 20_001)))}]"
    ),
    "axis.yaml": _matrix("model: mlp, batches: [1, 2]"),
    "precision.yaml": _matrix("model: mlp, precision: [fp32, fp61]"),
    "include.yaml": SWEEP + "include: [{modle: mlp}]\n",
    "exclude.yaml": SWEEP + "exclude: [{precision: fp61}]\n",
    "inputs.yaml": _matrix("model: 'model.py:build'") + "inputs: [1, 2]\n",
    "dtype.yaml": _matrix("model: 'model.py:build'") + _X.replace("float32", "flaot32"),
    "npz.yaml": _matrix("model: 'model.py:build'") + "inputs: {npz: arrays.npz}\n",
    "badnpz.yaml": _matrix("model: 'model.py:build'") + "inputs: {npz: file.txt}\n",
    "notanpz.yaml": _matrix("model: 'model.py:build'") + "inputs: {npz: broken.npz}\n",
    "broken.npz": b"PK\x03\x04 not really",
    # names that want to be more than names
    "evil-names.yaml": _matrix('model: "<script>alert(1)</script>"'),
    "evil-escape.yaml": _matrix('model: "mlp\\e[31mred"'),
    "evil-path.yaml": _matrix('model: "../../../../etc/shadow:x"'),
    "evil-long.yaml": _matrix(f"model: {'m' * 10_000}"),
    "evil-bidi.yaml": _matrix('model: "mlp\\u202egnp"'),
    # settings
    "bad/farm.toml": "stoer = 'x'\n",
    "bad/type.toml": "store = 7\n",
    "bad/list.toml": "effort = ['quick']\n",
    "bad/syntax.toml": "store = \n",
    "bad/latin.toml": "store = 'caf\xe9'\n".encode("latin-1"),
    "file.txt": "",
    "home/x": "",
}


class World(NamedTuple):
    """The folder, and the ids of its profiles."""

    folder: Path
    good_id: str
    failed_id: str


class Said(NamedTuple):
    code: int
    out: str
    err: str


def built(folder: Path) -> World:
    """Write the files and the store, and return where they are."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    workbench.furnish(folder)
    (folder / "card.json").write_bytes(schema.encode(make.card()))
    store = LocalStore(folder / ".farm/store", fsync=False)
    store.probe()
    good, failed = make.profile(), make.profile(FAILED, status="failed")
    ids = make.put(store, good, failed)
    make.put(
        store,
        make.manifest([good.job, FAILED, make.job("lstm")], run_id="r-aaa111"),
        make.manifest([good.job], run_id="r-aaa222", submitted_at="2026-11-30T09:00:00Z"),
    )
    return World(folder, ids[0], ids[1])


def furnish(world: World) -> None:
    """Let the store hold the jobs too, and what the failed one printed in a later attempt."""
    store = LocalStore(world.folder / ".farm/store", fsync=False)
    for job in (make.job(), FAILED, make.job("lstm")):
        store.put_new(job_key(job.job_id), schema.encode(job))
    data = gzip.compress(b"loading\nfailing\n", mtime=0)
    digest = hashlib.sha256(data).hexdigest()
    key = blob_key("log", digest, "txt.gz")
    store.put_new(key, data)
    log = Artifact(key=key, sha256=digest, bytes=len(data), media_type="application/gzip")
    told = structs.replace(make.profile(FAILED, status="failed", fence=9), artifacts={"log": log})
    make.put(store, told)


def enter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder and the environment are facts of the process; no argument carries them."""
    monkeypatch.chdir(world.folder)
    monkeypatch.setenv("HOME", str(world.folder / "home"))
    for name in [each for each in os.environ if each.startswith("FARM_")]:
        if name != "FARM_TEST_RUN":
            monkeypatch.delenv(name)
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # else it is asked over the network


def parted(line: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables that a command line begins with, and its words."""
    words = shlex.split(line)
    given: dict[str, str] = {}
    while words and "=" in words[0] and words[0].startswith("FARM_"):
        name, _, value = words.pop(0).partition("=")
        given[name] = value
    return given, words


def run(
    words: list[str],
    *,
    given: Mapping[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Said:
    """Run a command in this process and return what it said."""
    capsys.readouterr()
    with monkeypatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main(words)
    out, err = capsys.readouterr()
    return Said(int(ended.value.code or 0), out, err)


def with_json(words: Sequence[str]) -> list[str]:
    """Return the words with --json behind the verb, or at the end where there is none."""
    verb: click.Command | None = cli
    for at, word in enumerate(words):
        if verb is not None and not isinstance(verb, click.Group):
            return [*words[:at], *([] if "--json" in words else ["--json"]), *words[at:]]
        verb = verb.commands.get(word) if isinstance(verb, click.Group) else None
    return [*words, "--json"]
