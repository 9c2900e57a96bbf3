"""The local stack: a real Kafka broker, a real S3 server and Airflow, installed and run below `.local/`.

`make up` and `make down` are `python -m scripts.stack up|down`; the tests start the same classes on free ports:

    from scripts.stack.kafka import Kafka, KafkaPorts
    from scripts.stack.ports import free_ports
    from scripts.stack.s3 import S3, S3Ports

    kafka = Kafka(directory / "kafka", free_ports(KafkaPorts))
    kafka.start()                  # returns when clients can use it; StackError with the end of its log if it fails
    kafka.bootstrap_servers        # "127.0.0.1:23456"
    kafka.stop()                   # the whole process tree; kafka.stop(grace=0) is a kill -9
    kafka.start()                  # with the same data

    s3 = S3(directory / "s3", free_ports(S3Ports))
    s3.start()
    s3.endpoint_url, s3.bucket, s3.region, s3.owner, s3.reader     # owner, reader: Credentials(access_key, secret_key)

All processes of a service have the service's directory in an environment variable. So `stop()` finds them from any
process, also after a crash, and two stacks do not disturb each other.

`install.py` and its imports (`checks`, `errors`, `jars`, `java`, `paths`) run before anything is installed: standard
library only.
"""
