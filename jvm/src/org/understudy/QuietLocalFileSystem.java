package org.understudy;

import java.io.IOException;

import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The {@code file:} scheme for nodes: no child processes, no .crc beside every file. It stays a LocalFileSystem, because
 * Hadoop's FileSystem.getLocal casts to that and RocksDB snapshots go through it.
 */
public final class QuietLocalFileSystem extends LocalFileSystem {

  public QuietLocalFileSystem() {
    super(new QuietRawFileSystem());
    setWriteChecksum(false);
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    // A .crc written by somebody else is still honoured; ours never have one and skip the checking stream.
    boolean checked = getRawFileSystem().exists(getChecksumFile(path));
    return checked ? super.open(path, bufferSize) : getRawFileSystem().open(path, bufferSize);
  }
}
