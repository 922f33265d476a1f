"""Celery is the doorbell: a ticket says that something is ready in a class, and names no job.

Delivery to the right slot, the worker's life and its reconnecting are Celery's; the state of every
entry is the ledger's. So a ticket that is lost is topped up, and one too many finds nothing to do.
Each setting below was chosen against a measured loss or delay (`queue.md` §2).
"""

from collections.abc import Mapping
from typing import Any, Final

from celery import Celery
from kombu.exceptions import OperationalError

from farm.errors import Unreachable

TICKET: Final = "farm.ticket"

SETTINGS: Final[dict[str, Any]] = {
    "result_backend": None,
    "task_ignore_result": True,  # state is the ledger's; a backend would be a second truth
    "accept_content": ["json"],  # never pickle
    "task_serializer": "json",
    "task_acks_late": True,  # with a multiplier of 1: exactly one ticket is held
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": False,
    "task_acks_on_failure": True,  # a ticket that raises must not loop
    "task_acks_on_timeout": True,
    "task_reject_on_worker_lost": False,
    "task_track_started": False,
    "task_send_sent_event": False,
    "worker_send_task_events": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_enable_remote_control": True,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "worker_soft_shutdown_timeout": 0.0,
    "worker_detect_quorum_queues": False,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "task_create_missing_queues": True,
    "task_default_queue": "any",
    "broker_transport_options": {
        "global_keyprefix": "farmq:",
        "visibility_timeout": 3600,  # a late return is a spare ticket
        "queue_order_strategy": "priority",
        "socket_keepalive": True,
        "health_check_interval": 10,
        "socket_timeout": 30,
        "retry_on_timeout": False,
    },
}


def connect(url: str) -> Celery:
    """Return the Celery application of this farm, with the settings above and no other."""
    # The library's own name for a socket in the file system.
    app = Celery("farm", broker=url.replace("unix://", "redis+socket://", 1), set_as_current=False)
    app.conf.update(SETTINGS)
    return app


def send_tickets(app: Celery, wanted: Mapping[str, int]) -> None:
    """Send so many tickets to each class's queue; raises Unreachable when the broker is away."""
    try:
        for name, count in wanted.items():
            for _ in range(count):
                app.send_task(TICKET, args=[name], queue=name)
    except OperationalError as error:
        raise Unreachable("the broker takes no tickets", why=str(error)) from error
