package org.understudy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper;
import org.apache.spark.sql.execution.streaming.state.RocksDB;

/**
 * What one replica may read, announced epoch by epoch from Python.
 *
 * <p>The query behind the gate waits here instead of polling: an announcement wakes it at once, and a gate that
 * announces nothing holds its query still. Deciding what may be read, and where a bag lies, stays in Python.
 */
public final class Gate {
  private static final Map<String, Gate> GATES = new ConcurrentHashMap<>();

  private final TreeMap<Long, List<Segment>> announced = new TreeMap<>();
  private boolean arrived;
  private long planned = -1;
  private long committed = -1;
  private MicroBatchExecution execution;
  private long wanted = -1;
  private long jumped = -1;
  private boolean keepsState;
  private boolean loaded;
  private final Watermarks watermarks = new Watermarks();
  private String restored;
  private final Rows rows = new Rows();
  private boolean counts = true;
  private String pool = "primaries";

  /** The gate of a replica, made on first use: the query and the agent may come in either order. */
  public static Gate of(String replica) {
    return GATES.computeIfAbsent(replica, name -> new Gate());
  }

  public static void remove(String replica) {
    Gate gate = GATES.remove(replica);
    if (gate != null && gate.execution != null) {
      Meter.forget(gate.execution);
    }
  }

  /** Tells the gate which query waits behind it. */
  public synchronized void attach(StreamingQueryWrapper query) {
    execution = (MicroBatchExecution) query.streamingQuery();
    notifyAll();
  }

  /** The watermarks of the checkpoint on which the query starts, in the form of {@link #watermarks}; said before that. */
  public synchronized void startWith(String marks) {
    restored = marks;
  }

  /** The watermarks of the query as of a committed epoch; empty if its checkpoint holds them, null if not known. */
  public synchronized String watermarks(long epoch) {
    return watermarks.of(epoch);
  }

  /** How many watermarks a frame has that a checkpoint of Spark would lose. */
  public static int countWatermarks(Dataset<?> frame) {
    return Watermarks.count(frame);
  }

  /** On the query's thread, before its first batch: also a batch that is run again starts from what it had before. */
  private void restoreWatermarks() throws InterruptedException {
    while (restored != null && execution == null) {
      wait();
    }
    if (restored != null) {
      watermarks.restore(execution, restored);
      restored = null;
    }
  }

  /** The scheduler pool in which the query works from its next batch on. */
  public synchronized void pool(String name) {
    pool = name;
  }

  /** CPU time the query has used, in nanoseconds. */
  public synchronized long cpuNanos() {
    return execution == null ? 0 : Meter.nanos(execution);
  }

  /** Rows in the state, as far as they were counted; asks the query to count again when it comes by. */
  public synchronized long stateRows() {
    counts = true;
    notifyAll();
    return rows.known();
  }

  /** On the query's thread, between two batches. */
  private void countIfAsked() {
    List<RocksDB> stores = counts && execution != null ? Standby.stores(execution.runId()) : List.of();
    if (!stores.isEmpty()) {
      counts = false;
      rows.count(stores);
      Merging.stepBack();
    }
  }

  /** Lets the query see one more epoch; the lines are those of {@link Segment#parse}. */
  public synchronized void announce(long epoch, String lines) {
    List<Segment> segments = new ArrayList<>();
    lines.lines().forEach(line -> segments.add(Segment.parse(line)));
    announced.put(epoch, segments);
    notifyAll();
  }

  /** Whether the query has come to the gate; before, it reads its checkpoint directory, which must not change. */
  public synchronized boolean arrived() {
    return arrived;
  }

  /** The epoch whose batch was planned last. */
  public synchronized long planned() {
    return planned;
  }

  /** Waits until Spark has committed the batch of this epoch; answers the newest committed epoch either way. */
  public synchronized long awaitCommitted(long epoch, long millis) throws InterruptedException {
    long deadline = System.nanoTime() + millis * 1_000_000;
    while (committed < epoch) {
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        break;
      }
      wait(left);
    }
    return committed;
  }

  /**
   * Lets the waiting query jump to the checkpoint that now lies in its directory; with {@code keepState} the state it
   * holds in memory follows. {@code batch} is the last committed batch there, {@code marks} are the watermarks as of it.
   * Answers whether it happened in time.
   */
  public synchronized boolean jump(long batch, String marks, boolean keepState, long millis)
      throws InterruptedException {
    keepsState = keepState;
    restored = marks;
    wanted = batch;
    notifyAll();
    long deadline = System.nanoTime() + millis * 1_000_000;
    while (jumped < batch) {
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        wanted = jumped;
        return false;
      }
      wait(left);
    }
    return true;
  }

  /** Whether the state of the newest checkpoint was in memory after the last jump. */
  public synchronized boolean loaded() {
    return loaded;
  }

  /** On the query's thread, between two batches. */
  private boolean jumpIfAsked() throws InterruptedException {
    if (execution == null || wanted <= jumped) {
      return false;
    }
    long next = Standby.jump(execution);
    restoreWatermarks();
    loaded = keepsState && Standby.follow(execution, next);
    jumped = wanted;
    notifyAll();
    return true;
  }

  /**
   * The first announced epoch after {@code current}, or null if that takes longer than {@code millis}. It is the next
   * one, unless the agent left some out.
   */
  synchronized Long after(long current, long millis) throws InterruptedException {
    if (!arrived) {
      restoreWatermarks();
    }
    arrived = true;
    if (execution != null) {
      watermarks.note(execution, current);
    }
    // Spark asks for the next offset only when the batch before it is committed.
    committed = Math.max(committed, current);
    announced.headMap(current, true).clear();
    notifyAll();
    countIfAsked();
    long deadline = System.nanoTime() + millis * 1_000_000;
    while (announced.higherKey(current) == null) {
      countIfAsked();
      if (jumpIfAsked()) {
        // Spark asked from where it was; it shall ask again from where it is now.
        return null;
      }
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        return null;
      }
      wait(left);
    }
    if (execution != null) {
      // On the query's own thread, whose properties its jobs inherit.
      execution.sparkSessionForStream().sparkContext().setLocalProperty("spark.scheduler.pool", pool);
    }
    return announced.higherKey(current);
  }

  /** The segments of an epoch; waits for its announcement, because a restarted query plans its last batch first. */
  synchronized List<Segment> plan(long epoch) throws InterruptedException {
    while (!announced.containsKey(epoch)) {
      wait();
    }
    if (!arrived) {
      restoreWatermarks();
    }
    planned = epoch;
    return announced.get(epoch);
  }
}
