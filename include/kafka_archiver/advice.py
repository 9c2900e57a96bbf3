"""What a person can do about it: the exact commands that messages name. Pure."""


def choose(archive: str, policy: str, choice: str) -> str:
    """How to choose: the command for once, the setting for always."""
    conf = f'{{"policies": {{"{policy}": "{choice}"}}}}'
    return (
        f"once with `airflow dags trigger archive_{archive} --conf '{conf}'`, always with `policies.{policy}: {choice}`"
    )
