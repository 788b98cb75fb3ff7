"""Compile jvm/src into the jar the package carries, the same bytes every time.

The manifest holds a digest of the sources, so a test can tell a stale jar without a Java compiler.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "jvm" / "src"
JAR = ROOT / "src" / "understudy" / "stream" / "jvm" / "understudy.jar"
ATTRIBUTE = "Understudy-Sources-SHA256"
RELEASE = "17"
# The earliest time a zip entry can hold: any fixed one will do.
EPOCH = (1980, 1, 1, 0, 0, 0)


def sources(root: Path = SOURCES) -> list[Path]:
    """Java files and, beside them, what goes into the jar as it is (META-INF/services and the like)."""
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted(files, key=lambda path: path.relative_to(root).as_posix())


def digest(root: Path = SOURCES) -> str:
    """Names and contents, each preceded by its length, so that no two trees can look the same."""
    total = hashlib.sha256()
    for path in sources(root):
        for part in (path.relative_to(root).as_posix().encode(), path.read_bytes()):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def recorded(jar: Path = JAR) -> str | None:
    if not jar.exists():
        return None
    with zipfile.ZipFile(jar) as archive:
        lines = archive.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "").splitlines()
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    return values.get(ATTRIBUTE)


def compile_to(classes: Path) -> None:
    spec = find_spec("pyspark")
    javac = shutil.which("javac")
    if javac is None or spec is None or spec.origin is None:
        sys.exit("make jar needs javac 17 or newer on the PATH and the project's environment (pyspark).")
    jars = Path(spec.origin).parent / "jars" / "*"
    command = [javac, "--release", RELEASE, "-g:source,lines", "-Xlint:all,-classfile,-path"]
    command += ["-proc:none", "-cp", str(jars), "-d", str(classes)]
    subprocess.run([*command, *(str(path) for path in sources() if path.suffix == ".java")], check=True)


def pack(classes: Path, jar: Path) -> None:
    manifest = f"Manifest-Version: 1.0\r\n{ATTRIBUTE}: "
    value = digest()
    # A manifest line holds 72 bytes; the rest goes on after a leading space.
    room = 72 - len(ATTRIBUTE) - 2
    manifest += f"{value[:room]}\r\n {value[room:]}\r\n\r\n"
    content = {path.relative_to(classes).as_posix(): path for path in classes.rglob("*.class")}
    content |= {path.relative_to(SOURCES).as_posix(): path for path in sources() if path.suffix != ".java"}
    entries = {"META-INF/MANIFEST.MF": manifest.encode()}
    entries |= {name: content[name].read_bytes() for name in sorted(content)}
    fresh = jar.with_suffix(".tmp")
    with zipfile.ZipFile(fresh, "w") as archive:
        # The manifest comes first, as the format asks; the rest in the order of the names.
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    fresh.replace(jar)


def build() -> None:
    with tempfile.TemporaryDirectory() as folder:
        compile_to(Path(folder))
        JAR.parent.mkdir(parents=True, exist_ok=True)
        pack(Path(folder), JAR)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the jar matches the sources")
    if parser.parse_args().check:
        sys.exit(None if recorded() == digest() else f"{JAR.relative_to(ROOT)} is stale: run make jar")
    build()
    sys.stdout.write(f"{JAR.relative_to(ROOT)}: {JAR.stat().st_size} bytes, sources {digest()[:12]}\n")
