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
