"""What the end-to-end tests ask of kafka-python: `kafka_python_client.py BOOTSTRAP COMMAND ARGUMENTS...`.

Each command prints one JSON value, but for `member`, which prints a line an event until it is told to end. Bytes are
hexadecimal text, null is null. Settings are kafka-python's defaults unless the command's name says otherwise.
"""

import json
import signal
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource
from kafka.consumer.subscription_state import ConsumerRebalanceListener


def to_hex(data):
    return None if data is None else bytes(data).hex()


def from_hex(text):
    return None if text is None else bytes.fromhex(text)


def produce(bootstrap, topic, codec):
    """Sends the records of standard input to partition 0; answers with their offsets."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec)
    sent = []
    for record in json.load(sys.stdin):
        headers = [(key, from_hex(value)) for key, value in record["headers"]]
        key, value = from_hex(record["key"]), from_hex(record["value"])
        sent.append(producer.send(topic, value=value, key=key, headers=headers, partition=0))
    producer.flush(timeout=30)
    return [future.get(timeout=30).offset for future in sent]


def consume(bootstrap, topic):
    """Partition 0 from its beginning to its end."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    records = []
    while consumer.position(partition) < end:
        for record in consumer.poll(timeout_ms=1000).get(partition, []):
            headers = [[key, to_hex(value)] for key, value in record.headers]
            records.append({"key": to_hex(record.key), "value": to_hex(record.value), "headers": headers})
    consumer.close()
    return records


def offsets(bootstrap, topic, *timestamps):
    """Beginning, end, and the first offset at or after each timestamp (null where there is none)."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    partition = TopicPartition(topic, 0)
    found = [consumer.offsets_for_times({partition: int(stamp)})[partition] for stamp in timestamps]
    answer = {
        "beginning": consumer.beginning_offsets([partition])[partition],
        "end": consumer.end_offsets([partition])[partition],
        "times": [None if entry is None else entry.offset for entry in found],
    }
    consumer.close()
    return answer


def administer(bootstrap, topic):
    """The life of a topic: made, described, configured, grown, cut, deleted."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    resource = lambda configs=None: ConfigResource("TOPIC", topic, configs)
    admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "600000"}}})
    admin.wait_for_topics([topic])
    seen = {"partitions": [len(described["partitions"]) for described in admin.describe_topics([topic])]}
    admin.alter_configs([resource({"max.message.bytes": "123456"})])
    names = ["retention.ms", "max.message.bytes", "cleanup.policy"]
    for _ in range(100):  # Brokers may tell the former value for a moment.
        seen["configs"] = find_configs(admin.describe_configs([resource()], config_filter="all"), names)
        if seen["configs"]["max.message.bytes"] == "123456":
            break
        time.sleep(0.1)
    admin.create_partitions({topic: 5})
    admin.wait_for_topics([topic])
    seen["partitions"] += [len(described["partitions"]) for described in admin.describe_topics([topic])]
    partition = TopicPartition(topic, 0)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for at in range(10):
        producer.send(topic, b"%d" % at, partition=0).get(timeout=30)
    admin.delete_records({partition: 4})
    specs = {partition: OffsetSpec.EARLIEST}, {partition: OffsetSpec.LATEST}
    seen["offsets"] = [admin.list_partition_offsets(spec)[partition].offset for spec in specs]
    seen["listed"] = topic in admin.list_topics()
    admin.delete_topics([topic])
    seen["brokers"] = len(admin.describe_cluster()["brokers"])
    return seen


def find_configs(tree, names):
    """The values of the named properties, wherever in the answer they stand."""
    found = {}

    def walk(node):
        if isinstance(node, dict):
            for name, entry in node.items():
                if name in names:
                    found[name] = str(entry["value"] if isinstance(entry, dict) else entry)
                else:
                    walk(entry)
            if node.get("name") in names:
                found[node["name"]] = str(node["value"])
        elif isinstance(node, list):
            for entry in node:
                walk(entry)

    walk(tree)
    return found


def group(bootstrap, name):
    """What the admin client sees of a group."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    described = admin.describe_groups([name])[name]
    committed = admin.list_group_offsets(name)[name]
    return {
        "state": described.get("group_state"),
        "members": len(described["members"]),
        "offsets": {f"{where.topic}-{where.partition}": entry.offset for where, entry in committed.items()},
        "listed": name in json.dumps(admin.list_groups(), default=str),
    }


class Tell(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        print("revoked", *sorted(where.partition for where in revoked))

    def on_partitions_assigned(self, assigned):
        print("assigned", *sorted(where.partition for where in assigned))


def member(bootstrap, name, topic, *instance):
    """A member of a group until SIGTERM, which makes it leave; says what it gets and what it reads."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=name,
        group_instance_id=instance[0] if instance else None,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    consumer.subscribe([topic], listener=Tell())
    while not ending:
        # A short wait would end in the middle of a join, and kafka-python then forgets what it was assigned.
        for where, records in consumer.poll(timeout_ms=3000).items():
            for record in records:
                print("record", where.partition, record.offset)
    consumer.close()
    print("left")


COMMANDS = {
    "produce": produce,
    "consume": consume,
    "offsets": offsets,
    "administer": administer,
    "group": group,
    "member": member,
}

if __name__ == "__main__":
    bootstrap, command, *arguments = sys.argv[1:]
    answer = COMMANDS[command](bootstrap, *arguments)
    if answer is not None:
        print(json.dumps(answer))
