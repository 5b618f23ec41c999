"""The network lab as a cluster: where its Ray answers, what its network is, and by which interface its data moves."""

from comm_plans.errors import PlansError
from comm_plans.lab_state import LabState
from orchestrator.errors import UserError

LAB = "lab"  # as a cluster's address


def lab_address() -> str:
    """host:port of the lab's Ray. Raises UserError where no lab is up or it has no Ray."""
    address = _state().ray_address
    if address is None:
        raise UserError("the network lab that is up has no Ray; take it down and start it with network_lab.py up --ray")
    return address


def lab_environment() -> dict[str, str]:
    """What a driver must have in its environment before Ray lets it in."""
    return dict(_state().ray_environment)


def lab_topology() -> str:
    """The topology file that the lab was built from."""
    return _state().topology


def lab_interface() -> str:
    """The interface that is called alike on every rank and leads over the shaped links."""
    return _state().ranks[0].interface


def _state() -> LabState:
    try:
        return LabState.load()
    except PlansError as error:
        raise UserError(f"cluster=lab: {error}") from error
