"""The pages of the documentation, and the code on them."""

import re

from tests._commands import ROOT


def page(name: str) -> str:
    return (ROOT / f"{name}.md").read_text(encoding="utf-8")


def code(name: str) -> list[str]:
    """Its Python blocks, also those within a list."""
    blocks = re.findall(r"^( *)```python\n(.*?)```", page(name), re.DOTALL | re.M)
    return [re.sub(rf"^{indent}", "", text, flags=re.M) for indent, text in blocks]
