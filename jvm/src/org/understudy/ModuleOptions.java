package org.understudy;

import java.util.Optional;

import org.apache.spark.launcher.JavaModuleOptions;

/** Prints the JVM options this Spark needs on this Java, one to a line, so that we need not guess them. */
final class ModuleOptions {
  private static final String OPENS = "--add-opens=";

  private ModuleOptions() {}

  public static void main(String[] args) {
    for (String option : JavaModuleOptions.defaultModuleOptionArray()) {
      if (isWanted(option)) {
        System.out.println(option);
      }
    }
  }

  private static boolean isWanted(String option) {
    if (option.startsWith(OPENS)) {
      // Newer Javas have dropped some of the packages, and warn at every start when asked to open them.
      String[] target = option.substring(OPENS.length()).split("[/=]");
      Optional<Module> module = ModuleLayer.boot().findModule(target[0]);
      return module.isPresent() && module.get().getPackages().contains(target[1]);
    }
    // The incubating vector module serves linear algebra only, and it too prints a warning.
    return !option.startsWith("--add-modules");
  }
}
