package org.understudy;

import org.apache.spark.launcher.JavaModuleOptions;

/** Prints the JVM options this Spark needs to start at all, one to a line, so that we need not guess them. */
final class ModuleOptions {
  private ModuleOptions() {}

  public static void main(String[] args) {
    for (String option : JavaModuleOptions.defaultModuleOptionArray()) {
      System.out.println(option);
    }
  }
}
