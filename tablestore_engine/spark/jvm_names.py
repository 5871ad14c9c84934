"""Packages and classes of the JVM by name, each looked up once in a process.

WHY      py4j asks the JVM for each part of `jvm.org.apache.spark.sql`, each time. The JVM looks for a class of that
         name in all jars of Spark: of the driver's thread a tenth of the time went into it (decision 0127).
INVARIANT  only what is there is kept: a class of a jar that is added later is found.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage

_ROOTS = ("org", "java", "scala")
_IMPORTED = ("PythonUtils", "PythonSQLUtils", "functions")  # pyspark itself asks for them in every statement


class _KnownPackage(JavaPackage):  # type: ignore[misc]  # py4j has no types
    """A package that keeps its classes and the packages in it."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - py4j has no types
        found = super().__getattr__(name)
        if isinstance(found, JavaPackage) and name[:1].islower():  # what is capitalized may become a class
            found = _KnownPackage(found._fqn, found._gateway_client, found._jvm_id)
        if isinstance(found, (JavaClass, _KnownPackage)):
            self.__dict__[name] = found
        return found


def keep_names(jvm: Any) -> None:  # noqa: ANN401 - py4j has no types
    """From now on names are looked up once, for all who have this view of the JVM."""
    known = vars(jvm)
    for name in _ROOTS:
        if not isinstance(known.get(name), _KnownPackage):
            known[name] = _KnownPackage(name, jvm._gateway_client, jvm._id)
    for name in _IMPORTED:
        if isinstance(found := getattr(jvm, name), JavaClass):
            known[name] = found
