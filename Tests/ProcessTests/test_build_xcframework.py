"""scripts/build-xcframework, with a stand-in for xcodebuild: no test runs on a machine with Xcode."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.broker import REPOSITORY

pytestmark = pytest.mark.hermesd("hermesd's own client")

SCRIPT = REPOSITORY / "scripts/build-xcframework"

XCODEBUILD = r"""#!/usr/bin/env bash
# Leaves what Xcode leaves, as far as the script looks at it.
set -euo pipefail
printf '%s\n' "$*" >>"$CALLS"
if [[ $1 == archive ]]; then
    grep -q 'name: "HermesObjC", type: .dynamic, targets' Package.swift
    while (($#)); do
        case $1 in
        -archivePath) archive=$2 ;;
        -derivedDataPath) derived=$2 ;;
        -destination) [[ $2 == *Simulator ]] && platform=iphonesimulator || platform=iphoneos ;;
        esac
        shift
    done
    mkdir -p "$archive/Products/usr/local/lib/HermesObjC.framework" "$derived/Maps-$platform"
    echo "// $platform" >"$derived/Maps-$platform/HermesObjC-Swift.h"
else
    while [[ $1 != -output ]]; do
        if [[ $1 == -framework ]]; then
            mkdir -p "$OUT"
            cp -R "$2" "$OUT/$(basename "${2%%.xcarchive*}")"
        fi
        shift
    done
    mkdir -p "$2"
fi
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    tools = tmp_path / "tools"
    tools.mkdir()
    stand_in = tools / "xcodebuild"
    stand_in.write_text(XCODEBUILD)
    stand_in.chmod(0o755)
    return os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"),
        "OUT": str(tmp_path / "frameworks")}


def run(target: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, target], capture_output=True, text=True, env=environment)


def test_each_platform_becomes_a_framework_that_objective_c_can_import(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    ended = run(tmp_path / "out", environment)
    assert ended.returncode == 0, ended.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["archive", "archive", "-create-xcframework"]
    assert calls[2].endswith(f"-output {tmp_path}/out/HermesObjC.xcframework")
    for platform in ("iphoneos", "iphonesimulator"):
        framework = tmp_path / "frameworks" / platform
        assert (framework / "Headers/HermesObjC-Swift.h").read_text() == f"// {platform}\n"
        assert "framework module HermesObjC {" in (framework / "Modules/module.modulemap").read_text()
        assert (framework / "PrivacyInfo.xcprivacy").exists()


def test_what_is_there_is_kept(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "HermesObjC.xcframework").mkdir()
    ended = run(tmp_path, environment)
    assert ended.returncode == 1
    assert "is there already" in ended.stderr


def test_a_machine_without_xcode_is_told(tmp_path: Path) -> None:
    ended = run(tmp_path, dict(os.environ))
    assert ended.returncode == 1
    assert "xcodebuild is missing. Run this on macOS with Xcode." in ended.stderr
