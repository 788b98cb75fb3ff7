"""Where bags are published and replayed from.

- `interface`: what a log promises (put-if-absent, acknowledgements, trimming, fences, recorded cuts). Start here;
- `file_log`: bags as files on a local or mounted file system;
- `bag`: the format of a bag, `sizes`: the byte counts that decide where it is cut;
- `disk`: the few operations on files that survive a crash or a power cut. Checkpoints and sinks use it too;
- `spool`: bags that an active standby holds back.

May import `model` and `errors`, nothing else of the project. A new log is one file here that implements
`interface.Log`.
"""
