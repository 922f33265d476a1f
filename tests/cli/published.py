"""Whether what a command printed is what was published."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from farm import published


def checked(text: str) -> list[dict[str, Any]]:
    """Return the documents of a stream of JSON, one a line; each must fit its published schema."""
    documents = [json.loads(line) for line in text.splitlines()]
    for each in documents:
        _validator(each["schema"]).validate(each)
    return documents


@cache
def _validator(tag: str) -> Draft202012Validator:
    thing = tag.removeprefix("farm.").partition("/")[0]
    schema = published.json_schema(thing)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
