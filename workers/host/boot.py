"""Which boot of the machine this is."""

import hashlib

from workers.host.tree import Host


def boot_of(host: Host) -> str:
    """Return a hash that tells one boot of the machine from another, "" where nobody knows."""
    told = (host.text("proc/sys/kernel/random/boot_id") or "").strip()
    return hashlib.sha256(told.encode()).hexdigest()[:16] if told else ""
