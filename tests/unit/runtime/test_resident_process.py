"""Commands that are served behave as programs of their own: files, status, signals, environment; nothing is stale.

The program is a module that executes its first argument. Each caller is a process, as a shell starts it.
"""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tablestore_engine.runtime.resident.process_client import keep_jvm, stop_session
from tablestore_engine.runtime.resident.session_place import KeptJvm, SessionPlace, place_of
from tablestore_engine.runtime.server_process import start_time
from tests.doses import cases

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are served on Linux only")
PROGRAM = """
import sys
from tablestore_engine.runtime.outside_world import SYSTEM
VERSION = 1
def load():
    pass
def run():
    exec(sys.argv[1], {"__name__": "the_command", "SYSTEM": SYSTEM, "VERSION": VERSION})
"""
CALLER = """
import signal, sys
from tablestore_engine.errors import TablestoreError
from tablestore_engine.runtime.resident.process_client import run_served
try:
    status = run_served(sys.argv[1:], "small_program")
except TablestoreError as error:
    sys.exit(str(error))
sys.exit(77 if status is None else status)
"""
NOT_SERVED = 77
HANG_SECONDS = 300  # not a measure: by then it never comes


@dataclass(frozen=True)
class Caller:
    """`folder`: where commands are typed; `library`: of the program's module."""

    folder: Path
    library: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def place(self) -> SessionPlace:
        """Of the folder."""
        return place_of(self.folder)

    @property
    def server(self) -> int | None:
        """Its process."""
        return self.place.process()

    def start(self, code: str, **more: object) -> subprocess.Popen[str]:
        """A caller that runs."""
        files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        settings = {**files, "preexec_fn": _as_in_a_terminal, **more}
        process: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload] # settings of one test
            [sys.executable, "-c", CALLER, "program", code],
            **{"cwd": self.folder, "env": dict(self.environment), "text": True, **settings},
        )
        self.started.append(process)
        return process

    def run(self, code: str, **more: object) -> tuple[int, str]:
        """Exit status and both outputs of a caller."""
        caller = self.start(code, **more)
        out, err = caller.communicate(timeout=HANG_SECONDS)
        return caller.returncode, (out or "") + (err or "")

    def told(self, code: str, **more: object) -> str:
        """The output of a caller that ends well."""
        status, said = self.run(code, **more)
        assert status == 0, said
        return said.strip()


def _as_in_a_terminal() -> None:
    """nohup, and the background of a script, ignore some of them; so would all processes that they start."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """A resident session is asked for in its folder."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    library, folder = tmp_path / "library", tmp_path / "project"
    for path in (library, folder):
        path.mkdir()
    (library / "small_program.py").write_text(PROGRAM)
    roots = os.pathsep.join(filter(None, [str(library), os.environ.get("PYTHONPATH")]))
    made = Caller(folder, library, {**os.environ, "PYTHONPATH": roots})
    made.place.want(600)
    yield made
    for process in made.started:  # of a test that failed; its command ends with it
        process.kill()
    stop_session(made.place)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Fails only when it would hang."""
    end = time.monotonic() + HANG_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_a_command_has_the_files_words_folder_and_status_of_its_caller(caller: Caller) -> None:
    """One server for all of them; each command in a process of its own."""
    code = "import os, sys; print(sys.argv[0], os.getcwd(), sys.stdin.read()); print('e', file=sys.stderr); sys.exit(3)"
    with (caller.folder / "in").open("w+") as file:
        file.write("from a file")
        file.seek(0)
        status, said = caller.run(code, stdin=file)
    assert (status, said) == (3, f"program {caller.folder.resolve()} from a file\ne\n")
    server = caller.server
    pids = {caller.told("import os; print(os.getpid())") for _ in range(3)}
    assert len(pids) == 3
    assert str(server) not in pids
    assert caller.server == server


def test_bytes_go_through_as_they_are(caller: Caller) -> None:
    """Output in the encoding of the caller, input from a pipe, nothing of the server's own output among it."""
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); print('ä€')"
    done = caller.start(code, stdin=subprocess.PIPE, text=False)
    out, err = done.communicate(bytes(range(256)) * 4096, timeout=HANG_SECONDS)
    assert (out, err, done.returncode) == (bytes(range(256)) * 4096 + "ä€\n".encode(), b"", 0)


