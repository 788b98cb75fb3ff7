"""Where bags are published and replayed from.

- `interface`: what a log promises (put-if-absent, acknowledgements, trimming, fences, recorded cuts). Start here;
- `registry`: logs by the scheme of their address, opened for a `place`;
- `file_log`: bags as files on a local or mounted file system;
- `kafka_log`: bags as records. `kafka_order` and `kafka_facts` say what the records mean and are pure; `kafka_view` is
  what a node has read, `kafka_writer` appends; `kafka_wire` is what both ask of a cluster, and `kafka_client` and
  `kafka_follower` ask real brokers;
- `bag_cache`: bags of a log beyond this node, as files;
- `bag`: the format of a bag, `sizes`: the byte counts that decide where it is cut;
- `disk`: the few operations on files that survive a crash or a power cut. Checkpoints and sinks use it too;
- `spool`: bags that an active standby holds back.

May import `clients`, `model` and `errors`, nothing else of the project. A new log is one file here that implements
`interface.Log`, and one line in `registry`.
"""
