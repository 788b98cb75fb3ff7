package org.understudy;

import java.io.Serializable;

/** A piece of a bag: one Arrow stream at a place in a file, belonging to one input of the operator. */
public record Segment(int input, long offset, long length, long rows, long crc, String path)
    implements Serializable {

  /** Reads {@code input offset length rows crc path}, separated by tabs. */
  public static Segment parse(String line) {
    String[] parts = line.split("\t", 6);
    return new Segment(
        Integer.parseInt(parts[0]),
        Long.parseLong(parts[1]),
        Long.parseLong(parts[2]),
        Long.parseLong(parts[3]),
        Long.parseLong(parts[4]),
        parts[5]);
  }
}
