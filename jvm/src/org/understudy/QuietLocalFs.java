package org.understudy;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;

/** The same file system for code that asks through FileContext, as Spark's default checkpoint manager does. */
public final class QuietLocalFs extends DelegateToFileSystem {

  // The signature AbstractFileSystem looks for by reflection.
  QuietLocalFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(FsConstants.LOCAL_FS_URI, new QuietLocalFileSystem(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }

  @Override
  public boolean isValidName(String src) {
    // As Hadoop's own local file system: what the operating system takes is valid.
    return true;
  }
}
