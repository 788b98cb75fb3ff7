package org.understudy;

import java.lang.reflect.Field;
import java.util.List;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/**
 * How many rows the state of a query has.
 *
 * <p>Spark can keep count, but then it looks up every key it writes, which doubles the time a changelog takes to replay;
 * so it does not, and small stores are counted here. In large ones RocksDB estimates: it counts a key that was written
 * again a second time until it has merged the two. Only to be used on the query's own thread, while no batch runs.
 */
final class Rows {
  private static final long COUNTED = 100_000;
  private static final long SELDOM = 100;

  private long known;
  private long notBefore = Long.MIN_VALUE;

  /** The newest count. */
  long known() {
    return known;
  }

  /** Takes its time (50 ms for the largest that are counted), so it is done a hundredth of the time at most. */
  void count(List<RocksDB> stores) {
    long began = System.nanoTime();
    if (began >= notBefore) {
      known = stores.stream().mapToLong(Rows::rows).sum();
      notBefore = System.nanoTime() + SELDOM * (System.nanoTime() - began);
    }
  }

  private static long rows(RocksDB store) {
    try {
      Field field = RocksDB.class.getDeclaredField("db");
      field.setAccessible(true);
      org.rocksdb.RocksDB db = (org.rocksdb.RocksDB) field.get(store);
      if (db == null || store.loadedVersion() < 0) {
        return 0;
      }
      long estimate = db.getLongProperty("rocksdb.estimate-num-keys");
      return estimate > COUNTED ? estimate : counted(db);
    } catch (ReflectiveOperationException | RocksDBException e) {
      return 0;
    }
  }

  private static long counted(org.rocksdb.RocksDB db) {
    long found = 0;
    try (RocksIterator rows = db.newIterator()) {
      for (rows.seekToFirst(); rows.isValid(); rows.next()) {
        found++;
      }
    }
    return found;
  }
}
