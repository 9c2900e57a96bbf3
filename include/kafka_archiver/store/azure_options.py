"""The options of a store on Azure, and what an Airflow connection means for them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from kafka_archiver.messages.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureOptions:
    """The address of the account, and at most one kind of credentials. All are texts.

    Without credentials, azure-identity finds some: the environment's, a workload's or a machine's identity.
    """

    account_url: str
    account_name: str | None = None
    account_key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Check the options; an empty value counts as missing.

        :raises ConfigError: an option is unknown or wrong. The message shows no secret.
        """
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(options) - set(known)):
            raise ConfigError(f"unknown store option {', '.join(unknown)}; expected any of {', '.join(known)}")
        values = {name: value for name, value in options.items() if value}
        if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", values.get("account_url", "")):
            raise ConfigError(
                "store option account_url: expected https://ACCOUNT.blob.core.windows.net, without user, password, "
                "query and fragment"
            )
        parsed = cls(**values)
        kinds = [name for name in ("account_key", "sas_token", "client_secret") if getattr(parsed, name)]
        if len(kinds) > 1:
            raise ConfigError(f"store options {' and '.join(kinds)}: expected one of them")
        if parsed.client_secret and not (parsed.tenant_id and parsed.client_id):
            raise ConfigError("store option client_secret: expected tenant_id and client_id with it")
        return parsed

    @property
    def credential(self) -> Any:
        """The credential, as Azure's clients take it."""
        if self.sas_token:
            return self.sas_token.removeprefix("?")
        if self.account_key:
            name = self.account_name or self.account_url.partition("://")[2].partition(".")[0]
            return {"account_name": name, "account_key": self.account_key}
        # Imported late: who has a key needs none of it.
        from azure.identity import ClientSecretCredential, DefaultAzureCredential

        if self.client_secret and self.tenant_id and self.client_id:
            return ClientSecretCredential(self.tenant_id, self.client_id, self.client_secret)
        return DefaultAzureCredential(managed_identity_client_id=self.client_id)


def options_of_connection(connection: Any, where: str) -> dict[str, str]:
    """Turn a connection of the type `wasb` into options, as Airflow's provider reads it.

    :param where: the connection in messages.
    :raises ConfigError: it names no account.
    """
    extra = {name: str(value) for name, value in connection.extra_dejson.items() if value}
    pairs = [pair.partition("=") for pair in extra.get("connection_string", "").split(";")]
    text = {name: value for name, _, value in pairs}
    login, password = connection.login or "", connection.password or ""
    account = text.get("AccountName") or ("" if extra.get("tenant_id") else login)
    host = extra.get("account_url") or text.get("BlobEndpoint") or connection.host or ""
    if not host and not account:
        raise ConfigError(
            f"{where}: expected the account's name as login, or its address as host: "
            "https://ACCOUNT.blob.core.windows.net"
        )
    url = host or f"https://{account}.blob.core.windows.net"
    options = {
        "account_url": url if "://" in url else f"https://{url}",
        "account_name": account,
        "account_key": text.get("AccountKey") or ("" if extra.get("tenant_id") else password),
        "sas_token": extra.get("sas_token") or text.get("SharedAccessSignature"),
        "tenant_id": extra.get("tenant_id"),
        "client_id": login if extra.get("tenant_id") else extra.get("managed_identity_client_id"),
        "client_secret": password if extra.get("tenant_id") else None,
    }
    return {name: value for name, value in options.items() if value}
