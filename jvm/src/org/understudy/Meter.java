package org.understudy;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/** CPU time of every query: of its tasks, wherever they ran, and of the thread that plans its batches. */
public final class Meter extends SparkListener {
  private static final Meter METER = new Meter();

  private final Map<Integer, String> queries = new ConcurrentHashMap<>();
  private final Map<String, Long> tasks = new ConcurrentHashMap<>();

  private Meter() {}

  /** Begins to count in this session. */
  public static void start(SparkContext context) {
    context.addSparkListener(METER);
  }

  static long nanos(StreamExecution query) {
    long own = ManagementFactory.getThreadMXBean().getThreadCpuTime(query.queryExecutionThread().getId());
    return Math.max(0, own) + METER.tasks.getOrDefault(query.id().toString(), 0L);
  }

  static void forget(StreamExecution query) {
    METER.tasks.remove(query.id().toString());
  }

  @Override
  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    String query = event.properties() == null ? null : event.properties().getProperty(StreamExecution.QUERY_ID_KEY());
    if (query != null) {
      queries.put(event.stageInfo().stageId(), query);
    }
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd event) {
    String query = queries.get(event.stageId());
    if (query != null && event.taskMetrics() != null) {
      tasks.merge(query, event.taskMetrics().executorCpuTime(), Long::sum);
    }
  }

  @Override
  public void onStageCompleted(org.apache.spark.scheduler.SparkListenerStageCompleted event) {
    queries.remove(event.stageInfo().stageId());
  }
}
