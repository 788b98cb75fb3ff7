"""`python -m understudy.config` prints docs/configuration.md."""

from __future__ import annotations

from understudy.config.text import document

if __name__ == "__main__":
    print(document(), end="")
