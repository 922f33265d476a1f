"""What a command says of bytes that it gets through a pipe."""

import os
import threading


def through_a_pipe(here, data: bytes, act):
    """Do something while a pipe called 63 gives these bytes."""
    pipe = here / "63"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    said = act()
    writer.join(10)
    pipe.unlink()
    return said
