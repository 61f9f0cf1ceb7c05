"""The cipher suites that Hermes offers, with their names in each client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    version: str
    """"1.2" or "1.3"."""
    name: str
    """In OpenSSL, for a certificate with an ECDSA key."""
    cipher: str
    """In GnuTLS."""

    @property
    def priority(self) -> str:
        """The priority string with which GnuTLS offers nothing else."""
        return f"NORMAL:-VERS-ALL:+VERS-TLS{self.version}:-CIPHER-ALL:+{self.cipher}"

    @property
    def openssl_arguments(self) -> tuple[str, ...]:
        """The arguments with which s_client offers nothing else."""
        if self.version == "1.3":
            return "-tls1_3", "-ciphersuites", self.name
        return "-tls1_2", "-cipher", self.name

    def __str__(self) -> str:
        return self.name


SUITES_1_3 = [
    Suite("1.3", "TLS_AES_128_GCM_SHA256", "AES-128-GCM"),
    Suite("1.3", "TLS_AES_256_GCM_SHA384", "AES-256-GCM"),
    Suite("1.3", "TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
]
SUITES_1_2 = [
    Suite("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "AES-128-GCM"),
    Suite("1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", "AES-256-GCM"),
    Suite("1.2", "ECDHE-ECDSA-CHACHA20-POLY1305", "CHACHA20-POLY1305"),
]
SUITES = SUITES_1_3 + SUITES_1_2
