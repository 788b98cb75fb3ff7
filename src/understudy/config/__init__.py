"""Where configured values come from, and how they are shown.

`model/config.py` has the sections. Here: `keys` lists them, `sources` reads `understudy.toml`, the environment and the
command line and checks what they give, `text` writes TOML, JSON and docs/configuration.md. Imports `model` only.
Start reading with `sources.effective`.
"""

from understudy.config.keys import KEYS as KEYS
from understudy.config.keys import Key as Key
from understudy.config.sources import Effective as Effective
from understudy.config.sources import Given as Given
from understudy.config.sources import ambient as ambient
from understudy.config.sources import effective as effective
from understudy.config.sources import existing as existing
from understudy.config.sources import from_environment as from_environment
from understudy.config.sources import from_file as from_file
from understudy.config.sources import from_options as from_options
