"""Invariants at the end of a run, over the answers to clients, the records read, and the logs.

TI1 atomicity, TI2 no half view, TI3 order, TI4 zombies, TI5 one decision, TI8 the aborted index, TI11 exactly once,
TI13 offsets, TI14 compaction, TI15 refused records (`bursts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from partita.group.records.log_records import OFFSET_KEY, kind_of, read_offset_key, read_offset_value
from partita.sim.rules.rule import must
from partita.sim.transactions.bursts import judge_bursts
from partita.sim.transactions.ledger import Reading, Told, TopicPartition
from partita.sim.transactions.model import Entry, LogModel
from partita.sim.transactions.simulation import Simulation
from partita.sim.transactions.stage import COPIERS, INPUTS
from partita.sim.transactions.watch import BRIEF, OFFSETS_TOPIC

Offsets = dict[tuple[str, TopicPartition], int]


class Judge:
    """Judges a run whose faults are over and whose transactions have all ended. Raises RuleBroken."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._ledger = simulation.ledger
        self._models = simulation.watch.models
        self._committed = {name: model.committed() for name, model in self._models.items() if not _is_internal(name)}
        self._seen = Counter(_text(e) for entries in self._committed.values() for e in entries)

    def judge_all(self, final: Iterable[Reading]) -> None:
        """Everything; `final` are readings of every partition from its start to its end."""
        for told in self._ledger.transactions:
            self._judge_told(told)
        self._judge_order()
        self.judge_readings()
        for reading in final:
            self._judge_final(reading)
        for value, was_committed in self._ledger.fenced:
            is_committed = value in self._seen
            must(is_committed == was_committed, "TI4", f"{value} of a fenced producer: committed {is_committed} later")
        self._judge_copies()
        self._judge_plain()
        judge_bursts(self._ledger.bursts, self._committed, has_forgotten=self._simulation.has_forgotten)
        self._judge_aborted_index()
        self._judge_offsets()

    def _judge_told(self, told: Told) -> None:
        if self._ledger.was_ended_by_another(told):
            return
        lasting = [value for where, value in told.records if not self._is_lost(told, where)]
        found = [self._seen[value] for value in lasting]
        where = f"transaction {told.number} of {told.life}"
        if told.outcome is True:
            missing = [value for value in lasting if not self._seen[value]]
            must(not missing, "TI1", f"{where} is committed, and {missing} is not there")
        elif told.outcome is False or not told.is_commit_asked:
            must(
                not any(self._seen[v] for v in told.values), "TI1", f"{where} is not committed, and some of it is there"
            )
        else:
            must(not any(found) or all(found), "TI1", f"{where}: a part of it is there")
        must(all(count <= 1 for count in found), "TI3", f"{where}: some of it is there twice")

    def _is_lost(self, told: Told, where: TopicPartition) -> bool:
        """Whether records may be missing: their topic was deleted, or this part of it was aborted by hand."""
        watch = self._simulation.watch
        if where == BRIEF and watch.was_deleted:
            return True
        return told.producer is not None and watch.forged.get((where, *told.producer), False)

    def _judge_order(self) -> None:
        """TI3: values of one transaction, and transactions of one life, are in the order they were sent in."""
        lives = {told.number: told.life for told in self._ledger.transactions}
        places = {v: (t.number, i) for t in self._ledger.transactions for i, (_, v) in enumerate(t.records)}
        for name, entries in self._committed.items():
            last: dict[str, tuple[int, int]] = {}
            for entry in entries:
                place = places.get(_text(entry))
                if place is not None:
                    life = lives[place[0]]
                    must(
                        last.get(life, (-1, -1)) < place, "TI3", f"{name}: {_text(entry)} comes after {last.get(life)}"
                    )
                    last[life] = place

    def judge_readings(self) -> None:
        """TI2: each read_committed reader got exactly the committed records between its start and its position."""
        for reading in self._ledger.readings:
            there = [(e.offset, _text(e)) for e in self._committed.get(reading.partition, ())]
            wanted = [one for one in there if reading.start <= one[0] < reading.position]
            strange = sorted(set(reading.read) - set(wanted))
            must(not strange, "TI2", f"{reading.life} read {strange[:3]} of {reading.partition}")
            if reading.partition[0] == "kept":
                continue
            had, log_start = set(reading.read), self._simulation.watch.log_start(reading.partition)
            wanted = [one for one in wanted if one in had or one[0] >= log_start]
            must(
                reading.read == wanted,
                "TI2",
                f"{reading.life} read {_difference(reading.read, wanted)} of {reading.partition} from {reading.start} "
                f"to {reading.position}",
            )

    def _judge_final(self, reading: Reading) -> None:
        entries = self._committed.get(reading.partition, [])
        if reading.partition[0] != "kept":
            log_start = self._simulation.watch.log_start(reading.partition)
            wanted = [(e.offset, _text(e)) for e in entries if e.offset >= log_start]
            must(reading.read == wanted, "TI2", f"{reading.partition} at the end: {_difference(reading.read, wanted)}")
            return
        latest = {e.key: (e.offset, _text(e)) for e in entries}
        missing = sorted(set(latest.values()) - set(reading.read))
        must(not missing, "TI14", f"compaction lost {missing[:3]} of {reading.partition}")

    def _judge_copies(self) -> None:
        """TI11: the output is the input, each record once, in order, up to the committed position."""
        of_copiers = (told for told in self._ledger.transactions if any(where[0] == "out" for where, _ in told.records))
        if any(map(self._ledger.was_ended_by_another, of_copiers)):
            return
        copies = [_text(entry).partition("#")[0] for entry in self._committed.get(("out", 0), ())]
        offsets = self.offsets()
        plan = self._simulation.plan
        copied = INPUTS if plan.copiers and plan.group_protocol != "none" else plan.copiers
        for partition in range(copied):
            source = ("in", partition)
            upto = offsets.get((COPIERS, source), 0)
            wanted = [f"{partition}:{e.offset}:{_text(e)}" for e in self._committed.get(source, ()) if e.offset < upto]
            found = [value for value in copies if value.startswith(f"{partition}:")]
            must(found == wanted, "TI11", f"copies of {source}: {len(found)} of {len(wanted)} up to {upto}")

    def _judge_plain(self) -> None:
        for (topic, partition), value in self._ledger.plain:
            must(self._seen[value], "TI3", f"{value} of {topic}-{partition} was acknowledged and is not there")
            is_once = self._seen[value] == 1 or self._simulation.has_forgotten
            must(is_once, "TI3", f"{value} of {topic}-{partition} is there {self._seen[value]} times")

    def _judge_aborted_index(self) -> None:
        """TI8, TI5: the index is what the batches say; one producer and epoch has one outcome."""
        ends: dict[tuple[int, int], set[bool]] = {}
        catalogue = self._simulation.process.cluster.catalogue
        for name, model in self._models.items():
            log = catalogue.by_name[name[0]].partitions[name[1]].log
            start = log.log_start_offset
            known = [(a.producer_id, a.first_offset, a.last_offset) for a in log.producers.aborted]
            wanted = [one for one in model.aborted() if one[2] >= start]
            if name[0] not in ("kept", OFFSETS_TOPIC):
                must(known == wanted, "TI8", f"{name}: the aborted index says {known[-3:]}, the log {wanted[-3:]}")
            for end in model.ends():
                if (name, end.producer_id, end.epoch) in self._simulation.watch.forged:
                    continue
                ends.setdefault((end.producer_id, end.epoch), set()).add(end.is_commit)
        plan = self._simulation.plan
        if plan.level == 2 and not plan.old_clients and "change_level" not in dict(plan.faults):
            mixed = [one for one, outcomes in ends.items() if len(outcomes) > 1]
            must(not mixed, "TI5", f"committed and aborted: {mixed[:3]}")

    def offsets(self) -> Offsets:
        """Return the committed offsets according to the batches of the offsets topic."""
        model = self._models.get((OFFSETS_TOPIC, 0), LogModel())
        found: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
        for entry in model.in_effect():
            key = entry.key or b""
            if kind_of(key) != OFFSET_KEY:
                continue
            group, topic, partition = read_offset_key(key)
            name = (group, (topic, partition))
            if entry.value is None:
                found.pop(name, None)
            elif entry.offset >= found.get(name, (-1, 0))[0]:
                found[name] = (entry.offset, read_offset_value(entry.value).offset)
        return {name: offset for name, (_, offset) in found.items()}

    def _judge_offsets(self) -> None:
        """TI13, TI1: each committed offset is that of a committed transaction, and the group's shard says so."""
        told = {
            (group, where, offset): one
            for one in self._ledger.transactions
            for (group, where), offset in one.offsets.items()
        }
        runner = self._simulation.process.services.groups().runners[0]
        hard = runner.coordinator.hard_state
        wanted = self.offsets()
        for (group, where), offset in wanted.items():
            stored = hard.committed(group, where)
            must(stored is not None and stored.offset == offset, "TI13", f"{group} {where}: {stored}, not {offset}")
            one = told.get((group, where, offset))
            if one is not None:
                is_fine = (one.outcome is not False and one.is_commit_asked) or self._ledger.was_ended_by_another(one)
                must(
                    is_fine, "TI1", f"{group} {where}: {offset} is of transaction {one.number}, which was not committed"
                )
        for (group, where, _), one in told.items():
            must(
                one.outcome is not True
                or (group, where) in wanted
                or self._is_lost(one, where)
                or self._ledger.was_ended_by_another(one),
                "TI1",
                f"{group} {where}: no offset of {one.number}",
            )


def _is_internal(name: TopicPartition) -> bool:
    return name[0].startswith("__")


def _text(entry: Entry) -> str:
    return "" if entry.value is None else entry.value.decode()


def _difference(found: list[tuple[int, str]], wanted: list[tuple[int, str]]) -> str:
    extra = [one for one in found if one not in wanted][:3]
    missing = [one for one in wanted if one not in found][:3]
    return f"{len(found)} records, too many {extra}, missing {missing}"
