package org.understudy;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's raw local file system without child processes. Where its native library is absent (that is, almost
 * everywhere but in a Hadoop distribution) the parent runs chmod for every created file, readlink for every rename
 * with options and ls for every permission asked for; each of them forks the whole driver.
 */
final class QuietRawFileSystem extends RawLocalFileSystem {

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    // "unix:mode" and not the portable view: FsPermission carries a sticky bit, PosixFilePermission has none.
    Files.setAttribute(pathToFile(path).toPath(), "unix:mode", (int) permission.toShort());
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    File file = pathToFile(path);
    try {
      return QuietFileStatus.of(file.toPath(), getDefaultBlockSize(path), this);
    } catch (FileSystemException failure) {
      // Not found, or a parent that is a plain file: to Hadoop's callers both mean that the file is not there.
      if (file.exists()) {
        throw failure;
      }
      FileNotFoundException absent = new FileNotFoundException("File " + path + " does not exist");
      absent.initCause(failure);
      throw absent;
    }
  }

  @Override
  public FileStatus getFileLinkStatus(Path path) throws IOException {
    // Real links are rare and take the parent's way, readlink and all; everything else is a plain stat.
    boolean link = Files.isSymbolicLink(pathToFile(path).toPath());
    return link ? super.getFileLinkStatus(path) : getFileStatus(path);
  }
}
