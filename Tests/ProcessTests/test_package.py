"""The Debian package: what is in it, and what it says of itself.

scripts/prove-package installs it; these tests only look into it.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.broker import REPOSITORY, Hermesd, inherited_environment

pytestmark = [
    pytest.mark.hermesd("hermesd's own package"),
    # Making it compresses and strips 200 MB, once for all tests here.
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("package"),
]

OWN_LICENSES = REPOSITORY / "packaging/debian/copyright"


@dataclass(frozen=True)
class Package:
    """A package, and what dpkg would install."""

    file: Path
    root: Path

    def text(self, path: str) -> str:
        file = self.root / path
        return gzip.open(file, "rt").read() if file.suffix == ".gz" else file.read_text()

    def field(self, name: str) -> str:
        return run("dpkg-deb", "--field", self.file, name).strip()


def run(*command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=800,
        env=inherited_environment(), check=False)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Package]:
    if not shutil.which("dpkg-query"):
        pytest.skip("this is no Debian system")
    build = Hermesd.executable().parent
    if not (build / "hermesd.product").exists():
        pytest.skip(f"{build} is no build folder")
    if "libswiftCore" in run("ldd", build / "hermesd"):
        pytest.skip(f"{build} was not built by scripts/build, which links the Swift runtime in")
    folder = tmp_path_factory.mktemp("package")
    (file,) = run(
        REPOSITORY / "scripts/package", "--quick", "--build", build, "--output", folder
    ).split()
    run("dpkg-deb", "--extract", file, folder / "root")
    yield Package(Path(file), folder / "root")


@pytest.fixture(scope="module")
def bill(package: Package) -> dict:
    return json.loads(package.text("usr/share/doc/hermes/hermes.cdx.json"))


def test_lintian_finds_nothing(package):
    """But for what packaging/debian/hermes.lintian-overrides explains;"""
    found = run("lintian", "--allow-root", "--fail-on=error,warning", package.file)
    assert found == ""


def test_the_version_is_the_programs(package):
    version = run(Hermesd.executable(), "--version").strip()
    assert package.field("Version") == f"{version}-1"
    assert run(Hermesd.control_executable(), "--version").strip() == version
    assert package.text("usr/share/doc/hermes/changelog.Debian.gz").startswith(
        f"hermes ({version}-1) ")
    assert package.text("usr/share/doc/hermes/changelog.gz") == (
        REPOSITORY / "CHANGELOG.md").read_text()


def test_what_is_installed_where(package):
    listed = run("dpkg-deb", "--contents", package.file).splitlines()
    rows = {line.split(None, 5)[5].removeprefix("./"): line.split()[:2] for line in listed}
    assert {owner for _, owner in rows.values()} == {"root/root"}
    for path, (mode, _) in rows.items():
        is_folder = path.endswith("/") or not path
        runs = path.startswith(("usr/bin/", "usr/sbin/"))
        assert mode == (
            "drwxr-xr-x" if is_folder else "-rwxr-xr-x" if runs else "-rw-r--r--"), path
    assert {
        "usr/sbin/hermesd", "usr/bin/hermesctl", "etc/hermes/hermes.yaml",
        "lib/systemd/system/hermes.service", "usr/lib/sysusers.d/hermes.conf",
        "usr/lib/tmpfiles.d/hermes.conf",
        "usr/share/man/man8/hermesd.8.gz", "usr/share/man/man1/hermesctl.1.gz",
        "usr/share/bash-completion/completions/hermesctl",
        "usr/share/doc/hermes/grafana/hermes.json", "usr/share/doc/hermes/grafana/alerts.yaml",
        "usr/share/zsh/vendor-completions/_hermesctl",
        "usr/share/fish/vendor_completions.d/hermesctl.fish",
    } <= rows.keys()
    # Data is made by the machine that it belongs to.
    assert not any(path.startswith("var/") for path in rows)


def test_it_depends_on_every_library_of_the_image(package):
    """And on nothing of which only a build knows."""
    depends = set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", package.field("Depends")))
    dockerfile = (REPOSITORY / "docker/Dockerfile").read_text()
    (words,) = re.findall(r"apt-get install -y ([^&]*)&&", dockerfile)
    libraries = {
        word for word in words.replace("\\", " ").split() if word.startswith(("lib", "zlib"))}
    assert depends == libraries | {"ca-certificates", "libc6", "systemd", "tzdata"}
    # Without authorities every https of the broker's own fails: webhooks, keys, logins, APNs.
    assert "ca-certificates" in words.split()
    # Without zone data every phone's quiet hours are in UTC.
    assert "tzdata" in words.split()


def test_the_configuration_is_a_conffile_and_valid(package, tmp_path):
    run("dpkg-deb", "--control", package.file, tmp_path)
    assert (tmp_path / "conffiles").read_text() == "/etc/hermes/hermes.yaml\n"
    text = package.text("etc/hermes/hermes.yaml")
    assert "\ndata_directory: /var/lib/hermes\n" in text
    run(Hermesd.control_executable(), "config", "check", package.root / "etc/hermes/hermes.yaml")


def test_the_unit_runs_what_is_installed(package):
    unit = package.text("lib/systemd/system/hermes.service")
    own = (REPOSITORY / "packaging/systemd/hermes.service").read_text()
    (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, option, configuration = command.split()
    assert option == "--config"
    for path in (program, configuration):
        assert (package.root / path.lstrip("/")).exists(), path
    (reload,) = re.findall(r"^ExecReload=(\S*)", unit, re.MULTILINE)
    assert (package.root / reload.lstrip("/")).exists(), reload
    kept = [line for line in own.splitlines()
            if not line.startswith(("#", "ExecStart=", "ExecReload="))]
    assert [line for line in unit.splitlines() if line in kept] == kept
    made = package.text("usr/lib/tmpfiles.d/hermes.conf")
    (folders,) = re.findall(r"^StateDirectory=(.*)$", unit, re.MULTILINE)
    assert re.findall(r"^d /var/lib/(\S+) 0700 hermes hermes$", made, re.MULTILINE) == (
        folders.split())


# Manual pages and completion.


@pytest.mark.parametrize("program", ["hermesd", "hermesctl"])
def test_the_manual_page_has_every_command_and_option(program, package):
    executable = Hermesd.executable() if program == "hermesd" else Hermesd.control_executable()
    section = 8 if program == "hermesd" else 1
    page = package.text(f"usr/share/man/man{section}/{program}.{section}.gz").replace("\\-", "-")
    described = json.loads(run(executable, "--experimental-dump-help"))
    names = set()

    def walk(command: dict, path: str) -> None:
        subcommands = [
            one for one in command.get("subcommands", ()) if one["commandName"] != "help"]
        if path and not subcommands:
            assert f"\n.SS {path}\n" in page, path
        for argument in command.get("arguments", ()):
            names.update("--" + name["name"] for name in argument.get("names", ())
                         if name["kind"] == "long" and argument["shouldDisplay"])
        for one in subcommands:
            walk(one, f"{path} {one['commandName']}".strip())

    walk(described["command"], "")
    assert len(names) > 10
    missing = {name for name in names if not re.search(rf"\\fB{name}\\fR", page)}
    assert missing == set()
    assert "/root" not in page and str(REPOSITORY) not in page


@pytest.mark.parametrize("program", ["hermesd", "hermesctl"])
def test_completion_is_registered(program, package):
    script = package.root / f"usr/share/bash-completion/completions/{program}"
    assert run("bash", "-c", f"source {script} && complete -p {program}").startswith("complete ")
    assert package.text(f"usr/share/zsh/vendor-completions/_{program}").startswith("#compdef")
    assert f"complete -c '{program}'" in package.text(
        f"usr/share/fish/vendor_completions.d/{program}.fish")


# What is linked in.


def test_the_bill_of_materials_is_cyclonedx(bill):
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    version = run(Hermesd.executable(), "--version").strip()
    assert bill["metadata"]["component"]["version"] == version
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(set(references)) == len(references)
    (root,) = bill["dependencies"]
    assert root == {"ref": "hermes", "dependsOn": references}
    for component in bill["components"]:
        assert component["type"] == "library" and component["name"] and component["version"]
        assert re.fullmatch(r"pkg:(swift|deb|github)/[^@\s]+@\S+", component["purl"]), component


def test_the_bill_names_every_swift_package_that_is_linked_in(bill):
    """With the version that was compiled; a module that no package owns is ours."""
    build = Hermesd.executable().parent
    state = json.loads((build.resolve().parent.parent / "workspace-state.json").read_text())
    compiled = {
        row["packageRef"]["identity"]: row["state"]["checkoutState"]["version"]
        for row in state["object"]["dependencies"]
    }
    listed = {
        component["name"]: component for component in bill["components"]
        if component["bom-ref"].startswith("swift:")
    }
    assert {"swift-nio", "hummingbird", "swift-argument-parser", "swift-log"} <= listed.keys()
    for name, component in listed.items():
        assert component["version"] == compiled[name]
    linked = {
        module for program in ("hermesd", "hermesctl") for module in re.findall(
            r"/(\w+)\.build/", (build / f"{program}.product/Objects.LinkFileList").read_text())
    }
    named = {
        module for component in listed.values() for entry in component["properties"]
        if entry["name"] == "hermes:modules" for module in entry["value"].split()
    }
    assert named <= linked
    own = {path.name for path in (REPOSITORY / "Sources").iterdir()} | {
        "OperatorConfiguration", "HermesClientCore"}
    assert linked - named <= own


def test_the_bill_names_every_shared_library(bill):
    named = {
        library for component in bill["components"] if component["purl"].startswith("pkg:deb/")
        for entry in component["properties"] if entry["name"] == "hermes:libraries"
        for library in entry["value"].split()
    }
    for program in (Hermesd.executable(), Hermesd.control_executable()):
        needed = set(re.findall(
            r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", program)))
        assert needed and needed <= named, needed - named


def test_the_licenses_name_everything_that_is_linked_in(package, bill):
    copyright_file = package.text("usr/share/doc/hermes/copyright")
    assert copyright_file == OWN_LICENSES.read_text()
    for component in bill["components"]:
        if not component["purl"].startswith("pkg:deb/"):
            assert f"linked/{component['name']}/*" in copyright_file, component["name"]
    notice = package.text("usr/share/doc/hermes/NOTICE")
    assert "The SwiftNIO Project" in notice and "Hummingbird" in notice
