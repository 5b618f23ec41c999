"""A tuned script turned into one that finds its rate: both run, and the docs show what they do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def printed_loss(script: str) -> float:
    output = subprocess.run([sys.executable, ROOT / "examples" / script], capture_output=True, text=True, check=True)
    return float(output.stdout.split()[2].strip(","))


@pytest.mark.slow
def test_it_needs_no_tuning_to_be_about_as_good() -> None:
    assert printed_loss("turned_script.py") < 1.3 * printed_loss("tuned_script.py")


def test_what_the_docs_show_is_in_the_scripts() -> None:
    plain = (ROOT / "docs" / "learning-rate.md").read_text().partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", plain, re.S)
    for block, script in zip(blocks, ("tuned_script.py", "turned_script.py"), strict=True):
        code = (ROOT / "examples" / script).read_text()
        assert all(line in code.splitlines() for line in block.splitlines())
