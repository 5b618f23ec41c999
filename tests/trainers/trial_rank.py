"""One rank of two, run as a process by test_noise_scale.py: python trial_rank.py RANK RANKS FOLDER

Tries things out between real steps, and leaves what it saw as JSON.
"""

import json
import sys
from pathlib import Path

import torch.distributed as dist
from rank import ADAMW, RATES, language_model, meet

from comm_plans.live import LivePlans
from comm_plans.runtime import PlannedOptions
from trainers import Trainer, TrainerOptions
from trainers.communication import go_by_plan_from, measured_communication, process_group, trial_sums


def seen(rank: int, ranks: int) -> dict:
    def make(batch_size: int) -> Trainer:
        return Trainer(language_model(), ADAMW, TrainerOptions(batch_size, clip=1.0), rank, ranks)

    usual, tried = make(6), make(3)
    plain = usual.train(RATES)
    go_by_plan_from(None)
    sums = trial_sums([4096, 65536], rounds=2)
    noise = tried.trials.noise_scale(4)
    seconds = [tried.trials.seconds(2, together) for together in (True, False)]
    tried.use_batch(6)
    go_by_plan_from(4096)
    after = tried.train(RATES)
    said = measured_communication()
    assert said is not None
    return {
        "losses": [plain, after],
        "weights": [usual.weights_sha256(), tried.weights_sha256()],
        "noise": noise,
        "seconds": seconds,
        "sums": sums,
        "planned_calls": said["rows"]["all_reduce"]["planned_calls"],
        "rule": said["rule"],
        "gradient_bytes": [tried.trials.gradient_bytes, sum(each.nbytes for each in tried.model.parameters())],
        "memory": tried.memory,
    }


def main(rank: int, ranks: int, folder: Path) -> None:
    planned = PlannedOptions(plans=LivePlans.load([folder / "plan.json"]), strict=True)
    with process_group(meet(rank, ranks, folder), rank, ranks, planned=planned):
        outcome = seen(rank, ranks)
        dist.barrier()
    (folder / f"seen-{rank}.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
