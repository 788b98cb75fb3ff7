package org.understudy;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The streaming source of every operator slice; its offset is the epoch number.
 *
 * <p>Options: {@code replica} names the {@link Gate}, {@code start} is the first epoch of a query without a
 * checkpoint, {@code inputs} holds the number of columns of each input, separated by commas. With one input the schema
 * is that input's; with several it is a tag column {@code _input} and then the columns of all inputs in order.
 */
public final class EpochSource implements TableProvider {

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException("the epoch source needs a schema");
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new EpochTable(schema);
  }

  // Spark still asks tables with a schema of their own by the old method.
  @SuppressWarnings("deprecation")
  private record EpochTable(StructType schema) implements Table, SupportsRead {
    @Override
    public String name() {
      return "understudy";
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> new EpochScan(schema, options);
    }
  }

  private record EpochScan(StructType schema, CaseInsensitiveStringMap options) implements Scan {
    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public String description() {
      return "epochs of " + options.get("replica");
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
      return new EpochStream(schema, options);
    }
  }
}
