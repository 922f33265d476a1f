"""Who is behind a process number and a port: what may be believed before a server is touched."""

import socket
import subprocess
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"


def started(pid: int) -> str | None:
    """Return what tells this process from a later one of the same number, None if it is dead."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    if not boot.exists():  # not Linux
        asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True)
        return asked.stdout.decode().strip() or None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, ticks = fields[0], fields[19]  # fields 3 and 22 of proc(5)
    return None if state in "ZX" else f"{boot.read_text().strip()} {ticks}"


def answers(port: int, password: str, timeout_s: float = 2.0) -> bool:
    """Return whether a server behind the port takes the password and answers PING."""
    wanted = b"+OK\r\n+PONG\r\n"
    got = b""
    try:
        with socket.create_connection((HOST, port), timeout_s) as wire:
            wire.sendall(_command("AUTH", password) + _command("PING"))
            while len(got) < len(wanted) and wanted.startswith(got):
                chunk = wire.recv(256)
                if not chunk:
                    return False
                got += chunk
    except OSError:
        return False
    return got == wanted


def free_port() -> int:
    """Return a loopback port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        address: tuple[str, int] = probe.getsockname()
        return address[1]


def _command(*words: str) -> bytes:
    parts = [each.encode() for each in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
