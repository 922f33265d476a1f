"""Model references: which code one means, what belongs to it, and its digest.

`resnet18` or `zoo:resnet18`    a row of `configs/models.yaml`; its code is installed
`package.module:callable`       beside the sweep or in the current folder, else installed
`folder/model.py:callable`      a file; it and what it imports locally travel to the workers
`folder/model.onnx`             a graph; it and the files with its weights travel

Files are read, no model code runs, so a sweep is planned on machines without torch.
"""

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from farm import archive, graphs, imports, installed, reading, schema
from farm.errors import NoResult, Refused, did_you_mean
from farm.schema import Tensor, Written

Kind = Literal["auto", "factory", "step"]

_OURS: Final = Path(__file__).parent
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_FORMS: Final = "a model is a name of models.yaml, MODULE:CALLABLE, FILE.py:CALLABLE or FILE.onnx"
_LATER: Final = (".pt", ".pt2", ".pth", ".jit", ".torchscript", ".safetensors")


class ModelRow(Written, frozen=True):
    """A row of `models.yaml`: a model of the zoo, and how one measures it unless told otherwise.

    ref: `module:callable`, or a graph in an installed package, `package/path.onnx`.
    weights: files of installed packages (`package/path`) that count in the digest.
    """

    ref: str
    kind: Kind = "factory"
    inputs: dict[str, Tensor] | UnsetType = UNSET
    item: str = "item"
    weights: tuple[str, ...] = ()
    denormals: Literal["as_is", "flush"] = "as_is"
    note: str = ""


class Zoo(Written, frozen=True, tag_field="schema", tag="farm.models/v1"):
    models: dict[str, ModelRow]


class Resolved(Struct, frozen=True, kw_only=True):
    """A model and its files by their names in the bundle; defaults: its row, None if it has none.

    The digest is that of the archive of these files: for bundled code it names the bundle. graph,
    precision: what an ONNX file says and is; its defaults hold the inputs, where it tells them.
    """

    model: schema.Model
    files: archive.Files
    defaults: ModelRow | None = None
    graph: graphs.Graph | None = None
    precision: str = ""

    @property
    def backend(self) -> Literal["torch", "onnx"]:
        """What runs it, unless somebody says otherwise."""
        return "torch" if self.graph is None else "onnx"


def configs(package: Path = _OURS) -> Path:
    """Return the folder of the shipped configuration: inside the wheel, else of the checkout."""
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


@functools.cache
def zoo(path: Path | None = None) -> Mapping[str, ModelRow]:
    """Return the rows of `models.yaml` by name; Refused if the file is not a proper one."""
    path = path or configs() / "models.yaml"
    document = reading.read(path)
    return schema.written(document.data, Zoo, where=document.name).models


def resolve(
    reference: str,
    *,
    root: Path,
    beside: Path | None = None,
    kind: Kind = "auto",
    rows: Mapping[str, ModelRow] | None = None,
) -> Resolved:
    """Return the model that a reference means; kind: as declared, a row of the zoo knows its own.

    Local code is looked for in the folder `beside` (that of the sweep), then in root. Raises
    Refused if the words are wrong: an unknown name, a missing file or callable, no Python; and
    NoResult if a model of the zoo needs a package that is not installed.
    """
    rows = zoo() if rows is None else rows
    _check_words(reference)
    name = reference.removeprefix("zoo:")
    if name in rows:
        return _of_zoo(name, rows[name])
    folders = [_plain(each) for each in (beside, root) if each is not None]
    if graphs.is_graph(reference):
        return _of_graph(reference, folders)
    place, colon, attribute = reference.rpartition(":")
    if not colon or reference.startswith("zoo:"):
        raise _unknown(name, folders, rows)
    if place.startswith("hf:") or place == "hf":
        raise Refused(f"model {reference!r} is not in this version", why=_FORMS)
    if not attribute.isidentifier():
        raise Refused(f"model {reference!r} names no callable", why=_FORMS)
    if place.endswith(".py"):
        return _of_file(place, attribute, folders, kind)
    if not all(part.isidentifier() for part in place.split(".")):
        raise Refused(f"model {reference!r} is neither a module nor a file", why=_FORMS)
    return _of_module(place, attribute, folders, kind, rows)


def _check_words(reference: str) -> None:
    shown = reading.short(reference)
    long = len(reference) > 500 or any(len(part) > 200 for part in reference.split("/"))
    if long or not reference.isprintable() or reference != reference.strip() or not reference:
        raise Refused(f"{shown} is no model", why=_FORMS)
    if "://" in reference:
        raise Refused(f"{shown} is no model", why=f"nothing is ever downloaded; {_FORMS}")
    if reference.lower().endswith(_LATER):
        raise Refused(
            f"model {shown} is not in this version",
            why=f"of model files only ONNX can be measured yet; {_FORMS}",
            hint="write a function that loads it, and name FILE.py:FUNCTION",
        )


def _unknown(name: str, folders: list[Path], rows: Mapping[str, ModelRow]) -> Refused:
    if name.endswith(".py"):
        path = next((each / name for each in folders if os.path.isfile(each / name)), None)
        some = _some(imports.offered(imports.parsed(path))[0]) if path else []
        example = some[0] if some else "FUNCTION"
        return Refused(
            f"model {name!r} names no callable", why=_listed(some), hint=f"{name}:{example}"
        )
    hint = did_you_mean(name, list(rows)) if _NAME.fullmatch(name) else ""
    return Refused(f"unknown model {name!r}", why=f"known: {', '.join(rows)}", hint=hint)


# ── the three sources ────────────────────────────────────────────────────────────────────────────


