"""A short version of `make crashes`: the same harness and the same count, about half a minute each."""

import sys
import unittest

from waybill import ROOT

sys.path.append(str(ROOT / "tests" / "crashes"))

import disk_full  # noqa: E402
import killed  # noqa: E402


class Crashes(unittest.TestCase):
    def check(self, row):
        self.assertEqual(row.findings, [], row.notes)
        self.assertGreater(row.tried, 0)
        self.assertGreater(row.deliveries, 20)
        return row

    def test_killed_again_and_again_it_loses_none_and_doubles_no_effect(self):
        row = self.check(killed.run(seconds=12, seed=1, longest_life_s=2))
        self.assertGreater(row.tried, 3)

    def test_on_a_full_disk_it_says_so_and_goes_on_when_there_is_room(self):
        try:
            self.check(disk_full.run(seconds=1, seed=1, full_s=5))
        except disk_full.Unavailable as why:
            self.skipTest(str(why))


if __name__ == "__main__":
    unittest.main()
