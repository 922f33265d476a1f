"""Which models a roster expects, and by what it knows the profile of each."""

from pathlib import Path
from typing import Final, Literal

from farm import reading, schema
from farm.reading import Place
from farm.schema import Written

TAG: Final = "farm.roster/v1"


class Expected(Written, frozen=True, kw_only=True):
    """One model of a roster.

    identity: the reference or name that its profile must have, as it is called if that is "".
    file: of its profile, `MODEL.json` if "". precision, batch: of the profile that is meant, where
    a sweep measured several. cost: `none` for a function, whose parameters and FLOPs nobody sees.
    optional: its absence is a note and no error.
    """

    task: str
    model: str
    identity: str = ""
    file: str = ""
    precision: str = ""
    batch: int = 0
    cost: Literal["required", "none"] = "required"
    optional: bool = False

    @property
    def known_as(self) -> str:
        return self.identity or self.model

    @property
    def lies_in(self) -> str:
        return self.file or f"{self.model}.json"


class Roster(Written, frozen=True, kw_only=True, tag_field="schema", tag=TAG):
    name: str
    models: list[Expected]


def load(path: Path, *, name: str = "") -> Roster:
    """Return the roster in a file.

    Raises Refused for whatever makes no sense in it: unknown keys and values, no model, blank
    words, and a model that is there twice.
    """
    document = reading.read(path, name=name or str(path))
    place = Place(document)
    if document.data.get("schema") != TAG:
        raise place.key("schema").refused(f"expected {TAG!r}", hint=f"begin with schema: {TAG}")
    said = reading.mapping(document.data, place, known=("schema", "name", "models"))
    if not said.get("models"):
        raise place.key("models").refused("no model is expected")
    entries = reading.items(said["models"], place.key("models"))
    models: dict[tuple[str, str], Expected] = {}
    for block, here in entries:
        each = _expected(block, here)
        if (each.task, each.model) in models:
            raise here.refused(
                f"model {each.model!r} of task {each.task!r} is there twice",
                hint="give each row a name of its own and both the same identity, as in "
                f"{{model: {each.model}-b8, identity: {each.known_as}, batch: 8}}",
            )
        models[each.task, each.model] = each
    called = reading.text(said.get("name"), place.key("name"), thing="a name", limit=200)
    return Roster(name=called, models=list(models.values()))


def _expected(block: object, here: Place) -> Expected:
    said = reading.mapping(block, here, known=Expected.__struct_fields__)
    for key in ("task", "model"):
        reading.text(said.get(key), here.key(key), limit=200)
    for key in ("identity", "file", "precision"):
        if said.get(key, "") != "":
            reading.text(said[key], here.key(key), limit=200)
    if "batch" in said:
        reading.whole(said["batch"], here.key("batch"), low=1)
    if "cost" in said:
        reading.one_of(said["cost"], here.key("cost"), thing="cost", known=("required", "none"))
    if "optional" in said:
        reading.flag(said["optional"], here.key("optional"))
    if "/" in str(said.get("file", "")):
        hint = "name folders on the command line: farm aggregate --roster FILE FOLDER"
        raise here.key("file").refused(f"{said['file']!r} is no name of a file", hint=hint)
    return schema.written(said, Expected, where=here.document.name)
