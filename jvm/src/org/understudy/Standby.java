package org.understudy;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecutionContext;
import org.apache.spark.sql.execution.streaming.state.RocksDB;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import scala.Option;
import scala.Tuple2;

/**
 * Lets a waiting query jump to a newer checkpoint, and its state in memory follow, without a restart.
 *
 * <p>Spark has no such call, but all the parts. A query that waits between two batches reads its place from the offset
 * and commit logs again, as it does when it starts. A RocksDB store applies the changelogs after the version it holds,
 * as it does when it loads one. Both happen on the query's own thread, while no batch runs. Where Spark's insides are
 * not what we expect, the state counts as not loaded: the next batch then loads it, more slowly and just as right.
 */
final class Standby {
  private Standby() {}

  /** The batch this query would run next, read anew from what lies in its checkpoint directory. */
  static long jump(MicroBatchExecution execution) {
    MicroBatchExecutionContext context = (MicroBatchExecutionContext) execution.getLatestExecutionContext();
    execution.populateStartOffsets(context, execution.sparkSessionForStream());
    return context.batchId();
  }

  /** Brings every loaded store of the query to a version; false if one has to be loaded from its files instead. */
  static boolean follow(MicroBatchExecution execution, long version) {
    List<RocksDB> stores = stores(execution.runId());
    boolean all = !stores.isEmpty();
    for (RocksDB store : stores) {
      all &= follow(store, version);
    }
    return all;
  }

  private static boolean follow(RocksDB store, long version) {
    long loaded = store.loadedVersion();
    if (loaded < 0 || loaded > version) {
      return false;
    }
    if (loaded == version) {
      return true;
    }
    try {
      apply(store, loaded, version);
      return true;
    } catch (ReflectiveOperationException | RuntimeException e) {
      // A changelog that was not pulled, a column family that is new: nothing half applied may stay.
      store.loadedVersion_$eq(-1);
      return false;
    }
  }

  private static void apply(RocksDB store, long loaded, long version) throws ReflectiveOperationException {
    List<Tuple2<Object, Option<String>>> changes = new ArrayList<>();
    for (long number = loaded + 1; number <= version; number++) {
      changes.add(new Tuple2<>(number, Option.empty()));
    }
    call(store, "replayChangelog", Tuple2[].class, changes.toArray(Tuple2[]::new));
    store.loadedVersion_$eq(version);
    store.fileManager().setMaxSeenVersion(version);
    call(store, "numKeysOnLoadedVersion_$eq", long.class, call(store, "numKeysOnWritingVersion"));
    call(store, "numInternalKeysOnLoadedVersion_$eq", long.class, call(store, "numInternalKeysOnWritingVersion"));
  }

  private static Object call(RocksDB store, String name) throws ReflectiveOperationException {
    return invoke(store, RocksDB.class.getDeclaredMethod(name));
  }

  private static void call(RocksDB store, String name, Class<?> type, Object argument)
      throws ReflectiveOperationException {
    invoke(store, RocksDB.class.getDeclaredMethod(name, type), argument);
  }

  private static Object invoke(RocksDB store, Method method, Object... arguments) throws ReflectiveOperationException {
    method.setAccessible(true);
    try {
      return method.invoke(store, arguments);
    } catch (InvocationTargetException e) {
      throw new ReflectiveOperationException(e.getCause());
    }
  }

  /** The RocksDB stores a run of a query has loaded in this process. */
  static List<RocksDB> stores(UUID run) {
    List<RocksDB> found = new ArrayList<>();
    try {
      Field field = StateStore$.class.getDeclaredField("loadedProviders");
      field.setAccessible(true);
      @SuppressWarnings("unchecked")
      var providers =
          (scala.collection.mutable.HashMap<StateStoreProviderId, StateStoreProvider>) field.get(StateStore$.MODULE$);
      synchronized (providers) {
        var entries = providers.iterator();
        while (entries.hasNext()) {
          Tuple2<StateStoreProviderId, StateStoreProvider> entry = entries.next();
          if (entry._1().queryRunId().equals(run) && entry._2() instanceof RocksDBStateStoreProvider provider) {
            found.add(provider.rocksDB());
          }
        }
      }
    } catch (ReflectiveOperationException e) {
      return List.of();
    }
    return found;
  }
}
