package org.understudy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One micro-batch is exactly one epoch: the offset moves by one, when the gate lets it. */
final class EpochStream implements MicroBatchStream, SupportsAdmissionControl {
  /** How long the query waits in one call; only a bound on how late it notices that it should stop. */
  private static final long WAIT_MILLIS = 1_000;

  private final Gate gate;
  private final StructType schema;
  private final int[] inputs;
  private final long start;
  private final long rowsPerPartition;

  EpochStream(StructType schema, CaseInsensitiveStringMap options) {
    this.gate = Gate.of(options.get("replica"));
    this.schema = schema;
    this.inputs = Arrays.stream(options.get("inputs").split(",")).mapToInt(Integer::parseInt).toArray();
    this.start = options.getLong("start", 0);
    this.rowsPerPartition = options.getLong("rowsPerPartition", 1 << 18);
  }

  @Override
  public Offset initialOffset() {
    return new Epoch(start - 1);
  }

  @Override
  public Offset latestOffset(Offset from, ReadLimit limit) {
    try {
      Long next = gate.after(((Epoch) from).number(), WAIT_MILLIS);
      return next == null ? null : new Epoch(next);
    } catch (InterruptedException e) {
      throw Interrupted.unchecked(e);
    }
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("Spark asks sources with admission control for the offset after another");
  }

  /**
   * Few rows make one partition, which keeps their order and needs no shuffle; many make several. The number depends on
   * the rows only, never on the machine, so that sums of floating-point numbers are the same on every node.
   */
  @Override
  public InputPartition[] planInputPartitions(Offset from, Offset to) {
    List<InputPartition> partitions = new ArrayList<>();
    List<Segment> current = new ArrayList<>();
    long rows = 0;
    for (Segment segment : segments((Epoch) to)) {
      if (rows > 0 && rows + segment.rows() > rowsPerPartition) {
        partitions.add(new EpochPartition(List.copyOf(current)));
        current.clear();
        rows = 0;
      }
      current.add(segment);
      rows += segment.rows();
    }
    partitions.add(new EpochPartition(List.copyOf(current)));
    return partitions.toArray(InputPartition[]::new);
  }

  private List<Segment> segments(Epoch epoch) {
    try {
      return gate.plan(epoch.number());
    } catch (InterruptedException e) {
      throw Interrupted.unchecked(e);
    }
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new EpochReaderFactory(schema, inputs);
  }

  @Override
  public Offset deserializeOffset(String json) {
    return new Epoch(Long.parseLong(json));
  }

  @Override
  public void commit(Offset end) {}

  @Override
  public void stop() {}

  record EpochPartition(List<Segment> segments) implements InputPartition {}

  /** Spark compares offsets with equals, which a class extending its Offset must spell out. */
  static final class Epoch extends Offset {
    private final long number;

    Epoch(long number) {
      this.number = number;
    }

    long number() {
      return number;
    }

    @Override
    public String json() {
      return Long.toString(number);
    }
  }

  /** Lets Spark see the interruption by which it stops a query, through methods that declare no exception. */
  static final class Interrupted {
    @SuppressWarnings("unchecked")
    static <E extends Throwable> RuntimeException unchecked(Throwable e) throws E {
      throw (E) e;
    }
  }
}
