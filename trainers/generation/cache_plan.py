"""How much memory a key-value cache takes, said and checked before a model is loaded. No torch here."""

from dataclasses import dataclass
from pathlib import Path

from trainers.errors import GenerationError

PAGE = 16
"""Tokens a page."""

ELEMENT_BYTES = 4  # float32


@dataclass(frozen=True)
class CachePlan:
    """A cache for up to `sequences` sequences of up to `context` tokens at a time, in at most `limit` bytes.

    layers, key_value_heads, head_width: the model's sizes.
    """

    layers: int
    key_value_heads: int
    head_width: int
    sequences: int
    context: int
    limit: int | None = None

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys and values in all layers."""
        return 2 * self.layers * self.key_value_heads * self.head_width * ELEMENT_BYTES

    @property
    def pages(self) -> int:
        """Pages in each layer's pool: what the sequences need at their longest, or what the limit allows."""
        needed = self.sequences * -(-self.context // PAGE)
        return needed if self.limit is None else min(needed, self.limit // (PAGE * self.token_bytes))

    @property
    def tokens(self) -> int:
        """Tokens that the cache holds, of all sequences together."""
        return self.pages * PAGE

    @property
    def bytes(self) -> int:
        return self.tokens * self.token_bytes

    def statement(self) -> str:
        """One line for people: what it takes and why."""
        full = self.sequences * self.context * self.token_bytes
        line = (
            f"KV cache: {self.sequences} sequences × {self.context} tokens × {readable(self.token_bytes)}"
            f" = {readable(full)}"
        )
        return line if self.bytes >= full else f"{line}, of which {readable(self.bytes)} at a time; the rest queues"

    def check(self, available: int) -> None:
        """Raise GenerationError for a cache larger than `available` bytes, or too small for a page, or for nothing."""
        if min(self.sequences, self.context) < 1:
            raise GenerationError(
                f"{self.sequences} sequences of {self.context} tokens are asked for; both must be at least 1."
            )
        if self.bytes > available:
            raise GenerationError(
                f"{self.statement()}, but only {readable(available)} of memory are free; lower the batch or the"
                " context."
            )
        if not self.pages:
            raise GenerationError(
                f"The limit of the KV cache is {readable(self.limit or 0)}; {PAGE} tokens alone take"
                f" {readable(PAGE * self.token_bytes)}: raise it."
            )


def available_memory() -> int:
    """Bytes that this process could still take: the machine's free ones, within the container's limit."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    machine = int(fields["MemAvailable"].split()[0]) * 1024
    return min(machine, _container_memory(machine))


def _container_memory(otherwise: int) -> int:
    """What the control group (version 2) leaves; `otherwise` if it sets no limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        return otherwise if limit == "max" else int(limit) - int((folder / "memory.current").read_text())
    except OSError:
        return otherwise


def readable(size: int) -> str:
    """Bytes with the unit that people would choose: 46 kB, 12.1 GB."""
    value, units = float(size), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.3g} {units[0]}"
