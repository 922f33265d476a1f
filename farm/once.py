"""One measurement, here and now: the verbs of `farm profile` ask for it, `farm-worker` takes it.

No broker and no store: what is asked goes to the program as one document, and what it found lies
in a folder that the caller gave.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farm import embedded, models, npz, schema
from farm.errors import Bad, NoResult, Refused
from farm.schema import Asked, Failure, LayerTable, Profile, SystemCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a measurement by hand came to. folder: where arrays, log and tables lie."""

    profile: Profile
    card: SystemCard
    folder: Path
    layers: LayerTable | None = None

    def samples(self) -> "dict[str, NDArray[np.int64]]":
        """Return the raw arrays by name, in ns: `latency_ns_0` of the first repeat and so on.

        Raises Bad if their file is damaged.
        """
        path = self.folder / "samples.npz"
        if not path.exists() or not path.stat().st_size:
            return {}
        with path.open("rb") as file:
            return npz.read(file, called=repr(path.name), raises=Bad)


def measure(
    asked: Asked,
    *,
    say: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] | None = None,
) -> Measured:
    """Return what farm-worker found on a device of this machine.

    The folder of what is asked lies in one that was made for it: whoever measures removes that when
    we are killed. say: hears how it goes, a line at a time. A model that fails is a profile with a
    failure, see `whole`. Raises the error that the program ends with, NoResult where it is not
    installed, and Refused where a name in what is asked is no UTF-8.
    """
    try:
        document = schema.encode(asked)
    except UnicodeEncodeError as error:  # a folder for temporary files may be named anyhow
        raise Refused(f"{error.object!r} is not UTF-8", why="a document must name it") from error
    data = embedded.hand(document, say=say, environ=environ, program=program)
    folder = Path(asked.folder)
    table = folder / "layer_table.json"
    return Measured(
        profile=schema.decode(data, Profile),
        card=schema.decode((folder / "card.json").read_bytes(), SystemCard),
        folder=folder,
        layers=schema.decode(table.read_bytes(), LayerTable) if table.exists() else None,
    )


def whole(measured: Measured) -> Measured:
    """Return it unless the model failed; raise Bad with its words, or NoResult for an answer.

    An answer, such as an operator that is not there in this precision, is no failure of anybody.
    """
    failure = measured.profile.failure
    if not isinstance(failure, Failure):
        return measured
    last = failure.log_tail.strip().splitlines()[-8:]
    why = "\n".join([failure.message, *(f"| {line}" for line in last)])
    kind = NoResult if failure.kind in schema.ANSWERS else Bad
    raise kind(f"{failure.kind} in phase {failure.phase}", why=why, hint=failure.hint)


def stage(resolved: models.Resolved, folder: Path) -> str:
    """Copy the files of a user's model below the folder and return where; "" for installed code.

    The child runs what lies there, so that editing a file meanwhile changes nothing.
    """
    if not resolved.model.bundled:
        return ""
    root = folder / "code"
    for name, path in resolved.files:
        target = root / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        except OSError as error:
            raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    return str(root)
