"""Opens a log in Kafka, and says before a run begins whether that can work."""

from __future__ import annotations

from understudy.clients.kafka import Cluster
from understudy.extras import need
from understudy.log.bag_cache import BagCache
from understudy.log.kafka_client import KafkaWire
from understudy.log.kafka_log import KafkaLog
from understudy.log.kafka_settings import settings_of
from understudy.log.kafka_view import View
from understudy.log.place import URL, LogPlace
from understudy.model.address import Address

CHECK_S = 10.0


def check(address: Address) -> None:
    """Raises if the address is wrong, the client is not installed, or no broker responds within ten seconds."""
    settings = settings_of(address, "run")
    _need(address)
    cluster = Cluster(settings.servers, settings.options, "the log", CHECK_S)
    try:
        cluster.count_brokers()
    finally:
        cluster.close()


def open_log(place: LogPlace) -> KafkaLog:
    """Creates the topics of the run if they are not there, and reads them to their end."""
    _need(place.address)
    settings = settings_of(place.address, place.run)
    cache = BagCache(place.local, place.section.cache_bytes, place.disk)
    wire = KafkaWire(settings, len(place.slices))
    return KafkaLog(place.slices, wire, View(place.slices, cache))


def _need(address: Address) -> None:
    need(["confluent_kafka"], extra="kafka", user=f"{URL} = {address}")
