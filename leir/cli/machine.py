"""Commands about this machine: doctor."""

from __future__ import annotations

from leir.cli.report import AsJson, emit, emit_json, end_no


def doctor(json: AsJson = False) -> None:
    """Tell which libraries, compilers and devices are here.

    Ends with 1 if something required is missing, has the wrong version, or does not load.

    Example: leir doctor --json
    """
    from leir.doctor import examine

    report = examine()
    if json:
        emit_json(report.to_json())
    else:
        emit(report.to_text())
    if not report.healthy:
        end_no()
