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
