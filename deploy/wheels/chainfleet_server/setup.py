"""Tags the wheel for any Python 3 on this platform: it has programs, and no module for Python's own interface."""

import os

import setuptools
from setuptools.command.bdist_wheel import bdist_wheel


class Programs(setuptools.Distribution):
    def has_ext_modules(self):
        return True  # so that they go where packages of a platform are, next to torch


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setuptools.setup(version=os.environ["CHAINFLEET_VERSION"], distclass=Programs, cmdclass={"bdist_wheel": PlatformWheel})
