"""The batch reader: copies librdkafka's messages into columns by C code, where it is compiled."""
