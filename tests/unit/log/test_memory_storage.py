"""Files in memory: names and directories, against a plain list of names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.log.storage import MemoryStorage, StorageError

NAMES = ["a", "d/a", "d/b", "d/e/a", "d/e/f/a", "g/a"]
DIRECTORIES = ["", "d", "d/e", "d/e/f", "g", "none"]
STEPS = st.tuples(
    st.sampled_from(["open", "unlink", "rename", "remove_dir"]), st.sampled_from(NAMES), st.sampled_from(NAMES)
)


def inside(names: set[str], directory: str) -> list[str]:
    prefix = f"{directory}/" if directory else ""
    return sorted({name[len(prefix) :].split("/", 1)[0] for name in names if name.startswith(prefix)})


@given(steps=st.lists(STEPS, max_size=20))
def test_a_directory_lists_what_is_in_it(steps: list[tuple[str, str, str]]) -> None:
    storage, names = MemoryStorage(), set[str]()
    for step, name, other in steps:
        is_there = name in names
        directory = name.rpartition("/")[0] or "d"
        try:
            match step:
                case "open":
                    storage.open(name, create=True)
                    names.add(name)
                case "unlink":
                    storage.unlink(name)
                    names.remove(name)
                case "rename":
                    storage.rename(name, other)
                    names = (names - {name}) | {other}
                case "remove_dir":
                    storage.remove_dir(directory)
                    names = {kept for kept in names if not kept.startswith(f"{directory}/")}
        except StorageError:
            assert not is_there
        assert {d: storage.list(d) for d in DIRECTORIES} == {d: inside(names, d) for d in DIRECTORIES}


@given(sizes=st.lists(st.integers(1, 40_000), min_size=1, max_size=12), data=st.data())
def test_what_is_read_in_one_piece_is_not_copied_and_ends_with_an_append(sizes: list[int], data: st.DataObject) -> None:
    """H11: fetches that nobody reads share the memory of the log."""
    file = MemoryStorage().open("f", create=True)
    starts = [0]
    for number, size in enumerate(sizes):
        file.append([bytes([number]) * size])
        starts.append(starts[-1] + size)
    position = data.draw(st.sampled_from(starts[:-1]))
    wanted = starts[-1] - position
    size = file.in_one_piece(position, wanted)
    assert position + size in starts[1:]
    assert file.read_at(position, size).obj is file.read_at(position, 1).obj
