"""Where the repository and what was built of it lie; from here on its other folders' modules can be imported."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("WAYBILL_FUNCTIONS", ROOT / "target" / "debug"))

# Behind this folder: names may be the same.
sys.path += [str(ROOT / "infra" / "local"), str(ROOT / "tests" / "end_to_end")]
