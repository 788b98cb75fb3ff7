package org.understudy;

import java.io.IOException;

/** The agent finds the file between the marks and has the bag made again. */
public final class DamagedBag extends IOException {
  private static final long serialVersionUID = 1L;

  DamagedBag(String path, String why) {
    super("damaged bag <<" + path + ">>: " + why);
  }
}
