"""A fleet with one worker, and the Python package connected to it, for a class of tests."""
import unittest

import fleet as fleets
import python_package  # noqa: F401  first: it says where the package is
import chainfleet as cf


class ConnectedFleet(unittest.TestCase):
    """`started` is the fleet of processes, `fleet` the package's."""

    UP = ()  # flags of `chainfleet up`
    TOKEN = None

    @classmethod
    def environment(cls, folder):
        """Variables of the processes, whose data are in `folder`."""
        return {"CHAINFLEET_TOKEN": cls.TOKEN} if cls.TOKEN else {}

    @classmethod
    def setUpClass(cls):
        cls.started = fleets.Fleet(workers=1)
        cls.started.environment = cls.environment(cls.started.folder)
        cls.addClassCleanup(cls.started.close)
        cls.started.up(*cls.UP)
        cls.fleet = cf.connect(cls.started.address, cls.TOKEN)
        cls.addClassCleanup(cls.fleet.close)
