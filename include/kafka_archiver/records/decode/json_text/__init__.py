"""Decodes JSON: `schema` says which columns a JSON Schema has, `nodes` what each of them takes, `decoder` reads."""
