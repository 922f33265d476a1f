"""Whether CUDA works for a process that sees one device: run as a child, it prints one line.

`python -P -m workers.backends.torch.trial` says `ok`, or why not, and ends with 0 either way.
"""

import sys


def tried() -> str:
    """Return "" if a small product on the one visible GPU comes out right, else why not."""
    try:
        import torch

        if not torch.cuda.is_available():
            return "torch sees no CUDA device"
        ones = torch.ones(64, 64, device="cuda")
        found = float((ones @ ones).sum())
    except Exception as error:  # whatever the driver, its library or the framework says
        return " ".join(str(error).split())[:200] or type(error).__name__
    return "" if found == 64.0**3 else f"a product of ones came out as {found:g}"


if __name__ == "__main__":
    sys.stdout.write(f"{tried() or 'ok'}\n")
