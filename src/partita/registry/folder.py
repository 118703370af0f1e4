"""A registry in a folder: for tests, for laptops, for programs without a network.

`schemas/7.json` holds the schema with the id 7, `subjects.json` the ids of each subject, oldest first. A new file takes
its place in one step, so that a reader never sees half of one; writers on several machines are not coordinated.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from partita.registry.errors import RegistryError, RegistryUnavailableError
from partita.registry.schema import Reference, Schema


class FolderRegistry:
    """Schemas below `folder`, which is created when the first one is registered."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()

    def __getstate__(self) -> str:
        return str(self.folder)

    def __setstate__(self, folder: str) -> None:
        FolderRegistry.__init__(self, folder)

    def schema(self, schema_id: int) -> Schema:
        """The schema of this id. Raises RegistryError, RegistryUnavailableError."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "schemas" / f"{int(schema_id)}.json").read_text())
        except FileNotFoundError:
            if not self.folder.is_dir():
                raise RegistryUnavailableError(
                    f"there is no folder {self.folder}, which schemas are read from"
                ) from None
            raise RegistryError(f"there is no schema with id {schema_id} in {self.folder}") from None
        except OSError as error:
            raise RegistryUnavailableError(f"the schemas in {self.folder} cannot be read: {error}") from error
        references = tuple(Reference(**one) for one in found.get("references", ()))
        return Schema(found["schema"], found["schemaType"], references)

    def register(self, subject: str, schema: Schema) -> int:
        """The id of the schema, which is added to the subject unless it is there already."""
        with self._lock:
            subjects = self._subjects()
            ids = subjects.setdefault(subject, [])
            known = {one for some in subjects.values() for one in some}
            schema_id = next((one for one in sorted(known) if self.schema(one) == schema), None)
            if schema_id is None:
                schema_id = max(known, default=0) + 1
                references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
                content = {"schema": schema.text, "schemaType": schema.type, "references": references}
                self._write(self.folder / "schemas" / f"{schema_id}.json", content)
            if schema_id not in ids:
                ids.append(schema_id)
                self._write(self.folder / "subjects.json", subjects)
            return schema_id

    def latest(self, subject: str) -> tuple[int, Schema]:
        """The newest schema of a subject, with its id. Raises RegistryError."""
        ids = self._ids(subject)
        return ids[-1], self.schema(ids[-1])

    def version(self, subject: str, version: int) -> Schema:
        """One version of a subject, counted from 1. Raises RegistryError."""
        ids = self._ids(subject)
        if not 1 <= version <= len(ids):
            raise RegistryError(f"subject {subject!r} has versions 1 to {len(ids)}, not {version}")
        return self.schema(ids[version - 1])

    def _ids(self, subject: str) -> list[int]:
        ids = self._subjects().get(subject, [])
        if not ids:
            raise RegistryError(f"there is no subject {subject!r} in {self.folder}")
        return ids

    def _subjects(self) -> dict[str, list[int]]:
        try:
            found: dict[str, list[int]] = json.loads((self.folder / "subjects.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    @staticmethod
    def _write(path: Path, content: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(content, indent=2) + "\n")
        fresh.replace(path)
