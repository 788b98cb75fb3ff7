"""Shipped checkpoints: what a slice's successor starts from.

- `interface`: what a store must do; `registry`: stores by the scheme of their address, opened for a `place`;
- `file_store`: checkpoints in a directory that all nodes see. `markers` says which of them count, `fetching` brings
  their files back;
- `object_store`: checkpoints in S3, Google Cloud Storage or Azure. `object_head` says which of them count and is pure,
  `object_heads` reads and replaces it, `object_files` sends and fetches, `object_rubbish` removes;
- `restoring`: how a successor gets the newest checkpoint that can be read, from either;
- `spark_files`: which files a Spark checkpoint consists of.

Imports `clients`, `model`, `control/replica/retention.py` and `log/disk.py`. Start reading at `file_store.Store.ship`
for how a checkpoint gets there, and at `restoring.Restore.run` for how a successor gets it back.
"""
