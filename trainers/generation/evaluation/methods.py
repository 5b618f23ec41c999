"""Methods that a configuration can choose, by their names."""

from trainers.generation.sparse_attention.dense_first import DenseFirst
from trainers.generation.sparse_attention.full import Full
from trainers.generation.sparse_attention.method import Method
from trainers.generation.sparse_attention.oracle import OracleTopP
from trainers.generation.sparse_attention.tactic import Tactic


def method_named(name: str, target: float, layers: int) -> Method:
    """One of `options.METHODS`. Two layers of a model that is deep read all, none of one that has three."""
    if name == "full":
        return Full()
    return DenseFirst(Tactic(target) if name == "tactic" else OracleTopP(target), dense_layers(layers))


def dense_layers(layers: int) -> int:
    """How many first layers of a model read all."""
    return min(2, layers // 4)
