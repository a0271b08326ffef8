"""The count of `make crashes` tells each promise that is broken: rows of one thing done wrong to a good history."""

import sys
import unittest
from collections import defaultdict
from dataclasses import replace

from waybill import ROOT

sys.path.append(str(ROOT / "tests" / "crashes"))

from counting import Ledger, Row, count  # noqa: E402
from producers import Published  # noqa: E402
from recipients import Book, Request  # noqa: E402

DEADLINE_S = 1100


class History:
    """One event to a recipient that deduplicates: its first attempt fails, its second is delivered."""

    def __init__(self):
        self.one = Published("steady", "d1", DEADLINE_S, 202, 1001)
        first = Request("steady", "e1", "whd_1", "whd_1", 1, "d1", 1001, 1001.2, True)
        self.requests = [first, replace(first, attempt=2, signed_s=1003, arrived_s=1003.2)]
        self.effects = 1
        self.evidence = [{"number": 1, "witness": "worker", "started_at": 1_001_000, "ended_at": 1_001_500}]
        delivery = {"id": "whd_1", "event_id": "e1"}
        self.record = {"delivery": delivery, "state": "succeeded", "attempts_made": 2, "claim": None, "hold": None}
        self.integrity = "ok"

    def count(self):
        row, book = Row("a fault", 1), Book(requests=self.requests)
        book.effects["e1"] = self.effects
        records = {self.record["delivery"]["event_id"]: self.record} if self.record else {}
        evidence = defaultdict(list, {"whd_1": self.evidence})
        count(row, {"e1": self.one}, Ledger(records, evidence, 0, self.integrity), book)
        return row


def is_lost(history):
    history.record, history.requests = None, []


def is_refused_without_reason(history):
    history.one.status = 409


def has_not_ended(history):
    history.record["state"] = "retryable"


def is_unknown_to_its_recipient(history):
    history.effects = 0


def has_two_effects(history):
    history.effects = 2


def has_other_bytes(history):
    history.requests[1] = replace(history.requests[1], digest="d2")


def has_another_id(history):
    history.requests[1] = replace(history.requests[1], delivery="whd_2", key="whd_2")


def is_sent_twice_under_one_claim(history):
    history.requests.append(history.requests[1])


def is_sent_without_evidence(history):
    history.evidence = []


def is_sent_while_another_attempt_is_under_way(history):
    history.evidence[0]["ended_at"] = 1_004_000


def is_sent_after_its_deadline(history):
    history.requests[1] = replace(history.requests[1], signed_s=DEADLINE_S, arrived_s=DEADLINE_S + 0.1)


def begins_after_its_deadline(history):
    history.evidence[0].update(started_at=DEADLINE_S * 1000, ended_at=DEADLINE_S * 1000)


def is_published_by_nobody(history):
    history.record["delivery"]["event_id"] = "e2"


def stands_in_a_broken_file(history):
    history.integrity = "row 7 missing from index"


class Counting(unittest.TestCase):
    def test_a_good_history_has_no_finding(self):
        row = History().count()
        self.assertEqual((row.findings, row.cells()[2:]), ([], [1, 0, 0, 0, 0, 0]))

    def test_whatever_is_broken_is_found(self):
        for breaks in [
            is_lost, is_refused_without_reason, has_not_ended, is_unknown_to_its_recipient, has_two_effects,
            has_other_bytes, has_another_id, is_sent_twice_under_one_claim, is_sent_without_evidence,
            is_sent_while_another_attempt_is_under_way, is_sent_after_its_deadline, begins_after_its_deadline,
            is_published_by_nobody, stands_in_a_broken_file,
        ]:
            with self.subTest(breaks.__name__):
                history = History()
                breaks(history)
                self.assertNotEqual(history.count().findings, [])

    def test_a_plain_recipients_repeats_are_counted_and_no_finding(self):
        history = History()
        history.one.manner, history.effects = "plain", 2
        row = history.count()
        self.assertEqual((row.findings, row.requests_doubled), ([], 1))


if __name__ == "__main__":
    unittest.main()
