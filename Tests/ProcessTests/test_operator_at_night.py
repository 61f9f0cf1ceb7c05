"""Eight clients in trouble among many: `hermesctl` names the cause of each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from harness.broker import Hermesd, inherited_environment
from harness.troubled_clients import NAMES, Scene, add_gone, broker
from harness.waiting import PATIENCE, eventually

pytestmark = pytest.mark.hermesd("hermesctl explain")

BYSTANDERS = 200
CAUSES = {
    NAMES.slow: (
        "It does not read: ",
        "its subscription has QoS 0, and it read too slowly (limits.output_bytes)"),
    NAMES.full: ("100 messages are kept until it comes back.", "It lost 20 of its messages: its queue was full"),
    NAMES.fought_over: ("Two peers use this identifier and take it from each other",),
    NAMES.denied: (f"It may not subscribe to orders/{NAMES.full}/#: the access rules denied it",),
    NAMES.gone: ("It is offline since", "1 message is kept until it comes back."),
    NAMES.silent: ("20 messages are sent and not acknowledged; 20 more wait behind",),
    NAMES.banned: ("It is banned until the ban is lifted, by admin: stolen phone, ticket 77.",),
    NAMES.stranger: ("wrong user name or password", "Its CONNECT as user phones was refused 3 times"),
}
FOUND_BY_LISTS = {
    ("--sort", "dropped"): {NAMES.slow, NAMES.full},
    ("--sort", "queued"): {NAMES.full, NAMES.silent},
    ("--sort", "in-flight"): {NAMES.silent},
}


@pytest.fixture(scope="module")
def night(tmp_path_factory) -> Iterator[Hermesd]:
    hermesd = broker(tmp_path_factory.mktemp("night"))
    hermesd.start()
    scene = None
    try:
        add_gone(hermesd)
        scene = Scene(hermesd)
        scene.add_bystanders(BYSTANDERS)
        scene.begin()
        yield hermesd
    finally:
        if scene is not None:
            scene.close()
        hermesd.stop()
        hermesd.remove_files()


def asked(hermesd: Hermesd, *arguments: str) -> str:
    """What hermesctl says to an operator who names nothing but the data directory."""
    done = subprocess.run(
        [str(Hermesd.control_executable()), *arguments, "--data-directory", str(hermesd.data)],
        env=inherited_environment(), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("name", CAUSES)
def test_explain_names_the_cause(night, name):
    eventually(
        lambda: all(words in asked(night, "explain", name) for words in CAUSES[name]),
        f"explain to say of {name}: {CAUSES[name]}")


@pytest.mark.parametrize("options", FOUND_BY_LISTS)
def test_sorted_lists_begin_with_those_in_trouble(night, options):
    wanted = FOUND_BY_LISTS[options]
    listed = asked(night, "clients", "list", *options, "--limit", str(len(wanted)), "--names")
    assert set(listed.split()) == wanted


def test_troubles_lists_those_in_trouble_and_nobody_else(night):
    def listed() -> set[str]:
        lines = asked(night, "troubles").splitlines()[1:]
        return {word for line in lines for word in line.split() if word.startswith("phone-")}

    wanted = {NAMES.slow, NAMES.full, NAMES.fought_over, NAMES.denied, NAMES.banned, NAMES.stranger}
    eventually(lambda: listed() == wanted, "those with a trouble")
    refused = asked(night, "troubles", "--kind", "refused")
    assert NAMES.stranger in refused and NAMES.banned in refused and NAMES.slow not in refused


def test_nobody_else_is_in_trouble(night):
    """Bystanders have no line that names a loss, a refusal or a limit."""
    text = asked(night, "explain", "phone-20000")
    assert "It subscribes to orders/phone-20000/# (QoS 1)." in text
    assert not any(word in text for word in ("lost", "refused", "denied", "acknowledged"))
