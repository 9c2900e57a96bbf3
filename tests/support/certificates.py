"""Certificates for TLS in tests: an authority, and certificates that it signs."""

import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from scripts.stack.ports import HOST


@dataclass
class Authority:
    """Signs certificates for HOST, as PEM files in a directory."""

    directory: Path
    _key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self._name = _name("the tests' authority")
        certificate = self._certificate(self._name, self._key, authority=True)
        self.file = self.directory / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, who: str) -> Path:
        """A new key and its certificate, in one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certificate(_name(who), key, authority=False)
        file = self.directory / f"{who}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return file

    def sign_pkcs12(self, who: str, password: str) -> Path:
        """The same as a PKCS #12 file with a password."""
        pem = self.sign(who).read_bytes()
        key = serialization.load_pem_private_key(pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        file = self.directory / f"{who}.p12"
        encryption = serialization.BestAvailableEncryption(password.encode())
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(
                who.encode(), key, x509.load_pem_x509_certificate(pem), None, encryption
            )
        )
        return file

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, authority: bool) -> x509.Certificate:
        moment = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment - timedelta(hours=1))
            .not_valid_after(moment + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
