"""Certificates for tests, made by openssl(1) when they are needed; none is kept."""

from __future__ import annotations

import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .waiting import PATIENCE

_PATIENCE = 6 * PATIENCE
"""A key of 4096 bits takes seconds."""

_CONFIGURATION = """
[ca]
default_ca = tests
[tests]
dir = {directory}
database = {directory}/index.txt
new_certs_dir = {directory}
rand_serial = yes
certificate = {directory}/ca.crt
private_key = {directory}/ca.key
default_md = sha256
default_crl_days = 30
crlnumber = {directory}/crlnumber
unique_subject = no
policy = any
[any]
commonName = optional
[req]
distinguished_name = nobody
[nobody]
"""


@dataclass(frozen=True)
class Certificate:
    """A PEM certificate and its key."""

    certificate: Path
    key: Path

    def replace(self, by: Certificate) -> None:
        """Puts another pair in the place of this one, each file at once."""
        for old, new in ((self.key, by.key), (self.certificate, by.certificate)):
            copy = old.with_suffix(".new")
            copy.write_bytes(new.read_bytes())
            copy.chmod(0o600)
            copy.rename(old)


class Authority:
    """A certificate authority of one test; `issuer` makes it one between, else it is a root."""

    def __init__(
        self, directory: Path, name: str = "Test authority", *, issuer: Authority | None = None,
        valid_days: int = 30,
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self.certificate = directory / "ca.crt"
        self._configuration = directory / "ca.cnf"
        self._configuration.write_text(_CONFIGURATION.format(directory=directory))
        (directory / "index.txt").touch()
        (directory / "crlnumber").write_text("01\n")
        if issuer is not None:
            made = issuer.issue(name, names=None, is_authority=True, valid_until_days=valid_days)
            made.key.rename(directory / "ca.key")
            self.certificate.write_bytes(made.certificate.read_bytes())
            return
        self._run(
            "req", "-x509", *_new_key(directory / "ca.key"), "-out", str(self.certificate),
            "-days", str(valid_days), "-subj", f"/CN={name}",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )

    def issue(
        self, name: str, *, subject: str | None = None,
        names: str | None = "DNS:localhost,IP:127.0.0.1",
        valid_from_days: int = -1, valid_until_days: int = 20, rsa: int | bool = False,
        key_kind: str = "P-256", extra: str = "", is_authority: bool = False,
        renews: Certificate | None = None,
    ) -> Certificate:
        """A certificate with the common name `name`, unless `subject` says otherwise.

        `names` are its alternative names; a client's certificate needs none. The files carry
        `name` with what is no letter, digit or dot replaced. `extra` is added to its extensions.
        `rsa` is the size of its key, `True` for 2048 bits; else it is of `key_kind`, a curve or ed25519.
        `renews` is a certificate whose key it takes over.
        """
        stem = "".join(one if one.isalnum() or one == "." else "-" for one in name)[:60]
        key, request = self.directory / f"{stem}.key", self.directory / f"{stem}.csr"
        certificate = self.directory / f"{stem}.crt"
        extensions = self.directory / f"{stem}.ext"
        extensions.write_text(
            ("basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
             if is_authority else "basicConstraints=CA:FALSE\n")
            + (f"subjectAltName={names}\n" if names else "") + extra)
        if renews is not None:
            key.write_bytes(renews.key.read_bytes())
        kind = ["-new", "-key", str(key)] if renews else _new_key(key, rsa, key_kind)
        self._run(
            "req", *kind, "-out", str(request), "-utf8",
            "-subj", subject if subject is not None else f"/CN={name}")
        self._run(
            "ca", "-batch", "-notext", "-in", str(request), "-out", str(certificate),
            "-extfile", str(extensions), "-utf8",
            "-startdate", _time(valid_from_days), "-enddate", _time(valid_until_days))
        key.chmod(0o600)
        return Certificate(certificate, key)

    def revoke(self, certificate: Certificate) -> None:
        self._run("ca", "-batch", "-revoke", str(certificate.certificate))

    def write_list(
        self, path: Path, *others: Authority, days: int = 30
    ) -> Path:
        """Writes the list of certificates revoked so far, followed by the lists of `others`.

        It is valid for this many days; a negative number makes it expired.
        """
        fresh = path.with_suffix(".new")
        texts = []
        for authority in (self, *others):
            authority._run(
                "ca", "-gencrl", "-crl_lastupdate", _time(min(days, 0) - 1), "-crl_nextupdate",
                _time(days), "-out", str(fresh))
            texts.append(fresh.read_text())
        fresh.write_text("".join(texts))
        fresh.rename(path)
        return path

    def _run(self, *arguments: str) -> None:
        command = ["openssl", arguments[0], "-config", str(self._configuration), *arguments[1:]]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False,
            cwd=self.directory)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def self_signed(directory: Path, name: str = "localhost") -> Certificate:
    """A certificate without a trusted authority."""
    directory.mkdir(parents=True, exist_ok=True)
    pair = Certificate(directory / "self.crt", directory / "self.key")
    subprocess.run(
        ["openssl", "req", "-x509", *_new_key(pair.key), "-out", str(pair.certificate), "-days",
         "20", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True, timeout=PATIENCE)
    pair.key.chmod(0o600)
    return pair


def _new_key(path: Path, rsa: int | bool = False, key_kind: str = "P-256") -> list[str]:
    if rsa:
        kind = [f"rsa:{2048 if rsa is True else rsa}"]
    elif key_kind == "ed25519":
        kind = [key_kind]
    else:
        kind = ["ec", "-pkeyopt", f"ec_paramgen_curve:{key_kind}"]
    return ["-newkey", *kind, "-nodes", "-keyout", str(path)]


def _time(days: int) -> str:
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return moment.strftime("%Y%m%d%H%M%SZ")
