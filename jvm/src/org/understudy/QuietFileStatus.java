package org.understudy;

import java.io.DataOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.GroupPrincipal;
import java.nio.file.attribute.UserPrincipal;
import java.util.Map;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/** One stat call; owner and group are looked up when somebody asks, because each costs a walk of the user database. */
final class QuietFileStatus extends FileStatus {
  private static final long serialVersionUID = 1L;
  private static final int MODE_BITS = 01777;

  private final transient java.nio.file.Path file;
  private boolean named;

  private QuietFileStatus(
      java.nio.file.Path file, Map<String, Object> stat, long blockSize, Path qualified) {
    super(
        (Long) stat.get("size"),
        (Boolean) stat.get("isDirectory"),
        1,
        blockSize,
        ((FileTime) stat.get("lastModifiedTime")).toMillis(),
        ((FileTime) stat.get("lastAccessTime")).toMillis(),
        new FsPermission((short) ((Integer) stat.get("mode") & MODE_BITS)),
        "",
        "",
        qualified);
    this.file = file;
  }

  static QuietFileStatus of(java.nio.file.Path file, long blockSize, FileSystem owner) throws IOException {
    Map<String, Object> stat =
        Files.readAttributes(file, "unix:size,isDirectory,lastModifiedTime,lastAccessTime,mode");
    Path qualified = new Path(file.toString()).makeQualified(owner.getUri(), owner.getWorkingDirectory());
    return new QuietFileStatus(file, stat, blockSize, qualified);
  }

  @Override
  public String getOwner() {
    name();
    return super.getOwner();
  }

  @Override
  public String getGroup() {
    name();
    return super.getGroup();
  }

  @Override
  @Deprecated
  public void write(DataOutput out) throws IOException {
    name();
    super.write(out);
  }

  private void name() {
    if (named || file == null) {
      return;
    }
    named = true;
    try {
      Map<String, Object> stat = Files.readAttributes(file, "unix:owner,group");
      setOwner(((UserPrincipal) stat.get("owner")).getName());
      setGroup(((GroupPrincipal) stat.get("group")).getName());
    } catch (IOException gone) {
      // Deleted since it was listed. Hadoop's own status fails here; an unknown owner is the milder truth.
      named = true;
    }
  }
}
