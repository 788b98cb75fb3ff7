"""`python -m understudy` is the `understudy` command."""

from understudy.cli.main import app

app()
