"""`serve` is killed at random moments and started again; sometimes twice at once, sometimes stopped first."""

import random
import signal
import time

from run import row, scene

FAULT = "`serve` is killed (SIGKILL) after 0.2 to 8 s"
# Shares of the lives.
STARTED_TWICE, RIVALLED, STOPPED = 0.2, 0.1, 0.15


def run(seconds, seed, longest_life_s=8):
    draws, one = random.Random(f"{seed} killed"), row(FAULT)
    refused = stopped = 0
    with scene(seed) as scenery:
        waybill = scenery.waybill
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if draws.random() < STOPPED:
                waybill.process.send_signal(signal.SIGSTOP)
                time.sleep(draws.uniform(0.5, 6))
                waybill.process.send_signal(signal.SIGCONT)
                stopped += 1
            time.sleep(draws.uniform(0.2, longest_life_s))
            if draws.random() < RIVALLED:
                refused += is_refused(waybill, waybill.spawn(), one)
            waybill.kill()
            one.tried += 1
            if draws.random() < STARTED_TWICE:
                refused += start_two(waybill, one)
            else:
                waybill.start()
        one.notes.append(f"{refused} second serves refused; {stopped} times halted (SIGSTOP) for 0.5 to 6 s")
        return scenery.settle(one)


def start_two(waybill, one):
    rivals = [waybill.spawn(), waybill.spawn()]
    up = [waybill.adopt(rival) for rival in rivals]
    if up.count(True) != 1:
        one.findings.append(f"of two serves on one file {up.count(True)} came up")
    losers = [rival for rival, is_up in zip(rivals, up) if not is_up]
    return sum(is_refused(waybill, loser, one) for loser in losers)


def is_refused(waybill, rival, one):
    line = rival.stdout.readline()
    code = rival.wait(timeout=30) if not line else None
    rival.stdout.close()
    if code == 1 and "another waybill serve works on it" in waybill.log():
        return True
    one.findings.append(f"a second serve was not refused: exit {code}, {line!r}")
    rival.kill()
    return False
