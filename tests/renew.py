"""Write the golden files anew.

python -m tests.renew
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.test_leir.reference_programs import report

ROOT = Path(__file__).parent.parent
REFERENCE_CHECK = ROOT / "tests" / "golden" / "reference_check.json"


def contents() -> dict[Path, str]:
    """What each generated file should hold."""
    return {
        REFERENCE_CHECK: json.dumps(report(), indent=1, ensure_ascii=False) + "\n",
    }


def main() -> None:
    for path, text in contents().items():
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
