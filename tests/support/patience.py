"""How long a test waits for work of another process. Waits end when it is done, so only a hang takes this long."""

# Where nothing is compiled yet and other work shares the cores, the first run of a service took more than a minute.
PATIENCE_MS = 300_000
