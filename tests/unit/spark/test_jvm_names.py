"""Names of the JVM are looked up once; a class that is not there yet is looked up again."""

from __future__ import annotations

from types import SimpleNamespace

from py4j import protocol
from py4j.java_gateway import JVMView

from tablestore_engine.spark.jvm_names import keep_names


class Client:
    """A JVM with these classes; `asked`: the names that it was asked for."""

    converters: tuple[()] = ()
    gateway_property = SimpleNamespace(pool=None)

    def __init__(self, *classes: str) -> None:
        self.classes, self.asked = {*classes}, list[str]()

    def send_command(self, command: str) -> str:
        """As the JVM answers, which takes each name that is no class for a package."""
        name = command.splitlines()[2]
        self.asked.append(name)
        return f"{protocol.SUCCESS_CLASS}{name}" if name in self.classes else protocol.SUCCESS_PACKAGE


def test_packages_and_classes_are_looked_up_once() -> None:
    """Also by another use of the same view, which is prepared again."""
    client = Client("org.apache.Path", "PythonUtils", "PythonSQLUtils", "functions")
    jvm = JVMView(client, "view", id="rj")
    for _ in range(3):
        keep_names(jvm)
        assert jvm.org.apache.Path._fqn == "org.apache.Path"
        assert jvm.PythonUtils._fqn == "PythonUtils"
    assert client.asked == ["PythonUtils", "PythonSQLUtils", "functions", "org.apache", "org.apache.Path"]


def test_class_that_comes_later_is_found() -> None:
    """Until a jar is added its name is that of a package."""
    client = Client()
    jvm = JVMView(client, "view", id="rj")
    keep_names(jvm)
    assert jvm.org.added.Reader._fqn == "org.added.Reader"
    client.classes.add("org.added.Reader")
    assert type(jvm.org.added.Reader).__name__ == "JavaClass"
