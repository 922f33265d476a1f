"""DATA of a captured training: what it stands for, checked before anything starts.

`synthetic`, `synthetic-64`         scenes made for it, endless or so many
`data.yaml`                         images of a person, with the boxes beside them
`data.py:batches`, `module:batches` a function of a person that yields batches
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from farm import imports, installed, reading
from farm.captures import images
from farm.errors import Refused, did_you_mean
from farm.reading import Place, short
from farm.schema import Data

_FORMS: Final = "DATA is synthetic, synthetic-N, a YAML file, MODULE:FUNCTION or FILE.py:FUNCTION"
_SYNTHETIC: Final = "synthetic"
_COUNTED: Final = re.compile(r"synthetic-([1-9][0-9]{0,8})")
_ENDINGS: Final = (".yaml", ".yml")
_LIMIT_BYTES: Final = 64 << 20  # of a list of images
_MOST_CLASSES: Final = 1_000_000


def parsed(word: str, root: Path, *, notes: list[str] | None = None) -> Data:
    """Return what DATA stands for; paths that are not absolute start from root.

    notes: learns of images that are left out.

    No image is opened and no code of a person runs. Raises Refused for a word that stands for
    nothing: an unknown name, a missing file, folder or function, a data set without an image.
    """
    shown = short(word)
    if not word or not word.isprintable() or len(word) > 1000:
        raise Refused(f"{shown} is no data", why=_FORMS)
    if word == _SYNTHETIC:
        return Data(kind="synthetic", word=word)
    if counted := _COUNTED.fullmatch(word):
        return Data(kind="synthetic", word=word, count=int(counted[1]))
    if word.lower().endswith(_ENDINGS):
        return _of_yaml(word, root, notes)
    if "://" in word:
        raise Refused(f"{shown} is no data", why=f"nothing is ever downloaded; {_FORMS}")
    place, colon, function = word.rpartition(":")
    if colon:
        return _of_function(word, place, function, root=root)
    if os.path.isdir(root / word):
        hint = f"write `train: {word}` into a YAML file and name that"
        raise Refused(f"{shown} is a folder", why=_FORMS, hint=hint)
    raise Refused(f"unknown data {shown}", why=_FORMS, hint=_nearest(word, root))


def _nearest(word: str, root: Path) -> str:
    number = re.search(r"[1-9][0-9]{0,8}$", word)
    names = [_SYNTHETIC, f"{_SYNTHETIC}-{number[0] if number else 64}"]
    with suppress(OSError):
        names += sorted(each for each in os.listdir(root) if each.endswith(_ENDINGS))
    return did_you_mean(word[:100], names)


# ── a function ───────────────────────────────────────────────────────────────────────────────────


def _of_function(word: str, place: str, function: str, *, root: Path) -> Data:
    if not function.isidentifier():
        raise Refused(f"data {short(word)} names no function", why=_FORMS)
    if place.endswith(".py"):
        path, folder = _source(place, root)
        name = path.relative_to(folder).as_posix()
    elif place and all(part.isidentifier() for part in place.split(".")):
        found, folder = _module(place, root)
        if found is None:
            looked = f"neither in {_plain(root)} nor installed"
            raise Refused(f"no module {short(place)}", why=looked)
        path, name = found, place
    else:
        raise Refused(f"data {short(word)} is neither a module nor a file", why=_FORMS)
    _check_offers(path, function, word)
    at = "" if folder == _INSTALLED else str(folder)
    return Data(kind="callable", word=word, reference=f"{name}:{function}", root=at)


_INSTALLED: Final = Path()


def _source(place: str, root: Path) -> tuple[Path, Path]:
    """Return the file, and the folder that its name starts from: root, where it lies below."""
    folder, path = _plain(root), _plain(root / place)
    if not os.path.isfile(path):
        near = sorted(each.name for each in path.parent.glob("*.py"))
        hint = did_you_mean(path.name[:100], near)
        raise Refused(f"no file {short(place)}", why=f"looked in {path.parent}", hint=hint)
    return path, folder if path.is_relative_to(folder) else path.parent


def _module(name: str, root: Path) -> tuple[Path | None, Path]:
    folder = _plain(root)
    path = imports.locate(name, [folder])[1]
    if path is not None and not (
        folder == Path(__file__).parents[2] and name.split(".")[0] in installed.OURS
    ):
        return path, folder
    return installed.find(name)[0], _INSTALLED


def _check_offers(path: Path, function: str, word: str) -> None:
    if path.suffix != ".py":
        return
    names, is_open = imports.offered(imports.parsed(path))
    if function not in names and not is_open:
        listed = ", ".join([each for each in names if not each.startswith("_")][:8])
        why = f"it has {listed}" if listed else "it defines nothing"
        hint = did_you_mean(function, names)
        raise Refused(f"data {short(word)}: no {function!r} in {path.name}", why=why, hint=hint)


# ── a data set ───────────────────────────────────────────────────────────────────────────────────


def _of_yaml(word: str, root: Path, notes: list[str] | None) -> Data:
    if os.path.exists(root / word) and not os.path.isfile(root / word):
        raise Refused(f"{short(word)} is no file", why=_FORMS)
    document = reading.read(root / word, name=word)
    place = Place(document)
    beside = _plain(root / word).parent
    base = beside
    if "path" in document.data:
        base = _plain(beside / reading.text(document.data["path"], place.key("path"), limit=1000))
        if not os.path.isdir(base):
            raise place.key("path").refused(f"no folder {short(str(base))}")
    if "train" not in document.data:
        why = f"it has {', '.join(document.data) or 'nothing'}"
        raise place.refused("no `train`, the folder of the images", why=why[:300])
    files = [
        str(path)
        for value, at in reading.items(document.data["train"], place.key("train"))
        for path in _train(base, value, at, notes)
    ]
    return Data(
        kind="yaml",
        word=word,
        count=len(files),
        files=tuple(files),
        classes=_classes(document.data, place),
    )


def _train(base: Path, value: object, place: Place, notes: list[str] | None) -> list[Path]:
    """Return the images of an entry: a folder, a list of images in a `.txt`, or one image."""
    path = _plain(base / reading.text(value, place, thing="a folder", limit=1000))
    if path.suffix.lower() == ".txt" and not os.path.isdir(path):
        return list(_listed(path, base, place))
    try:
        return images.found(path, notes=notes)
    except Refused as error:
        raise place.refused(error.what, why=error.why, hint=error.hint) from error


def _listed(path: Path, base: Path, place: Place) -> Iterator[Path]:
    if os.path.lexists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise place.refused(f"{short(str(path))} is no file")
    try:
        with path.open("rb") as file:
            data = file.read(_LIMIT_BYTES + 1)
        lines = data.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or "") if isinstance(error, OSError) else "it is no UTF-8"
        raise place.refused(f"cannot read {short(str(path))}", why=why) from error
    if len(data) > _LIMIT_BYTES:
        raise place.refused(f"{short(str(path))} is larger than {_LIMIT_BYTES >> 20} MiB")
    named = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not named:
        raise place.refused(f"no image in {short(str(path))}")
    for number, line in named:
        try:
            yield from images.found(_plain(base / line))
        except Refused as error:
            what = f"{path.name}:{number}: {error.what}"
            raise place.refused(what, why=error.why, hint=error.hint) from error


def _classes(data: dict[str, object], place: Place) -> int | None:
    """Return how many classes there are, by `nc` or `names`; Refused where they say two things."""
    said = None
    if "nc" in data:
        said = reading.whole(data["nc"], place.key("nc"), low=1, high=_MOST_CLASSES)
    if "names" not in data:
        return said
    names, at = data["names"], place.key("names")
    if not isinstance(names, dict | list) or not names:
        raise at.refused(f"expected the names of the classes, got {reading.kind_of(names)}")
    if isinstance(names, dict):
        wrong = next((each for each in names if not _counts(each)), None)
        if wrong is not None:
            raise at.refused(f"{short(wrong)} is no number of a class", why="they count from 0")
        named = max(int(each) for each in names) + 1
    else:
        named = len(names)
    if said is not None and said != named:
        raise at.refused(f"names of {named} classes, and nc is {said}")
    return named


def _counts(key: object) -> bool:
    whole = isinstance(key, int) and not isinstance(key, bool)
    return whole and 0 <= int(str(key)) < _MOST_CLASSES


def _plain(path: Path) -> Path:
    """Return the path made absolute and free of `..`, by its words; links stay as they are."""
    return Path(os.path.normpath(path.absolute()))