def _of_zoo(name: str, row: ModelRow) -> Resolved:
    if graphs.is_graph(row.ref):
        return _graph(_weight(name, row.ref)[1], row.ref, name=name, row=row)
    module, _, attribute = row.ref.partition(":")
    entry, folder = installed.find(module)
    if entry is None or folder is None:
        raise _absent(name, module)
    _check_offers(entry, attribute, row.ref)
    files = [
        *_files(installed.sources(entry, folder), folder),
        *(_weight(name, each) for each in row.weights),
    ]
    model = schema.Model(name=name, ref=row.ref, source="zoo", digest=_digest(files), kind=row.kind)
    return Resolved(model=model, files=files, defaults=row)


def _of_file(place: str, attribute: str, folders: list[Path], kind: Kind) -> Resolved:
    path, root = _found(place, folders)
    reference = f"{path.relative_to(root).as_posix()}:{attribute}"
    return _bundled(path, root, reference, source="file", kind=kind)


def _of_graph(place: str, folders: list[Path]) -> Resolved:
    path, root = _found(place, folders)
    name = path.relative_to(root).as_posix()
    return _graph(path, name, name=name)


def _found(place: str, folders: list[Path]) -> tuple[Path, Path]:
    """Return a file and the folder that its name starts from."""
    tried = [_plain(folder / place) for folder in folders]
    path = next((each for each in tried if os.path.isfile(each)), None)
    if path is None:
        ending = f"*{Path(place).suffix}"
        near = [each.name for path in tried for each in path.parent.glob(ending) if each.is_file()]
        looked = " and ".join(dict.fromkeys(str(each.parent) for each in tried))
        hint = did_you_mean(Path(place).name, near)
        raise Refused(f"no file {place!r}", why=f"looked in {looked}", hint=hint)
    return path, next((each for each in folders if path.is_relative_to(each)), path.parent)


def _graph(path: Path, ref: str, *, name: str, row: ModelRow | None = None) -> Resolved:
    graph = graphs.read(path)
    files = graphs.files(path, graph, name=ref)
    digest = _digest(files)
    source: Literal["zoo", "file"] = "zoo" if row else "file"
    model = schema.Model(name=name, ref=ref, source=source, digest=digest, bundled=row is None)
    row = row or ModelRow(ref=ref)
    with contextlib.suppress(Refused):  # who needs inputs and has none is told why
        if row.inputs is UNSET:
            row = msgspec.structs.replace(row, inputs=graphs.spec(graph.inputs, model=name))
    precision = graphs.precision(graph)
    return Resolved(model=model, files=files, defaults=row, graph=graph, precision=precision)


def _of_module(
    module: str, attribute: str, folders: list[Path], kind: Kind, rows: Mapping[str, ModelRow]
) -> Resolved:
    reference = f"{module}:{attribute}"
    for root in folders:
        path = imports.locate(module, [root])[1]
        # Our own packages, seen from a checkout, are the installed ones and not the user's.
        if path is not None and not (
            root == _OURS.parent and module.split(".")[0] in installed.OURS
        ):
            return _bundled(path, root, reference, source="module", kind=kind)
    entry, folder = installed.find(module)
    if entry is None or folder is None:
        looked = " and ".join(dict.fromkeys(str(each) for each in folders))
        raise Refused(
            f"no module {module!r}",
            why=f"neither in {looked} nor installed",
            hint=did_you_mean(reference, list(rows)),
        )
    _check_offers(entry, attribute, reference)
    files = _files(installed.sources(entry, folder), folder)
    digest = _digest(files)
    model = schema.Model(name=reference, ref=reference, source="module", digest=digest, kind=kind)
    return Resolved(model=model, files=files)


def _bundled(
    path: Path, root: Path, reference: str, *, source: Literal["module", "file"], kind: Kind
) -> Resolved:
    _check_offers(path, reference.rpartition(":")[2], reference)
    files = _files(imports.closure(path, root=root), root)
    model = schema.Model(
        name=reference,
        ref=reference,
        source=source,
        digest=_digest(files),
        kind=kind,
        bundled=True,
    )
    return Resolved(model=model, files=files)


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def _files(paths: Iterable[Path], root: Path) -> archive.Files:
    return [(each.relative_to(root).as_posix(), each) for each in sorted(paths)]


def _digest(files: archive.Files) -> str:
    try:
        return archive.digest(files)
    except OSError as error:
        raise Refused(f"cannot read {str(error.filename)!r}", why=error.strerror or "") from error


def _weight(name: str, resource: str) -> tuple[str, Path]:
    package = resource.split("/")[0]
    folder = installed.find(package)[1]
    if folder is None or not os.path.isfile(folder / resource):
        raise _absent(name, package if folder is None else resource)
    return resource, folder / resource


def _absent(name: str, missing: str) -> NoResult:
    package = re.split(r"[./]", missing)[0].replace("_", "-")
    what = f"model {name!r} needs {missing!r}, which is not installed"
    return NoResult(what, hint=f"pip install {package}")


def _check_offers(path: Path, attribute: str, reference: str) -> None:
    if path.suffix != ".py":
        return
    names, is_open = imports.offered(imports.parsed(path))
    if attribute not in names and not is_open:
        what = f"model {reference!r}: no {attribute!r} in {path.name}"
        raise Refused(what, why=_listed(_some(names)), hint=did_you_mean(attribute, names))


def _some(names: list[str]) -> list[str]:
    return [each for each in names if not each.startswith("_") and each != "*"][:8]


def _listed(names: list[str]) -> str:
    return f"it has {', '.join(names)}" if names else "it defines nothing"


def _plain(path: Path) -> Path:
    """Return the path made absolute and free of `..`, by its words; links stay as they are."""
    return Path(os.path.normpath(path.absolute()))
