"""Every line of the checklist has a test, and every mark names lines that exist."""

from tests import checklist


def test_every_line_has_a_test() -> None:
    marked = {name for _, names in checklist.marks() for name in names}

    assert [] == [name for name in checklist.ids() if name not in marked]


def test_a_mark_names_one_to_three_lines_that_exist() -> None:
    known = {*checklist.ids()}

    wrong = [
        (where, names)
        for where, names in checklist.marks()
        if not 1 <= len(names) <= 3 or not set(names) <= known
    ]

    assert [] == wrong


def test_a_line_is_proven_by_a_test_that_passed_and_refuted_by_one_that_failed() -> None:
    """A skipped test proves nothing, and one failure outweighs any number of passes."""
    outcomes = [
        {"S0.1": "passed", "S0.2": "passed"},
        {"S0.2": "failed"},
        {"S0.3": "skipped"},
        {"S0.1": "skipped"},
    ]

    assert {"S0.1"} == checklist.proven(outcomes)


def test_the_count_names_every_group() -> None:
    assert "checklist: S0 1 of 39, S1 0 of 53, S2 2 of 26, S4 1 of 100" == checklist.count(
        {"S0.7", "S2.1", "S2.26", "S4.1"}
    )