def test_an_error_is_a_traceback_and_status_one(caller: Caller) -> None:
    """As Python prints it."""
    status, said = caller.run("1 / 0")
    assert status == 1
    assert said.rstrip().endswith("ZeroDivisionError: division by zero")


@pytest.mark.nightly  # by day processes of their own
def test_each_command_draws_numbers_of_its_own(caller: Caller) -> None:
    """Forked processes would share the state of a generator."""
    drawn = {caller.told("import uuid; print(SYSTEM.random.random(), SYSTEM.new_uuid())") for _ in range(3)}
    assert len({one.split()[0] for one in drawn}) == 3
    assert len({one.split()[1] for one in drawn}) == 3


@pytest.mark.nightly  # by day files, words and status of a command
def test_what_exit_handlers_do_is_done_once_by_the_command(caller: Caller) -> None:
    """Neither its supervisor nor the server runs them."""
    caller.told("import atexit; atexit.register(lambda: open('ended', 'a').write('x'))")
    caller.told("pass")
    assert (caller.folder / "ended").read_text() == "x"


@pytest.mark.parametrize("number", cases([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1], 2))
def test_a_signal_of_the_caller_reaches_the_command(caller: Caller, number: signal.Signals) -> None:
    """The command's handler runs, and decides how it ends."""
    code = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda n, _: sys.exit(40))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)"
    )
    started = caller.start(code)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    started.send_signal(number)
    assert started.wait(HANG_SECONDS) == 40


def test_a_command_that_a_signal_ends_ends_its_caller_by_the_same(caller: Caller) -> None:
    """A shell sees 137."""
    assert caller.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")[0] == -signal.SIGKILL


def test_ctrl_c_is_an_interrupt_unless_the_caller_ignores_it(caller: Caller) -> None:
    """A job in the background of a script ignores it."""
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert caller.told(code) == "False"
    assert caller.told(code, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) == "True"


def test_a_terminal_is_one_for_the_command_and_ctrl_z_stops_it(caller: Caller) -> None:
    """It stops with its caller, and continues with it."""
    code = (
        "import os, sys, time; print(sys.stdout.isatty(), os.getpid(), flush=True); input(); print('gone on')"
    )
    pid, terminal = pty.fork()
    if not pid:
        _as_in_a_terminal()
        os.chdir(caller.folder)
        os.execve(sys.executable, [sys.executable, "-c", CALLER, "program", code], dict(caller.environment))
    said = b""
    while b"\n" not in said:
        said += os.read(terminal, 1000)
    word, command = said.split()[:2]
    assert word == b"True"
    os.kill(pid, signal.SIGTSTP)
    state = Path(f"/proc/{int(command)}/stat")
    wait_for(lambda: state.read_text().rpartition(")")[2].split()[0] == "T")
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    os.kill(pid, signal.SIGCONT)
    os.write(terminal, b"\n")
    said = b""
    while b"gone on" not in said:
        said += os.read(terminal, 1000)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


def test_a_changed_module_is_loaded_again(caller: Caller) -> None:
    """Also when the new file has the same size."""
    assert caller.told("print(VERSION)") == "1"
    server, file = caller.server, caller.library / "small_program.py"
    file.write_text(PROGRAM.replace("VERSION = 1", "VERSION = 2"))
    later = file.stat().st_mtime + 2  # Python's compiled files know their source by size and whole seconds
    os.utime(file, (later, later))
    assert caller.told("print(VERSION)") == "2"
    assert caller.server != server


@pytest.mark.nightly  # by day a changed module is loaded again
def test_a_changed_list_of_import_folders_is_seen(caller: Caller, tmp_path: Path) -> None:
    """A .pth file that is written over leaves its folder as it was."""
    (caller.library / "more.pth").write_text("one")
    assert caller.told("print(VERSION)") == "1"
    server = caller.server
    (caller.library / "more.pth").write_text("two")
    assert caller.told("print(VERSION)") == "1"
    assert caller.server != server


