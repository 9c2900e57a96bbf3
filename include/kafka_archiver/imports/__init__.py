"""YAML of archives from the configurations of other tools. Pure.

One file each: `confluent`, `lenses` (its statements: `kcql`), `deviantart`, `zooz`, `kafkatos3`; `connect` has what the
connectors share. `registry` knows them all and finds out whose a file is.
"""
