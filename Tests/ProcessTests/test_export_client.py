"""The client's package as a repository of its own (scripts/export-client)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.broker import REPOSITORY

pytestmark = pytest.mark.hermesd("hermesd's own client")

SCRIPT = REPOSITORY / "scripts/export-client"
# Building what depends on the export compiles SwiftNIO and BoringSSL: minutes. Without the variable
# the modules of the client are built that need neither.
WHOLE = "HERMES_EXPORT_WHOLE" in os.environ

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "phone",
    platforms: [.macOS(.v12)],
    dependencies: [.package(url: "%s", from: "0.1.0")],
    targets: [
        .executableTarget(
            name: "phone",
            dependencies: [.product(name: "HermesKit", package: "%s")])
    ]
)
"""

PROGRAM = """import HermesKit

let client = try HermesClient(
    .init(.plain("127.0.0.1", port: 1), clientID: "phone-7", storage: .none))
client.start()
await client.stop()
print("stopped")
"""


def export(target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, target], capture_output=True, text=True)


def git(repository: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    return subprocess.run(
        ["git", "-C", repository, *identity, *arguments],
        check=True, capture_output=True, text=True).stdout


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    target = tmp_path / "hermes-client"
    ended = export(target)
    assert ended.returncode == 0, ended.stderr
    return target


def test_export_stands_alone(exported: Path):
    files = [path for path in exported.rglob("*") if not path.is_dir()]
    assert not [path for path in exported.rglob("*") if path.is_symlink()]
    assert not [path for path in files if ".build" in path.relative_to(exported).parts]
    assert {"Package.swift", "LICENSE", "README.md", ".gitignore"} <= {
        path.name for path in exported.iterdir()}
    codec = sorted((REPOSITORY / "Sources/MQTTCodec").rglob("*.swift"))
    assert codec
    for path in codec:
        copy = exported / "Sources/MQTTCodec" / path.relative_to(REPOSITORY / "Sources/MQTTCodec")
        assert copy.read_bytes() == path.read_bytes()


def test_export_links_only_to_pages_that_it_has(exported: Path):
    pages = [exported / "README.md", *(exported / "docs/decisions").glob("*.md")]
    assert len(pages) >= 3
    for page in pages:
        for piece in page.read_text().split("](")[1:]:
            link = piece.split(")", 1)[0].split("#", 1)[0]
            if link and "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_export_is_refused_where_something_is(tmp_path: Path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    for target, words in [(tmp_path, "is not empty"), (kept, "is no folder")]:
        ended = export(target)
        assert ended.returncode == 1
        assert f"export-client: {target} {words}" in ended.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]
        assert kept.read_text() == "mine"


def test_export_goes_into_a_new_repository(tmp_path: Path):
    git(tmp_path, "init", "--quiet")
    ended = export(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "Package.swift").exists()


@pytest.mark.timeout(1_200)
def test_program_depends_on_export_by_version(exported: Path, tmp_path: Path):
    git(exported, "init", "--quiet")
    git(exported, "add", "--all")
    git(exported, "commit", "--quiet", "--message", "Exported")
    git(exported, "tag", "0.1.0")
    program = tmp_path / "phone"
    (program / "Sources/phone").mkdir(parents=True)
    (program / "Package.swift").write_text(MANIFEST % (exported.as_uri(), exported.name))
    (program / "Sources/phone/main.swift").write_text(PROGRAM)

    # The folders of one user's SwiftPM are not told of a package that is gone after the test.
    swift = ["--package-path", program, "--security-path", tmp_path / "security"]
    wanted = [] if WHOLE else ["--target", "HermesClientCore"]
    built = subprocess.run(
        ["swift", "build", *swift, *wanted], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    resolved = (program / "Package.resolved").read_text()
    assert '"version" : "0.1.0"' in resolved
    # hermes-phone, and what it needs, is no concern of those who depend on the package.
    assert "swift-argument-parser" not in resolved
    if WHOLE:
        ran = subprocess.run([program / ".build/debug/phone"], capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (0, "stopped\n"), ran.stderr
