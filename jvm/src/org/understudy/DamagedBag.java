package org.understudy;

import java.io.IOException;

/** The agent finds the file between the marks and has the bag made again. */
public final class DamagedBag extends IOException {
  DamagedBag(String path, String why) {
    super("damaged bag <<" + path + ">>: " + why);
  }
}
