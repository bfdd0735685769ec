"""Limits on threads, read from made-up systems."""

import os
from pathlib import Path

import pytest

import sardonyx as sx
from sardonyx.compiler import program
from sardonyx.compiler.processors import available_processors
from sardonyx.runtime.processors import ThreadLimits, cpu_quota, thread_limits

NEWER = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
OLDER = "32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct"


def system(root: Path, groups: str, mounts: list[str], files: dict[str, str]) -> Path:
    """A folder with the files of a system."""
    mounts = ["22 1 8:1 / / rw - ext4 /dev/sda1 rw", *mounts]
    said = {"proc/self/cgroup": groups, "proc/self/mountinfo": "\n".join(mounts), **files}
    for name, text in said.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("said", "quota"),
    [
        ("max 100000", None),
        ("200000 100000", 2.0),
        ("150000 100000", 1.5),
        ("5000 100000", 0.05),
        ("0 100000", None),
        ("100000 0", None),
        ("100000", None),
        ("", None),
        ("many few", None),
        ("-1 100000", None),
    ],
)
def test_the_newer_interface(tmp_path: Path, said: str, quota: float | None) -> None:
    files = {"sys/fs/cgroup/cpu.max": said}
    assert cpu_quota(system(tmp_path, "0::/", [NEWER.format(top="/")], files)) == quota


def test_the_tightest_of_nested_groups_counts(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cpu.max": "800000 100000",
        "sys/fs/cgroup/pod/cpu.max": "90000 30000",
        "sys/fs/cgroup/pod/one/cpu.max": "max 100000",
        "sys/fs/cgroup/pod/one/deep/cpu.max": "400000 100000",
        "sys/fs/cgroup/other/cpu.max": "100000 100000",
    }
    root = system(tmp_path, "0::/pod/one/deep", [NEWER.format(top="/")], files)
    assert cpu_quota(root) == 3


@pytest.mark.parametrize(
    ("group", "top"),
    [("/pod", "/pod"), ("/pod/../..", "/pod"), ("/elsewhere", "/pod"), ("/../../pod", "/")],
)
def test_a_container_that_sees_only_its_own_group(tmp_path: Path, group: str, top: str) -> None:
    files = {"sys/fs/cgroup/cpu.max": "250000 100000", "cpu.max": "100000 100000"}
    assert cpu_quota(system(tmp_path, f"0::{group}", [NEWER.format(top=top)], files)) == 2.5


def test_the_older_interface(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/cpu,cpuacct"
    files = {
        f"{folder}/cpu.cfs_quota_us": "-1",
        f"{folder}/cpu.cfs_period_us": "100000",
        f"{folder}/docker/cpu.cfs_quota_us": "350000",
        f"{folder}/docker/cpu.cfs_period_us": "100000",
        f"{folder}/docker/abc/cpu.cfs_quota_us": "600000",
        f"{folder}/docker/abc/cpu.cfs_period_us": "100000",
    }
    groups = "5:memory:/docker/abc\n4:cpuset:/\n3:cpu,cpuacct:/docker/abc"
    assert cpu_quota(system(tmp_path / "whole", groups, [OLDER.format(top="/")], files)) == 3.5
    own = {name.replace("/docker/abc", ""): text for name, text in files.items() if "abc" in name}
    root = system(tmp_path / "inside", groups, [OLDER.format(top="/docker/abc")], own)
    assert cpu_quota(root) == 6


def test_both_interfaces_at_once(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/cpu,cpuacct"
    files = {
        f"{folder}/cpu.cfs_quota_us": "500000",
        f"{folder}/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/new one/cpu.max": "400000 100000",
    }
    unified = "41 31 0:38 / /sys/fs/cgroup/new\\040one rw - cgroup2 cgroup2 rw"
    root = system(tmp_path, "3:cpu,cpuacct:/\n0::/", [OLDER.format(top="/"), unified], files)
    assert cpu_quota(root) == 4


def test_systems_without_groups_have_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    assert cpu_quota(system(tmp_path, "what is this", ["nor this -", "a - cgroup2"], {})) is None


@pytest.mark.parametrize(
    ("said", "limit"),
    [("3", 3), (" 1 ", 1), ("2,4", 2), ("0", None), ("-2", None), ("", None), ("four", None)],
)
def test_the_environment(tmp_path: Path, said: str, limit: int | None) -> None:
    assert thread_limits({"OMP_NUM_THREADS": said}, tmp_path).environment == limit
    assert thread_limits({}, tmp_path).threads == available_processors()


@pytest.mark.parametrize(
    ("limits", "threads", "reason"),
    [
        (ThreadLimits(8, 8, None, None), 8, "all processors"),
        (ThreadLimits(8, 6, None, None), 6, "6 of 8 processors"),
        (ThreadLimits(8, 6, 2.01, None), 3, "container may use 2.01"),
        (ThreadLimits(8, 6, 0.5, None), 1, "container may use 0.5"),
        (ThreadLimits(8, 6, 7.0, None), 6, "6 of 8 processors"),
        (ThreadLimits(8, 8, 3.0, 2), 2, "OMP_NUM_THREADS is 2"),
        (ThreadLimits(8, 8, 2.0, 3), 2, "container may use 2 "),
        (ThreadLimits(8, 8, None, 64), 8, "all processors"),
        (ThreadLimits(1, 1, None, None), 1, "all processors"),
        (ThreadLimits(8, 8, None, None, together=False), 1, "only on Linux"),
    ],
)
def test_the_smallest_limit_decides(limits: ThreadLimits, threads: int, reason: str) -> None:
    assert limits.threads == threads
    assert reason in limits.reason


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (-1, 1), (3, 3)])
def test_sessions_use_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: int, given: int
) -> None:
    made: list[int] = []
    team = program.Team
    monkeypatch.setattr(program, "Team", lambda threads: made.append(threads) or team(threads))
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
    options = sx.SessionOptions()
    options.intra_op_num_threads = asked
    sx.InferenceSession("examples/digits.onnx", options, ["CPUExecutionProvider"])
    assert made == [given]
