"""Shipped checkpoints: what a slice's successor starts from.

`interface.py` says what a store must do, `file_store.py` keeps checkpoints in a directory that all nodes see,
`spark_files.py` knows which files a Spark checkpoint consists of. Imports `model`, `control/replica/retention.py` and
`log/disk.py`. Start reading at `file_store.Store.ship`.
"""
