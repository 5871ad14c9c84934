"""Java programs of one source file: run as they are where there is a JDK, else compiled first by a fetched compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

from integration_tests.interop.environments import fetched, java_command

_COMPILER = "ecj-3.40.0.jar"
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx768m")


def java_program(source: Path, jars: tuple[Path, ...], *flags: str) -> list[str]:
    """The command that starts it, with these jars and all jars of these folders. Raises CannotMake."""
    java = java_command()
    classpath = ":".join(f"{one}/*" if one.is_dir() else str(one) for one in jars)
    if Path(java).with_name("javac").exists():
        return [java, *_FLAGS, *flags, "-cp", classpath, str(source)]
    classes = source.parent / "classes"
    _compile(java, source, jars, classes)
    return [java, *_FLAGS, *flags, "-cp", f"{classes}:{classpath}", source.stem]


def _compile(java: str, source: Path, jars: tuple[Path, ...], classes: Path) -> None:
    dependency = '<dependency org="org.eclipse.jdt" name="ecj" rev="3.40.0" conf="default->master"/>'
    compiler = fetched("interop-ecj-3.40.0", dependency, (_COMPILER,), 3) / _COMPILER
    files = [file for one in jars for file in (sorted(one.glob("*.jar")) if one.is_dir() else (one,))]
    options = ["-17", "-nowarn", "-cp", ":".join(map(str, files)), "-d", str(classes)]
    command = [java, "-jar", str(compiler), *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
