"""The laws of a signature that is read: what the source settles, and nothing that it does not."""

import ast
import inspect
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.sweep.signature import Signature, check_inputs, signature


def of(text, name="f"):
    return signature(ast.parse(dedent(text)), name)


def test_every_kind_of_parameter_is_told():
    found = of("def f(a, /, b, c=1, *more, d, e=2, **rest): ...")

    assert (
        Signature(
            accepted=["b", "c", "d", "e"],
            required=["b", "d"],
            positional_only=["a"],
            takes_any=True,
            kind="function",
        )
        == found
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def f(x): ...", "function"),
        ("async def f(x): ...", "coroutine"),
        ("def f(x):\n    yield x", "generator"),
        ("def f(x):\n    if x:\n        return (yield from x)", "generator"),
        ("def f(x):\n    def g():\n        yield x\n    return list(g())", "function"),
        ("def f(x):\n    return lambda: (yield)", "function"),
        ("@torch.no_grad()\ndef f(x): ...", "function"),
        ("@functools.lru_cache(maxsize=None)\ndef f(x): ...", "function"),
        ("if True:\n    def f(x): ...", "function"),
        ("from numpy import *\ndef f(x): ...", "function"),
    ],
)
def test_a_function_is_told_for_what_it_is(text, kind):
    assert (kind, ["x"]) == (of(text).kind, of(text).required)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f = load()",
        "from model import f",
        "from model import *",
        "def f(x): ...\nfrom model import *",
        "class f:\n    def __call__(self, x): ...",
        "def f(x): ...\nf = wrap(f)",
        "try:\n    from fast import f\nexcept ImportError:\n    def f(x): ...",
        "if True:\n    def f(x): ...\nelse:\n    def f(y): ...",
        "@wrap\ndef f(x): ...",
        "def f(x): ...\nfor f in []: ...",
        "def f(x): ...\ndel f",
        "def g():\n    def f(x): ...",
        "match 1:\n    case 1:\n        def f(x): ...\n    case _:\n        def f(y): ...",
    ],
)
def test_what_the_source_does_not_settle_is_left_open(text):
    """Guessing would refuse what works."""
    assert None is of(text)


NAMES = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)


@given(NAMES, NAMES, st.booleans(), st.booleans(), st.data())
def test_what_is_read_is_what_python_sees(first, second, star, kwargs, data):
    """For any signature; the real function is the oracle."""
    keyword = [each for each in second if each not in first]
    defaults = data.draw(st.integers(0, len(first)))
    parts = [each if at < len(first) - defaults else f"{each}=0" for at, each in enumerate(first)]
    if keyword or star:
        parts.append("*rest" if star else "*")
    parts += [f"{each}=0" if data.draw(st.booleans()) else each for each in keyword]
    parts += ["**more"] if kwargs else []
    text = f"def f({', '.join(parts)}): ..."
    if text.endswith("*): ..."):
        return
    made: dict[str, object] = {}
    exec(text, made)  # a test's own words

    found = of(text)

    named = [
        each
        for each in inspect.signature(made["f"]).parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    assert [each.name for each in named] == found.accepted
    assert [each.name for each in named if each.default is each.empty] == found.required
    assert kwargs == found.takes_any


@pytest.mark.seed("S1.12")
@pytest.mark.parametrize(
    ("text", "inputs", "what", "why", "hint"),
    [
        (
            "def f(rgb): ...",
            ["image"],
            "m:f takes no 'image'",
            "it accepts rgb",
            "",
        ),
        ("def f(rgb): ...", ["rbg"], "m:f takes no 'rbg'", "", "did you mean `rgb`?"),
        ("def f(rgb): ...", ["arr_0"], "m:f takes no 'arr_0'", "", "name the arrays when you save"),
        ("def f(): ...", ["x"], "m:f takes no 'x'", "it accepts nothing", ""),
        (
            "def f(a, b): ...",
            ["a"],
            "m:f requires 'b', and the NPZ has none",
            "the NPZ holds a; m:f accepts a, b",
            "",
        ),
        ("def f(x, /): ...", ["x"], "m:f: parameter 'x' cannot be given by name", "", "remove"),
        ("async def f(x): ...", ["x"], "m:f is a coroutine function", "nothing would await", ""),
        ("def f(x):\n    yield", ["x"], "m:f is a generator function", "calling it runs none", ""),
    ],
)
def test_arrays_that_a_function_does_not_take_are_refused(text, inputs, what, why, hint):
    """The culprit is named, and what would be accepted."""
    with pytest.raises(Refused) as caught:
        check_inputs(of(text), inputs, model="m:f")

    assert what == caught.value.what
    assert caught.value.why.startswith(why)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("def f(a, b=1, *, c=2): ...", ["a"]),
        ("def f(a, b=1, *, c=2): ...", ["a", "b", "c"]),
        ("def f(**more): ...", ["anything"]),
        ("def f(a, *rest): ...", ["a"]),
    ],
)
def test_arrays_that_fit_are_taken(text, inputs):
    assert None is check_inputs(of(text), inputs, model="m:f")
