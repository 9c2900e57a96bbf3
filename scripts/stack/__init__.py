"""The local stack: a real Kafka broker, a real S3 server and Airflow, installed and run below `.local/`.

`make up` and `make down` are `python -m scripts.stack up|down`; the tests start the same classes on free ports:

    from scripts.stack.kafka import Kafka, KafkaPorts
    from scripts.stack.ports import free_ports
    from scripts.stack.s3 import S3, S3Ports

    kafka = Kafka(directory / "kafka", free_ports(KafkaPorts))
    kafka.start()                  # returns when a client is really served; StackError with the log's end if not
    kafka.bootstrap_servers        # "127.0.0.1:23456"
    kafka.stop()                   # the whole process tree; kafka.stop(grace=0) is a kill -9
    kafka.start()                  # the same data again

    s3 = S3(directory / "s3", free_ports(S3Ports))
    s3.start()
    s3.endpoint_url, s3.bucket, s3.region, s3.owner, s3.reader     # owner, reader: Credentials(access_key, secret_key)

What a service runs is marked in its environment with the service's directory, so `stop()` finds all of it
again from any process, after a crash too, and two stacks never see each other.

`install.py`, and what it imports (`checks`, `errors`, `jars`, `java`, `paths`), runs before anything is
installed: standard library only.
"""
