"""What is looked at while the store can't be written: is it told, is nothing accepted, does nothing spin."""

import http.client
import os
import threading
import time
from collections import Counter
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# Of one core that `serve` may take while nothing can be done; and the lines of its log in a second, beyond two
# for each request that it refuses.
MOST_CPU, MOST_LINES = 0.5, 20


class Meanwhile:
    """Watches one `serve` from `begin` to `end`."""

    def __init__(self, scenery):
        self.waybill, self.producers, self.book = scenery.waybill, scenery.producers, scenery.recipients.book
        self.health, self.is_over = Counter(), threading.Event()
        self.begun_at, self.begun_cpu, self.begun_lines = time.time(), self.cpu_s(), self.lines()
        self.pid = self.waybill.process.pid
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def cpu_s(self):
        fields = Path(f"/proc/{self.waybill.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def lines(self):
        return self.waybill.log().count("\n")

    def ask(self):
        while not self.is_over.wait(1):
            connection = http.client.HTTPConnection(*self.waybill.address, timeout=15)
            try:
                connection.request("GET", "/healthz")
                self.health[connection.getresponse().status] += 1
            except (OSError, http.client.HTTPException):
                self.health[None] += 1
            finally:
                connection.close()

    def end(self, row):
        """To be called while the fault still lasts."""
        ended_at, took_s = time.time(), time.time() - self.begun_at
        cpu, lines = (self.cpu_s() - self.begun_cpu) / took_s, (self.lines() - self.begun_lines) / took_s
        self.is_over.set()
        self.thread.join()
        if not self.waybill.is_up():
            row.findings.append(f"serve died meanwhile: {self.waybill.log()[-500:]}")
        answers = Counter(status for at, status in self.producers.answers if self.begun_at <= at <= ended_at)
        requests = sum(self.begun_at <= request.arrived_s <= ended_at for request in self.book.requests)
        row.notes.append(
            f"{took_s:.0f} s: publish answered {told(answers)}; /healthz {told(self.health)}; {requests} requests; "
            f"{cpu:.0%} of a core, {lines:.0f} log lines a second")
        asked = answers.total() + self.health.total()
        if cpu > MOST_CPU or lines > MOST_LINES + 2 * asked / took_s:
            row.findings.append("serve spins while it cannot write")
        if not answers[503] or set(answers) - {202, 400, 503, None}:
            row.findings.append(f"publish does not say that it cannot be kept: {told(answers)}")
        if not self.health[503]:
            row.findings.append(f"/healthz does not tell: {told(self.health)}")


def restart(waybill, row):
    """Kills `serve` while the fault lasts and starts it: it comes up, or ends and says why. Whoever calls starts
    it again when the fault is over."""
    waybill.kill()
    process, known = waybill.spawn(), len(waybill.log())
    if waybill.adopt(process):
        row.notes.append("killed meanwhile, it came up again")
        return
    code, why = process.wait(timeout=60), waybill.log()[known:].strip()
    process.stdout.close()
    row.notes.append(f"killed meanwhile, it did not come up: {why}")
    if code != 1 or str(waybill.data) not in why:
        row.findings.append(f"a start that could not succeed ended with {code}: {why}")


def told(counter):
    return ", ".join(f"{n} × {status or 'nothing'}" for status, n in sorted(counter.items(), key=str)) or "nothing"
