package org.understudy;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * A number in a file that grows while this JVM runs. The process beside it reads the file, so it can tell a JVM that is
 * stopped, or that does nothing but collect garbage, without asking it anything.
 */
public final class Pulse {
  private static final long EVERY_MILLIS = 20;

  private Pulse() {}

  /** Begins to beat; the file must exist and hold eight bytes, because a mapped file on a full disk cannot grow. */
  public static void start(String path) throws IOException {
    MappedByteBuffer file = map(Path.of(path));
    Thread thread = new Thread(() -> beat(file), "understudy-pulse");
    thread.setDaemon(true);
    thread.setPriority(Thread.MAX_PRIORITY);
    thread.start();
  }

  private static MappedByteBuffer map(Path path) throws IOException {
    try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      MappedByteBuffer mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, Long.BYTES);
      mapped.order(ByteOrder.nativeOrder());
      return mapped;
    }
  }

  private static void beat(MappedByteBuffer file) {
    try {
      for (long count = 1; ; count++) {
        file.putLong(0, count);
        Thread.sleep(EVERY_MILLIS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
