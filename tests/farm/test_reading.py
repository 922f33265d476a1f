"""The laws of reading what a person wrote."""

from pathlib import Path

import pytest

from farm import reading
from farm.errors import Refused
from farm.reading import Document, Place


def _refused(path: Path) -> Refused:
    with pytest.raises(Refused) as caught:
        reading.read(path, name="a.yaml")
    return caught.value


def test_a_file_is_plain_data_and_its_digest(tmp_path: Path) -> None:
    """A document holds dicts, lists and scalars, and the SHA-256 of the bytes that were read."""
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffa: [1, two, false]\n".encode())

    document = reading.read(path)

    assert {"a": [1, "two", False]} == document.data
    assert 64 == len(document.sha256)
    assert str(path) == document.name


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.yaml: expected keys and values, got nothing"),
        (b"- 1", "a.yaml: expected keys and values, got a list"),
        (b"words", "a.yaml: expected keys and values, got 'words'"),
        (b"\xff\xfea\x00:\x00", "a.yaml: not UTF-8: at byte 0"),
        (b"a: \xe9", "a.yaml: not UTF-8: at byte 3"),
        (b"a: \x00", "a.yaml: not readable as YAML: unacceptable character #x0000"),
        (b"a: [1", "a.yaml: not readable as YAML: line 1, column 6: expected ',' or ']'"),
        (b"a: 1\n\tb: 2", "a.yaml: not readable as YAML: line 2, column 1: found character"),
        (b"a: 1\n---\nb: 2", "a.yaml: not readable as YAML: line 2, column 1: but found another"),
        (b"a: 1\nb: 2\na: 3", "a.yaml: not readable as YAML: line 3, column 1: the key 'a'"),
        (b"a: !!python/object:os.system {}", "a.yaml: not readable as YAML: line 1, column 4: the"),
        (b"a: !!int x", "a.yaml: not readable as YAML: line 1, column 4: the tag"),
        (b"a: !!set {x}", "a.yaml: not readable as YAML: line 1, column 4: the tag"),
        (b"a: 2020-13-45", "a.yaml: not readable as YAML: month must be in 1..12"),
        (b"a: " + b"9" * 5000, "a.yaml: not readable as YAML: Exceeds the limit"),
        (b"a: &x [*x]", "a.yaml: not readable as YAML: line 1, column 4: an alias of itself"),
        (b"- " * 3000, "a.yaml: not readable as YAML: nested too deeply"),
        (b"? [a, b]\n: 1", "a.yaml: not readable as YAML: line 1, column 3: found unhashable key"),
        (b"yes: 1", "a.yaml: key True is not text"),
        (b"a: " + b"x" * reading.LIMIT_BYTES, "a.yaml: larger than 256 KiB: not a file for"),
    ],
)
def test_what_is_no_safe_yaml_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """Whatever is not one UTF-8 document of plain data is refused, with its line."""
    path = tmp_path / "a.yaml"
    path.write_bytes(data)

    error = _refused(path)

    assert str(error).startswith(message)
    assert 2 == error.exit_code


def test_aliases_may_repeat_but_not_explode(tmp_path: Path) -> None:
    """An alias stands for its value; ten lines that stand for a billion values are refused."""
    modest = tmp_path / "modest.yaml"
    modest.write_text("a: &x {b: 1}\nc: {<<: *x, d: 2}\n")
    bomb = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    bomb.write_text("\n".join(lines))

    assert {"a": {"b": 1}, "c": {"b": 1, "d": 2}} == reading.read(modest).data
    error = _refused(bomb)

    assert "a.yaml: more than 100,000 values: once its aliases are followed" == str(error)


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    """A file that is not there exits 2 and offers the one with nearly that name."""
    (tmp_path / "quickstart.yaml").write_text("a: 1")

    missing = _refused(tmp_path / "quickstrat.yaml")
    folder = _refused(tmp_path)
    nonsense = _refused(Path("a\0b"))

    assert "no file 'a.yaml'" == missing.what
    assert "did you mean `quickstart.yaml`?" == missing.hint
    assert "cannot read 'a.yaml': Is a directory" == str(folder)
    assert "cannot read 'a.yaml': embedded null byte" == str(nonsense)


def test_a_mistake_is_named_by_file_and_path() -> None:
    """An unknown word is answered with its place, the known words and the nearest of them."""
    document = Document(name="night.yaml", data={}, sha256="")
    place = Place(document).key("matrix").key("precision").item(0)

    error = place.unknown("fp61", thing="precision", known=["fp32", "bf16", "fp16"])

    assert "night.yaml: unknown precision 'fp61'" == error.what
    assert "at matrix.precision[0]; known: fp32, bf16, fp16" == error.why
    assert "did you mean `fp16`?" == error.hint


def test_a_mistake_in_a_flag_is_named_by_the_flag() -> None:
    """What a flag set over the file is blamed on the flag, its neighbours on the file."""
    document = Document(name="a.yaml", data={}, sha256="", flags={"matrix.batch": "-S batch=x"})
    matrix = Place(document).key("matrix")

    assert "-S batch=x: bad" == matrix.key("batch").item(1).refused("bad").what
    assert "a.yaml: bad" == matrix.key("batches").refused("bad").what


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda p: reading.text(False, p), "expected text, got false"),
        (lambda p: reading.text("  ", p), "expected text, got '  '"),
        (lambda p: reading.text("a\nb", p), r"expected text, got 'a\nb'"),
        (lambda p: reading.whole(True, p, low=1), "expected a whole number, got true"),
        (lambda p: reading.whole(1.5, p, low=1), "expected a whole number, got 1.5"),
        (lambda p: reading.whole("8", p, low=1), "expected a whole number, got '8'"),
        (lambda p: reading.whole(0, p, low=1), "expected at least 1, got 0"),
        (lambda p: reading.whole(9, p, low=1, high=8), "expected at most 8, got 9"),
        (lambda p: reading.whole(10**900, p, low=1), "expected at most 2147483647, got a number"),
        (lambda p: reading.whole([], p, low=1), "expected a whole number, got a list"),
        (lambda p: reading.flag("no", p), "expected true or false, got 'no'"),
        (lambda p: reading.items([], p), "an empty list"),
        (lambda p: reading.mapping({1: 2}, p), "key 1 is not text"),
        (lambda p: reading.mapping({"tu": 2}, p, known=["to"]), "unknown key 'tu'"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(check, message: str) -> None:
    """Each reader says what it expected and what stands there instead."""
    place = Place(Document(name="a.yaml", data={}, sha256=""), "x")

    with pytest.raises(Refused) as caught:
        check(place)

    assert caught.value.what.startswith(f"a.yaml: {message}")


@pytest.mark.parametrize(
    "text",
    [
        r'a: "\ud800"',
        r'"\udfff": a',
        r'tags: {"k\ud83d": a}',
        r'backend_options: {fail: ["x", "\udc00"]}',
        r'a: "\ud83d\ude00"',
    ],
)
def test_half_a_character_is_refused_wherever_it_stands(tmp_path: Path, text: str) -> None:
    """An escape writes it into a value or a key, and no document could say it again."""
    path = tmp_path / "a.yaml"
    path.write_text(text)

    assert "holds half a character" in _refused(path).why
