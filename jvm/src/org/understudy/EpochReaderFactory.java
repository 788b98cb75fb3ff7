package org.understudy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.util.ByteArrayReadableSeekableByteChannel;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads segments as columns: Arrow in the bag, Arrow in Spark, no Python process in between. */
record EpochReaderFactory(StructType schema, int[] inputs) implements PartitionReaderFactory {
  private static final BufferAllocator ROOT = new RootAllocator();

  /** Segments are cut at 16 MB; a single row may be larger, up to 1 GB, and has headers. */
  private static final long LARGEST = (1L << 30) + (1L << 20);

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("epochs are read as columns");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new Reader(((EpochStream.EpochPartition) partition).segments().iterator());
  }

  /** The columns of one input, padded to the schema of all inputs where there are several. */
  private ColumnVector[] columns(int input, VectorSchemaRoot root) {
    ColumnVector[] own = root.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
    if (inputs.length == 1) {
      return own;
    }
    ColumnVector[] all = new ColumnVector[schema.size()];
    all[0] = new Padding.Tag(input);
    int at = 1;
    for (int i = 0; i < inputs.length; i++) {
      for (int column = 0; column < inputs[i]; column++, at++) {
        all[at] = i == input ? own[column] : new Padding.Absent(schema.fields()[at].dataType());
      }
    }
    return all;
  }

  private final class Reader implements PartitionReader<ColumnarBatch> {
    private final BufferAllocator allocator = ROOT.newChildAllocator("epoch", 0, Long.MAX_VALUE);
    private final Iterator<Segment> segments;
    private Segment segment;
    private ArrowStreamReader stream;
    private ColumnarBatch batch;

    Reader(Iterator<Segment> segments) {
      this.segments = segments;
    }

    @Override
    public boolean next() throws IOException {
      while (true) {
        if (stream != null && stream.loadNextBatch()) {
          VectorSchemaRoot root = stream.getVectorSchemaRoot();
          batch = new ColumnarBatch(columns(segment.input(), root), root.getRowCount());
          return true;
        }
        closeStream();
        if (!segments.hasNext()) {
          return false;
        }
        segment = segments.next();
        stream = new ArrowStreamReader(new ByteArrayReadableSeekableByteChannel(load(segment)), allocator);
      }
    }

    @Override
    public ColumnarBatch get() {
      return batch;
    }

    @Override
    public void close() throws IOException {
      closeStream();
      allocator.close();
    }

    private void closeStream() throws IOException {
      if (stream != null) {
        stream.close();
        stream = null;
      }
    }
  }

  private static byte[] load(Segment segment) throws IOException {
    if (segment.length() > LARGEST) {
      throw new IOException("a segment of " + segment.length() + " bytes is larger than any that is written");
    }
    byte[] bytes = new byte[(int) segment.length()];
    try (FileChannel file = FileChannel.open(Path.of(segment.path()), StandardOpenOption.READ)) {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      while (buffer.hasRemaining() && file.read(buffer, segment.offset() + buffer.position()) >= 0) {}
      if (buffer.hasRemaining()) {
        throw new DamagedBag(segment.path(), "it is shorter than its header says");
      }
    }
    CRC32 crc = new CRC32();
    crc.update(bytes);
    if (crc.getValue() != segment.crc()) {
      throw new DamagedBag(segment.path(), "its content does not match its checksum");
    }
    return bytes;
  }
}
