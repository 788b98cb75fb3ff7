package org.understudy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What one replica may read, announced epoch by epoch from Python.
 *
 * <p>The query behind the gate waits here instead of polling: an announcement wakes it at once, and a gate that
 * announces nothing holds its query still. Deciding what may be read, and where a bag lies, stays in Python.
 */
public final class Gate {
  private static final Map<String, Gate> GATES = new ConcurrentHashMap<>();

  private final TreeMap<Long, List<Segment>> announced = new TreeMap<>();
  private long planned = -1;
  private long committed = -1;

  /** The gate of a replica, made on first use: the query and the agent may come in either order. */
  public static Gate of(String replica) {
    return GATES.computeIfAbsent(replica, name -> new Gate());
  }

  public static void remove(String replica) {
    GATES.remove(replica);
  }

  /** Lets the query see one more epoch; the lines are those of {@link Segment#parse}. */
  public synchronized void announce(long epoch, String lines) {
    List<Segment> segments = new ArrayList<>();
    lines.lines().forEach(line -> segments.add(Segment.parse(line)));
    announced.put(epoch, segments);
    notifyAll();
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

  /** The epoch after {@code current} once it is announced, or null if that takes longer than {@code millis}. */
  synchronized Long after(long current, long millis) throws InterruptedException {
    // Spark asks for the next offset only when the batch before it is committed.
    committed = Math.max(committed, current);
    announced.headMap(current, true).clear();
    notifyAll();
    long deadline = System.nanoTime() + millis * 1_000_000;
    while (!announced.containsKey(current + 1)) {
      long left = (deadline - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        return null;
      }
      wait(left);
    }
    return current + 1;
  }

  /** The segments of an epoch; waits for its announcement, because a restarted query plans its last batch first. */
  synchronized List<Segment> plan(long epoch) throws InterruptedException {
    while (!announced.containsKey(epoch)) {
      wait();
    }
    planned = epoch;
    return announced.get(epoch);
  }
}
