"""A plan on a live torch process group: importing this package makes the backend `planned` known to torch.

import comm_plans.runtime
torch.distributed.init_process_group("planned")
"""

from comm_plans.runtime.options import PlannedOptions
from comm_plans.runtime.process_group import PlannedGroup
from comm_plans.runtime.registration import register
from comm_plans.runtime.transport import TransportError

__all__ = ["PlannedGroup", "PlannedOptions", "TransportError"]

register()
