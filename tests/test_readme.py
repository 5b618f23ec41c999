"""What the README shows is what the tests run."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def without_docstring(code: str) -> str:
    body = ast.parse(code).body
    return ast.unparse(ast.Module([node for node in body if not isinstance(node, ast.Expr)], []))


def test_the_own_task_is_the_example_and_short() -> None:
    example = (ROOT / "examples" / "own_task.py").read_text()
    (shown,) = [block for block in BLOCKS if "class Sine(Task)" in block]
    assert without_docstring(shown) == without_docstring(example)
    assert len([line for line in example.splitlines() if line.strip()]) <= 25


def test_the_plain_loop_is_the_tested_one() -> None:
    tested = ast.parse((ROOT / "tests" / "orchestrator" / "test_drop_in.py").read_text())
    (lines,) = [
        node.value.value
        for node in tested.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and "drive(" in str(node.value.value)
    ]
    (shown,) = [block for block in BLOCKS if "drive(AutoLRS" in block]
    assert ast.unparse(ast.parse(str(lines))) in ast.unparse(ast.parse(shown))


def test_every_file_named_is_there() -> None:
    named = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    missing = [name for name in named if "://" not in name and not (ROOT / name).exists()]
    assert missing == []
