"""`make measure`: that its stubs are still enough for the functions. What it measures is no test's business."""

import subprocess
import sys
import unittest

from places import BINARIES, ROOT


class Measure(unittest.TestCase):
    def test_the_functions_do_their_work_against_its_stubs(self):
        script = ROOT / "infra" / "local" / "measure.py"
        done = subprocess.run([sys.executable, script, "--once", BINARIES], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for told in ("| consumer |", "ms of CPU per record"):
            self.assertIn(told, done.stdout)


class Ratios(unittest.TestCase):
    def test_ratios_are_ours_by_theirs_and_nothing_by_nothing_is_none(self):
        sys.path.insert(0, str(ROOT / "bench"))
        from on_lambda import ratios

        for ours, theirs, expected in (
            ([1.0], [4.0], ["0.25"]),
            ([3.0, 7.2], [2.0, 360.0], ["1.50", "0.02"]),
            ([1.0], [0.0], ["-"]),
        ):
            with self.subTest(ours=ours, theirs=theirs):
                self.assertEqual(ratios(ours, theirs), expected)
