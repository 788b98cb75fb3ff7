"""The command line: one file for every verb. Start reading at `main.py`.

Modules import what is slow inside the verb that needs it, so that `understudy --help` stays fast. They may import
everything.
"""
