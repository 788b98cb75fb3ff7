package org.understudy;

import java.util.concurrent.atomic.AtomicBoolean;
import org.rocksdb.Env;
import org.rocksdb.Priority;

/**
 * RocksDB merges its files in threads of its own, of which all stores of a process share a pool.
 *
 * <p>With millions of keys that takes seconds of a core, and it is nothing a batch waits for; so batches go first.
 * RocksDB itself holds writers back when it cannot keep up.
 */
final class Merging {
  private static final AtomicBoolean BEHIND = new AtomicBoolean();

  private Merging() {}

  /** To be called when there is a store, for only then is RocksDB's library loaded. */
  static void stepBack() {
    if (!BEHIND.getAndSet(true)) {
      Env.getDefault().lowerThreadPoolCPUPriority(Priority.LOW);
    }
  }
}
