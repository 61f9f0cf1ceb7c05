"""All clients of a history, and their common steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness import wire
from harness.wire import Pingresp, Publish, ServerPacket, Suback

from .actor import Actor
from .ledger import Ledger, Message, require
from .network import Network
from .publisher import HTTPPublisher, OrderPublisher, Publisher
from .restless import FILTERS, MARK, Mortal, OrderWatcher, Restless
from .shared import QUITTERS_FILTER, Pool, Quitter, SharedMember
from .subscriber import Subscriber
from .witness import Witness

PUBLISHERS = 3
RETAINED_TOPICS = 6
SENTINEL = "sentinel"
"""A topic of every subscriber: messages queued before its message arrive before it."""


class RetainedReader(Actor):
    """A new clean client, which gets the retained messages."""

    def __init__(self, network: Network, ledger: Ledger, name: str) -> None:
        super().__init__(network, ledger, name)
        self.found: dict[str, bytes] = {}
        self.pings = 0

    def connected(self, session_present: bool) -> None:
        self.send(wire.subscribe(1, ("r/#", 1)))

    def receive(self, packet: ServerPacket) -> None:
        if isinstance(packet, Publish):
            require(packet.retain, f"{packet} without RETAIN to a new subscription")
            require(packet.topic not in self.found, f"{packet.topic} is retained twice")
            self.found[packet.topic] = packet.payload
            if packet.packet_id is not None:
                self.send(wire.puback(packet.packet_id))
            return
        require(isinstance(packet, (Suback, Pingresp)), f"{self.name} got {packet}")
        if isinstance(packet, Pingresp):
            self.pings += 1
        if self.pings < 3:
            self.send(wire.PINGREQ)


class Cast:
    """All clients of one history."""

    def __init__(self, network: Network, ledger: Ledger) -> None:
        self.network = network
        self.ledger = ledger
        self.publishers = [
            Publisher(
                network, ledger, f"p{n}",
                [(f"t/p{n}/1", (1,)), (f"t/p{n}/2", (2,)), (f"t/p{n}/all", (1, 2))])
            for n in range(PUBLISHERS)
        ]
        self.retainer = Publisher(
            network, ledger, "retainer", [(f"r/{n}", (1, 2)) for n in range(RETAINED_TOPICS)],
            window=4, retain=True)
        self.sharer = Publisher(network, ledger, "sharer", [("sh/1", (1,)), ("sh/2", (2,))])
        self.prober = Publisher(network, ledger, "prober", [])
        self.http = HTTPPublisher(network, ledger, "h/posts")
        self.orders = OrderPublisher(network, ledger, "agent")
        self.subscribers = [
            Subscriber(network, ledger, "all-2", [("t/#", 2), ("h/#", 2), (SENTINEL, 1)]),
            Subscriber(network, ledger, "all-1", [("t/#", 1), (SENTINEL, 2)]),
            Subscriber(
                network, ledger, "some",
                [("t/p0/#", 2), ("t/p1/#", 1), ("h/+", 1), (SENTINEL, 1)]),
            Subscriber(network, ledger, "wills-2", [("w/#", 2), (SENTINEL, 2)]),
            Subscriber(network, ledger, "wills-1", [("w/#", 1), (SENTINEL, 1)]),
        ]
        self.pool = Pool(ledger)
        # One member stays, so that the group always has one.
        self.members = [
            SharedMember(network, ledger, f"member{n}", self.pool, restless=n > 0)
            for n in range(2)]
        self.quitters_pool = Pool(ledger, sessions_end=True)
        self.keeper = SharedMember(
            network, ledger, "keeper", self.quitters_pool, restless=False,
            group=(QUITTERS_FILTER, 1))
        self.quitters = [
            Quitter(network, ledger, f"quitter{n}", self.quitters_pool) for n in range(2)]
        self.order_watcher = OrderWatcher(network, ledger, "order-watcher")
        self.restless = [Restless(network, ledger, f"restless{n}") for n in range(2)]
        self.mortals = [Mortal(network, ledger, f"mortal{n}", 1 + n % 2) for n in range(3)]
        self.witness = Witness(network, ledger)
        self._reader: RetainedReader | None = None
        self._address = self._admin = ("127.0.0.1", 0)
        self._sentinel = 0
        """The sequence of the message that ends the current drain."""
        self._due: dict[str, int] = {}
        """Per topic, how far it must have come with that message."""
        self._due_orders = 0

    # --- groups --------------------------------------------------------------------------

    @property
    def watchers(self) -> list[Subscriber]:
        return [*self.subscribers, *self.members, self.keeper, self.order_watcher]

    @property
    def senders(self) -> list[Publisher | HTTPPublisher]:
        return [
            *self.publishers, self.sharer, self.retainer, self.prober, self.http, self.orders]

    @property
    def everyone(self) -> Iterable[Actor | HTTPPublisher]:
        return [
            *self.senders, *self.watchers, *self.quitters, *self.restless, *self.mortals,
            self.witness]

    @property
    def outstanding(self) -> dict[int, int]:
        """Exchanges that wait for the broker, by QoS; 0 is anything but a message."""
        total: dict[int, int] = {}
        for actor in self.everyone:
            for qos, count in actor.outstanding.items():
                total[qos] = total.get(qos, 0) + count
        return total

    def state(self) -> str:
        """Each client with the messages it waits for, for a failure's message."""
        return "; ".join(
            f"{actor.name}: {actor.outstanding}" for actor in self.everyone
            if isinstance(actor, Actor) and actor.outstanding
        ) + f"; no member of the shared subscription got {self._missing_of_quitters}"

    # --- after a start -------------------------------------------------------------------

    def verify(
        self, address: tuple[str, int], admin: tuple[str, int],
        wait: Callable[[Callable[[], bool], str], None], *, qos: int, everybody: bool,
    ) -> None:
        """Checks that nothing acknowledged is missing, before anything new is published.

        `wait` returns when its condition holds; the text says what for. Nobody is connected
        before, and with `everybody` all are afterwards.
        """
        self.begin(address, admin)
        self.watch()
        wait(lambda: self.is_watching, "the retained messages")
        self.check_retained()
        self.connect(everybody=everybody)
        wait(lambda: self.is_quiet, "what was unacknowledged to be acknowledged")
        self.ask_marks()
        wait(lambda: self.is_quiet, "SUBACK")
        self.probe(qos)
        wait(lambda: self.is_quiet, "the probes to be acknowledged")
        self.publish_sentinel(qos)
        wait(lambda: self.has_drained, "all queues to drain")
        self.check_drained()

    def begin(self, address: tuple[str, int], admin: tuple[str, int]) -> None:
        """The broker accepts connections; nothing new is published for now."""
        self._address, self._admin = address, admin
        for sender in self.senders:
            sender.is_publishing = False

    def watch(self) -> None:
        """The witness, and a client that reads the retained messages."""
        self.witness.connect(self._address, clean_session=True)
        self._reader = RetainedReader(self.network, self.ledger, "retained-reader")
        self._reader.connect(self._address, clean_session=True)

    @property
    def is_watching(self) -> bool:
        return (
            self.witness.is_ready and self._reader is not None and self._reader.pings >= 3)

    def check_retained(self) -> None:
        """Each topic has the last value acknowledged or seen, or one that was sent after it."""
        assert self._reader is not None
        for topic, _ in self.retainer.topics:
            messages = self.ledger.topics.get(topic, [])
            last = self.ledger.last_certain(topic)
            allowed = [messages[last - 1].payload if last else b""]
            allowed += [one.payload for one in messages[last:]]
            # A message repeated after a crash is a new message at QoS 1; QoS 2 messages stored
            # before the crash are not.
            for one in reversed(messages[:last]):
                if one.sends == 1:
                    break
                if one.qos == 1:
                    allowed.append(one.payload)
            found = self._reader.found.get(topic, b"")
            require(
                found in allowed,
                f"{topic} has {found[:40]!r}, not #{last} of {len(messages)} or later")
        self._reader.disconnect()

    def connect(self, *, everybody: bool) -> None:
        """All that send come back, and some that receive."""
        rng = self.ledger.rng
        for sender in (*self.publishers, self.sharer, self.retainer, self.prober):
            sender.connect(self._address)
        for poster in (self.http, self.orders):
            poster.connect(self._admin)
        for restless in self.restless:
            restless.connect(self._address)
        for quitter in self.quitters:
            # Their messages go to the keeper.
            quitter.connect(self._address, clean_session=True)
        for watcher in self.watchers:
            watcher.held_back = rng.choice((0, 0, 3, 9))
            if everybody or not watcher.is_subscribed or rng.random() < 0.6:
                watcher.connect(self._address)

    @property
    def is_quiet(self) -> bool:
        """Nothing that was sent waits for its acknowledgement."""
        return (
            all(sender.is_idle for sender in self.senders)
            and all(restless.is_idle for restless in self.restless)
            and all(quitter.is_connected for quitter in self.quitters)
            and all(
                watcher.link is None or (watcher.is_connected and watcher.is_subscribed)
                for watcher in self.watchers))

    def ask_marks(self) -> None:
        for restless in self.restless:
            restless.ask(MARK, 2)

    def probe(self, qos: int) -> None:
        """Finds out which subscriptions the broker knows of."""
        for restless in self.restless:
            restless.expect(
                [self.prober.publish(restless.topic(index), qos) for index in range(FILTERS + 1)])

    def publish_sentinel(self, qos: int) -> None:
        """The message behind everything that is due."""
        self._due = {topic: self.ledger.last_certain(topic) for topic in self.ledger.topics}
        for mortal in self.mortals:
            self._due[mortal.topic] = min(self._due.get(mortal.topic, 0), mortal.dead)
        self._due_orders = len(self.orders.acknowledged)
        self._sentinel = self.prober.publish(SENTINEL, qos).sequence

    @property
    def has_drained(self) -> bool:
        """All that are connected have the sentinel, and have nothing left to answer."""
        present = [watcher for watcher in self.watchers if watcher.link is not None]
        for watcher in present:
            watcher.acknowledge()
        return (
            self.prober.is_idle
            and all(restless.has_answer for restless in self.restless)
            and self._missing_of_quitters is None
            and all(
                watcher.mailbox.last(SENTINEL) >= self._sentinel and watcher.is_settled()
                for watcher in present))

    @property
    def _missing_of_quitters(self) -> Message | None:
        """Messages that ended sessions left are handed to the keeper over time."""
        if self.keeper.link is None:
            return None
        topic = self.sharer.topics[0][0]
        return self.quitters_pool.missing(topic, self._due.get(topic, 0))

    def check_drained(self) -> None:
        for watcher in self.watchers:
            if watcher.link is None:
                continue
            for topic, through in self._due.items():
                if watcher.wants(topic):
                    watcher.mailbox.require_complete(topic, through)
        if all(member.link is not None for member in self.members):
            for topic, _ in self.sharer.topics:
                self.pool.require_complete(topic, self._due.get(topic, 0))
        if self.order_watcher.link is not None:
            for order in self.orders.acknowledged[: self._due_orders]:
                require(
                    order in self.order_watcher.orders,
                    f"the status of {order} was answered with 200 and is lost")
        refused = self.orders.refused & self.order_watcher.orders.keys()
        require(not refused, f"answered with 503, and published: {refused}")
        for restless in self.restless:
            restless.check()

    # --- traffic -------------------------------------------------------------------------

    def start_traffic(self, levels: Sequence[int]) -> None:
        for sender in self.senders:
            if sender is not self.prober:
                sender.levels = levels
                sender.is_publishing = True
                sender.fill()
        for mortal in self.mortals:
            mortal.live(self._address)

    def move(self) -> None:
        """One of the many things that may happen between two messages."""
        rng = self.ledger.rng
        for restless in self.restless:
            restless.step(self._address)
        for poster in (self.http, self.orders):
            if rng.random() < 0.1:
                poster.fill()
        chance = rng.random()
        if chance < 0.05:
            watcher = rng.choice(self.watchers)
            if watcher.link is None:
                watcher.connect(self._address)
            elif watcher.is_subscribed:
                watcher.disconnect(abruptly=rng.random() < 0.5)
        elif chance < 0.06:
            rng.choice(self.members).step()
        elif chance < 0.07:
            rng.choice(self.quitters).step(self._address)
        elif chance < 0.09:
            mortal = rng.choice(self.mortals)
            if mortal.link is None:
                mortal.live(self._address)
            else:
                mortal.say_goodbye()
        elif chance < 0.11:
            publisher = rng.choice([*self.publishers, self.sharer])
            if publisher.link is None:
                publisher.connect(self._address)
            else:
                publisher.disconnect(abruptly=rng.random() < 0.5)
