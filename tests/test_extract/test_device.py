"""Device descriptions: what comes with the project, what is refused, and what this machine says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from extract.device import CALLS, FIGURES, FOLDER, OPERATIONS, DeviceError, load, names, this_cpu


def test_devices_that_come_with_the_project() -> None:
    assert names() == ("cpu", "h200")
    assert load("cpu").kind == "cpu"
    assert load("h200").kind == "gpu"
    assert load("cpu") is load("cpu")


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_every_figure_has_a_value_a_unit_and_a_source(name: str) -> None:
    device = load(name)
    assert tuple(device.figures) == FIGURES[device.kind]
    for key, figure in device.figures.items():
        assert figure.value > 0 and figure.unit and figure.source
        assert device[key] == figure.value
    assert set(device.operations) == set(OPERATIONS[device.kind])
    assert set(device.calls) == set(CALLS[device.kind])


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_levels_get_larger_and_slower(name: str) -> None:
    levels = load(name).levels
    capacities = [level.capacity for level in levels]
    bandwidths = [level.bandwidth for level in levels]
    assert capacities == sorted(capacities) and capacities[-1] == float("inf")
    assert bandwidths == sorted(bandwidths, reverse=True) and bandwidths[0] == float("inf")


def test_the_h200_has_the_peaks_of_its_data_sheet() -> None:
    h200 = load("h200")
    per_cycle = 2 * h200["multiprocessors"] * h200["frequency"]  # a multiply-add counts twice
    assert h200.operations["f32"][0] * per_cycle == pytest.approx(67e12, rel=0.01)
    assert h200.operations["f64"][0] * per_cycle == pytest.approx(34e12, rel=0.02)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("format = 1", "format = 2", "format: version 2 is not 1"),
        ("format = 1", "", "format: version None"),
        ('kind = "cpu"', 'kind = "tpu"', "kind: 'tpu' is neither"),
        ('name = "cpu"', "name = 3", "name: a string is needed"),
        ("value = 3.2e9", "value = -1.0", "figures.frequency.value: -1.0 is no positive number"),
        ("value = 3.2e9", "value = inf", "figures.frequency.value: inf is no positive number"),
        ("value = 3.2e9", "value = true", "figures.frequency.value: True is no positive number"),
        ("cores = {", "kernels = {", "figures.kernels: an unknown key"),
        ("fma = [0.5, 4]", "", "operations.fma: a list of 2 numbers is needed"),
        ("fma = [0.5, 4]", 'fma = [0.5, "x"]', "operations.fma: 'x' is no positive number"),
        ("shared = false", "shared = 0", "levels[0].shared: true or false is needed"),
        ("[operations]", "[operations", "Expected ']'"),
    ],
)
def test_a_bad_file_is_refused_with_its_path_and_the_key(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (FOLDER / "cpu.toml").read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DeviceError) as error:
        load(str(path))
    assert str(path) in str(error.value)
    assert complaint in str(error.value)


def test_a_figure_without_a_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (FOLDER / "cpu.toml").read_text(encoding="utf-8").splitlines()
    text = ["cores = { value = 2, unit = 'cores', source = '' }" if line.startswith("cores =") else line for line in text]
    path.write_text("\n".join(text), encoding="utf-8")
    with pytest.raises(DeviceError, match=r"figures\.cores\.source: a text is needed"):
        load(str(path))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DeviceError, match="h100: no such device; known are cpu, h200"):
        load("h100")


# --------------------------------------------------------------------------------------------------------------------- this CPU


def test_this_cpu_reads_caches_and_cores(tmp_path: Path) -> None:
    cpu = tmp_path / "sys/devices/system/cpu"
    caches = [("1", "Data", "32K", "64"), ("1", "Instruction", "32K", "64"), ("2", "Unified", "512K", "1024")]
    for index, (level, kind, size, sets) in enumerate([*caches, ("3", "Unified", "8192K", "8192")]):
        folder = cpu / f"cpu0/cache/index{index}"
        folder.mkdir(parents=True)
        entries = {"level": level, "type": kind, "size": size, "coherency_line_size": "64", "number_of_sets": sets}
        for name, text in entries.items():
            (folder / name).write_text(text + "\n", encoding="ascii")
    found = this_cpu(str(tmp_path))
    stored = load("cpu")
    assert [level.capacity for level in found.levels[:3]] == [32 * 1024, 512 * 1024, 8 * 1024 * 1024]
    assert [level.sets for level in found.levels] == [64, 1024, None, None]
    assert found["cores"] == stored["cores"]  # no topology there, so the stored number holds
    assert found["frequency"] == stored["frequency"]


def test_this_cpu_without_sys_is_the_stored_one(tmp_path: Path) -> None:
    found, stored = this_cpu(str(tmp_path)), load("cpu")
    assert found.levels == stored.levels
    assert dict(found.figures) == dict(stored.figures)
