"""What a function accepts, read from its source: no line of it runs for that.

Only what the source settles is told. A name that is imported, assigned, defined twice or wrapped by
a decorator that may change it is left to the worker, which looks at the function itself.
"""

import ast
from collections.abc import Collection, Iterator
from typing import Final, Literal

from msgspec import Struct

from farm.errors import Refused, did_you_mean

# Decorators that leave a function what it was to its callers.
_TRANSPARENT: Final = (
    *("no_grad", "inference_mode", "enable_grad", "autocast", "custom_fwd"),
    *("cache", "lru_cache", "staticmethod", "override", "deprecated"),
)


class Signature(Struct, frozen=True, kw_only=True):
    """accepted: the parameters that can be given by name. takes_any: `**more` takes other names.

    kind: a `coroutine` or a `generator` does no work when it is called.
    """

    accepted: list[str]
    required: list[str]
    positional_only: list[str]
    takes_any: bool
    kind: Literal["function", "coroutine", "generator"]


def signature(tree: ast.Module, name: str) -> Signature | None:
    """Return what the function of that name accepts; None where the source does not settle it."""
    binding = [each for each in _statements(tree.body) if _bound(each) & {name, "*"}]
    found = binding[-1] if binding else None
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    if any(name in _bound(each) for each in binding[:-1]):
        return None
    if not all(_called(each) in _TRANSPARENT for each in found.decorator_list):
        return None
    return _of(found)


def check_inputs(found: Signature, inputs: Collection[str], *, model: str) -> None:
    """Raise Refused unless the function can be called with these inputs by name, and works then.

    The message names the culprit, and the names that are accepted. Source: S1.12.
    """
    if found.kind != "function":
        why = {
            "coroutine": "nothing would await it",
            "generator": "calling it runs none of it",
        }[found.kind]
        hint = "wrap it in a function that runs it to its end"
        raise Refused(f"{model} is a {found.kind} function", why=why, hint=hint)
    if found.positional_only:
        first = found.positional_only[0]
        what = f"{model}: parameter {first!r} cannot be given by name"
        raise Refused(what, why="each array of the NPZ is given by name", hint="remove the `/`")
    known = ", ".join(found.accepted) or "nothing"
    if not found.takes_any:
        for name in inputs:
            if name not in found.accepted:
                raise Refused(
                    f"{model} takes no {name!r}",
                    why=f"it accepts {known}",
                    hint=_renamed(name, found.accepted, inputs),
                )
    for name in found.required:
        if name not in inputs:
            what = f"{model} requires {name!r}, and the NPZ has none"
            raise Refused(what, why=f"the NPZ holds {', '.join(inputs)}; {model} accepts {known}")


def _renamed(name: str, accepted: list[str], inputs: Collection[str]) -> str:
    free = [each for each in accepted if each not in inputs]
    if name.startswith("arr_") and free:
        return f"name the arrays when you save them: numpy.savez(FILE, {free[0]}=…)"
    return did_you_mean(name, free)


def _of(found: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    args = found.args
    positional = [*args.posonlyargs, *args.args]
    with_default = {each.arg for each in positional[len(positional) - len(args.defaults) :]}
    keyword = {
        each.arg
        for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    }
    named = [each.arg for each in (*args.args, *args.kwonlyargs)]
    optional = with_default | keyword
    return Signature(
        accepted=named,
        required=[each for each in named if each not in optional],
        positional_only=[each.arg for each in args.posonlyargs],
        takes_any=args.kwarg is not None,
        kind=_kind(found),
    )


def _kind(
    found: ast.FunctionDef | ast.AsyncFunctionDef,
) -> Literal["function", "coroutine", "generator"]:
    if isinstance(found, ast.AsyncFunctionDef):
        return "coroutine"
    return "generator" if any(_yields(each) for each in found.body) else "function"


def _yields(node: ast.AST) -> bool:
    """Whether a yield belongs to the function itself and not to one inside it."""
    if isinstance(node, ast.Yield | ast.YieldFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    return any(_yields(each) for each in ast.iter_child_nodes(node))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those inside an `if`, `try`, `with` or loop."""
    for each in body:
        yield each
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for inside in ast.iter_child_nodes(each):
            if isinstance(inside, ast.stmt):
                yield from _statements([inside])
            elif isinstance(inside, ast.ExceptHandler | ast.match_case):
                yield from _statements(inside.body)


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement itself binds; `*` may bind any."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {each.asname or each.name.split(".")[0] for each in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.Delete):
        return {
            each.id
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
    return set()


def _called(node: ast.expr) -> str:
    """Return the last word of a decorator: `torch.no_grad()` is `no_grad`."""
    named = node.func if isinstance(node, ast.Call) else node
    return str(getattr(named, "attr", getattr(named, "id", "")))
