"""What verbs print: plain columns, tables in a terminal, JSON."""

import math

import numpy as np
import pytest

from sardonyx.cli import output

ROWS = [("a", "1"), ("long name", "2500")]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "in_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "dumb")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_plain_tables_align_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table("Costs", ("name", "size"), ROWS, "size")
    assert lines(capsys) == ["Costs", "  name       size", "  a             1", "  long name  2500"]
    output.print_table("", ("name", "size"), ROWS)
    assert lines(capsys) == ["  name       size", "  a          1", "  long name  2500"]


def test_a_long_cell_does_not_widen_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table("", ("a", "b"), [("x" * 70, "1"), ("y\nz", "2")])
    assert lines(capsys) == [
        "  a" + " " * 61 + "b",
        "  " + "x" * 70 + "  1",
        "  y z" + " " * 59 + "2",
    ]


@pytest.mark.usefixtures("terminal")
def test_tables_in_a_terminal_align_numbers_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.print_table("Costs", ("name", "size"), ROWS, "size")
    title, _, head, rule, *rows = lines(capsys)
    assert title == "Costs" and set(rule.strip()) == {"─"}
    assert [head, *rows[:2]] == [" name        size", " a              1", " long name   2500"]


@pytest.mark.usefixtures("terminal")
def test_narrow_terminals_fold_texts_and_never_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table("", ("name", "size"), [("n" * 60, "1234567890")], "size")
    shown = "\n".join(lines(capsys))
    assert "1234567890" in shown and shown.count("n") == 61


def test_facts_say_a_repeated_label_once(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    rows = [("one", "a"), ("one", "b"), ("second", "c")]
    output.print_facts(rows)
    assert lines(capsys) == ["one     a", "one     b", "second  c"]
    request.getfixturevalue("terminal")
    output.print_facts(rows)
    assert lines(capsys) == ["one     a", "        b", "second  c"]


def test_lines_and_labels(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    for _ in range(2):
        output.print_line("text", "warning")
        output.print_line("text")
        assert lines(capsys) == ["warning: text", "text"]
        request.getfixturevalue("terminal")
    output.complain("error", "text")
    assert capsys.readouterr().err == "error: text\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: (2, 3.5)}, {"1": [2, 3.5]}),
        ([math.inf, -math.inf, math.nan], ["inf", "-inf", "nan"]),
        (np.array([1, 2]), [1, 2]),
        (np.float32(0.5), 0.5),
        ((None, True, "a"), [None, True, "a"]),
        (ROWS, [["a", "1"], ["long name", "2500"]]),
        (complex(1, 2), "(1+2j)"),
    ],
    ids=str,
)
def test_json(value: object, expected: object) -> None:
    assert output.to_json(value) == expected


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"), (1023, "1,023 bytes"), (1024, "1.0 KiB"), (1 << 20, "1.0 MiB"),
        ((1 << 30) - (1 << 20), "1,023.0 MiB"), (1 << 30, "1.0 GiB"), (1 << 40, "1,024.0 GiB"),
    ],
)  # fmt: skip
def test_bytes(count: int, text: str) -> None:
    assert output.bytes_text(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 F"), (1000, "1.00 KF"), (1e6, "1.00 MF"), (1e9, "1.00 GF"), (2.5e12, "2.50 TF")],
)
def test_counts(count: float, text: str) -> None:
    assert output.count_text(count, "F") == text


def test_bars(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> None:
    rows = [("a", 2.0, 4.0), ("bb", 0.0, 0.0), ("c", 3.0, 3.0)]
    output.print_bars(rows, lambda number: f"{number:.0f} s")
    first, second, third = lines(capsys)
    assert first == "  a   " + "#" * 34 + "." * 35 + " 4 s"
    assert second == "  bb  # 0 s" and third == "  c   " + "#" * 52 + " 3 s"
    request.getfixturevalue("terminal")
    output.print_bars(rows, lambda number: f"{number:.0f} s")
    assert lines(capsys)[0] == "  a   " + "█" * 14 + "░" * 15 + " 4 s"
    output.print_bars([("a", 0.0, 0.0)], str)
    assert lines(capsys) == ["  a  █ 0.0"]
