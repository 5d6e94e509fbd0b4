"""The mark of a failover on the dashboards, from a real Prometheus over two coordinators of which one dies."""
import unittest

import deployed
from prometheus_http import Prometheus
from real_prometheus import RealPrometheus
from started_fleet import StartedFleet
from with_postgres import Postgres


class FailoverMark(unittest.TestCase):
    def test_the_one_that_took_over_is_marked(self):
        postgres = Postgres()
        self.addCleanup(postgres.close)
        postgres.start()
        fleet = StartedFleet(servers=2, environment={"CHAINFLEET_STATE": postgres.uri + "/postgres"})
        self.addCleanup(fleet.close)
        fleet.start_server(0)
        fleet.wait_until_served(by=0)
        fleet.start_server(1)
        fleet.wait_until(1, lambda answer: fleet.addresses[0] in answer.stderr)  # a standby, which names the leader
        server = RealPrometheus(*fleet.metrics_addresses)
        self.addCleanup(server.close)
        server.start()
        prometheus = Prometheus(server.url)
        marks = {deployed.filled(expr, "1m") for where, expr in deployed.annotation_expressions() if where.endswith(": Failover")}
        self.assertEqual(len(marks), 1)
        mark, = marks

        def leaders(value):
            return {labels["instance"] for labels, _ in prometheus.at(f"chainfleet_leader == {value}")}
        fleet.wait_until(1, lambda _: (leaders(1), leaders(0)) == ({fleet.metrics_addresses[0]}, {fleet.metrics_addresses[1]}))
        self.assertEqual(prometheus.at(mark), [])
        fleet.kill("server-0")
        fleet.wait_until_served(by=1)
        fleet.wait_until(1, lambda _: prometheus.at(mark))
        self.assertEqual([labels["instance"] for labels, _ in prometheus.at(mark)], [fleet.metrics_addresses[1]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