@pytest.mark.nightly  # by day a changed module is loaded again
def test_a_package_that_is_added_is_seen(caller: Caller) -> None:
    """A module of the same name in front of another one would be imported by a process of its own."""
    code = (
        "import importlib\ntry: print(importlib.import_module('added').X)\nexcept ImportError: print('none')"
    )
    assert caller.told(code) == "none"
    (caller.library / "added.py").write_text("X = 5")
    assert caller.told(code) == "5"


@pytest.mark.nightly  # by day a changed module is loaded again
def test_compiled_files_that_the_first_import_writes_do_not_count(caller: Caller) -> None:
    """They change the folder of the module, while the program is loaded."""
    later = caller.library.parent / "later"
    later.mkdir()
    (later / "imported_later.py").write_text("")
    (caller.library / "small_program.py").write_text(
        "import time\ntime.sleep(0.05)  # longer than a tick of the file system's clock\nimport imported_later\n"
        + PROGRAM
    )
    writing = {name: value for name, value in caller.environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    writing["PYTHONPATH"] += os.pathsep + str(later)
    assert caller.told("print(VERSION)", env=writing) == "1"
    assert (later / "__pycache__").exists()
    server = caller.server
    assert caller.told("print(VERSION)", env=writing) == "1"
    assert caller.server == server


@pytest.mark.nightly  # by day a changed module, another list of folders
def test_other_circumstances_load_the_program_again(caller: Caller) -> None:
    """A variable, the mask of new files, a limit, the priority; what names a terminal is only passed on."""
    server = caller.told("import os; print(os.getppid())") and caller.server
    code = "import os; print(os.environ.get('WINDOW'), os.environ.get('NEW'))"
    assert caller.told(code, env={**caller.environment, "WINDOW": "7"}) == "7 None"
    assert caller.told(code) == "None None"
    assert caller.server == server
    assert caller.told(code, env={**caller.environment, "NEW": "x"}) == "None x"
    assert caller.server != server
    code = "import os; m = os.umask(0); print(oct(m), os.nice(0))"
    assert caller.told(code, umask=0o27, preexec_fn=lambda: os.nice(3)) == "0o27 3"
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    limits = (resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    assert caller.told(code, preexec_fn=lambda: resource.setrlimit(*limits)) == "512"


def test_commands_run_side_by_side_and_survive_the_server(caller: Caller) -> None:
    """A server that is killed, or stopped, leaves its commands alone; the next caller finds another one."""
    code = "print('ready', flush=True); import sys; sys.stdin.read(); print('done')"
    running = [caller.start(code, stdin=subprocess.PIPE) for _ in range(3)]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    server = caller.server
    assert server is not None
    os.kill(server, signal.SIGKILL)
    assert caller.told("print('another')") == "another"
    assert caller.server not in {None, server}
    stop_session(caller.place)
    for one in running:
        assert one.communicate("", timeout=HANG_SECONDS)[0] == "done\n"
        assert one.returncode == 0


def test_the_command_of_a_killed_caller_is_ended(caller: Caller) -> None:
    """By SIGTERM, as a terminal that is closed would."""
    code = (
        "import os, pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path('ended').touch(), sys.exit()))\n"
        "print(os.getpid(), flush=True)\n"
        "while True: time.sleep(0.05)"
    )
    started = caller.start(code)
    assert started.stdout is not None
    command = int(started.stdout.readline())
    started.kill()
    started.wait()
    wait_for(lambda: start_time(command) is None)
    assert (caller.folder / "ended").exists()


def test_a_killed_supervisor_ends_the_command_and_is_reported(caller: Caller) -> None:
    """How the command ended is not known then; it is not run again."""
    code = (
        "import os, sys, time\n"
        "open('runs', 'a').write('x')\n"
        "print(os.getpid(), os.getppid(), flush=True)\n"
        "while True: time.sleep(0.05)"
    )
    started = caller.start(code)
    assert started.stdout is not None
    command, supervisor = map(int, started.stdout.readline().split())
    os.kill(supervisor, signal.SIGKILL)
    assert "TS1961" in started.communicate(timeout=HANG_SECONDS)[1]
    assert started.returncode == 1
    wait_for(lambda: start_time(command) is None)
    assert (caller.folder / "runs").read_text() == "x"


@pytest.mark.nightly  # by day requests that are none, and a killed supervisor
def test_a_server_that_does_not_answer_begins_nothing_later(caller: Caller) -> None:
    """The caller gives up and runs the program itself; what it asked for is not run as well."""
    caller.told("pass")
    server = caller.server
    assert server is not None
    os.kill(server, signal.SIGSTOP)
    impatient = CALLER.replace("try:", "process_client._ANSWER_SECONDS = 0.5\ntry:").replace(
        "import run_served",
        "import run_served\nfrom tablestore_engine.runtime.resident import process_client",
    )
    code = "open('begun', 'w')"
    words = [sys.executable, "-c", impatient, "program", code]
    done = subprocess.run(words, cwd=caller.folder, env=dict(caller.environment), check=False)
    assert done.returncode == NOT_SERVED
    os.kill(server, signal.SIGCONT)
    assert caller.told("print('next')") == "next"
    assert caller.server == server
    wait_for(lambda: not Path(f"/proc/{server}/task/{server}/children").read_text())
    assert not (caller.folder / "begun").exists()


def test_two_callers_at_once_start_one_server(caller: Caller) -> None:
    """The second one waits for it."""
    started = [caller.start("import os; print(os.getpid())") for _ in range(4)]
    told = [one.communicate(timeout=HANG_SECONDS)[0] for one in started]
    assert len(set(told)) == 4
    assert all(one.returncode == 0 for one in started)
    log = (caller.place.folder / "process.log").read_text()
    assert log == ""


def test_it_ends_when_nobody_comes(caller: Caller) -> None:
    """After the idle time; not while a command runs."""
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    long = caller.start(code, stdin=subprocess.PIPE)
    assert long.stdout is not None
    long.stdout.readline()
    server = caller.server
    assert server is not None
    caller.place.want(2.0)  # from here on: a slow machine takes longer than that to start a command
    time.sleep(4)  # two idle times
    assert caller.server == server
    long.communicate("", timeout=HANG_SECONDS)
    wait_for(lambda: caller.server is None)
    wait_for(lambda: start_time(server) is None)
    assert not (caller.place.folder / "socket").exists()


@dataclass(frozen=True)
class Jvm:
    """A program that ends with its input, as a JVM does, and is written down as one."""

    process: subprocess.Popen[bytes]

    @classmethod
    def keep(cls, place: SessionPlace) -> Jvm:
        """One whose input the resident process has."""
        made = cls(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        place.write_jvm(KeptJvm(made.process.pid, 1, "secret", "digest"))
        assert made.process.stdin is not None
        with made.process.stdin as stdin:
            assert keep_jvm(place, stdin.fileno())
        return made

    @property
    def runs(self) -> bool:
        """Not ended."""
        return self.process.poll() is None


@pytest.mark.parametrize("is_served", cases([False, True], 1))
def test_a_jvm_stays_until_the_session_is_stopped(caller: Caller, is_served: bool) -> None:
    """With a process of its own, or with the one that serves commands."""
    server = (caller.told("pass") or caller.server) if is_served else None
    jvm, place = Jvm.keep(caller.place), caller.place
    kept = place.jvm()
    assert kept is not None
    assert (kept.pid, kept.secret, kept.digest) == (jvm.process.pid, "secret", "digest")
    assert not is_served or caller.server == server
    assert jvm.runs
    stop_session(place)
    jvm.process.wait(HANG_SECONDS)
    assert (place.jvm(), place.process(), place.idle_seconds) == (None, None, None)


def test_a_jvm_is_given_to_the_next_process(caller: Caller) -> None:
    """A process without the program, or in other circumstances, is replaced; the JVM goes on."""
    jvm = Jvm.keep(caller.place)
    first = caller.server
    assert caller.told("print(VERSION)") == "1"
    second = caller.server
    assert caller.told("print(VERSION)", env={**caller.environment, "NEW": "x"}) == "1"
    assert len({first, second, caller.server}) == 3
    assert jvm.runs
    kept = caller.place.jvm()
    assert kept is not None
    assert kept.pid == jvm.process.pid


def test_a_jvm_ends_with_a_killed_process_though_a_command_runs(caller: Caller) -> None:
    """The command has been forked from the process, and does not hold the JVM."""
    caller.told("pass")
    jvm, server = Jvm.keep(caller.place), caller.server
    running = caller.start("import sys; print('ready', flush=True); sys.stdin.read()", stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    assert server is not None
    os.kill(server, signal.SIGKILL)
    jvm.process.wait(HANG_SECONDS)
    assert caller.place.jvm() is None
    running.communicate("", timeout=HANG_SECONDS)
    assert running.returncode == 0


@pytest.mark.nightly  # by day a JVM that stays, and is given on, above
def test_a_process_without_program_ends_when_its_jvm_has_ended(caller: Caller) -> None:
    """It has nothing to keep; another JVM gets another process."""
    jvm, first = Jvm.keep(caller.place), caller.server
    jvm.process.kill()
    jvm.process.wait()
    assert caller.place.jvm() is None
    wait_for(lambda: caller.server is None)
    assert Jvm.keep(caller.place).runs
    assert caller.server not in {None, first}


def test_the_newest_jvm_is_kept(caller: Caller) -> None:
    """The one before it ends with its input, at the latest."""
    caller.told("pass")
    one, other = Jvm.keep(caller.place), Jvm.keep(caller.place)
    one.process.wait(HANG_SECONDS)
    assert other.runs


@pytest.mark.nightly  # by day adapter/test_loaded_dbt.py: without a session it is dbt
def test_nothing_is_served_unless_a_session_is_asked_for(caller: Caller) -> None:
    """The caller runs the program itself; the same for a closed file, and a program that cannot be loaded."""
    assert caller.run("print('x')", preexec_fn=lambda: os.close(0))[0] == NOT_SERVED
    (caller.library / "small_program.py").write_text(PROGRAM.replace("    pass", "    raise ValueError"))
    assert caller.run("print('x')") == (NOT_SERVED, "")
    (caller.library / "small_program.py").write_text(
        PROGRAM.replace(
            "    pass",
            "    import threading; threading.Thread(target=sys.stdin.read).start()\n"
            "    import threading, time; threading.Thread(target=time.sleep, args=(5,)).start()",
        )
    )
    assert caller.run("print('x')") == (NOT_SERVED, "")
    (caller.library / "small_program.py").write_text(PROGRAM)
    assert caller.told("print('x')") == "x"
    caller.place.forget()
    assert caller.run("print('x')") == (NOT_SERVED, "")


STRANGER = """
import os, sys
sys.path.insert(0, "")
from tablestore_engine.runtime.resident.circumstances import circumstances_of
from tablestore_engine.runtime.resident.process_request import CommandRequest, send_request
import socket
told = circumstances_of(os.environ)
place = os.open(sys.argv[1], os.O_RDONLY)
os.setgroups([])
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(f"/proc/self/fd/{place}/socket")
    request = CommandRequest(told, ("program", "open('stolen', 'w')"), os.getcwd(), {}, ())
    try:
        send_request(connection, request, (0, 1, 2))
        print(connection.recv(1))
    except OSError:  # closed before the request was read
        print(b"")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_not_answered(caller: Caller) -> None:
    """Even where the folder and the socket are open to all, and the circumstances are those of the server."""
    caller.told("pass")
    server, folder = caller.server, caller.place.folder
    folder.chmod(0o755)
    (folder / "socket").chmod(0o777)
    words = [sys.executable, "-c", STRANGER, str(folder)]
    told = subprocess.run(
        words, cwd=caller.folder, env=dict(caller.environment), capture_output=True, text=True, check=False
    )
    assert told.stdout == "b''\n", told.stderr
    folder.chmod(0o700)
    assert caller.told("print('mine')") == "mine"
    assert caller.server == server
    assert not (caller.folder / "stolen").exists()


def test_requests_that_are_none_do_not_end_the_server(caller: Caller) -> None:
    """Whoever connects and leaves, or sends anything else, is left alone."""
    from tablestore_engine.runtime.resident.process_request import open_socket

    caller.told("pass")
    server = caller.server
    for sent in (b"", b"x", b"\0\0\0\4{}{}", b"\xff" * 100):
        with open_socket(caller.place.folder, "socket", to_listen=False) as other:
            other.sendall(sent)
    assert caller.told("print('still')") == "still"
    assert caller.server == server
