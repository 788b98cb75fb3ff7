package org.understudy;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker;
import scala.Option;

/**
 * The watermark of every input of a query, as of every epoch.
 *
 * <p>With several watermarks in a query Spark's watermark is the smallest of them, and that one alone is in a checkpoint;
 * those it was chosen from live in memory. A query that goes on from a checkpoint without them waits until every input
 * has had rows again. So they are read after every batch, travel with the checkpoint, and are written back where a query
 * starts on one or jumps to one. Watermarks are known by their place in the plan: their ids are new with every start.
 *
 * <p>With one watermark, or where the largest counts, Spark's checkpoint says it all, and the text here is empty. Only to
 * be used on the query's own thread, except for {@link #of}.
 */
final class Watermarks {
  /** A shipper asks for one of the last few epochs. */
  private static final int KEPT = 64;
  private static final String POLICY = "spark.sql.streaming.multipleWatermarkPolicy";
  private static final String NONE = "-";

  private final TreeMap<Long, String> known = new TreeMap<>();
  private List<UUID> nodes;

  /** How many watermarks the plan of a frame has, if their smallest counts; fewer than two are none to keep. */
  static int count(Dataset<?> frame) {
    var classic = (org.apache.spark.sql.classic.Dataset<?>) frame;
    String policy = classic.sparkSession().conf().get(POLICY, "min");
    return new HashSet<>(several(classic.queryExecution().analyzed(), policy)).size();
  }

  /** The watermarks as of an epoch, separated by commas; null if they are not known. */
  String of(long epoch) {
    return nodes != null && nodes.isEmpty() ? "" : known.get(epoch);
  }

  /** Remembers what the query holds, which has just committed an epoch or starts after it. */
  void note(MicroBatchExecution execution, long epoch) {
    List<UUID> marked = nodes(execution);
    if (marked.isEmpty() || known.containsKey(epoch)) {
      return;
    }
    var current = execution.watermarkTracker().watermarkMap();
    List<String> values = new ArrayList<>();
    for (UUID node : marked) {
      Option<Object> value = current.apply(node);
      values.add(value.isEmpty() ? NONE : value.get().toString());
    }
    known.put(epoch, String.join(",", values));
    while (known.size() > KEPT) {
      known.pollFirstEntry();
    }
  }

  /** Gives a query that goes on from a checkpoint the watermarks that belong to it. */
  void restore(MicroBatchExecution execution, String text) {
    List<UUID> marked = nodes(execution);
    if (marked.isEmpty()) {
      return;
    }
    String[] values = text.split(",");
    if (values.length != marked.size()) {
      throw new IllegalStateException(
          "the operator has " + marked.size() + " watermarks, its checkpoint holds '" + text + "'");
    }
    WatermarkTracker tracker = execution.watermarkTracker();
    synchronized (tracker) {
      scala.collection.mutable.Map<UUID, Option<Object>> current = inside(tracker);
      for (int place = 0; place < values.length; place++) {
        Option<Object> value = values[place].equals(NONE) ? Option.empty() : Option.apply(Long.valueOf(values[place]));
        current.put(marked.get(place), value);
      }
    }
  }

  private List<UUID> nodes(MicroBatchExecution execution) {
    if (nodes == null) {
      nodes = several(execution.logicalPlan(), execution.sparkSessionForStream().conf().get(POLICY, "min"));
    }
    return nodes;
  }

  /** The ids of the watermarks in a plan, from the top down and from left to right; none unless they must be kept. */
  private static List<UUID> several(LogicalPlan plan, String policy) {
    List<UUID> found = new ArrayList<>();
    collect(plan, found);
    boolean needed = policy.equalsIgnoreCase("min") && new HashSet<>(found).size() > 1;
    return needed ? List.copyOf(found) : List.of();
  }

  private static void collect(LogicalPlan plan, List<UUID> found) {
    if (plan instanceof EventTimeWatermark mark) {
      found.add(mark.nodeId());
    }
    var children = plan.children().iterator();
    while (children.hasNext()) {
      collect(children.next(), found);
    }
  }

  @SuppressWarnings("unchecked")
  private static scala.collection.mutable.Map<UUID, Option<Object>> inside(WatermarkTracker tracker) {
    try {
      Field field = WatermarkTracker.class.getDeclaredField("operatorToWatermarkMap");
      field.setAccessible(true);
      return (scala.collection.mutable.Map<UUID, Option<Object>>) field.get(tracker);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this Spark keeps the watermarks of a query elsewhere", e);
    }
  }
}
