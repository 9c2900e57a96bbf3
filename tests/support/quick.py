"""Java that starts fast: tests start many JVMs, and none of them works for long."""

JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
