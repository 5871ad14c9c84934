"""The promises of fileio/base.py as tests: any FileIO passes them. Subclass with a `fileio` and a `root` fixture."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.fileio.base import FileIO, NewFile, find, write_many


class PortPromises:
    """Needs fixtures `fileio: FileIO` and `root: str`, a folder of its own."""

    def test_written_bytes_are_read_back_and_parents_appear(self, fileio: FileIO, root: str) -> None:
        """Promise 1: write makes parents, and the content is complete."""
        fileio.write(f"{root}/a/b/c", b"abc")
        assert fileio.read(f"{root}/a/b/c") == b"abc"
        assert fileio.size(f"{root}/a/b/c") == 3

    def test_write_never_replaces(self, fileio: FileIO, root: str) -> None:
        """Promise 1: a taken name is an error, its content stays."""
        fileio.write(f"{root}/x", b"1")
        with pytest.raises(OSError):
            fileio.write(f"{root}/x", b"2")
        assert fileio.read(f"{root}/x") == b"1"

    def test_many_files_are_written_together(self, fileio: FileIO, root: str) -> None:
        """Promise 14: each has its bytes, under its second name too, and parents appear; either name can go alone."""
        write_many(fileio, [NewFile(f"{root}/m/{n}/f", b"%d" % n, f"{root}/also/{n}") for n in range(9)])
        fileio.delete(f"{root}/m/3/f")
        assert [fileio.read(f"{root}/also/{n}") for n in range(9)] == [b"%d" % n for n in range(9)]
        assert [n for n in range(9) if fileio.exists_file(f"{root}/m/{n}/f")] == [0, 1, 2, 4, 5, 6, 7, 8]

    def test_a_missing_file_is_not_found(self, fileio: FileIO, root: str) -> None:
        """Reading, opening and measuring a missing file raise NotFound TS1201."""
        for call in (fileio.read, fileio.open_input, fileio.size):
            with pytest.raises(NotFound, match="TS1201"):
                call(f"{root}/none")

    def test_exactly_one_exclusive_create_wins(self, fileio: FileIO, root: str) -> None:
        """Promise 2: of many threads one wins, and the file holds the winner's bytes."""
        barrier = threading.Barrier(8)

        def claim(number: int) -> bool:
            barrier.wait()
            return fileio.create_exclusive(f"{root}/claim", b"%d" % number * 5000)

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(claim, range(8)))
        assert won.count(True) == 1
        assert fileio.read(f"{root}/claim") == b"%d" % won.index(True) * 5000

    def test_exclusive_create_leaves_nothing_behind_when_it_loses(self, fileio: FileIO, root: str) -> None:
        """Promise 2: the loser changes nothing and leaves no other name."""
        assert fileio.create_exclusive(f"{root}/d/claim", b"first")
        assert not fileio.create_exclusive(f"{root}/d/claim", b"second")
        assert fileio.read(f"{root}/d/claim") == b"first"
        assert [one.name for one in fileio.list(f"{root}/d")] == ["claim"]

    def test_a_check_that_raises_leaves_nothing(self, fileio: FileIO, root: str) -> None:
        """Promise 8: what the check raises comes out, and there is no file."""
        fileio.mkdirs(f"{root}/d")

        def void() -> None:
            raise KeyError("void")

        with pytest.raises(KeyError, match="void"):
            fileio.create_exclusive(f"{root}/d/claim", b"late", check=void)
        fileio.delete(f"{root}/d")
        assert not fileio.exists(f"{root}/d")

    def test_replace_shows_old_or_new_never_a_mixture(self, fileio: FileIO, root: str) -> None:
        """Promise 3: a reader beside a replacing writer sees whole contents only."""
        path, old, new = f"{root}/hint", b"a" * 100_000, b"b" * 50_000
        fileio.replace(path, old)

        def swap() -> None:
            for turn in range(20):
                fileio.replace(path, new if turn % 2 else old)

        writer = threading.Thread(target=swap)
        writer.start()
        seen = {fileio.read(path) for _ in range(100)}
        writer.join()
        assert seen <= {old, new}

    def test_list_is_sorted_complete_and_without_temporary_files(self, fileio: FileIO, root: str) -> None:
        """Promise 4: names sorted, sizes exact, folders marked, dot files hidden, a missing folder is empty."""
        for name in ("b", "a", "c/inner", ".hidden"):
            fileio.write(f"{root}/l/{name}", b"12")
        found = fileio.list(f"{root}/l")
        assert [(one.name, one.is_dir) for one in found] == [("a", False), ("b", False), ("c", True)]
        assert found[0].size_bytes == 2
        assert found[0].path == f"{root}/l/a"
        assert list(fileio.list(f"{root}/missing")) == []

    def test_delete_takes_a_file_and_a_missing_one_is_fine(self, fileio: FileIO, root: str) -> None:
        """Promise 5."""
        fileio.write(f"{root}/d/f", b"1")
        fileio.delete(f"{root}/none")
        fileio.delete(f"{root}/d/f")
        fileio.delete(f"{root}/d/f")
        assert not fileio.exists(f"{root}/d/f")

    def test_output_appears_on_success_and_vanishes_on_error(self, fileio: FileIO, root: str) -> None:
        """Promise 6: a streamed file is complete after the block, and gone when the block raised."""
        with fileio.open_output(f"{root}/o/good") as sink:
            sink.write(b"hello")
        assert fileio.read(f"{root}/o/good") == b"hello"

        def fail() -> None:
            with fileio.open_output(f"{root}/o/bad") as sink:
                sink.write(b"hello")
                raise ValueError("stop")

        with pytest.raises(ValueError, match="stop"):
            fail()
        assert [one.name for one in fileio.list(f"{root}/o")] == ["good"]

    def test_a_copy_lives_and_dies_on_its_own(self, fileio: FileIO, root: str) -> None:
        """Promise 7: parents appear, a taken name and a missing source are errors, either name outlives the other."""
        fileio.write(f"{root}/c/a", b"abc")
        fileio.copy(f"{root}/c/a", f"{root}/new/b")
        fileio.write(f"{root}/taken", b"other")
        with pytest.raises(FileExistsError):
            fileio.copy(f"{root}/c/a", f"{root}/taken")
        with pytest.raises(NotFound, match="TS1201"):
            fileio.copy(f"{root}/none", f"{root}/new/c")
        fileio.delete(f"{root}/c/a")
        assert fileio.read(f"{root}/new/b") == b"abc"
        fileio.copy(f"{root}/new/b", f"{root}/c/a")
        fileio.delete(f"{root}/new/b")
        assert fileio.read(f"{root}/c/a") == b"abc"

    def test_calls_that_run_together_answer_in_order(self, fileio: FileIO, root: str) -> None:
        """Promise 12: results come in the order of the calls, none is lost, and no call is an empty answer."""
        paths = [f"{root}/m/{number}" for number in range(40)]
        fileio.run_together([partial(fileio.write, path, path.encode()) for path in paths])
        found = fileio.run_together([partial(find, fileio, one) for one in (*paths, f"{root}/m/none")])
        assert found == [*(path.encode() for path in paths), None]
        assert fileio.run_together([]) == []

    def test_groups_that_run_together_start_no_more_threads(self, fileio: FileIO, root: str) -> None:
        """Promise 12: the bound is that of the caller: sixteen groups leave no thread for the calls of each."""

        def threads_of_group() -> set[int]:
            return {threading.get_ident(), *fileio.run_together([threading.get_ident] * 3)}

        assert [len(one) for one in fileio.run_together([threads_of_group] * 16)] == [1] * 16

    def test_a_failure_of_calls_that_run_together_is_the_first_ones(self, fileio: FileIO, root: str) -> None:
        """Promise 12: the error of the first failing call comes out, when no call runs any more."""
        running: list[int] = []

        def fail(number: int) -> None:
            running.append(number)
            try:
                fileio.read(f"{root}/none-{number}")
            finally:
                running.remove(number)

        with pytest.raises(NotFound, match="none-0"):
            fileio.run_together([partial(fail, number) for number in range(3)])
        assert running == []

    def test_delete_many_takes_files_and_missing_ones_are_fine(self, fileio: FileIO, root: str) -> None:
        """Promise 13: more paths than one request takes, some of them missing; what was not named stays."""
        paths = [f"{root}/d/{number}" for number in range(12)]
        for path in paths:
            fileio.write(path, b"1")
        missing = [f"{root}/d/none-{number}" for number in range(1_000)]
        fileio.delete_many([*paths[:6], *missing, *paths[6:11]])
        fileio.delete_many([])
        assert [one.path for one in fileio.list(f"{root}/d")] == paths[11:]

    def test_exists_file_knows_files_alone(self, fileio: FileIO, root: str) -> None:
        """A file exists; a folder, or a name that others begin with, and a missing one do not."""
        fileio.write(f"{root}/e/f", b"1")
        assert fileio.exists_file(f"{root}/e/f")
        assert not fileio.exists_file(f"{root}/e")
        assert not fileio.exists_file(f"{root}/e/g")

    def test_input_is_random_access(self, fileio: FileIO, root: str) -> None:
        """An opened input seeks and reads."""
        fileio.write(f"{root}/r", b"0123456789")
        with fileio.open_input(f"{root}/r") as source:
            source.seek(7)
            assert source.read(2) == b"78"

    def test_mkdirs_and_delete_tree(self, fileio: FileIO, root: str) -> None:
        """Folders are made with parents, again without error, and removed with content."""
        fileio.mkdirs(f"{root}/t/u")
        fileio.mkdirs(f"{root}/t/u")
        fileio.write(f"{root}/t/u/f", b"1")
        fileio.delete_tree(f"{root}/t")
        fileio.delete_tree(f"{root}/t")
        assert not fileio.exists(f"{root}/t")

    @pytest.mark.parametrize("path", ["{root}/../x", "relative", "/etc/passwd", "{root}x/y"])
    def test_paths_never_leave_the_root(self, fileio: FileIO, root: str, path: str) -> None:
        """A path with `..`, a relative one and one beside the root are refused with TS1202."""
        for call in (
            fileio.read,
            fileio.list,
            fileio.delete,
            fileio.delete_tree,
            fileio.exists,
            fileio.exists_file,
        ):
            with pytest.raises(FixRequest, match="TS1202"):
                call(path.format(root=root))
