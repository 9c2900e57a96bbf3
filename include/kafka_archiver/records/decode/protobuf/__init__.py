"""Decodes Protobuf.

`files` compiles schemas, `types` says which columns a message has, `fits` whether a writer's message can be read as
another one, `frames` reads Confluent's message indexes, and `decoder` reads messages with ptars.
"""
