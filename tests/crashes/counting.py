"""Holds what producers were told, what the ledger says and what recipients saw against each other."""

import json
import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass, field

OPEN = ("pending", "retryable")


@dataclass
class Row:
    """One row of the table; `findings` are sentences about broken promises."""

    fault: str
    tried: int
    deliveries: int = 0
    lost: int = 0
    effects_doubled: int = 0
    requests_doubled: int = 0
    late_by_sender: int = 0
    late_by_recipient: int = 0
    findings: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def cells(self):
        return [self.fault, self.tried, self.deliveries, self.lost, self.effects_doubled, self.requests_doubled,
                self.late_by_sender, self.late_by_recipient]


@dataclass
class Ledger:
    """What the data file says: every record by its event, every evidence by its delivery."""

    records: dict
    attempts: dict
    messages: int
    integrity: str

    @classmethod
    def read(cls, data):
        with sqlite3.connect(f"file:{data}?mode=ro", uri=True) as file:
            records = [json.loads(text) for (text,) in file.execute("SELECT record FROM delivery")]
            attempts = defaultdict(list)
            for delivery, text in file.execute("SELECT delivery_id, evidence FROM attempt ORDER BY number"):
                attempts[delivery].append(json.loads(text))
            (messages,) = file.execute("SELECT count(*) FROM message").fetchone()
            (integrity,) = file.execute("PRAGMA integrity_check").fetchone()
        return cls({record["delivery"]["event_id"]: record for record in records}, attempts, messages, integrity)


def still_open(data):
    """How many deliveries have not ended, and how many messages there still are."""
    with sqlite3.connect(f"file:{data}?mode=ro", uri=True, timeout=30) as file:
        (deliveries,) = file.execute(f"SELECT count(*) FROM delivery WHERE state IN {OPEN}").fetchone()
        (messages,) = file.execute("SELECT count(*) FROM message").fetchone()
        return deliveries, messages


def count(row, published, ledger, book):
    """Fills the row."""
    row.deliveries = len(ledger.records)
    accepted = {event for event, one in published.items() if one.status == 202}
    lost = accepted - ledger.records.keys()
    row.findings += [f"{event}: accepted, and not in the ledger" for event in lost]
    row.findings += [f"{event}: answered {one.status}" for event, one in published.items() if not is_fair(one)]
    strangers = ledger.records.keys() - published.keys()
    row.findings += [f"{event}: in the ledger, and published by nobody" for event in strangers]
    for event, record in ledger.records.items():
        faults = list(of_record(event, record, book))
        row.findings += faults
        lost |= {event} if faults else set()
    row.lost = len(lost)

    of_delivery = defaultdict(list)
    for request in book.requests:
        of_delivery[request.event].append(request)
    for event, requests in of_delivery.items():
        one, record = published[event], ledger.records.get(event)
        if record is None:
            row.findings.append(f"{event}: sent, and not in the ledger")
            continue
        evidence = ledger.attempts[record["delivery"]["id"]]
        row.findings += of_requests(event, one, record, requests)
        row.findings += of_evidence(event, record, evidence, requests)
        if one.deadline_s:
            signed = sum(request.signed_s >= one.deadline_s for request in requests)
            begun = sum(began(attempt) >= one.deadline_s * 1000 for attempt in evidence)
            row.late_by_sender += max(signed, begun)
            row.late_by_recipient += sum(request.arrived_s >= one.deadline_s for request in requests)
        again = book.effects[event] - 1
        if one.manner == "plain":
            row.requests_doubled += max(0, again)
        else:
            row.effects_doubled += max(0, again)
    for what, n in [("effects doubled", row.effects_doubled), ("sent after the deadline", row.late_by_sender)]:
        row.findings += [f"{n} {what}"] if n else []
    if ledger.integrity != "ok":
        row.findings.append(f"PRAGMA integrity_check: {ledger.integrity}")
    states = Counter(record["state"] for record in ledger.records.values())
    row.notes.append(f"{len(accepted)} accepted, {len(book.requests)} requests; " + ", ".join(
        f"{n} {state}" for state, n in sorted(states.items())))


def is_fair(one):
    """Whether the answer is: an event that comes after its deadline is refused, and no other."""
    came_late = one.deadline_s and one.deadline_s <= one.answered_s
    return one.status == 202 or (one.status == 400 and came_late)


def of_record(event, record, book):
    if record["state"] in OPEN or record["claim"] or record["hold"]:
        yield f"{event}: has not ended: {record['state']}"
    if record["state"] == "succeeded" and not book.effects[event]:
        yield f"{event}: succeeded, and its recipient knows nothing of it"


def of_requests(event, one, record, requests):
    """One identity, the same bytes, and never two requests under one attempt: each has a claim of its own."""
    if {request.delivery for request in requests} != {record["delivery"]["id"]}:
        yield f"{event}: sent under another ID than its delivery's"
    if any(request.key != request.delivery or not request.verified for request in requests):
        yield f"{event}: its key is not its ID, or it is not signed"
    if {request.digest for request in requests} != {one.digest}:
        yield f"{event}: other bytes were sent than were published"
    numbers = Counter(request.attempt for request in requests)
    twice = [number for number, times in numbers.items() if times > 1]
    if twice:
        yield f"{event}: attempts {twice} were sent more than once"


def of_evidence(event, record, evidence, requests):
    """Every attempt that was sent is known, and no two were under way at once."""
    known = {attempt["number"] for attempt in evidence}
    made = record["attempts_made"]
    for request in requests:
        is_the_last = record["state"] == "succeeded" and request.attempt == made
        if request.attempt not in known and not is_the_last:
            yield f"{event}: attempt {request.attempt} was sent and left no evidence"
    # When each was over at the latest: its worker's word counts before that of who found its claim lapsed.
    over = {}
    for attempt in sorted(evidence, key=lambda attempt: attempt["witness"] == "worker"):
        over[attempt["number"]] = (attempt["ended_at"], attempt["witness"])
    for attempt in evidence:
        before = over.get(attempt["number"] - 1)
        if before and began(attempt) < before[0]:
            yield f"{event}: attempt {attempt['number']} began before the one before it was over ({before[1]})"
    for request in requests:
        before = over.get(request.attempt - 1)
        if before and request.signed_s < before[0] // 1000:
            yield f"{event}: attempt {request.attempt} was sent before the one before it was over ({before[1]})"


def began(attempt):
    return attempt["started_at"]
