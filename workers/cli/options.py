"""The flags that several verbs share."""

import click

devices = click.option("--devices", default="all", show_default=True, metavar="SEL")
device = click.option(
    "--device", default="cpu", show_default=True, metavar="SEL", help="Which slot: cpu, cpu:0, …"
)
fake = click.option(
    "--fake", default="", metavar="NxDEVICE", help="Simulated devices in place of these: 8xH100."
)
json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
name = click.option("--name", default="", help="Name of this node.", envvar="FARM_NODE_NAME")
state = click.option("--state-dir", default="", metavar="DIR", help="Where this node keeps state.")
locks = click.option("--lock-dir", default="", metavar="DIR", help="Where device locks lie.")
slots = click.option("--cpu-slots", default=1, show_default=True, metavar="N")
