"""What `farm profile summary|kernels|ops` print of a layer profile: layers stand for kernels."""

from farm.cli.talk import Talk
from farm.trace import opening
from farm.trace.analysis.choosing import Order
from farm.trace.importing import choosing
from farm.trace.importing.record import LayerProfile


def summary(talk: Talk, found: LayerProfile, *, as_page: bool) -> None:
    """Print it whole; raises Refused for a page, which is drawn from the events of a trace."""
    from farm import schema
    from farm.cli.profile import layered_views

    if as_page:
        raise opening.lacking(found, "the events of a timeline")
    console = talk.console()
    if talk.as_json:
        console.document(schema.encode(found))
    else:
        console.show(*layered_views.summary(found))


def kernels(
    talk: Talk,
    found: LayerProfile,
    *,
    top: int,
    pattern: str | None,
    order: Order,
    of_gpu: dict[str, bool],
) -> None:
    """Print its layers. of_gpu: what was asked for that kernels alone have, which is refused."""
    from farm import schema
    from farm.cli.profile import layered_views

    for what, is_asked in of_gpu.items():
        if is_asked:
            raise opening.lacking(found, what)
    shown, console = choosing.layers(found, pattern=pattern, order=order, top=top), talk.console()
    if talk.as_json:
        console.document(schema.encode(shown))
    else:
        console.show(layered_views.layers(shown))


def ops(talk: Talk, found: LayerProfile, *, top: int, phase: str | None) -> None:
    """Print its layers by kind of work; raises Refused where no layer tells its kind."""
    from farm import schema
    from farm.cli.profile import layered_views

    if phase is not None:
        raise opening.lacking(found, "the phases of a step")
    if not found.ops:
        raise opening.lacking(found, "what kind of work a layer is")
    shown, console = choosing.ops(found, top=top), talk.console()
    if talk.as_json:
        console.document(schema.encode(shown))
    else:
        console.show(layered_views.ops(shown))
