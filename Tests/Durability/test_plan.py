"""A proof with too few kills is none."""

from __future__ import annotations

import random

import pytest

from proof import __main__ as command
from proof.disk_record import Loss
from proof.history import FAILPOINTS, Kill
from proof.ledger import Violation
from proof.plan import EXACTLY_ONCE_ONLY, cells, missing, plan, trigger_of
from proof.report import verdict
from proof.runner import Proof

pytestmark = pytest.mark.quick


def proof_of(per_cell: int, *, lacking: tuple[str, int] | None = None) -> Proof:
    """So many kills per failpoint and QoS, less one at `lacking`."""
    kills = [
        Kill(name, Loss.EVERYTHING, {qos: 1}) for name, qos in cells() for _ in range(per_cell)]
    if lacking:
        kills.remove(Kill(lacking[0], Loss.EVERYTHING, {lacking[1]: 1}))
    return Proof(wanted=len(kills), per_cell=per_cell, seed=1, kills=kills, histories=1)


def test_each_failpoint_counts_with_each_quality_of_service_that_reaches_it() -> None:
    labels = {*FAILPOINTS, "journal hangs", "database hangs"}
    assert set(cells()) == {(label, qos) for label in labels for qos in (1, 2)} - {
        (label, 1) for label in EXACTLY_ONCE_ONLY}


def test_what_ends_a_life_names_its_kill() -> None:
    rng = random.Random(1)
    assert all(trigger_of(label, rng).label == label for label, _ in cells())


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: f"{cell[0]}-{cell[1]}")
def test_one_kill_too_few_at_a_failpoint_is_no_proof(cell: tuple[str, int]) -> None:
    assert verdict(proof_of(10))[1]
    proof = proof_of(10, lacking=cell)
    proof.wanted -= 1
    text, is_proven = verdict(proof)
    assert not is_proven and proof.missing == {cell: 1}
    assert f"NOT PROVEN: {cell[0]} needs 1 more of 10 kills with QoS {cell[1]}" in text


def test_a_kill_counts_for_what_was_outstanding() -> None:
    kills = [Kill("afterWrite", Loss.NOTHING, {}), Kill("afterWrite", Loss.NOTHING, {0: 3, 2: 1})]
    lacking = missing(kills, 1)
    assert ("afterWrite", 2) not in lacking and lacking["afterWrite", 1] == 1
    assert [kill.counts for kill in kills] == [False, True]


def test_kills_that_do_not_count_are_no_proof() -> None:
    proof = proof_of(1)
    proof.kills.append(Kill("random", Loss.NOTHING, {}))
    proof.wanted = len(proof.kills)
    text, is_proven = verdict(proof)
    assert not is_proven and "NOT PROVEN" in text


def test_the_command_fails_without_a_proof(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object, **__: object) -> Proof:
        return proof

    monkeypatch.setattr("sys.argv", ["proof"])
    monkeypatch.setattr(command, "prove", run)
    proof = proof_of(10)
    assert command.main() == 0
    proof = proof_of(10, lacking=("pubrel", 2))
    assert command.main() == 1
    assert "NOT PROVEN: pubrel" in capsys.readouterr().out

    def break_promise(*_: object, **__: object) -> Proof:
        raise Violation("t/1 #7 is lost")

    monkeypatch.setattr(command, "prove", break_promise)
    assert command.main() == 1
    assert "t/1 #7 is lost" in capsys.readouterr().err


def test_the_plan_has_every_cell_as_often_as_it_must() -> None:
    lives = plan(400, random.Random(1), per_cell=10)
    assert len(lives) == 400
    for label, qos in cells():
        fitting = [
            life for life in lives if life.trigger.label == label and life.levels == (qos,)]
        assert len(fitting) == 10, (label, qos)
