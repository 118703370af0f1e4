"""The page and the picture of `partita groups why`, from staged incidents and from hostile names."""

from __future__ import annotations

from xml.etree import ElementTree

from partita.cli.groups.timeline import Span, both_widths, spans_of
from partita.cli.groups.why_page import why_page
from partita.explain import Account, Fact, Sure, explain
from partita.explain.facts import Assigned, Committed, Member
from support.explain.staged import Stage


def killed() -> tuple[Account, ...]:
    stage = Stage({"orders": 4})
    for name in ("worker-1", "worker-2"):
        stage.start(name)
        stage.pass_ms(200)
    stage.settle(30_000)
    stage.kill("worker-2")
    stage.settle(60_000)
    return stage.accounts()


def test_the_picture_shows_owners_gaps_and_marks() -> None:
    accounts = killed()
    spans = spans_of(accounts, accounts[-1].ended_ms + 10_000)
    assert [span.owner for span in spans["orders", 3]] == ["worker-1", "worker-2", "", "worker-1"]
    begin, *_, gap, _ = spans["orders", 3]
    assert isinstance(begin, Span)
    assert gap.to_ms - gap.from_ms >= 45_000, "nobody read it for a session timeout"
    pictures = both_widths(accounts)
    ElementTree.fromstring(pictures.replace("</div><div", "</div><div", 1).join(("<body>", "</body>")))
    for text in ("worker-2 read orders-3 for", "nobody read orders-3 for", "generation 3: worker-2 was silent", ">g3<"):
        assert text in pictures, text
    assert 'class="pattern"' in pictures, "owners differ by more than colour"


def test_the_page_tells_every_rebalance_with_its_evidence() -> None:
    page = why_page("billing", killed(), ["__consumer_offsets-7: no leader"])
    for text in (
        "worker-2 was silent for its session timeout of 45 s and was removed.",
        "told by the coordinator", "What to do:", "The longest time that a partition had no reader was",
        "__consumer_offsets-7: no leader", 'id="g3"', "<th>before</th>",
    ):  # fmt: skip
        assert text in page, text
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "the page loads nothing from outside"


def test_names_from_the_cluster_are_escaped() -> None:
    evil = Member("<script>-1", "<script>", topics=("<b>",), partitions=(("<b>", 0),), host="/<i>")
    facts: list[Fact] = [
        Assigned("<q>", 1_000_000, Sure.SEEN, 1, (evil,)),
        Committed("<q>", 1_000_500, ("<b>", 0), 1),
        Assigned("<q>", 1_001_000, Sure.SEEN, 2, ()),
    ]
    page = why_page("<q>", explain(facts))
    for tag in ("<script>", "<q>", "<b>0", "<i>"):
        assert tag not in page.replace("<b>What to do:</b>", ""), tag
    assert "Why group &lt;q&gt; rebalanced" in page


def test_control_characters_do_not_reach_a_terminal() -> None:
    evil = Member("\x1b[31mx-1", "\x1b[31mx", partitions=(("t", 0),))
    (_, account) = explain([
        Assigned("g", 1_000, Sure.SEEN, 1, ()), Assigned("g", 2_000, Sure.SEEN, 2, (evil,)),
    ])  # fmt: skip
    assert account.headline == "?[31mx joined."
